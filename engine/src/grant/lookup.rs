//! wasmCloud's two side lists: names to look up, and ports of the machine's loopback.

use std::fmt;
use std::net::IpAddr;

use super::grants::HostGrants;
use super::host::{HostSet, MAX_PATTERN_BYTES, port_number};
use super::name::{Name, NameError};
use super::target::CanonicalHost;

/// One entry of `allowedIpNameLookups`: `*`, `*.SUFFIX`, a name, or an address without brackets.
///
/// `Display` gives back the source text.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LookupPattern {
    text: String,
    names: HostSet,
}

/// Why a text is not a [`LookupPattern`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupPatternError {
    /// The text is too long.
    #[error("lookup pattern of {found} bytes is over the limit of {limit}")]
    TooLong {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The text is neither a wildcard, a name nor an address.
    #[error("invalid name to look up `{text}`")]
    Name {
        /// The text.
        text: String,
        /// What is wrong with it.
        #[source]
        source: NameError,
    },
}

impl LookupPatternError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        "lookup-pattern"
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some("write `*`, `*.SUFFIX`, a name, or an address; no scheme, port or path")
    }
}

impl LookupPattern {
    /// Reads one entry.
    ///
    /// # Errors
    ///
    /// Every variant of [`LookupPatternError`], by its description.
    pub fn parse(text: &str) -> Result<Self, LookupPatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            let limit = MAX_PATTERN_BYTES;
            return Err(LookupPatternError::TooLong { found: text.len(), limit });
        }
        let name = |name: &str| {
            Name::parse_lenient(name)
                .map_err(|source| LookupPatternError::Name { text: text.to_owned(), source })
        };
        let names = match (text, text.strip_prefix("*."), text.parse::<IpAddr>()) {
            ("*", _, _) => HostSet::Any,
            (_, Some(suffix), _) => HostSet::Subdomains(name(suffix)?),
            (_, _, Ok(address)) => HostSet::Ip(address.to_canonical()),
            _ => HostSet::Exact(name(text)?),
        };
        Ok(Self { text: text.to_owned(), names })
    }

    /// The names and addresses that may be looked up.
    pub fn names(&self) -> &HostSet {
        &self.names
    }

    /// Whether `host` may be looked up.
    pub fn matches(&self, host: &CanonicalHost) -> bool {
        self.names.contains(host)
    }

    /// Whether one entry of `hosts` already gives every name of this one. If not, the component can
    /// look up names that it can't call, and labels of looked-up names carry data out.
    pub fn is_within(&self, hosts: &HostGrants) -> bool {
        hosts.entries().iter().any(|entry| !entry.is_deny() && entry.host().covers(&self.names))
    }
}

impl fmt::Display for LookupPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// The word: `tcp` or `udp`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// One port of the machine's loopback, in 1..=65535: `5432`, `5432/tcp`, `53/udp`.
///
/// `Display` gives `PORT/PROTOCOL`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LoopbackPort {
    port: u16,
    protocol: Protocol,
}

/// Why a text is not a [`LoopbackPort`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LoopbackPortError {
    /// The port is not a number in 1..=65535.
    #[error("invalid loopback port `{found}`")]
    Port {
        /// The port as written.
        found: String,
    },
    /// The protocol is neither `tcp` nor `udp`.
    #[error("invalid loopback protocol `{found}`")]
    Protocol {
        /// The protocol as written.
        found: String,
    },
}

impl LoopbackPortError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        "loopback-port"
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some("write `PORT`, `PORT/tcp` or `PORT/udp` with a port from 1 to 65535")
    }
}

impl LoopbackPort {
    /// The port and protocol.
    ///
    /// # Errors
    ///
    /// [`LoopbackPortError::Port`] for port 0.
    pub fn new(port: u16, protocol: Protocol) -> Result<Self, LoopbackPortError> {
        if port == 0 {
            return Err(LoopbackPortError::Port { found: "0".to_owned() });
        }
        Ok(Self { port, protocol })
    }

    /// Reads one entry of `allowedHostLoopbackPorts`; without a protocol it is TCP.
    ///
    /// # Errors
    ///
    /// Every variant of [`LoopbackPortError`], by its description.
    pub fn parse(text: &str) -> Result<Self, LoopbackPortError> {
        let (port, protocol) = match text.split_once('/') {
            None => (text, Protocol::Tcp),
            Some((port, "tcp" | "TCP")) => (port, Protocol::Tcp),
            Some((port, "udp" | "UDP")) => (port, Protocol::Udp),
            Some((_, found)) => {
                return Err(LoopbackPortError::Protocol { found: found.to_owned() });
            }
        };
        let port =
            port_number(port).ok_or_else(|| LoopbackPortError::Port { found: port.to_owned() })?;
        Ok(Self { port, protocol })
    }

    /// The port.
    pub fn port(self) -> u16 {
        self.port
    }

    /// The protocol.
    pub fn protocol(self) -> Protocol {
        self.protocol
    }
}

impl fmt::Display for LoopbackPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.port, self.protocol.as_str())
    }
}
