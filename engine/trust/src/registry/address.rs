//! Which hosts and addresses may be called, and how.
//!
//! The reference, the redirect, the token realm and the upload location all come from somebody
//! else. A place is judged three times: by its spelling, by the rules for its host, and by every
//! address that its name has. What is connected to is one of the addresses that were judged.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use ambit_engine::grant::{
    AddressClass, CanonicalHost, Consent, RangePolicy, Target, classify, metadata_name,
};
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::options::{Loopback, OptionsError};
use crate::error::FetchError;

/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// Looks names up. Tests bring one that needs no network.
pub trait Resolver: Send + Sync {
    /// Returns every address of `host`.
    fn resolve(&self, host: String) -> Lookup;
}

/// The answer of a [`Resolver`].
pub type Lookup =
    std::pin::Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, std::io::Error>> + Send>>;

/// The operating system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: String) -> Lookup {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A host that the operator names, `registry.example:5000`. Without a port the default ports of
/// http and https are meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostPort {
    host: CanonicalHost,
    port: Option<u16>,
}

impl FromStr for HostPort {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || OptionsError::Host { text: text.chars().take(100).collect() };
        if text.contains(['/', '@', '?', '#', ' ']) {
            return Err(invalid());
        }
        let target = Target::http("https", text).map_err(|_| invalid())?;
        let port = target.port_spelled().then_some(target.port());
        Ok(Self { host: target.host().clone(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.host, f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl HostPort {
    pub(super) fn is(&self, authority: &Authority) -> bool {
        let port = match self.port {
            Some(port) => port == authority.port,
            None => matches!(authority.port, 80 | 443),
        };
        port && self.host == authority.host
    }
}

/// A host in canonical form with its port.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Authority {
    pub(super) host: CanonicalHost,
    pub(super) port: u16,
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Authority {
    /// Whether the spelling itself says "this machine".
    pub(super) fn is_spelled_loopback(&self) -> bool {
        match &self.host {
            CanonicalHost::Ip(address) => classify(*address) == AddressClass::Loopback,
            CanonicalHost::Name(name) => {
                name.as_str() == "localhost" || name.as_str().ends_with(".localhost")
            }
            CanonicalHost::HostInternal => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Which addresses a host may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Net {
    /// Those of the internet.
    Public,
    /// And those of inside networks.
    Private,
    /// And those of this machine.
    Local,
}

impl Net {
    pub(super) const ALL: [Self; 3] = [Self::Public, Self::Private, Self::Local];
}

/// A place that may be called as far as its spelling goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Site {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    pub(super) net: Net,
}

/// The rules for places.
pub(super) struct Gate {
    pub(super) range: RangePolicy,
    pub(super) loopback: Loopback,
    pub(super) insecure: Vec<HostPort>,
    pub(super) private: Vec<HostPort>,
}

/// Whether the operator's configuration names a host, beside its lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Named {
    /// A reference names it.
    ByReference,
    /// A mirror, which only the operator can name.
    ByOperator,
}

impl Gate {
    /// Returns where a registry is called: over https, but where the operator opens plain http.
    pub(super) fn home(&self, registry: &str, named: Named) -> Result<Site, FetchError> {
        let registry = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        let listed = |list: &[HostPort], port| {
            authority_of("https", registry, port).map(|a| list.iter().any(|entry| entry.is(&a)))
        };
        // A name without a port has another default under each scheme, so both are looked up.
        let private = listed(&self.private, None)?;
        let insecure = listed(&self.insecure, None)?;
        let loopback = self.loopback == Loopback::Allowed
            && authority_of("https", registry, None)?.is_spelled_loopback();
        let scheme = if !private && (insecure || loopback) { Scheme::Http } else { Scheme::Https };
        let authority = authority_of(scheme.as_str(), registry, None)?;
        let net = match (private || insecure || loopback, named) {
            (true, _) => Net::Local,
            (false, Named::ByOperator) => Net::Private,
            (false, Named::ByReference) => Net::Public,
        };
        self.literal(&authority, net)?;
        Ok(Site { scheme, authority, net })
    }

    /// Returns where a redirect, a realm or a location leads, seen from `home`: another host gets
    /// none of what `home` was given, and https never becomes http.
    pub(super) fn onward(&self, url: &Url, home: &Site, from: Scheme) -> Result<Site, FetchError> {
        let shown = || url.host_str().unwrap_or("?").to_owned();
        let refused =
            |reason: &str| FetchError::Address { host: shown(), reason: reason.to_owned() };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("the address carries a user name"));
        }
        let host = url.host_str().ok_or_else(|| refused("the address names no host"))?;
        let authority = authority_of(url.scheme(), host, url.port())?;
        let scheme = match url.scheme() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            _ => return Err(refused("only http and https are spoken")),
        };
        let same = authority == home.authority;
        let listed = |list: &[HostPort]| list.iter().any(|entry| entry.is(&authority));
        let insecure = listed(&self.insecure);
        if scheme == Scheme::Http {
            if from == Scheme::Https {
                return Err(refused("it leads from https to plain http"));
            }
            let open = insecure || (same && home.scheme == Scheme::Http);
            if !open {
                return Err(refused("plain http is only spoken where the operator allows it"));
            }
        }
        let net = if same {
            home.net
        } else if insecure || listed(&self.private) {
            Net::Local
        } else {
            Net::Public
        };
        self.literal(&authority, net)?;
        Ok(Site { scheme, authority, net })
    }

    /// Judges what needs no lookup. The HTTP client never asks its resolver about a literal.
    fn literal(&self, authority: &Authority, net: Net) -> Result<(), FetchError> {
        let refused = |reason: String| FetchError::Address { host: authority.to_string(), reason };
        match &authority.host {
            CanonicalHost::Ip(address) => {
                self.vet(net, *address).map_err(|class| refused(class_reason(class)))
            }
            CanonicalHost::Name(name) if metadata_name(name.as_str()) => {
                Err(refused(class_reason(AddressClass::Metadata)))
            }
            CanonicalHost::Name(_) => Ok(()),
            CanonicalHost::HostInternal => Err(refused(class_reason(AddressClass::Loopback))),
        }
    }

    fn vet(&self, net: Net, address: IpAddr) -> Result<(), AddressClass> {
        match net {
            Net::Public => self.range.allows(address, Consent::None),
            Net::Local if classify(address) == AddressClass::Loopback => Ok(()),
            Net::Private | Net::Local => self.range.allows(address, Consent::PrivateNetwork),
        }
    }
}

fn class_reason(class: AddressClass) -> String {
    format!("it leads to a {class} address")
}

fn authority_of(scheme: &str, host: &str, port: Option<u16>) -> Result<Authority, FetchError> {
    let text = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    // The engine reads hosts strictly: numbers in odd spellings (decimal, octal, hexadecimal) are
    // refused, whatever they would come to.
    match Target::http(scheme, &text) {
        Ok(target) => Ok(Authority { host: target.host().clone(), port: target.port() }),
        Err(error) => Err(FetchError::Address {
            host: super::text::printable(host),
            reason: error.to_string(),
        }),
    }
}

/// Reads an address that a registry sent, absolute or relative to `base`.
///
/// An absolute one is read twice, as it stands and as the URL standard repairs it, and both must
/// name the same host: a spelling that readers disagree about is refused.
pub(super) fn resolve_url(text: &str, base: &Url) -> Result<Url, FetchError> {
    let shown = || super::text::printable(text.split(['?', '#']).next().unwrap_or_default());
    let refused = |reason: &str| FetchError::Address { host: shown(), reason: reason.to_owned() };
    if text.len() > 16 << 10 || text.chars().any(|c| c.is_control() || c == '\\' || c == ' ') {
        return Err(refused("it is no address that can be called"));
    }
    let url = base.join(text).map_err(|_| refused("it is no address that can be called"))?;
    let lower = text.to_ascii_lowercase();
    let absolute = if let Some(rest) = text.strip_prefix("//") {
        Some(format!("{}://{rest}", base.scheme()))
    } else if lower.starts_with("http:") || lower.starts_with("https:") {
        Some(text.to_owned())
    } else {
        None
    };
    if let Some(absolute) = absolute {
        let (scheme, rest) =
            absolute.split_once("://").ok_or_else(|| refused("it names no host"))?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let read = Target::http(&scheme.to_ascii_lowercase(), authority)
            .map_err(|error| refused(&error.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        if authority_of(url.scheme(), host, url.port())?
            != (Authority { host: read.host().clone(), port: read.port() })
        {
            return Err(refused("its host can be read in two ways"));
        }
    }
    Ok(url)
}

/// Looks a name up once and hands on nothing unless every address may be called.
pub(super) struct Vetting {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) gate: Arc<Gate>,
    pub(super) net: Net,
}

/// A name with an address that may not be called.
#[derive(Debug, thiserror::Error)]
#[error("it leads to a {class} address")]
pub(super) struct Refused {
    pub(super) host: String,
    pub(super) class: AddressClass,
}

impl From<&Refused> for FetchError {
    fn from(refused: &Refused) -> Self {
        Self::Address { host: refused.host.clone(), reason: class_reason(refused.class) }
    }
}

impl Resolve for Vetting {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (resolver, gate, net) = (Arc::clone(&self.resolver), Arc::clone(&self.gate), self.net);
        Box::pin(async move {
            let found = resolver.resolve(host.clone()).await?;
            for address in &found {
                gate.vet(net, *address).map_err(|class| Refused { host: host.clone(), class })?;
            }
            let addresses: Addrs = Box::new(
                found.into_iter().take(MAX_ADDRESSES).map(|ip| std::net::SocketAddr::new(ip, 0)),
            );
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(loopback: Loopback, insecure: &[&str], private: &[&str]) -> Gate {
        let list = |from: &[&str]| from.iter().map(|text| text.parse().unwrap()).collect();
        Gate {
            range: RangePolicy::default(),
            loopback,
            insecure: list(insecure),
            private: list(private),
        }
    }

    fn strict() -> Gate {
        gate(Loopback::Refused, &[], &[])
    }

    #[test]
    fn special_addresses_are_refused_however_they_are_spelled() {
        for host in [
            "169.254.169.254",
            "169.254.169.254:80",
            "127.0.0.1:5000",
            "[::1]:5000",
            "[::ffff:127.0.0.1]:5000",
            "[::ffff:169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "10.0.0.1",
            "192.168.1.1:5000",
            "[fe80::1]",
            "0.0.0.0:5000",
            "2130706433:5000",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "127.1:5000",
            "0x7f000001:5000",
            "metadata.google.internal",
            "metadata.google.internal.",
            "user@registry.example",
        ] {
            let error = strict().home(host, Named::ByReference).unwrap_err();
            assert_eq!(error.code(), "registry-address", "{host}: {error}");
        }
    }

    #[test]
    fn odd_spellings_are_refused_even_where_loopback_is_allowed() {
        let gate = gate(Loopback::Allowed, &[], &[]);
        assert_eq!(gate.home("127.0.0.1:5000", Named::ByReference).unwrap().scheme, Scheme::Http);
        assert_eq!(gate.home("localhost:5000", Named::ByReference).unwrap().net, Net::Local);
        for host in ["2130706433:5000", "0x7f.1:5000", "127.1:5000", "0.0.0.0:5000"] {
            assert!(gate.home(host, Named::ByReference).is_err(), "{host}");
        }
        let public = gate.home("registry.example", Named::ByReference).unwrap();
        assert_eq!((public.scheme, public.net), (Scheme::Https, Net::Public));
    }

    #[test]
    fn operator_opens_single_hosts() {
        let gate = gate(Loopback::Refused, &["10.0.0.1:5000", "plain.example"], &["in.example"]);
        let home = |host: &str| gate.home(host, Named::ByReference);
        let site = home("10.0.0.1:5000").unwrap();
        assert_eq!((site.scheme, site.net), (Scheme::Http, Net::Local));
        assert!(home("10.0.0.1:5001").is_err());
        assert_eq!(home("plain.example").unwrap().authority.port, 80);
        assert_eq!(home("plain.example:5000").unwrap().scheme, Scheme::Https);
        let site = home("in.example").unwrap();
        assert_eq!((site.scheme, site.net), (Scheme::Https, Net::Local));
        assert_eq!(gate.home("m.example", Named::ByOperator).unwrap().net, Net::Private);
    }

    #[test]
    fn nothing_leads_from_https_to_http_or_inside() {
        let gate = gate(Loopback::Allowed, &["plain.example"], &[]);
        let home = gate.home("registry.example", Named::ByReference).unwrap();
        for (text, opens) in [
            ("https://cdn.example/x", true),
            ("https://registry.example/x", true),
            ("http://registry.example/x", false),
            ("http://plain.example/x", false),
            ("https://127.0.0.1/x", false),
            ("https://localhost@127.0.0.1/x", false),
            ("https://10.0.0.1/x", false),
            ("https://169.254.169.254/latest", false),
            ("ftp://cdn.example/x", false),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(gate.onward(&url, &home, Scheme::Https).is_ok(), opens, "{text}");
        }
    }

    #[test]
    fn loopback_opens_for_the_registry_itself_only() {
        let gate = gate(Loopback::Allowed, &[], &[]);
        let home = gate.home("127.0.0.1:5000", Named::ByReference).unwrap();
        let to = |text: &str| gate.onward(&Url::parse(text).unwrap(), &home, Scheme::Http);
        assert!(to("http://127.0.0.1:5000/x").is_ok());
        assert!(to("http://127.0.0.1:5001/x").is_err());
        assert!(to("http://localhost:5000/x").is_err());
        assert!(to("http://cdn.example/x").is_err());
        assert!(to("https://cdn.example/x").is_ok());
    }

    #[test]
    fn sent_addresses_are_read_strictly() {
        let base = Url::parse("https://registry.example/v2/a/blobs/x").unwrap();
        assert_eq!(
            resolve_url("/b?c=d", &base).unwrap().as_str(),
            "https://registry.example/b?c=d"
        );
        assert_eq!(
            resolve_url("//cdn.example/b", &base).unwrap().as_str(),
            "https://cdn.example/b"
        );
        for text in [
            "https://2130706433/x",
            "https://0x7f.1/x",
            "https:\\\\127.0.0.1/x",
            "https:127.0.0.1/x",
            "https:///127.0.0.1/x",
            "https://a@b.example/x",
            "https://h:0/x",
            "https://[::1/x",
            "https://h\u{0}.example/",
        ] {
            assert!(resolve_url(text, &base).is_err(), "{text}");
        }
    }
}
