//! The three readings of a host pattern.

use std::net::{IpAddr, Ipv6Addr};

use super::HostPatternError as Error;
use super::dialect::Dialect;
use super::host::{
    Access, Cidr, HostPattern, HostSet, MAX_PATTERN_BYTES, PortSet, Scheme, SchemeSet,
    default_port, port_number,
};
use super::name::{Name, NameError, looks_numeric, loose_ipv4, to_ascii};
use super::target::{HOST_INTERNAL, HOST_INTERNAL_WASMCLOUD};

pub(super) fn parse(text: &str, dialect: Dialect) -> Result<HostPattern, Error> {
    if text.is_empty() {
        return Err(Error::Empty);
    }
    if text.len() > MAX_PATTERN_BYTES {
        return Err(Error::TooLong { found: text.len(), limit: MAX_PATTERN_BYTES });
    }
    match dialect {
        Dialect::WasmCloud => wasmcloud(text),
        Dialect::Spin => spin(text),
        Dialect::Ambit => ambit(text),
    }
}

/// What the three readings have in common once the parts are known.
struct Parts {
    deny: bool,
    schemes: SchemeSet,
    host: HostSet,
    ports: PortSet,
    userinfo: bool,
    dropped_port: Option<u16>,
}

impl Parts {
    fn new(schemes: SchemeSet, host: HostSet, ports: PortSet) -> Self {
        Self { deny: false, schemes, host, ports, userinfo: false, dropped_port: None }
    }

    fn build(
        self,
        text: &str,
        dialect: Dialect,
        http: Option<Access>,
        socket: Option<Access>,
    ) -> HostPattern {
        HostPattern {
            text: text.to_owned(),
            dialect,
            deny: self.deny,
            schemes: self.schemes,
            host: self.host,
            ports: self.ports,
            http,
            socket,
            userinfo: self.userinfo,
            dropped_port: self.dropped_port,
        }
    }

    fn access(&self) -> Access {
        Access { schemes: self.schemes.clone(), ports: self.ports.clone() }
    }

    fn one_scheme(&self) -> Option<&Scheme> {
        match &self.schemes {
            SchemeSet::Any => None,
            SchemeSet::Only(schemes) => schemes.first(),
        }
    }
}

// ---- ambit ----

fn ambit(text: &str) -> Result<HostPattern, Error> {
    let (deny, rest) = match text.strip_prefix('!') {
        Some(rest) if rest.starts_with('!') => return Err(Error::Deny),
        Some("") => return Err(Error::Empty),
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (scheme, rest) = match rest.split_once("://") {
        None => (None, rest),
        Some(("*", rest)) => (None, rest),
        Some((scheme, rest)) => (Some(lower_scheme(scheme)?), rest),
    };
    if rest.contains('@') {
        return Err(Error::Userinfo);
    }
    let (scheme, rest) = loopback_protocol(scheme, rest);
    let (host, port) = split_authority(strip_slash(rest)?)?;
    let host = match host {
        RawHost::Text("*") => HostSet::Any,
        RawHost::Text(host) => {
            if let Some(suffix) = host.strip_prefix("**.") {
                HostSet::SubdomainsAndApex(strict_name(host, suffix)?)
            } else if let Some(suffix) = host.strip_prefix("*.") {
                HostSet::Subdomains(strict_name(host, suffix)?)
            } else {
                ambit_host(host)?
            }
        }
        RawHost::V6(address) => HostSet::Ip(v6(address)?),
        RawHost::Cidr(address, bits) => cidr(address, bits)?,
    };
    let ports = match port {
        // Whoever takes a host away means all of it.
        None if deny => PortSet::Any,
        None | Some("default") => PortSet::SchemeDefault,
        Some("*") => PortSet::Any,
        Some(port) => match port.split_once('-') {
            None => single(number(port)?),
            Some((low, high)) => inclusive(port, number(low)?, number(high)?)?,
        },
    };
    let single_port = matches!(&ports, PortSet::Ranges(ranges)
        if ranges.first().is_some_and(|(low, high)| low == high));
    if host == HostSet::HostInternal && !single_port {
        return Err(Error::HostInternalPort);
    }
    let schemes = scheme.map_or(SchemeSet::Any, |scheme| SchemeSet::Only(vec![scheme]));
    let parts = Parts { deny, ..Parts::new(schemes, host, ports) };
    require_default(&parts)?;
    let (http, socket) = match parts.one_scheme() {
        Some(scheme) if scheme.is_http() => (Some(parts.access()), None),
        Some(_) => (None, Some(parts.access())),
        None => {
            let by_address = match parts.host {
                HostSet::Any | HostSet::Ip(_) | HostSet::Cidr(_) | HostSet::HostInternal => true,
                // A raw socket sees addresses; only an entry that says `tcp://` opens one by name.
                HostSet::Subdomains(_)
                | HostSet::SubdomainsAndApex(_)
                | HostSet::Exact(_)
                | HostSet::SelfHost => deny,
            };
            let by_default = parts.ports == PortSet::SchemeDefault;
            (Some(parts.access()), (by_address && !by_default).then(|| parts.access()))
        }
    };
    Ok(parts.build(text, Dialect::Ambit, http, socket))
}

/// Takes `host.internal:5432/tcp` as the other spelling of `tcp://host.internal:5432`.
fn loopback_protocol(scheme: Option<Scheme>, rest: &str) -> (Option<Scheme>, &str) {
    let suffixes = [("/tcp", "tcp"), ("/udp", "udp")];
    let spelled = suffixes.into_iter().find_map(|(suffix, protocol)| {
        let rest = rest.strip_suffix(suffix)?;
        let host = rest.split(':').next()?;
        let host = host.strip_suffix('.').unwrap_or(host);
        host.eq_ignore_ascii_case(HOST_INTERNAL).then_some((protocol, rest))
    });
    match (scheme, spelled) {
        (None, Some((protocol, rest))) => (Some(Scheme::known(protocol)), rest),
        (scheme, _) => (scheme, rest),
    }
}

fn ambit_host(host: &str) -> Result<HostSet, Error> {
    let ascii = to_ascii(host).map_err(|source| host_error(host, source))?;
    let bare = ascii.strip_suffix('.').unwrap_or(&ascii);
    if let Ok(address) = bare.parse() {
        return Ok(HostSet::Ip(IpAddr::V4(address)));
    }
    let name = strict_name(host, &ascii)?;
    Ok(match name.as_str() {
        HOST_INTERNAL => HostSet::HostInternal,
        "self" => HostSet::SelfHost,
        _ => HostSet::Exact(name),
    })
}

// ---- wasmCloud ----

fn wasmcloud(text: &str) -> Result<HostPattern, Error> {
    if text == "*" {
        let parts = Parts::new(SchemeSet::Any, HostSet::Any, PortSet::Any);
        let access = parts.access();
        return Ok(parts.build(text, Dialect::WasmCloud, Some(access.clone()), Some(access)));
    }
    if text.starts_with('!') {
        return Err(Error::Deny);
    }
    let (scheme, rest) = match text.split_once("://") {
        None => (None, text),
        Some((scheme, rest)) => {
            let scheme = Scheme::parse_rfc3986(scheme)
                .ok_or_else(|| Error::Scheme { found: scheme.to_owned() })?;
            (Some(scheme), rest)
        }
    };
    // Only the URL parser, which reads entries that have a scheme, knows userinfo.
    let (userinfo, rest) = match (&scheme, rest.rsplit_once('@')) {
        (_, None) => (false, rest),
        (Some(_), Some((before, after))) if !before.contains(['/', '?', '#']) => (true, after),
        (_, Some(_)) => return Err(Error::Userinfo),
    };
    let rest = if scheme.is_some() { strip_slash(rest)? } else { no_path(rest)? };
    let (host, port) = split_authority(rest)?;
    let (host, by_hand) = match host {
        RawHost::Text(host) => match host.strip_prefix("*.") {
            Some(_) if userinfo => return Err(Error::Userinfo),
            Some(suffix) => (HostSet::Subdomains(lenient_name(host, suffix)?), true),
            None => (wasmcloud_host(host, scheme.is_some())?, scheme.is_none()),
        },
        RawHost::V6(address) => (HostSet::Ip(v6(address)?), scheme.is_none()),
        RawHost::Cidr(address, bits) => {
            return Err(Error::Cidr { found: format!("{address}/{bits}") });
        }
    };
    let port = port.map(number).transpose()?;
    // The URL parser forgets a port that is the scheme's own.
    let dropped_port = port.filter(|port| {
        !by_hand && scheme.as_ref().and_then(|s| url_default_port(s.as_str())) == Some(*port)
    });
    let port = if dropped_port.is_some() { None } else { port };
    let defaults = |port| match &scheme {
        Some(scheme) => default_port(scheme.as_str()) == Some(port),
        None => port == 443 || port == 80,
    };
    let ports = match port {
        None => PortSet::Any,
        // Any other port has to be spelled anyway.
        Some(port) if defaults(port) => PortSet::Spelled(vec![port]),
        Some(port) => single(port),
    };
    let schemes = scheme.map_or(SchemeSet::Any, |scheme| SchemeSet::Only(vec![scheme]));
    let parts = Parts { userinfo, dropped_port, ..Parts::new(schemes, host, ports) };
    let http = parts.one_scheme().is_none_or(Scheme::is_http).then(|| parts.access());
    // The socket path looks at the address and the port; it ignores the scheme.
    let socket = match parts.host {
        HostSet::Ip(_) | HostSet::HostInternal => Some(Access {
            schemes: match parts.schemes {
                SchemeSet::Any => SchemeSet::Any,
                SchemeSet::Only(_) => {
                    SchemeSet::Only(vec![Scheme::known("tcp"), Scheme::known("udp")])
                }
            },
            ports: port.map_or(PortSet::Any, single),
        }),
        HostSet::Any
        | HostSet::Subdomains(_)
        | HostSet::SubdomainsAndApex(_)
        | HostSet::Exact(_)
        | HostSet::Cidr(_)
        | HostSet::SelfHost => None,
    };
    Ok(parts.build(text, Dialect::WasmCloud, http, socket))
}

fn wasmcloud_host(host: &str, url: bool) -> Result<HostSet, Error> {
    let ascii = to_ascii(host).map_err(|source| host_error(host, source))?;
    let bare = ascii.strip_suffix('.').unwrap_or(&ascii);
    if let Ok(address) = bare.parse() {
        return Ok(HostSet::Ip(IpAddr::V4(address)));
    }
    if url && looks_numeric(bare) {
        return loose_address(host);
    }
    let name = lenient_name(host, &ascii)?;
    Ok(match name.as_str() {
        HOST_INTERNAL_WASMCLOUD => HostSet::HostInternal,
        _ => HostSet::Exact(name),
    })
}

/// The ports that a URL parser drops (URL Standard, section 4.2, special schemes).
fn url_default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ftp" => Some(21),
        _ => None,
    }
}

// ---- Spin ----

fn spin(text: &str) -> Result<HostPattern, Error> {
    if text.contains("{{") || text.contains("}}") {
        return Err(Error::Template);
    }
    match text {
        "*" => return Err(Error::BareWildcard),
        _ if text.starts_with('!') => return Err(Error::Deny),
        _ => {}
    }
    let (scheme_text, rest) = text.split_once("://").ok_or(Error::MissingScheme)?;
    let schemes = match scheme_text {
        "*" => SchemeSet::Any,
        scheme => SchemeSet::Only(vec![
            Scheme::parse_letters(scheme)
                .ok_or_else(|| Error::Scheme { found: scheme.to_owned() })?,
        ]),
    };
    if rest.contains('@') {
        return Err(Error::Userinfo);
    }
    let (host, port) = split_authority(strip_slash(rest)?)?;
    let host = match host {
        RawHost::Text("*") => HostSet::Any,
        RawHost::Text("self") => HostSet::SelfHost,
        RawHost::Text(host) => match host.strip_prefix("*.") {
            Some(suffix) => HostSet::Subdomains(lenient_name(host, suffix)?),
            None => spin_host(host)?,
        },
        RawHost::V6(address) => HostSet::Ip(v6(address)?),
        RawHost::Cidr(address, bits) => cidr(address, bits)?,
    };
    let ports = match port {
        None if schemes == SchemeSet::Any => {
            return Err(Error::NoDefaultPort { scheme: "*".to_owned() });
        }
        None => PortSet::SchemeDefault,
        Some("*") => PortSet::Any,
        Some(port) => match port.split_once("..") {
            None => single(number(port)?),
            Some((low, end)) => {
                let high = number(end)?.checked_sub(1);
                let high = high.ok_or_else(|| Error::PortRange { found: port.to_owned() })?;
                inclusive(port, number(low)?, high)?
            }
        },
    };
    let parts = Parts::new(schemes, host, ports);
    require_default(&parts)?;
    let chained = match &parts.host {
        HostSet::SelfHost => true,
        HostSet::Exact(name) | HostSet::Subdomains(name) => {
            name.as_str() == "spin.internal" || name.as_str().ends_with(".spin.internal")
        }
        HostSet::Any
        | HostSet::SubdomainsAndApex(_)
        | HostSet::Ip(_)
        | HostSet::Cidr(_)
        | HostSet::HostInternal => false,
    };
    let (http, socket) = match parts.one_scheme() {
        Some(scheme) if scheme.is_http() => (Some(parts.access()), None),
        Some(_) => (None, Some(parts.access())),
        None => (Some(parts.access()), (!chained).then(|| parts.access())),
    };
    Ok(parts.build(text, Dialect::Spin, http, socket))
}

fn spin_host(host: &str) -> Result<HostSet, Error> {
    let ascii = to_ascii(host).map_err(|source| host_error(host, source))?;
    let bare = ascii.strip_suffix('.').unwrap_or(&ascii);
    if looks_numeric(bare) {
        return loose_address(host);
    }
    Ok(HostSet::Exact(lenient_name(host, &ascii)?))
}

// ---- shared ----

enum RawHost<'a> {
    Text(&'a str),
    V6(&'a str),
    Cidr(&'a str, &'a str),
}

/// Splits host and port. One `/` may stand between an address and its prefix length; any other is
/// a path.
fn split_authority(rest: &str) -> Result<(RawHost<'_>, Option<&str>), Error> {
    if let Some(inner) = rest.strip_prefix('[') {
        let (inner, after) =
            inner.split_once(']').ok_or_else(|| Error::Address { found: rest.to_owned() })?;
        if let Some((address, bits)) = inner.split_once('/') {
            return Ok((RawHost::Cidr(address, bits), port_after(after)?));
        }
        if let Some(after) = after.strip_prefix('/') {
            let (bits, port) = split_port(after);
            return Ok((RawHost::Cidr(inner, bits), port));
        }
        return Ok((RawHost::V6(inner), port_after(after)?));
    }
    if let Some((address, after)) = rest.split_once('/') {
        let (bits, port) = split_port(after);
        let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
        return match address.parse::<IpAddr>() {
            Ok(_) if digits => Ok((RawHost::Cidr(address, bits), port)),
            _ => Err(Error::Path),
        };
    }
    match split_port(rest) {
        (_, Some(port)) if port.contains(':') => Err(Error::Address { found: rest.to_owned() }),
        (host, port) => Ok((RawHost::Text(host), port)),
    }
}

fn split_port(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
}

fn port_after(text: &str) -> Result<Option<&str>, Error> {
    match text.strip_prefix(':') {
        Some(port) => Ok(Some(port)),
        None if text.is_empty() => Ok(None),
        None => Err(Error::Port { found: text.to_owned() }),
    }
}

fn strip_slash(rest: &str) -> Result<&str, Error> {
    if rest.contains(['?', '#', '\\']) {
        return Err(Error::Path);
    }
    Ok(rest.strip_suffix('/').unwrap_or(rest))
}

fn no_path(rest: &str) -> Result<&str, Error> {
    if rest.contains(['?', '#', '\\']) || rest.ends_with('/') {
        return Err(Error::Path);
    }
    Ok(rest)
}

fn lower_scheme(text: &str) -> Result<Scheme, Error> {
    Scheme::parse_lower(text).ok_or_else(|| Error::Scheme { found: text.to_owned() })
}

fn host_error(host: &str, source: NameError) -> Error {
    if host.contains('*') {
        return Error::Wildcard { host: host.to_owned() };
    }
    Error::Host { host: host.to_owned(), source }
}

fn strict_name(host: &str, name: &str) -> Result<Name, Error> {
    Name::parse(name).map_err(|source| host_error_of(host, name, source))
}

fn lenient_name(host: &str, name: &str) -> Result<Name, Error> {
    Name::parse_lenient(name).map_err(|source| host_error_of(host, name, source))
}

/// A `*` that is left in the name is a misplaced wildcard; the leading one isn't.
fn host_error_of(host: &str, name: &str, source: NameError) -> Error {
    if name.contains('*') {
        Error::Wildcard { host: host.to_owned() }
    } else {
        Error::Host { host: host.to_owned(), source }
    }
}

fn loose_address(host: &str) -> Result<HostSet, Error> {
    let ascii = to_ascii(host).map_err(|source| host_error(host, source))?;
    match loose_ipv4(&ascii) {
        Some(address) => Ok(HostSet::Ip(IpAddr::V4(address))),
        None => Err(Error::Address { found: host.to_owned() }),
    }
}

fn v6(text: &str) -> Result<IpAddr, Error> {
    match text.parse::<Ipv6Addr>() {
        Ok(address) => Ok(IpAddr::V6(address).to_canonical()),
        Err(_) => Err(Error::Address { found: text.to_owned() }),
    }
}

fn cidr(address: &str, bits: &str) -> Result<HostSet, Error> {
    let bad = || Error::Cidr { found: format!("{address}/{bits}") };
    let digits = (1..=3).contains(&bits.len()) && bits.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return Err(bad());
    }
    let prefix: u8 = bits.parse().map_err(|_| bad())?;
    let address: IpAddr = address.parse().map_err(|_| bad())?;
    let range = Cidr::new(address, prefix).ok_or_else(bad)?;
    Ok(if range.is_single() { HostSet::Ip(range.network()) } else { HostSet::Cidr(range) })
}

fn number(text: &str) -> Result<u16, Error> {
    port_number(text).ok_or_else(|| Error::Port { found: text.to_owned() })
}

fn single(port: u16) -> PortSet {
    PortSet::Ranges(vec![(port, port)])
}

fn inclusive(text: &str, low: u16, high: u16) -> Result<PortSet, Error> {
    if low > high {
        return Err(Error::PortRange { found: text.to_owned() });
    }
    Ok(PortSet::Ranges(vec![(low, high)]))
}

fn require_default(parts: &Parts) -> Result<(), Error> {
    match (&parts.ports, parts.one_scheme()) {
        (PortSet::SchemeDefault, Some(scheme)) if default_port(scheme.as_str()).is_none() => {
            Err(Error::NoDefaultPort { scheme: scheme.to_string() })
        }
        _ => Ok(()),
    }
}
