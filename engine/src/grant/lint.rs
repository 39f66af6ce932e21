//! What is worth saying about a host pattern that parses.

use super::address::{AddressClass, classes_in, classify, metadata_name};
use super::dialect::Dialect;
use super::host::{HostPattern, HostSet, PortSet};
use super::name::Name;
use super::target::Plane;

/// What a lint has to know beside the entry itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LintContext {
    /// Whether the component holds a secret.
    pub has_secret: bool,
}

/// Which of wasmCloud's two default-port traps an entry is in.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PortTrap {
    /// `https://h:443`: looks pinned, means any port.
    Dropped,
    /// `h:443`: denies URLs that don't spell the port.
    MustBeSpelled,
}

/// One remark about one entry.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum HostLint {
    /// The entry names every host.
    AnyHost,
    /// The wildcard spans a suffix under which anybody can register a name.
    PublicSuffixWildcard {
        /// The suffix.
        suffix: String,
    },
    /// The wildcard spans a suffix under which a provider gives names to its customers.
    SharedHostingSuffix {
        /// The suffix.
        suffix: String,
    },
    /// The component holds a secret and may send it over plain HTTP.
    CleartextWithSecret {
        /// The entry, userinfo masked.
        entry: String,
    },
    /// The port means something else than it seems to.
    DefaultPortTrap {
        /// The entry, userinfo masked.
        entry: String,
        /// The port.
        port: u16,
        /// Which trap.
        trap: PortTrap,
    },
    /// The entry names, or spans, an address that the range policy never opens.
    SpecialRange {
        /// The entry's hosts.
        host: String,
        /// The first such class.
        class: AddressClass,
    },
    /// The entry names, or spans, addresses of an inside network.
    PrivateRange {
        /// The entry's hosts.
        host: String,
        /// The first such class.
        class: AddressClass,
    },
    /// The entry spells out every port.
    AllPorts {
        /// The entry.
        entry: String,
    },
    /// The entry holds a user name or password.
    Userinfo {
        /// The entry, userinfo masked.
        entry: String,
    },
}

impl HostLint {
    /// The stable code of this lint.
    pub fn code(&self) -> &'static str {
        match self {
            Self::AnyHost => "host-any",
            Self::PublicSuffixWildcard { .. } => "host-public-suffix",
            Self::SharedHostingSuffix { .. } => "host-shared-suffix",
            Self::CleartextWithSecret { .. } => "host-cleartext-secret",
            Self::DefaultPortTrap { .. } => "host-default-port",
            Self::SpecialRange { .. } => "host-special-range",
            Self::PrivateRange { .. } => "host-private-range",
            Self::AllPorts { .. } => "host-all-ports",
            Self::Userinfo { .. } => "host-userinfo",
        }
    }

    /// What is the matter.
    pub fn message(&self) -> String {
        match self {
            Self::AnyHost => "every host can be called".to_owned(),
            Self::PublicSuffixWildcard { suffix } => {
                format!("anybody can register a name below `{suffix}`")
            }
            Self::SharedHostingSuffix { suffix } => {
                format!("any customer of the provider can get a name below `{suffix}`")
            }
            Self::CleartextWithSecret { entry } => {
                format!("`{entry}` allows plain HTTP and the component holds a secret")
            }
            Self::DefaultPortTrap { entry, port, trap: PortTrap::Dropped } => {
                format!("`{entry}` means any port: wasmCloud forgets the default port {port}")
            }
            Self::DefaultPortTrap { entry, port, trap: PortTrap::MustBeSpelled } => {
                format!("`{entry}` only matches URLs that spell `:{port}`")
            }
            Self::SpecialRange { host, class } => {
                format!("`{host}` is or holds a {class} address, which ambit never dials")
            }
            Self::PrivateRange { host, class } => {
                format!("`{host}` is or holds a {class} address")
            }
            Self::AllPorts { entry } => format!("`{entry}` allows every port"),
            Self::Userinfo { entry } => {
                format!("`{entry}` holds a user name or password, which is ignored")
            }
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::AnyHost => "list the hosts that the component calls".to_owned(),
            Self::PublicSuffixWildcard { suffix } | Self::SharedHostingSuffix { suffix } => {
                format!("name the hosts below `{suffix}` one by one")
            }
            Self::CleartextWithSecret { .. } => "put `https://` in front of the host".to_owned(),
            Self::DefaultPortTrap { trap: PortTrap::Dropped, .. } => {
                "remove the port, or run under target `ambit`, which pins it".to_owned()
            }
            Self::DefaultPortTrap { port, trap: PortTrap::MustBeSpelled, .. } => {
                let scheme = if *port == 80 { "http" } else { "https" };
                format!("write `{scheme}://HOST` without the port")
            }
            Self::SpecialRange { class: AddressClass::Loopback, .. } => {
                "use `host.internal:PORT` together with `--allow-host-loopback PORT`".to_owned()
            }
            Self::SpecialRange { .. } => "remove the entry".to_owned(),
            Self::PrivateRange { .. } => "check that the inside network is meant".to_owned(),
            Self::AllPorts { .. } => "name the port".to_owned(),
            Self::Userinfo { .. } => {
                "remove the part before `@`, change that credential, and pass it as a secret"
                    .to_owned()
            }
        })
    }
}

/// Whether the places that an entry opens can be counted.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Breadth {
    /// One name, one address, or the names below one owner's name.
    Bounded,
    /// Any host, a public or shared suffix, a range of addresses: a sink that a stranger can own.
    Unbounded,
}

/// Says whether the places that an entry opens can be counted.
pub fn breadth(pattern: &HostPattern) -> Breadth {
    match pattern.host() {
        HostSet::Any | HostSet::Cidr(_) => Breadth::Unbounded,
        HostSet::Subdomains(name) | HostSet::SubdomainsAndApex(name) => match suffix_kind(name) {
            Some(_) => Breadth::Unbounded,
            None => Breadth::Bounded,
        },
        HostSet::Exact(_) | HostSet::Ip(_) | HostSet::HostInternal | HostSet::SelfHost => {
            Breadth::Bounded
        }
    }
}

/// The remarks about one entry, in order; none about a deny entry, which gives nothing, except
/// about a credential in its text.
pub fn lints(pattern: &HostPattern, context: &LintContext) -> Vec<HostLint> {
    let entry = pattern.text_for_report();
    let mut found = Vec::new();
    if !pattern.is_deny() {
        host_lints(pattern, &mut found);
        let cleartext =
            pattern.access(Plane::Http).is_some_and(|access| access.schemes.contains("http"));
        let leaves = !matches!(pattern.host(), HostSet::HostInternal | HostSet::SelfHost);
        if context.has_secret && cleartext && leaves {
            found.push(HostLint::CleartextWithSecret { entry: entry.clone() });
        }
        if let Some(port) = pattern.dropped_port() {
            let trap = PortTrap::Dropped;
            found.push(HostLint::DefaultPortTrap { entry: entry.clone(), port, trap });
        }
        if let PortSet::Spelled(ports) = pattern.ports()
            && let Some(port) = ports.first().copied()
        {
            let trap = PortTrap::MustBeSpelled;
            found.push(HostLint::DefaultPortTrap { entry: entry.clone(), port, trap });
        }
        // Under wasmCloud every entry without a port means any port; a remark on each says nothing.
        let spelled_out = pattern.dialect() != Dialect::WasmCloud;
        if spelled_out && *pattern.ports() == PortSet::Any && *pattern.host() != HostSet::Any {
            found.push(HostLint::AllPorts { entry: entry.clone() });
        }
    }
    if pattern.has_userinfo() {
        found.push(HostLint::Userinfo { entry });
    }
    found
}

fn host_lints(pattern: &HostPattern, found: &mut Vec<HostLint>) {
    let host = pattern.host().to_string();
    match pattern.host() {
        HostSet::Any => found.push(HostLint::AnyHost),
        HostSet::Subdomains(name) | HostSet::SubdomainsAndApex(name) => {
            match suffix_kind(name) {
                Some(SuffixKind::Public) => {
                    found.push(HostLint::PublicSuffixWildcard { suffix: name.to_string() });
                }
                Some(SuffixKind::Shared) => {
                    found.push(HostLint::SharedHostingSuffix { suffix: name.to_string() });
                }
                None => {}
            }
            found.extend(name_class(name).map(|class| HostLint::SpecialRange { host, class }));
        }
        HostSet::Exact(name) => {
            found.extend(name_class(name).map(|class| HostLint::SpecialRange { host, class }));
        }
        HostSet::Ip(address) => address_lints(&host, &[classify(*address)], found),
        HostSet::Cidr(range) => address_lints(&host, &classes_in(range), found),
        HostSet::HostInternal | HostSet::SelfHost => {}
    }
}

/// The classes other than public that an entry names: its address, everything that its range
/// holds, or what its name is reserved for.
pub fn address_classes(pattern: &HostPattern) -> Vec<AddressClass> {
    match pattern.host() {
        HostSet::Ip(address) => {
            let class = classify(*address);
            if class == AddressClass::Public { Vec::new() } else { vec![class] }
        }
        HostSet::Cidr(range) => classes_in(range),
        HostSet::Exact(name) | HostSet::Subdomains(name) | HostSet::SubdomainsAndApex(name) => {
            name_class(name).into_iter().collect()
        }
        HostSet::Any | HostSet::HostInternal | HostSet::SelfHost => Vec::new(),
    }
}

fn address_lints(host: &str, classes: &[AddressClass], found: &mut Vec<HostLint>) {
    let first = |wanted: fn(AddressClass) -> bool| classes.iter().copied().find(|c| wanted(*c));
    let host = || host.to_owned();
    found.extend(
        first(AddressClass::is_special).map(|class| HostLint::SpecialRange { host: host(), class }),
    );
    found.extend(
        first(AddressClass::is_private).map(|class| HostLint::PrivateRange { host: host(), class }),
    );
}

fn name_class(name: &Name) -> Option<AddressClass> {
    let text = name.as_str();
    if metadata_name(text) {
        return Some(AddressClass::Metadata);
    }
    // RFC 6761, section 6.3: every name below `localhost` is loopback.
    (text == "localhost" || text.ends_with(".localhost")).then_some(AddressClass::Loopback)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SuffixKind {
    Public,
    Shared,
}

/// What a wildcard below `name` spans. The rules of the public suffix list that sit one label
/// below the name count too (`*.compute.amazonaws.com`).
fn suffix_kind(name: &Name) -> Option<SuffixKind> {
    let text = name.as_str();
    if !text.contains('.') {
        return Some(SuffixKind::Public);
    }
    let probe = format!("ambit-probe.{text}");
    let listed = [text, probe.as_str()].into_iter().find_map(|candidate| {
        let suffix = psl::suffix(candidate.as_bytes())?;
        let whole = suffix.as_bytes() == candidate.as_bytes();
        match suffix.typ() {
            Some(psl::Type::Icann) if whole => Some(SuffixKind::Public),
            Some(psl::Type::Private) if whole => Some(SuffixKind::Shared),
            _ => None,
        }
    });
    let shared = || {
        SHARED_SUFFIXES.iter().any(|known| {
            let above = known.strip_suffix(text).is_some_and(|rest| rest.ends_with('.'));
            *known == text || above
        })
    };
    listed.or_else(|| (shared() || aws_region(text)).then_some(SuffixKind::Shared))
}

/// `REGION.amazonaws.com` holds that region's buckets and API gateways.
fn aws_region(name: &str) -> bool {
    let region = name.strip_suffix(".amazonaws.com").or(name.strip_suffix(".amazonaws.com.cn"));
    region.is_some_and(|region| !region.contains('.') && region.contains('-'))
}

/// Suffixes below which a provider's customers get names or buckets of their own, beyond the
/// private section of the public suffix list. From the providers' documentation of their endpoints.
const SHARED_SUFFIXES: [&str; 48] = [
    "amazonaws.com",
    "amazonaws.com.cn",
    "appspot.com",
    "azureedge.net",
    "azurefd.net",
    "azurewebsites.net",
    "backblazeb2.com",
    "blob.core.windows.net",
    "cloudapp.azure.com",
    "cloudapp.net",
    "cloudfront.net",
    "cloudfunctions.net",
    "deno.dev",
    "digitaloceanspaces.com",
    "file.core.windows.net",
    "firebaseapp.com",
    "firebaseio.com",
    "fly.dev",
    "github.io",
    "githubusercontent.com",
    "gitlab.io",
    "googleapis.com",
    "googleusercontent.com",
    "herokuapp.com",
    "linodeobjects.com",
    "myshopify.com",
    "netlify.app",
    "ngrok-free.app",
    "ngrok.app",
    "ngrok.io",
    "on.aws",
    "ondigitalocean.app",
    "onrender.com",
    "pages.dev",
    "queue.core.windows.net",
    "r2.cloudflarestorage.com",
    "r2.dev",
    "replit.app",
    "run.app",
    "servicebus.windows.net",
    "sharepoint.com",
    "supabase.co",
    "surge.sh",
    "table.core.windows.net",
    "trafficmanager.net",
    "trycloudflare.com",
    "vercel.app",
    "workers.dev",
];
