//! Pushes components, and attaches signatures and attestations to them.
//!
//! What others attached is kept: an index of referrers or a legacy tag is read, extended, written
//! and read again, since registries offer no way to write only if nobody else did.

mod copy;
mod tags;

use std::collections::BTreeMap;

use ambit_engine::digest::Digest;
use jiff::Timestamp;
use serde::Serialize;

pub use self::copy::{Copied, CopyLimits, WithReferrers, copy};
pub use self::tags::{attach_legacy_attestation, attach_legacy_signature};
use crate::error::FetchError;
use crate::manifest::{Image, Parsed};
use crate::oci::{Descriptor, ManifestName, RawManifest, SubjectIndexed, media};
use crate::resolve::Claims;
use crate::store::Store;

/// The annotation for the time at which something was made.
const CREATED: &str = "org.opencontainers.image.created";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    schema_version: u32,
    media_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<&'a str>,
    config: &'a Descriptor,
    layers: [&'a Descriptor; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a Descriptor>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

/// Pushes a component under a tag, in the CNCF layout, and returns the digest of its manifest.
///
/// `claims` becomes what the configuration says about imports and exports; it should be what was
/// derived from the bytes. `created` stands in the configuration and, unless `annotations` have
/// another, in the manifest.
///
/// # Errors
///
/// [`FetchError`].
pub async fn push_component(
    store: &dyn Store,
    tag: &str,
    bytes: &[u8],
    claims: &Claims,
    annotations: &BTreeMap<String, String>,
    created: Timestamp,
) -> Result<Digest, FetchError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Config<'a> {
        created: String,
        author: Option<&'a str>,
        architecture: &'a str,
        os: &'a str,
        layer_digests: [Digest; 1],
        component: Component<'a>,
    }
    #[derive(Serialize)]
    struct Component<'a> {
        exports: &'a [String],
        imports: &'a [String],
        target: Option<&'a str>,
    }
    let layer = store.push_blob(media::WASM_LAYER, bytes).await?;
    let config = Config {
        created: created.to_string(),
        author: None,
        architecture: "wasm",
        os: "wasip2",
        layer_digests: [layer.digest],
        component: Component {
            exports: &claims.exports,
            imports: &claims.imports,
            target: claims.target.as_deref(),
        },
    };
    let config = store.push_blob(media::WASM_CONFIG, &json(&config, tag)?).await?;
    let mut annotations = annotations.clone();
    annotations.entry(CREATED.to_owned()).or_insert_with(|| created.to_string());
    let manifest = Manifest {
        schema_version: 2,
        media_type: media::MANIFEST,
        artifact_type: None,
        config: &config,
        layers: [&layer],
        subject: None,
        annotations: &annotations,
    };
    let bytes = json(&manifest, tag)?;
    store.push_manifest(&ManifestName::Tag(tag.to_owned()), media::MANIFEST, &bytes).await?;
    Ok(Digest::of(&bytes))
}

/// Attaches a bundle around a DSSE envelope to `subject`, as cosign 3 does, and returns the digest
/// of the manifest that refers to it.
///
/// Where the store lists no referrers by itself, the index under the fallback tag is extended.
///
/// # Errors
///
/// [`FetchError`]; [`FetchError::Conflict`] if others kept changing the index.
pub async fn attach_bundle(
    store: &dyn Store,
    subject: &RawManifest,
    bundle: &[u8],
    predicate_type: &str,
    created: Timestamp,
) -> Result<Digest, FetchError> {
    let what = subject.digest.to_string();
    let config = store.push_blob(media::EMPTY, b"{}").await?;
    let layer = store.push_blob(media::BUNDLE_V03, bundle).await?;
    let subject = Descriptor::of(&subject.media_type, &subject.bytes);
    let annotations = BTreeMap::from([
        ("dev.sigstore.bundle.content".to_owned(), "dsse-envelope".to_owned()),
        ("dev.sigstore.bundle.predicateType".to_owned(), predicate_type.to_owned()),
        (CREATED.to_owned(), created.to_string()),
    ]);
    let manifest = Manifest {
        schema_version: 2,
        media_type: media::MANIFEST,
        artifact_type: Some(media::BUNDLE_V03),
        config: &config,
        layers: [&layer],
        subject: Some(&subject),
        annotations: &annotations,
    };
    let bytes = json(&manifest, &what)?;
    let raw =
        RawManifest { digest: Digest::of(&bytes), media_type: media::MANIFEST.to_owned(), bytes };
    let parsed = Parsed::Image(Image {
        artifact_type: Some(media::BUNDLE_V03.to_owned()),
        config: config.clone(),
        layers: vec![layer.clone()],
        subject: Some(subject.clone()),
        annotations: annotations.clone(),
    });
    push_referrer(store, &subject.digest, &raw, &parsed).await?;
    Ok(raw.digest)
}

/// Pushes a manifest about `subject`, and lists it where the store doesn't.
async fn push_referrer(
    store: &dyn Store,
    subject: &Digest,
    raw: &RawManifest,
    parsed: &Parsed,
) -> Result<(), FetchError> {
    let name = ManifestName::Digest(raw.digest);
    match store.push_manifest(&name, &raw.media_type, &raw.bytes).await? {
        SubjectIndexed::ByStore => Ok(()),
        SubjectIndexed::ByNobody => {
            tags::list_referrer(store, subject, &parsed.describe(raw)).await
        }
    }
}

fn json<T: Serialize>(value: &T, what: &str) -> Result<Vec<u8>, FetchError> {
    serde_json::to_vec(value)
        .map_err(|error| FetchError::Protocol { what: what.to_owned(), reason: error.to_string() })
}
