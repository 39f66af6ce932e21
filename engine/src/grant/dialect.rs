//! The three ways of writing host grants, and what a rewrite from one to another loses.

use super::host::{HostPattern, HostSet, PortSet, SchemeSet};

/// How a host grant is written.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Dialect {
    /// wasmCloud's `allowedHosts`.
    WasmCloud,
    /// Spin's `allowed_outbound_hosts`.
    Spin,
    /// Ours.
    Ambit,
}

/// What a conversion does to the set of targets.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ConversionVerdict {
    /// The same targets.
    Exact,
    /// More targets than before.
    Widened,
    /// Fewer targets than before.
    Narrowed,
    /// The dialect can't say it; there is no text.
    Inexpressible,
}

impl ConversionVerdict {
    /// Returns the stable word for this verdict.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Inexpressible => "inexpressible",
        }
    }
}

/// An entry in another dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conversion {
    /// The entries that stand for it together; empty only if it is inexpressible.
    pub texts: Vec<String>,
    /// What the conversion does to the set of targets.
    pub verdict: ConversionVerdict,
    /// Why it is not exact.
    pub reason: Option<String>,
}

impl Conversion {
    fn of(texts: Vec<String>, verdict: ConversionVerdict, reason: &str) -> Self {
        let reason = (!reason.is_empty()).then(|| reason.to_owned());
        Self { texts, verdict, reason }
    }

    fn inexpressible(reason: &str) -> Self {
        Self::of(Vec::new(), ConversionVerdict::Inexpressible, reason)
    }
}

/// The most entries that one entry is split into.
const MAX_SPLIT: usize = 16;

/// Rewrites an entry in another dialect.
///
/// The verdict compares what the texts mean, read back, with what the entry means. Nothing is
/// dropped silently: what the dialect can't say is [`ConversionVerdict::Inexpressible`].
#[must_use]
pub fn convert(pattern: &HostPattern, to: Dialect) -> Conversion {
    if pattern.dialect() == to {
        return Conversion::of(vec![pattern.to_string()], ConversionVerdict::Exact, "");
    }
    match to {
        Dialect::Ambit => to_ambit(pattern),
        Dialect::WasmCloud => judged(pattern, to, to_wasmcloud(pattern)),
        Dialect::Spin => judged(pattern, to, to_spin(pattern)),
    }
}

fn to_ambit(pattern: &HostPattern) -> Conversion {
    let text = pattern.canonical();
    match HostPattern::parse(&text, Dialect::Ambit) {
        Ok(read) if read.same_meaning(pattern) => {
            Conversion::of(vec![text], ConversionVerdict::Exact, "")
        }
        Ok(read) if read.covers(pattern) => Conversion::of(
            vec![text],
            ConversionVerdict::Widened,
            "a port that had to be spelled is allowed unspelled too",
        ),
        Ok(read) if pattern.covers(&read) => Conversion::of(
            vec![text],
            ConversionVerdict::Narrowed,
            "schemes and planes that this dialect keeps apart are left out",
        ),
        Ok(_) | Err(_) => Conversion::inexpressible("this dialect has no form with that meaning"),
    }
}

/// Compares the texts, read back, with the entry.
fn judged(pattern: &HostPattern, to: Dialect, texts: Result<Vec<String>, &str>) -> Conversion {
    let texts = match texts {
        Ok(texts) if texts.len() <= MAX_SPLIT && !texts.is_empty() => texts,
        Ok(_) => return Conversion::inexpressible("it takes more entries than one may become"),
        Err(reason) => return Conversion::inexpressible(reason),
    };
    let read: Option<Vec<HostPattern>> =
        texts.iter().map(|text| HostPattern::parse(text, to).ok()).collect();
    let Some(read) = read else {
        return Conversion::inexpressible("this dialect has no form with that meaning");
    };
    let inside = read.iter().all(|part| pattern.covers(part));
    let outside = read.iter().any(|part| part.covers(pattern)) || split_covers(pattern, &read);
    match (inside, outside) {
        (true, true) => Conversion::of(texts, ConversionVerdict::Exact, ""),
        (false, true) => Conversion::of(
            texts,
            ConversionVerdict::Widened,
            "this dialect allows more ports or planes with the same text",
        ),
        (true, false) => Conversion::of(
            texts,
            ConversionVerdict::Narrowed,
            "this dialect asks for more than the entry does, as a port that is spelled",
        ),
        (false, false) => {
            Conversion::inexpressible("this dialect has no form that holds all of its targets")
        }
    }
}

/// Tells whether the parts of a split hold the whole: the apex with the names below it, or the
/// single ports of a range.
fn split_covers(pattern: &HostPattern, parts: &[HostPattern]) -> bool {
    let hosts = match pattern.host() {
        HostSet::SubdomainsAndApex(name) => {
            parts.iter().any(|p| matches!(p.host(), HostSet::Subdomains(own) if own == name))
                && parts.iter().any(|p| matches!(p.host(), HostSet::Exact(own) if own == name))
        }
        _ => parts.iter().all(|part| part.host() == pattern.host()),
    };
    let schemes = parts.iter().all(|part| part.schemes() == pattern.schemes());
    let ports = match pattern.ports() {
        PortSet::Ranges(ranges) => ranges.iter().all(|(low, high)| {
            (*low..=*high).all(|port| {
                parts.iter().any(|part| match part.ports() {
                    PortSet::Any => true,
                    PortSet::Ranges(own) => own.iter().any(|(l, h)| (*l..=*h).contains(&port)),
                    PortSet::SchemeDefault | PortSet::Spelled(_) => false,
                })
            })
        }),
        own => parts.iter().all(|part| part.ports() == own || *part.ports() == PortSet::Any),
    };
    hosts && schemes && ports
}

fn names(pattern: &HostPattern) -> Result<Vec<String>, &'static str> {
    match pattern.host() {
        HostSet::Any => Ok(vec!["*".to_owned()]),
        HostSet::Subdomains(name) => Ok(vec![format!("*.{name}")]),
        HostSet::SubdomainsAndApex(name) => Ok(vec![format!("*.{name}"), name.to_string()]),
        HostSet::Exact(name) => Ok(vec![name.to_string()]),
        HostSet::Ip(address) if address.is_ipv4() => Ok(vec![address.to_string()]),
        HostSet::Ip(address) => Ok(vec![format!("[{address}]")]),
        HostSet::Cidr(_) => Err("it has no address ranges"),
        HostSet::HostInternal => Ok(vec!["host.wasmcloud.internal".to_owned()]),
        HostSet::SelfHost => Err("it has no word for the application itself"),
    }
}

fn schemes(pattern: &HostPattern) -> Vec<Option<String>> {
    match pattern.schemes() {
        SchemeSet::Any => vec![None],
        SchemeSet::Only(schemes) => {
            schemes.iter().map(|scheme| Some(scheme.as_str().to_owned())).collect()
        }
    }
}

/// The single ports of a range list, `None` for "any" and for a scheme's default.
fn ports(pattern: &HostPattern) -> Result<Vec<Option<u16>>, &'static str> {
    match pattern.ports() {
        PortSet::Any | PortSet::SchemeDefault => Ok(vec![None]),
        PortSet::Spelled(ports) => Ok(ports.iter().copied().map(Some).collect()),
        PortSet::Ranges(ranges) => {
            let count: usize = ranges
                .iter()
                .map(|(low, high)| usize::from(high.saturating_sub(*low)).saturating_add(1))
                .sum();
            if count > MAX_SPLIT {
                return Err("it takes more entries than one may become");
            }
            Ok(ranges.iter().flat_map(|(low, high)| *low..=*high).map(Some).collect())
        }
    }
}

fn to_wasmcloud(pattern: &HostPattern) -> Result<Vec<String>, &'static str> {
    if pattern.is_deny() {
        return Err("it has no entries that take away");
    }
    let names = names(pattern)?;
    let ports = ports(pattern)?;
    let mut texts = Vec::new();
    for scheme in schemes(pattern) {
        for name in &names {
            for port in &ports {
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                let plain = scheme.as_deref().is_none_or(|scheme| matches!(scheme, "tcp" | "udp"));
                texts.push(match &scheme {
                    Some(scheme) if !plain => format!("{scheme}://{name}{port}"),
                    _ if name == "*" && port.is_empty() => "*".to_owned(),
                    _ => format!("{name}{port}"),
                });
            }
        }
    }
    texts.dedup();
    Ok(texts)
}

fn to_spin(pattern: &HostPattern) -> Result<Vec<String>, &'static str> {
    if pattern.is_deny() {
        return Err("it has no entries that take away");
    }
    let names = match pattern.host() {
        HostSet::Cidr(range) => vec![range.to_string()],
        HostSet::SelfHost => vec!["self".to_owned()],
        HostSet::HostInternal => return Err("it has no word for the machine's own loopback"),
        _ => names(pattern)?,
    };
    let ports: Vec<String> = match pattern.ports() {
        PortSet::Any => vec![":*".to_owned()],
        PortSet::SchemeDefault => vec![String::new()],
        PortSet::Spelled(ports) => ports.iter().map(|port| format!(":{port}")).collect(),
        PortSet::Ranges(ranges) => ranges
            .iter()
            .map(|(low, high)| match high.checked_add(1) {
                Some(_) if low == high => Ok(format!(":{low}")),
                Some(end) => Ok(format!(":{low}..{end}")),
                None => Err("its ranges end before port 65535"),
            })
            .collect::<Result<_, _>>()?,
    };
    let schemes = match (pattern.schemes(), pattern.ports()) {
        // Without a scheme there is no default port to leave out.
        (SchemeSet::Any, PortSet::SchemeDefault) => vec!["https".to_owned(), "http".to_owned()],
        (SchemeSet::Any, _) => vec!["*".to_owned()],
        (SchemeSet::Only(schemes), _) => {
            schemes.iter().map(|scheme| scheme.as_str().to_owned()).collect()
        }
    };
    let mut texts = Vec::new();
    for scheme in &schemes {
        for name in &names {
            texts.extend(ports.iter().map(|port| format!("{scheme}://{name}{port}")));
        }
    }
    Ok(texts)
}

/// Tells whether the custom resource's own pattern for `allowedHosts` takes a text.
///
/// Read by hand from the `pattern` in wasmCloud's CRDs
/// (<https://github.com/wasmCloud/wasmCloud/tree/7cd553cc57cfb5a64717d76b11ddeea2cd8c0a8b/charts/runtime-operator/crds>):
/// `*`, or an optional scheme, an optional `*.`, DNS labels, an optional port of one to five
/// digits, and a `/` at the end only behind a scheme.
#[must_use]
pub fn crd_accepts(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let (schemed, rest) = match text.split_once("://") {
        Some((scheme, rest)) => {
            let valid = scheme.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
                && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b));
            if !valid {
                return false;
            }
            (true, rest)
        }
        None => (false, text),
    };
    let rest = if schemed { rest.strip_suffix('/').unwrap_or(rest) } else { rest };
    let rest = rest.strip_prefix("*.").unwrap_or(rest);
    let (host, port) = match rest.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (rest, None),
    };
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.split('.').all(label)
        && port.is_none_or(|port| {
            (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
        })
}
