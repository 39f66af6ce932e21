//! `index.json`: the entries that are looked at, beside everything else that stands in it.

use std::path::Path;

use ambit_engine::digest::Digest;
use ambit_engine::document::{self, DocumentLimits, Format};
use serde::Deserialize;
use serde_json::{Value, json};

use super::REF_NAME;
use crate::error::FetchError;
use crate::oci::{Descriptor, MAX_MANIFEST_BYTES, media};

/// The most entries of `index.json`.
const MAX_ENTRIES: usize = 4096;

/// `index.json`, with what other tools put there.
pub(super) struct LayoutIndex(serde_json::Map<String, Value>);

impl LayoutIndex {
    pub(super) fn empty() -> Self {
        let mut body = serde_json::Map::new();
        body.insert("schemaVersion".to_owned(), json!(2));
        body.insert("mediaType".to_owned(), json!(media::INDEX));
        body.insert("manifests".to_owned(), json!([]));
        Self(body)
    }

    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self, FetchError> {
        let wrong =
            |reason: String| FetchError::Layout { path: path.display().to_string(), reason };
        let limits = DocumentLimits {
            max_bytes: MAX_MANIFEST_BYTES,
            max_documents: 1,
            ..DocumentLimits::default()
        };
        document::parse(bytes, Format::Json, &limits).map_err(|error| wrong(error.to_string()))?;
        let body: Value =
            serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(mut body) = body else {
            return Err(wrong("it is no object".to_owned()));
        };
        if body.get("schemaVersion").and_then(Value::as_u64) != Some(2) {
            return Err(wrong("its schema version is not 2".to_owned()));
        }
        if body.get("manifests").is_none_or(Value::is_null) {
            body.insert("manifests".to_owned(), json!([]));
        }
        let entries = body.get("manifests").and_then(Value::as_array);
        let entries = entries.ok_or_else(|| wrong("`manifests` is no list".to_owned()))?;
        if entries.len() > MAX_ENTRIES {
            return Err(FetchError::Limit {
                what: format!("{} (manifests)", path.display()),
                limit: u64::try_from(MAX_ENTRIES).unwrap_or(u64::MAX),
            });
        }
        for entry in entries {
            if !entry.is_object() {
                return Err(wrong("`manifests` holds something that is no object".to_owned()));
            }
            Descriptor::deserialize(entry).map_err(|error| wrong(error.to_string()))?;
        }
        Ok(Self(body))
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }

    /// Returns the entries in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Descriptor> + '_ {
        let entries = self.0.get("manifests").and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(|entry| Descriptor::deserialize(entry).ok())
    }

    /// Returns the entry of a tag.
    pub(super) fn tagged(&self, tag: &str, layout: &str) -> Result<Option<Descriptor>, FetchError> {
        let mut tagged =
            self.entries().filter(|e| e.annotations.get(REF_NAME).is_some_and(|name| name == tag));
        let first = tagged.next();
        match tagged.find(|other| first.as_ref().is_some_and(|f| f.digest != other.digest)) {
            None => Ok(first),
            Some(_) => Err(FetchError::Layout {
                path: layout.to_owned(),
                reason: format!("`index.json` names several manifests by the tag `{tag}`"),
            }),
        }
    }

    /// Names `entry` by `tag`, and nothing else.
    pub(super) fn tag(&mut self, tag: &str, entry: &Descriptor) {
        let Some(Value::Array(entries)) = self.0.get_mut("manifests") else { return };
        entries.retain(|other| ref_name(other) != Some(tag));
        // An entry without a tag that was only there to list the manifest takes the tag.
        entries.retain(|other| ref_name(other).is_some() || digest(other) != Some(entry.digest));
        let mut entry = entry.clone();
        entry.annotations.insert(REF_NAME.to_owned(), tag.to_owned());
        entries.push(json!(entry));
    }

    /// Lists `entry`, unless it is listed already.
    pub(super) fn list(&mut self, entry: &Descriptor) {
        let Some(Value::Array(entries)) = self.0.get_mut("manifests") else { return };
        if !entries.iter().any(|other| digest(other) == Some(entry.digest)) {
            entries.push(json!(entry));
        }
    }
}

fn ref_name(entry: &Value) -> Option<&str> {
    entry.get("annotations")?.get(REF_NAME)?.as_str()
}

fn digest(entry: &Value) -> Option<Digest> {
    entry.get("digest")?.as_str()?.parse().ok()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Relations {
    #[serde(default)]
    artifact_type: Option<String>,
    #[serde(default)]
    config: Option<Labelled>,
    #[serde(default)]
    subject: Option<Named>,
    #[serde(default)]
    manifests: Option<Vec<Named>>,
    #[serde(default)]
    annotations: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Labelled {
    #[serde(default)]
    media_type: String,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    digest: String,
}

/// Returns the digest of the manifest that the one in `bytes` is about.
///
/// What can't be read is about nothing: it could not be used as a referrer either.
pub(super) fn subject_of(bytes: &[u8]) -> Option<Digest> {
    serde_json::from_slice::<Relations>(bytes).ok()?.subject?.digest.parse().ok()
}

/// Returns the digests of the manifests that the index in `bytes` holds.
pub(super) fn children_of(bytes: &[u8]) -> Vec<Digest> {
    let relations = serde_json::from_slice::<Relations>(bytes).ok();
    let manifests = relations.and_then(|relations| relations.manifests).unwrap_or_default();
    manifests.iter().filter_map(|named| named.digest.parse().ok()).collect()
}

/// Describes the manifest in `bytes`; a referrer with its artifact type and annotations, as lists of
/// referrers have them.
pub(super) fn describe(entry: &Descriptor, bytes: &[u8]) -> Descriptor {
    let media_type = if entry.media_type.is_empty() {
        crate::manifest::media_type_of(bytes)
    } else {
        entry.media_type.clone()
    };
    let mut described = Descriptor::of(&media_type, bytes);
    if let Ok(relations) = serde_json::from_slice::<Relations>(bytes)
        && relations.subject.is_some()
    {
        let config = relations.config.map(|c| c.media_type).filter(|kind| !kind.is_empty());
        described.artifact_type = relations.artifact_type.or(config);
        described.annotations = relations.annotations.unwrap_or_default();
        described.annotations.remove(REF_NAME);
    }
    described
}
