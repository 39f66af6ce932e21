//! Our HTTP client: resolve once, vet every address, dial a vetted one, bound everything.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ambit_engine::grant::{
    AddressClass, CanonicalHost, Consent, HostDecision, HostGrants, HostSet, RangePolicy, Target,
};
use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1::SendRequest;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use wasmtime_wasi_http::Error;

use super::body::{Bounded, Count, End, Ended, Timer};
use super::resolve::{Resolver, SystemResolver};
use super::{Body, BoxFuture, Call, Egress, EgressError, Sent, dial};

/// Connections that wait for their next request, of all owners.
const MAX_IDLE: usize = 64;

/// How long one waits.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// Our HTTP client. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    resolver: Arc<dyn Resolver>,
    ranges: RangePolicy,
    tls: Arc<ClientConfig>,
    idle: Mutex<HashMap<Key, Vec<Idle>>>,
}

/// What a connection may be used again for: the same component to the same target, under the very
/// grants by which it was dialled. A workload that is loaded anew has other ones.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Key {
    owner: Arc<str>,
    target: Target,
    grants: Same<HostGrants>,
}

/// A value that equals itself only.
#[derive(Debug)]
struct Same<T>(Arc<T>);

impl<T> Clone for Same<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Eq for Same<T> {}

impl<T> PartialEq for Same<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> std::hash::Hash for Same<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

struct Idle {
    sender: SendRequest<Body>,
    address: SocketAddr,
    since: Instant,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// Why a client can't be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A certificate of an authority can't be read.
    #[error("{0}")]
    Certificate(String),
    /// TLS can't be set up.
    #[error("TLS can't be set up: {0}")]
    Tls(String),
}

impl ClientError {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "run-certificates"
    }
}

/// What a client is made of. Resolver and range policy are for tests and embedders: nothing that is
/// shipped weakens them.
pub struct ClientBuilder {
    resolver: Arc<dyn Resolver>,
    ranges: RangePolicy,
    roots: RootCertStore,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").finish_non_exhaustive()
    }
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver::default()),
            ranges: RangePolicy::default(),
            roots: RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() },
        }
    }
}

impl ClientBuilder {
    /// Resolves names in another way.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Judges addresses by another policy.
    #[must_use]
    pub fn ranges(mut self, ranges: RangePolicy) -> Self {
        self.ranges = ranges;
        self
    }

    /// Trusts the authorities of a PEM file, beside the built-in ones.
    ///
    /// # Errors
    ///
    /// [`ClientError::Certificate`] if it holds no certificate, or one that can't be read.
    pub fn authorities(mut self, pem: &[u8]) -> Result<Self, ClientError> {
        let bad = |error: &dyn std::fmt::Display| ClientError::Certificate(error.to_string());
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| bad(&error))?;
            self.roots.add(certificate).map_err(|error| bad(&error))?;
            found = true;
        }
        if !found {
            return Err(ClientError::Certificate("there is no certificate in it".to_owned()));
        }
        Ok(self)
    }

    /// Makes the client.
    ///
    /// # Errors
    ///
    /// [`ClientError::Tls`] if TLS can't be set up.
    pub fn build(self) -> Result<Client, ClientError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ClientError::Tls(error.to_string()))?
            .with_root_certificates(self.roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let inner = Inner {
            resolver: self.resolver,
            ranges: self.ranges,
            tls: Arc::new(tls),
            idle: Mutex::new(HashMap::new()),
        };
        Ok(Client { inner: Arc::new(inner) })
    }
}

impl Client {
    /// Returns a builder with the system's resolver, the default range policy and built-in roots.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl Egress for Client {
    fn send(&self, call: Call, request: Request<Body>) -> BoxFuture<Result<Sent, EgressError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.send(call, request).await })
    }

    fn ranges(&self) -> &RangePolicy {
        &self.inner.ranges
    }

    fn resolve(&self, name: &str) -> BoxFuture<std::io::Result<Vec<IpAddr>>> {
        self.inner.resolver.resolve(name)
    }
}

impl Inner {
    async fn send(
        self: Arc<Self>,
        call: Call,
        request: Request<Body>,
    ) -> Result<Sent, EgressError> {
        let now = Instant::now();
        let end = now.checked_add(call.total).unwrap_or(now);
        let request = prepared(request, &call)?;
        let key = Key {
            owner: Arc::clone(&call.owner),
            target: call.target.clone(),
            grants: Same(Arc::clone(&call.hosts)),
        };
        let sent = self.exchange(&call, &key, request, end);
        let (response, sender, address, note) =
            match tokio::time::timeout_at(end.into(), sent).await {
                Ok(answer) => answer?,
                Err(_) => return Err(EgressError::Timeout { phase: "the response" }),
            };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let reason = "it changes the protocol, which nobody asked for".to_owned();
            return Err(EgressError::Protocol { reason });
        }
        framed(response.headers())?;
        let back = Back { client: self, key, idle: Some(Idle { sender, address, since: now }) };
        let timer = Timer::new(call.between_bytes, end);
        let over = || Error::HttpResponseBodySize(None);
        let response = response.map(|body| {
            let body = body.map_err(Error::from).boxed_unsync();
            Bounded::new(body, Count::default(), call.response_body, over, back)
                .with_timer(timer)
                .boxed()
        });
        Ok(Sent { response, address, note })
    }

    /// Sends over a connection that is there, or else over a new one.
    async fn exchange(
        &self,
        call: &Call,
        key: &Key,
        request: Request<Body>,
        end: Instant,
    ) -> Result<(Response<hyper::body::Incoming>, SendRequest<Body>, SocketAddr, String), EgressError>
    {
        let mut request = request;
        if let Some(mut idle) = self.take(key) {
            match head(&mut idle.sender, request, call).await {
                Ok(response) => return Ok((response, idle.sender, idle.address, String::new())),
                // Nothing of it was sent, since the server had closed the connection before.
                Err((Some(unsent), _)) => request = *unsent,
                Err((None, error)) => return Err(error),
            }
        }
        let now = Instant::now();
        let until = now.checked_add(call.connect).map_or(end, |until| until.min(end));
        let connecting = async {
            let (addresses, note) = self.addresses(call).await?;
            let connected =
                dial::connect(&call.target, &addresses, &self.tls, call.header_bytes).await?;
            Ok((connected, note))
        };
        let ((mut sender, address), note) =
            match tokio::time::timeout_at(until.into(), connecting).await {
                Ok(connected) => connected?,
                Err(_) => return Err(EgressError::Timeout { phase: "the connection" }),
            };
        let response = head(&mut sender, request, call).await.map_err(|(_, error)| error)?;
        Ok((response, sender, address, note))
    }

    /// Returns the addresses that may be dialled; what else was there is in the note.
    async fn addresses(&self, call: &Call) -> Result<(Vec<SocketAddr>, String), EgressError> {
        let target = &call.target;
        let port = target.port();
        let found = match target.host() {
            // The decision opened this port of this machine by its reserved name.
            CanonicalHost::HostInternal => {
                let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
                return Ok((vec![SocketAddr::new(loopback, port)], String::new()));
            }
            CanonicalHost::Ip(address) => vec![*address],
            CanonicalHost::Name(name) => {
                let found = self.resolver.resolve(name.as_str()).await;
                let mut found = found.unwrap_or_default();
                found.truncate(super::resolve::MAX_ADDRESSES);
                found
            }
        };
        let mut vetted = Vec::new();
        let mut refused = None;
        let count = found.len();
        for address in found {
            let address = address.to_canonical();
            match self.judge(call, address) {
                Ok(()) => vetted.push(SocketAddr::new(address, port)),
                Err(class) => refused = Some((address, class)),
            }
        }
        let name = target.host().to_string();
        match (vetted.is_empty(), refused) {
            (true, Some((address, class))) => Err(EgressError::Prohibited { name, address, class }),
            (true, None) => Err(EgressError::NotFound { name }),
            (false, None) => Ok((vetted, String::new())),
            (false, Some(_)) => {
                let left = count.saturating_sub(vetted.len());
                Ok((vetted, format!("{left} of {count} addresses refused")))
            }
        }
    }

    /// Judges one address: the host list's denials, then the ranges.
    fn judge(&self, call: &Call, address: IpAddr) -> Result<(), AddressClass> {
        let target = &call.target;
        let class = ambit_engine::grant::classify(address);
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let authority = format!("{host}:{}", target.port());
        let by_address = Target::http(target.scheme().as_str(), &authority).map_err(|_| class)?;
        let consent = match call.hosts.decide(&by_address) {
            HostDecision::DeniedByEntry { .. } => return Err(class),
            HostDecision::Allowed { .. } => {
                let named = call.hosts.entries().iter().any(|entry| {
                    !entry.is_deny()
                        && matches!(entry.host(), HostSet::Ip(_) | HostSet::Cidr(_))
                        && entry.matches(&by_address)
                });
                if named { Consent::Cidr } else { call.consent }
            }
            HostDecision::NotGranted => call.consent,
        };
        self.ranges.allows(address, consent)
    }

    fn take(&self, key: &Key) -> Option<Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = idle.get_mut(key)?;
        let mut found = None;
        while let Some(one) = waiting.pop() {
            if one.since.elapsed() < IDLE_TIME && one.sender.is_ready() {
                found = Some(one);
                break;
            }
        }
        if waiting.is_empty() {
            idle.remove(key);
        }
        found
    }

    fn keep(&self, key: Key, one: Idle) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|_, waiting| {
            waiting.retain(|one| one.since.elapsed() < IDLE_TIME && !one.sender.is_closed());
            !waiting.is_empty()
        });
        let count: usize = idle.values().map(Vec::len).sum();
        if count < MAX_IDLE {
            idle.entry(key).or_default().push(one);
        }
    }
}

/// Gives a connection back once its response is complete.
struct Back {
    client: Arc<Inner>,
    key: Key,
    idle: Option<Idle>,
}

impl Ended for Back {
    fn ended(mut self, how: End) {
        let Some(one) = self.idle.take() else { return };
        // Only a whole response leaves a connection in a known state.
        if how == End::Whole && !one.sender.is_closed() {
            self.client.keep(self.key, Idle { since: Instant::now(), ..one });
        }
    }
}

/// What went wrong, with the request if nothing of it was sent.
type Unsent = (Option<Box<Request<Body>>>, EgressError);

async fn head(
    sender: &mut SendRequest<Body>,
    request: Request<Body>,
    call: &Call,
) -> Result<Response<hyper::body::Incoming>, Unsent> {
    let answered = tokio::time::timeout(call.first_byte, sender.try_send_request(request)).await;
    match answered {
        Err(_) => Err((None, EgressError::Timeout { phase: "the response" })),
        Ok(Ok(response)) => Ok(response),
        Ok(Err(mut error)) => {
            let unsent = error.take_message().map(Box::new);
            let error = error.into_error();
            let reason = if let Some(cause) = std::error::Error::source(&error) {
                format!("{error}: {cause}")
            } else {
                error.to_string()
            };
            let reported = if error.is_parse_too_large() {
                EgressError::TooLarge { what: "the response's head" }
            } else if error.is_user() {
                body_error(&error)
            } else {
                EgressError::Protocol { reason }
            };
            Err((unsent, reported))
        }
    }
}

/// Refuses a response whose length is said twice: what follows on the connection would be read as
/// the body by one side and as another response by the other (RFC 9112 section 6.3).
fn framed(headers: &HeaderMap) -> Result<(), EgressError> {
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    let said = lengths.saturating_add(headers.get_all(TRANSFER_ENCODING).iter().count());
    if said > 1 {
        let reason = "it says its length more than once".to_owned();
        return Err(EgressError::Protocol { reason });
    }
    Ok(())
}

/// Why a request could not be sent, as its body says.
fn body_error(error: &hyper::Error) -> EgressError {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(Error::HttpRequestBodySize(_)) = cause.downcast_ref::<Error>() {
            return EgressError::TooLarge { what: "the request's body" };
        }
        source = cause.source();
    }
    EgressError::Abandoned { reason: error.to_string() }
}

/// Puts a request into the form that goes over the wire: origin form, one `Host`, bounded.
fn prepared(request: Request<Body>, call: &Call) -> Result<Request<Body>, EgressError> {
    let (mut parts, body) = request.into_parts();
    let refuse = |reason: &str| EgressError::Protocol { reason: reason.to_owned() };
    if parts.method == http::Method::CONNECT {
        return Err(refuse("CONNECT opens a tunnel, which nobody grants"));
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let path = if path.is_empty() { "/".to_owned() } else { path };
    if !path.starts_with('/') && path != "*" {
        return Err(refuse("the path doesn't start with a slash"));
    }
    parts.uri = path.parse::<Uri>().map_err(|_| refuse("the path can't be sent"))?;
    parts.version = http::Version::HTTP_11;
    let size: usize = parts
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len().saturating_add(value.len()).saturating_add(4))
        .sum();
    if size.saturating_add(path.len()) > call.header_bytes {
        return Err(EgressError::TooLarge { what: "the request's head" });
    }
    let target = &call.target;
    let host = match (target.host(), target.port_spelled()) {
        (CanonicalHost::HostInternal, _) => format!("localhost:{}", target.port()),
        (host, true) => format!("{host}:{}", target.port()),
        (host, false) => host.to_string(),
    };
    let host = host.parse().map_err(|_| refuse("the host can't be sent"))?;
    parts.headers.insert(http::header::HOST, host);
    let over = || Error::HttpRequestBodySize(None);
    let body = Bounded::new(body, Count::default(), call.request_body, over, ());
    Ok(Request::from_parts(parts, body.boxed()))
}
