//! Listing what names a manifest as its subject (distribution specification 1.1, "Listing
//! Referrers" and "Referrers Tag Schema").

use std::collections::BTreeSet;

use ambit_engine::digest::{Digest, DigestError};
use ambit_engine::document::Node;
use reqwest::Url;
use reqwest::header::{HeaderMap, LINK};

use super::address::resolve_url;
use super::exchange::{Exchange, Length, Request};
use super::read;
use super::text::printable;
use crate::error::FetchError;
use crate::oci::{Descriptor, MAX_MANIFEST_BYTES, MAX_REFERRERS, ManifestName, media};
use crate::store::Referrers;

/// The most pages that are asked for.
const MAX_PAGES: usize = 16;

/// The most links, and the longest `Link` header, that are looked at.
const MAX_LINK: usize = 8 << 10;

pub(super) async fn list(
    exchange: &Exchange<'_>,
    subject: &Digest,
) -> Result<Referrers, FetchError> {
    let mut url = exchange.route.url(&format!("referrers/{subject}"))?;
    let mut found = Collected::default();
    let mut asked = BTreeSet::new();
    for page in 0..MAX_PAGES {
        if !asked.insert(url.as_str().to_owned()) {
            return Err(exchange.protocol("a page of the list leads back to an earlier one"));
        }
        let request = Request::read(url.clone(), media::INDEX, Length::AtMost(MAX_MANIFEST_BYTES));
        let fetched = match exchange.retried(&request).await {
            // Only this says that there is no such API. A page that is gone is another matter.
            Err(FetchError::NotFound { .. }) if page == 0 => {
                return fallback(exchange, subject).await;
            }
            Err(FetchError::NotFound { .. }) => {
                return Err(exchange.protocol("a page of the list is not there"));
            }
            other => other?,
        };
        let (media_type, root) = read::typed(exchange, &fetched.headers, &fetched.body)?;
        found.add(exchange, &media_type, &root)?;
        match next(exchange, &fetched.headers, &url)? {
            None => return Ok(found.finish()),
            Some(_) if found.truncated => return Ok(found.finish()),
            Some(next) => url = next,
        }
    }
    found.truncated = true;
    Ok(found.finish())
}

/// Reads the index that clients keep where the registry has no such API.
async fn fallback(exchange: &Exchange<'_>, subject: &Digest) -> Result<Referrers, FetchError> {
    let tag = subject.to_string().replacen(':', "-", 1);
    let manifest = match read::manifest(exchange, &ManifestName::Tag(tag)).await {
        Err(FetchError::NotFound { .. }) => return Ok(Referrers::default()),
        other => other?,
    };
    let root = read::object(&manifest.bytes).map_err(|reason| exchange.protocol(reason))?;
    let mut found = Collected::default();
    found.add(exchange, &manifest.media_type, &root)?;
    Ok(found.finish())
}

#[derive(Default)]
struct Collected {
    descriptors: Vec<Descriptor>,
    seen: BTreeSet<Digest>,
    truncated: bool,
}

impl Collected {
    fn add(
        &mut self,
        exchange: &Exchange<'_>,
        media_type: &str,
        root: &Node,
    ) -> Result<(), FetchError> {
        if !read::is_index_type(media_type) {
            return Err(exchange.protocol("the list of referrers is no index"));
        }
        let items = match root.get("manifests") {
            None => &[][..],
            Some(node) if node.is_null() => &[][..],
            Some(node) => node
                .as_sequence()
                .ok_or_else(|| exchange.protocol("`manifests` of the list is no list"))?,
        };
        for item in items {
            let Some(descriptor) = descriptor(exchange, item)? else { continue };
            if self.seen.contains(&descriptor.digest) {
                continue;
            }
            if self.descriptors.len() >= MAX_REFERRERS {
                self.truncated = true;
                return Ok(());
            }
            self.seen.insert(descriptor.digest);
            self.descriptors.push(descriptor);
        }
        Ok(())
    }

    fn finish(self) -> Referrers {
        Referrers { descriptors: self.descriptors, truncated: self.truncated }
    }
}

/// Reads one descriptor; what can be no manifest of ours is passed over.
fn descriptor(exchange: &Exchange<'_>, item: &Node) -> Result<Option<Descriptor>, FetchError> {
    let text = |key: &str| item.get(key).and_then(Node::as_str);
    if item.as_mapping().is_none() {
        return Err(exchange.protocol("a descriptor in the list is no object"));
    }
    if !read::is_manifest_type(text("mediaType").unwrap_or_default()) {
        return Ok(None);
    }
    match text("digest").map(str::parse::<Digest>) {
        Some(Err(DigestError::Algorithm(_))) => return Ok(None),
        Some(Ok(_)) => {}
        _ => return Err(exchange.protocol("a descriptor in the list has no digest")),
    }
    let mut value = item.to_json();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    serde_json::from_value(value).map(Some).map_err(|error| {
        let reason = printable(&error.to_string());
        exchange.protocol(format!("a descriptor in the list can't be read: {reason}"))
    })
}

/// Returns the next page that a `Link` header names (RFC 8288), in the same list.
fn next(
    exchange: &Exchange<'_>,
    headers: &HeaderMap,
    current: &Url,
) -> Result<Option<Url>, FetchError> {
    for value in headers.get_all(LINK) {
        let text = value
            .to_str()
            .ok()
            .filter(|text| text.len() <= MAX_LINK)
            .ok_or_else(|| exchange.protocol("its link to the next page can't be read"))?;
        let Some(target) = next_target(text) else { continue };
        let mut url = resolve_url(target, current)?;
        url.set_fragment(None);
        let site =
            exchange.shared.gate.onward(&url, &exchange.route.site, exchange.route.site.scheme)?;
        let prefix = format!("{}referrers/", exchange.route.base.path());
        if site.authority != exchange.route.site.authority
            || site.scheme != exchange.route.site.scheme
            || !url.path().starts_with(&prefix)
        {
            return Err(exchange.protocol("its link to the next page leads out of the list"));
        }
        return Ok(Some(url));
    }
    Ok(None)
}

/// Returns the target of the first link with the relation `next`.
fn next_target(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let (_, after) = rest.split_once('<')?;
        let (target, after) = after.split_once('>')?;
        // Parameters reach to the next comma outside of quotes.
        let mut quoted = false;
        let end = after
            .char_indices()
            .find(|(_, c)| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            })
            .map_or(after.len(), |(at, _)| at);
        let (parameters, following) = after.split_at_checked(end)?;
        let is_next = parameters.split(';').any(|parameter| {
            parameter.split_once('=').is_some_and(|(name, value)| {
                name.trim().eq_ignore_ascii_case("rel")
                    && value
                        .trim()
                        .trim_matches('"')
                        .split_ascii_whitespace()
                        .any(|relation| relation.eq_ignore_ascii_case("next"))
            })
        });
        if is_next {
            return Some(target);
        }
        rest = following;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn next_page_is_found_among_links() {
        assert_eq!(next_target(r#"</a?n=1>; rel="next""#), Some("/a?n=1"));
        assert_eq!(next_target("</a>;rel=next"), Some("/a"));
        assert_eq!(
            next_target(r#"</a>; rel="prev", </b,c>; title="x, <y>"; REL="last next""#),
            Some("/b,c")
        );
        for text in ["", "<", "<a", "<a>", "<a>; rel=\"prev\"", "rel=next", "<a>; rel=\"nextish\""]
        {
            assert_eq!(next_target(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_link_breaks_the_parser(text in "[ -~]{0,200}") {
            let _ = next_target(&text);
        }
    }
}
