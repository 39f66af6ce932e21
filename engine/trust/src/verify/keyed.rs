//! Signatures with a key that the authority names.
//!
//! The library verifies these only together with a log entry or a timestamp. Without either, the
//! signature and what it is about are verified here; with them, here and there.

use ambit_engine::digest::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use sigstore_crypto::SigningScheme;
use sigstore_types::{Bundle, DerPublicKey, DigestBytes, MessageDigest, SignatureContent};
use sigstore_verify::{PublicKeyVerificationPolicy, VerificationResult, Verifier};

use super::keyless::{evidence_of_time, refined, retired};
use super::log::{self, Scope};
use super::material::Material;
use super::target::Target;
use super::text::{Refusal, refuse, shown};
use super::timestamp::Stamps;
use super::{RejectCode, Rules, Signed, SignedBy, TrustRoot, map, signature};
use crate::policy::{KeyHash, LogRule, PublicKey};

/// Verifies a signature with one of `keys`. The root is asked for only where the evidence or the
/// rules need one.
pub(super) fn verify<'r>(
    material: &Material,
    target: &Target<'_>,
    keys: &[PublicKey],
    root: impl FnOnce() -> Result<&'r TrustRoot, Refusal>,
    rules: Rules,
    now: Timestamp,
) -> Result<Signed, Refusal> {
    let Some(hint) = material.hint() else {
        return Err(refuse(RejectCode::Key, "it is signed with a certificate, not with a key"));
    };
    let (key, spki, scheme) = find(material, target, keys, hint)?;
    let statement = material.payload.about(target)?;
    let fingerprint = Digest::of(&key.spki);
    let signer = SignedBy::Key { fingerprint };
    let evidence = Digest::of(b"");

    let entries = &material.bundle.verification_material.tlog_entries;
    if rules.log != LogRule::Unasked && entries.is_empty() {
        return Err(refuse(RejectCode::TlogMissing, "it has no log entry"));
    }
    evidence_of_time(material, rules)?;
    if entries.is_empty() && material.timestamps() == 0 {
        return Ok(Signed { signer, statement, times: Vec::new(), log: None, evidence });
    }

    let root = root()?;
    let scope = log::scope(entries, rules.log, root)?;
    let stamps = Stamps::of(&material.bundle, root)?;
    let bundle = named_hash(material, stamps.seen().unwrap_or(&material.bundle), target, key)?;
    let dsse = matches!(bundle.content, SignatureContent::DsseEnvelope(_));
    if dsse && scheme != signature::algorithm(&spki)?.default_signing_scheme() {
        return Err(refuse(
            RejectCode::KeyAlgorithm,
            format!("an envelope signed by {} can't be looked up in a log", scheme.name()),
        ));
    }
    let mut policy = PublicKeyVerificationPolicy::new(spki);
    if scope == Scope::Consistency {
        policy = policy.skip_tlog_unsafe();
    }
    let joined;
    let verifier = match stamps.authorities() {
        [] => root.verifier(),
        authorities => {
            joined = root.joined(authorities)?;
            &joined
        }
    };
    let found = run(verifier, material, target, &bundle, &policy)
        .map_err(|refusal| refined(refusal, entries, root))?;
    let logged: Vec<Timestamp> = match scope {
        Scope::Entries => log::times(entries).collect(),
        Scope::Consistency => Vec::new(),
    };
    let found = found.verified_timestamps().iter().map(|time| log::ours(*time)).collect();
    let found = stamps.exact(found)?;
    let times = log::sourced(&found, &logged, now)?;
    let stamped = material.timestamps();
    if let Some(narrow) = root.narrowed(&found, entries, stamped, stamps.authorities()) {
        run(&narrow?, material, target, &bundle, &policy).map_err(retired)?;
        Stamps::within(&material.bundle, root, &found)?;
    }
    let log = match scope {
        Scope::Entries => log::best(entries),
        Scope::Consistency => None,
    };
    Ok(Signed { signer, statement, times, log, evidence })
}

/// Finds the key that the signature verifies with. The hint decides only what a failure means.
fn find<'k>(
    material: &Material,
    target: &Target<'_>,
    keys: &'k [PublicKey],
    hint: &str,
) -> Result<(&'k PublicKey, DerPublicKey, SigningScheme), Refusal> {
    let mut algorithm = None;
    let mut hinted = None;
    for key in keys {
        let spki = DerPublicKey::from_bytes(&key.spki);
        let result = try_key(material, target, key, &spki);
        let refusal = match result {
            Ok(scheme) => return Ok((key, spki, scheme)),
            Err(refusal) if refusal.code == RejectCode::Subject => return Err(refusal),
            Err(refusal) => refusal,
        };
        if STANDARD.encode(Digest::of(&key.spki).as_bytes()) == hint {
            hinted = Some(refusal.clone());
        }
        if refusal.code == RejectCode::KeyAlgorithm {
            algorithm = Some(refusal);
        }
    }
    Err(hinted.or(algorithm).unwrap_or_else(|| {
        let named = if hint.is_empty() {
            "it is signed with none of the keys".to_owned()
        } else {
            format!("it names key `{}`, and is signed with none of the keys", shown(hint))
        };
        refuse(RejectCode::Key, named)
    }))
}

fn try_key(
    material: &Material,
    target: &Target<'_>,
    key: &PublicKey,
    spki: &DerPublicKey,
) -> Result<SigningScheme, Refusal> {
    let algorithm = signature::algorithm(spki)?;
    let scheme = signature::scheme(algorithm, key.hash)?;
    let refusal = match signature::verify(material, target, spki, scheme) {
        Ok(()) => return Ok(scheme),
        Err(refusal) => refusal,
    };
    // The right key over another hash is worth another word.
    let others = [KeyHash::Sha256, KeyHash::Sha384, KeyHash::Sha512];
    for other in others.into_iter().filter(|other| *other != key.hash) {
        let Ok(other) = signature::scheme(algorithm, other) else { continue };
        if other != scheme && signature::verify(material, target, spki, other).is_ok() {
            return Err(refuse(
                RejectCode::KeyAlgorithm,
                format!(
                    "it is signed by {}, and the authority says {}",
                    other.name(),
                    scheme.name()
                ),
            ));
        }
    }
    Err(refusal)
}

/// Returns the bundle with the digest that the key's hash makes of a message, by which the library
/// picks the scheme.
fn named_hash(
    material: &Material,
    bundle: &Bundle,
    target: &Target<'_>,
    key: &PublicKey,
) -> Result<Bundle, Refusal> {
    let mut bundle = bundle.clone();
    let SignatureContent::MessageSignature(message) = &mut bundle.content else {
        return Ok(bundle);
    };
    let algorithm = signature::hash(key.hash);
    match &message.message_digest {
        Some(digest) if digest.algorithm != algorithm => Err(refuse(
            RejectCode::KeyAlgorithm,
            format!(
                "it names a digest by {}, and the authority says {algorithm}",
                digest.algorithm
            ),
        )),
        Some(_) => Ok(bundle),
        None => {
            if let Some(hash) = material.message(target).hash(algorithm) {
                let digest = MessageDigest::new(algorithm, DigestBytes::new(hash.to_vec()));
                message.message_digest = Some(digest);
            }
            Ok(bundle)
        }
    }
}

fn run(
    verifier: &Verifier,
    material: &Material,
    target: &Target<'_>,
    bundle: &Bundle,
    policy: &PublicKeyVerificationPolicy,
) -> Result<VerificationResult, Refusal> {
    let input = material.message(target).input().ok_or_else(|| {
        refuse(RejectCode::Subject, "nothing is known of what it has to be about")
    })?;
    verifier.verify(input, bundle, policy).map_err(|error| map::refusal(&error))
}
