//! One request with all that belongs to it: credentials, redirects, limits, retries.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue,
    LOCATION, RETRY_AFTER,
};
use reqwest::{Method, Response, StatusCode, Url};

use super::address::{Net, Refused, resolve_url};
use super::auth::{Authorization, Tokens};
use super::breaker::Registry;
use super::{Route, Session, Shared, challenge, text, time};
use crate::error::FetchError;

/// The most redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// The most of an error's body that is read.
const MAX_ERROR_BODY: usize = 4 << 10;

/// What stands for a text that repeats a credential.
pub(super) const LEFT_OUT: &str = "what it says repeats a credential and is left out";

/// A call in progress.
pub(super) struct Exchange<'a> {
    pub(super) shared: &'a Shared,
    pub(super) session: &'a Session,
    pub(super) route: &'a Route,
    pub(super) registry: Arc<Registry>,
    /// What is read or written, for messages.
    pub(super) what: String,
    /// When the call began.
    pub(super) started: Duration,
}

/// What the call may do in its repository.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scope {
    Pull,
    Push,
}

impl Scope {
    pub(super) fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

/// How much of an answer is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Length {
    /// So much; more is over the limit.
    AtMost(usize),
    /// What a descriptor says; more is another blob.
    Described(usize),
}

/// A request to the registry.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) accept: &'static str,
    pub(super) content: Option<(String, Vec<u8>)>,
    pub(super) scope: Scope,
    pub(super) length: Length,
}

impl Request {
    pub(super) fn read(url: Url, accept: &'static str, length: Length) -> Self {
        Self { method: Method::GET, url, accept, content: None, scope: Scope::Pull, length }
    }
}

/// An answer with a status of success.
pub(super) struct Fetched {
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// An error, and whether the same request may do better.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: FetchError,
    pub(super) again: Again,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Again {
    No,
    Yes,
    After(Duration),
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self { error, again: Again::No }
    }
}

impl Exchange<'_> {
    pub(super) fn protocol(&self, reason: impl Into<String>) -> FetchError {
        FetchError::Protocol { what: self.what.clone(), reason: reason.into() }
    }

    pub(super) fn auth(&self, reason: impl Into<String>) -> FetchError {
        FetchError::Auth { what: self.what.clone(), reason: reason.into() }
    }

    /// Makes a request that may be made again.
    pub(super) async fn retried(&self, request: &Request) -> Result<Fetched, FetchError> {
        let options = &self.shared.options;
        let mut tries = 1_u32;
        loop {
            let failure = match self.once(request).await {
                Ok(fetched) => {
                    self.registry.earn();
                    return Ok(fetched);
                }
                Err(failure) => failure,
            };
            let pause = match failure.again {
                Again::No => return Err(failure.error),
                Again::After(pause) => pause,
                Again::Yes => {
                    let doubled = options.retries.pause.saturating_mul(
                        1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX),
                    );
                    // Between half of the pause and all of it.
                    let part = options.timer.chance().min(999).saturating_add(1001);
                    doubled.saturating_mul(part).checked_div(2000).unwrap_or(doubled)
                }
            };
            let spent = options.timer.elapsed().saturating_sub(self.started);
            if tries >= options.retries.tries
                || spent.saturating_add(pause) >= options.call_timeout
                || !self.registry.spend()
            {
                return Err(failure.error);
            }
            options.timer.sleep(pause).await;
            tries = tries.saturating_add(1);
        }
    }

    /// Makes a request one time, with at most one answer to a challenge.
    pub(super) async fn once(&self, request: &Request) -> Result<Fetched, Failure> {
        let home = &self.route.site;
        let mut sent = match self.session.memory.challenge(&home.authority) {
            Some(known) => self.authorize(&known, request.scope, Tokens::Kept).await?,
            None => None,
        };
        let mut response = self.send(request, &request.url, home.net, sent.as_ref()).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let asked = challenge::choose(response.headers())
                .ok_or_else(|| self.auth("it asks for a login in a form that isn't spoken here"))?;
            self.session.memory.remember(&home.authority, &asked);
            let tokens = if sent.is_some() { Tokens::New } else { Tokens::Kept };
            let Some(answer) = self.authorize(&asked, request.scope, tokens).await? else {
                return Err(self.auth(self.no_credential().await?).into());
            };
            if sent.as_ref().is_some_and(|sent| sent.is(&answer)) {
                return Err(self.auth("it refuses the login that it was given").into());
            }
            response = self.send(request, &request.url, home.net, Some(&answer)).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                return Err(self.auth("it refuses the login that it was given").into());
            }
            sent = Some(answer);
        }
        if request.method == Method::GET {
            response = self.follow(request, response, sent.as_ref()).await?;
        }
        self.finish(request, response, sent.as_ref()).await
    }

    async fn follow(
        &self,
        request: &Request,
        mut response: Response,
        sent: Option<&Authorization>,
    ) -> Result<Response, Failure> {
        let home = &self.route.site;
        let (mut url, mut from, mut at_home) = (request.url.clone(), home.scheme, true);
        let mut hops = 0_usize;
        while response.status().is_redirection()
            && let Some(location) = response.headers().get(LOCATION)
        {
            hops = hops.saturating_add(1);
            if hops > MAX_REDIRECTS {
                return Err(self
                    .protocol(format!("more than {MAX_REDIRECTS} redirects in a row"))
                    .into());
            }
            let location =
                location.to_str().map_err(|_| self.protocol("a redirect that can't be read"))?;
            let mut next = resolve_url(location, &url)?;
            next.set_fragment(None);
            let site = self.shared.gate.onward(&next, home, from)?;
            // Once another host had its say, the way back is its choice and carries nothing.
            at_home &= site.authority == home.authority && site.scheme == home.scheme;
            response = self.send(request, &next, site.net, sent.filter(|_| at_home)).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                let host = next.host_str().unwrap_or_default();
                return Err(self
                    .auth(format!("it redirects to `{host}`, which asks for a login"))
                    .into());
            }
            (url, from) = (next, site.scheme);
        }
        Ok(response)
    }

    pub(super) async fn send(
        &self,
        request: &Request,
        url: &Url,
        net: Net,
        authorization: Option<&Authorization>,
    ) -> Result<Response, Failure> {
        let http = self.shared.http(net).map_err(|reason| self.unavailable(reason))?;
        let mut builder = http
            .request(request.method.clone(), url.clone())
            .header(ACCEPT_ENCODING, "identity")
            .header(ACCEPT, request.accept);
        if let Some((media_type, body)) = &request.content {
            builder = builder.header(CONTENT_TYPE, media_type).body(body.clone());
        }
        if let Some(authorization) = authorization {
            let mut value =
                HeaderValue::from_str(authorization.header().reveal()).map_err(|_| {
                    self.auth("the credential holds characters that no header may have")
                })?;
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        builder.send().await.map_err(|error| self.broken(&error))
    }

    fn unavailable(&self, reason: String) -> FetchError {
        FetchError::Unavailable { registry: self.route.registry.clone(), reason }
    }

    /// Says what went wrong below HTTP. An address that was refused is no outage.
    fn broken(&self, error: &reqwest::Error) -> Failure {
        let mut cause: Option<&dyn Error> = Some(error);
        while let Some(this) = cause {
            if let Some(refused) = this.downcast_ref::<Refused>() {
                return FetchError::from(refused).into();
            }
            cause = this.source();
        }
        if error.is_builder() {
            return self.protocol("the request can't be made").into();
        }
        Failure { error: self.unavailable(deepest(error)), again: Again::Yes }
    }

    /// Reads the body of an answer, or makes an error of it.
    pub(super) async fn finish(
        &self,
        request: &Request,
        response: Response,
        sent: Option<&Authorization>,
    ) -> Result<Fetched, Failure> {
        let status = response.status();
        let head = request.method == Method::HEAD;
        // A registry that says where the content is says that it is there.
        if !(status.is_success() || (head && status.is_redirection())) {
            return Err(self.refusal(response, sent).await);
        }
        let headers = response.headers().clone();
        if head {
            return Ok(Fetched { headers, body: Vec::new() });
        }
        for encoding in headers.get_all(CONTENT_ENCODING) {
            if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") {
                return Err(self
                    .protocol("the answer is compressed, which nobody asked for")
                    .into());
            }
        }
        let body = self.body(response, request.length).await?;
        Ok(Fetched { headers, body })
    }

    async fn body(&self, mut response: Response, length: Length) -> Result<Vec<u8>, Failure> {
        let (limit, too_long) = match length {
            Length::AtMost(limit) => {
                let what = format!("{} (bytes)", self.what);
                let limit_shown = u64::try_from(limit).unwrap_or(u64::MAX);
                (limit, FetchError::Limit { what, limit: limit_shown })
            }
            Length::Described(size) => {
                (size, self.protocol(format!("more came than the {size} bytes of its descriptor")))
            }
        };
        let announced = response.content_length();
        if announced.is_some_and(|bytes| usize::try_from(bytes).map_or(true, |b| b > limit)) {
            return Err(too_long.into());
        }
        // What is announced is a claim, so memory follows what comes.
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(&error))? {
            if body.len().saturating_add(chunk.len()) > limit {
                return Err(too_long.into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Makes an error of an answer without success.
    async fn refusal(&self, response: Response, sent: Option<&Authorization>) -> Failure {
        let status = response.status();
        let shared = self.shared;
        let registry = match response.url().host_str() {
            Some(host) if response.url().authority() != self.route.base.authority() => {
                host.to_owned()
            }
            _ => self.route.registry.clone(),
        };
        let after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| time::retry_after(text, shared.options.timer.now()));
        let said = self.excerpt(response, sent).await;
        let reason = if said.is_empty() {
            format!("status {}", status.as_u16())
        } else {
            format!("status {}: {said}", status.as_u16())
        };
        let again = after.map_or(Again::Yes, Again::After);
        match status.as_u16() {
            401 | 403 => self.auth(reason).into(),
            404 => FetchError::NotFound { what: self.what.clone() }.into(),
            429 => {
                Failure { error: FetchError::RateLimited { registry, retry_after: after }, again }
            }
            502..=504 => Failure { error: FetchError::Unavailable { registry, reason }, again },
            408 | 500..=599 => FetchError::Unavailable { registry, reason }.into(),
            _ => self.protocol(reason).into(),
        }
    }

    /// Returns the start of an error's body, unless that repeats something secret: a registry may
    /// know it from this request or an earlier one.
    async fn excerpt(&self, mut response: Response, sent: Option<&Authorization>) -> String {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= MAX_ERROR_BODY {
                body.truncate(MAX_ERROR_BODY);
                break;
            }
        }
        let text = String::from_utf8_lossy(&body);
        // The whole is searched, so that no part of a secret is left at the cut.
        if sent.is_some_and(|sent| sent.is_repeated_in(&text))
            || self.session.knows_secret_in(&text)
        {
            return LEFT_OUT.to_owned();
        }
        text::printable(&text)
    }
}

/// Returns the innermost reason of an error of the HTTP client, which names no address.
pub(super) fn deepest(error: &reqwest::Error) -> String {
    let mut reason = None;
    let mut cause = error.source();
    while let Some(this) = cause {
        reason = Some(this.to_string());
        cause = this.source();
    }
    text::printable(&reason.unwrap_or_else(|| "the connection broke".to_owned()))
}
