//! Tags that several writers extend: the index of referrers, and cosign's older `.sig` and `.att`.

use std::collections::BTreeMap;

use ambit_engine::digest::Digest;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::discover::annotation;
use crate::error::FetchError;
use crate::layout::fallback_tag;
use crate::manifest::{self, MAX_INDEX_ENTRIES, MAX_LAYERS, Parsed};
use crate::oci::{Descriptor, MAX_MANIFEST_BYTES, ManifestName, RawManifest, media};
use crate::sign::LegacySignature;
use crate::store::Store;

/// How often a tag is written when others write it too.
const ATTEMPTS: u32 = 5;

/// The configuration of a legacy manifest (`application/vnd.oci.image.config.v1+json`).
const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// Attaches a signature to `subject` under its `.sig` tag, beside those that are there, as cosign 1
/// and 2 do.
///
/// # Errors
///
/// [`FetchError`]; [`FetchError::Conflict`] if others kept changing the tag.
pub async fn attach_legacy_signature(
    store: &dyn Store,
    subject: &Digest,
    signature: &LegacySignature,
) -> Result<(), FetchError> {
    let mut layer = store.push_blob(media::SIMPLE_SIGNING, &signature.payload).await?;
    layer.annotations =
        BTreeMap::from([(annotation::SIGNATURE.to_owned(), signature.signature.clone())]);
    let tag = format!("{}.sig", fallback_tag(subject));
    append_layers(store, &tag, &[json!(layer)]).await
}

/// Attaches a DSSE envelope to `subject` under its `.att` tag, beside those that are there, as
/// cosign 1 and 2 do.
///
/// # Errors
///
/// [`FetchError`]; [`FetchError::Conflict`] if others kept changing the tag.
pub async fn attach_legacy_attestation(
    store: &dyn Store,
    subject: &Digest,
    predicate_type: &str,
    envelope: &[u8],
) -> Result<(), FetchError> {
    let mut layer = store.push_blob(media::DSSE, envelope).await?;
    layer.annotations = BTreeMap::from([
        (annotation::SIGNATURE.to_owned(), String::new()),
        ("predicateType".to_owned(), predicate_type.to_owned()),
    ]);
    let tag = format!("{}.att", fallback_tag(subject));
    append_layers(store, &tag, &[json!(layer)]).await
}

/// Puts `layers` at the end of the manifest that `tag` names, unless they are in it.
pub(super) async fn append_layers(
    store: &dyn Store,
    tag: &str,
    layers: &[Value],
) -> Result<(), FetchError> {
    let what = format!("{}:{tag}", store.name());
    for attempt in 0..=ATTEMPTS {
        let mut body = match read(store, tag).await? {
            Some(raw) => {
                let Parsed::Image(_) = manifest::parse(&raw, &what)? else {
                    return Err(wrong(&what, "the tag names an index"));
                };
                object(&raw, &what)?
            }
            None => new_body(media::MANIFEST),
        };
        let mut present = take_list(&mut body, "layers");
        let missing: Vec<&Value> =
            layers.iter().filter(|layer| !present.iter().any(|p| same_layer(p, layer))).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if attempt == ATTEMPTS {
            break;
        }
        let missing: Vec<Value> = missing.into_iter().cloned().collect();
        present.extend(missing);
        if present.len() > MAX_LAYERS {
            return Err(over(&what, "layers", MAX_LAYERS));
        }
        let config = cosign_config(&present);
        let config = store.push_blob(IMAGE_CONFIG, config.as_bytes()).await?;
        body.insert("config".to_owned(), json!(config));
        body.insert("layers".to_owned(), Value::Array(present));
        write(store, tag, media::MANIFEST, &body, &what).await?;
    }
    Err(FetchError::Conflict { what, attempts: ATTEMPTS })
}

/// A layer is its content with what is said about it: two signatures over one payload are two.
fn same_layer(one: &Value, other: &Value) -> bool {
    match (Descriptor::deserialize(one), Descriptor::deserialize(other)) {
        (Ok(one), Ok(other)) => {
            one.digest == other.digest
                && one.annotations.get(annotation::SIGNATURE)
                    == other.annotations.get(annotation::SIGNATURE)
        }
        _ => false,
    }
}

/// Returns the configuration that cosign gives a manifest of signatures. It says nothing, and names
/// the layers.
fn cosign_config(layers: &[Value]) -> String {
    let digests: Vec<String> =
        layers.iter().filter_map(|layer| layer.get("digest")).map(ToString::to_string).collect();
    let never = "0001-01-01T00:00:00Z";
    let history = vec![format!(r#"{{"created":"{never}"}}"#); digests.len()];
    format!(
        r#"{{"architecture":"","created":"{never}","history":[{}],"os":"","rootfs":{{"type":"layers","diff_ids":[{}]}},"config":{{}}}}"#,
        history.join(","),
        digests.join(",")
    )
}

/// Lists `referrer` in the index under the fallback tag of `subject` (distribution specification
/// 1.1, "Pushing Manifests with Subject").
pub(super) async fn list_referrer(
    store: &dyn Store,
    subject: &Digest,
    referrer: &Descriptor,
) -> Result<(), FetchError> {
    let tag = fallback_tag(subject);
    let what = format!("{}:{tag}", store.name());
    for attempt in 0..=ATTEMPTS {
        let mut body = match read(store, &tag).await? {
            Some(raw) => {
                let Parsed::Index(_) = manifest::parse(&raw, &what)? else {
                    return Err(wrong(&what, "the tag names a manifest that is no index"));
                };
                object(&raw, &what)?
            }
            None => new_body(media::INDEX),
        };
        let mut entries = take_list(&mut body, "manifests");
        if entries.iter().any(|entry| digest(entry) == Some(referrer.digest)) {
            return Ok(());
        }
        if attempt == ATTEMPTS {
            break;
        }
        if entries.len() >= MAX_INDEX_ENTRIES {
            return Err(over(&what, "referrers", MAX_INDEX_ENTRIES));
        }
        entries.push(json!(referrer));
        body.insert("manifests".to_owned(), json!(entries));
        match write(store, &tag, media::INDEX, &body, &what).await {
            // Some registries take no index that names a manifest which was removed since.
            Err(error) if names_missing(&error) => {
                let entries = without_missing(store, entries, referrer.digest).await?;
                body.insert("manifests".to_owned(), json!(entries));
                write(store, &tag, media::INDEX, &body, &what).await?;
            }
            other => other?,
        }
    }
    Err(FetchError::Conflict { what, attempts: ATTEMPTS })
}

/// Tells whether the registry misses a manifest that the pushed index names.
fn names_missing(error: &FetchError) -> bool {
    let said = if let FetchError::Protocol { reason, .. } = error {
        reason.contains("MANIFEST_BLOB_UNKNOWN") || reason.contains("MANIFEST_UNKNOWN")
    } else {
        false
    };
    said || matches!(error, FetchError::NotFound { .. })
}

/// Drops the entries whose manifests are gone; never `ours`, which was pushed just now.
async fn without_missing(
    store: &dyn Store,
    entries: Vec<Value>,
    ours: Digest,
) -> Result<Vec<Value>, FetchError> {
    let mut kept = Vec::new();
    for entry in entries {
        let gone = match digest(&entry) {
            Some(digest) if digest != ours => {
                match store.manifest(&ManifestName::Digest(digest)).await {
                    Ok(_) => false,
                    Err(FetchError::NotFound { .. }) => true,
                    Err(error) => return Err(error),
                }
            }
            Some(_) | None => false,
        };
        if !gone {
            kept.push(entry);
        }
    }
    Ok(kept)
}

async fn read(store: &dyn Store, tag: &str) -> Result<Option<RawManifest>, FetchError> {
    match store.manifest(&ManifestName::Tag(tag.to_owned())).await {
        Ok(raw) => Ok(Some(raw)),
        Err(FetchError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn write(
    store: &dyn Store,
    tag: &str,
    media_type: &str,
    body: &serde_json::Map<String, Value>,
    what: &str,
) -> Result<(), FetchError> {
    let bytes = super::json(body, what)?;
    if bytes.len() > MAX_MANIFEST_BYTES {
        return Err(over(what, "bytes", MAX_MANIFEST_BYTES));
    }
    store.push_manifest(&ManifestName::Tag(tag.to_owned()), media_type, &bytes).await.map(|_| ())
}

fn new_body(media_type: &str) -> serde_json::Map<String, Value> {
    let mut body = serde_json::Map::new();
    body.insert("schemaVersion".to_owned(), json!(2));
    body.insert("mediaType".to_owned(), json!(media_type));
    body
}

/// Reads a manifest as it is, so that what isn't known here stays in it.
fn object(raw: &RawManifest, what: &str) -> Result<serde_json::Map<String, Value>, FetchError> {
    serde_json::from_slice(&raw.bytes).map_err(|error| wrong(what, &error.to_string()))
}

/// Takes the list under `key` out; parsing made sure that it is a list, or missing.
fn take_list(body: &mut serde_json::Map<String, Value>, key: &str) -> Vec<Value> {
    body.get_mut(key).and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default()
}

fn digest(entry: &Value) -> Option<Digest> {
    entry.get("digest")?.as_str()?.parse().ok()
}

fn wrong(what: &str, reason: &str) -> FetchError {
    FetchError::Protocol { what: what.to_owned(), reason: reason.to_owned() }
}

fn over(what: &str, unit: &str, limit: usize) -> FetchError {
    FetchError::Limit {
        what: format!("{what} ({unit})"),
        limit: u64::try_from(limit).unwrap_or(u64::MAX),
    }
}
