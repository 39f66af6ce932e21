//! The library's errors as codes.
//!
//! Whatever isn't named here, since the library's enums are open, is [`RejectCode::Invalid`]; so is
//! a signature that doesn't verify.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's enums are open, and what isn't known is a rejection"
)]

use sigstore_verify::{CertificateError, Error, TimestampError, TransparencyLogError};

use super::RejectCode;
use super::text::{Refusal, refuse, shown};

/// Turns an error of the library into a refusal.
pub(super) fn refusal(error: &Error) -> Refusal {
    refuse(code(error), shown(&error.to_string()))
}

fn code(error: &Error) -> RejectCode {
    match error {
        Error::IdentityMismatch { .. } => RejectCode::Identity,
        Error::IssuerMismatch { .. } => RejectCode::Issuer,
        Error::ArtifactMismatch(_) => RejectCode::Subject,
        Error::UnsupportedArtifact(_) => RejectCode::KeyAlgorithm,
        Error::Certificate(error) => certificate(error),
        Error::TransparencyLog(error) => log(error),
        Error::Timestamp(error) => timestamp(error),
        Error::InvalidBundle(_) | Error::UnsupportedBundle(_) | Error::Types(_) => {
            RejectCode::Format
        }
        // During verification, this is a root without logs for certificates.
        Error::InvalidTrustRoot(_) => RejectCode::Sct,
        Error::TrustRoot(_) | Error::TrustedCertificate(_) => RejectCode::Chain,
        Error::Crypto(error) => crypto(error),
        Error::Bundle(error) => structure(error),
        _ => RejectCode::Invalid,
    }
}

fn certificate(error: &CertificateError) -> RejectCode {
    match error {
        CertificateError::Malformed(_) => RejectCode::Format,
        CertificateError::ChainInvalid(_) | CertificateError::NoValidAuthority { .. } => {
            RejectCode::Chain
        }
        CertificateError::NotYetValid { .. } | CertificateError::Expired { .. } => RejectCode::Time,
        CertificateError::Sct(_) => RejectCode::Sct,
        _ => RejectCode::Invalid,
    }
}

fn log(error: &TransparencyLogError) -> RejectCode {
    match error {
        TransparencyLogError::UnknownLog { .. } => RejectCode::TlogMissing,
        TransparencyLogError::InclusionProof(_)
        | TransparencyLogError::Checkpoint(_)
        | TransparencyLogError::InclusionPromise(_) => RejectCode::TlogInvalid,
        TransparencyLogError::EntryMismatch(_) => RejectCode::TlogMismatch,
        TransparencyLogError::IntegratedTime(_) => RejectCode::Time,
        TransparencyLogError::MalformedEntry(_) => RejectCode::Format,
        _ => RejectCode::Invalid,
    }
}

fn timestamp(error: &TimestampError) -> RejectCode {
    match error {
        TimestampError::Invalid(_) | TimestampError::OutsideAuthorityValidity { .. } => {
            RejectCode::Time
        }
        TimestampError::NoVerifiedTimestamp(_) => RejectCode::TimestampMissing,
        _ => RejectCode::Invalid,
    }
}

fn crypto(error: &sigstore_crypto::Error) -> RejectCode {
    match error {
        sigstore_crypto::Error::UnsupportedAlgorithm(_) => RejectCode::KeyAlgorithm,
        sigstore_crypto::Error::InvalidCertificate(_) | sigstore_crypto::Error::Der(_) => {
            RejectCode::Format
        }
        _ => RejectCode::Invalid,
    }
}

fn structure(error: &sigstore_bundle::Error) -> RejectCode {
    use sigstore_bundle::Error as Shape;
    match error {
        Shape::MissingInclusionPromise(_)
        | Shape::MissingInclusionProof(_)
        | Shape::MissingSigningTimeEvidence => RejectCode::TlogMissing,
        Shape::MissingTimestamp => RejectCode::TimestampMissing,
        Shape::MissingCheckpoint
        | Shape::LogIndexOutOfRange { .. }
        | Shape::CheckpointRootMismatch => RejectCode::TlogInvalid,
        _ => RejectCode::Format,
    }
}
