//! Annotations of GitHub Actions
//! (<https://docs.github.com/actions/reference/workflow-commands-for-github-actions>).

use ambit_engine::report::{DecisionDocument, ErrorView, Location};

use super::style::safe;

/// Renders one workflow command for each finding and error.
pub(crate) fn render(document: &DecisionDocument) -> String {
    let mut text = String::new();
    let errors = document.errors.iter().chain(document.subjects.iter().flat_map(|s| &s.errors));
    for ErrorView { code, message, help, location, .. } in errors {
        text.push_str(&command("error", code, message, help, location.as_ref()));
    }
    for finding in &document.findings {
        let level = match finding.action.as_str() {
            "deny" => "error",
            "warn" => "warning",
            _ => "notice",
        };
        let location = finding.location.as_ref();
        text.push_str(&command(level, &finding.code, &finding.message, &finding.help, location));
    }
    text
}

fn command(
    level: &str,
    code: &str,
    message: &str,
    help: &str,
    location: Option<&Location>,
) -> String {
    let mut properties = Vec::new();
    if let Some(location) = location {
        properties.push(format!("file={}", property(&location.file)));
        if location.line > 0 {
            properties.push(format!("line={},col={}", location.line, location.column));
        }
    }
    properties.push(format!("title={}", property(code)));
    let help = if help.is_empty() { String::new() } else { format!("\nhelp: {help}") };
    format!("::{level} {}::{}\n", properties.join(","), data(&format!("{message}{help}")))
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    safe(text).replace('%', "%25").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
