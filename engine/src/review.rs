//! The one review: workload, bytes and policies in, decision out. Every front end calls it.

mod facts;

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::Catalogue;
use crate::config::{Config, Enforcement};
use crate::decision::{Decision, DecisionError, Finding, PackUse, Verdict};
use crate::digest::Digest;
use crate::evidence::{Evidence, Supply, Unanswered};
use crate::input::{Input, Previous, Request};
use crate::policy::{Action, Pack, PolicySet, Profile, RawFinding, RuleInfo};
use crate::reach::{Bytes, LinkProblem, Reach};
use crate::workload::{Level, Place, Target, Workload};

/// Where the decision is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// In a pipeline or on a desk.
    Ci,
    /// By an API server.
    Admission,
    /// Over what is running.
    Audit,
    /// Before a run.
    Run,
}

impl Mode {
    /// Returns the stable word for this mode.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ci => "ci",
            Self::Admission => "admission",
            Self::Audit => "audit",
            Self::Run => "run",
        }
    }
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Its components' bytes, in the same order.
    pub bytes: &'a [Bytes<'a>],
    /// Where each component's bytes came from and what vouches for them, in the same order. A
    /// component without an entry is one that nobody looked for evidence about.
    pub supplies: &'a [Supply],
    /// The file that holds it, as messages name it.
    pub file: &'a str,
}

/// What it is judged by.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    /// Where the decision is taken.
    pub mode: Mode,
    /// The time of the decision, RFC 3339 in UTC.
    pub now: &'a str,
    /// The target whose semantics count; `None` for the document's own engine.
    pub target: Option<Target>,
    /// The profile of the shipped packs.
    pub profile: Profile,
    /// The configuration.
    pub config: &'a Config,
    /// The packs.
    pub policies: &'a PolicySet,
    /// The catalogue.
    pub catalogue: &'a Catalogue,
    /// The request behind it.
    pub request: Request,
    /// What was known before.
    pub previous: Option<Previous>,
}

/// A decision with what it rests on.
#[derive(Clone, Debug)]
pub struct Review {
    /// The decision.
    pub decision: Decision,
    /// What the components can reach.
    pub reach: Reach,
    /// The document that the policies saw.
    pub input: Input,
}

/// How many unanswered questions one error names. A registry decides how many there are.
const MAX_REASONS: usize = 4;

/// Packs that look at every subject; the others join when the subject calls for them.
const ALWAYS: &str = "baseline";

/// Judges one workload.
///
/// Equal arguments give equal decisions, to the byte.
#[must_use]
pub fn review(subject: Subject<'_>, terms: &Terms<'_>) -> Review {
    let target = terms.target.unwrap_or(subject.workload.engine);
    let reach = Reach::of(subject.workload, subject.bytes, target, terms.catalogue);
    let mut problems = subject.workload.problems.clone();
    problems.extend(link_problems(subject.workload, &reach));
    let input = facts::input(subject, terms, target, &reach, &problems);
    let mut collector = Collector {
        subject,
        terms,
        findings: Vec::new(),
        errors: Vec::new(),
        rules: terms.policies.rules(),
        places: facts::places(subject.workload),
        used: used_packs(terms, &input, target),
    };
    collector.unavailable();
    collector.lints(&problems);
    collector.evidence(&input);
    collector.policies(&input);
    let decision = collector.finish(&input, target);
    Review { decision, reach, input }
}

/// Returns the names of the packs that look at this subject.
///
/// `wasmcloud` looks where its semantics count, `agents` where an agent or a tool takes part, and
/// a pack of the user's own looks always.
fn used_packs(terms: &Terms<'_>, input: &Input, target: Target) -> BTreeSet<String> {
    let agents = input
        .workload
        .components
        .iter()
        .any(|c| c.classes.iter().any(|class| class == "agent" || class == "tool"));
    let document = !subject_is_bare(input);
    let joins = |pack: &Pack| match pack.name() {
        ALWAYS => true,
        "agents" => agents,
        "wasmcloud" => target == Target::WasmCloud && document,
        _ => true,
    };
    terms.policies.packs().iter().filter(|p| joins(p)).map(|p| p.name().to_owned()).collect()
}

fn subject_is_bare(input: &Input) -> bool {
    input.workload.kind == "Component" && input.workload.api_version.is_empty()
}

fn link_problems(workload: &Workload, reach: &Reach) -> Vec<crate::workload::Problem> {
    let name =
        |index: &usize| workload.components.get(*index).map(|c| c.name.clone()).unwrap_or_default();
    reach
        .links
        .problems
        .iter()
        .map(|problem| {
            let (code, at, message, help) = match problem {
                LinkProblem::Ambiguous { from, interface, candidates } => (
                    "link-ambiguous",
                    *from,
                    format!(
                        "`{}` imports `{interface}`, which `{}` all export",
                        name(from),
                        candidates.iter().map(name).collect::<Vec<_>>().join("`, `")
                    ),
                    "keep one exporter in the workload",
                ),
                LinkProblem::Cycle(members) => (
                    "link-cycle",
                    members.first().copied().unwrap_or_default(),
                    format!(
                        "`{}` import one another in a circle",
                        members.iter().map(name).collect::<Vec<_>>().join("`, `")
                    ),
                    "break the circle; a host refuses to start it",
                ),
            };
            crate::workload::Problem {
                code,
                level: Level::Invalid,
                severity: "high",
                message,
                help: help.to_owned(),
                component: name(&at),
                place: workload.components.get(at).map(|c| c.place.clone()).unwrap_or_default(),
            }
        })
        .collect()
}

struct Collector<'a, 't> {
    subject: Subject<'a>,
    terms: &'t Terms<'t>,
    findings: Vec<Finding>,
    errors: Vec<DecisionError>,
    rules: &'t BTreeMap<String, RuleInfo>,
    places: BTreeMap<&'a str, &'a Place>,
    used: BTreeSet<String>,
}

impl Collector<'_, '_> {
    /// A component without bytes can't be judged.
    fn unavailable(&mut self) {
        let components = self.subject.workload.components.iter();
        for (index, spec) in components.enumerate() {
            let reason = match self.subject.bytes.get(index) {
                Some(Bytes::Present(_)) => continue,
                Some(Bytes::Absent(reason)) => (*reason).to_owned(),
                None => "it was not read".to_owned(),
            };
            self.errors.push(DecisionError {
                code: "component-unavailable".to_owned(),
                subject: spec.name.clone(),
                message: format!("the bytes of `{}` are not at hand: {reason}", spec.name),
                help: format!("give them with `--component {}=FILE.wasm`", spec.name),
                place: spec.image.place.clone(),
            });
        }
        if self.subject.workload.components.is_empty() {
            let invalid = |p: &crate::workload::Problem| p.level == Level::Invalid;
            if !self.subject.workload.problems.iter().any(invalid) {
                self.errors.push(DecisionError {
                    code: "workload-empty".to_owned(),
                    subject: self.subject.workload.name.clone(),
                    message: "the workload has no component to judge".to_owned(),
                    help: "add one under `spec.components`".to_owned(),
                    place: self.subject.workload.place.clone(),
                });
            }
        }
    }

    /// Lints of the document that no rule covers are findings of their own.
    fn lints(&mut self, problems: &[crate::workload::Problem]) {
        let covered = |code: &str| {
            matches!(code, "loopback-pair" | "host-cleartext-secret" | "host-default-port")
                && self.used.contains("wasmcloud")
        };
        let lints: Vec<Finding> = problems
            .iter()
            .filter(|problem| problem.level == Level::Lint && !covered(problem.code))
            .map(|problem| Finding {
                code: problem.code.to_owned(),
                rule: format!("document/{}", problem.code),
                severity: problem.severity.to_owned(),
                action: self.action(&format!("document/{}", problem.code), Action::Warn),
                subject: if problem.component.is_empty() {
                    self.subject.workload.name.clone()
                } else {
                    problem.component.clone()
                },
                message: problem.message.clone(),
                help: problem.help.clone(),
                place: problem.place.clone(),
                unjudged: false,
            })
            .filter(|finding| finding.action != Action::Off)
            .collect();
        self.findings.extend(lints);
    }

    /// Rules that need evidence can't judge a component that has none.
    fn evidence(&mut self, input: &Input) {
        let mut rules: Vec<RuleInfo> = self
            .rules
            .values()
            .filter(|rule| rule.evidence && self.used.contains(&rule.pack))
            .filter(|rule| self.is_configured(rule))
            .filter(|rule| !rule.previous || input.has_previous)
            .cloned()
            .collect();
        rules.sort_by(|a, b| a.id.cmp(&b.id));
        for (index, component) in input.workload.components.iter().enumerate() {
            let judged: Vec<(&RuleInfo, Action)> = rules
                .iter()
                .map(|rule| {
                    let own = self.pack_action(rule).unwrap_or(Action::Deny);
                    (rule, self.action(&rule.full(), own))
                })
                .filter(|(_, action)| *action != Action::Off)
                .collect();
            let supply = self.subject.supplies.get(index).map(|supply| &supply.evidence);
            match supply.unwrap_or(&Evidence::NotChecked) {
                Evidence::Checked(_) => {}
                Evidence::Unknown(unanswered) => self.unknown(component, unanswered, &judged),
                Evidence::NotChecked => self.not_checked(component, &judged),
            }
        }
    }

    /// A source that gave no answer leaves every rule that needs it without one.
    fn unknown(
        &mut self,
        component: &crate::input::Component,
        unanswered: &[Unanswered],
        judged: &[(&RuleInfo, Action)],
    ) {
        if judged.is_empty() {
            return;
        }
        let mut reasons: Vec<String> =
            unanswered.iter().take(MAX_REASONS).map(|u| u.message.clone()).collect();
        let more = unanswered.len().saturating_sub(MAX_REASONS);
        if more > 0 {
            reasons.push(format!("and {more} more"));
        }
        let codes: Vec<String> = judged.iter().map(|(rule, _)| rule.code()).collect();
        self.errors.push(DecisionError {
            code: "evidence-unknown".to_owned(),
            subject: component.name.clone(),
            message: format!(
                "`{}` can't be judged for {}: {}",
                component.name,
                codes.join(", "),
                reasons.join("; ")
            ),
            help: "try again when the source answers; nothing follows from what wasn't found"
                .to_owned(),
            place: self.place(&component.image.path, &component.name),
        });
    }

    /// Nobody looked: a warning under the baseline, no answer under strict.
    fn not_checked(&mut self, component: &crate::input::Component, judged: &[(&RuleInfo, Action)]) {
        // Bytes that aren't at hand are an error already, and nothing could be looked for.
        if component.bytes == "absent" {
            return;
        }
        for (rule, action) in judged {
            let message = format!(
                "`{}` can't be judged for `{}`: no evidence was looked for",
                component.name, rule.title
            );
            let place = self.place(&component.image.path, &component.name);
            if self.terms.profile == Profile::Strict && *action == Action::Deny {
                self.errors.push(DecisionError {
                    code: "evidence-not-checked".to_owned(),
                    subject: component.name.clone(),
                    message,
                    help: format!("set `{}` to warn or audit, or gather the evidence", rule.full()),
                    place,
                });
            } else {
                self.findings.push(Finding {
                    code: rule.code(),
                    rule: rule.full(),
                    severity: rule.severity.clone(),
                    action: (*action).max(Action::Warn),
                    subject: component.name.clone(),
                    message,
                    help: "signatures and attestations are read from the component's registry"
                        .to_owned(),
                    place,
                    unjudged: true,
                });
            }
        }
    }

    fn policies(&mut self, input: &Input) {
        let text = match serde_json::to_string(input) {
            Ok(text) => text,
            Err(error) => {
                self.no_answer("input-serialization", error.to_string());
                return;
            }
        };
        match self.terms.policies.evaluate_packs(&text, |pack| self.used.contains(pack)) {
            Ok(found) => found.into_iter().for_each(|raw| self.add(raw)),
            Err(error) => self.no_answer(error.code(), error.to_string()),
        }
    }

    fn no_answer(&mut self, code: &str, message: String) {
        self.errors.push(DecisionError {
            code: code.to_owned(),
            subject: self.subject.workload.name.clone(),
            message,
            help: String::new(),
            place: self.subject.workload.place.clone(),
        });
    }

    fn add(&mut self, raw: RawFinding) {
        let full = format!("{}/{}", raw.pack, raw.rule);
        let own = self.rules.get(&full).and_then(|rule| self.pack_action(rule));
        let action = self.action(&full, own.unwrap_or(raw.head));
        if action == Action::Off {
            return;
        }
        let subject =
            if raw.subject.is_empty() { self.subject.workload.name.clone() } else { raw.subject };
        let place = self.place(&raw.path, &subject);
        self.findings.push(Finding {
            code: raw.code,
            rule: full,
            severity: raw.severity,
            action,
            subject,
            message: raw.message,
            help: raw.help,
            place,
            unjudged: false,
        });
    }

    /// Returns the action that a rule's own pack gives it under the profile.
    fn pack_action(&self, rule: &RuleInfo) -> Option<Action> {
        self.terms
            .policies
            .packs()
            .iter()
            .find(|pack| pack.name() == rule.pack)
            .and_then(|pack| pack.action(&rule.id, self.terms.profile))
    }

    /// Returns the action of a rule: what the configuration says most exactly, else `own`.
    fn action(&self, rule: &str, own: Action) -> Action {
        let namespace = &self.subject.workload.namespace;
        let pack = rule.split('/').next().unwrap_or(rule);
        let weight = |entry: &Enforcement| {
            let named = match () {
                () if entry.rule == rule => 2_u8,
                () if entry.rule == pack => 1,
                () => return None,
            };
            match &entry.namespace {
                Some(own) if own == namespace => Some((named, 1_u8)),
                Some(_) => None,
                None => Some((named, 0)),
            }
        };
        let configured = self.terms.config.enforcement.iter();
        configured
            .filter_map(|entry| Some((weight(entry)?, entry.action)))
            .max_by_key(|(weight, _)| *weight)
            .map_or(own, |(_, action)| action)
    }

    fn is_configured(&self, rule: &RuleInfo) -> bool {
        let Some(parameter) = &rule.parameter else { return true };
        let pack = self.terms.policies.packs().iter().find(|pack| pack.name() == rule.pack);
        let set = self
            .terms
            .config
            .parameters
            .get(&rule.pack)
            .is_some_and(|given| given.get(parameter).is_some_and(|value| !is_unset(value)));
        set || pack.is_some_and(|pack| {
            pack.parameters().get(parameter).is_some_and(|p| !p.unset && !is_unset(&p.default))
        })
    }

    /// Finds the stretch of text for a pointer: the place of the thing itself, of what holds it, or
    /// of the component.
    fn place(&self, pointer: &str, subject: &str) -> Place {
        let workload = self.subject.workload;
        let mut at = pointer;
        loop {
            if let Some(place) = self.places.get(at) {
                return Place { pointer: pointer.to_owned(), span: place.span };
            }
            match at.rfind('/') {
                Some(cut) if cut > 0 => at = at.get(..cut).unwrap_or_default(),
                _ => break,
            }
        }
        let component = workload.components.iter().find(|c| c.name == subject);
        let span = component.and_then(|c| c.place.span).or(workload.place.span);
        Place { pointer: pointer.to_owned(), span }
    }

    fn finish(mut self, input: &Input, target: Target) -> Decision {
        self.findings.sort_by(|a, b| {
            let key =
                |f: &Finding| (f.action, severity(&f.severity), f.place.line(), f.place.column());
            key(a)
                .cmp(&key(b))
                .then_with(|| a.rule.cmp(&b.rule))
                .then_with(|| a.subject.cmp(&b.subject))
                .then_with(|| a.message.cmp(&b.message))
        });
        self.findings.dedup();
        let verdict = if !self.errors.is_empty() {
            Verdict::Error
        } else if self.findings.iter().any(|finding| finding.action == Action::Deny) {
            Verdict::Deny
        } else {
            Verdict::Allow
        };
        let workload = self.subject.workload;
        let packs = self.terms.policies.packs().iter().filter(|p| self.used.contains(p.name()));
        let packs = packs
            .map(|pack| PackUse {
                name: pack.name().to_owned(),
                version: pack.version().to_owned(),
                digest: *pack.digest(),
                not_configured: pack
                    .rules()
                    .into_iter()
                    .filter(|rule| !self.is_configured(rule))
                    .map(RuleInfo::full)
                    .collect(),
            })
            .collect();
        let inputs = input.workload.components.iter().filter_map(|component| {
            component.digest.clone().map(|digest| (component.name.clone(), digest))
        });
        Decision {
            verdict,
            kind: workload.kind.clone(),
            namespace: workload.namespace.clone(),
            name: workload.name.clone(),
            target: target.as_str().to_owned(),
            findings: self.findings,
            errors: self.errors,
            inputs: inputs.collect(),
            packs,
            decision_id: decision_id(input),
            place: workload.place.clone(),
        }
    }
}

fn severity(word: &str) -> u8 {
    match word {
        "critical" => 0,
        "high" => 1,
        "medium" => 2,
        _ => 3,
    }
}

fn is_unset(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null | serde_json::Value::Bool(false) => true,
        serde_json::Value::Array(items) => items.is_empty(),
        serde_json::Value::String(text) => text.is_empty(),
        serde_json::Value::Number(number) => number.as_f64() == Some(0.0),
        serde_json::Value::Object(map) => map.is_empty(),
        serde_json::Value::Bool(true) => false,
    }
}

/// Returns the SHA-256 over the input without what differs between front ends and moments.
#[must_use]
pub fn decision_id(input: &Input) -> Digest {
    let mut value = serde_json::to_value(input).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        for key in ["mode", "request", "now", "source"] {
            map.shift_remove(key);
        }
    }
    Digest::of(value.to_string().as_bytes())
}
