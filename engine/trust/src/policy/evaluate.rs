//! Whether policies are satisfied by what was found, in three values.
//!
//! The verifier is asked about each candidate for each authority. What it vouches for is then held
//! against the rest of the authority: the kind of statement, annotations, age, attestations, Rego.
//! One bad candidate neither hides a good one nor blocks it. What couldn't be fetched makes an
//! unsatisfied policy unknown, unless nothing that could have been there would have helped; it
//! never undoes a satisfied one. The mode of a policy is not looked at.

mod authority;
mod outcome;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ambit_engine::digest::Digest;
use ambit_engine::policy::PolicyLimits;
use ambit_engine::reference::Repository;
use jiff::Timestamp;
use serde_json::json;

pub(crate) use authority::in_time;
pub use outcome::{
    AuthorityOutcome, Evidence, Gap, LogView, Outcome, PolicyOutcome, Reason, RejectedCandidate,
    TimeView,
};

use super::rego::{Answer, ask};
use super::{Authority, Pin, Require, Signer, StaticAction, TrustPolicy};
use crate::candidate::Candidate;
use crate::verify::{Reject, RejectCode, Signed, Verified};

/// What policies are asked about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The digests that a signature may be on: that of the manifest, and that of the index if the
    /// reference named one, since the index names the manifest by digest. An index that nobody
    /// named covers nothing.
    pub subjects: &'a [Digest],
    /// The digest of the component's bytes, if they are known.
    pub layer: Option<Digest>,
    /// What was found.
    pub candidates: &'a [Candidate],
    /// What may be there and wasn't seen.
    pub gaps: &'a [Gap],
    /// The time of the decision.
    pub now: Timestamp,
}

/// Returns the policies that are for images of a repository, in order. Every one has to be
/// satisfied; what it means that there is none is the caller's to say.
#[must_use]
pub fn matching<'p>(policies: &'p [TrustPolicy], repository: &Repository) -> Vec<&'p TrustPolicy> {
    let is_for =
        |policy: &&TrustPolicy| policy.images.iter().any(|pattern| pattern.matches(repository));
    policies.iter().filter(is_for).collect()
}

/// Tells for each policy whether what was found satisfies it, and by what.
///
/// `verify` answers whether one candidate is a signature or attestation over one of the subjects
/// by one authority. It is asked about each pair, so it should remember its answers.
pub fn evaluate(
    policies: &[&TrustPolicy],
    question: &Question<'_>,
    mut verify: impl FnMut(&Candidate, &Authority) -> Result<Verified<Signed>, Reject>,
) -> Vec<PolicyOutcome> {
    let limits = PolicyLimits::default();
    policies.iter().map(|policy| one(policy, question, &mut verify, &limits)).collect()
}

fn one(
    policy: &TrustPolicy,
    question: &Question<'_>,
    verify: &mut impl FnMut(&Candidate, &Authority) -> Result<Verified<Signed>, Reject>,
    limits: &PolicyLimits,
) -> PolicyOutcome {
    let mut reasons = Vec::new();
    let mut gaps: Vec<Gap> = question.gaps.to_vec();
    let pinned = pinned(&policy.pins, question, &mut reasons, &mut gaps);
    let authorities: Vec<AuthorityOutcome> = policy
        .authorities
        .iter()
        .map(|authority| authority::judge(authority, question, verify, limits))
        .collect();
    let required = required(policy, &authorities, question, &mut reasons);
    let mut warnings = Vec::new();
    let mut agreed = true;
    // As policy-controller has it, the policy is asked about authorities that are satisfied, and
    // not at all where they don't suffice.
    if let (true, Some(module)) = (required, &policy.rego) {
        match ask(module, &input(&authorities), limits) {
            Answer::Yes { warnings: said } => warnings = said,
            Answer::No(message) => {
                agreed = false;
                reasons.push(Reason { code: RejectCode::Policy.as_str(), message });
            }
        }
    }
    for authority in &authorities {
        warnings.extend(authority.warnings.iter().cloned());
    }
    warnings.sort();
    warnings.dedup();
    let outcome = if pinned == Met::Yes && required && agreed {
        Outcome::Satisfied
    } else if gaps.is_empty() || pinned == Met::Never || hopeless(policy) {
        Outcome::Unsatisfied
    } else {
        Outcome::Unknown
    };
    if outcome != Outcome::Unknown {
        gaps.clear();
    }
    PolicyOutcome {
        policy: policy.name.clone(),
        origin: policy.origin.clone(),
        mode: policy.mode,
        outcome,
        signers: signers(&authorities).into_iter().collect(),
        authorities,
        reasons,
        gaps,
        warnings,
    }
}

/// Whether a condition is met.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Met {
    Yes,
    /// Not known.
    Open,
    /// No, and no further evidence would change it.
    Never,
}

fn pinned(
    pins: &[Pin],
    question: &Question<'_>,
    reasons: &mut Vec<Reason>,
    gaps: &mut Vec<Gap>,
) -> Met {
    let fits = |pin: &Pin| match pin {
        Pin::Manifest(digest) => question.subjects.contains(digest),
        Pin::Layer(digest) => question.layer == Some(*digest),
    };
    if pins.is_empty() || pins.iter().any(fits) {
        return Met::Yes;
    }
    let open = question.layer.is_none() && pins.iter().any(|pin| matches!(pin, Pin::Layer(_)));
    if open {
        gaps.push(Gap {
            code: "evidence-unknown",
            message: "the component's bytes are not at hand, and the policy pins them".to_owned(),
        });
        return Met::Open;
    }
    reasons.push(Reason {
        code: "trust-pin",
        message: format!("the content is none of the {} that the policy pins", pins.len()),
    });
    Met::Never
}

fn required(
    policy: &TrustPolicy,
    authorities: &[AuthorityOutcome],
    question: &Question<'_>,
    reasons: &mut Vec<Reason>,
) -> bool {
    let missing: Vec<String> = authorities
        .iter()
        .filter(|authority| !authority.satisfied)
        .map(|authority| format!("`{}`", authority.name))
        .collect();
    let found = signers(authorities).len();
    let (met, message) = match policy.require {
        _ if authorities.is_empty() => (false, "the policy has no authorities".to_owned()),
        Require::Any => (
            missing.len() < authorities.len(),
            format!("none of the authorities is satisfied: {}", missing.join(", ")),
        ),
        Require::All => {
            (missing.is_empty(), format!("authorities are not satisfied: {}", missing.join(", ")))
        }
        Require::Signers(wanted) => (
            usize::try_from(wanted).is_ok_and(|wanted| found >= wanted),
            format!("{found} of {wanted} distinct signers"),
        ),
    };
    if !met {
        let nothing = question.candidates.is_empty() && question.gaps.is_empty();
        let message =
            if nothing { "there is no signature and no attestation".to_owned() } else { message };
        reasons.push(Reason { code: "sign-required", message });
    }
    met
}

/// Returns the distinct signers over all authorities, each of whom alone satisfies one.
fn signers(authorities: &[AuthorityOutcome]) -> BTreeSet<String> {
    authorities.iter().flat_map(|authority| authority.signers.iter().cloned()).collect()
}

/// Tells whether no evidence at all could satisfy the authorities.
fn hopeless(policy: &TrustPolicy) -> bool {
    let never = |authority: &Authority| {
        matches!(authority.signer, Signer::Static { action: StaticAction::Fail })
    };
    match policy.require {
        Require::All => policy.authorities.iter().any(never) || policy.authorities.is_empty(),
        Require::Any | Require::Signers(_) => policy.authorities.iter().all(never),
    }
}

/// The input of a policy's own module, in policy-controller's form with more fields.
fn input(authorities: &[AuthorityOutcome]) -> serde_json::Value {
    let mut matches = serde_json::Map::new();
    for authority in authorities.iter().filter(|authority| authority.satisfied) {
        let signatures: Vec<serde_json::Value> = authority
            .evidence
            .iter()
            .filter(|evidence| evidence.attestation.is_none())
            .map(Evidence::input)
            .collect();
        let mut attestations = serde_json::Map::new();
        for evidence in &authority.evidence {
            let Some(name) = &evidence.attestation else { continue };
            let list = attestations.entry(name.clone()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(evidence.input());
            }
        }
        let mut found = serde_json::Map::new();
        if !signatures.is_empty() {
            found.insert("signatures".to_owned(), signatures.into());
        }
        if !attestations.is_empty() {
            found.insert("attestations".to_owned(), attestations.into());
        }
        if authority.passes {
            found.insert("static".to_owned(), true.into());
        }
        matches.insert(authority.name.clone(), found.into());
    }
    json!({ "authorityMatches": matches })
}
