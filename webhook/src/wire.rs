//! What an API server sends and what it takes for an answer: `AdmissionReview` of
//! `admission.k8s.io/v1` and `v1beta1`
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>).
//!
//! Reading is in two steps, so that a review that makes no sense still gets an answer with its `uid`
//! where it has one: an API server shows the text of such an answer, and of nothing else.
//!
//! # Invariants
//!
//! - An answer has the version and the `uid` of its review.
//! - A denial has a code of 400 or more, a reason and a message; an allowance has no status.
//! - There is a patch with its type, or neither.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The largest review. An UPDATE carries an object twice, and etcd takes 1.5 MiB by default.
pub const MAX_BODY_BYTES: usize = 8 << 20;

/// The longest `uid` that is repeated, in bytes; an API server sends 36.
const MAX_UID_BYTES: usize = 128;

/// The version of a review.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Version {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`, which servers still send where it is asked for.
    V1Beta1,
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        [Self::V1, Self::V1Beta1].into_iter().find(|version| version.as_str() == text)
    }

    /// Returns the `apiVersion`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Why a body is no review.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct WireError {
    /// The version and `uid` by which an answer can be given; `None` where there is none to give.
    pub answerable: Option<(Version, String)>,
    /// What is wrong.
    pub message: String,
}

impl WireError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "review-invalid"
    }
}

/// What is asked about one object.
#[derive(Clone, Debug)]
pub struct Review {
    /// The version in which the answer has to be.
    pub version: Version,
    /// The question.
    pub request: Request,
}

/// A kind, as the API server names it.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub struct Kind {
    /// The group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Kind {
    /// Returns `apiVersion` as objects of this kind have it.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A resource, as the API server names it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct Resource {
    /// The group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version.
    #[serde(default)]
    pub version: String,
    /// The plural name.
    pub resource: String,
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is removed.
    Delete,
    /// It is connected to, as by `exec`.
    Connect,
}

impl Operation {
    /// Returns the stable word for this operation.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct User {
    /// The name.
    #[serde(default)]
    pub username: String,
    /// The groups.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// A question about one object.
///
/// Nothing rests on `name`: it is absent for objects whose name the server makes up, and for each
/// item of a collection that is deleted.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The identifier that the answer repeats.
    pub uid: String,
    /// The kind of the object, in the version that the webhook asked for.
    pub kind: Kind,
    /// The resource.
    pub resource: Resource,
    /// The subresource; empty for none.
    #[serde(default)]
    pub sub_resource: String,
    /// The object's name; may be empty.
    #[serde(default)]
    pub name: String,
    /// The namespace; empty for objects of the cluster.
    #[serde(default)]
    pub namespace: String,
    /// What is done.
    pub operation: Operation,
    /// Who asks.
    #[serde(default)]
    pub user_info: User,
    /// Whether nothing will be stored.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// The object as it will be.
    #[serde(default)]
    pub object: Option<Box<RawValue>>,
    /// The object as it is.
    #[serde(default)]
    pub old_object: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OnlyUid {
    uid: String,
}

/// Reads a review.
///
/// # Errors
///
/// [`WireError`], with the `uid` where there is one.
pub fn decode(body: &[u8]) -> Result<Review, WireError> {
    let unanswerable = |message: String| WireError { answerable: None, message };
    let text = std::str::from_utf8(body)
        .map_err(|_| unanswerable("the body is no UTF-8 text".to_owned()))?;
    let envelope: Envelope<'_> = serde_json::from_str(text)
        .map_err(|error| unanswerable(format!("the body is no AdmissionReview: {error}")))?;
    let version =
        Version::parse(&envelope.api_version).filter(|_| envelope.kind == "AdmissionReview");
    let Some(version) = version else {
        return Err(unanswerable(format!(
            "`{} {}` is no review that can be answered; `admission.k8s.io/v1 AdmissionReview` is",
            clip(&envelope.api_version),
            clip(&envelope.kind)
        )));
    };
    let raw =
        envelope.request.ok_or_else(|| unanswerable("the review has no request".to_owned()))?;
    let uid = serde_json::from_str::<OnlyUid>(raw.get()).ok().map(|only| only.uid);
    let uid = uid.filter(|uid| !uid.is_empty() && uid.len() <= MAX_UID_BYTES);
    let wrong =
        |message: String| WireError { answerable: uid.clone().map(|uid| (version, uid)), message };
    let request: Request = serde_json::from_str(raw.get())
        .map_err(|error| wrong(format!("the request can't be read: {error}")))?;
    if uid.is_none() {
        return Err(wrong("the request has no `uid` that can be repeated".to_owned()));
    }
    Ok(Review { version, request })
}

fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

/// What is answered.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Answer {
    /// Why not; `None` for an allowance.
    pub denied: Option<Status>,
    /// What the person who asked should know.
    pub warnings: Vec<String>,
    /// What the audit log keeps. Keys have no slash, since the server puts the webhook's name and
    /// one in front.
    pub annotations: BTreeMap<String, String>,
    /// Changes to the object; only the mutating webhook may have some.
    pub patch: Vec<Replace>,
}

/// Why something is denied (`metav1.Status`).
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Status {
    /// An HTTP status of 400 or more.
    pub code: u16,
    /// The server's word for it, as `Forbidden`.
    pub reason: &'static str,
    /// All that a person needs to know; nothing else is shown.
    pub message: String,
    /// The same for machines.
    pub details: Details,
}

/// The parts of a denial.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The object's name, where it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's group, where it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The object's kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// One for each finding or error.
    pub causes: Vec<Cause>,
    /// How many seconds to wait before trying again, where that will help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One reason of a denial.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Cause {
    /// The stable code.
    pub reason: String,
    /// What was found, and what to do.
    pub message: String,
    /// The field, as `spec.components[0].image`.
    pub field: String,
}

/// A `replace` of JSON Patch (RFC 6902). There is no other operation, and the place exists.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Replace {
    op: &'static str,
    /// The JSON pointer.
    pub path: String,
    /// The new text.
    pub value: String,
}

impl Replace {
    /// Replaces the text at `path`.
    #[must_use]
    pub fn new(path: &str, value: String) -> Self {
        Self { op: "replace", path: path.to_owned(), value }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: &'a BTreeMap<String, String>,
}

/// Writes an answer to the review with this version and `uid`.
///
/// A patch of an answer that denies is left out, since nothing is changed then.
///
/// # Errors
///
/// [`serde_json::Error`], which plain texts don't have.
pub fn encode(version: Version, uid: &str, answer: &Answer) -> Result<Vec<u8>, serde_json::Error> {
    let patch = if answer.patch.is_empty() || answer.denied.is_some() {
        None
    } else {
        Some(STANDARD.encode(serde_json::to_vec(&answer.patch)?))
    };
    serde_json::to_vec(&Sent {
        api_version: version.as_str(),
        kind: "AdmissionReview",
        response: Response {
            uid,
            allowed: answer.denied.is_none(),
            status: answer.denied.as_ref(),
            patch_type: patch.as_ref().map(|_| "JSONPatch"),
            patch,
            warnings: &answer.warnings,
            audit_annotations: &answer.annotations,
        },
    })
}

#[cfg(test)]
mod tests;
