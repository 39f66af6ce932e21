//! From verified and rejected candidates to the facts of a decision.

use std::collections::BTreeMap;

use ambit_engine::evidence::{Checked, Evidence, PROVENANCE, Unanswered};
use ambit_engine::input::{Attestation, Signature, TrustOutcome};
use jiff::Timestamp;
use serde_json::Value;

use super::{About, Report, Terms};
use crate::candidate::{Candidate, CandidateFormat};
use crate::discover::Discovery;
use crate::error::FetchError;
use crate::oci::MAX_REFERRERS;
use crate::policy::{
    Authority, AuthorityOutcome, Gap, Mode, Outcome, PolicyOutcome, Question, TrustPolicy,
    evaluate, in_time,
};
use crate::verify::{
    COSIGN_SIGN, Claimed, Reject, RejectCode, Signed, SignedBy, Statement, Subject, Verified,
    inspect, verify,
};

/// The largest predicate that policies see, in bytes of JSON.
const MAX_PREDICATE_BYTES: usize = 256 << 10;

/// The most bytes of all predicates of one component that policies see. The envelope around one
/// statement can be written in many ways, so the same may come many times.
const MAX_PREDICATES_BYTES: usize = 1 << 20;

/// The longest text that is taken out of a predicate, in characters.
const MAX_TEXT: usize = 2048;

/// How many rejected candidates one reason names.
const MAX_REASONS: usize = 3;

/// What the verifier said about one candidate for one authority.
struct Answer<'a> {
    candidate: usize,
    authority: &'a Authority,
    /// Whether the authority's policy makes facts.
    counts: bool,
    result: Result<Verified<Signed>, Reject>,
}

pub(super) fn report(
    covering: &[&TrustPolicy],
    discovery: Discovery,
    about: &About,
    terms: Terms<'_>,
) -> Report {
    let mut gaps: Vec<Gap> = discovery.problems.iter().map(Gap::from).collect();
    if discovery.truncated {
        gaps.push(Gap::truncated(MAX_REFERRERS));
    }
    let answers = answers(covering, &discovery.candidates, about, terms);
    let question = Question {
        subjects: &about.digests,
        layer: about.layer,
        candidates: &discovery.candidates,
        gaps: &gaps,
        now: terms.now,
    };
    let known: BTreeMap<(usize, usize), &Answer<'_>> = answers
        .iter()
        .filter_map(|answer| {
            let candidate = discovery.candidates.get(answer.candidate)?;
            Some((pair(candidate, answer.authority), answer))
        })
        .collect();
    let outcomes = evaluate(covering, &question, |candidate, authority| {
        match known.get(&pair(candidate, authority)) {
            Some(answer) => answer.result.clone(),
            None => over_subjects(about, |subject| {
                verify(candidate, subject, authority, terms.roots, terms.now)
            }),
        }
    });
    let evidence = evidence(&outcomes, &discovery, (&answers, &gaps), about, terms);
    Report { outcomes, discovery, evidence }
}

/// Tells one candidate and one authority from all others: by where they stand, since two may have
/// equal content.
fn pair(candidate: &Candidate, authority: &Authority) -> (usize, usize) {
    (std::ptr::from_ref(candidate).addr(), std::ptr::from_ref(authority).addr())
}

/// Tells whether what satisfies a policy in this mode is a fact. Somebody whom only a trial names is
/// not trusted beside a policy that is enforced; where every policy is a trial, those are all there
/// is, as `ambit verify` has it.
fn makes_facts(mode: Mode, any_enforced: bool) -> bool {
    mode == Mode::Enforce || !any_enforced
}

/// Asks the verifier about each candidate for each authority, once; authority by authority.
fn answers<'a>(
    covering: &[&'a TrustPolicy],
    candidates: &[Candidate],
    about: &About,
    terms: Terms<'_>,
) -> Vec<Answer<'a>> {
    let mut answers = Vec::new();
    let any_enforced = covering.iter().any(|policy| policy.mode == Mode::Enforce);
    let authorities = covering.iter().flat_map(|policy| {
        let counts = makes_facts(policy.mode, any_enforced);
        policy.authorities.iter().map(move |authority| (authority, counts))
    });
    for (authority, counts) in authorities {
        for (index, candidate) in candidates.iter().enumerate() {
            let result = over_subjects(about, |subject| {
                verify(candidate, subject, authority, terms.roots, terms.now)
            });
            // Whoever isn't trusted any more, or wasn't yet, attests nothing either.
            let result = result.and_then(|verified| {
                in_time(authority, verified.get(), terms.now).map(|()| verified)
            });
            answers.push(Answer { candidate: index, authority, counts, result });
        }
    }
    answers
}

/// Asks about each digest that counts. Of several refusals the one counts that is not about the
/// digest, since that is the one that would be left once the digest fits.
fn over_subjects(
    about: &About,
    mut ask: impl FnMut(&Subject) -> Result<Verified<Signed>, Reject>,
) -> Result<Verified<Signed>, Reject> {
    let mut refusal: Option<Reject> = None;
    for digest in &about.digests {
        match ask(&Subject { digest: *digest }) {
            Ok(verified) => return Ok(verified),
            Err(reject) => {
                let better = refusal.as_ref().is_none_or(|known| known.code == RejectCode::Subject);
                if better {
                    refusal = Some(reject);
                }
            }
        }
    }
    Err(refusal.unwrap_or_else(|| Reject {
        code: RejectCode::Subject,
        message: "there is no digest that it could be about".to_owned(),
        claimed: Claimed::default(),
    }))
}

fn evidence(
    outcomes: &[PolicyOutcome],
    discovery: &Discovery,
    (answers, gaps): (&[Answer<'_>], &[Gap]),
    about: &About,
    terms: Terms<'_>,
) -> Evidence {
    let enforced = || outcomes.iter().filter(|outcome| outcome.mode == Mode::Enforce);
    let satisfied =
        enforced().count() > 0 && enforced().all(|outcome| outcome.outcome == Outcome::Satisfied);
    let open = outcomes.iter().any(|outcome| outcome.outcome == Outcome::Unknown);
    let too_large = |problem: &FetchError| matches!(problem, FetchError::Limit { .. });
    let outage = !discovery.problems.iter().all(too_large);
    let bounded = discovery.truncated || discovery.problems.iter().any(too_large);
    // What wasn't read might be a signature or an attestation, so nothing follows from its absence.
    // Candidates past a limit can't undo what is satisfied, or anybody who may push one large
    // referrer could block an image for good.
    if outage || open || (bounded && !satisfied) {
        let mut unanswered: Vec<Unanswered> = gaps
            .iter()
            .map(|gap| Unanswered { code: gap.code.to_owned(), message: gap.message.clone() })
            .collect();
        unanswered.sort();
        unanswered.dedup();
        return Evidence::Unknown(unanswered);
    }
    let mut checked =
        Checked { trust: outcomes.iter().map(outcome).collect(), ..Checked::default() };
    let mut left = MAX_PREDICATES_BYTES;
    for (index, candidate) in discovery.candidates.iter().enumerate() {
        let mut results: Vec<Result<Verified<Signed>, Reject>> = answers
            .iter()
            .skip(index)
            .step_by(discovery.candidates.len().max(1))
            .filter(|answer| answer.counts)
            .map(|answer| answer.result.clone())
            .collect();
        let trusted = !results.is_empty();
        if !trusted {
            // Nobody says whose signature counts; who signed can be told all the same.
            results.push(over_subjects(about, |subject| {
                inspect(candidate, subject, terms.roots, terms.now)
                    .map(|inspected| inspected.signed)
            }));
        }
        let good = results.iter().find_map(|result| result.as_ref().ok()).map(Verified::get);
        let rejects: Vec<&Reject> =
            results.iter().filter_map(|result| result.as_ref().err()).collect();
        if is_attestation(candidate, good, &rejects) {
            let mut found = attestation(good, &rejects, trusted, terms.now);
            let size = found.predicate.as_ref().map_or(0, |predicate| predicate.to_string().len());
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => {
                    found.has_predicate = false;
                    found.predicate = None;
                }
            }
            checked.attestations.push(found);
        } else {
            let any_enforced = enforced().count() > 0;
            let counts = outcomes.iter().filter(|o| makes_facts(o.mode, any_enforced));
            let counts = counts.flat_map(|outcome| &outcome.authorities);
            let counts = counts.flat_map(|authority| &authority.evidence).any(|evidence| {
                evidence.attestation.is_none()
                    && evidence.place == candidate.place
                    && good.is_some_and(|good| good.evidence == evidence.digest)
            });
            checked.signatures.push(signature(good, &rejects, counts, trusted));
        }
    }
    Evidence::Checked(Box::new(checked))
}

fn outcome(outcome: &PolicyOutcome) -> TrustOutcome {
    let satisfied = outcome.outcome == Outcome::Satisfied;
    let mut reasons = Vec::new();
    if !satisfied {
        let short = outcome.authorities.iter().filter(|authority| !authority.satisfied);
        reasons.extend(short.map(shortfall));
        // That no authority is satisfied is said by what each of them lacks.
        let own = outcome.reasons.iter();
        let own = own.filter(|reason| reasons.is_empty() || reason.code != "sign-required");
        let own: Vec<String> =
            own.map(|reason| format!("{} [{}]", reason.message, reason.code)).collect();
        reasons.extend(own);
    }
    TrustOutcome {
        policy: outcome.policy.clone(),
        origin: outcome.origin.clone(),
        mode: outcome.mode.as_str().to_owned(),
        satisfied,
        reasons,
    }
}

/// Says in one line what an authority lacks.
fn shortfall(authority: &AuthorityOutcome) -> String {
    let name = &authority.name;
    if authority.rejects.is_empty() {
        return if authority.missing.is_empty() {
            format!("`{name}`: no signature was found")
        } else {
            format!("`{name}`: nothing was found for {}", authority.missing.join(", "))
        };
    }
    // Three attestations by another key are one reason.
    let mut said: Vec<String> = Vec::new();
    for reject in &authority.rejects {
        let line = format!("{} [{}]", reject.message, reject.code.as_str());
        if !said.contains(&line) {
            said.push(line);
        }
    }
    let more = said.len().saturating_sub(MAX_REASONS);
    let shown: Vec<String> = said.into_iter().take(MAX_REASONS).collect();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("`{name}`: {}{more}", shown.join(", "))
}

/// Tells attestations from signatures: by what was verified, else by what it says it is.
fn is_attestation(candidate: &Candidate, good: Option<&Signed>, rejects: &[&Reject]) -> bool {
    match good {
        Some(signed) => matches!(signed.statement, Statement::Attestation { .. }),
        None => match candidate.format() {
            CandidateFormat::LegacySignature => false,
            CandidateFormat::LegacyAttestation => true,
            CandidateFormat::Bundle => rejects.iter().any(|reject| {
                reject.claimed.predicate_type.as_deref().is_some_and(|kind| kind != COSIGN_SIGN)
            }),
        },
    }
}

/// The codes of what failed; none where something holds.
fn codes(good: Option<&Signed>, rejects: &[&Reject]) -> Vec<String> {
    if good.is_some() {
        return Vec::new();
    }
    let mut codes: Vec<String> =
        rejects.iter().map(|reject| reject.code.as_str().to_owned()).collect();
    codes.sort();
    codes.dedup();
    codes
}

fn signature(good: Option<&Signed>, rejects: &[&Reject], counts: bool, trusted: bool) -> Signature {
    let mut signature = Signature {
        verified: trusted && counts,
        kind: "key".to_owned(),
        tlog: good.is_some_and(|signed| signed.log.is_some()),
        wrong: good.is_none() && rejects.iter().any(|reject| reject.code.is_wrong()),
        errors: codes(good, rejects),
        ..Signature::default()
    };
    match good.map(|signed| &signed.signer) {
        Some(SignedBy::Key { fingerprint }) => signature.key_id = Some(fingerprint.to_string()),
        Some(SignedBy::Certificate { identity, issuer, .. }) => {
            signature.kind = "keyless".to_owned();
            signature.identity = Some(identity.clone());
            signature.issuer = Some(issuer.clone());
        }
        None => {
            if let Some(claimed) = rejects
                .iter()
                .map(|reject| &reject.claimed)
                .find(|claimed| claimed.identity.is_some() || claimed.issuer.is_some())
            {
                signature.kind = "keyless".to_owned();
                signature.identity.clone_from(&claimed.identity);
                signature.issuer.clone_from(&claimed.issuer);
            }
        }
    }
    signature
}

fn attestation(
    good: Option<&Signed>,
    rejects: &[&Reject],
    trusted: bool,
    now: Timestamp,
) -> Attestation {
    let claimed = rejects.iter().find_map(|reject| reject.claimed.predicate_type.clone());
    let mut attestation = Attestation {
        verified: trusted && good.is_some(),
        predicate_type: claimed.unwrap_or_default(),
        errors: codes(good, rejects),
        ..Attestation::default()
    };
    let Some(signed) = good else { return attestation };
    attestation.subject_matches = true;
    attestation.signer = match &signed.signer {
        SignedBy::Key { fingerprint } => fingerprint.to_string(),
        SignedBy::Certificate { identity, .. } => identity.clone(),
    };
    // The earliest time is the one that the signer can't have chosen to look younger.
    if let Some(first) = signed.times.first() {
        attestation.has_age = true;
        let age = now.duration_since(first.time).as_secs();
        attestation.age_seconds = Some(u64::try_from(age).unwrap_or(0));
    }
    if let Statement::Attestation { predicate_type, statement } = &signed.statement {
        attestation.predicate_type.clone_from(predicate_type);
        let predicate = statement.get("predicate");
        if PROVENANCE.contains(&predicate_type.as_str()) {
            attestation.builder_id = text(predicate, &["/runDetails/builder/id", "/builder/id"]);
            attestation.source_uri = text(
                predicate,
                &[
                    "/buildDefinition/externalParameters/workflow/repository",
                    "/buildDefinition/resolvedDependencies/0/uri",
                    "/invocation/configSource/uri",
                ],
            );
        }
        let small = predicate.filter(|predicate| {
            attestation.verified && predicate.to_string().len() <= MAX_PREDICATE_BYTES
        });
        attestation.has_predicate = small.is_some();
        attestation.predicate = small.cloned();
    }
    attestation
}

/// Takes the first of these that is a text.
fn text(predicate: Option<&Value>, pointers: &[&str]) -> Option<String> {
    let predicate = predicate?;
    let found = pointers.iter().find_map(|pointer| predicate.pointer(pointer)?.as_str())?;
    Some(found.chars().take(MAX_TEXT).collect())
}
