//! Verification of signatures and attestations: pure functions over bytes, keys and a time.
//!
//! The signature mathematics, certificate chains, transparency logs and timestamps are
//! `sigstore-verify`'s; what that crate leaves to its user is checked here: sizes and counts,
//! the form that a bundle claims, keys without a log, what a statement is about, who signed,
//! expired authorities and retired logs.
//!
//! Not judged here are annotations, predicate types and ages: a [`Verified`] says who signed what
//! about the subject and when, and [`crate::policy`] decides whether that is enough.
//!
//! Signed timestamps are verified here first, since the library doesn't read all of them. The log is
//! never asked online: what has no proof of inclusion beside it has none.
//!
//! Invariants: only this module makes a [`Verified`]; an error of the library that isn't known is
//! a rejection; keys come from the authority or the trust root and never from the evidence.

mod bundle;
mod certificate;
mod json;
mod keyed;
mod keyless;
mod legacy;
mod log;
mod map;
mod material;
mod reject;
mod root;
mod signature;
mod signed;
mod statement;
mod target;
mod text;
mod timestamp;

use jiff::Timestamp;

use ambit_engine::digest::Digest;

use crate::candidate::{Candidate, Content};
use crate::policy::{Authority, Formats, LogRule, SctRule, Signer, TimestampRule};
use material::Material;
use text::{Refusal, refuse, shown};

pub use reject::{Claimed, Reject, RejectCode};
pub use root::{RootError, Roots, TrustRoot};
pub use signed::{
    LogEntry, LogEvidence, Signed, SignedBy, Statement, TimeSource, Verified, VerifiedTime,
};
pub use target::Artifact;
use target::Target;

/// The most log entries of one bundle.
pub const MAX_LOG_ENTRIES: usize = 32;

/// The most signed timestamps of one bundle.
pub const MAX_TIMESTAMPS: usize = 32;

/// The most subjects of one statement.
pub const MAX_SUBJECTS: usize = 1024;

/// The most digests of one subject.
pub const MAX_SUBJECT_DIGESTS: usize = 32;

/// The most certificates beside one signature, and the most signatures under one checkpoint.
pub const MAX_CHAIN: usize = 16;

/// The most levels of JSON.
pub const MAX_JSON_DEPTH: usize = 64;

/// The predicate type under which cosign 3 writes a signature.
pub const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// What a signature has to be about: a manifest, by its digest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Subject {
    /// The digest of the manifest.
    pub digest: Digest,
}

/// What evidence has to come with.
#[derive(Clone, Copy, Debug)]
struct Rules {
    log: LogRule,
    timestamp: TimestampRule,
    sct: SctRule,
}

/// Verifies that `candidate` was signed by `authority` and is about `subject`.
///
/// The authority's formats, signer, log rule and timestamp rule are held; its annotations,
/// attestations and ages are the caller's to compare with the result. `now` only refuses times
/// that are still to come.
///
/// # Errors
///
/// [`Reject`] with the code of the first thing that is wrong. A broken signature comes before
/// everything else about it, and who signed comes last, so that [`RejectCode::Identity`] means a
/// signature that is authentic but somebody else's.
pub fn verify(
    candidate: &Candidate,
    subject: &Subject,
    authority: &Authority,
    roots: &Roots,
    now: Timestamp,
) -> Result<Verified<Signed>, Reject> {
    let material = Material::of(candidate);
    let target = Target::digest(subject.digest);
    let accepted = match authority.formats {
        Formats::Any => true,
        Formats::Bundle => matches!(candidate.content, Content::Bundle(_) | Content::Unreadable(_)),
        Formats::Legacy => !matches!(candidate.content, Content::Bundle(_)),
    };
    if !accepted {
        let claimed = material.as_ref().map(Material::claimed).unwrap_or_default();
        let message = format!(
            "`{}` doesn't accept the form `{}`",
            shown(&authority.name),
            candidate.format().as_str()
        );
        return Err(refuse(RejectCode::FormatNotAccepted, message).with(claimed));
    }
    let material = material.map_err(|refusal| refusal.with(Claimed::default()))?;
    by_authority(&material, &target, authority, roots, now)
        .map(|signed| Verified::new(Signed { evidence: candidate.evidence_digest(), ..signed }))
        .map_err(|refusal| refusal.with(material.claimed()))
}

/// Verifies that the sigstore bundle `bytes` was signed by `authority` and is about `artifact`,
/// which may be any file.
///
/// A bundle in a file may have any version of the format; one of version 0.1 proves less, and
/// [`LogRule::Proof`] keeps it out.
///
/// # Errors
///
/// [`Reject`], as [`verify`] has it.
pub fn blob(
    bytes: &[u8],
    artifact: Artifact<'_>,
    authority: &Authority,
    roots: &Roots,
    now: Timestamp,
) -> Result<Verified<Signed>, Reject> {
    let material = Material::of_file(bytes).map_err(|refusal| refusal.with(Claimed::default()))?;
    let target = Target::artifact(artifact);
    let evidence = Candidate { place: String::new(), content: Content::Bundle(bytes.to_vec()) };
    by_authority(&material, &target, authority, roots, now)
        .map(|signed| Verified::new(Signed { evidence: evidence.evidence_digest(), ..signed }))
        .map_err(|refusal| refusal.with(material.claimed()))
}

/// A candidate that is authentic, whoever signed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// The name of the trust root that vouches for the signer.
    pub root: String,
    /// What is verified. That the signer may sign this subject is not.
    pub signed: Verified<Signed>,
}

/// Tells what a candidate verifies as when nobody in particular is trusted.
///
/// Each root is tried with the strictest rules that it can meet: a log entry and a certificate
/// transparency timestamp where it names such logs, else a timestamp. This is for reports; it
/// authorizes nobody.
///
/// # Errors
///
/// [`Reject`]: of the root that came furthest; [`RejectCode::Key`] for a signature by a key, which
/// only an authority can name.
pub fn inspect(
    candidate: &Candidate,
    subject: &Subject,
    roots: &Roots,
    now: Timestamp,
) -> Result<Inspected, Reject> {
    let material = Material::of(candidate).map_err(|refusal| refusal.with(Claimed::default()))?;
    let target = Target::digest(subject.digest);
    let mut best: Option<Refusal> = None;
    for root in roots.iter() {
        let rules = Rules {
            log: if root.has_logs() { LogRule::ProofOrPromise } else { LogRule::Unasked },
            timestamp: if root.has_logs() {
                TimestampRule::Optional
            } else {
                TimestampRule::Required
            },
            sct: if root.has_certificate_logs() { SctRule::Required } else { SctRule::Ignored },
        };
        match keyless::verify(&material, &target, root, rules, now) {
            Ok(mut signed) => {
                signed.evidence = candidate.evidence_digest();
                return Ok(Inspected {
                    root: root.name().to_owned(),
                    signed: Verified::new(signed),
                });
            }
            Err(refusal) => {
                let further = best.as_ref().is_none_or(|best| reach(&refusal) > reach(best));
                if further {
                    best = Some(refusal);
                }
            }
        }
    }
    let none = || refuse(RejectCode::Chain, "there is no trust root to verify it with");
    Err(best.unwrap_or_else(none).with(material.claimed()))
}

/// Orders refusals by how much of the evidence the root had to do with.
fn reach(refusal: &Refusal) -> u8 {
    match refusal.code {
        RejectCode::TimestampMissing => 0,
        RejectCode::TlogMissing => 1,
        RejectCode::Chain => 2,
        RejectCode::Time => 3,
        RejectCode::Invalid
        | RejectCode::Key
        | RejectCode::KeyAlgorithm
        | RejectCode::Identity
        | RejectCode::Issuer
        | RejectCode::Claim
        | RejectCode::Subject
        | RejectCode::PredicateType
        | RejectCode::Annotation
        | RejectCode::TlogMismatch
        | RejectCode::TlogInvalid
        | RejectCode::Sct
        | RejectCode::Format
        | RejectCode::Limit
        | RejectCode::Downgrade
        | RejectCode::FormatNotAccepted
        | RejectCode::Age
        | RejectCode::Policy => 4,
    }
}

fn by_authority(
    material: &Material,
    target: &Target<'_>,
    authority: &Authority,
    roots: &Roots,
    now: Timestamp,
) -> Result<Signed, Refusal> {
    match &authority.signer {
        Signer::Certificate { root, identities, sct } => {
            let rules = Rules { log: authority.log, timestamp: authority.timestamp, sct: *sct };
            let signed = keyless::verify(material, target, roots.named(root)?, rules, now)?;
            certificate::authorized(&signed.signer, identities)?;
            Ok(signed)
        }
        Signer::Key { keys, root } => {
            let rules =
                Rules { log: authority.log, timestamp: authority.timestamp, sct: SctRule::Ignored };
            keyed::verify(material, target, keys, || roots.named(root), rules, now)
        }
        Signer::Static { .. } => Err(refuse(
            RejectCode::FormatNotAccepted,
            format!("`{}` asks for no signature", shown(&authority.name)),
        )),
    }
}
