//! A candidate, read: whatever form it came in, a bundle and what it says.

use sigstore_types::{Bundle, HashAlgorithm, SignatureContent, VerificationMaterialContent};

use super::bundle::{self, Found};
use super::statement::{IN_TOTO, Payload};
use super::target::Target;
use super::text::{Refusal, refuse, shown};
use super::{Claimed, RejectCode, certificate, legacy};
use crate::candidate::{Candidate, Content};

/// What verification works on.
#[derive(Clone, Debug)]
pub(super) struct Material {
    /// The bundle, or what became one.
    pub(super) bundle: Bundle,
    /// What it says.
    pub(super) payload: Payload,
    /// The bytes under a message signature, where they are not the subject's.
    pub(super) signed: Option<Vec<u8>>,
}

impl Material {
    /// Reads a candidate.
    pub(super) fn of(candidate: &Candidate) -> Result<Self, Refusal> {
        match &candidate.content {
            Content::Bundle(bytes) => Self::of_bundle(bundle::read(bytes, Found::AsReferrer)?),
            Content::LegacySignature(layer) => legacy::signature(layer),
            Content::LegacyAttestation(layer) => Self::of_bundle(legacy::attestation(layer)?),
            Content::Unreadable(reason) => Err(refuse(RejectCode::Format, shown(reason))),
        }
    }

    /// Reads a bundle from a file.
    pub(super) fn of_file(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::of_bundle(bundle::read(bytes, Found::InFile)?)
    }

    fn of_bundle(bundle: Bundle) -> Result<Self, Refusal> {
        let payload = match &bundle.content {
            SignatureContent::MessageSignature(_) => Payload::Message,
            SignatureContent::DsseEnvelope(envelope) if envelope.payload_type == IN_TOTO => {
                Payload::in_toto(envelope.payload.as_bytes())?
            }
            SignatureContent::DsseEnvelope(envelope) => {
                return Err(refuse(
                    RejectCode::Format,
                    format!("the payload is of type `{}`", shown(&envelope.payload_type)),
                ));
            }
            _ => return Err(refuse(RejectCode::Format, "the content is of an unknown kind")),
        };
        Ok(Self { bundle, payload, signed: None })
    }

    /// Returns what the message signature has to be over, when `target` is what it has to be
    /// about.
    pub(super) fn message<'a>(&'a self, target: &Target<'a>) -> Target<'a> {
        match &self.signed {
            Some(bytes) => Target::bytes(bytes),
            None => target.clone(),
        }
    }

    /// Returns the digest algorithm that a message signature names.
    pub(super) fn message_algorithm(&self) -> Option<HashAlgorithm> {
        let SignatureContent::MessageSignature(message) = &self.bundle.content else {
            return None;
        };
        message.message_digest.as_ref().map(|digest| digest.algorithm)
    }

    /// Returns the number of signed timestamps.
    pub(super) fn timestamps(&self) -> usize {
        self.bundle.verification_material.timestamp_verification_data.rfc3161_timestamps.len()
    }

    /// Returns the hint at the key, if a key is what it is signed with.
    pub(super) fn hint(&self) -> Option<&str> {
        let signer = &self.bundle.verification_material.content;
        let VerificationMaterialContent::PublicKey(key) = signer else { return None };
        Some(&key.hint)
    }

    /// Returns what the candidate says of its signer.
    pub(super) fn claimed(&self) -> Claimed {
        let leaf = self.bundle.signing_certificate();
        let (identity, issuer) = leaf.map(certificate::claimed).unwrap_or_default();
        Claimed {
            identity: identity.as_deref().map(shown),
            issuer: issuer.as_deref().map(shown),
            key_hint: self.hint().filter(|hint| !hint.is_empty()).map(shown),
            predicate_type: self.payload.predicate_type().map(shown),
        }
    }
}
