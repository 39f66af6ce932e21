//! `policy`: Rego over what was verified.

use ambit_engine::document::Fields;
use ambit_engine::policy::{PackError, PolicyLimits};

use super::{Reader, shown};
use crate::policy::rego;

impl Reader<'_> {
    /// Reads `policy`, and checks that the module can be evaluated.
    pub(super) fn rego(&mut self, fields: &mut Fields<'_>) -> Option<String> {
        let mut policy = fields.mapping("policy", &mut self.fields)?;
        let kind = policy.required_string("type", &mut self.fields);
        self.refuse(
            &mut policy,
            &["remote", "configMapRef"],
            "is not fetched: what decides stands in the file",
            "write the module under `data`",
        );
        for key in ["fetchConfigFile", "includeSpec", "includeObjectMeta", "includeTypeMeta"] {
            let set = policy.bool(key, &mut self.fields).filter(|set| *set.value());
            if let Some(set) = set {
                let message = format!("`{key}` asks for what isn't known here");
                let help =
                    "delete it; rules over workloads are policy packs (`ambit check --policy`)";
                self.unsupported(set.span(), set.pointer(), message, help);
            }
        }
        let rego = match &kind {
            Some(kind) if kind.as_str() == "rego" => true,
            Some(kind) if kind.as_str() == "cue" => {
                let help = "write it in Rego: `package sigstore` with `isCompliant`";
                let message = "policies in CUE are not evaluated".to_owned();
                self.unsupported(kind.span(), kind.pointer(), message, help);
                false
            }
            Some(kind) => {
                let message = format!("`{}` is no type of policy", shown(kind.as_str()));
                self.invalid(kind.span(), kind.pointer(), message, "write `rego`");
                false
            }
            None => false,
        };
        // Where the text should come from elsewhere, that is what is wrong.
        let elsewhere = policy.entry("remote").is_some() || policy.entry("configMapRef").is_some();
        let data = if rego && !elsewhere {
            policy.required_string("data", &mut self.fields)
        } else {
            policy.ignore(&["data"]);
            None
        };
        policy.finish(&mut self.fields);
        let data = data?;
        match rego::entrypoint(data.as_str(), &PolicyLimits::default()) {
            Ok(_) => Some(data.as_str().to_owned()),
            Err(error) => {
                let (message, help) = explained(&error);
                self.invalid(data.span(), data.pointer(), message, &help);
                None
            }
        }
    }
}

/// Returns what is wrong with a module and what to do.
fn explained(error: &PackError) -> (String, String) {
    if let PackError::NoRules { .. } = error {
        let help = "write `package sigstore` with the rule `isCompliant`, or `package ambit.trust` with `allow`";
        return ("the module has none of the rules that are asked".to_owned(), help.to_owned());
    }
    let message = if let PackError::Syntax { message, .. } = error {
        format!("the module doesn't parse: {}", last_line(message))
    } else {
        format!("the module can't be used: {error}")
    };
    (message, error.help().unwrap_or_else(|| "correct the module".to_owned()))
}

/// Returns the Rego engine's message on one line: its last, which follows place and caret.
fn last_line(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    shown(lines.last().copied().unwrap_or_default().trim_start_matches("error: "))
}
