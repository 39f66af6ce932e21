//! Layouts, the cache, discovery and attaching, over folders and a store in memory.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "helpers of tests may fail loudly"
)]

mod attach;
mod cache;
mod discover;
mod layout;
mod memory;
mod resolve;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambit_engine::digest::Digest;
use ambit_trust::oci::{Descriptor, ManifestName, RawManifest, media};
use ambit_trust::store::Store;
use serde_json::{Value, json};

/// The layout that cosign signed things in.
fn cosign_layout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/layouts/cosign")
}

/// The digest of the component's manifest in that layout.
fn cosign_subject() -> Digest {
    "sha256:e5cb98f46db448e0c4f4b766bb5a8c673ca0e158f4e484473369d77a3b2bb813".parse().unwrap()
}

fn tag(text: &str) -> ManifestName {
    ManifestName::Tag(text.to_owned())
}

fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn raw(media_type: &str, body: &Value) -> RawManifest {
    let bytes = body.to_string().into_bytes();
    RawManifest { digest: Digest::of(&bytes), media_type: media_type.to_owned(), bytes }
}

/// An image manifest.
fn image(config: &str, layers: &[Descriptor], more: &[(&str, Value)]) -> RawManifest {
    let mut body = json!({
        "schemaVersion": 2,
        "mediaType": media::MANIFEST,
        "config": Descriptor::of(config, b"{}"),
        "layers": layers,
    });
    for (key, value) in more {
        body[*key] = value.clone();
    }
    raw(media::MANIFEST, &body)
}

/// An index.
fn index(manifests: &[Descriptor]) -> RawManifest {
    let body = json!({"schemaVersion": 2, "mediaType": media::INDEX, "manifests": manifests});
    raw(media::INDEX, &body)
}

fn describe(raw: &RawManifest) -> Descriptor {
    Descriptor::of(&raw.media_type, &raw.bytes)
}

/// Pushes a manifest by its digest.
async fn push(store: &dyn Store, raw: &RawManifest) {
    let name = ManifestName::Digest(raw.digest);
    store.push_manifest(&name, &raw.media_type, &raw.bytes).await.unwrap();
}

/// Pushes a manifest under a tag.
async fn push_as(store: &dyn Store, name: &str, raw: &RawManifest) {
    store.push_manifest(&tag(name), &raw.media_type, &raw.bytes).await.unwrap();
}
