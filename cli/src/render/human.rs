//! Decisions for a person at a terminal.

use ambit_engine::decision::{Decision, Finding, Verdict};
use ambit_engine::policy::Action;

use super::snippet::{Head, Message, render};
use super::style::{Style, count, safe};
use crate::source::{Inputs, LoadedWorkload};

fn head(action: Action) -> Head {
    match action {
        Action::Deny => Head::Deny,
        Action::Warn => Head::Warn,
        Action::Audit | Action::Off => Head::Audit,
    }
}

/// Findings of one component that had no evidence to look at, told once.
fn unjudged(decision: &Decision) -> Vec<(String, Vec<&Finding>)> {
    let mut groups: Vec<(String, Vec<&Finding>)> = Vec::new();
    for finding in decision.findings.iter().filter(|finding| finding.unjudged) {
        match groups.iter_mut().find(|(subject, _)| *subject == finding.subject) {
            Some((_, group)) => group.push(finding),
            None => groups.push((finding.subject.clone(), vec![finding])),
        }
    }
    groups
}

/// Renders the findings, errors and verdict of one subject.
pub(crate) fn subject(
    loaded: &LoadedWorkload,
    decision: &Decision,
    inputs: &Inputs,
    style: Style,
    colored: bool,
) -> String {
    let mut text = String::new();
    let source = |finding_span: Option<ambit_engine::document::Span>| {
        let span = finding_span?;
        let file = inputs.texts.get(&loaded.file)?;
        Some((loaded.file.as_str(), file.as_str(), span))
    };
    for error in &decision.errors {
        text.push_str(&render(
            &Message {
                head: Head::Error,
                code: &error.code,
                message: &error.message,
                rule: None,
                help: &error.help,
                source: source(error.place.span),
                file: &loaded.file,
            },
            colored,
        ));
        text.push('\n');
    }
    for finding in decision.findings.iter().filter(|finding| !finding.unjudged) {
        text.push_str(&render(
            &Message {
                head: head(finding.action),
                code: &finding.code,
                message: &finding.message,
                rule: Some(&finding.rule),
                help: &finding.help,
                source: source(finding.place.span),
                file: &loaded.file,
            },
            colored,
        ));
        text.push('\n');
    }
    for (name, group) in unjudged(decision) {
        let rules: Vec<&str> = group.iter().map(|finding| finding.code.as_str()).collect();
        let message = format!(
            "no evidence was looked for, so `{name}` is not judged for {}",
            rules.join(", ")
        );
        let first = group.first().map(|finding| finding.place.span);
        text.push_str(&render(
            &Message {
                head: Head::Warn,
                code: "evidence-not-checked",
                message: &message,
                rule: None,
                help: "signatures and attestations are read from the component's registry",
                source: source(first.flatten()),
                file: &loaded.file,
            },
            colored,
        ));
        text.push('\n');
    }
    text.push_str(&verdict_line(decision, style));
    text
}

fn verdict_line(decision: &Decision, style: Style) -> String {
    let of = |action| decision.with_action(action).filter(|finding| !finding.unjudged).count();
    let mut parts = Vec::new();
    if !decision.errors.is_empty() {
        parts.push(count(decision.errors.len(), "error"));
    }
    for (number, word) in [(of(Action::Deny), "denial"), (of(Action::Warn), "warning")] {
        if number > 0 {
            parts.push(count(number, word));
        }
    }
    let silent = unjudged(decision).len();
    if silent > 0 {
        parts.push(format!("{silent} without evidence"));
    }
    if of(Action::Audit) > 0 {
        parts.push(format!("{} for the record", of(Action::Audit)));
    }
    let verdict = match decision.verdict {
        Verdict::Allow => style.good("allowed"),
        Verdict::Deny => style.bad("denied"),
        Verdict::Error => style.bad("no decision"),
    };
    let name = if decision.name.is_empty() {
        decision.kind.clone()
    } else if decision.kind == "Component" {
        decision.name.clone()
    } else {
        format!("{} {}/{}", decision.kind, decision.namespace, decision.name)
    };
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("{}: {verdict}{parts}\n", style.bold(&safe(&name)))
}
