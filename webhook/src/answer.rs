//! From a decision to what an API server takes for an answer.
//!
//! # Invariants
//!
//! - A verdict of error denies, but where the operator only watches (`audit`).
//! - Everything denied has a code, a reason, causes with fields, and one text that says what to do.
//! - A warning is at most [`MAX_WARNING`] characters without control characters, and all of them
//!   together stay below what an API server passes on whole.

use std::collections::BTreeMap;

use ambit_engine::config::AdmissionMode;
use ambit_engine::decision::{Decision, DecisionError, Finding, Verdict};
use ambit_engine::policy::Action;

use crate::wire::{Answer, Cause, Details, Request, Status, WireError};

/// The longest warning, in characters (the API conventions of Kubernetes ask for 120).
pub const MAX_WARNING: usize = 120;

/// The most warnings. Once all pass 4096 characters an API server cuts each.
pub const MAX_WARNINGS: usize = 30;

/// The audit annotation with what a denial would have said.
pub(crate) const MESSAGE: &str = "message";

/// The most causes that are listed.
const MAX_CAUSES: usize = 64;

/// The most causes that the message tells.
const MAX_TOLD: usize = 8;

/// The longest message, in characters.
const MAX_MESSAGE: usize = 8192;

/// The longest value of an audit annotation, in characters.
const MAX_ANNOTATION: usize = 2048;

/// How a decision becomes an answer.
#[derive(Clone, Debug)]
pub struct Manner<'a> {
    /// What a denial leads to.
    pub mode: AdmissionMode,
    /// How long to wait before trying again, where a source gave no answer for now.
    pub retry_after_seconds: Option<u32>,
    /// What the decision was made by, as the digest over all files.
    pub configuration: &'a str,
}

/// Answers that there is nothing to judge.
#[must_use]
pub fn pass(reason: &str) -> Answer {
    Answer {
        annotations: BTreeMap::from([("skipped".to_owned(), annotation(reason))]),
        ..Answer::default()
    }
}

/// Refuses a review that can't be read.
#[must_use]
pub fn malformed(error: &WireError) -> Answer {
    refused(400, "BadRequest", error.code(), &error.message, "", "")
}

/// Refuses an object that can't be judged as it is.
#[must_use]
pub fn unreadable(request: &Request, code: &str, message: &str, help: &str, field: &str) -> Answer {
    about(refused(400, "BadRequest", code, message, help, field), request)
}

/// Refuses for now.
#[must_use]
pub fn later(request: &Request, code: &str, message: &str, seconds: u32) -> Answer {
    let mut answer =
        about(refused(429, "TooManyRequests", code, message, "try again", ""), request);
    if let Some(status) = &mut answer.denied {
        status.details.retry_after_seconds = Some(seconds);
    }
    answer
}

fn refused(
    code: u16,
    reason: &'static str,
    word: &str,
    message: &str,
    help: &str,
    field: &str,
) -> Answer {
    // Errors of readers repeat what they read.
    let told = clean(&with_help(message, help), MAX_MESSAGE);
    let cause = Cause { reason: word.to_owned(), message: told.clone(), field: field.to_owned() };
    let message = clean(&format!("[{word}] {told}"), MAX_MESSAGE);
    let details = Details { causes: vec![cause], ..Details::default() };
    Answer {
        denied: Some(Status { code, reason, message, details }),
        annotations: BTreeMap::from([
            ("verdict".to_owned(), "error".to_owned()),
            ("codes".to_owned(), word.to_owned()),
        ]),
        ..Answer::default()
    }
}

fn about(mut answer: Answer, request: &Request) -> Answer {
    if let Some(status) = &mut answer.denied {
        status.details.name.clone_from(&request.name);
        status.details.group.clone_from(&request.kind.group);
        status.details.kind.clone_from(&request.kind.kind);
    }
    answer
}

/// Lets an answer through as those are that only watch, with what it would have been on record.
pub(crate) fn watched(answer: &mut Answer) {
    if let Some(status) = answer.denied.take() {
        let message = annotation(&status.message);
        answer.annotations.insert(MESSAGE.to_owned(), message);
    }
    answer.warnings.clear();
}

/// Answers with a decision.
#[must_use]
pub fn decided(decision: &Decision, request: &Request, manner: &Manner<'_>) -> Answer {
    let denying = || decision.with_action(Action::Deny);
    let mut warnings: Vec<String> = Vec::new();
    let stands = match (decision.verdict, manner.mode) {
        (Verdict::Allow, _) => false,
        (Verdict::Deny, AdmissionMode::Warn) => {
            warnings.extend(denying().map(|finding| warning("would deny", finding)));
            false
        }
        (Verdict::Deny, AdmissionMode::Enforce | AdmissionMode::Audit) | (Verdict::Error, _) => {
            true
        }
    };
    warnings.extend(decision.with_action(Action::Warn).map(|finding| warning("warn", finding)));
    let mut answer = Answer {
        denied: stands.then(|| status(decision, request, manner)),
        warnings: bounded(warnings),
        annotations: annotations(decision, manner),
        patch: Vec::new(),
    };
    // Nobody who is only watched is told anything.
    if manner.mode == AdmissionMode::Audit {
        watched(&mut answer);
    }
    answer
}

fn status(decision: &Decision, request: &Request, manner: &Manner<'_>) -> Status {
    let denying: Vec<&Finding> = decision.with_action(Action::Deny).collect();
    // What is denied stays denied when the source answers.
    let retry = manner.retry_after_seconds.filter(|_| denying.is_empty());
    let (code, reason) = match retry {
        Some(_) => (429, "TooManyRequests"),
        None => (403, "Forbidden"),
    };
    let errors = decision.errors.iter().map(cause_of_error);
    let mut causes: Vec<Cause> =
        errors.chain(denying.iter().map(|f| cause_of_finding(f))).collect();
    let total = causes.len();
    let name = if decision.name.is_empty() { "(unnamed)" } else { &decision.name };
    let what = format!("{} `{}/{name}`", decision.kind, decision.namespace);
    let what = match decision.verdict {
        Verdict::Error => format!("{what} can't be judged, so it is denied"),
        Verdict::Allow | Verdict::Deny => format!("{what} is denied"),
    };
    let mut lines = vec![what];
    for cause in causes.iter().take(MAX_TOLD) {
        let field =
            if cause.field.is_empty() { String::new() } else { format!(" ({})", cause.field) };
        lines.push(format!("[{}]{field} {}", cause.reason, cause.message));
    }
    if total > MAX_TOLD {
        let more = total.saturating_sub(MAX_TOLD);
        lines.push(format!("and {more} more; `ambit check` on the same object tells them all"));
    }
    causes.truncate(MAX_CAUSES);
    let details = Details {
        name: request.name.clone(),
        group: request.kind.group.clone(),
        kind: request.kind.kind.clone(),
        causes,
        retry_after_seconds: retry,
    };
    let message = lines.iter().map(|line| clean(line, MAX_MESSAGE)).collect::<Vec<_>>().join("\n");
    Status { code, reason, message: message.chars().take(MAX_MESSAGE).collect(), details }
}

fn cause_of_finding(finding: &Finding) -> Cause {
    Cause {
        reason: finding.code.clone(),
        message: clean(&with_help(&finding.message, &finding.help), MAX_MESSAGE),
        field: field(&finding.place.pointer),
    }
}

fn cause_of_error(error: &DecisionError) -> Cause {
    let own = FOR_THE_COMMAND_LINE.contains(&error.code.as_str());
    let help = if own { "" } else { &error.help };
    Cause {
        reason: error.code.clone(),
        message: clean(&with_help(&error.message, help), MAX_MESSAGE),
        field: field(&error.place.pointer),
    }
}

/// Codes whose help tells the command line what to be given, which says nothing on a cluster.
const FOR_THE_COMMAND_LINE: [&str; 2] = ["artifact-unresolved", "component-unavailable"];

fn with_help(message: &str, help: &str) -> String {
    if help.is_empty() { message.to_owned() } else { format!("{message}; {help}") }
}

fn annotations(decision: &Decision, manner: &Manner<'_>) -> BTreeMap<String, String> {
    let codes = decision.errors.iter().map(|error| error.code.clone());
    let findings = decision.findings.iter().filter(|finding| finding.action == Action::Deny);
    let mut codes: Vec<String> = codes.chain(findings.map(|f| f.code.clone())).collect();
    codes.sort();
    codes.dedup();
    let digests: Vec<String> =
        decision.inputs.iter().map(|(name, digest)| format!("{name}={digest}")).collect();
    let mut found = BTreeMap::from([
        ("verdict".to_owned(), decision.verdict.as_str().to_owned()),
        ("mode".to_owned(), manner.mode.as_str().to_owned()),
        ("decision-id".to_owned(), decision.decision_id.to_string()),
        ("configuration".to_owned(), manner.configuration.to_owned()),
    ]);
    for (key, value) in [("codes", codes.join(",")), ("digests", digests.join(","))] {
        if !value.is_empty() {
            found.insert(key.to_owned(), annotation(&value));
        }
    }
    found
}

/// Shortens and cleans the value of an audit annotation.
fn annotation(text: &str) -> String {
    clean(text, MAX_ANNOTATION)
}

/// Builds a warning: the code first, since the end is what is cut.
fn warning(word: &str, finding: &Finding) -> String {
    clean(&format!("{word}[{}]: {}", finding.code, finding.message), MAX_WARNING)
}

/// Builds a warning of the webhook's own.
#[must_use]
pub fn notice(code: &str, message: &str) -> String {
    clean(&format!("warn[{code}]: {message}"), MAX_WARNING)
}

fn bounded(mut warnings: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    warnings.retain(|warning| seen.insert(warning.clone()));
    let total = warnings.len();
    if total > MAX_WARNINGS {
        warnings.truncate(MAX_WARNINGS.saturating_sub(1));
        let more = total.saturating_sub(warnings.len());
        warnings.push(format!("and {more} more; `ambit check` on the same object tells them all"));
    }
    warnings
}

/// Replaces control characters, for which an API server drops a text, and cuts to `max` characters.
#[must_use]
pub fn clean(text: &str, max: usize) -> String {
    let cut = text.chars().nth(max).is_some();
    let kept = if cut { max.saturating_sub(1) } else { max };
    let clean = text.chars().take(kept).map(|c| if c.is_control() { ' ' } else { c });
    let mut found: String = clean.collect();
    if cut {
        found.push('…');
    }
    found
}

/// Writes a JSON pointer as Kubernetes writes fields: `spec.components[0].image`.
#[must_use]
pub fn field(pointer: &str) -> String {
    let mut found = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if index || part.contains(['.', '/', '[', ']']) {
            found.push_str(&format!("[{part}]"));
        } else {
            if !found.is_empty() {
                found.push('.');
            }
            found.push_str(&part);
        }
    }
    found
}

#[cfg(test)]
mod tests;
