//! SARIF 2.1.0 (OASIS standard), for code scanning.

use std::collections::BTreeMap;

use ambit_engine::policy::RuleInfo;
use ambit_engine::report::{DecisionDocument, FindingView, Location};
use serde_json::{Value, json};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Builds the log.
pub(crate) fn render(document: &DecisionDocument, rules: &BTreeMap<String, RuleInfo>) -> Value {
    let mut ids: Vec<&str> = document.findings.iter().map(|f| f.rule.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let descriptors: Vec<Value> = ids.iter().map(|id| descriptor(id, rules)).collect();
    let results: Vec<Value> = document
        .findings
        .iter()
        .map(|finding| result(finding, ids.iter().position(|id| *id == finding.rule)))
        .collect();
    let errors = document.errors.iter().chain(document.subjects.iter().flat_map(|s| &s.errors));
    let notifications: Vec<Value> = errors
        .map(|error| {
            let mut notification = json!({
                "level": "error",
                "descriptor": {"id": error.code},
                "message": {"text": with_help(&error.message, &error.help)},
            });
            if let (Some(location), Some(map)) = (&error.location, notification.as_object_mut()) {
                map.insert("locations".to_owned(), json!([place(location)]));
            }
            notification
        })
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "ambit",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": descriptors,
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": document.verdict != "error",
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    })
}

fn descriptor(id: &str, rules: &BTreeMap<String, RuleInfo>) -> Value {
    let mut descriptor = json!({"id": id});
    if let (Some(rule), Some(map)) = (rules.get(id), descriptor.as_object_mut()) {
        map.insert("shortDescription".to_owned(), json!({"text": rule.title}));
        if !rule.description.is_empty() {
            map.insert("fullDescription".to_owned(), json!({"text": rule.description}));
        }
        let score = match rule.severity.as_str() {
            "critical" => "9.5",
            "high" => "8.0",
            "medium" => "5.5",
            _ => "3.0",
        };
        map.insert(
            "properties".to_owned(),
            json!({"security-severity": score, "tags": ["security"]}),
        );
    }
    descriptor
}

fn result(finding: &FindingView, index: Option<usize>) -> Value {
    let level = match finding.action.as_str() {
        "deny" => "error",
        "warn" => "warning",
        _ => "note",
    };
    let mut result = json!({
        "ruleId": finding.rule,
        "level": level,
        "message": {"text": with_help(&finding.message, &finding.help)},
        "partialFingerprints": {
            "ambit/v1": fingerprint(finding),
        },
    });
    if let Some(map) = result.as_object_mut() {
        if let Some(index) = index {
            map.insert("ruleIndex".to_owned(), json!(index));
        }
        if let Some(location) = &finding.location {
            map.insert("locations".to_owned(), json!([place(location)]));
        }
    }
    result
}

fn with_help(message: &str, help: &str) -> String {
    if help.is_empty() { message.to_owned() } else { format!("{message}\nhelp: {help}") }
}

/// Keeps a finding the same when lines above it move.
fn fingerprint(finding: &FindingView) -> String {
    let text = format!("{}\0{}\0{}", finding.rule, finding.subject, finding.path);
    ambit_engine::digest::Digest::of(text.as_bytes()).to_string()
}

fn place(location: &Location) -> Value {
    let mut physical = json!({"artifactLocation": {"uri": uri(&location.file)}});
    if location.line > 0
        && let Some(map) = physical.as_object_mut()
    {
        map.insert(
            "region".to_owned(),
            json!({"startLine": location.line, "startColumn": location.column.max(1)}),
        );
    }
    json!({"physicalLocation": physical})
}

/// Writes a path as a relative or file URI reference.
fn uri(file: &str) -> String {
    let mut out = String::new();
    if file.starts_with('/') {
        out.push_str("file://");
    }
    for byte in file.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
