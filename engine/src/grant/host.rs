//! The host pattern: its parts, and the words in which a report names them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::HostPatternError;
use super::address::classify;
use super::dialect::Dialect;
use super::matching::HTTP_SCHEMES;
use super::name::Name;
use super::policy::Consent;
use super::target::{HOST_INTERNAL, Plane};

/// The longest host pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1024;
/// The longest scheme, in bytes; RFC 3986 sets no limit, and no registered scheme comes near.
const MAX_SCHEME_BYTES: usize = 32;

/// A scheme or protocol as an entry writes it: an ASCII letter, then letters, digits, `+`, `-`, `.`.
///
/// Compared by bytes with the lower-case scheme of a target, so Spin's `HTTPS` matches nothing.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Scheme(String);

impl Scheme {
    /// Letters only, as written.
    pub(super) fn parse_letters(text: &str) -> Option<Self> {
        let valid = (1..=MAX_SCHEME_BYTES).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphabetic());
        valid.then(|| Self(text.to_owned()))
    }

    /// Letters only, lowered.
    pub(super) fn parse_lower(text: &str) -> Option<Self> {
        Self::parse_letters(text).map(|scheme| Self(scheme.0.to_ascii_lowercase()))
    }

    /// The syntax of RFC 3986, section 3.1, lowered.
    pub(super) fn parse_rfc3986(text: &str) -> Option<Self> {
        let valid = text.len() <= MAX_SCHEME_BYTES
            && text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
        valid.then(|| Self(text.to_ascii_lowercase()))
    }

    pub(super) fn known(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// Whether requests of this scheme leave by the HTTP plane.
    pub fn is_http(&self) -> bool {
        HTTP_SCHEMES.iter().any(|http| self.0.eq_ignore_ascii_case(http))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A set of schemes.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SchemeSet {
    /// Every scheme of the plane.
    Any,
    /// These, in order.
    Only(Vec<Scheme>),
}

impl SchemeSet {
    /// Whether the set holds `scheme`, by bytes.
    pub fn contains(&self, scheme: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(schemes) => schemes.iter().any(|own| own.as_str() == scheme),
        }
    }
}

/// A set of hosts.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum HostSet {
    /// Every name and address, but never the machine's own loopback by its reserved name.
    Any,
    /// `*.NAME`: one or more labels in front of the name, the name itself excluded.
    Subdomains(Name),
    /// `**.NAME`: the name and everything below it.
    SubdomainsAndApex(Name),
    /// One name.
    Exact(Name),
    /// One address, never v4-mapped.
    Ip(IpAddr),
    /// A range of more than one address.
    Cidr(Cidr),
    /// The machine's own loopback (`host.internal`, `host.wasmcloud.internal`).
    HostInternal,
    /// Spin's `self`: the application's own routes. No target is one.
    SelfHost,
}

/// A range of two or more addresses by its network address and prefix length.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// The range that holds `address`, host bits cleared; `None` for an impossible prefix length.
    /// A v4-mapped range becomes the IPv4 range, so that it compares with canonical addresses.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let (address, prefix) = match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(v4)) if prefix >= 96 => {
                (IpAddr::V4(v4), prefix.checked_sub(96)?)
            }
            (original, _) => (original, prefix),
        };
        let network = match address {
            IpAddr::V4(v4) => {
                let host_bits = 32u8.checked_sub(prefix)?;
                let mask = u32::MAX.checked_shl(u32::from(host_bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let host_bits = 128u8.checked_sub(prefix)?;
                let mask = u128::MAX.checked_shl(u32::from(host_bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        };
        Some(Self { network, prefix })
    }

    /// The lowest address.
    pub fn network(&self) -> IpAddr {
        self.network
    }

    /// The prefix length: 0..=32 or 0..=128.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether `address` lies in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.network.is_ipv4()
            && Self::new(address, self.prefix).is_some_and(|range| range.network == self.network)
    }

    /// Whether every address of `other` lies in the range.
    pub fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.network)
    }

    pub(super) fn is_single(&self) -> bool {
        self.prefix == if self.network.is_ipv4() { 32 } else { 128 }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network {
            IpAddr::V4(address) => write!(f, "{address}/{}", self.prefix),
            IpAddr::V6(address) => write!(f, "[{address}]/{}", self.prefix),
        }
    }
}

impl fmt::Display for HostSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Subdomains(name) => write!(f, "*.{name}"),
            Self::SubdomainsAndApex(name) => write!(f, "**.{name}"),
            Self::Exact(name) => name.fmt(f),
            Self::Ip(IpAddr::V4(address)) => address.fmt(f),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Cidr(range) => range.fmt(f),
            Self::HostInternal => f.write_str(HOST_INTERNAL),
            Self::SelfHost => f.write_str("self"),
        }
    }
}

/// A set of ports.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PortSet {
    /// Every port.
    Any,
    /// The default port of the request's scheme, spelled or not.
    SchemeDefault,
    /// These ports, and only where the request spells the port (wasmCloud's `h:443`).
    Spelled(Vec<u16>),
    /// These inclusive ranges, spelled or not.
    Ranges(Vec<(u16, u16)>),
}

/// What a pattern lets through on one plane.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Access {
    /// The schemes or protocols.
    pub schemes: SchemeSet,
    /// The ports.
    pub ports: PortSet,
}

/// One entry of a host list, read in its dialect.
///
/// `Display` gives back the source text byte for byte.
///
/// # Examples
///
/// ```
/// # use ambit_engine::grant::{Dialect, HostPattern, Target};
/// let pattern = HostPattern::parse("https://*.example.com", Dialect::Ambit)?;
/// assert!(pattern.matches(&Target::http_url("https://a.example.com/x")?));
/// assert!(!pattern.matches(&Target::http_url("https://example.com/")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostPattern {
    pub(super) text: String,
    pub(super) dialect: Dialect,
    pub(super) deny: bool,
    pub(super) schemes: SchemeSet,
    pub(super) host: HostSet,
    pub(super) ports: PortSet,
    pub(super) http: Option<Access>,
    pub(super) socket: Option<Access>,
    pub(super) userinfo: bool,
    pub(super) dropped_port: Option<u16>,
}

impl HostPattern {
    /// Reads one entry.
    ///
    /// # Errors
    ///
    /// Every variant of [`HostPatternError`], by its description.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, HostPatternError> {
        super::parse::parse(text, dialect)
    }

    /// The dialect that the entry was read in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether the entry takes away instead of giving.
    pub fn is_deny(&self) -> bool {
        self.deny
    }

    /// The planes on which the entry can match, in order; none for a scheme that no call has.
    pub fn planes(&self) -> Vec<Plane> {
        let http = self.http.as_ref().map(|_| Plane::Http);
        http.into_iter().chain(self.socket.as_ref().map(|_| Plane::Socket)).collect()
    }

    /// What the entry lets through on `plane`.
    pub fn access(&self, plane: Plane) -> Option<&Access> {
        match plane {
            Plane::Http => self.http.as_ref(),
            Plane::Socket => self.socket.as_ref(),
        }
    }

    /// The schemes as the entry names them.
    pub fn schemes(&self) -> &SchemeSet {
        &self.schemes
    }

    /// The hosts.
    pub fn host(&self) -> &HostSet {
        &self.host
    }

    /// The ports as the dialect reads them.
    pub fn ports(&self) -> &PortSet {
        &self.ports
    }

    /// Whether the text holds a user name or password, which wasmCloud accepts and ignores.
    pub fn has_userinfo(&self) -> bool {
        self.userinfo
    }

    /// The default port that wasmCloud reads and forgets (`https://h:443`).
    pub fn dropped_port(&self) -> Option<u16> {
        self.dropped_port
    }

    /// The source text, userinfo masked; what a report or record prints.
    pub fn text_for_report(&self) -> String {
        match (self.userinfo, self.text.split_once("://"), self.text.rsplit_once('@')) {
            (true, Some((scheme, _)), Some((_, host))) => format!("{scheme}://***@{host}"),
            (true, _, _) => "***".to_owned(),
            (false, _, _) => self.text.clone(),
        }
    }

    /// The entry in the `ambit` dialect.
    ///
    /// Reading it back as [`Dialect::Ambit`] gives the same set, except for what that dialect
    /// cannot say: "only when the URL spells the port", wasmCloud's socket reading of an address
    /// with a scheme, the reserved names without a port or as plain names, names that look like
    /// numbers, schemes in capitals, and Spin's scheme wildcard on a name for other protocols than
    /// HTTP. [`HostPattern::canonical_is_exact`] tells.
    pub fn canonical(&self) -> String {
        ambit_text(self.deny, &self.schemes, &self.host, &self.ports)
    }

    /// Whether [`HostPattern::canonical`] loses nothing.
    pub fn canonical_is_exact(&self) -> bool {
        Self::parse(&self.canonical(), Dialect::Ambit).is_ok_and(|read| read.same_meaning(self))
    }

    /// Whether both entries are the same set, whatever their texts.
    pub fn same_meaning(&self, other: &Self) -> bool {
        (self.deny, &self.host, &self.http, &self.socket)
            == (other.deny, &other.host, &other.http, &other.socket)
    }

    /// What the entry consents to for one resolved address.
    pub fn consent(&self, address: IpAddr) -> Consent {
        let address = address.to_canonical();
        match &self.host {
            HostSet::Ip(own) if *own == address => Consent::Literal,
            HostSet::Cidr(range) if range.contains(address) => Consent::Cidr,
            HostSet::Any
            | HostSet::Subdomains(_)
            | HostSet::SubdomainsAndApex(_)
            | HostSet::Exact(_)
            | HostSet::Ip(_)
            | HostSet::Cidr(_)
            | HostSet::HostInternal
            | HostSet::SelfHost => Consent::None,
        }
    }

    /// The ports meant, in words: `any port`, `8443`, `443 (https), 80 (http)`,
    /// `443, only when the URL spells it`.
    pub fn ports_meant(&self) -> String {
        match &self.ports {
            PortSet::Any => "any port".to_owned(),
            PortSet::SchemeDefault => match &self.schemes {
                SchemeSet::Any => "443 (https), 80 (http)".to_owned(),
                SchemeSet::Only(schemes) => join(
                    schemes.iter().filter_map(|s| default_port(s.as_str())).map(|p| p.to_string()),
                ),
            },
            PortSet::Spelled(ports) => {
                format!("{}, only when the URL spells it", join(ports.iter().map(u16::to_string)))
            }
            PortSet::Ranges(ranges) => {
                join(ranges.iter().map(|(low, high)| port_range(*low, *high)))
            }
        }
    }

    /// The entry in words: `api.example.com over any scheme, any port`.
    pub fn describe(&self) -> String {
        let host = match &self.host {
            HostSet::Any => "any host".to_owned(),
            HostSet::Subdomains(name) => format!("any name below {name}"),
            HostSet::SubdomainsAndApex(name) => format!("{name} and any name below it"),
            HostSet::HostInternal => "this machine's loopback".to_owned(),
            HostSet::SelfHost => "the application itself".to_owned(),
            HostSet::Ip(address) => match classify(*address).word() {
                Some(word) => format!("{} ({word})", self.host),
                None => self.host.to_string(),
            },
            HostSet::Exact(_) | HostSet::Cidr(_) => self.host.to_string(),
        };
        let schemes = match &self.schemes {
            SchemeSet::Any => "any scheme".to_owned(),
            SchemeSet::Only(schemes) => join(schemes.iter().map(Scheme::to_string)),
        };
        let ports = match &self.ports {
            PortSet::Any => self.ports_meant(),
            PortSet::SchemeDefault | PortSet::Spelled(_) | PortSet::Ranges(_) => {
                format!("port {}", self.ports_meant())
            }
        };
        let not = if self.deny { "not " } else { "" };
        let tail = match (&self.schemes, &self.http, &self.socket) {
            (SchemeSet::Only(_), Some(_), Some(_)) => "; raw sockets too",
            (_, None, None) => "; no call has this scheme",
            _ => "",
        };
        format!("{not}{host} over {schemes}, {ports}{tail}")
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The text of a grant in the `ambit` dialect.
pub(super) fn ambit_text(
    deny: bool,
    schemes: &SchemeSet,
    host: &HostSet,
    ports: &PortSet,
) -> String {
    let mark = if deny { "!" } else { "" };
    let scheme = match schemes {
        SchemeSet::Any => String::new(),
        SchemeSet::Only(schemes) => format!("{}://", join(schemes.iter().map(Scheme::to_string))),
    };
    let port = match ports {
        PortSet::Any => ":*".to_owned(),
        // A deny entry without a port means every port.
        PortSet::SchemeDefault if deny => ":default".to_owned(),
        PortSet::SchemeDefault => String::new(),
        PortSet::Spelled(ports) => format!(":{}", join(ports.iter().map(u16::to_string))),
        PortSet::Ranges(ranges) => {
            format!(":{}", join(ranges.iter().map(|(low, high)| port_range(*low, *high))))
        }
    };
    format!("{mark}{scheme}{host}{port}")
}

/// The default port of a scheme: RFC 9110 (http, https), the IANA service registry for the rest,
/// which is the set that Spin knows.
pub(super) fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        "postgres" => Some(5432),
        "mysql" => Some(3306),
        "redis" => Some(6379),
        "mqtt" => Some(1883),
        _ => None,
    }
}

/// Reads a port in 1..=65535 of digits only.
pub(super) fn port_number(text: &str) -> Option<u16> {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().filter(|port| *port != 0)
}

fn port_range(low: u16, high: u16) -> String {
    if low == high { low.to_string() } else { format!("{low}-{high}") }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
