//! Outgoing requests: the decision by the grants, then our own client.
//!
//! The order is the same for the report, the dry run and the request itself: canonical target,
//! deny, allow by name, resolve once, range policy on every address, dial a vetted address. The
//! decision and the record are here and in `hook`; [`Client`] resolves, vets and dials, and may
//! live in another process.

pub(crate) mod body;
mod client;
mod decide;
mod dial;
mod hook;
mod names;
mod resolve;
pub(crate) mod secret;
mod sockets;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ambit_engine::admitted::PlannedImport;
use ambit_engine::grant::{AddressClass, Consent, HostGrants, RangePolicy, Target};
use wasmtime::component::Linker;
use wasmtime_wasi::p2::bindings::sockets as wasi_sockets;
use wasmtime_wasi::sockets::WasiSockets;
use wasmtime_wasi_http::p2::bindings::http;
use wasmtime_wasi_http::{WasiBody, WasiHttp};

pub use client::{Client, ClientBuilder, ClientError};
pub use decide::{Decided, Denial, Openings, decide};
pub use resolve::{Resolver, SystemResolver};
pub use secret::BoundSecret;

pub(crate) use hook::Outgoing;
pub(crate) use sockets::{Uses, configure};

use crate::linker::Linked;
use crate::state::State;

/// The interface of outgoing requests, on its version track.
pub(crate) const OUTGOING: &str = "wasi:http/outgoing-handler@0.2";

/// The name under which connections of a component are kept: other bytes are another owner.
pub(crate) fn owner(who: &crate::record::Who) -> Arc<str> {
    Arc::from(format!("{} {} {}", who.workload, who.component, who.digest))
}

/// A body on its way.
pub type Body = WasiBody;

/// A boxed future that may move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A request that was decided on, with what its sending may cost.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whose connection it is: the workload and the component. No other owner uses it.
    pub owner: Arc<str>,
    /// The component's name.
    pub component: String,
    /// Where it goes.
    pub target: Target,
    /// The host list, by which each address is judged once more.
    pub hosts: Arc<HostGrants>,
    /// What the decision says about private addresses.
    pub consent: Consent,
    /// The most time until a connection stands, the look-up and the TLS handshake included.
    pub connect: Duration,
    /// The most time from then to the response's head.
    pub first_byte: Duration,
    /// The most time between two parts of the response's body.
    pub between_bytes: Duration,
    /// The most time for everything.
    pub total: Duration,
    /// The most bytes of the request's body.
    pub request_body: u64,
    /// The most bytes of the response's body.
    pub response_body: u64,
    /// The most bytes of the response's head.
    pub header_bytes: usize,
}

/// A response whose head has come.
#[derive(Debug)]
pub struct Sent {
    /// The response; its body ends with an error if a bound is met.
    pub response: ::http::Response<Body>,
    /// The address that answered.
    pub address: SocketAddr,
    /// What else a reader of the record should know; may be empty.
    pub note: String,
}

/// Why a request that was decided on gave no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// Nothing may be sent at all.
    #[error("this run sends nothing")]
    Closed,
    /// The name has no address.
    #[error("`{name}` has no address")]
    NotFound {
        /// The name.
        name: String,
    },
    /// Every address of the name is one that is refused.
    #[error("`{name}` leads to {address}, a {class} address")]
    Prohibited {
        /// The name or address.
        name: String,
        /// One of the addresses.
        address: IpAddr,
        /// Its class.
        class: AddressClass,
    },
    /// No connection came about.
    #[error("no connection: {reason}")]
    Connect {
        /// Why.
        reason: String,
    },
    /// TLS didn't come about.
    #[error("no TLS connection: {reason}")]
    Tls {
        /// Why.
        reason: String,
    },
    /// A phase took too long.
    #[error("{phase} took too long")]
    Timeout {
        /// Which phase: `the connection`, `the response`, `the body`.
        phase: &'static str,
    },
    /// A message is larger than its bound, or has more headers.
    #[error("{what} is too large")]
    TooLarge {
        /// What: `the request's body`, `the response's body`, `the response's head`.
        what: &'static str,
    },
    /// The component broke off the body of its request.
    #[error("the request's body broke off: {reason}")]
    Abandoned {
        /// How.
        reason: String,
    },
    /// The server broke the protocol.
    #[error("the server's answer is no HTTP: {reason}")]
    Protocol {
        /// How.
        reason: String,
    },
}

impl EgressError {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Closed => "egress-closed",
            Self::NotFound { .. } => "host-not-found",
            Self::Prohibited { .. } => "address-refused",
            Self::Connect { .. } => "host-no-connection",
            Self::Tls { .. } => "host-tls",
            Self::Timeout { .. } => "host-timeout",
            Self::TooLarge { .. } => "limit-body",
            Self::Abandoned { .. } => "request-abandoned",
            Self::Protocol { .. } => "host-protocol",
        }
    }

    /// Returns what the guest is told.
    pub(crate) fn for_guest(&self) -> wasmtime_wasi_http::Error {
        use wasmtime_wasi_http::Error;
        match self {
            Self::Closed => Error::HttpRequestDenied,
            Self::NotFound { .. } => Error::DestinationNotFound,
            Self::Prohibited { .. } => Error::DestinationIpProhibited,
            Self::Connect { .. } => Error::ConnectionRefused,
            Self::Tls { .. } => Error::TlsProtocolError,
            Self::Timeout { phase: "the connection" } => Error::ConnectionTimeout,
            Self::Timeout { .. } => Error::HttpResponseTimeout,
            Self::TooLarge { what: "the request's body" } => Error::HttpRequestBodySize(None),
            Self::TooLarge { what: "the response's head" } => {
                Error::HttpResponseHeaderSectionSize(None)
            }
            Self::TooLarge { .. } => Error::HttpResponseBodySize(None),
            Self::Abandoned { .. } | Self::Protocol { .. } => Error::HttpProtocolError,
        }
    }
}

/// Sends what was decided on.
pub trait Egress: Send + Sync {
    /// Sends one request, whose URI has the path and query only.
    ///
    /// The implementation resolves the target's name once, dials only addresses that the range
    /// policy and the host list allow, and follows no redirect.
    fn send(
        &self,
        call: Call,
        request: ::http::Request<Body>,
    ) -> BoxFuture<Result<Sent, EgressError>>;

    /// Returns the policy by which addresses are judged, those of sockets too.
    fn ranges(&self) -> &RangePolicy;

    /// Resolves a name for a component that may look it up.
    fn resolve(&self, name: &str) -> BoxFuture<std::io::Result<Vec<IpAddr>>>;
}

/// Sends nothing, and resolves nothing.
#[derive(Clone, Debug, Default)]
pub struct Closed {
    ranges: RangePolicy,
}

impl Egress for Closed {
    fn send(
        &self,
        _call: Call,
        _request: ::http::Request<Body>,
    ) -> BoxFuture<Result<Sent, EgressError>> {
        Box::pin(std::future::ready(Err(EgressError::Closed)))
    }

    fn ranges(&self) -> &RangePolicy {
        &self.ranges
    }

    fn resolve(&self, _name: &str) -> BoxFuture<std::io::Result<Vec<IpAddr>>> {
        let closed = std::io::Error::other("this run resolves nothing");
        Box::pin(std::future::ready(Err(closed)))
    }
}

/// Links `wasi:http` and `wasi:sockets`.
pub(crate) fn link(linker: &mut Linker<State>, import: &PlannedImport) -> wasmtime::Result<Linked> {
    match import.track.as_str() {
        "wasi:http/types@0.2" => {
            let options = http::types::LinkOptions::default();
            http::types::add_to_linker::<State, WasiHttp>(linker, &options, State::http)?;
        }
        "wasi:http/outgoing-handler@0.2" => {
            http::outgoing_handler::add_to_linker::<State, WasiHttp>(linker, State::http)?;
        }
        "wasi:sockets/network@0.2" => {
            let options = wasi_sockets::network::LinkOptions::default();
            wasi_sockets::network::add_to_linker::<State, WasiSockets>(
                linker,
                &options,
                State::sockets,
            )?;
        }
        "wasi:sockets/instance-network@0.2" => {
            wasi_sockets::instance_network::add_to_linker::<State, WasiSockets>(
                linker,
                State::sockets,
            )?;
        }
        "wasi:sockets/tcp@0.2" => {
            wasi_sockets::tcp::add_to_linker::<State, WasiSockets>(linker, State::sockets)?;
        }
        "wasi:sockets/tcp-create-socket@0.2" => names::link_tcp_create(linker)?,
        "wasi:sockets/udp@0.2" => {
            wasi_sockets::udp::add_to_linker::<State, WasiSockets>(linker, State::sockets)?;
        }
        "wasi:sockets/udp-create-socket@0.2" => names::link_udp_create(linker)?,
        "wasi:sockets/ip-name-lookup@0.2" => names::link(linker)?,
        _ => return Ok(Linked::NotMine),
    }
    Ok(Linked::Yes)
}
