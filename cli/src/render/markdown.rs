//! Decisions as Markdown, for a comment on a pull request.

use ambit_engine::report::{DecisionDocument, SubjectView};

use super::reach::escape;

/// Renders the decisions.
pub(crate) fn render(document: &DecisionDocument) -> String {
    let mut text = format!("## ambit: {}\n\n", word(&document.verdict));
    for error in &document.errors {
        text.push_str(&format!("- **error** `{}`: {}\n", error.code, escape(&error.message)));
    }
    if !document.errors.is_empty() {
        text.push('\n');
    }
    for subject in &document.subjects {
        text.push_str(&one(subject));
    }
    text
}

fn word(verdict: &str) -> &str {
    match verdict {
        "allow" => "allowed",
        "deny" => "denied",
        _ => "no decision",
    }
}

fn one(subject: &SubjectView) -> String {
    let name = escape(&format!("{} {}/{}", subject.kind, subject.namespace, subject.name));
    let mut text = format!("### {name}: {}\n\n", word(&subject.verdict));
    for error in &subject.errors {
        text.push_str(&format!("- **error** `{}`: {}\n", error.code, escape(&error.message)));
    }
    if !subject.findings.is_empty() {
        if !subject.errors.is_empty() {
            text.push('\n');
        }
        text.push_str("| | finding | where | what to do |\n| --- | --- | --- | --- |\n");
        for finding in &subject.findings {
            let place =
                finding
                    .location
                    .as_ref()
                    .map(|at| {
                        if at.line > 0 {
                            format!("{}:{}", at.file, at.line)
                        } else {
                            at.file.clone()
                        }
                    })
                    .unwrap_or_default();
            text.push_str(&format!(
                "| {} | {} (`{}`) | {} | {} |\n",
                finding.action,
                escape(&finding.message),
                finding.code,
                escape(&place),
                escape(&finding.help)
            ));
        }
    }
    text.push('\n');
    text
}
