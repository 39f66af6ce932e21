//! What a host grant means that its writer may not have meant.

use super::address::{AddressClass, classify, metadata_name};
use super::host::{HostPattern, HostSet, PortSet, SchemeSet};

/// Suffixes under which anybody can get a name, beside the private section of the public suffix
/// list. From the providers' own documentation of their service names.
const SHARED_SUFFIXES: [&str; 40] = [
    "amazonaws.com",
    "amazonaws.com.cn",
    "cloudfront.net",
    "elasticbeanstalk.com",
    "azurewebsites.net",
    "azureedge.net",
    "cloudapp.net",
    "cloudapp.azure.com",
    "windows.net",
    "core.windows.net",
    "blob.core.windows.net",
    "trafficmanager.net",
    "googleapis.com",
    "googleusercontent.com",
    "appspot.com",
    "run.app",
    "cloudfunctions.net",
    "web.app",
    "firebaseapp.com",
    "herokuapp.com",
    "vercel.app",
    "netlify.app",
    "pages.dev",
    "workers.dev",
    "r2.dev",
    "fly.dev",
    "onrender.com",
    "railway.app",
    "github.io",
    "githubusercontent.com",
    "gitlab.io",
    "digitaloceanspaces.com",
    "ondigitalocean.app",
    "backblazeb2.com",
    "ngrok.io",
    "ngrok.app",
    "ngrok-free.app",
    "trycloudflare.com",
    "fastly.net",
    "akamaized.net",
];

/// What a lint has to know besides the entry.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LintContext {
    /// Whether a secret reaches the component.
    pub has_secret: bool,
}

/// How a default port is misread.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PortTrap {
    /// `https://h:443`: the port is dropped, and any port is meant.
    Dropped(u16),
    /// `h:443`: only a URL that spells the port matches.
    Spelled(u16),
}

/// One lint.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum HostLint {
    /// Every host.
    AnyHost,
    /// A wildcard over a top-level or public suffix.
    PublicSuffix(String),
    /// A wildcard over a suffix under which anybody can get a name.
    SharedSuffix(String),
    /// Plain HTTP is allowed while a secret is at hand.
    CleartextWithSecret,
    /// A default port that doesn't mean what it seems to.
    DefaultPort(PortTrap),
    /// An address or name that is always refused at run time, or should be.
    SpecialRange(AddressClass),
    /// A private address or range.
    PrivateRange(AddressClass),
    /// A user name or password in the entry.
    Userinfo,
}

impl HostLint {
    /// Returns the stable code of this lint.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::AnyHost => "host-any",
            Self::PublicSuffix(_) => "host-public-suffix",
            Self::SharedSuffix(_) => "host-shared-suffix",
            Self::CleartextWithSecret => "host-cleartext-secret",
            Self::DefaultPort(_) => "host-default-port",
            Self::SpecialRange(_) => "host-special-range",
            Self::PrivateRange(_) => "host-private-range",
            Self::Userinfo => "host-userinfo",
        }
    }

    /// Returns what is the matter with the entry.
    #[must_use]
    pub fn message(&self, pattern: &HostPattern) -> String {
        let text = pattern.text_for_report();
        match self {
            Self::AnyHost => format!("`{text}` allows every host"),
            Self::PublicSuffix(suffix) => {
                format!("`{text}` allows every name under the public suffix `{suffix}`")
            }
            Self::SharedSuffix(suffix) => {
                format!("`{text}` allows names under `{suffix}` that anybody can get")
            }
            Self::CleartextWithSecret => {
                format!("`{text}` allows plain HTTP, and the component holds a secret")
            }
            Self::DefaultPort(PortTrap::Dropped(port)) => {
                format!("`{text}` looks pinned to port {port} and means any port")
            }
            Self::DefaultPort(PortTrap::Spelled(port)) => {
                format!("`{text}` matches only URLs that spell `:{port}`, which few do")
            }
            Self::SpecialRange(class) => format!("`{text}` names a {class} address"),
            Self::PrivateRange(class) => format!("`{text}` names a {class} address"),
            Self::Userinfo => format!("`{text}` holds a user name or password that is ignored"),
        }
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn help(&self, pattern: &HostPattern) -> String {
        let host = pattern.host();
        match self {
            Self::AnyHost => "list the hosts that the component calls".to_owned(),
            Self::PublicSuffix(_) | Self::SharedSuffix(_) => {
                "name the hosts themselves, as the regional service names".to_owned()
            }
            Self::CleartextWithSecret => format!("write `https://{host}`"),
            Self::DefaultPort(PortTrap::Dropped(_)) => {
                format!("write `https://{host}`, which says what is meant")
            }
            Self::DefaultPort(PortTrap::Spelled(_)) => format!("write `https://{host}`"),
            Self::SpecialRange(_) => "delete the entry; it never works or never should".to_owned(),
            Self::PrivateRange(_) => {
                "keep it only if the component is meant to reach into the private network".to_owned()
            }
            Self::Userinfo => "delete the part before `@` and change that password".to_owned(),
        }
    }
}

/// How many targets an entry has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Breadth {
    /// They can be listed, or belong to one owner.
    Bounded,
    /// Any host, a public or shared suffix, or a range of addresses.
    Unbounded,
}

/// Returns the wildcard's suffix if it is a top-level or public suffix, in ICANN's section.
fn public_suffix(pattern: &HostPattern) -> Option<String> {
    let name = wildcard(pattern)?;
    let icann = psl::suffix(name.as_bytes())
        .is_some_and(|suffix| suffix.as_bytes() == name.as_bytes() && suffix.is_known());
    let private = psl::suffix(name.as_bytes())
        .is_some_and(|suffix| suffix.typ() == Some(psl::Type::Private));
    ((icann && !private) || !name.contains('.')).then_some(name)
}

/// Returns the wildcard's suffix if anybody can get a name under it.
fn shared_suffix(pattern: &HostPattern) -> Option<String> {
    let name = wildcard(pattern)?;
    let listed = SHARED_SUFFIXES.iter().any(|suffix| {
        name == *suffix || name.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'))
    });
    let private = psl::suffix(name.as_bytes()).is_some_and(|suffix| {
        suffix.typ() == Some(psl::Type::Private) && suffix.as_bytes() == name.as_bytes()
    });
    (listed || private).then_some(name)
}

fn wildcard(pattern: &HostPattern) -> Option<String> {
    match pattern.host() {
        HostSet::Subdomains(name) | HostSet::SubdomainsAndApex(name) => Some(name.to_string()),
        HostSet::Any
        | HostSet::Exact(_)
        | HostSet::Ip(_)
        | HostSet::Cidr(_)
        | HostSet::HostInternal
        | HostSet::SelfHost => None,
    }
}

/// Returns the address classes that an entry names: its address, the ends of its range, or the
/// metadata service by name.
#[must_use]
pub fn address_classes(pattern: &HostPattern) -> Vec<AddressClass> {
    let mut classes = match pattern.host() {
        HostSet::Ip(address) => vec![classify(*address)],
        HostSet::Cidr(range) => {
            let mut classes = vec![classify(range.network()), classify(range.highest())];
            let metadata = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200"];
            let holds = metadata.iter().filter_map(|text| text.parse().ok()).any(|a| range.contains(a));
            if holds {
                classes.push(AddressClass::Metadata);
            }
            let loopback = ["127.0.0.1", "::1"];
            if loopback.iter().filter_map(|text| text.parse().ok()).any(|a| range.contains(a)) {
                classes.push(AddressClass::Loopback);
            }
            classes
        }
        HostSet::Exact(name) if metadata_name(name.as_str()) => vec![AddressClass::Metadata],
        HostSet::Exact(name)
            if name.as_str() == "localhost" || name.as_str().ends_with(".localhost") =>
        {
            vec![AddressClass::Loopback]
        }
        HostSet::Exact(_)
        | HostSet::Any
        | HostSet::Subdomains(_)
        | HostSet::SubdomainsAndApex(_)
        | HostSet::HostInternal
        | HostSet::SelfHost => Vec::new(),
    };
    classes.sort();
    classes.dedup();
    classes.retain(|class| *class != AddressClass::Public);
    classes
}

/// Tells whether the targets of an entry can be listed.
#[must_use]
pub fn breadth(pattern: &HostPattern) -> Breadth {
    let unbounded = match pattern.host() {
        HostSet::Any => true,
        HostSet::Cidr(range) => range.network() != range.highest(),
        HostSet::Subdomains(_) | HostSet::SubdomainsAndApex(_) => {
            public_suffix(pattern).is_some() || shared_suffix(pattern).is_some()
        }
        HostSet::Exact(_) | HostSet::Ip(_) | HostSet::HostInternal | HostSet::SelfHost => false,
    };
    if unbounded { Breadth::Unbounded } else { Breadth::Bounded }
}

/// Returns the lints that an entry earns, in the order of [`HostLint`]'s variants.
///
/// An entry that takes away earns none.
#[must_use]
pub fn lints(pattern: &HostPattern, context: &LintContext) -> Vec<HostLint> {
    let mut found = Vec::new();
    if pattern.is_deny() {
        return found;
    }
    if matches!(pattern.host(), HostSet::Any) {
        found.push(HostLint::AnyHost);
    }
    if let Some(suffix) = public_suffix(pattern) {
        found.push(HostLint::PublicSuffix(suffix));
    } else if let Some(suffix) = shared_suffix(pattern) {
        found.push(HostLint::SharedSuffix(suffix));
    }
    let plain = match pattern.schemes() {
        SchemeSet::Any => true,
        SchemeSet::Only(schemes) => schemes.iter().any(|scheme| scheme.as_str() == "http"),
    };
    let machine = matches!(pattern.host(), HostSet::HostInternal | HostSet::SelfHost);
    if context.has_secret && plain && !machine {
        found.push(HostLint::CleartextWithSecret);
    }
    if let Some(port) = pattern.dropped_port() {
        found.push(HostLint::DefaultPort(PortTrap::Dropped(port)));
    } else if let PortSet::Spelled(ports) = pattern.ports()
        && let Some(port) = ports.iter().find(|port| matches!(port, 80 | 443))
    {
        found.push(HostLint::DefaultPort(PortTrap::Spelled(*port)));
    }
    let classes = address_classes(pattern);
    if let Some(class) = classes.iter().find(|class| class.is_special()) {
        found.push(HostLint::SpecialRange(*class));
    } else if let Some(class) = classes.iter().find(|class| class.is_private()) {
        found.push(HostLint::PrivateRange(*class));
    }
    if pattern.has_userinfo() {
        found.push(HostLint::Userinfo);
    }
    found
}
