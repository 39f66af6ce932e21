//! Reading manifests and blobs.

use ambit_engine::digest::Digest;
use ambit_engine::document::{DocumentLimits, Format, Node, parse};
use reqwest::header::{CONTENT_TYPE, HeaderMap};

use super::exchange::{Exchange, Length, Request};
use super::text::printable;
use crate::error::FetchError;
use crate::oci::{Descriptor, MAX_MANIFEST_BYTES, ManifestName, RawManifest, media};

/// The types of manifests and indexes that are read.
const MANIFESTS: [&str; 2] = [media::MANIFEST, media::DOCKER_MANIFEST];
const INDEXES: [&str; 2] = [media::INDEX, media::DOCKER_LIST];

/// The same as one header (some registries read only the first `Accept`).
const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

pub(super) fn is_manifest_type(media_type: &str) -> bool {
    MANIFESTS.contains(&media_type) || INDEXES.contains(&media_type)
}

pub(super) fn is_index_type(media_type: &str) -> bool {
    INDEXES.contains(&media_type)
}

/// Reads a manifest. The one answer to this request says what a tag is.
pub(super) async fn manifest(
    exchange: &Exchange<'_>,
    name: &ManifestName,
) -> Result<RawManifest, FetchError> {
    let url = exchange.route.url(&format!("manifests/{name}"))?;
    let request = Request::read(url, ACCEPT, Length::AtMost(MAX_MANIFEST_BYTES));
    let fetched = exchange.retried(&request).await?;
    let digest = Digest::of(&fetched.body);
    if let ManifestName::Digest(expected) = name {
        same(exchange, expected, &digest)?;
    }
    let (media_type, _) = typed(exchange, &fetched.headers, &fetched.body)?;
    Ok(RawManifest { digest, media_type, bytes: fetched.body })
}

fn same(exchange: &Exchange<'_>, expected: &Digest, found: &Digest) -> Result<(), FetchError> {
    if expected == found {
        return Ok(());
    }
    Err(FetchError::DigestMismatch {
        what: exchange.what.clone(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

/// Returns the type of a manifest or index, and its content.
///
/// A body is read as what it says it is only if the header says the same and its fields fit, so
/// that no two readers take it for two things (image specification 1.1, "Image Manifest").
pub(super) fn typed(
    exchange: &Exchange<'_>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(String, Node), FetchError> {
    let header = match headers.get(CONTENT_TYPE) {
        Some(value) => {
            let text = value.to_str().map_err(|_| exchange.protocol("its type can't be read"))?;
            text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
        }
        None => String::new(),
    };
    let root = object(body).map_err(|reason| exchange.protocol(reason))?;
    let own = match root.get("mediaType") {
        None => "",
        Some(node) => {
            node.as_str().ok_or_else(|| exchange.protocol("its `mediaType` is no text"))?
        }
    };
    let media_type = match (header.as_str(), own) {
        ("", "") => return Err(exchange.protocol("neither header nor body says what it is")),
        ("", own) => own,
        (header, "") => header,
        (header, own) if header == own => own,
        (header, own) => {
            return Err(exchange.protocol(format!(
                "the answer says `{}`, and its body `{}`",
                printable(header),
                printable(own)
            )));
        }
    };
    if !is_manifest_type(media_type) {
        let shown = printable(media_type);
        return Err(exchange.protocol(format!("`{shown}` is no manifest that is read")));
    }
    let has = |key: &str| root.get(key).is_some();
    let (wanted, other) =
        if is_index_type(media_type) { ("manifests", "layers") } else { ("layers", "manifests") };
    if has(other) {
        let reason = if has(wanted) {
            "it has both `layers` and `manifests`".to_owned()
        } else {
            format!("`{media_type}` has `{other}`")
        };
        return Err(exchange.protocol(reason));
    }
    Ok((media_type.to_owned(), root))
}

/// Reads one strict JSON object.
pub(super) fn object(body: &[u8]) -> Result<Node, String> {
    let limits = DocumentLimits {
        max_bytes: MAX_MANIFEST_BYTES,
        max_documents: 1,
        ..DocumentLimits::default()
    };
    let documents =
        parse(body, Format::Json, &limits).map_err(|error| printable(&error.to_string()))?;
    let root = documents.into_iter().next().map(ambit_engine::document::Document::into_root);
    root.filter(|root| root.as_mapping().is_some()).ok_or_else(|| "it is no JSON object".to_owned())
}

/// Returns a blob's size, if that may be read.
pub(super) fn bounded(
    blob: &Descriptor,
    max_bytes: usize,
    what: &str,
) -> Result<usize, FetchError> {
    match usize::try_from(blob.size) {
        Ok(size) if size <= max_bytes => Ok(size),
        _ => Err(FetchError::Limit {
            what: format!("{what} (bytes)"),
            limit: u64::try_from(max_bytes).unwrap_or(u64::MAX),
        }),
    }
}

/// Reads a blob of exactly this size and digest.
pub(super) async fn blob(
    exchange: &Exchange<'_>,
    digest: &Digest,
    size: usize,
) -> Result<Vec<u8>, FetchError> {
    let url = exchange.route.url(&format!("blobs/{digest}"))?;
    let request = Request::read(url, "*/*", Length::Described(size));
    let fetched = exchange.retried(&request).await?;
    same(exchange, digest, &Digest::of(&fetched.body))?;
    if fetched.body.len() != size {
        // The digest fits, so it is the descriptor that is wrong.
        let found = fetched.body.len();
        return Err(exchange.protocol(format!("it has {found} bytes, its descriptor says {size}")));
    }
    Ok(fetched.body)
}
