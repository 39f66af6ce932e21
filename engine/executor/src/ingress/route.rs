//! Which workload a request is for.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::egress::{Body, BoxFuture};
use crate::serve::{Handler, refusal};

/// Whether pages of other sites may send requests through a browser.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CrossSite {
    /// They may not.
    #[default]
    Refused,
    /// They may.
    Allowed,
}

/// What answers HTTP requests.
pub trait Answers: std::fmt::Debug + Send + Sync {
    /// Answers one request; there is always an answer.
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<Response<Body>>;
}

impl Answers for Handler {
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<Response<Body>> {
        Box::pin(self.handle(request))
    }
}

/// A workload behind a name.
#[derive(Clone, Debug)]
pub struct Route {
    /// What answers.
    pub handler: Arc<dyn Answers>,
    /// Whether pages of other sites may ask it.
    pub cross_site: CrossSite,
}

/// Workloads by the names that they answer to.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    by_host: BTreeMap<String, Route>,
}

impl Routes {
    /// Adds a workload under `NAME.localhost` and the other names that its document gives. Returns
    /// the name that another workload has already, if one has.
    ///
    /// # Errors
    ///
    /// The name that is taken.
    pub fn add(&mut self, name: &str, hosts: &[String], route: &Route) -> Result<(), String> {
        let own = format!("{}.localhost", label(name));
        for host in std::iter::once(&own).chain(hosts) {
            if self.by_host.contains_key(host) && *host != own {
                return Err(host.clone());
            }
            if self.by_host.insert(host.clone(), route.clone()).is_some() {
                return Err(host.clone());
            }
        }
        Ok(())
    }

    /// Returns the names, in order.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.by_host.keys().map(String::as_str)
    }

    /// Answers a request: by the workload that it is for, or by saying why by none.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        match self.route(request.headers(), request.uri(), request.version()) {
            Ok(route) => Arc::clone(&route.handler).answer(request).await,
            Err(refused) => refusal(refused.status, refused.code, &refused.message),
        }
    }

    fn route(
        &self,
        headers: &HeaderMap,
        uri: &http::Uri,
        version: http::Version,
    ) -> Result<&Route, Refused> {
        let authority = authority(headers, uri, version)?;
        let host = canonical(&authority);
        let Some(route) = self.by_host.get(&host) else {
            let known = host.strip_suffix(".localhost").is_some_and(is_label);
            return Err(if known {
                refused(StatusCode::NOT_FOUND, "ingress-unknown", format!("no workload `{host}`"))
            } else {
                let message = format!("`{host}` is no name of a workload here");
                refused(StatusCode::MISDIRECTED_REQUEST, "ingress-host", message)
            });
        };
        if route.cross_site == CrossSite::Refused {
            same_site(headers, &authority)?;
        }
        Ok(route)
    }
}

/// Why a request is for no workload.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    code: &'static str,
    message: String,
}

fn refused(status: StatusCode, code: &'static str, message: impl Into<String>) -> Refused {
    Refused { status, code, message: message.into() }
}

/// Returns the one authority of a request.
fn authority(
    headers: &HeaderMap,
    uri: &http::Uri,
    version: http::Version,
) -> Result<String, Refused> {
    let bad = |message: &str| refused(StatusCode::BAD_REQUEST, "ingress-request", message);
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| bad("the Host header isn't text"))?,
        (None, _) if version == http::Version::HTTP_10 => {
            return Err(bad("HTTP/1.0 without a Host header isn't served"));
        }
        (None, _) => return Err(bad("there is no Host header")),
        (Some(_), Some(_)) => return Err(bad("there are several Host headers")),
    };
    // A target in absolute form counts (RFC 9112 section 3.2.2), so it has to agree.
    if let Some(target) = uri.authority()
        && canonical(target.as_str()) != canonical(host)
    {
        return Err(bad("the Host header and the request's target differ"));
    }
    if uri.scheme_str().is_some_and(|scheme| scheme != "http") {
        return Err(bad("the request's target has another scheme"));
    }
    Ok(host.to_owned())
}

/// Refuses what a browser sends for a page of another site.
fn same_site(headers: &HeaderMap, authority: &str) -> Result<(), Refused> {
    const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    let cross = |what: &str| {
        let message = format!("{what}; `--allow-cross-site NAME` lets other sites in");
        Err(refused(StatusCode::FORBIDDEN, "ingress-cross-site", message))
    };
    if headers.get(FETCH_SITE).is_some_and(|site| site == "cross-site") {
        return cross("a browser sent this for a page of another site");
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let own = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("http://"))
        .is_some_and(|origin| origin.eq_ignore_ascii_case(authority));
    if own { Ok(()) } else { cross("the Origin is another site") }
}

/// The host of an authority: lower case, without port and one dot at the end.
fn canonical(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Makes a DNS label of a workload's name: of `registry.example/team/Mail:1.4` it is `mail`, of
/// `http_handler.wasm` it is `http-handler`.
#[must_use]
pub fn label(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.split('@').next().unwrap_or(last);
    let last = last.split(':').next().unwrap_or(last);
    let last = last.strip_suffix(".wasm").unwrap_or(last);
    let mut label: String = last
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(63)
        .collect();
    while label.ends_with('-') {
        label.pop();
    }
    let label = label.trim_start_matches('-').to_owned();
    if label.is_empty() { "workload".to_owned() } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_labels() {
        for (name, expected) in [
            ("hello", "hello"),
            ("http_handler.wasm", "http-handler"),
            ("registry.example/team/Mail:1.4", "mail"),
            ("registry.example:5000/mail@sha256:00", "mail"),
            ("--", "workload"),
            ("", "workload"),
        ] {
            assert_eq!(label(name), expected, "{name}");
        }
    }

    #[test]
    fn one_host_has_one_form() {
        for text in
            ["hello.localhost", "HELLO.localhost.:8200", "hello.localhost.", "hello.localhost:1"]
        {
            assert_eq!(canonical(text), "hello.localhost", "{text}");
        }
        assert_eq!(canonical("[::1]:80"), "[::1]");
    }
}
