//! The dialects, and what is lost between them.

use std::net::IpAddr;

use super::host::{
    Access, HostPattern, HostSet, PortSet, Scheme, SchemeSet, ambit_text, default_port,
};
use super::lookup::{LoopbackPort, Protocol};
use super::matching::HTTP_SCHEMES;
use super::target::HOST_INTERNAL_WASMCLOUD;

/// How many single-port entries a range may become.
const MAX_PORT_ENTRIES: usize = 16;

/// Whose rules a host pattern is read by.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Dialect {
    /// wasmCloud v2, `allowedHosts`: no port is any port, sockets follow address entries.
    WasmCloud,
    /// Spin, `allowed_outbound_hosts`: the scheme is mandatory, no port is its default.
    Spin,
    /// Ours: the superset, with the strict reading.
    Ambit,
}

impl Dialect {
    /// The stable word for machine output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WasmCloud => "wasmcloud",
            Self::Spin => "spin",
            Self::Ambit => "ambit",
        }
    }
}

/// How a conversion compares with its source.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ConversionVerdict {
    /// The same set.
    Exact,
    /// The texts let through more (they may lack something, too).
    Widened,
    /// The texts let through less.
    Narrowed,
    /// There is no text; nothing may be emitted in place of the entry.
    Inexpressible,
}

impl ConversionVerdict {
    /// The stable word for machine output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Inexpressible => "inexpressible",
        }
    }
}

/// The texts that stand for one entry in another dialect, and what they lose.
///
/// `texts` is empty exactly when the verdict is [`ConversionVerdict::Inexpressible`], and `reason`
/// is absent exactly when it is [`ConversionVerdict::Exact`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conversion {
    /// The entries, in order.
    pub texts: Vec<String>,
    /// The wasmCloud loopback ports that belong to the entry, in order; its second key.
    pub loopback_ports: Vec<LoopbackPort>,
    /// How the texts compare with the entry.
    pub verdict: ConversionVerdict,
    /// What is lost, in words.
    pub reason: Option<String>,
}

impl Conversion {
    fn inexpressible(reason: &str) -> Self {
        Self {
            texts: Vec::new(),
            loopback_ports: Vec::new(),
            verdict: ConversionVerdict::Inexpressible,
            reason: Some(reason.to_owned()),
        }
    }
}

/// Rewrites an entry in another dialect; in its own dialect it stays byte for byte.
///
/// # Examples
///
/// ```
/// # use ambit_engine::grant::{ConversionVerdict, Dialect, HostPattern, convert};
/// let pattern = HostPattern::parse("https://example.com", Dialect::Ambit)?;
/// let out = convert(&pattern, Dialect::WasmCloud);
/// assert_eq!(out.texts, ["https://example.com"]);
/// assert_eq!(out.verdict, ConversionVerdict::Widened);
/// # Ok::<(), ambit_engine::grant::HostPatternError>(())
/// ```
pub fn convert(pattern: &HostPattern, to: Dialect) -> Conversion {
    if to == pattern.dialect {
        return Conversion {
            texts: vec![pattern.to_string()],
            loopback_ports: Vec::new(),
            verdict: ConversionVerdict::Exact,
            reason: None,
        };
    }
    if pattern.planes().is_empty() {
        return Conversion::inexpressible("no call has this scheme, so the entry gives nothing");
    }
    if to == Dialect::Ambit {
        return judge(pattern, vec![(pattern.clone(), ambit_texts(pattern))], to);
    }
    if pattern.is_deny() {
        return Conversion::inexpressible("the dialect has no deny entries");
    }
    let pieces = match (to, &pattern.host) {
        (Dialect::Spin, HostSet::HostInternal) => {
            return Conversion::inexpressible("Spin has no reserved name for the loopback");
        }
        (Dialect::WasmCloud, HostSet::HostInternal) => return wasmcloud_loopback(pattern),
        (Dialect::WasmCloud, HostSet::SelfHost) => {
            return Conversion::inexpressible("wasmCloud has no name for the application itself");
        }
        (Dialect::WasmCloud, HostSet::Cidr(_)) => {
            return Conversion::inexpressible("wasmCloud has no address ranges");
        }
        (Dialect::WasmCloud, HostSet::Ip(IpAddr::V6(_))) => {
            return Conversion::inexpressible(
                "the custom resource refuses IPv6 addresses; only wash configuration takes them",
            );
        }
        (
            Dialect::WasmCloud,
            HostSet::Exact(_) | HostSet::Subdomains(_) | HostSet::SubdomainsAndApex(_),
        ) if pattern.http.is_none() => {
            return Conversion::inexpressible("wasmCloud's sockets never match a name");
        }
        _ => pieces(pattern, to),
    };
    let Some(pieces) = pieces else {
        return Conversion::inexpressible("the range has too many ports to list");
    };
    let texts = pieces
        .into_iter()
        .map(|piece| {
            let text = match to {
                Dialect::WasmCloud => wasmcloud_text(&piece),
                Dialect::Spin => spin_text(&piece),
                Dialect::Ambit => piece.canonical(),
            };
            (piece, vec![text])
        })
        .collect();
    judge(pattern, texts, to)
}

/// Compares every text with the piece it stands for and with the whole. The pieces make up the
/// whole, so covering each of them is covering it.
fn judge(whole: &HostPattern, pieces: Vec<(HostPattern, Vec<String>)>, to: Dialect) -> Conversion {
    let mut texts: Vec<String> = Vec::new();
    let (mut widened, mut narrowed) = (false, false);
    for (piece, candidates) in pieces {
        let mut read = Vec::with_capacity(candidates.len());
        for text in &candidates {
            match HostPattern::parse(text, to) {
                Ok(pattern) if to != Dialect::WasmCloud || crd_accepts(text) => read.push(pattern),
                Ok(_) => {
                    return Conversion::inexpressible("the custom resource refuses the text");
                }
                Err(error) => {
                    return Conversion::inexpressible(&format!("the dialect refuses it: {error}"));
                }
            }
        }
        widened |= !read.iter().all(|pattern| whole.covers(pattern));
        narrowed |= !covered_by_union(&piece, &read);
        for text in candidates {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    let (verdict, reason) = match (widened, narrowed) {
        (false, false) => (ConversionVerdict::Exact, None),
        (true, _) => (ConversionVerdict::Widened, Some(widening(whole, to))),
        (false, true) => (
            ConversionVerdict::Narrowed,
            Some("the dialect can't say all of the entry's schemes or protocols".to_owned()),
        ),
    };
    Conversion { texts, loopback_ports: Vec::new(), verdict, reason }
}

fn covered_by_union(piece: &HostPattern, texts: &[HostPattern]) -> bool {
    if texts.iter().any(|text| text.covers(piece)) {
        return true;
    }
    // Planes and schemes split apart, so that `https://`, `tcp://` and `udp://` entries together
    // can cover what none does alone.
    let atoms = atoms(piece);
    !atoms.is_empty() && atoms.iter().all(|atom| texts.iter().any(|text| text.covers(atom)))
}

fn atoms(piece: &HostPattern) -> Vec<HostPattern> {
    let single = |access: &Access, scheme: &Scheme| Access {
        schemes: SchemeSet::Only(vec![scheme.clone()]),
        ports: access.ports.clone(),
    };
    let http = piece.http.iter().flat_map(|access| {
        HTTP_SCHEMES
            .into_iter()
            .filter(|scheme| access.schemes.contains(scheme))
            .map(move |scheme| (Some(single(access, &Scheme::known(scheme))), None))
    });
    let socket = piece.socket.iter().flat_map(|access| match &access.schemes {
        SchemeSet::Any => vec![(None, Some(access.clone()))],
        SchemeSet::Only(schemes) => {
            schemes.iter().map(|scheme| (None, Some(single(access, scheme)))).collect()
        }
    });
    http.chain(socket).map(|(http, socket)| HostPattern { http, socket, ..piece.clone() }).collect()
}

fn widening(whole: &HostPattern, to: Dialect) -> String {
    let reason = match (to, &whole.host, &whole.http, &whole.ports) {
        (Dialect::WasmCloud, HostSet::Any, _, _) => "wasmCloud's only entry for any host is `*`",
        (Dialect::WasmCloud, _, None, _) => "the entry also lets HTTP requests through",
        (Dialect::WasmCloud, _, _, PortSet::SchemeDefault | PortSet::Ranges(_)) => {
            "wasmCloud can't pin a default port, or opens sockets to an address too"
        }
        (_, _, _, PortSet::Spelled(_)) => "URLs that don't spell the port match too",
        _ => "the dialect can't say less",
    };
    reason.to_owned()
}

/// Splits an entry into parts that the dialect has a text for; `None` if there are too many.
fn pieces(pattern: &HostPattern, to: Dialect) -> Option<Vec<HostPattern>> {
    let hosts = if let HostSet::SubdomainsAndApex(name) = &pattern.host {
        vec![HostSet::Subdomains(name.clone()), HostSet::Exact(name.clone())]
    } else {
        vec![pattern.host.clone()]
    };
    let accesses = match &pattern.schemes {
        SchemeSet::Only(_) => vec![pattern.clone()],
        SchemeSet::Any => {
            let both = pattern.http.is_some() && pattern.socket.is_some();
            let whole = match to {
                Dialect::Spin => both && pattern.ports != PortSet::SchemeDefault,
                Dialect::WasmCloud | Dialect::Ambit => !has_default_port(&pattern.ports),
            };
            if whole { vec![pattern.clone()] } else { by_scheme(pattern) }
        }
    };
    let mut pieces = Vec::new();
    for host in hosts {
        for access in &accesses {
            for ports in port_pieces(&access.ports, to)? {
                pieces.push(with_ports(access, host.clone(), &ports));
            }
        }
    }
    Some(pieces)
}

fn has_default_port(ports: &PortSet) -> bool {
    let defaults = || HTTP_SCHEMES.into_iter().filter_map(default_port);
    match ports {
        PortSet::Any | PortSet::Spelled(_) => false,
        PortSet::SchemeDefault => true,
        PortSet::Ranges(ranges) => {
            defaults().any(|port| ranges.iter().any(|(low, high)| (*low..=*high).contains(&port)))
        }
    }
}

fn by_scheme(pattern: &HostPattern) -> Vec<HostPattern> {
    let only = |scheme| SchemeSet::Only(vec![Scheme::known(scheme)]);
    let http = HTTP_SCHEMES.into_iter().rev().filter_map(|scheme| {
        let http = pattern.http.as_ref()?;
        let http = Access { schemes: only(scheme), ports: http.ports.clone() };
        let pattern = pattern.clone();
        Some(HostPattern { schemes: only(scheme), http: Some(http), socket: None, ..pattern })
    });
    let socket = pattern.socket.as_ref().map(|_| HostPattern { http: None, ..pattern.clone() });
    http.chain(socket).collect()
}

fn port_pieces(ports: &PortSet, to: Dialect) -> Option<Vec<PortSet>> {
    let PortSet::Ranges(ranges) = ports else {
        return Some(vec![ports.clone()]);
    };
    let single = |port: u16| PortSet::Ranges(vec![(port, port)]);
    let mut pieces = Vec::new();
    for (low, high) in ranges {
        match to {
            Dialect::WasmCloud => {
                if usize::from(high.saturating_sub(*low)) >= MAX_PORT_ENTRIES {
                    return None;
                }
                pieces.extend((*low..=*high).map(single));
            }
            // The upper end is excluded there, so that a range can't hold the last port.
            Dialect::Spin if *high == u16::MAX && low < high => {
                pieces.push(PortSet::Ranges(vec![(*low, high.saturating_sub(1))]));
                pieces.push(single(*high));
            }
            Dialect::Spin | Dialect::Ambit => pieces.push(PortSet::Ranges(vec![(*low, *high)])),
        }
    }
    (pieces.len() <= MAX_PORT_ENTRIES).then_some(pieces)
}

fn with_ports(pattern: &HostPattern, host: HostSet, ports: &PortSet) -> HostPattern {
    let narrow = |access: &Access| Access {
        schemes: access.schemes.clone(),
        ports: if access.ports == pattern.ports { ports.clone() } else { access.ports.clone() },
    };
    HostPattern {
        host,
        ports: ports.clone(),
        http: pattern.http.as_ref().map(narrow),
        socket: pattern.socket.as_ref().map(narrow),
        ..pattern.clone()
    }
}

fn ambit_texts(pattern: &HostPattern) -> Vec<String> {
    let mut texts = vec![pattern.canonical()];
    if let (SchemeSet::Only(_), Some(_), Some(socket)) =
        (&pattern.schemes, &pattern.http, &pattern.socket)
        && let SchemeSet::Only(schemes) = &socket.schemes
    {
        texts.extend(schemes.iter().map(|scheme| {
            let scheme = SchemeSet::Only(vec![scheme.clone()]);
            ambit_text(pattern.deny, &scheme, &pattern.host, &socket.ports)
        }));
    }
    texts
}

fn wasmcloud_loopback(pattern: &HostPattern) -> Conversion {
    let protocols = match &pattern.schemes {
        SchemeSet::Any => vec![Protocol::Tcp, Protocol::Udp],
        SchemeSet::Only(schemes) if schemes.iter().any(|s| s.as_str() == "udp") => {
            vec![Protocol::Udp]
        }
        SchemeSet::Only(_) => vec![Protocol::Tcp],
    };
    let PortSet::Ranges(ranges) = &pattern.ports else {
        return Conversion::inexpressible("a loopback port has to be one number");
    };
    let ports: Vec<u16> = ranges.iter().filter(|(l, h)| l == h).map(|(port, _)| *port).collect();
    let loopback_ports = ports
        .iter()
        .flat_map(|port| protocols.iter().map(|protocol| LoopbackPort::new(*port, *protocol)))
        .filter_map(Result::ok)
        .collect();
    let texts = ports.iter().map(|port| format!("{HOST_INTERNAL_WASMCLOUD}:{port}")).collect();
    Conversion { texts, loopback_ports, verdict: ConversionVerdict::Exact, reason: None }
}

fn scheme_prefix(schemes: &SchemeSet, any: &str) -> String {
    match schemes {
        SchemeSet::Any => any.to_owned(),
        SchemeSet::Only(schemes) => {
            schemes.first().map(|scheme| format!("{scheme}://")).unwrap_or_default()
        }
    }
}

fn one_port(ports: &PortSet) -> Option<u16> {
    match ports {
        PortSet::Any | PortSet::SchemeDefault => None,
        PortSet::Spelled(ports) => ports.first().copied(),
        PortSet::Ranges(ranges) => ranges.first().map(|(port, _)| *port),
    }
}

fn wasmcloud_text(piece: &HostPattern) -> String {
    if piece.host == HostSet::Any {
        return "*".to_owned();
    }
    // Sockets ignore the scheme there, and an entry with one would not be an address and port.
    let scheme = match piece.http {
        Some(_) => scheme_prefix(&piece.schemes, ""),
        None => String::new(),
    };
    let pinned = match (&piece.schemes, one_port(&piece.ports)) {
        // A pinned default port means "only when spelled" in one spelling and is lost in the
        // other, so that leaving it out is the form that works.
        (SchemeSet::Only(schemes), Some(port))
            if piece.http.is_some()
                && matches!(piece.ports, PortSet::Ranges(_))
                && schemes.iter().any(|s| default_port(s.as_str()) == Some(port)) =>
        {
            None
        }
        // A protocol of its own without a port means that protocol's port.
        (SchemeSet::Only(schemes), None)
            if piece.http.is_none() && piece.ports == PortSet::SchemeDefault =>
        {
            schemes.iter().find_map(|s| default_port(s.as_str()))
        }
        (SchemeSet::Any | SchemeSet::Only(_), port) => port,
    };
    match pinned {
        Some(port) => format!("{scheme}{}:{port}", piece.host),
        None => format!("{scheme}{}", piece.host),
    }
}

fn spin_text(piece: &HostPattern) -> String {
    let scheme = scheme_prefix(&piece.schemes, "*://");
    let port = match &piece.ports {
        PortSet::Any => ":*".to_owned(),
        PortSet::SchemeDefault => String::new(),
        PortSet::Spelled(_) => one_port(&piece.ports).map(|p| format!(":{p}")).unwrap_or_default(),
        PortSet::Ranges(ranges) => match ranges.first() {
            None => String::new(),
            Some((low, high)) if low == high => format!(":{low}"),
            Some((low, high)) => format!(":{low}..{}", u32::from(*high).saturating_add(1)),
        },
    };
    format!("{scheme}{}{port}", piece.host)
}

/// Whether the pattern in wasmCloud's custom resource lets `text` through as an `allowedHosts`
/// entry. The runtime, not this pattern, is the authority on what an entry means.
///
/// Source: `runtime.wasmcloud.dev/v1alpha1`, `allowedHosts.items.pattern`.
pub fn crd_accepts(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let (rest, url) = match text.split_once("://") {
        None => (text, false),
        Some((scheme, rest)) => {
            let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'));
            if !valid {
                return false;
            }
            (rest, true)
        }
    };
    let rest = if url { rest.strip_suffix('/').unwrap_or(rest) } else { rest };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(h, p)| (h, Some(p)));
    let port_valid = port.is_none_or(|port| {
        (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
    });
    let host = host.strip_prefix("*.").unwrap_or(host);
    port_valid
        && host.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}
