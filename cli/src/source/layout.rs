//! OCI image layouts on disk (image specification 1.1, "OCI Image Layout Specification").
//!
//! Every blob is found by its digest and hashed again, so that a changed file is an error.

use std::path::{Path, PathBuf};

use ambit_engine::digest::Digest;
use serde::Deserialize;

use super::read_file;
use crate::output::Failure;

/// The largest manifest or index.
const MAX_MANIFEST: usize = 4 << 20;

/// The layer of a component (CNCF wasm OCI artifact layout).
const WASM_LAYER: &str = "application/wasm";

/// Layers of older tools.
const OLD_LAYERS: [&str; 2] = [
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
];

#[derive(Debug, Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

fn failure(path: &Path, message: impl Into<String>, help: &str) -> Failure {
    Failure::new(
        "layout-invalid",
        format!("{}: {}", path.display(), message.into()),
        Some(help.to_owned()),
    )
}

/// Reads the component that a layout holds, by tag if it holds several.
pub(super) fn component(dir: &Path, tag: Option<&str>, limit: usize) -> Result<Vec<u8>, Failure> {
    let index = dir.join("index.json");
    let bytes = read_file(&index, MAX_MANIFEST)?;
    let index: Index = parse(&index, &bytes)?;
    let named: Vec<&Descriptor> = index
        .manifests
        .iter()
        .filter(|manifest| {
            tag.is_none_or(|tag| {
                manifest
                    .annotations
                    .get("org.opencontainers.image.ref.name")
                    .is_some_and(|n| n == tag)
            })
        })
        .collect();
    let manifest = match (named.as_slice(), tag) {
        ([one], _) => *one,
        ([], Some(tag)) => {
            return Err(failure(
                dir,
                format!("no manifest is tagged `{tag}`"),
                "check the tag in `index.json`",
            ));
        }
        ([], None) => {
            return Err(failure(dir, "the index names no manifest", "push a component into it"));
        }
        (_, _) => {
            return Err(failure(
                dir,
                "the index names several manifests",
                "choose one by tag: `layout:DIR:TAG`",
            ));
        }
    };
    let manifest: Manifest = parse(dir, &blob(dir, manifest, MAX_MANIFEST)?)?;
    let manifest = match manifest.manifests.as_slice() {
        [] => manifest,
        [one] => parse(dir, &blob(dir, one, MAX_MANIFEST)?)?,
        _ => {
            return Err(failure(
                dir,
                "an index in the index holds several manifests",
                "keep the one for wasm",
            ));
        }
    };
    let layers: Vec<&Descriptor> = manifest
        .layers
        .iter()
        .filter(|layer| {
            layer.media_type == WASM_LAYER || OLD_LAYERS.contains(&layer.media_type.as_str())
        })
        .collect();
    match layers.as_slice() {
        [layer] => blob(dir, layer, limit),
        [] => Err(failure(
            dir,
            "the manifest has no layer of type `application/wasm`",
            "give the layout of a wasm component",
        )),
        _ => Err(failure(
            dir,
            "the manifest has several layers of type `application/wasm`",
            "give a layout with one component",
        )),
    }
}

fn parse<T: for<'de> Deserialize<'de>>(path: &Path, bytes: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes)
        .map_err(|error| failure(path, error.to_string(), "write the layout again"))
}

/// Reads a blob and checks size and digest.
fn blob(dir: &Path, descriptor: &Descriptor, limit: usize) -> Result<Vec<u8>, Failure> {
    let digest: Digest = descriptor
        .digest
        .parse()
        .map_err(|error| failure(dir, format!("{error}"), "write the layout again"))?;
    let text = digest.to_string();
    let path: PathBuf = dir.join("blobs").join("sha256").join(text.trim_start_matches("sha256:"));
    let bytes = read_file(&path, limit)?;
    let found = Digest::of(&bytes);
    if u64::try_from(bytes.len()).ok() != Some(descriptor.size) || found != digest {
        return Err(Failure::new(
            "layout-digest-mismatch",
            format!(
                "{}: the bytes have digest {found}, not the one that names them",
                path.display()
            ),
            Some("the layout was changed or damaged; write it again".to_owned()),
        ));
    }
    Ok(bytes)
}
