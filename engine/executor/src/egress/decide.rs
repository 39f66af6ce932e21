//! Whether a component may reach a target: one function for reports, dry runs and requests.

use ambit_engine::admitted::{AdmittedComponent, GrantSource};
use ambit_engine::grant::{
    CanonicalHost, Consent, HostDecision, HostGrants, HostSet, RangePolicy, Target, TargetError,
};

use crate::scope::{PrivateNetwork, Setup};

/// What the operator opens beside the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Openings<'a> {
    /// Ports of this machine's own loopback.
    pub loopback: &'a [u16],
    /// Whether granted names may lead to private addresses.
    pub private_network: PrivateNetwork,
    /// By which policy addresses are judged; the one that is shipped if there is none.
    pub ranges: Option<&'a RangePolicy>,
}

impl<'a> Openings<'a> {
    /// Returns what a run opens.
    pub(crate) fn of(setup: &'a Setup) -> Self {
        Self {
            loopback: &setup.loopback,
            private_network: setup.private_network,
            ranges: Some(setup.egress.ranges()),
        }
    }
}

/// What the grants say about a target. Addresses of a name are judged when it is resolved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Decided {
    /// It may be reached.
    Allowed {
        /// The target in canonical form.
        target: Target,
        /// The entry of the host list that gives it, from 0.
        entry: usize,
        /// What that means for private addresses.
        consent: Consent,
    },
    /// It may not.
    Denied(Denial),
}

/// Why a target may not be reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denial {
    /// A stable kebab-case code.
    pub code: &'static str,
    /// The target as far as it could be read; never a user name, a path or a query.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// What would allow it; may be empty.
    pub help: String,
}

/// Decides about an HTTP request by its scheme and authority.
#[must_use]
pub fn decide(
    component: &AdmittedComponent,
    openings: Openings<'_>,
    scheme: &str,
    authority: &str,
) -> Decided {
    match Target::http(scheme, authority) {
        Ok(target) => of_target(component, openings, target),
        Err(error) => Decided::Denied(unreadable(&error, scheme, authority)),
    }
}

/// Decides about a target of either plane.
pub(super) fn of_target(
    component: &AdmittedComponent,
    openings: Openings<'_>,
    target: Target,
) -> Decided {
    let hosts = component.hosts();
    let denied = |code, reason: String, help: String| {
        Decided::Denied(Denial { code, subject: target.to_string(), reason, help })
    };
    match hosts.decide(&target) {
        HostDecision::Allowed { entry } => {
            if *target.host() == CanonicalHost::HostInternal
                && !openings.loopback.contains(&target.port())
            {
                let port = target.port();
                let reason = format!("port {port} of this machine isn't opened");
                let help = format!("start it with `--allow-host-loopback {port}`");
                return denied("loopback-closed", reason, help);
            }
            let consent = consent(hosts, &target, openings.private_network);
            if let CanonicalHost::Ip(address) = target.host() {
                let address = address.to_canonical();
                let judged = match openings.ranges {
                    Some(ranges) => ranges.allows(address, consent),
                    None => RangePolicy::default().allows(address, consent),
                };
                if let Err(class) = judged {
                    let reason = format!("it is a {class} address");
                    return denied("address-refused", reason, String::new());
                }
            }
            Decided::Allowed { target, entry, consent }
        }
        HostDecision::DeniedByEntry { entry } => {
            let line = component.host_lines().get(entry);
            let text = line.map(|line| line.text.clone()).unwrap_or_default();
            let help = format!("remove {}", place(line.unwrap_or(component.hosts_at()), &text));
            denied("host-denied", format!("the entry `{text}` denies it"), help)
        }
        HostDecision::NotGranted => {
            let entry = entry_for(&target);
            let at = component.hosts_at();
            let list = if at.line == 0 {
                "a bare component is granted nothing: run it by a manifest whose `allowedHosts` \
                 has it"
                    .to_owned()
            } else {
                format!(
                    "add `{entry}` to `allowedHosts` of `{}` ({}:{})",
                    component.name(),
                    at.file,
                    at.line
                )
            };
            denied("host-not-granted", "no entry of `allowedHosts` covers it".to_owned(), list)
        }
    }
}

/// What the host list says about private addresses behind this target.
fn consent(hosts: &HostGrants, target: &Target, network: PrivateNetwork) -> Consent {
    let named = |wanted: fn(&HostSet) -> bool| {
        hosts
            .entries()
            .iter()
            .any(|entry| !entry.is_deny() && wanted(entry.host()) && entry.matches(target))
    };
    if named(|host| matches!(host, HostSet::Ip(_))) {
        Consent::Literal
    } else if named(|host| matches!(host, HostSet::Cidr(_))) {
        Consent::Cidr
    } else if network == PrivateNetwork::Open {
        Consent::PrivateNetwork
    } else {
        Consent::None
    }
}

/// The narrowest entry that would allow a target.
fn entry_for(target: &Target) -> String {
    let default = match target.scheme().as_str() {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    };
    if default == Some(target.port()) {
        format!("{}://{}", target.scheme(), target.host())
    } else {
        target.to_string()
    }
}

fn place(line: &GrantSource, text: &str) -> String {
    if line.line == 0 {
        format!("`{text}`")
    } else {
        format!("`{text}` ({}:{})", line.file, line.line)
    }
}

fn unreadable(error: &TargetError, scheme: &str, authority: &str) -> Denial {
    // What stands before an `@` may be a password, so it never gets further than here.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host: String = host.chars().filter(|c| !c.is_control()).take(256).collect();
    let scheme: String = scheme.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let is_scheme = matches!(error, TargetError::Scheme { .. });
    Denial {
        code: if is_scheme { "scheme-refused" } else { error.code() },
        subject: format!("{scheme}://{host}"),
        reason: error.to_string(),
        help: error.help().unwrap_or_default().to_owned(),
    }
}
