//! One authority and all candidates.

use std::collections::{BTreeMap, BTreeSet};

use ambit_engine::policy::PolicyLimits;
use jiff::Timestamp;

use super::outcome::{AuthorityOutcome, Evidence, RejectedCandidate};
use super::{Answer, Question, ask};
use crate::candidate::{Candidate, Content};
use crate::policy::{Authority, Formats, Signer, StaticAction};
use crate::verify::{Claimed, Reject, RejectCode, Signed, SignedBy, Statement, Verified};

pub(super) fn judge(
    authority: &Authority,
    question: &Question<'_>,
    verify: &mut impl FnMut(&Candidate, &Authority) -> Result<Verified<Signed>, Reject>,
    limits: &PolicyLimits,
) -> AuthorityOutcome {
    let mut outcome = AuthorityOutcome {
        name: authority.name.clone(),
        satisfied: false,
        passes: false,
        signers: Vec::new(),
        evidence: Vec::new(),
        missing: Vec::new(),
        rejects: Vec::new(),
        warnings: Vec::new(),
    };
    if let Signer::Static { action } = &authority.signer {
        let passes = matches!(action, StaticAction::Pass);
        outcome.satisfied = passes;
        outcome.passes = passes;
        return outcome;
    }
    for candidate in question.candidates {
        let format = candidate.format().as_str();
        let mut reject = |reject: Reject| {
            outcome.rejects.push(RejectedCandidate::new(&candidate.place, format, reject));
        };
        if let Err((code, message)) = accepted(authority.formats, candidate) {
            reject(Reject { code, message, claimed: Claimed::default() });
            continue;
        }
        let verified = match verify(candidate, authority) {
            Ok(verified) => verified,
            Err(why) => {
                reject(why);
                continue;
            }
        };
        let signed = verified.get();
        let fits = age(authority, signed, question.now)
            .and_then(|()| annotations(authority, &signed.statement));
        if let Err((code, message)) = fits {
            reject(Reject { code, message, claimed: claimed(signed) });
            continue;
        }
        let evidence = Evidence::new(&candidate.place, format, signed);
        match satisfies(authority, &signed.statement, limits) {
            Ok(Satisfies::Signature) => outcome.evidence.push(evidence),
            Ok(Satisfies::Rules { names, warnings, refused }) => {
                outcome.warnings.extend(warnings);
                if !refused.is_empty() {
                    let claimed = claimed(signed);
                    reject(Reject { code: RejectCode::Policy, message: refused, claimed });
                }
                outcome.evidence.extend(
                    names
                        .into_iter()
                        .map(|name| Evidence { attestation: Some(name), ..evidence.clone() }),
                );
            }
            Err((code, message)) => reject(Reject { code, message, claimed: claimed(signed) }),
        }
    }
    conclude(authority, &mut outcome);
    outcome
}

/// Says who satisfies the authority, and sorts what is listed.
fn conclude(authority: &Authority, outcome: &mut AuthorityOutcome) {
    let wanted: BTreeSet<Option<&str>> = if authority.attestations.is_empty() {
        BTreeSet::from([None])
    } else {
        authority.attestations.iter().map(|rule| Some(rule.name.as_str())).collect()
    };
    let mut by_signer: BTreeMap<String, BTreeSet<Option<&str>>> = BTreeMap::new();
    let mut found: BTreeSet<Option<&str>> = BTreeSet::new();
    for evidence in &outcome.evidence {
        let met = evidence.attestation.as_deref();
        by_signer.entry(evidence.signer()).or_default().insert(met);
        found.insert(met);
    }
    // A signer counts towards a threshold who has given all that is asked for, and not one who has
    // given a part that others complete.
    let signers = by_signer.iter().filter(|(_, met)| **met == wanted);
    let signers: Vec<String> = signers.map(|(signer, _)| signer.clone()).collect();
    let missing: Vec<String> =
        wanted.difference(&found).flatten().map(|name| (*name).to_owned()).collect();
    outcome.satisfied = found == wanted;
    outcome.signers = signers;
    outcome.missing = missing;
    outcome.evidence.sort_by(|a, b| {
        (a.digest, &a.place, &a.attestation).cmp(&(b.digest, &b.place, &b.attestation))
    });
    outcome
        .rejects
        .sort_by(|a, b| (&a.place, a.code, &a.message).cmp(&(&b.place, b.code, &b.message)));
}

type Why = (RejectCode, String);

/// Holds only the times against the authority's bounds, for who asks about a candidate and not
/// about the authority.
pub(crate) fn in_time(
    authority: &Authority,
    signed: &Signed,
    now: Timestamp,
) -> Result<(), Reject> {
    age(authority, signed, now).map_err(|(code, message)| Reject {
        code,
        message,
        claimed: claimed(signed),
    })
}

fn accepted(formats: Formats, candidate: &Candidate) -> Result<(), Why> {
    let legacy = match &candidate.content {
        Content::Bundle(_) => false,
        Content::LegacySignature(_) | Content::LegacyAttestation(_) => true,
        // The verifier says what is wrong with it.
        Content::Unreadable(_) => return Ok(()),
    };
    let wanted = match (formats, legacy) {
        (Formats::Any, _) | (Formats::Legacy, true) | (Formats::Bundle, false) => return Ok(()),
        (Formats::Legacy, false) => "legacy signatures",
        (Formats::Bundle, true) => "bundles",
    };
    let message = format!(
        "it is stored as {}, and the authority accepts {wanted}",
        candidate.format().as_str()
    );
    Err((RejectCode::FormatNotAccepted, message))
}

/// Holds the verified times against the authority's bounds.
///
/// Each bound takes the time that is worst for the signer: all times must be young enough, so the
/// earliest one counts for both. A signer who is trusted since some day, or for some days, could
/// otherwise carry an old signature over the bound by having it stamped or logged again.
fn age(authority: &Authority, signed: &Signed, now: Timestamp) -> Result<(), Why> {
    if authority.max_age.is_none() && authority.not_before.is_none() {
        return Ok(());
    }
    let Some(earliest) = signed.times.iter().map(|time| time.time).min() else {
        let message = "no verified time says when it was signed".to_owned();
        return Err((RejectCode::Age, message));
    };
    if let Some(bound) = authority.not_before
        && earliest < bound
    {
        let message = format!("it was signed at {earliest}, before {bound}");
        return Err((RejectCode::Age, message));
    }
    if let Some(most) = authority.max_age {
        // A time after `now` is the verifier's to refuse; here it has no age.
        let age = now.duration_since(earliest);
        let fits = age.is_negative() || age.unsigned_abs() <= most;
        if !fits {
            let message = format!(
                "it was signed at {earliest}, {} s ago, and at most {} s are allowed",
                age.as_secs(),
                most.as_secs()
            );
            return Err((RejectCode::Age, message));
        }
    }
    Ok(())
}

fn annotations(authority: &Authority, statement: &Statement) -> Result<(), Why> {
    let none = BTreeMap::new();
    let carried = match statement {
        Statement::Signature { annotations } => annotations,
        Statement::Attestation { .. } => &none,
    };
    for (key, wanted) in &authority.annotations {
        let message = match carried.get(key) {
            Some(found) if found == wanted => continue,
            Some(found) => {
                let found: String = found.chars().take(100).collect();
                format!("annotation `{key}` is `{found}`, not `{wanted}`")
            }
            None => format!("annotation `{key}` is missing"),
        };
        return Err((RejectCode::Annotation, message));
    }
    Ok(())
}

/// What a statement satisfies.
enum Satisfies {
    Signature,
    /// Attestation rules by name; `refused` says what the Rego of others had against it.
    Rules {
        names: Vec<String>,
        warnings: Vec<String>,
        refused: String,
    },
}

/// Holds the statement against what the authority asks for. The predicate type comes first: an
/// attestation of another type counts for nothing, whatever it says.
fn satisfies(
    authority: &Authority,
    statement: &Statement,
    limits: &PolicyLimits,
) -> Result<Satisfies, Why> {
    let other = |message: String| (RejectCode::PredicateType, message);
    let (predicate_type, body) = match statement {
        Statement::Signature { .. } if authority.attestations.is_empty() => {
            return Ok(Satisfies::Signature);
        }
        Statement::Signature { .. } => {
            return Err(other("it is a signature, and attestations are asked for".to_owned()));
        }
        Statement::Attestation { predicate_type, statement } => (predicate_type, statement),
    };
    let shown: String = predicate_type.chars().take(200).collect();
    if authority.attestations.is_empty() {
        let message =
            format!("it is an attestation of type `{shown}`, and a signature is asked for");
        return Err(other(message));
    }
    let rules: Vec<_> = authority
        .attestations
        .iter()
        .filter(|rule| rule.predicate_types.contains(predicate_type))
        .collect();
    if rules.is_empty() {
        return Err(other(format!("its predicate type `{shown}` is none that is asked for")));
    }
    let mut names = Vec::new();
    let mut warnings = Vec::new();
    let mut refused = Vec::new();
    for rule in rules {
        match rule.rego.as_ref().map(|module| ask(module, body, limits)) {
            None => names.push(rule.name.clone()),
            Some(Answer::Yes { warnings: said }) => {
                names.push(rule.name.clone());
                warnings.extend(said);
            }
            Some(Answer::No(message)) => refused.push(format!("`{}`: {message}", rule.name)),
        }
    }
    let refused = refused.join("; ");
    if names.is_empty() {
        return Err((RejectCode::Policy, refused));
    }
    Ok(Satisfies::Rules { names, warnings, refused })
}

fn claimed(signed: &Signed) -> Claimed {
    let (identity, issuer) = match &signed.signer {
        SignedBy::Certificate { identity, issuer, .. } => {
            (Some(identity.clone()), Some(issuer.clone()))
        }
        SignedBy::Key { .. } => (None, None),
    };
    let predicate_type = match &signed.statement {
        Statement::Attestation { predicate_type, .. } => Some(predicate_type.clone()),
        Statement::Signature { .. } => None,
    };
    Claimed { identity, issuer, key_hint: None, predicate_type }
}
