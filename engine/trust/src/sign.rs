//! Signatures and attestations with a key, in the forms that cosign writes.
//!
//! These functions are pure but for the randomness of ECDSA. They write nothing anywhere:
//! [`crate::attach`] does. No transparency log is asked, so cosign verifies the results with
//! `--insecure-ignore-tlog`.

use std::collections::BTreeMap;

use ambit_engine::digest::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::keys::{KeyError, SigningKey};
use crate::oci::media;

/// The predicate type of a signature in the form of an attestation.
pub const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// The predicate type of a statement of capabilities.
pub const CAPABILITIES: &str = "https://ambit.dev/attestation/capabilities/v1";

/// The predicate type of a verification summary (SLSA, "Verification Summary Attestation", v1).
pub const VERIFICATION_SUMMARY: &str = "https://slsa.dev/verification_summary/v1";

/// The payload type of in-toto statements in envelopes.
pub const IN_TOTO: &str = "application/vnd.in-toto+json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Statement<'a> {
    #[serde(rename = "_type")]
    kind: &'a str,
    subject: [Subject<'a>; 1],
    predicate_type: &'a str,
    predicate: &'a Value,
}

#[derive(Serialize)]
struct Subject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    digest: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bundle<'a> {
    media_type: &'a str,
    verification_material: Material,
    dsse_envelope: Envelope<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    public_key: Hint,
}

#[derive(Serialize)]
struct Hint {
    hint: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    payload: String,
    payload_type: &'a str,
    signatures: [EnvelopeSignature; 1],
}

#[derive(Serialize)]
struct EnvelopeSignature {
    #[serde(skip_serializing_if = "Option::is_none")]
    keyid: Option<&'static str>,
    sig: String,
}

/// Signs `subject` and returns a sigstore bundle, version 0.3: a statement of type [`COSIGN_SIGN`]
/// with the annotations in its subject.
///
/// # Errors
///
/// [`KeyError::Refused`].
///
/// # Examples
/// ```
/// # use std::collections::BTreeMap;
/// # use ambit_engine::digest::Digest;
/// # use ambit_trust::{keys::SigningKey, sign::signature_bundle};
/// let key = SigningKey::generate()?;
/// let bundle = signature_bundle(&key, &Digest::of(b"manifest"), &BTreeMap::new())?;
/// assert!(bundle.starts_with(br#"{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json""#));
/// # Ok::<(), ambit_trust::keys::KeyError>(())
/// ```
pub fn signature_bundle(
    key: &SigningKey,
    subject: &Digest,
    annotations: &BTreeMap<String, String>,
) -> Result<Vec<u8>, KeyError> {
    let predicate = Value::Object(serde_json::Map::new());
    bundle(key, subject, annotations, COSIGN_SIGN, &predicate)
}

/// Attests `predicate` about `subject` and returns a sigstore bundle, version 0.3.
///
/// # Errors
///
/// [`KeyError::Refused`].
pub fn attestation_bundle(
    key: &SigningKey,
    subject: &Digest,
    predicate_type: &str,
    predicate: &Value,
) -> Result<Vec<u8>, KeyError> {
    bundle(key, subject, &BTreeMap::new(), predicate_type, predicate)
}

fn bundle(
    key: &SigningKey,
    subject: &Digest,
    annotations: &BTreeMap<String, String>,
    predicate_type: &str,
    predicate: &Value,
) -> Result<Vec<u8>, KeyError> {
    let digest = subject.to_string();
    let subject = subject_of(None, &digest, annotations);
    let kind = "https://in-toto.io/Statement/v1";
    let payload = json(&Statement { kind, subject: [subject], predicate_type, predicate })?;
    json(&Bundle {
        media_type: media::BUNDLE_V03,
        verification_material: Material { public_key: Hint { hint: key.hint() } },
        dsse_envelope: envelope(key, &payload, None)?,
    })
}

/// A signature in cosign's older form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LegacySignature {
    /// The simple-signing payload, which is the layer.
    pub payload: Vec<u8>,
    /// The signature over the payload, base64.
    pub signature: String,
}

/// Signs `subject` in cosign's older form. `docker_reference` is the repository's name; verifiers
/// ignore it.
///
/// # Errors
///
/// [`KeyError::Refused`].
pub fn legacy_signature(
    key: &SigningKey,
    docker_reference: &str,
    subject: &Digest,
    annotations: &BTreeMap<String, String>,
) -> Result<LegacySignature, KeyError> {
    #[derive(Serialize)]
    struct Payload<'a> {
        critical: Critical<'a>,
        // cosign writes `null` where there are none.
        optional: Option<&'a BTreeMap<String, String>>,
    }
    #[derive(Serialize)]
    struct Critical<'a> {
        identity: BTreeMap<&'a str, &'a str>,
        image: BTreeMap<&'a str, &'a str>,
        #[serde(rename = "type")]
        kind: &'a str,
    }
    let digest = subject.to_string();
    let payload = json(&Payload {
        critical: Critical {
            identity: BTreeMap::from([("docker-reference", docker_reference)]),
            image: BTreeMap::from([("docker-manifest-digest", digest.as_str())]),
            kind: "cosign container image signature",
        },
        optional: Some(annotations).filter(|annotations| !annotations.is_empty()),
    })?;
    let signature = STANDARD.encode(key.sign(&payload)?);
    Ok(LegacySignature { payload, signature })
}

/// Attests `predicate` about `subject` in cosign's older form, and returns the DSSE envelope, which
/// is the layer.
///
/// # Errors
///
/// [`KeyError::Refused`].
pub fn legacy_attestation(
    key: &SigningKey,
    docker_reference: &str,
    subject: &Digest,
    predicate_type: &str,
    predicate: &Value,
) -> Result<Vec<u8>, KeyError> {
    let digest = subject.to_string();
    let annotations = BTreeMap::new();
    let subject = subject_of(Some(docker_reference), &digest, &annotations);
    let kind = "https://in-toto.io/Statement/v0.1";
    let payload = json(&Statement { kind, subject: [subject], predicate_type, predicate })?;
    json(&envelope(key, &payload, Some(""))?)
}

/// What a verification came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SummaryResult {
    /// The policy allowed it.
    Passed,
    /// The policy denied it.
    Failed,
}

/// Something that a summary names: a policy, or an attestation that was looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// Its digest.
    pub digest: Digest,
}

/// A verification summary. What `ambit` found under a policy, for those who trust `ambit` and
/// don't want to look themselves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VerificationSummary {
    /// Who verified.
    pub verifier: String,
    /// When.
    pub time: Timestamp,
    /// What was verified, as a reference.
    pub resource_uri: String,
    /// By which policy.
    pub policy: Resource,
    /// The attestations that were looked at.
    pub inputs: Vec<Resource>,
    /// What it came to.
    pub result: SummaryResult,
    /// The levels that were verified, such as `SLSA_BUILD_LEVEL_2`.
    pub levels: Vec<String>,
}

impl VerificationSummary {
    /// Returns the predicate of type [`VERIFICATION_SUMMARY`], with the field names of the
    /// specification (<https://slsa.dev/spec/v1.0/verification_summary>).
    #[must_use]
    pub fn predicate(&self) -> Value {
        let resource = |resource: &Resource| {
            let digest = resource.digest.to_string();
            let hex = digest.strip_prefix("sha256:").unwrap_or(&digest);
            serde_json::json!({"uri": resource.uri, "digest": {"sha256": hex}})
        };
        let inputs: Vec<Value> = self.inputs.iter().map(resource).collect();
        serde_json::json!({
            "verifier": {"id": self.verifier},
            "timeVerified": self.time.to_string(),
            "resourceUri": self.resource_uri,
            "policy": resource(&self.policy),
            "inputAttestations": inputs,
            "verificationResult": match self.result {
                SummaryResult::Passed => "PASSED",
                SummaryResult::Failed => "FAILED",
            },
            "verifiedLevels": self.levels,
            "slsaVersion": "1.0",
        })
    }
}

fn subject_of<'a>(
    name: Option<&'a str>,
    digest: &'a str,
    annotations: &'a BTreeMap<String, String>,
) -> Subject<'a> {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    Subject { name, digest: BTreeMap::from([("sha256", hex)]), annotations }
}

fn envelope(
    key: &SigningKey,
    payload: &[u8],
    keyid: Option<&'static str>,
) -> Result<Envelope<'static>, KeyError> {
    let sig = STANDARD.encode(key.sign(&pre_authentication(IN_TOTO, payload))?);
    Ok(Envelope {
        payload: STANDARD.encode(payload),
        payload_type: IN_TOTO,
        signatures: [EnvelopeSignature { keyid, sig }],
    })
}

/// Returns what is signed of an envelope (DSSE protocol 1.0.0, "PAE",
/// <https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md>).
#[must_use]
pub fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, KeyError> {
    serde_json::to_vec(value).map_err(|_| KeyError::Refused)
}

#[cfg(test)]
mod tests;
