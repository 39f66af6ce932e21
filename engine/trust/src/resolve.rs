//! From a name to the one wasm manifest and layer that it means.
//!
//! A tag is asked for once; everything after is by digest. Of an index the child is chosen here, by
//! rules that don't depend on the machine, and where two children could be meant neither is taken.

use std::collections::BTreeMap;

use ambit_engine::digest::Digest;
use ambit_engine::document::{self, DocumentLimits, Format};
use serde::Deserialize;

use crate::error::FetchError;
use crate::manifest::{self, Image, Index, Parsed};
use crate::oci::{Descriptor, ManifestName, RawManifest, media};
use crate::store::Store;

/// Layers of tools from before the CNCF layout.
const OLDER_LAYERS: [&str; 3] = [
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.module.wasm.content.layer.v1+wasm",
    "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
];

/// The largest configuration that is read, in bytes.
const MAX_CONFIG_BYTES: usize = 1 << 20;

/// The most names in one list of a configuration.
const MAX_CLAIMS: usize = 1024;

/// The most children of an index without a platform that are looked into.
const MAX_UNLABELLED: usize = 16;

/// Whether layer and configuration types from before the CNCF layout will do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OlderTypes {
    /// Older layer types, and any configuration.
    Accepted,
    /// `application/wasm` and `application/vnd.wasm.config.v0+json` only.
    Refused,
}

/// A wasm artifact, resolved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resolved {
    /// The index that was named, if it was an index.
    pub index: Option<RawManifest>,
    /// The manifest of the wasm artifact.
    pub manifest: RawManifest,
    /// The one layer.
    pub layer: Descriptor,
    /// The configuration.
    pub config: Descriptor,
    /// What the publisher says about a component. It is a claim; nothing here believes it.
    pub claims: Option<Claims>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

impl Resolved {
    /// Returns the manifest or index that the name stood for.
    #[must_use]
    pub fn named(&self) -> &RawManifest {
        self.index.as_ref().unwrap_or(&self.manifest)
    }

    /// Returns the digests about which signatures count: of the manifest, and of the index if that
    /// was named. The index names the manifest by its digest, so its signature covers it.
    #[must_use]
    pub fn subjects(&self) -> Vec<Digest> {
        self.index.iter().chain([&self.manifest]).map(|raw| raw.digest).collect()
    }
}

/// What a configuration says about its component (CNCF wasm OCI artifact layout, "component").
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, serde::Serialize)]
pub struct Claims {
    /// The imports.
    #[serde(default, deserialize_with = "list")]
    pub imports: Vec<String>,
    /// The exports.
    #[serde(default, deserialize_with = "list")]
    pub exports: Vec<String>,
    /// The world.
    #[serde(default)]
    pub target: Option<String>,
}

/// Reads a list for which writers in Go put `null` when it is empty.
fn list<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Finds the wasm manifest that `name` stands for in `store`.
///
/// # Errors
///
/// [`FetchError::NotWasm`] if it is something else; [`FetchError::IndexAmbiguous`] if it is an index
/// that doesn't name exactly one wasm manifest; otherwise [`FetchError`] of what is read.
pub async fn resolve(
    store: &dyn Store,
    name: &ManifestName,
    older: OlderTypes,
) -> Result<Resolved, FetchError> {
    let what = match name {
        ManifestName::Tag(tag) => format!("{}:{tag}", store.name()),
        ManifestName::Digest(digest) => format!("{}@{digest}", store.name()),
    };
    let named = store.manifest(name).await?;
    match manifest::parse(&named, &what)? {
        Parsed::Image(image) => artifact(store, &what, None, named, image, older).await,
        Parsed::Index(index) => {
            let (manifest, image) = child(store, &what, &index, older).await?;
            let what = format!("{}@{}", store.name(), manifest.digest);
            artifact(store, &what, Some(named), manifest, image, older).await
        }
    }
}

/// Reads the bytes of the component or module, at most `max_bytes`.
///
/// # Errors
///
/// [`FetchError`]; [`FetchError::Limit`] if the layer is larger.
pub async fn component_bytes(
    store: &dyn Store,
    resolved: &Resolved,
    max_bytes: usize,
) -> Result<Vec<u8>, FetchError> {
    store.blob(&resolved.layer, max_bytes).await
}

async fn artifact(
    store: &dyn Store,
    what: &str,
    index: Option<RawManifest>,
    manifest: RawManifest,
    image: Image,
    older: OlderTypes,
) -> Result<Resolved, FetchError> {
    let not_wasm = |reason: String| FetchError::NotWasm { what: what.to_owned(), reason };
    let layer = wasm_layer(&image, older).map_err(not_wasm)?;
    let claims = if image.config.media_type == media::WASM_CONFIG {
        claims(store, what, &image.config).await?
    } else {
        None
    };
    Ok(Resolved {
        index,
        manifest,
        layer,
        config: image.config,
        claims,
        annotations: image.annotations,
    })
}

/// Returns the layer, or what speaks against the manifest being a wasm artifact.
fn wasm_layer(image: &Image, older: OlderTypes) -> Result<Descriptor, String> {
    let layer = match image.layers.as_slice() {
        [layer] => layer,
        [] => return Err("it has no layer".to_owned()),
        layers => {
            return Err(format!("it has {} layers, and a wasm artifact has one", layers.len()));
        }
    };
    let kind = layer.media_type.as_str();
    let older_layer = OLDER_LAYERS.contains(&kind);
    match older {
        OlderTypes::Accepted if kind == media::WASM_LAYER || older_layer => Ok(layer.clone()),
        OlderTypes::Refused if kind == media::WASM_LAYER => {
            match image.config.media_type.as_str() {
                media::WASM_CONFIG => Ok(layer.clone()),
                other => Err(format!("its configuration is of type `{}`", shown(other))),
            }
        }
        OlderTypes::Refused if older_layer => {
            Err(format!("its layer is of the older type `{kind}`"))
        }
        OlderTypes::Accepted | OlderTypes::Refused => {
            Err(format!("its layer is of type `{}`", shown(kind)))
        }
    }
}

/// Chooses the one wasm manifest of an index.
async fn child(
    store: &dyn Store,
    what: &str,
    index: &Index,
    older: OlderTypes,
) -> Result<(RawManifest, Image), FetchError> {
    let ambiguous = |reason: String| FetchError::IndexAmbiguous { what: what.to_owned(), reason };
    let architecture = |child: &Descriptor| {
        child.platform.as_ref().map(|p| p.architecture.clone()).unwrap_or_default()
    };
    let wasm: Vec<&Descriptor> =
        index.manifests.iter().filter(|child| architecture(child) == "wasm").collect();
    match wasm.as_slice() {
        [] => {}
        [one] => {
            return match fetch(store, one).await? {
                (raw, Parsed::Image(image)) => Ok((raw, image)),
                (_, Parsed::Index(_)) => {
                    Err(ambiguous("its manifest for wasm is another index".to_owned()))
                }
            };
        }
        several => {
            return Err(ambiguous(format!("{} of its manifests are for wasm", several.len())));
        }
    }
    let unlabelled: Vec<&Descriptor> = index
        .manifests
        .iter()
        .filter(|child| matches!(architecture(child).as_str(), "" | "unknown"))
        .collect();
    if unlabelled.len() > MAX_UNLABELLED {
        return Err(ambiguous(format!(
            "{} of its manifests name no platform, and at most {MAX_UNLABELLED} are looked into",
            unlabelled.len()
        )));
    }
    let mut found = Vec::new();
    for child in unlabelled {
        match fetch(store, child).await? {
            (raw, Parsed::Image(image)) => {
                if wasm_layer(&image, older).is_ok() {
                    found.push((raw, image));
                }
            }
            (_, Parsed::Index(_)) => {
                return Err(ambiguous("it holds another index".to_owned()));
            }
        }
    }
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => {
            let count = more.saturating_add(1);
            Err(ambiguous(format!("{count} of its manifests are wasm artifacts")))
        }
        (None, _) => Err(FetchError::NotWasm {
            what: what.to_owned(),
            reason: "none of the manifests in the index is for wasm".to_owned(),
        }),
    }
}

async fn fetch(store: &dyn Store, child: &Descriptor) -> Result<(RawManifest, Parsed), FetchError> {
    let raw = store.manifest(&ManifestName::Digest(child.digest)).await?;
    let what = format!("{}@{}", store.name(), child.digest);
    if u64::try_from(raw.bytes.len()).ok() != Some(child.size) {
        let reason =
            format!("it has {} bytes, not the {} of its index", raw.bytes.len(), child.size);
        return Err(FetchError::Protocol { what, reason });
    }
    if !child.media_type.is_empty() && child.media_type != raw.media_type {
        let reason = format!("it is served as `{}` and listed as another type", raw.media_type);
        return Err(FetchError::Protocol { what, reason });
    }
    let parsed = manifest::parse(&raw, &what)?;
    Ok((raw, parsed))
}

async fn claims(
    store: &dyn Store,
    what: &str,
    config: &Descriptor,
) -> Result<Option<Claims>, FetchError> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        component: Option<Claims>,
    }
    let wrong = |error: String| FetchError::Protocol {
        what: format!("{what} (configuration)"),
        reason: error,
    };
    let bytes = store.blob(config, MAX_CONFIG_BYTES).await?;
    let limits = DocumentLimits { max_documents: 1, ..DocumentLimits::default() };
    let documents = document::parse(&bytes, Format::Json, &limits);
    let documents = documents.map_err(|error| wrong(error.to_string()))?;
    let component = documents.first().and_then(|document| document.root().get("component"));
    if component.is_some_and(|component| component.as_sequence().is_some()) {
        return Err(wrong("`component` is a list".to_owned()));
    }
    let config: Config =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if let Some(claims) = &config.component
        && claims.imports.len().max(claims.exports.len()) > MAX_CLAIMS
    {
        return Err(FetchError::Limit {
            what: format!("{what} (imports or exports in the configuration)"),
            limit: u64::try_from(MAX_CLAIMS).unwrap_or(u64::MAX),
        });
    }
    Ok(config.component)
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}
