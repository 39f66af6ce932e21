//! Why a text is not a host pattern.

use super::name::NameError;

/// Why a text is not a [`HostPattern`](super::HostPattern) of the dialect at hand.
///
/// No variant carries userinfo, so an error can be printed where the text could not.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostPatternError {
    /// The text is empty.
    #[error("empty host pattern")]
    Empty,
    /// The text is longer than [`MAX_PATTERN_BYTES`](super::MAX_PATTERN_BYTES).
    #[error("host pattern of {found} bytes is over the limit of {limit}")]
    TooLong {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Spin wants a scheme in front of every host.
    #[error("host pattern has no scheme")]
    MissingScheme,
    /// Spin wants allow-everything spelled out.
    #[error("bare `*` is not a host pattern here")]
    BareWildcard,
    /// The scheme is empty or holds a character that the dialect does not allow.
    #[error("invalid scheme `{found}`")]
    Scheme {
        /// The text before `://`.
        found: String,
    },
    /// The host is not a name.
    #[error("invalid host `{host}`")]
    Host {
        /// The host as written.
        host: String,
        /// What is wrong with it.
        #[source]
        source: NameError,
    },
    /// A `*` stands where the dialect has no wildcard.
    #[error("wildcard in `{host}` is not at a place where this dialect has one")]
    Wildcard {
        /// The host as written.
        host: String,
    },
    /// The host is meant as an address and is none.
    #[error("invalid address `{found}`")]
    Address {
        /// The address as written.
        found: String,
    },
    /// An address range, in a dialect that has none, or with an impossible prefix length.
    #[error("address range `{found}` cannot be used here")]
    Cidr {
        /// The range as written.
        found: String,
    },
    /// The port is neither a number in 1..=65535 nor one of the dialect's words.
    #[error("invalid port `{found}`")]
    Port {
        /// The port as written.
        found: String,
    },
    /// The range of ports is empty.
    #[error("port range `{found}` is empty")]
    PortRange {
        /// The range as written.
        found: String,
    },
    /// No port is given and the scheme has no known one.
    #[error("scheme `{scheme}` has no default port")]
    NoDefaultPort {
        /// The scheme as written.
        scheme: String,
    },
    /// A path, query or fragment follows the host.
    #[error("path in a host pattern")]
    Path,
    /// A user name or password stands in front of the host.
    #[error("userinfo in a host pattern")]
    Userinfo,
    /// The text is a template whose value is not known yet.
    #[error("host pattern is a template")]
    Template,
    /// `host.internal` opens one port of the machine, so the port must be named.
    #[error("`host.internal` without one port number")]
    HostInternalPort,
    /// `!` in a dialect without deny entries, or twice.
    #[error("`!` is not a deny mark here")]
    Deny,
}

impl HostPatternError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        "host-pattern"
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Empty => "remove the entry: an empty list already denies everything",
            Self::TooLong { .. } => "write one host per entry",
            Self::MissingScheme => "write `https://HOST`",
            Self::BareWildcard => "write `*://*:*` if every host is meant",
            Self::Scheme { .. } => "write letters only, such as `https`",
            Self::Host { source: NameError::Numeric, .. } => {
                "write an IPv4 address as four decimal numbers"
            }
            Self::Host { .. } => "write a DNS name, `*.NAME`, or an address",
            Self::Wildcard { .. } => "use `*` only as the whole first label: `*.example.com`",
            Self::Address { .. } => "put an IPv6 address in brackets: `[2001:db8::1]:443`",
            Self::Cidr { .. } => "list the addresses, or use a dialect that has ranges",
            Self::Port { .. } => "write a port from 1 to 65535",
            Self::PortRange { .. } => "put the lower port first",
            Self::NoDefaultPort { .. } => "add `:PORT`",
            Self::Path => "end the entry after the host or port; paths are never compared",
            Self::Userinfo => "remove the part before `@` and give the credential as a secret",
            Self::Template => "resolve the variable first, or give its value for the check",
            Self::HostInternalPort => "write `host.internal:PORT`",
            Self::Deny => "remove the `!`",
        })
    }
}
