//! Why a candidate doesn't count.

use schemars::JsonSchema;
use serde::Serialize;

/// Why a candidate doesn't count, as a stable code.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RejectCode {
    /// The signature is not one of this key over these bytes.
    Invalid,
    /// It is signed with a key that the authority doesn't name.
    Key,
    /// The key's algorithm or hash is not what the authority allows.
    KeyAlgorithm,
    /// The certificate's subject alternative name matches no identity, or there is not exactly one.
    Identity,
    /// The certificate's issuer matches no identity.
    Issuer,
    /// A claim of the certificate differs.
    Claim,
    /// It is about another digest.
    Subject,
    /// Its predicate type is none that is asked for.
    PredicateType,
    /// An annotation is missing or differs.
    Annotation,
    /// It has no log entry where one is asked for, or only a promise where a proof is asked for.
    TlogMissing,
    /// The log entry is about another signature, key or payload.
    TlogMismatch,
    /// The log's proof, checkpoint or promise doesn't verify.
    TlogInvalid,
    /// It has no timestamp where one is asked for.
    TimestampMissing,
    /// A time is in the future, outside of a validity, or can't be verified.
    Time,
    /// The certificate leads to no trusted authority at the time of signing.
    Chain,
    /// The certificate's transparency timestamp is missing or doesn't verify.
    Sct,
    /// It can't be read, or isn't in the form that it says.
    Format,
    /// Something in it is larger or more than is read.
    Limit,
    /// It is labelled as an older format than it was found as, which would skip checks.
    Downgrade,
    /// It is in a format that the authority doesn't accept.
    FormatNotAccepted,
    /// It is older than the authority allows.
    Age,
    /// The Rego of the policy refuses it.
    Policy,
}

impl RejectCode {
    /// Returns the code as reports print it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "signature-invalid",
            Self::Key => "signature-other-key",
            Self::KeyAlgorithm => "signature-key-algorithm",
            Self::Identity => "signature-identity",
            Self::Issuer => "signature-issuer",
            Self::Claim => "signature-claim",
            Self::Subject => "signature-subject",
            Self::PredicateType => "signature-predicate-type",
            Self::Annotation => "signature-annotation",
            Self::TlogMissing => "signature-tlog-missing",
            Self::TlogMismatch => "signature-tlog-mismatch",
            Self::TlogInvalid => "signature-tlog-invalid",
            Self::TimestampMissing => "signature-timestamp-missing",
            Self::Time => "signature-time",
            Self::Chain => "signature-chain",
            Self::Sct => "signature-sct",
            Self::Format => "signature-format",
            Self::Limit => "signature-limit",
            Self::Downgrade => "signature-downgrade",
            Self::FormatNotAccepted => "signature-format-not-accepted",
            Self::Age => "signature-age",
            Self::Policy => "signature-policy",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::Invalid | Self::Subject | Self::TlogMismatch | Self::TlogInvalid => {
                "find out who pushed it, and have this digest signed again"
            }
            Self::Key => "have it signed by a listed key, or add the key to the trust policy",
            Self::KeyAlgorithm => "sign with ECDSA P-256 and SHA-256, or set `hashAlgorithm`",
            Self::Identity | Self::Issuer | Self::Claim => {
                "compare what was found with the trust policy, character by character"
            }
            Self::PredicateType => "attach an attestation of the type that is asked for",
            Self::Annotation => "sign with the annotations that are asked for",
            Self::TlogMissing => {
                "upload to the log when signing; for a key that is not logged on purpose, pass \
                 `--insecure-ignore-tlog` or set `ctlog: {require: none}`"
            }
            Self::TimestampMissing => "sign with a timestamp authority of the trust root",
            Self::Time => "check this machine's clock, and sign again",
            Self::Chain => "name the trust root of the signer's authority",
            Self::Sct => "sign again; for an authority without such a log, ignore the SCT",
            Self::Format | Self::Limit | Self::Downgrade => {
                "sign again with a current cosign or `ambit sign`"
            }
            Self::FormatNotAccepted => "set `signatureFormat: any`, or sign in the other format",
            Self::Age => "sign or attest again",
            Self::Policy => "read the policy's Rego, and the statement with `--format json`",
        }
    }

    /// Tells whether the candidate is wrong in itself, whoever is trusted, rather than made by
    /// somebody or for something else.
    #[must_use]
    pub fn is_wrong(self) -> bool {
        match self {
            Self::Invalid
            | Self::Subject
            | Self::TlogMismatch
            | Self::TlogInvalid
            | Self::Time
            | Self::Sct
            | Self::Format
            | Self::Limit
            | Self::Downgrade => true,
            Self::Key
            | Self::KeyAlgorithm
            | Self::Identity
            | Self::Issuer
            | Self::Claim
            | Self::PredicateType
            | Self::Annotation
            | Self::TlogMissing
            | Self::TimestampMissing
            | Self::Chain
            | Self::FormatNotAccepted
            | Self::Age
            | Self::Policy => false,
        }
    }
}

/// Why one candidate doesn't count for one authority.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Reject {
    /// The code.
    pub code: RejectCode,
    /// What was found and what was wanted, in one line.
    pub message: String,
    /// What the candidate says of its signer; believe none of it.
    pub claimed: Claimed,
}

/// What a candidate says of its signer, unverified.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Claimed {
    /// The subject alternative name of its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The issuer in its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The key hint of its bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_hint: Option<String>,
    /// Its predicate type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicate_type: Option<String>,
}
