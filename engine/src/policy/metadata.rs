//! `# METADATA` annotations, as OPA defines them: a YAML comment right above a rule
//! (<https://www.openpolicyagent.org/docs/policy-language#metadata>).

use super::pack::PackError;
use crate::document::{self, DocumentLimits, Format, Node};

/// What a rule says of itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RuleInfo {
    /// The pack's name.
    pub pack: String,
    /// The id, `image/digest-pin`.
    pub id: String,
    /// What it demands.
    pub title: String,
    /// Why.
    pub description: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// Whether it reads signatures or attestations.
    pub evidence: bool,
    /// Whether it compares with what was known before.
    pub previous: bool,
    /// The parameter without which it is off.
    pub parameter: Option<String>,
    /// The file and line of its first definition.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl RuleInfo {
    /// Returns the full name, `baseline/image/digest-pin`.
    #[must_use]
    pub fn full(&self) -> String {
        format!("{}/{}", self.pack, self.id)
    }

    /// Returns the code of its findings, `image-digest-pin`.
    #[must_use]
    pub fn code(&self) -> String {
        self.id.replace('/', "-")
    }
}

/// Reads the annotations of one file that have an id.
pub(super) fn read(pack: &str, file: &str, text: &str) -> Result<Vec<RuleInfo>, PackError> {
    let mut rules = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((start, line)) = lines.next() {
        if line.trim_end() != "# METADATA" {
            continue;
        }
        let mut yaml = String::new();
        let mut last = start;
        while let Some((at, line)) = lines.next_if(|(_, line)| line.starts_with('#')) {
            let body = line.strip_prefix("# ").or_else(|| line.strip_prefix('#')).unwrap_or("");
            yaml.push_str(body);
            yaml.push('\n');
            last = at;
        }
        let error = |message: String| PackError::Metadata {
            file: file.to_owned(),
            line: line_number(start),
            message,
        };
        let documents = document::parse(yaml.as_bytes(), Format::Yaml, &DocumentLimits::default())
            .map_err(|cause| error(cause.to_string()))?;
        let Some(root) = documents.first().map(document::Document::root) else { continue };
        let text = |node: &Node, key: &str| {
            node.get(key).and_then(Node::as_str).unwrap_or_default().to_owned()
        };
        let Some(custom) = root.get("custom") else { continue };
        let id = text(custom, "id");
        if id.is_empty() {
            continue;
        }
        let severity = text(custom, "severity");
        if !["critical", "high", "medium", "low"].contains(&severity.as_str()) {
            return Err(error(format!("`{severity}` is no severity")));
        }
        rules.push(RuleInfo {
            pack: pack.to_owned(),
            title: text(root, "title"),
            description: text(root, "description"),
            severity,
            evidence: custom.get("evidence").and_then(Node::as_bool).unwrap_or(false),
            previous: custom.get("previous").and_then(Node::as_bool).unwrap_or(false),
            parameter: custom.get("parameter").and_then(Node::as_str).map(str::to_owned),
            file: file.to_owned(),
            line: line_number(last.saturating_add(1)),
            id,
        });
    }
    Ok(rules)
}

fn line_number(index: usize) -> u32 {
    u32::try_from(index.saturating_add(1)).unwrap_or(u32::MAX)
}
