//! Rego in trust policies: which rule is asked, and what its value means.

use ambit_engine::policy::{
    EvaluationError, PackError, PolicyLimits, check_module, evaluate_module,
};
use serde_json::Value;

/// The rules that a module may answer with: that of policy-controller, that of `cosign
/// verify-attestation --policy`, and ours.
const ENTRYPOINTS: [&str; 3] =
    ["data.sigstore.isCompliant", "data.signature.allow", "data.ambit.trust.allow"];

/// Returns the rule that a module answers with.
pub(super) fn entrypoint(text: &str, limits: &PolicyLimits) -> Result<&'static str, PackError> {
    check_module("policy", text, &ENTRYPOINTS, limits)
}

/// What a module answered; everything but an explicit yes is a no.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// It agrees.
    Yes {
        /// What it wants to be known all the same.
        warnings: Vec<String>,
    },
    /// It disagrees, or there is no answer; the text says which.
    No(String),
}

/// Asks a module about `input`.
pub(super) fn ask(text: &str, input: &Value, limits: &PolicyLimits) -> Answer {
    let entrypoint = match entrypoint(text, limits) {
        Ok(entrypoint) => entrypoint,
        Err(error) => return Answer::No(format!("the module can't be used: {error}")),
    };
    match evaluate_module(text, entrypoint, &input.to_string(), limits) {
        Ok(value) => read(entrypoint, &value),
        Err(EvaluationError::Undefined { .. }) => {
            Answer::No(format!("`{entrypoint}` is undefined"))
        }
        Err(error) => Answer::No(error.to_string()),
    }
}

/// Reads the value: `true`, or, as policy-controller has it, a set of objects of which one says
/// `result: true`.
///
/// Where several objects disagree policy-controller takes the first, in an order that the policy's
/// author doesn't see; here each must agree.
fn read(entrypoint: &str, value: &Value) -> Answer {
    let no = || Answer::No(format!("`{entrypoint}` is {}", short(value)));
    match value {
        Value::Bool(true) => Answer::Yes { warnings: Vec::new() },
        Value::Array(items) if !items.is_empty() && entrypoint.ends_with("isCompliant") => {
            let mut warnings = Vec::new();
            for item in items {
                let text = |key: &str| {
                    let text = item.get(key).and_then(Value::as_str).unwrap_or_default();
                    text.chars().take(400).collect::<String>()
                };
                if item.get("result") != Some(&Value::Bool(true)) {
                    let error = text("error");
                    return if error.is_empty() { no() } else { Answer::No(error) };
                }
                let warning = text("warning");
                if !warning.is_empty() {
                    warnings.push(warning);
                }
            }
            Answer::Yes { warnings }
        }
        Value::Null
        | Value::Bool(false)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => no(),
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(module: &str) -> Answer {
        ask(module, &json!({"predicate": {"level": 2}}), &PolicyLimits::default())
    }

    fn agrees(module: &str) -> bool {
        matches!(answer(module), Answer::Yes { .. })
    }

    #[test]
    fn only_an_explicit_yes_is_a_yes() {
        for yes in [
            "package sigstore\nisCompliant { input.predicate.level == 2 }",
            "package sigstore\nisCompliant[r] { r := {\"result\": true, \"error\": \"\"} }",
            "package signature\nallow if input.predicate.level > 1",
            "package ambit.trust\ndefault allow := false\nallow if input.predicate.level > 1",
        ] {
            assert!(agrees(yes), "{yes}: {:?}", answer(yes));
        }
        for no in [
            "package sigstore\nisCompliant { input.predicate.level == 3 }",
            "package sigstore\ndefault isCompliant = false",
            "package sigstore\nisCompliant = \"true\"",
            "package sigstore\nisCompliant = 1",
            "package sigstore\nisCompliant[r] { false; r := {\"result\": true} }",
            "package sigstore\nisCompliant[r] { r := \"hello\" }",
            "package sigstore\nisCompliant[r] { r := {\"result\": \"true\"} }",
            "package sigstore\nisCompliant[r] { r := {\"result\": true} } { r := {\"result\": false} }",
            "package ambit.trust\nallow[r] { r := {\"result\": true} }",
            "package ambit.trust\nallow if to_number(\"x\") == 1",
            "package other\nallow := true",
            "no rego",
        ] {
            assert!(!agrees(no), "{no}");
        }
    }

    #[test]
    fn what_the_module_says_is_kept() {
        let no =
            "package sigstore\nisCompliant[r] { r := {\"result\": false, \"error\": \"too old\"} }";
        assert_eq!(answer(no), Answer::No("too old".to_owned()));
        let warned =
            "package sigstore\nisCompliant[r] { r := {\"result\": true, \"warning\": \"soon\"} }";
        assert_eq!(answer(warned), Answer::Yes { warnings: vec!["soon".to_owned()] });
    }
}
