//! Evaluation: prepared once, cloned for each input, bounded in time, stack and findings.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value};

use super::pack::{Pack, PackError};
use super::{Action, Parameters, PolicyLimits, builtins};

/// The stack of the evaluation thread; the evaluator recurses on the nesting of policies.
const STACK_BYTES: usize = 64 << 20;

/// Steps of the evaluator between two looks at the timer.
pub(super) const CHECK_INTERVAL: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);

/// Why there is no answer from the policies.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The rules took longer than the limit.
    #[error("policy evaluation took longer than {} ms", limit.as_millis())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// A rule failed; the text is the Rego engine's, with line and caret.
    #[error("`{entrypoint}` failed: {message}")]
    Rule {
        /// The rule.
        entrypoint: String,
        /// What went wrong.
        message: String,
    },
    /// A rule has no value, which is neither "no finding" nor a finding.
    #[error("`{entrypoint}` is undefined")]
    Undefined {
        /// The rule.
        entrypoint: String,
    },
    /// A finding has another form than a string or an object with `msg`.
    #[error("`{entrypoint}` gave a finding of an unknown form: {found}")]
    Shape {
        /// The rule.
        entrypoint: String,
        /// The finding, shortened.
        found: String,
    },
    /// There are more findings than the limit.
    #[error("more than {limit} findings")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The evaluator panicked.
    #[error("the policy evaluator broke down: {message}")]
    Panic {
        /// What it said.
        message: String,
    },
    /// There are no rules to ask.
    #[error("no policy pack is loaded")]
    NoRules,
}

impl EvaluationError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => "policy-timeout",
            Self::Rule { .. } => "policy-rule-error",
            Self::Undefined { .. } => "policy-undefined",
            Self::Shape { .. } => "policy-finding-shape",
            Self::TooMany { .. } => "policy-too-many-findings",
            Self::Panic { .. } => "policy-panic",
            Self::NoRules => "policy-no-rules",
        }
    }
}

/// A finding as a rule gave it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RawFinding {
    /// The pack's name.
    pub pack: String,
    /// The rule's id, `image/digest-pin`; the head's name where the finding has no code.
    pub rule: String,
    /// The code, `image-digest-pin`.
    pub code: String,
    /// What was found.
    pub message: String,
    /// The component or workload; may be empty.
    pub subject: String,
    /// JSON pointer of the place; may be empty.
    pub path: String,
    /// What to do; may be empty.
    pub help: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// What the head's name asks for: `deny` and `violation` deny, `warn` warns, `audit` records.
    pub head: Action,
}

/// How one test rule ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TestOutcome {
    /// The rule's path, `data.ambit.baseline_test.test_pinned_is_allowed`.
    pub name: String,
    /// Why it failed; `None` if it passed.
    pub failure: Option<String>,
}

/// Packs, prepared for evaluation.
#[derive(Clone, Debug)]
pub struct PolicySet {
    packs: Vec<Pack>,
    rules: BTreeMap<String, super::RuleInfo>,
    engine: Engine,
    limits: PolicyLimits,
}

impl PolicySet {
    /// Prepares packs together with their parameters.
    ///
    /// # Errors
    ///
    /// [`PackError`] if a parameter doesn't fit or a module can't be added.
    pub fn prepare(
        packs: Vec<Pack>,
        parameters: &Parameters,
        limits: PolicyLimits,
    ) -> Result<Self, PackError> {
        let mut engine = Engine::new();
        engine.set_strict_builtin_errors(true);
        let form = |message: String| PackError::Form { pack: "policies".to_owned(), message };
        builtins::install(&mut engine).map_err(form)?;
        let mut params = serde_json::Map::new();
        for pack in &packs {
            for (name, text) in &pack.modules {
                super::nesting::check(text)
                    .map_err(|message| PackError::Syntax { file: name.clone(), message })?;
                engine.add_policy(name.clone(), text.clone()).map_err(|error| {
                    PackError::Syntax { file: name.clone(), message: error.to_string() }
                })?;
            }
            let values = pack.with_parameters(parameters.get(&pack.name))?;
            params.insert(pack.name.clone(), values.into_iter().collect());
        }
        if let Some(name) = parameters.keys().find(|name| packs.iter().all(|p| p.name != **name)) {
            return Err(PackError::Parameter {
                pack: name.clone(),
                name: "*".to_owned(),
                message: "no pack of this name is loaded".to_owned(),
            });
        }
        let data = serde_json::json!({ "params": params }).to_string();
        engine.add_data_json(&data).map_err(|error| form(error.to_string()))?;
        let rules = packs.iter().flat_map(Pack::rules).cloned().map(|rule| (rule.full(), rule));
        let rules = rules.collect();
        let mut set = Self { packs, rules, engine, limits };
        set.analyse();
        Ok(set)
    }

    /// Has the modules analysed once, so that no evaluation does it again: the engine analyses them
    /// before its first evaluation, and its copies keep the result. What goes wrong here goes wrong
    /// in every evaluation too, and is reported there.
    fn analyse(&mut self) {
        let Some(entrypoint) = self.packs.iter().find_map(|pack| pack.entrypoints.first()) else {
            return;
        };
        let (entrypoint, limit) = (entrypoint.clone(), self.limits.max_time);
        let mut engine = self.engine.clone();
        let analysed = on_big_stack(|| {
            engine.set_execution_timer_config(ExecutionTimerConfig {
                limit,
                check_interval: CHECK_INTERVAL,
            });
            let _ = engine.set_input_json("{}").and_then(|()| engine.eval_rule(entrypoint));
            Ok(engine)
        });
        if let Ok(engine) = analysed {
            self.engine = engine;
        }
    }

    /// Returns the packs.
    #[must_use]
    pub fn packs(&self) -> &[Pack] {
        &self.packs
    }

    /// Asks every rule of every pack about `input`, a JSON document.
    ///
    /// Findings are sorted and without repeats. The evaluation runs on a thread of its own, which
    /// ends before this returns.
    ///
    /// # Errors
    ///
    /// [`EvaluationError`], whatever goes wrong; there are no findings then.
    pub fn evaluate(&self, input: &str) -> Result<Vec<RawFinding>, EvaluationError> {
        self.evaluate_packs(input, |_| true)
    }

    /// Asks the rules of the packs that `joins` chooses by name, as [`PolicySet::evaluate`] does.
    ///
    /// # Errors
    ///
    /// [`EvaluationError`]; [`EvaluationError::NoRules`] if no pack is chosen.
    pub fn evaluate_packs(
        &self,
        input: &str,
        joins: impl Fn(&str) -> bool,
    ) -> Result<Vec<RawFinding>, EvaluationError> {
        let packs: Vec<&Pack> = self.packs.iter().filter(|pack| joins(&pack.name)).collect();
        if packs.is_empty() {
            return Err(EvaluationError::NoRules);
        }
        on_big_stack(|| self.evaluate_here(input, &packs))
    }

    fn evaluate_here(
        &self,
        input: &str,
        packs: &[&Pack],
    ) -> Result<Vec<RawFinding>, EvaluationError> {
        let mut engine = self.engine.clone();
        engine.set_input_json(input).map_err(|error| EvaluationError::Rule {
            entrypoint: "input".to_owned(),
            message: error.to_string(),
        })?;
        let mut findings = BTreeSet::new();
        for pack in packs {
            for entrypoint in &pack.entrypoints {
                // The timer counts for one call, so each gets what the whole may take.
                engine.set_execution_timer_config(ExecutionTimerConfig {
                    limit: self.limits.max_time,
                    check_interval: CHECK_INTERVAL,
                });
                let value = engine.eval_rule(entrypoint.clone()).map_err(|error| {
                    let message = error.to_string();
                    if message.contains("time limit") {
                        EvaluationError::Timeout { limit: self.limits.max_time }
                    } else {
                        EvaluationError::Rule { entrypoint: entrypoint.clone(), message }
                    }
                })?;
                self.collect(pack, entrypoint, &value, &mut findings)?;
            }
        }
        Ok(findings.into_iter().collect())
    }

    fn collect(
        &self,
        pack: &Pack,
        entrypoint: &str,
        value: &Value,
        findings: &mut BTreeSet<RawFinding>,
    ) -> Result<(), EvaluationError> {
        let undefined = || EvaluationError::Undefined { entrypoint: entrypoint.to_owned() };
        if *value == Value::Undefined {
            return Err(undefined());
        }
        let text = value.to_string();
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|_| EvaluationError::Shape {
                entrypoint: entrypoint.to_owned(),
                found: text.chars().take(200).collect(),
            })?;
        let items = match json {
            serde_json::Value::Array(items) => items,
            serde_json::Value::Object(items) => items.into_iter().map(|(_, item)| item).collect(),
            serde_json::Value::Bool(false) => Vec::new(),
            other @ (serde_json::Value::Null
            | serde_json::Value::Bool(true)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_)) => vec![other],
        };
        for item in items {
            if findings.len() >= self.limits.max_findings {
                return Err(EvaluationError::TooMany { limit: self.limits.max_findings });
            }
            findings.insert(finding(pack, entrypoint, &item).ok_or_else(|| {
                EvaluationError::Shape {
                    entrypoint: entrypoint.to_owned(),
                    found: item.to_string().chars().take(200).collect(),
                }
            })?);
        }
        Ok(())
    }

    /// Runs the rules named `test_…` in the given modules, which see the packs and may replace
    /// their input and data with `with`.
    ///
    /// # Errors
    ///
    /// [`EvaluationError::Rule`] if a module can't be added.
    pub fn run_tests(
        &self,
        modules: &[(String, String)],
    ) -> Result<Vec<TestOutcome>, EvaluationError> {
        on_big_stack(|| {
            let mut engine = self.engine.clone();
            let mut names = Vec::new();
            for (file, text) in modules {
                let package = engine.add_policy(file.clone(), text.clone()).map_err(|error| {
                    EvaluationError::Rule { entrypoint: file.clone(), message: error.to_string() }
                })?;
                let tests = text.lines().filter(|line| line.starts_with("test_"));
                names.extend(tests.filter_map(|line| {
                    let name = line.split([' ', '(', ':']).next()?;
                    Some(format!("{package}.{name}"))
                }));
            }
            names.sort();
            names.dedup();
            let outcomes = names.into_iter().map(|name| {
                let failure = match engine.eval_rule(name.clone()) {
                    Ok(value) if value == Value::from(true) => None,
                    Ok(value) => Some(format!("it is {value}, not true")),
                    Err(error) => Some(error.to_string()),
                };
                TestOutcome { name, failure }
            });
            Ok(outcomes.collect())
        })
    }

    /// Returns what the rules' METADATA say, by full name, `baseline/image/digest-pin`.
    #[must_use]
    pub fn rules(&self) -> &BTreeMap<String, super::RuleInfo> {
        &self.rules
    }
}

/// Runs `work` on a thread with a stack that the evaluator can't overflow, and turns a panic into
/// an error.
pub(super) fn on_big_stack<T: Send>(
    work: impl FnOnce() -> Result<T, EvaluationError> + Send,
) -> Result<T, EvaluationError> {
    let panic = |message: String| EvaluationError::Panic { message };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("ambit-policy".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || catch_unwind(AssertUnwindSafe(work)));
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(Ok(result))) => result,
            Ok(Ok(Err(payload)) | Err(payload)) => {
                let text = payload
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| payload.downcast_ref::<String>().cloned());
                Err(panic(text.unwrap_or_else(|| "no message".to_owned())))
            }
            Err(error) => Err(panic(error.to_string())),
        }
    })
}

fn finding(pack: &Pack, entrypoint: &str, item: &serde_json::Value) -> Option<RawFinding> {
    let head = entrypoint.rsplit('.').next().unwrap_or_default();
    let action = match head.split('_').next() {
        Some("warn") => Action::Warn,
        Some("audit") => Action::Audit,
        _ => Action::Deny,
    };
    let bare = |message: &str| RawFinding {
        pack: pack.name.clone(),
        rule: head.to_owned(),
        code: format!("{}-{head}", pack.name).replace(['_', '/'], "-"),
        message: message.to_owned(),
        subject: String::new(),
        path: String::new(),
        help: String::new(),
        severity: "medium".to_owned(),
        head: action,
    };
    if let Some(message) = item.as_str() {
        return Some(bare(message));
    }
    let text = |key: &str| item.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    let message = item.get("msg").and_then(serde_json::Value::as_str)?;
    let mut found = bare(message);
    for (field, key) in
        [(&mut found.subject, "subject"), (&mut found.path, "path"), (&mut found.help, "help")]
    {
        text(key).clone_into(field);
    }
    let code = text("code");
    if !code.is_empty() {
        code.clone_into(&mut found.code);
        let rule = pack.rules.iter().find(|rule| rule.code() == code);
        found.rule = rule.map_or_else(|| code.to_owned(), |rule| rule.id.clone());
        if let Some(rule) = rule {
            found.severity.clone_from(&rule.severity);
        }
    }
    if ["critical", "high", "medium", "low"].contains(&text("severity")) {
        text("severity").clone_into(&mut found.severity);
    }
    Some(found)
}
