//! What verification found.

use std::collections::BTreeMap;
use std::sync::Arc;

use ambit_engine::digest::Digest;
use jiff::Timestamp;

use crate::policy::Claim;

/// A value that the verifier vouches for. Nothing outside [`crate::verify`] can make one.
///
/// Copies share the value, since a statement can have megabytes and several policies ask for it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Verified<T>(Arc<T>);

impl<T> Verified<T> {
    pub(in crate::verify) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Returns the value.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// Wraps a value without verification, to test what comes after it.
    #[cfg(test)]
    pub(crate) fn for_test(value: T) -> Self {
        Self(Arc::new(value))
    }
}

/// A signature or attestation whose signer, subject and times are verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Signed {
    /// Who signed.
    pub signer: SignedBy,
    /// What was signed.
    pub statement: Statement,
    /// The verified times of signing, earliest first; empty for a key without log and timestamp.
    pub times: Vec<VerifiedTime>,
    /// The verified log entry.
    pub log: Option<LogEntry>,
    /// The digest over what was verified ([`crate::candidate::Candidate::evidence_digest`]).
    pub evidence: Digest,
}

/// Who signed.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum SignedBy {
    /// The holder of a key that the authority names.
    Key {
        /// The SHA-256 of the key's SubjectPublicKeyInfo.
        fingerprint: Digest,
    },
    /// The holder of a certificate.
    Certificate {
        /// The one subject alternative name.
        identity: String,
        /// The OIDC issuer; empty if the certificate has none.
        issuer: String,
        /// Further claims.
        claims: BTreeMap<Claim, String>,
        /// The SHA-256 of the certificate.
        certificate: Digest,
    },
}

/// What was signed about the subject.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// A signature: a simple signing payload, or a statement of predicate type
    /// `https://sigstore.dev/cosign/sign/v1`.
    Signature {
        /// Annotations of the signature.
        annotations: BTreeMap<String, String>,
    },
    /// An attestation.
    Attestation {
        /// The predicate type.
        predicate_type: String,
        /// The whole statement, parsed once, from the bytes that were verified.
        statement: serde_json::Value,
    },
}

/// A verified time of signing.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct VerifiedTime {
    /// The time.
    pub time: Timestamp,
    /// Who says so.
    pub source: TimeSource,
}

/// Who says when something was signed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TimeSource {
    /// The transparency log.
    Log,
    /// A timestamp authority.
    TimestampAuthority,
}

/// A verified entry of a transparency log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogEntry {
    /// The log's identifier, base64 as in the bundle.
    pub log_id: String,
    /// The index in the log.
    pub index: u64,
    /// How inclusion is shown.
    pub evidence: LogEvidence,
}

/// How inclusion in a log is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogEvidence {
    /// By an inclusion proof to a signed checkpoint.
    Proof,
    /// By the log's signed promise only.
    Promise,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verified_value_is_read_and_not_changed() {
        assert_eq!(Verified::for_test("value").get(), &"value");
    }
}
