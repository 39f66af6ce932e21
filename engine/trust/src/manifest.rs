//! Strict reading of image manifests and indexes (image specification 1.1, "OCI Image Manifest
//! Specification" and "OCI Image Index Specification").
//!
//! The two are told apart by their media type, and what disagrees about it is refused: a body that
//! another reader could take for the other kind must not be read here as one of them.

use std::collections::BTreeMap;

use ambit_engine::document::{self, DocumentLimits, Format, Node, Value};
use serde::Deserialize;

use crate::error::FetchError;
use crate::oci::{Descriptor, MAX_MANIFEST_BYTES, RawManifest, media};

/// The most layers of a manifest.
pub const MAX_LAYERS: usize = 128;

/// The most manifests in an index.
pub const MAX_INDEX_ENTRIES: usize = 256;

/// A manifest or an index.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Parsed {
    /// An image manifest.
    Image(Image),
    /// An index.
    Index(Index),
}

/// An image manifest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Image {
    /// The type of the artifact, if the manifest says one.
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers, at most [`MAX_LAYERS`].
    pub layers: Vec<Descriptor>,
    /// The manifest that this one is about.
    pub subject: Option<Descriptor>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// An index.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Index {
    /// The type of the artifact, if the index says one.
    pub artifact_type: Option<String>,
    /// The manifests, at most [`MAX_INDEX_ENTRIES`].
    pub manifests: Vec<Descriptor>,
    /// The manifest that this index is about.
    pub subject: Option<Descriptor>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    schema_version: u64,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Reads a manifest or an index; `what` names it in errors.
///
/// # Errors
///
/// [`FetchError::Protocol`] if it is not valid JSON with unique keys, has no `schemaVersion` 2, is
/// labelled differently inside and outside, or holds parts of both kinds; [`FetchError::Limit`] if
/// it is larger or holds more than is read.
pub fn parse(raw: &RawManifest, what: &str) -> Result<Parsed, FetchError> {
    let wrong = |reason: String| FetchError::Protocol { what: what.to_owned(), reason };
    let limits = DocumentLimits {
        max_bytes: MAX_MANIFEST_BYTES,
        max_documents: 1,
        ..DocumentLimits::default()
    };
    if raw.bytes.len() > MAX_MANIFEST_BYTES {
        return Err(over(what, "bytes", MAX_MANIFEST_BYTES));
    }
    // This pass refuses repeated keys and deep nesting, about which the next one would be silent.
    let documents = document::parse(&raw.bytes, Format::Json, &limits);
    let documents = documents.map_err(|error| wrong(error.to_string()))?;
    let root = documents.first().map(document::Document::root);
    if !root.is_some_and(has_objects) {
        return Err(wrong("an object is expected where there is none".to_owned()));
    }
    let body: Body =
        serde_json::from_slice(&raw.bytes).map_err(|error| wrong(error.to_string()))?;
    if body.schema_version != 2 {
        return Err(wrong(format!("schema version {} is not 2", body.schema_version)));
    }
    // A server may say the character set too, which JSON doesn't have.
    let outside = raw.media_type.split(';').next().unwrap_or_default().trim_end();
    if let Some(inside) = body.media_type.as_deref().filter(|inside| *inside != outside) {
        return Err(wrong(format!("it says `{inside}` and is served as `{outside}`")));
    }
    let annotations = body.annotations.unwrap_or_default();
    match (outside, body.layers, body.manifests) {
        (media::MANIFEST | media::DOCKER_MANIFEST, layers, None) => {
            let layers = layers.unwrap_or_default();
            if layers.len() > MAX_LAYERS {
                return Err(over(what, "layers", MAX_LAYERS));
            }
            let config = body.config.ok_or_else(|| wrong("it has no `config`".to_owned()))?;
            Ok(Parsed::Image(Image {
                artifact_type: body.artifact_type,
                config,
                layers,
                subject: body.subject,
                annotations,
            }))
        }
        (media::INDEX | media::DOCKER_LIST, None, manifests) if body.config.is_none() => {
            let manifests = manifests.unwrap_or_default();
            if manifests.len() > MAX_INDEX_ENTRIES {
                return Err(over(what, "manifests", MAX_INDEX_ENTRIES));
            }
            Ok(Parsed::Index(Index {
                artifact_type: body.artifact_type,
                manifests,
                subject: body.subject,
                annotations,
            }))
        }
        (media::MANIFEST | media::DOCKER_MANIFEST | media::INDEX | media::DOCKER_LIST, _, _) => {
            Err(wrong("it holds parts of both a manifest and an index".to_owned()))
        }
        (other, _, _) => Err(wrong(format!("`{other}` is no media type of a manifest"))),
    }
}

impl Parsed {
    /// Returns the manifest that this one is about.
    #[must_use]
    pub fn subject(&self) -> Option<&Descriptor> {
        match self {
            Self::Image(image) => image.subject.as_ref(),
            Self::Index(index) => index.subject.as_ref(),
        }
    }

    /// Describes `raw`, which this was read from, as a list of referrers does: with the artifact
    /// type and the annotations (distribution specification 1.1, "Listing Referrers").
    #[must_use]
    pub fn describe(&self, raw: &RawManifest) -> Descriptor {
        let mut descriptor = Descriptor::of(&raw.media_type, &raw.bytes);
        match self {
            Self::Image(image) => {
                let config = Some(image.config.media_type.clone()).filter(|kind| !kind.is_empty());
                descriptor.artifact_type = image.artifact_type.clone().or(config);
                descriptor.annotations = image.annotations.clone();
            }
            Self::Index(index) => {
                descriptor.artifact_type = index.artifact_type.clone();
                descriptor.annotations = index.annotations.clone();
            }
        }
        descriptor
    }
}

/// Finds the media type of a body that came without one: what it says, or else what it holds.
pub(crate) fn media_type_of(bytes: &[u8]) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Label {
        media_type: Option<String>,
        manifests: Option<serde::de::IgnoredAny>,
    }
    match serde_json::from_slice::<Label>(bytes) {
        Ok(Label { media_type: Some(said), .. }) => said,
        Ok(Label { manifests: Some(_), .. }) => media::INDEX.to_owned(),
        Ok(_) | Err(_) => media::MANIFEST.to_owned(),
    }
}

/// Tells whether there are objects in all places for them. The next pass would read a list as an
/// object with its fields in order, which no other reader does.
fn has_objects(root: &Node) -> bool {
    let is_object = |node: &Node| matches!(node.value(), Value::Mapping(_));
    let is_absent = |node: &Node| matches!(node.value(), Value::Null);
    let optional = |node: Option<&Node>| node.is_none_or(|node| is_absent(node) || is_object(node));
    let descriptor = |node: &Node| is_object(node) && optional(node.get("platform"));
    let lists = ["layers", "manifests"].map(|key| root.get(key).and_then(Node::as_sequence));
    is_object(root)
        && ["config", "subject"].iter().all(|key| optional(root.get(key)))
        && lists.into_iter().flatten().flatten().all(descriptor)
}

fn over(what: &str, unit: &str, limit: usize) -> FetchError {
    FetchError::Limit {
        what: format!("{what} ({unit})"),
        limit: u64::try_from(limit).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use ambit_engine::digest::Digest;
    use serde_json::{Value, json};

    use super::*;

    fn read(media_type: &str, text: &str) -> Result<Parsed, FetchError> {
        let bytes = text.as_bytes().to_vec();
        let digest = Digest::of(&bytes);
        parse(&RawManifest { digest, media_type: media_type.to_owned(), bytes }, "x")
    }

    fn descriptor() -> Value {
        json!({"mediaType": "a/b", "digest": Digest::of(b"").to_string(), "size": 0})
    }

    #[test]
    fn manifest_and_index_are_told_apart_by_their_media_type() {
        let image = json!({"schemaVersion": 2, "config": descriptor(), "layers": null});
        assert!(matches!(read(media::MANIFEST, &image.to_string()), Ok(Parsed::Image(_))));
        assert!(read(media::INDEX, &image.to_string()).is_err());
        let with_charset = format!("{}; charset=utf-8", media::MANIFEST);
        assert!(read(&with_charset, &image.to_string()).is_ok());
        let index = json!({"schemaVersion": 2, "manifests": [descriptor()]});
        assert!(matches!(read(media::INDEX, &index.to_string()), Ok(Parsed::Index(_))));
        assert!(read(media::MANIFEST, &index.to_string()).is_err());
        assert!(read("application/json", &index.to_string()).is_err());
    }

    #[test]
    fn what_two_readers_could_take_differently_is_refused() {
        let good = json!({"schemaVersion": 2, "config": descriptor(), "layers": []});
        let with = |key: &str, value: Value| {
            let mut changed = good.clone();
            changed[key] = value;
            read(media::MANIFEST, &changed.to_string())
        };
        assert!(with("annotations", json!({"a": "b"})).is_ok());
        for (key, value) in [
            ("schemaVersion", json!(1)),
            ("manifests", json!([])),
            ("mediaType", json!(media::INDEX)),
            ("config", json!(null)),
            ("layers", json!([{"digest": "sha512:00", "size": 1}])),
            ("layers", json!([["a/b", Digest::of(b"").to_string(), 0]])),
            ("config", json!(["a/b", Digest::of(b"").to_string(), 0])),
            ("subject", json!(["a/b", Digest::of(b"").to_string(), 0])),
        ] {
            assert!(with(key, value.clone()).is_err(), "{key}: {value}");
        }
        let twice = good.to_string().replacen('{', r#"{"layers":[],"#, 1);
        assert!(read(media::MANIFEST, &twice).is_err());
        let documents = format!("{good}{good}");
        assert!(read(media::MANIFEST, &documents).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in r#"[{}\[\]",:a-z0-9]{0,200}"#) {
            let _ = read(media::MANIFEST, &text);
            let _ = read(media::INDEX, &format!("{{\"schemaVersion\":2,\"manifests\":[{text}]}}"));
            let _ = media_type_of(text.as_bytes());
        }
    }

    #[test]
    fn counts_are_bounded() {
        let image = |count: usize| {
            let layers = vec![descriptor(); count];
            let body = json!({"schemaVersion": 2, "config": descriptor(), "layers": layers});
            read(media::MANIFEST, &body.to_string())
        };
        assert!(image(MAX_LAYERS).is_ok());
        assert_eq!(image(MAX_LAYERS + 1).unwrap_err().code(), "registry-limit");
        let index = |count: usize| {
            let body = json!({"schemaVersion": 2, "manifests": vec![descriptor(); count]});
            read(media::INDEX, &body.to_string())
        };
        assert!(index(MAX_INDEX_ENTRIES).is_ok());
        assert_eq!(index(MAX_INDEX_ENTRIES + 1).unwrap_err().code(), "registry-limit");
    }
}
