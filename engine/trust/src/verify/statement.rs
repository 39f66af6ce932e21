//! What was signed: in-toto statements and cosign's simple signing payloads.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sigstore_types::HashAlgorithm;

use super::target::Target;
use super::text::{Refusal, refuse, shown};
use super::{COSIGN_SIGN, MAX_SUBJECT_DIGESTS, MAX_SUBJECTS, RejectCode, Statement, json};

/// The payload type of an in-toto statement.
pub(super) const IN_TOTO: &str = "application/vnd.in-toto+json";

/// The statement types that are read
/// (<https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>).
const TYPES: [&str; 2] = ["https://in-toto.io/Statement/v0.1", "https://in-toto.io/Statement/v1"];

/// What stands in `critical.type` of a container signature (cosign's `SIGNATURE_SPEC.md`).
const SIMPLE_TYPE: &str = "cosign container image signature";

/// The signed content, read but not yet believed.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    /// The subject itself is signed.
    Message,
    /// A simple signing payload.
    Simple { digest: String, annotations: BTreeMap<String, String> },
    /// An in-toto statement.
    InToto { predicate_type: String, statement: Value },
}

impl Payload {
    /// Reads an in-toto statement.
    pub(super) fn in_toto(bytes: &[u8]) -> Result<Self, Refusal> {
        let statement = json::parse(bytes, "the statement")?;
        let format = |message: String| refuse(RejectCode::Format, message);
        let fields =
            statement.as_object().ok_or_else(|| format("the statement is no object".into()))?;
        let kind = fields.get("_type").and_then(Value::as_str).unwrap_or_default();
        if !TYPES.contains(&kind) {
            return Err(format(format!("the statement's `_type` is `{}`", shown(kind))));
        }
        let predicate_type = fields
            .get("predicateType")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .ok_or_else(|| format("the statement has no `predicateType`".into()))?
            .to_owned();
        let subjects = fields
            .get("subject")
            .and_then(Value::as_array)
            .filter(|subjects| !subjects.is_empty())
            .ok_or_else(|| format("the statement names no subject".into()))?;
        if subjects.len() > MAX_SUBJECTS {
            return Err(refuse(
                RejectCode::Limit,
                format!("the statement names more than {MAX_SUBJECTS} subjects"),
            ));
        }
        for subject in subjects {
            let digests = subject
                .get("digest")
                .and_then(Value::as_object)
                .filter(|digests| digests.values().all(Value::is_string))
                .ok_or_else(|| format("a subject of the statement has no digest".into()))?;
            if digests.len() > MAX_SUBJECT_DIGESTS {
                return Err(refuse(
                    RejectCode::Limit,
                    format!("a subject has more than {MAX_SUBJECT_DIGESTS} digests"),
                ));
            }
        }
        Ok(Self::InToto { predicate_type, statement })
    }

    /// Reads a simple signing payload. Keys are compared by case, and a key in another case is
    /// refused, since readers that ignore case would take it.
    pub(super) fn simple(bytes: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(bytes, "the signed payload")?;
        let payload = value
            .as_object()
            .ok_or_else(|| refuse(RejectCode::Format, "the signed payload is no object"))?;
        let critical = object(payload, "critical")?;
        let image = object(critical, "image")?;
        let kind = text(critical, "type")?;
        if kind != SIMPLE_TYPE {
            return Err(refuse(
                RejectCode::Format,
                format!("the signed payload's `critical.type` is `{}`", shown(kind)),
            ));
        }
        let digest = text(image, "docker-manifest-digest")?.to_owned();
        let annotations = match exactly(payload, "optional")? {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Object(map)) => annotations(map),
            Some(_) => {
                return Err(refuse(
                    RejectCode::Format,
                    "the signed payload's `optional` is no object",
                ));
            }
        };
        Ok(Self::Simple { digest, annotations })
    }

    /// Returns the claimed predicate type.
    pub(super) fn predicate_type(&self) -> Option<&str> {
        match self {
            Self::Message | Self::Simple { .. } => None,
            Self::InToto { predicate_type, .. } => Some(predicate_type),
        }
    }

    /// Compares what was signed with `target` and returns what it says of it. That a message
    /// signature is about `target` is for the signature itself to show.
    pub(super) fn about(&self, target: &Target<'_>) -> Result<Statement, Refusal> {
        let other = |found: &str| {
            refuse(
                RejectCode::Subject,
                format!("it is about {}, not {}", shown(found), target.name()),
            )
        };
        match self {
            Self::Message => Ok(Statement::Signature { annotations: BTreeMap::new() }),
            Self::Simple { digest, annotations } => {
                let hash = digest.strip_prefix("sha256:");
                if hash.is_some_and(|hash| target.is(HashAlgorithm::Sha2256, hash)) {
                    Ok(Statement::Signature { annotations: annotations.clone() })
                } else {
                    Err(other(digest))
                }
            }
            Self::InToto { predicate_type, statement } => {
                let subjects = statement.get("subject").and_then(Value::as_array);
                let subjects = subjects.map(Vec::as_slice).unwrap_or_default();
                let Some(subject) = subjects.iter().find(|subject| matches(subject, target)) else {
                    return Err(other(&summary(subjects)));
                };
                if predicate_type == COSIGN_SIGN {
                    let notes = subject.get("annotations").and_then(Value::as_object);
                    return Ok(Statement::Signature {
                        annotations: notes.map(annotations).unwrap_or_default(),
                    });
                }
                Ok(Statement::Attestation {
                    predicate_type: predicate_type.clone(),
                    statement: statement.clone(),
                })
            }
        }
    }
}

/// Returns annotations as text: strings as they are, anything else as it is written in JSON.
fn annotations(map: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    map.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

fn matches(subject: &Value, target: &Target<'_>) -> bool {
    let digest = |key: &str| subject.get("digest")?.get(key)?.as_str();
    digest("sha256").is_some_and(|text| target.is(HashAlgorithm::Sha2256, text))
        || digest("sha512").is_some_and(|text| target.is(HashAlgorithm::Sha2512, text))
}

fn summary(subjects: &[Value]) -> String {
    let first = subjects
        .first()
        .and_then(|subject| subject.get("digest")?.as_object()?.iter().next())
        .map(|(key, value)| format!("{key}:{}", value.as_str().unwrap_or_default()));
    let first = first.unwrap_or_default();
    match subjects.len().saturating_sub(1) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Looks up a key that must not stand there in another case.
fn exactly<'v>(map: &'v Map<String, Value>, key: &str) -> Result<Option<&'v Value>, Refusal> {
    match map.keys().find(|found| found.as_str() != key && found.eq_ignore_ascii_case(key)) {
        Some(found) => Err(refuse(
            RejectCode::Format,
            format!("the signed payload has `{}` instead of `{key}`", shown(found)),
        )),
        None => Ok(map.get(key)),
    }
}

fn object<'v>(map: &'v Map<String, Value>, key: &str) -> Result<&'v Map<String, Value>, Refusal> {
    exactly(map, key)?.and_then(Value::as_object).ok_or_else(|| missing(key))
}

fn text<'v>(map: &'v Map<String, Value>, key: &str) -> Result<&'v str, Refusal> {
    exactly(map, key)?.and_then(Value::as_str).ok_or_else(|| missing(key))
}

fn missing(key: &str) -> Refusal {
    refuse(RejectCode::Format, format!("the signed payload has no `{key}`"))
}
