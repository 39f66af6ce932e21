//! What evaluation says, in the form in which reports print it.

use std::collections::BTreeMap;

use ambit_engine::digest::Digest;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::FetchError;
use crate::policy::Mode;
use crate::verify::{
    Claimed, LogEvidence, Reject, RejectCode, Signed, SignedBy, Statement, TimeSource,
};

/// Whether a policy is satisfied.
#[derive(Clone, Copy, Debug, Eq, PartialEq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is.
    Satisfied,
    /// It isn't.
    Unsatisfied,
    /// Something that couldn't be fetched might have satisfied it.
    Unknown,
}

impl Outcome {
    /// Returns the stable word for this outcome.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Satisfied => "satisfied",
            Self::Unsatisfied => "unsatisfied",
            Self::Unknown => "unknown",
        }
    }
}

/// What became of one policy.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PolicyOutcome {
    /// The policy's name.
    pub policy: String,
    /// Where it stands, `trust.yaml:3`.
    pub origin: String,
    /// What an unsatisfied policy means.
    #[serde(serialize_with = "mode")]
    #[schemars(with = "String")]
    pub mode: Mode,
    /// Whether it is satisfied.
    pub outcome: Outcome,
    /// The distinct signers who each satisfy an authority alone, sorted.
    pub signers: Vec<String>,
    /// The authorities, in the order of the policy.
    pub authorities: Vec<AuthorityOutcome>,
    /// Why it is not satisfied, beside the authorities.
    pub reasons: Vec<Reason>,
    /// What may be there and wasn't seen; only where the outcome is unknown.
    pub gaps: Vec<Gap>,
    /// What the policy's Rego wants to be known.
    pub warnings: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn mode<S: serde::Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.as_str())
}

/// What became of one authority.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct AuthorityOutcome {
    /// The authority's name.
    pub name: String,
    /// Whether it is satisfied.
    pub satisfied: bool,
    /// Whether it passes whatever was found.
    #[serde(rename = "static")]
    pub passes: bool,
    /// The distinct signers who satisfy it alone, sorted.
    pub signers: Vec<String>,
    /// What counts for it, in order of digest.
    pub evidence: Vec<Evidence>,
    /// Names of the attestations that are missing.
    pub missing: Vec<String>,
    /// What doesn't count for it, and why; in order of place.
    pub rejects: Vec<RejectedCandidate>,
    /// What its Rego wants to be known; part of the policy's.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A reason for an outcome.
#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub struct Reason {
    /// The code.
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
}

/// Something that may be there and wasn't seen.
#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub struct Gap {
    /// The code.
    pub code: &'static str,
    /// What couldn't be seen, in one line.
    pub message: String,
}

impl From<&FetchError> for Gap {
    fn from(error: &FetchError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl Gap {
    /// Says that there are more candidates than are looked at.
    #[must_use]
    pub fn truncated(limit: usize) -> Self {
        let message = format!("there are more than {limit} candidates, and no more are looked at");
        Self { code: "registry-limit", message }
    }
}

/// A signature or attestation that counts.
#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub struct Evidence {
    /// Where it was found.
    pub place: String,
    /// The form in which it is stored.
    pub format: &'static str,
    /// The digest over what was verified.
    #[schemars(with = "String")]
    pub digest: Digest,
    /// The name of the attestation rule that it satisfies; none for a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attestation: Option<String>,
    /// The predicate type; none for a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicate_type: Option<String>,
    /// The SHA-256 of the signer's key, for a signature by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub key: Option<Digest>,
    /// The signer's identity, for a signature with a certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The OIDC issuer, for a signature with a certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Further claims of the certificate.
    pub claims: BTreeMap<&'static str, String>,
    /// Annotations of the signature.
    pub annotations: BTreeMap<String, String>,
    /// The verified times of signing, earliest first.
    pub times: Vec<TimeView>,
    /// The verified log entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogView>,
}

/// A verified time of signing, as printed.
#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub struct TimeView {
    /// The time, RFC 3339.
    pub time: String,
    /// `log` or `timestamp-authority`.
    pub source: &'static str,
}

/// A verified log entry, as printed.
#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub struct LogView {
    /// The log's identifier, base64.
    pub id: String,
    /// The index in the log.
    pub index: u64,
    /// `proof` or `promise`.
    pub evidence: &'static str,
}

impl Evidence {
    pub(super) fn new(place: &str, format: &'static str, signed: &Signed) -> Self {
        let mut evidence = Self {
            place: place.to_owned(),
            format,
            digest: signed.evidence,
            attestation: None,
            predicate_type: None,
            key: None,
            identity: None,
            issuer: None,
            claims: BTreeMap::new(),
            annotations: BTreeMap::new(),
            times: signed
                .times
                .iter()
                .map(|time| TimeView {
                    time: time.time.to_string(),
                    source: match time.source {
                        TimeSource::Log => "log",
                        TimeSource::TimestampAuthority => "timestamp-authority",
                    },
                })
                .collect(),
            log: signed.log.as_ref().map(|log| LogView {
                id: log.log_id.clone(),
                index: log.index,
                evidence: match log.evidence {
                    LogEvidence::Proof => "proof",
                    LogEvidence::Promise => "promise",
                },
            }),
        };
        match &signed.signer {
            SignedBy::Key { fingerprint } => evidence.key = Some(*fingerprint),
            SignedBy::Certificate { identity, issuer, claims, .. } => {
                evidence.identity = Some(identity.clone());
                evidence.issuer = Some(issuer.clone());
                evidence.claims =
                    claims.iter().map(|(claim, value)| (claim.key(), value.clone())).collect();
            }
        }
        match &signed.statement {
            Statement::Signature { annotations } => evidence.annotations.clone_from(annotations),
            Statement::Attestation { predicate_type, .. } => {
                evidence.predicate_type = Some(predicate_type.clone());
            }
        }
        evidence
    }

    /// Returns the signer in a form that is equal for equal signers: a key by its fingerprint, the
    /// holder of a certificate by identity and issuer, whatever certificate it was.
    pub(super) fn signer(&self) -> String {
        match (&self.key, &self.identity) {
            (Some(key), _) => key.to_string(),
            (None, identity) => {
                let identity = identity.as_deref().unwrap_or_default();
                format!("{identity} ({})", self.issuer.as_deref().unwrap_or_default())
            }
        }
    }

    /// Returns the input of a policy's module about this, with policy-controller's names first.
    pub(super) fn input(&self) -> Value {
        let mut input = json!({
            "id": self.digest,
            "subject": self.identity.clone().unwrap_or_default(),
            "issuer": self.issuer.clone().unwrap_or_default(),
            "signer": self.signer(),
            "times": self.times.iter().map(|time| time.time.clone()).collect::<Vec<_>>(),
            "annotations": self.annotations,
            "claims": self.claims,
        });
        let renamed = |key: &str| match key {
            "githubWorkflowRepository" => "githubWorkflowRepo".to_owned(),
            other => other.to_owned(),
        };
        if let Some(input) = input.as_object_mut() {
            for (key, value) in self.claims.iter().filter(|(key, _)| key.starts_with("githubW")) {
                input.insert(renamed(key), value.clone().into());
            }
            if let Some(predicate_type) = &self.predicate_type {
                input.insert("predicateType".to_owned(), predicate_type.clone().into());
            }
            if let Some(log) = &self.log {
                input.insert("logIndex".to_owned(), log.index.into());
            }
        }
        input
    }
}

/// A candidate that doesn't count for an authority.
#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub struct RejectedCandidate {
    /// Where it was found.
    pub place: String,
    /// The form in which it is stored.
    pub format: &'static str,
    /// The code.
    #[serde(serialize_with = "code")]
    #[schemars(with = "String")]
    pub code: RejectCode,
    /// What was found and what was wanted, in one line.
    pub message: String,
    /// What the candidate says of its signer; believe none of it.
    pub claimed: Claimed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn code<S: serde::Serializer>(code: &RejectCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

impl RejectedCandidate {
    pub(super) fn new(place: &str, format: &'static str, reject: Reject) -> Self {
        Self {
            place: place.to_owned(),
            format,
            code: reject.code,
            message: reject.message,
            claimed: reject.claimed,
        }
    }
}
