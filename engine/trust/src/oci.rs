//! The parts of the OCI image and distribution specifications that are used here.

use std::collections::BTreeMap;
use std::fmt;

use ambit_engine::digest::Digest;
use serde::{Deserialize, Serialize};

/// Media types, as the specifications and tools spell them.
pub mod media {
    /// An image manifest (image specification 1.1).
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// An image index (image specification 1.1).
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// Docker's image manifest, schema 2.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// Docker's manifest list.
    pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// The empty JSON object as a configuration (image specification 1.1).
    pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
    /// The configuration of a wasm artifact (CNCF wasm OCI artifact layout).
    pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
    /// The layer of a wasm artifact (CNCF wasm OCI artifact layout).
    pub const WASM_LAYER: &str = "application/wasm";
    /// A sigstore bundle, version 0.3.
    pub const BUNDLE_V03: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
    /// The payload of a legacy cosign signature.
    pub const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
    /// A DSSE envelope, the layer of a legacy cosign attestation.
    pub const DSSE: &str = "application/vnd.dsse.envelope.v1+json";
}

/// The largest manifest or index, in bytes (distribution specification 1.1, "Pushing manifests").
pub const MAX_MANIFEST_BYTES: usize = 4 << 20;

/// The largest signature or attestation blob, in bytes.
pub const MAX_EVIDENCE_BYTES: usize = 10 << 20;

/// The most referrers of one subject that are looked at.
pub const MAX_REFERRERS: usize = 64;

/// A descriptor (image specification 1.1, "Content Descriptors").
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The media type of the content.
    #[serde(default)]
    pub media_type: String,
    /// The digest of the content.
    #[serde(deserialize_with = "digest")]
    pub digest: Digest,
    /// The size of the content in bytes.
    pub size: u64,
    /// The type of the artifact, where the content is a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The platform, where the content is a manifest in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Describes `bytes`.
    #[must_use]
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes),
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            artifact_type: None,
            platform: None,
            annotations: BTreeMap::new(),
        }
    }
}

fn digest<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// A platform in an index.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Platform {
    /// `wasm`, `amd64`, …
    #[serde(default)]
    pub architecture: String,
    /// `wasip2`, `linux`, …
    #[serde(default)]
    pub os: String,
}

/// The name of a manifest in its repository.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ManifestName {
    /// By tag, which can move.
    Tag(String),
    /// By digest, which can't.
    Digest(Digest),
}

impl fmt::Display for ManifestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => f.write_str(tag),
            Self::Digest(digest) => fmt::Display::fmt(digest, f),
        }
    }
}

/// A manifest or index as it came: the bytes, and what they hash to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RawManifest {
    /// The digest of `bytes`.
    pub digest: Digest,
    /// The media type of the answer.
    pub media_type: String,
    /// The bytes, at most [`MAX_MANIFEST_BYTES`].
    pub bytes: Vec<u8>,
}

/// What a push of a manifest did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SubjectIndexed {
    /// The store lists the manifest among its subject's referrers (or it has no subject).
    ByStore,
    /// The store has no referrers API: the client has to keep the fallback tag.
    ByNobody,
}
