//! The signature alone: one key, one scheme, the bytes.

use sigstore_crypto::{KeyAlgorithm, SigningScheme};
use sigstore_types::{DerPublicKey, HashAlgorithm, SignatureContent};

use super::RejectCode;
use super::material::Material;
use super::target::Target;
use super::text::{Refusal, refuse, shown};
use crate::policy::KeyHash;

/// Returns the algorithm of a key.
pub(super) fn algorithm(key: &DerPublicKey) -> Result<KeyAlgorithm, Refusal> {
    KeyAlgorithm::from_spki(key)
        .map_err(|error| refuse(RejectCode::KeyAlgorithm, shown(&error.to_string())))
}

/// Returns the scheme of a key that an authority names. Ed25519 has its own hash.
pub(super) fn scheme(key: KeyAlgorithm, hash: KeyHash) -> Result<SigningScheme, Refusal> {
    match (key, hash) {
        (KeyAlgorithm::Ed25519, _) => Ok(SigningScheme::Ed25519),
        (
            KeyAlgorithm::EcdsaP256 | KeyAlgorithm::EcdsaP384 | KeyAlgorithm::Rsa,
            KeyHash::Sha256 | KeyHash::Sha384 | KeyHash::Sha512,
        ) => key
            .resolve_signing_scheme(self::hash(hash))
            .map_err(|error| refuse(RejectCode::KeyAlgorithm, shown(&error.to_string()))),
        _ => Err(refuse(
            RejectCode::KeyAlgorithm,
            "keys are ECDSA over P-256 or P-384, RSA, or Ed25519",
        )),
    }
}

/// Returns the library's name of a hash.
pub(super) fn hash(hash: KeyHash) -> HashAlgorithm {
    match hash {
        KeyHash::Sha256 => HashAlgorithm::Sha2256,
        KeyHash::Sha384 => HashAlgorithm::Sha2384,
        KeyHash::Sha512 => HashAlgorithm::Sha2512,
    }
}

/// Verifies the signature of `material` with one key: over the envelope's encoding, or over the
/// message, which has to be `target` or the payload that came with it.
pub(super) fn verify(
    material: &Material,
    target: &Target<'_>,
    key: &DerPublicKey,
    scheme: SigningScheme,
) -> Result<(), Refusal> {
    let broken = |_| refuse(RejectCode::Invalid, "the signature is not one of this key");
    match &material.bundle.content {
        SignatureContent::DsseEnvelope(envelope) => {
            sigstore_crypto::verify_signature(key, &envelope.pae(), &envelope.signature.sig, scheme)
                .map_err(broken)
        }
        SignatureContent::MessageSignature(message) => {
            let over = material.message(target);
            if let Some(digest) = &message.message_digest {
                let known = over.hash(digest.algorithm);
                if known.is_some_and(|hash| hash != digest.digest.as_bytes()) {
                    let text = super::target::hex(digest.digest.as_bytes());
                    return Err(refuse(
                        RejectCode::Subject,
                        format!("it is over {}, not {}", shown(&text), over.name()),
                    ));
                }
            }
            let Some(hash) = scheme.hash_algorithm() else {
                let bytes = over.bytes.ok_or_else(|| needs_bytes(scheme))?;
                return sigstore_crypto::verify_signature(key, bytes, &message.signature, scheme)
                    .map_err(broken);
            };
            let digest = over.hash(hash).ok_or_else(|| needs_bytes(scheme))?;
            sigstore_crypto::verify_signature_prehashed(key, digest, &message.signature, scheme)
                .map_err(broken)
        }
        _ => Err(refuse(RejectCode::Format, "the content is of an unknown kind")),
    }
}

fn needs_bytes(scheme: SigningScheme) -> Refusal {
    refuse(
        RejectCode::KeyAlgorithm,
        format!("a signature by {} needs the signed bytes, not a SHA-256", scheme.name()),
    )
}
