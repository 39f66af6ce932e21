//! Layers of cosign's `.sig` and `.att` tags, as the bundles that they would be
//! (<https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>).
//!
//! These tags carry a promise of the log and no inclusion proof, so that only this module makes
//! bundles of version 0.1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sigstore_types::{
    Bundle, DerCertificate, MediaType, MessageSignature, PublicKeyIdentifier, Rfc3161Timestamp,
    SignatureBytes, SignatureContent, TimestampToken, TimestampVerificationData,
    TransparencyLogEntry, VerificationMaterial, VerificationMaterialContent, X509Certificate,
};

use super::bundle;
use super::material::Material;
use super::statement::Payload;
use super::text::{Refusal, refuse, shown};
use super::{MAX_CHAIN, RejectCode, json};
use crate::candidate::LegacyLayer;

/// Reads a `.sig` layer.
pub(super) fn signature(layer: &LegacyLayer) -> Result<Material, Refusal> {
    bounds(layer)?;
    let payload = Payload::simple(&layer.payload)?;
    let signature = decode(&layer.signature, "the signature")?;
    let content =
        SignatureContent::MessageSignature(MessageSignature::new(SignatureBytes::new(signature)));
    let bundle = assemble(layer, content)?;
    Ok(Material { bundle, payload, signed: Some(layer.payload.clone()) })
}

/// Reads a `.att` layer.
pub(super) fn attestation(layer: &LegacyLayer) -> Result<Bundle, Refusal> {
    bounds(layer)?;
    // Read twice: once to refuse keys that stand twice, once into the envelope's type, which
    // admits exactly one signature.
    json::parse(&layer.payload, "the envelope")?;
    let envelope = serde_json::from_slice(&layer.payload).map_err(|error| {
        refuse(
            RejectCode::Format,
            format!("it is not a signed envelope: {}", shown(&error.to_string())),
        )
    })?;
    assemble(layer, SignatureContent::DsseEnvelope(envelope))
}

fn bounds(layer: &LegacyLayer) -> Result<(), Refusal> {
    let annotations = [&layer.certificate, &layer.chain, &layer.bundle, &layer.timestamp];
    let total = annotations
        .into_iter()
        .flatten()
        .map(String::len)
        .fold(layer.payload.len().saturating_add(layer.signature.len()), usize::saturating_add);
    bundle::size(total, "the layer")
}

fn assemble(layer: &LegacyLayer, content: SignatureContent) -> Result<Bundle, Refusal> {
    let certificates = match &layer.certificate {
        Some(pem) => {
            let mut certificates = pem_certificates(pem)?;
            if certificates.len() != 1 {
                return Err(refuse(
                    RejectCode::Format,
                    "the certificate annotation doesn't hold one certificate",
                ));
            }
            if let Some(chain) = &layer.chain {
                certificates.extend(pem_certificates(chain)?);
            }
            certificates
        }
        None => Vec::new(),
    };
    bundle::limit(certificates.len(), MAX_CHAIN, "certificates")?;
    let signer = if certificates.is_empty() {
        VerificationMaterialContent::PublicKey(PublicKeyIdentifier::new(""))
    } else {
        let certificates = certificates.into_iter().map(X509Certificate::new).collect();
        VerificationMaterialContent::X509CertificateChain { certificates }
    };
    let entries = match &layer.bundle {
        Some(text) => vec![entry(text)?],
        None => Vec::new(),
    };
    // Version 0.1 is the one that has a promise and no proof; without an entry there is no promise
    // either, and version 0.2 is the one that has a chain and may have timestamps only.
    let version = if entries.is_empty() { MediaType::Bundle0_2 } else { MediaType::Bundle0_1 };
    let tokens = match &layer.timestamp {
        Some(text) => vec![Rfc3161Timestamp::new(token(text)?)],
        None => Vec::new(),
    };
    let material = VerificationMaterial::new(signer)
        .with_tlog_entries(entries)
        .with_timestamp_verification_data(TimestampVerificationData::new(tokens));
    Ok(Bundle::new(version, material, content))
}

/// Reads the log entry of the `bundle` annotation.
fn entry(text: &str) -> Result<TransparencyLogEntry, Refusal> {
    let value = json::parse(text.as_bytes(), "the log entry")?;
    let bad = |what: &str| refuse(RejectCode::Format, format!("the log entry has no {what}"));
    let promise = value
        .get("SignedEntryTimestamp")
        .and_then(Value::as_str)
        .ok_or_else(|| bad("`SignedEntryTimestamp`"))?;
    let payload: &Map<String, Value> =
        value.get("Payload").and_then(Value::as_object).ok_or_else(|| bad("`Payload`"))?;
    let body = payload.get("body").and_then(Value::as_str).ok_or_else(|| bad("`body`"))?;
    let body = decode(body, "the body of the log entry")?;
    let number = |key: &str| payload.get(key).and_then(Value::as_u64);
    let index = number("logIndex").ok_or_else(|| bad("valid `logIndex`"))?;
    let time = number("integratedTime").ok_or_else(|| bad("valid `integratedTime`"))?;
    let log = payload
        .get("logID")
        .and_then(Value::as_str)
        .and_then(|text| sigstore_types::Sha256Hash::from_hex(text).ok())
        .ok_or_else(|| bad("valid `logID`"))?;
    let logged = json::parse(&body, "the body of the log entry")?;
    // As JSON, since the library's type of a time can't be named from here.
    let entry = serde_json::json!({
        "logIndex": index.to_string(),
        "logId": { "keyId": log.to_base64() },
        "kindVersion": { "kind": logged.get("kind"), "version": logged.get("apiVersion") },
        "integratedTime": time.to_string(),
        "inclusionPromise": { "signedEntryTimestamp": promise },
        "canonicalizedBody": STANDARD.encode(&body),
    });
    serde_json::from_value(entry).map_err(|error| {
        refuse(
            RejectCode::Format,
            format!("the log entry can't be read: {}", shown(&error.to_string())),
        )
    })
}

/// Reads the token of the `rfc3161timestamp` annotation.
fn token(text: &str) -> Result<TimestampToken, Refusal> {
    let value = json::parse(text.as_bytes(), "the timestamp")?;
    let token = value
        .get("SignedRFC3161Timestamp")
        .and_then(Value::as_str)
        .ok_or_else(|| refuse(RejectCode::Format, "the timestamp has no token"))?;
    Ok(TimestampToken::new(decode(token, "the timestamp")?))
}

fn decode(text: &str, what: &str) -> Result<Vec<u8>, Refusal> {
    STANDARD.decode(text).map_err(|_| refuse(RejectCode::Format, format!("{what} is not base64")))
}

/// Reads certificates in PEM, in order. Text between them is allowed, as in files of authorities.
pub(super) fn pem_certificates(text: &str) -> Result<Vec<DerCertificate>, Refusal> {
    const END: &str = "-----END CERTIFICATE-----";
    let mut certificates = Vec::new();
    for part in text.split_inclusive(END).filter(|part| part.contains("-----BEGIN")) {
        bundle::limit(certificates.len().saturating_add(1), MAX_CHAIN, "certificates")?;
        let certificate = DerCertificate::from_pem(part).map_err(|error| {
            refuse(
                RejectCode::Format,
                format!("a certificate can't be read: {}", shown(&error.to_string())),
            )
        })?;
        certificates.push(certificate);
    }
    Ok(certificates)
}
