//! Where one call wants to go, in the one form in which it is compared.

use std::fmt;
use std::net::IpAddr;

use super::host::{Scheme, default_port};
use super::name::{Name, NameError, looks_numeric, to_ascii};

/// The names that stand for the loopback of the machine.
pub(super) const HOST_INTERNAL: &str = "host.internal";
pub(super) const HOST_INTERNAL_WASMCLOUD: &str = "host.wasmcloud.internal";

/// The door a call leaves by.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Plane {
    /// An HTTP request that the host sends.
    Http,
    /// A connection or datagram, or another protocol that the host speaks (`postgres`, `redis`).
    Socket,
}

/// A host in canonical form.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CanonicalHost {
    /// A DNS name.
    Name(Name),
    /// An address; never a v4-mapped one.
    Ip(IpAddr),
    /// The machine's own loopback, by its reserved name.
    HostInternal,
}

impl fmt::Display for CanonicalHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Ip(IpAddr::V4(address)) => address.fmt(f),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::HostInternal => f.write_str(HOST_INTERNAL),
        }
    }
}

/// One destination: plane, scheme, canonical host, port in 1..=65535, and whether the request
/// spelled the port.
///
/// # Examples
///
/// ```
/// # use ambit_engine::grant::Target;
/// let target = Target::http_url("https://API.Example.COM./v1")?;
/// assert_eq!(target.to_string(), "https://api.example.com:443");
/// # Ok::<(), ambit_engine::grant::TargetError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Target {
    plane: Plane,
    scheme: Scheme,
    host: CanonicalHost,
    port: u16,
    port_spelled: bool,
}

/// Why a text names no destination. Such a call is refused, never passed on.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The scheme is not one of this plane.
    #[error("scheme `{found}` cannot be used here")]
    Scheme {
        /// The scheme as written.
        found: String,
    },
    /// There is no authority.
    #[error("no host to call")]
    NoHost,
    /// A user name or password stands in front of the host.
    #[error("userinfo in front of the host")]
    Userinfo,
    /// The port is empty, 0, over 65535 or not a number.
    #[error("invalid port `{found}`")]
    Port {
        /// The port as written.
        found: String,
    },
    /// A bracketed host is no IPv6 address.
    #[error("invalid address `{found}`")]
    Address {
        /// The address as written.
        found: String,
    },
    /// The host is no name.
    #[error("invalid host `{host}`")]
    Host {
        /// The host as written.
        host: String,
        /// What is wrong with it.
        #[source]
        source: NameError,
    },
}

impl TargetError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        "host-target"
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Scheme { .. } => "use `http` or `https` for requests, `tcp` or `udp` for sockets",
            Self::NoHost => "give the request an authority",
            Self::Userinfo => "send credentials in a header",
            Self::Port { .. } => "use a port from 1 to 65535, or none",
            Self::Address { .. } => "write an IPv6 address in brackets, without a zone",
            Self::Host { .. } => "use a DNS name or a dotted-quad IPv4 address",
        })
    }
}

impl Target {
    /// The destination of an HTTP request, by its absolute URL. What follows the authority is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// Every variant of [`TargetError`], by its description.
    pub fn http_url(url: &str) -> Result<Self, TargetError> {
        let (scheme, rest) = url.split_once("://").ok_or(TargetError::NoHost)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        Self::http(scheme, authority)
    }

    /// The destination of an HTTP request, by its scheme and authority.
    ///
    /// # Errors
    ///
    /// [`TargetError::Scheme`] for anything but `http` and `https`, and every other variant by its
    /// description.
    pub fn http(scheme: &str, authority: &str) -> Result<Self, TargetError> {
        let scheme = Scheme::parse_lower(scheme)
            .filter(Scheme::is_http)
            .ok_or_else(|| TargetError::Scheme { found: scheme.to_owned() })?;
        if authority.contains('@') {
            return Err(TargetError::Userinfo);
        }
        let (host, port) = split_port(authority)?;
        let host = canonical_host(host)?;
        let (port, port_spelled) = match (port, default_port(scheme.as_str())) {
            (Some(text), _) => (parse_port(text)?, true),
            (None, Some(port)) => (port, false),
            (None, None) => return Err(TargetError::Scheme { found: scheme.to_string() }),
        };
        Ok(Self { plane: Plane::Http, scheme, host, port, port_spelled })
    }

    /// The destination of a socket or of another protocol, by address or name and port. An IPv6
    /// address may stand with or without brackets.
    ///
    /// # Errors
    ///
    /// [`TargetError::Scheme`] for `http`, `https` and what is not a word of letters,
    /// [`TargetError::Port`] for port 0, and the host's variants by their description.
    pub fn socket(protocol: &str, host: &str, port: u16) -> Result<Self, TargetError> {
        let host = match host.parse::<IpAddr>() {
            Ok(address) => CanonicalHost::Ip(address.to_canonical()),
            Err(_) => canonical_host(host)?,
        };
        Self::socket_to(protocol, host, port)
    }

    /// The destination of a socket by its address.
    ///
    /// # Errors
    ///
    /// [`TargetError::Scheme`] and [`TargetError::Port`], as for [`Target::socket`].
    pub fn socket_address(protocol: &str, address: IpAddr, port: u16) -> Result<Self, TargetError> {
        Self::socket_to(protocol, CanonicalHost::Ip(address.to_canonical()), port)
    }

    fn socket_to(protocol: &str, host: CanonicalHost, port: u16) -> Result<Self, TargetError> {
        let scheme = Scheme::parse_lower(protocol)
            .filter(|scheme| !scheme.is_http())
            .ok_or_else(|| TargetError::Scheme { found: protocol.to_owned() })?;
        if port == 0 {
            return Err(TargetError::Port { found: port.to_string() });
        }
        Ok(Self { plane: Plane::Socket, scheme, host, port, port_spelled: true })
    }

    /// The door the call leaves by.
    pub fn plane(&self) -> Plane {
        self.plane
    }

    /// The scheme or protocol, lower case.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// The host.
    pub fn host(&self) -> &CanonicalHost {
        &self.host
    }

    /// The port, the scheme's default if none was spelled.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the request spelled the port; always so for a socket.
    pub fn port_spelled(&self) -> bool {
        self.port_spelled
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), TargetError> {
    let after_host = authority.rfind(']').unwrap_or(0);
    match authority.get(after_host..).and_then(|tail| tail.find(':')) {
        None => Ok((authority, None)),
        Some(offset) => authority
            .split_at_checked(after_host.saturating_add(offset))
            .map(|(host, port)| (host, port.strip_prefix(':')))
            .ok_or(TargetError::NoHost),
    }
}

fn parse_port(text: &str) -> Result<u16, TargetError> {
    super::host::port_number(text).ok_or_else(|| TargetError::Port { found: text.to_owned() })
}

fn canonical_host(text: &str) -> Result<CanonicalHost, TargetError> {
    let bad = |source| TargetError::Host { host: text.to_owned(), source };
    if text.is_empty() {
        return Err(TargetError::NoHost);
    }
    if let Some(inner) = text.strip_prefix('[') {
        return inner
            .strip_suffix(']')
            .and_then(|inner| inner.parse::<std::net::Ipv6Addr>().ok())
            .map(|address| CanonicalHost::Ip(IpAddr::V6(address).to_canonical()))
            .ok_or_else(|| TargetError::Address { found: text.to_owned() });
    }
    let ascii = to_ascii(text).map_err(bad)?;
    let bare = ascii.strip_suffix('.').unwrap_or(&ascii);
    if let Ok(address) = bare.parse::<std::net::Ipv4Addr>() {
        return Ok(CanonicalHost::Ip(IpAddr::V4(address)));
    }
    if looks_numeric(bare) {
        return Err(bad(NameError::Numeric));
    }
    let name = Name::parse(&ascii).map_err(bad)?;
    Ok(match name.as_str() {
        HOST_INTERNAL | HOST_INTERNAL_WASMCLOUD => CanonicalHost::HostInternal,
        _ => CanonicalHost::Name(name),
    })
}
