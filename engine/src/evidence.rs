//! What was found out about a component beside its bytes: the manifest that led to them, what its
//! publisher says about it, and what signatures and attestations were verified.
//!
//! These are plain facts. Gathering and verifying is `ambit-trust`'s business; a front end that
//! didn't look says so, and no rule takes that for an answer.

use std::collections::BTreeSet;

use crate::component::Component;
use crate::digest::Digest;
use crate::input::{Attestation, Signature, TrustOutcome};

/// Where a component's bytes came from, and what vouches for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Supply {
    /// The manifest that names the bytes, if they came from a registry or layout.
    pub manifest: Option<Digest>,
    /// The index that names the manifest, if the reference led to one.
    pub index: Option<Digest>,
    /// What the manifest's configuration says about the component.
    pub claims: Option<Claims>,
    /// Signatures and attestations.
    pub evidence: Evidence,
}

/// What a publisher says about a component (CNCF wasm OCI artifact layout, `component` in the
/// configuration). It is compared with the binary and believed in nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Claims {
    /// The interfaces that the component is said to import.
    pub imports: Vec<String>,
    /// The interfaces that the component is said to export.
    pub exports: Vec<String>,
}

/// The state of the evidence for one component.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Evidence {
    /// Nobody looked.
    #[default]
    NotChecked,
    /// A source gave no answer, so nothing follows from what wasn't found.
    Unknown(Vec<Unanswered>),
    /// Every source answered.
    Checked(Box<Checked>),
}

/// A question without an answer.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Unanswered {
    /// The stable code of what went wrong.
    pub code: String,
    /// What went wrong, in one line.
    pub message: String,
}

/// What the sources answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// What each trust policy that covers the image says.
    pub trust: Vec<TrustOutcome>,
    /// The signatures that were found.
    pub signatures: Vec<Signature>,
    /// The attestations that were found.
    pub attestations: Vec<Attestation>,
}

/// Predicate types of SLSA provenance (<https://slsa.dev/spec/v1.0/provenance>).
pub const PROVENANCE: [&str; 3] = [
    "https://slsa.dev/provenance/v0.1",
    "https://slsa.dev/provenance/v0.2",
    "https://slsa.dev/provenance/v1",
];

/// Predicate types of bills of materials: SPDX (also as GitHub's action writes it) and CycloneDX.
pub const SBOM: [&str; 3] =
    ["https://spdx.dev/Document", "https://spdx.dev/Document/v2.3", "https://cyclonedx.org/bom"];

impl Evidence {
    /// Returns the stable word for the state.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self {
            Self::NotChecked => "not-checked",
            Self::Unknown(_) => "unknown",
            Self::Checked(_) => "checked",
        }
    }
}

impl Claims {
    /// Compares with the binary: interfaces that it imports and the publisher doesn't name, and
    /// interfaces that the publisher names and it doesn't import.
    #[must_use]
    pub fn differences(&self, component: &Component) -> (Vec<String>, Vec<String>) {
        let derived: BTreeSet<&str> =
            component.imports.iter().map(|import| import.name.as_str()).collect();
        let claimed: BTreeSet<&str> = self.imports.iter().map(String::as_str).collect();
        let names = |found: Vec<&&str>| found.into_iter().map(|name| (*name).to_owned()).collect();
        (
            names(derived.difference(&claimed).collect()),
            names(claimed.difference(&derived).collect()),
        )
    }
}
