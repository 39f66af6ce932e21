//! Single modules that answer one question, as trust policies hold them.
//!
//! They run under the same bounds as packs: the same builtins, the same timer, the same thread.
//! Text that is no Rego v1 is read as Rego v0, since the policies that come from elsewhere are
//! written so; a text that is both means the same in both.

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value};

use super::callgraph::{self, Syntax};
use super::evaluate::{CHECK_INTERVAL, on_big_stack};
use super::{EvaluationError, PackError, PolicyLimits, builtins};

/// Parses a module, refuses recursion, and returns the first of `entrypoints` that it defines.
///
/// An entrypoint is a rule's full path, `data.example.allow`.
///
/// # Errors
///
/// [`PackError::Form`] for a text over the limit, [`PackError::Syntax`], [`PackError::Recursion`],
/// and [`PackError::NoRules`] if it defines none of `entrypoints`.
pub fn check_module<'e>(
    name: &str,
    text: &str,
    entrypoints: &[&'e str],
    limits: &PolicyLimits,
) -> Result<&'e str, PackError> {
    bounded(name, text, limits)?;
    let work = || Ok(rules(name, text).map(|(_, rules)| rules));
    let broken = |error: EvaluationError| PackError::Form {
        pack: name.to_owned(),
        message: error.to_string(),
    };
    let paths = on_big_stack(work).map_err(broken)??;
    let found = entrypoints.iter().find(|entrypoint| paths.contains(**entrypoint));
    found.copied().ok_or_else(|| PackError::NoRules { pack: name.to_owned() })
}

/// Evaluates one rule of a module over `input`, a JSON document, and returns its value.
///
/// # Errors
///
/// [`EvaluationError`]: the module can't be used, the rule fails, takes too long or is undefined.
pub fn evaluate_module(
    text: &str,
    entrypoint: &str,
    input: &str,
    limits: &PolicyLimits,
) -> Result<serde_json::Value, EvaluationError> {
    let failed =
        |message: String| EvaluationError::Rule { entrypoint: entrypoint.to_owned(), message };
    bounded(entrypoint, text, limits).map_err(|error| failed(error.to_string()))?;
    on_big_stack(|| {
        let (syntax, _) = rules(entrypoint, text).map_err(|error| failed(error.to_string()))?;
        let mut engine = Engine::new();
        engine.set_rego_v0(syntax == Syntax::V0);
        engine.set_strict_builtin_errors(true);
        builtins::install(&mut engine).map_err(failed)?;
        super::nesting::check(text).map_err(failed)?;
        engine
            .add_policy(entrypoint.to_owned(), text.to_owned())
            .map_err(|error| failed(error.to_string()))?;
        engine.set_input_json(input).map_err(|error| failed(error.to_string()))?;
        engine.set_execution_timer_config(ExecutionTimerConfig {
            limit: limits.max_time,
            check_interval: CHECK_INTERVAL,
        });
        let value = engine.eval_rule(entrypoint.to_owned()).map_err(|error| {
            let message = error.to_string();
            if message.contains("time limit") {
                EvaluationError::Timeout { limit: limits.max_time }
            } else {
                failed(message)
            }
        })?;
        if value == Value::Undefined {
            return Err(EvaluationError::Undefined { entrypoint: entrypoint.to_owned() });
        }
        let text = value.to_string();
        serde_json::from_str(&text).map_err(|_| EvaluationError::Shape {
            entrypoint: entrypoint.to_owned(),
            found: text.chars().take(200).collect(),
        })
    })
}

fn bounded(name: &str, text: &str, limits: &PolicyLimits) -> Result<(), PackError> {
    if text.len() > limits.max_file_bytes {
        let message =
            format!("{} bytes are over the limit of {}", text.len(), limits.max_file_bytes);
        return Err(PackError::Form { pack: name.to_owned(), message });
    }
    Ok(())
}

type Paths = std::collections::BTreeSet<String>;

/// Returns the syntax that the text is in and the paths of its rules. The error is that of the
/// newer syntax if neither fits.
fn rules(name: &str, text: &str) -> Result<(Syntax, Paths), PackError> {
    let modules = [(name.to_owned(), text.to_owned())];
    match callgraph::paths(name, &modules, Syntax::V1) {
        Err(PackError::Syntax { file, message }) => {
            match callgraph::paths(name, &modules, Syntax::V0) {
                Err(PackError::Syntax { .. }) => Err(PackError::Syntax { file, message }),
                other => other.map(|paths| (Syntax::V0, paths)),
            }
        }
        other => other.map(|paths| (Syntax::V1, paths)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ENTRY: &str = "data.sigstore.isCompliant";

    fn evaluate(text: &str, input: &str) -> Result<serde_json::Value, EvaluationError> {
        evaluate_module(text, ENTRY, input, &PolicyLimits::default())
    }

    #[test]
    fn both_syntaxes_are_read() {
        let newer = "package sigstore\nisCompliant if input.a == 1\n";
        let older = "package sigstore\nisCompliant { input.a == 1 }\n";
        let objects =
            "package sigstore\nisCompliant[r] { x = (input.a == 1)\n r := {\"result\": x} }\n";
        for text in [newer, older] {
            assert_eq!(evaluate(text, r#"{"a": 1}"#), Ok(true.into()), "{text}");
            let undefined = evaluate(text, r#"{"a": 2}"#);
            assert!(matches!(undefined, Err(EvaluationError::Undefined { .. })), "{undefined:?}");
        }
        assert_eq!(evaluate(objects, r#"{"a": 2}"#), Ok(serde_json::json!([{"result": false}])));
    }

    #[test]
    fn entrypoint_must_be_defined() {
        let limits = PolicyLimits::default();
        let check = |text: &str| check_module("m", text, &["data.a.allow", ENTRY], &limits);
        assert_eq!(check("package sigstore\ndefault isCompliant = false\n"), Ok(ENTRY));
        let other = check("package sigstore\nallow { true }\n");
        assert_eq!(other, Err(PackError::NoRules { pack: "m".to_owned() }));
        assert!(matches!(check("package a\nallow = = 1"), Err(PackError::Syntax { .. })));
        let circle = "package a\nf(x) { f(x) }\nallow { f(1) }\n";
        assert!(matches!(check(circle), Err(PackError::Recursion { .. })));
        let long = format!("package a\n#{}\n", "x".repeat(limits.max_file_bytes));
        assert!(matches!(check(&long), Err(PackError::Form { .. })));
    }

    #[test]
    fn modules_have_the_bounds_of_packs() {
        let limits = PolicyLimits { max_time: Duration::from_millis(20), ..Default::default() };
        let slow = "package sigstore\nisCompliant if {\n  some a in numbers.range(1, 60000)\n  some b in numbers.range(1, 60000)\n  a + b == 0\n}\n";
        let outcome = evaluate_module(slow, ENTRY, "{}", &limits);
        assert!(matches!(outcome, Err(EvaluationError::Timeout { .. })), "{outcome:?}");
        let clock = "package sigstore\nisCompliant if time.now_ns() > 0\n";
        assert!(matches!(evaluate(clock, "{}"), Err(EvaluationError::Rule { .. })));
        let network = "package sigstore\nisCompliant if http.send({\"url\": \"http://h/\"})\n";
        assert!(evaluate(network, "{}").is_err());
        let circle = "package sigstore\nf(x) if f(x)\nisCompliant if f(1)\n";
        assert!(matches!(evaluate(circle, "{}"), Err(EvaluationError::Rule { .. })));
    }
}
