//! Signatures by the holder of a short-lived certificate.

use ambit_engine::digest::Digest;
use jiff::Timestamp;
use sigstore_types::{Bundle, TransparencyLogEntry};
use sigstore_verify::{VerificationPolicy, VerificationResult, Verifier};

use super::certificate::Leaf;
use super::log::{self, Scope};
use super::material::Material;
use super::target::Target;
use super::text::{Refusal, refuse};
use super::timestamp::Stamps;
use super::{RejectCode, Rules, Signed, TrustRoot, map, signature};
use crate::policy::{LogRule, SctRule, TimestampRule};

const EXPIRED: &str = "it was signed when its certificate was not valid";

/// Verifies a signature by a certificate. Who holds it is for the caller to compare.
pub(super) fn verify(
    material: &Material,
    target: &Target<'_>,
    root: &TrustRoot,
    rules: Rules,
    now: Timestamp,
) -> Result<Signed, Refusal> {
    let Some(der) = material.bundle.signing_certificate() else {
        return Err(refuse(RejectCode::Key, "it is signed with a key, not with a certificate"));
    };
    let leaf = Leaf::read(der)?;
    let algorithm = leaf.info.key_algorithm;
    let scheme = match material.message_algorithm() {
        Some(hash) => algorithm.resolve_signing_scheme(hash).map_err(|_| {
            refuse(RejectCode::KeyAlgorithm, "the key can't sign the digest that it names")
        })?,
        None => algorithm.default_signing_scheme(),
    };
    signature::verify(material, target, &leaf.info.public_key, scheme)?;
    let statement = material.payload.about(target)?;

    let entries = &material.bundle.verification_material.tlog_entries;
    let scope = log::scope(entries, rules.log, root)?;
    evidence_of_time(material, rules)?;

    let stamps = Stamps::of(&material.bundle, root)?;
    let bundle = stamps.seen().unwrap_or(&material.bundle);
    let policy = policy(rules, scope);
    let joined;
    let verifier = match stamps.authorities() {
        [] => root.verifier(),
        authorities => {
            joined = root.joined(authorities)?;
            &joined
        }
    };
    let found = run(verifier, material, target, bundle, &policy)
        .map_err(|refusal| explained(refusal, &leaf, entries, stamps.times(), root))?;
    let logged: Vec<Timestamp> = log::times(entries).collect();
    let found = found.verified_timestamps().iter().map(|time| log::ours(*time)).collect();
    let found = stamps.exact(found)?;
    if found.iter().any(|time| !leaf.is_valid_at(*time)) {
        return Err(refuse(RejectCode::Time, EXPIRED));
    }
    let times = log::sourced(&found, &logged, now)?;
    if times.is_empty() {
        return Err(refuse(RejectCode::TimestampMissing, "nothing says when it was signed"));
    }
    let stamped = material.timestamps();
    if let Some(narrow) = root.narrowed(&found, entries, stamped, stamps.authorities()) {
        run(&narrow?, material, target, bundle, &policy).map_err(retired)?;
        Stamps::within(&material.bundle, root, &found)?;
    }
    Ok(Signed {
        signer: leaf.signer()?,
        statement,
        times,
        log: match scope {
            Scope::Entries => log::best(entries),
            Scope::Consistency => None,
        },
        evidence: Digest::of(b""),
    })
}

/// Refuses what lacks a time before the library looks for one, to say which is missing.
pub(super) fn evidence_of_time(material: &Material, rules: Rules) -> Result<(), Refusal> {
    if material.timestamps() > 0 {
        return Ok(());
    }
    let entries = &material.bundle.verification_material.tlog_entries;
    let message = match rules.timestamp {
        TimestampRule::Required => "it has no signed timestamp, and one is asked for",
        // A key is good at any time, so that it needs one only together with the log.
        TimestampRule::Optional
            if log::timeless(entries)
                && (rules.log != LogRule::Unasked || material.hint().is_none()) =>
        {
            "its log vouches for no time, and it has no signed timestamp"
        }
        TimestampRule::Optional => return Ok(()),
    };
    Err(refuse(RejectCode::TimestampMissing, message))
}

fn policy(rules: Rules, scope: Scope) -> VerificationPolicy {
    let mut policy = VerificationPolicy::any_identity();
    if rules.sct == SctRule::Ignored {
        policy = policy.skip_sct();
    }
    if scope == Scope::Consistency {
        policy = policy.skip_tlog_unsafe();
    }
    policy
}

fn run(
    verifier: &Verifier,
    material: &Material,
    target: &Target<'_>,
    bundle: &Bundle,
    policy: &VerificationPolicy,
) -> Result<VerificationResult, Refusal> {
    let input = material.message(target).input().ok_or_else(|| {
        refuse(RejectCode::Subject, "nothing is known of what it has to be about")
    })?;
    verifier.verify(input, bundle, policy).map_err(|error| map::refusal(&error))
}

/// Tells apart what the library has one error for.
fn explained(
    refusal: Refusal,
    leaf: &Leaf,
    entries: &[TransparencyLogEntry],
    stamped: &[Timestamp],
    root: &TrustRoot,
) -> Refusal {
    // The chain is verified at the times that the log's promise and timestamps vouch for, and an
    // expired signing certificate is one error with a foreign one.
    let mut times = log::times(entries).chain(stamped.iter().copied());
    let expired = times.any(|time| !leaf.is_valid_at(time));
    if refusal.code == RejectCode::Chain && expired {
        return refuse(RejectCode::Time, EXPIRED);
    }
    refined(refusal, entries, root)
}

/// Tells apart what the library has one error for, whoever signed.
pub(super) fn refined(
    refusal: Refusal,
    entries: &[TransparencyLogEntry],
    root: &TrustRoot,
) -> Refusal {
    // The subject was compared before, so that only the entry can be about something else.
    if refusal.code == RejectCode::Subject {
        return refuse(RejectCode::TlogMismatch, "its log entry is about another payload");
    }
    let unknown = entries.iter().any(|entry| !root.knows_log(entry.log_id.key_id.as_bytes()));
    if refusal.code == RejectCode::TlogInvalid && unknown {
        return refuse(RejectCode::TlogMissing, refusal.message);
    }
    refusal
}

/// What the second look refuses was valid, and no longer is.
pub(super) fn retired(refusal: Refusal) -> Refusal {
    if refusal.code == RejectCode::TlogMissing {
        return refuse(RejectCode::TlogInvalid, refusal.message);
    }
    if refusal.code == RejectCode::TimestampMissing {
        return refuse(RejectCode::Time, refusal.message);
    }
    refusal
}
