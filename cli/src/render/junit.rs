//! JUnit XML: a test suite for each subject, a failing case for each denial, a passing one where
//! nothing denies.

use ambit_engine::report::{DecisionDocument, SubjectView};

use super::style::safe;

/// Renders the report.
pub(crate) fn render(document: &DecisionDocument) -> String {
    let mut text =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ambit\">\n");
    for subject in &document.subjects {
        text.push_str(&suite(subject));
    }
    if !document.errors.is_empty() {
        let count = document.errors.len();
        text.push_str(&format!(
            "  <testsuite name=\"inputs\" tests=\"{count}\" failures=\"0\" errors=\"{count}\">\n"
        ));
        for error in &document.errors {
            text.push_str(&format!(
                "    <testcase classname=\"inputs\" name=\"{}\">\n      <error type=\"{}\" message=\"{}\"/>\n    </testcase>\n",
                escape(&error.subject),
                escape(&error.code),
                escape(&error.message)
            ));
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite(subject: &SubjectView) -> String {
    let name = escape(&format!("{} {}/{}", subject.kind, subject.namespace, subject.name));
    let denied: Vec<_> = subject.findings.iter().filter(|f| f.action == "deny").collect();
    let errors = &subject.errors;
    let tests = denied.len().saturating_add(errors.len()).max(1);
    let mut text = format!(
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{}\" errors=\"{}\">\n",
        denied.len(),
        errors.len()
    );
    for finding in &denied {
        let place = finding
            .location
            .as_ref()
            .map(|at| format!("{}:{}:{}", at.file, at.line, at.column))
            .unwrap_or_default();
        text.push_str(&format!(
            "    <testcase classname=\"{name}\" name=\"{} ({})\">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
            escape(&finding.rule),
            escape(&finding.subject),
            escape(&finding.code),
            escape(&finding.message),
            escape(&format!("{place}\nhelp: {}", finding.help))
        ));
    }
    for error in errors {
        text.push_str(&format!(
            "    <testcase classname=\"{name}\" name=\"{} ({})\">\n      <error type=\"{}\" message=\"{}\"/>\n    </testcase>\n",
            escape(&error.code),
            escape(&error.subject),
            escape(&error.code),
            escape(&error.message)
        ));
    }
    if denied.is_empty() && errors.is_empty() {
        text.push_str(&format!("    <testcase classname=\"{name}\" name=\"allowed\"/>\n"));
    }
    let warnings: Vec<String> = subject
        .findings
        .iter()
        .filter(|finding| finding.action == "warn")
        .map(|finding| format!("warn[{}]: {}", finding.code, finding.message))
        .collect();
    if !warnings.is_empty() {
        text.push_str(&format!("    <system-out>{}</system-out>\n", escape(&warnings.join("\n"))));
    }
    text.push_str("  </testsuite>\n");
    text
}

/// Escapes text for XML 1.0, which has no place for most control characters.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in safe(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
