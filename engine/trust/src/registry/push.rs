//! Pushing blobs and manifests (distribution specification 1.1, "Push").

use ambit_engine::digest::Digest;
use ambit_engine::document::Node;
use reqwest::header::{HeaderName, LOCATION};
use reqwest::{Method, Url};

use super::address::resolve_url;
use super::exchange::{Exchange, Length, Request, Scope};
use super::read;
use crate::error::FetchError;
use crate::oci::{MAX_MANIFEST_BYTES, ManifestName, SubjectIndexed};

/// The most of an answer to a push that is read; nothing in it is used.
const MAX_ANSWER: usize = 64 << 10;

const OCI_SUBJECT: HeaderName = HeaderName::from_static("oci-subject");

/// Stores a blob, unless it is there.
pub(super) async fn blob(
    exchange: &Exchange<'_>,
    digest: &Digest,
    bytes: &[u8],
) -> Result<(), FetchError> {
    let length = Length::AtMost(MAX_ANSWER);
    let mut head = Request::read(exchange.route.url(&format!("blobs/{digest}"))?, "*/*", length);
    head.method = Method::HEAD;
    head.scope = Scope::Push;
    match exchange.retried(&head).await {
        Ok(_) => return Ok(()),
        Err(FetchError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let octets = || "application/octet-stream".to_owned();
    let start = Request {
        method: Method::POST,
        url: exchange.route.url("blobs/uploads/")?,
        accept: "*/*",
        content: Some((octets(), Vec::new())),
        scope: Scope::Push,
        length,
    };
    let started = exchange.once(&start).await.map_err(|failure| failure.error)?;
    let location = started
        .headers
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .ok_or_else(|| exchange.protocol("the registry says no location for the upload"))?;
    let mut url = upload_url(exchange, location, &start.url)?;
    url.query_pairs_mut().append_pair("digest", &digest.to_string());
    let finish = Request {
        method: Method::PUT,
        url,
        accept: "*/*",
        content: Some((octets(), bytes.to_vec())),
        scope: Scope::Push,
        length,
    };
    exchange.once(&finish).await.map(drop).map_err(|failure| failure.error)
}

/// Returns where an upload goes on: on the registry itself, since credentials go along.
fn upload_url(exchange: &Exchange<'_>, location: &str, base: &Url) -> Result<Url, FetchError> {
    let home = &exchange.route.site;
    let mut url = resolve_url(location, base)?;
    url.set_fragment(None);
    let site = exchange.shared.gate.onward(&url, home, home.scheme)?;
    if site.authority != home.authority || site.scheme != home.scheme {
        return Err(FetchError::Address {
            host: site.authority.to_string(),
            reason: "an upload goes on at the registry itself, not at another place".to_owned(),
        });
    }
    Ok(url)
}

/// Checks a manifest before anything is sent, and returns the digest of its subject.
pub(super) fn check(
    name: &ManifestName,
    bytes: &[u8],
    what: &str,
) -> Result<Option<Digest>, FetchError> {
    if bytes.len() > MAX_MANIFEST_BYTES {
        let limit = u64::try_from(MAX_MANIFEST_BYTES).unwrap_or(u64::MAX);
        return Err(FetchError::Limit { what: format!("{what} (bytes)"), limit });
    }
    let found = Digest::of(bytes);
    if let ManifestName::Digest(expected) = name
        && *expected != found
    {
        return Err(FetchError::DigestMismatch {
            what: what.to_owned(),
            expected: expected.to_string(),
            found: found.to_string(),
        });
    }
    let protocol = |reason: String| FetchError::Protocol { what: what.to_owned(), reason };
    let root = read::object(bytes).map_err(protocol)?;
    match root.get("subject").filter(|subject| !subject.is_null()) {
        None => Ok(None),
        Some(subject) => subject
            .get("digest")
            .and_then(Node::as_str)
            .and_then(|text| text.parse().ok())
            .map(Some)
            .ok_or_else(|| protocol("its subject has no digest".to_owned())),
    }
}

/// Stores a manifest.
pub(super) async fn manifest(
    exchange: &Exchange<'_>,
    name: &ManifestName,
    media_type: &str,
    bytes: &[u8],
    subject: Option<&Digest>,
) -> Result<SubjectIndexed, FetchError> {
    let request = Request {
        method: Method::PUT,
        url: exchange.route.url(&format!("manifests/{name}"))?,
        accept: "*/*",
        content: Some((media_type.to_owned(), bytes.to_vec())),
        scope: Scope::Push,
        length: Length::AtMost(MAX_ANSWER),
    };
    let stored = exchange.once(&request).await.map_err(|failure| failure.error)?;
    let Some(subject) = subject else { return Ok(SubjectIndexed::ByStore) };
    let said = stored.headers.get(OCI_SUBJECT).and_then(|value| value.to_str().ok());
    let indexed =
        said.and_then(|text| text.trim().parse::<Digest>().ok()).as_ref() == Some(subject);
    Ok(if indexed { SubjectIndexed::ByStore } else { SubjectIndexed::ByNobody })
}
