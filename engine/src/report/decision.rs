//! `ambit.decision/v1`: one document a run, one decision for each subject.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Location;
use crate::decision::{Decision, Finding, Verdict, overall};
use crate::workload::Place;

/// All decisions of one run.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct DecisionDocument {
    /// `ambit.decision/v1`.
    pub schema: String,
    /// `allow`, `deny` or `error` for the whole.
    pub verdict: String,
    /// The profile of the shipped packs.
    pub profile: String,
    /// The time of the decision.
    pub now: String,
    /// The findings of all subjects.
    pub findings: Vec<FindingView>,
    /// Why some input has no subject to judge.
    pub errors: Vec<ErrorView>,
    /// The decisions, in the order of the inputs.
    pub subjects: Vec<SubjectView>,
    /// Digests of every configuration, pack and catalogue file that took part, by name.
    pub configuration: BTreeMap<String, String>,
}

/// The decision about one subject.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct SubjectView {
    /// The kind; `Component` for a bare component.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The target whose semantics were used.
    pub target: String,
    /// The verdict.
    pub verdict: String,
    /// The findings.
    pub findings: Vec<FindingView>,
    /// Findings that a waiver covers.
    pub waived: Vec<FindingView>,
    /// Why there is no answer.
    pub errors: Vec<ErrorView>,
    /// Digests of the components' bytes, by component.
    pub inputs: BTreeMap<String, String>,
    /// The packs that took part.
    pub packs: Vec<PackView>,
    /// SHA-256 of what was judged.
    pub decision_id: String,
}

/// One finding.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct FindingView {
    /// The code.
    pub code: String,
    /// Pack and rule.
    pub rule: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// `deny`, `warn` or `audit`.
    pub action: String,
    /// The component or workload.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
    /// JSON pointer of the place in its document.
    pub path: String,
    /// Where; absent in the canonical form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

/// Why there is no answer.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ErrorView {
    /// The code.
    pub code: String,
    /// The component or workload; may be empty.
    pub subject: String,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
    /// JSON pointer of the place in its document.
    pub path: String,
    /// Where; absent in the canonical form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

/// A pack that took part.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct PackView {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest over its files.
    pub digest: String,
    /// Rules that are off until a parameter is set.
    pub not_configured: Vec<String>,
}

impl ErrorView {
    /// Builds an error about an input that has no subject.
    #[must_use]
    pub fn of_input(code: &str, file: &str, message: &str, help: &str, place: &Place) -> Self {
        Self {
            code: code.to_owned(),
            subject: file.to_owned(),
            message: message.to_owned(),
            help: help.to_owned(),
            path: place.pointer.clone(),
            location: Some(Location::of(file, place)),
        }
    }
}

fn finding(finding: &Finding, file: Option<&str>) -> FindingView {
    FindingView {
        code: finding.code.clone(),
        rule: finding.rule.clone(),
        severity: finding.severity.clone(),
        action: finding.action.as_str().to_owned(),
        subject: finding.subject.clone(),
        message: finding.message.clone(),
        help: finding.help.clone(),
        path: finding.place.pointer.clone(),
        location: file.map(|file| Location::of(file, &finding.place)),
    }
}

fn subject(decision: &Decision, file: Option<&str>) -> SubjectView {
    SubjectView {
        kind: decision.kind.clone(),
        namespace: decision.namespace.clone(),
        name: decision.name.clone(),
        target: decision.target.clone(),
        verdict: decision.verdict.as_str().to_owned(),
        findings: decision.findings.iter().map(|f| finding(f, file)).collect(),
        waived: Vec::new(),
        errors: decision
            .errors
            .iter()
            .map(|error| ErrorView {
                code: error.code.clone(),
                subject: error.subject.clone(),
                message: error.message.clone(),
                help: error.help.clone(),
                path: error.place.pointer.clone(),
                location: file.map(|file| Location::of(file, &error.place)),
            })
            .collect(),
        inputs: decision.inputs.clone(),
        packs: decision
            .packs
            .iter()
            .map(|pack| PackView {
                name: pack.name.clone(),
                version: pack.version.clone(),
                digest: pack.digest.to_string(),
                not_configured: pack.not_configured.clone(),
            })
            .collect(),
        decision_id: decision.decision_id.to_string(),
    }
}

/// Returns the canonical form of one decision: its JSON without locations, equal to the byte
/// across front ends, and whatever the layout of the document: an API server sends in one line, with
/// sorted keys, what a person wrote otherwise.
#[must_use]
pub fn canonical(decision: &Decision) -> SubjectView {
    let mut decision = decision.clone();
    decision.findings.sort_by(|a, b| {
        let key = |f: &Finding| (f.action, f.place.pointer.clone(), f.rule.clone());
        let rest = |f: &Finding| (f.subject.clone(), f.message.clone());
        key(a).cmp(&key(b)).then_with(|| rest(a).cmp(&rest(b)))
    });
    subject(&decision, None)
}

/// Builds the document of a run. `decisions` come with the file of each.
#[must_use]
pub fn decision(
    decisions: &[(&str, &Decision)],
    errors: Vec<ErrorView>,
    (profile, now): (&str, &str),
    configuration: BTreeMap<String, String>,
) -> DecisionDocument {
    let subjects: Vec<SubjectView> =
        decisions.iter().map(|(file, decision)| subject(decision, Some(file))).collect();
    let verdicts = decisions.iter().map(|(_, decision)| decision.verdict);
    let verdict = if errors.is_empty() { overall(verdicts) } else { Verdict::Error };
    DecisionDocument {
        schema: "ambit.decision/v1".to_owned(),
        verdict: verdict.as_str().to_owned(),
        profile: profile.to_owned(),
        now: now.to_owned(),
        findings: subjects.iter().flat_map(|subject| subject.findings.clone()).collect(),
        errors,
        subjects,
        configuration,
    }
}
