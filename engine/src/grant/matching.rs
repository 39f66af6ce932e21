//! Membership and inclusion of host patterns.

use super::host::{Access, HostPattern, HostSet, PortSet, SchemeSet, default_port};
use super::target::{CanonicalHost, Plane, Target};

/// Every scheme of the HTTP plane.
pub(super) const HTTP_SCHEMES: [&str; 2] = ["http", "https"];

impl HostPattern {
    /// Whether `target` is in the set; the deny mark isn't looked at.
    pub fn matches(&self, target: &Target) -> bool {
        let scheme = target.scheme().as_str();
        self.access(target.plane()).is_some_and(|access| {
            access.schemes.contains(scheme)
                && Ports::of(&access.ports, scheme).admit(target.port(), target.port_spelled())
        }) && self.host.contains(target.host())
    }

    /// Whether every target that `other` matches is matched by this entry too; deny marks aren't
    /// looked at. `false` where inclusion isn't certain.
    pub fn covers(&self, other: &Self) -> bool {
        let planes = [Plane::Http, Plane::Socket];
        planes.into_iter().all(|plane| match (self.access(plane), other.access(plane)) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(theirs)) => access_covers(plane, own, theirs),
        }) && self.host.covers(&other.host)
    }
}

impl HostSet {
    /// Whether the set holds `host`.
    pub fn contains(&self, host: &CanonicalHost) -> bool {
        match (self, host) {
            (Self::HostInternal, CanonicalHost::HostInternal)
            | (Self::Any, CanonicalHost::Name(_) | CanonicalHost::Ip(_)) => true,
            (Self::Exact(own), CanonicalHost::Name(name)) => own == name,
            (Self::Subdomains(own), CanonicalHost::Name(name)) => name.is_below(own),
            (Self::SubdomainsAndApex(own), CanonicalHost::Name(name)) => {
                own == name || name.is_below(own)
            }
            (Self::Ip(own), CanonicalHost::Ip(address)) => own == address,
            (Self::Cidr(range), CanonicalHost::Ip(address)) => range.contains(*address),
            (Self::HostInternal | Self::SelfHost, _)
            | (_, CanonicalHost::HostInternal)
            | (
                Self::Exact(_) | Self::Subdomains(_) | Self::SubdomainsAndApex(_),
                CanonicalHost::Ip(_),
            )
            | (Self::Ip(_) | Self::Cidr(_), CanonicalHost::Name(_)) => false,
        }
    }

    /// Whether every host of `other` is in the set.
    pub fn covers(&self, other: &Self) -> bool {
        // The two names that no wildcard stands for come first.
        let reserved = |set: &Self| matches!(set, Self::SelfHost | Self::HostInternal);
        if reserved(self) || reserved(other) {
            return self == other;
        }
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Exact(name)) => self.contains(&CanonicalHost::Name(name.clone())),
            (_, Self::Ip(address)) => self.contains(&CanonicalHost::Ip(*address)),
            (Self::Subdomains(own) | Self::SubdomainsAndApex(own), Self::Subdomains(name))
            | (Self::SubdomainsAndApex(own), Self::SubdomainsAndApex(name)) => {
                own == name || name.is_below(own)
            }
            (Self::Subdomains(own), Self::SubdomainsAndApex(name)) => name.is_below(own),
            (Self::Cidr(own), Self::Cidr(range)) => own.covers(range),
            (
                Self::Exact(_) | Self::Ip(_) | Self::Cidr(_),
                Self::Subdomains(_) | Self::SubdomainsAndApex(_),
            )
            | (
                Self::Exact(_) | Self::Ip(_) | Self::Subdomains(_) | Self::SubdomainsAndApex(_),
                Self::Cidr(_),
            )
            | (_, Self::Any | Self::HostInternal | Self::SelfHost)
            | (Self::HostInternal | Self::SelfHost, _) => false,
        }
    }

    /// Whether some host may be in both sets; `true` where that isn't certain.
    pub(super) fn may_meet(&self, other: &Self) -> bool {
        let below = |suffix: &Self, name: &Self| match (suffix, name) {
            (
                Self::Subdomains(a) | Self::SubdomainsAndApex(a),
                Self::Subdomains(b) | Self::SubdomainsAndApex(b),
            ) => a == b || a.is_below(b) || b.is_below(a),
            _ => false,
        };
        self.covers(other) || other.covers(self) || below(self, other)
    }
}

fn access_covers(plane: Plane, own: &Access, theirs: &Access) -> bool {
    let scheme_covered = |scheme: &str| {
        own.schemes.contains(scheme)
            && Ports::of(&own.ports, scheme).cover(&Ports::of(&theirs.ports, scheme))
    };
    match (plane, &theirs.schemes) {
        (Plane::Http, schemes) => {
            HTTP_SCHEMES.into_iter().filter(|s| schemes.contains(s)).all(scheme_covered)
        }
        (Plane::Socket, SchemeSet::Only(schemes)) => {
            schemes.iter().all(|scheme| scheme_covered(scheme.as_str()))
        }
        // Protocols can't be listed. The empty one has no default port, as most have none.
        (Plane::Socket, SchemeSet::Any) => own.schemes == SchemeSet::Any && scheme_covered(""),
    }
}

/// A set of ports for one scheme: sorted ranges, and whether the default may stay unspelled.
struct Ports {
    ranges: Vec<(u16, u16)>,
    unspelled: Option<u16>,
}

impl Ports {
    fn of(ports: &PortSet, scheme: &str) -> Self {
        let default = default_port(scheme);
        match ports {
            PortSet::Any => Self { ranges: vec![(1, u16::MAX)], unspelled: default },
            PortSet::SchemeDefault => Self {
                ranges: default.map(|port| (port, port)).into_iter().collect(),
                unspelled: default,
            },
            PortSet::Spelled(ports) => Self {
                ranges: merged(ports.iter().map(|port| (*port, *port)).collect()),
                unspelled: None,
            },
            PortSet::Ranges(ranges) => {
                let ranges = merged(ranges.clone());
                let unspelled = default.filter(|port| holds(&ranges, *port));
                Self { ranges, unspelled }
            }
        }
    }

    fn admit(&self, port: u16, spelled: bool) -> bool {
        if spelled { holds(&self.ranges, port) } else { self.unspelled == Some(port) }
    }

    fn cover(&self, other: &Self) -> bool {
        let inside = |(low, high): &(u16, u16)| {
            self.ranges.iter().any(|(from, to)| from <= low && high <= to)
        };
        other.ranges.iter().all(inside)
            && (other.unspelled.is_none() || other.unspelled == self.unspelled)
    }
}

fn holds(ranges: &[(u16, u16)], port: u16) -> bool {
    ranges.iter().any(|(low, high)| (*low..=*high).contains(&port))
}

fn merged(mut ranges: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ranges.retain(|(low, high)| low <= high);
    ranges.sort_unstable();
    let mut merged: Vec<(u16, u16)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match merged.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = (*end).max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}
