//! Reading a sigstore bundle: bounds first, then the form that it claims, then its parts.

use std::collections::BTreeSet;

use serde_json::Value;
use sigstore_types::{Bundle, MediaType, VerificationMaterialContent};

use super::text::{Refusal, refuse, shown};
use super::{MAX_CHAIN, MAX_LOG_ENTRIES, MAX_TIMESTAMPS, RejectCode, json};
use crate::oci::MAX_EVIDENCE_BYTES;

/// Where a bundle was found, which bounds what it may claim to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Found {
    /// As a referrer. Only version 0.3 is written there.
    AsReferrer,
    /// In a file.
    InFile,
}

/// Reads a bundle.
pub(super) fn read(bytes: &[u8], found: Found) -> Result<Bundle, Refusal> {
    size(bytes.len(), "the bundle")?;
    let value = json::parse(bytes, "the bundle")?;
    let material = value.get("verificationMaterial");
    let count = |value: Option<&Value>| value.and_then(Value::as_array).map_or(0, Vec::len);
    let at = |key: &str| material.and_then(|material| material.get(key));
    let timestamps = at("timestampVerificationData").and_then(|data| data.get("rfc3161Timestamps"));
    let chain = at("x509CertificateChain").and_then(|chain| chain.get("certificates"));
    limit(count(at("tlogEntries")), MAX_LOG_ENTRIES, "log entries")?;
    limit(count(timestamps), MAX_TIMESTAMPS, "timestamps")?;
    limit(count(chain), MAX_CHAIN, "certificates")?;

    let bundle: Bundle = serde_json::from_slice(bytes).map_err(|error| {
        refuse(
            RejectCode::Format,
            format!("it is not a sigstore bundle: {}", shown(&error.to_string())),
        )
    })?;
    check(&bundle)?;
    let old = bundle.media_type() != MediaType::Bundle0_3;
    // The media type is not signed. Version 0.1 asks for no inclusion proof, so that a label alone
    // would switch that check off. A lone certificate came with version 0.3.
    let lone =
        matches!(bundle.verification_material.content, VerificationMaterialContent::Certificate(_));
    if old && (found == Found::AsReferrer || lone) {
        return Err(refuse(
            RejectCode::Downgrade,
            format!("it is labelled `{}`, and is of version 0.3", bundle.media_type()),
        ));
    }
    Ok(bundle)
}

/// Bounds what is in a bundle, and refuses one log entry that is there twice.
pub(super) fn check(bundle: &Bundle) -> Result<(), Refusal> {
    let mut entries = BTreeSet::new();
    for entry in &bundle.verification_material.tlog_entries {
        if !entries.insert((entry.log_id.key_id.as_bytes().to_vec(), entry.log_index.get())) {
            return Err(refuse(RejectCode::Format, "it has one log entry twice"));
        }
        let proof = entry.inclusion_proof.as_ref();
        let checkpoint = proof.and_then(|proof| proof.checkpoint.checkpoint());
        let signatures = checkpoint.map_or(0, |checkpoint| checkpoint.signatures().len());
        limit(signatures, MAX_CHAIN, "signatures under a checkpoint")?;
        let hashes = proof.map_or(0, |proof| proof.hashes.len());
        // A tree of 2^64 leaves has paths of 64 hashes.
        limit(hashes, 64, "hashes in a proof")?;
    }
    Ok(())
}

/// Bounds a size in bytes.
pub(super) fn size(found: usize, what: &str) -> Result<(), Refusal> {
    if found > MAX_EVIDENCE_BYTES {
        return Err(refuse(
            RejectCode::Limit,
            format!("{what} is larger than {MAX_EVIDENCE_BYTES} bytes"),
        ));
    }
    Ok(())
}

/// Bounds a count.
pub(super) fn limit(found: usize, limit: usize, what: &str) -> Result<(), Refusal> {
    if found > limit {
        return Err(refuse(RejectCode::Limit, format!("it has {found} {what}, over {limit}")));
    }
    Ok(())
}
