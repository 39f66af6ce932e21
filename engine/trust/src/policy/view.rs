//! The document that `ambit verify --format json` prints.

use ambit_engine::digest::Digest;
use schemars::JsonSchema;
use serde::Serialize;

use super::Mode;
use super::evaluate::{Outcome, PolicyOutcome};

/// The version of the document.
pub const VERIFY_SCHEMA: &str = "ambit.verify/v1";

/// What verification said about images.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct VerifyDocument {
    /// [`VERIFY_SCHEMA`].
    pub schema: &'static str,
    /// The images, in the order in which they were named.
    pub images: Vec<VerifyImage>,
}

impl VerifyDocument {
    /// Puts images into a document.
    #[must_use]
    pub fn new(images: Vec<VerifyImage>) -> Self {
        Self { schema: VERIFY_SCHEMA, images }
    }
}

/// What verification said about one image.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct VerifyImage {
    /// The reference as named.
    pub reference: String,
    /// The digest of the manifest that was resolved, or of the file; none for a file that is named
    /// by another hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub digest: Option<Digest>,
    /// The digest of the index that named it, if the reference named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub index: Option<Digest>,
    /// The digest of the component's bytes, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub layer: Option<Digest>,
    /// The worst outcome of a policy in mode `enforce`, or of all where none is in that mode;
    /// unsatisfied if no policy is for the image.
    pub outcome: Outcome,
    /// The policies that are for the image, in order.
    pub policies: Vec<PolicyOutcome>,
}

impl VerifyImage {
    /// Puts the outcomes of all policies that are for an image together.
    ///
    /// All of them have to be satisfied; those in mode `warn` are listed and not counted beside one
    /// that is enforced. Where all of them only warn they are what there is to say: nothing is
    /// called verified that satisfies none of its policies. Where one is unsatisfied and another
    /// unknown, the image is unsatisfied, which is certain.
    #[must_use]
    pub fn new(
        reference: String,
        digest: Option<Digest>,
        (index, layer): (Option<Digest>, Option<Digest>),
        policies: Vec<PolicyOutcome>,
    ) -> Self {
        let some_enforced = policies.iter().any(|policy| policy.mode == Mode::Enforce);
        let counted =
            policies.iter().filter(|policy| policy.mode == Mode::Enforce || !some_enforced);
        let outcome =
            counted.map(|policy| policy.outcome).reduce(worst).unwrap_or(Outcome::Unsatisfied);
        Self { reference, digest, index, layer, outcome, policies }
    }
}

/// Returns the JSON Schema of [`VerifyDocument`] (draft 2020-12).
#[must_use]
pub fn verify_schema() -> serde_json::Value {
    schemars::schema_for!(VerifyDocument).to_value()
}

fn worst(a: Outcome, b: Outcome) -> Outcome {
    match (a, b) {
        (Outcome::Unsatisfied, _) | (_, Outcome::Unsatisfied) => Outcome::Unsatisfied,
        (Outcome::Unknown, _) | (_, Outcome::Unknown) => Outcome::Unknown,
        (Outcome::Satisfied, Outcome::Satisfied) => Outcome::Satisfied,
    }
}
