//! What `ambit verify` says.

use std::collections::BTreeMap;

use ambit_trust::policy::{Evidence, Outcome, PolicyOutcome, VerifyDocument};

use super::style::{Style, line};

/// Renders the document for a person.
pub(crate) fn human(document: &VerifyDocument, style: Style) -> String {
    let mut text = String::new();
    for image in &document.images {
        text.push_str(&format!("{}\n", style.bold(&line(&image.reference))));
        if let Some(digest) = image.digest {
            text.push_str(&format!("  {digest}\n"));
        }
        if let Some(index) = image.index {
            text.push_str(&format!("  named by the index {index}\n"));
        }
        if image.policies.is_empty() {
            text.push_str("\n  no trust policy is for this image\n");
        }
        for policy in &image.policies {
            text.push('\n');
            policy_lines(&mut text, policy, style);
        }
        let proven = image.policies.iter().flat_map(|policy| &policy.authorities);
        let proven = proven.filter(|authority| authority.satisfied).any(|a| !a.evidence.is_empty());
        let word = match image.outcome {
            // `static: pass` asks for nothing, so nothing was verified.
            Outcome::Satisfied if !proven => style.warn("passed without a signature"),
            Outcome::Satisfied => style.good("verified"),
            Outcome::Unsatisfied => style.bad("not verified"),
            Outcome::Unknown => style.bad("no answer"),
        };
        text.push('\n');
        for (code, help) in helps(&image.policies) {
            text.push_str(&format!("  help for {code}: {help}\n"));
        }
        text.push_str(&format!("{}: {word}\n", line(&image.reference)));
    }
    text
}

/// What to do about each code of a policy that isn't satisfied, once.
fn helps(policies: &[PolicyOutcome]) -> BTreeMap<&'static str, &'static str> {
    let open = policies.iter().filter(|policy| policy.outcome != Outcome::Satisfied);
    let authorities = open.flat_map(|policy| &policy.authorities);
    let rejects = authorities.filter(|authority| !authority.satisfied).flat_map(|a| &a.rejects);
    rejects.map(|reject| (reject.code.as_str(), reject.code.help())).collect()
}

fn policy_lines(text: &mut String, policy: &PolicyOutcome, style: Style) {
    let word = match policy.outcome {
        Outcome::Satisfied => style.good("satisfied"),
        Outcome::Unsatisfied => style.bad("not satisfied"),
        Outcome::Unknown => style.bad("unknown"),
    };
    let mode = if policy.mode.as_str() == "warn" { ", only warns" } else { "" };
    let name = style.bold(&line(&policy.policy));
    text.push_str(&format!("  policy {name} ({}{mode}): {word}\n", line(&policy.origin)));
    for authority in &policy.authorities {
        let word = if authority.satisfied { "satisfied" } else { "not satisfied" };
        text.push_str(&format!("    authority {}: {word}\n", line(&authority.name)));
        for evidence in &authority.evidence {
            text.push_str(&format!("      {}\n", line(&evidence_line(evidence))));
            text.push_str(&format!("        {}\n", style.dim(&line(&evidence.place))));
        }
        for missing in &authority.missing {
            text.push_str(&format!("      nothing for `{}`\n", line(missing)));
        }
        if authority.evidence.is_empty() && authority.rejects.is_empty() && !authority.passes {
            text.push_str("      no signature or attestation was found\n");
        }
        for reject in &authority.rejects {
            let code = style.warn(reject.code.as_str());
            text.push_str(&format!("      {code}: {}\n", line(&reject.message)));
            text.push_str(&format!("        {}\n", style.dim(&line(&reject.place))));
        }
    }
    for reason in &policy.reasons {
        text.push_str(&format!("    {}: {}\n", style.warn(reason.code), line(&reason.message)));
    }
    for gap in &policy.gaps {
        text.push_str(&format!("    {}: {}\n", style.warn(gap.code), line(&gap.message)));
    }
    for warning in &policy.warnings {
        text.push_str(&format!("    note: {}\n", line(warning)));
    }
}

fn evidence_line(evidence: &Evidence) -> String {
    let what = match (&evidence.predicate_type, &evidence.attestation) {
        (Some(kind), Some(name)) => format!("attestation `{name}` of type {kind}"),
        (Some(kind), None) => format!("attestation of type {kind}"),
        (None, _) => "signature".to_owned(),
    };
    let who = match (&evidence.key, &evidence.identity) {
        (Some(key), _) => format!("key {key}"),
        (None, Some(identity)) => {
            format!("{identity}, issued by {}", evidence.issuer.as_deref().unwrap_or("nobody"))
        }
        (None, None) => "nobody".to_owned(),
    };
    let when = evidence.times.first().map(|time| format!(", at {}", time.time)).unwrap_or_default();
    let log = match &evidence.log {
        Some(log) => format!(", log index {}", log.index),
        None => ", in no log".to_owned(),
    };
    format!("{what} by {who}{when}{log}")
}
