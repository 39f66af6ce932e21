//! Hosts, names, sockets, and ports of the machine.

use super::entries::{Asks, Context, class};
use super::{ComponentReach, Entry, GrantLine, GrantNote, Via};
use crate::catalogue::Verb;
use crate::grant::{HostPattern, HostSet, Plane, Protocol, breadth};
use crate::workload::{ComponentSpec, HostEntry, HostGrantList, Role, Target};

/// What wasmCloud's host does with sockets unless it enforces (`--socket-egress count`).
const SOCKETS_OPEN: &str = "wasmCloud counts socket connections that no entry allows and lets them through unless its host runs with `--socket-egress enforce`";

const HTTP: [&str; 3] = ["http.out", "net.ws", "net.tls"];
const SOCKETS: [&str; 3] = ["net.tcp.connect", "net.udp.send", "net.key"];
const LISTEN: [&str; 2] = ["net.tcp.listen", "net.udp.recv"];

impl Context<'_> {
    pub(super) fn hosts(&self, spec: &ComponentSpec, asks: &Asks<'_>, reach: &mut ComponentReach) {
        let wants_http = asks.any(&HTTP);
        let wants_sockets = asks.any(&SOCKETS);
        match &spec.hosts {
            // What the document doesn't list, our executor doesn't give.
            HostGrantList::Elsewhere(reason) if self.target != Target::Ambit => {
                if asks.set.is_some() && !wants_http {
                    return;
                }
                reach.entries.push(Entry {
                    verb: Verb::ReachHosts,
                    capability: class(asks, &HTTP).to_owned(),
                    subject: "hosts that this document doesn't list".to_owned(),
                    key: "*".to_owned(),
                    via: Via::TargetDefault,
                    grant: None,
                    imports: asks.imports(&HTTP),
                    note: (*reason).to_owned(),
                    unbounded: true,
                    any_host: true,
                });
            }
            list @ (HostGrantList::Listed(_) | HostGrantList::Elsewhere(_)) => {
                let entries = list.entries();
                let denied: Vec<&HostPattern> = entries
                    .iter()
                    .filter_map(|entry| entry.pattern.as_ref().ok())
                    .filter(|pattern| pattern.is_deny())
                    .collect();
                let mut granted = false;
                for entry in entries {
                    let Ok(pattern) = &entry.pattern else { continue };
                    if pattern.is_deny() || matches!(pattern.host(), HostSet::HostInternal) {
                        continue;
                    }
                    granted |= pattern.access(Plane::Http).is_some();
                    self.host(entry, pattern, (asks, &denied, wants_http), reach);
                }
                for entry in entries.iter().filter(|_| asks.set.is_some()) {
                    if !wants_http && !wants_sockets {
                        reach.dead.push(GrantNote {
                            kind: "hosts",
                            subject: shown(entry),
                            reason: "the component imports neither outgoing HTTP nor sockets"
                                .to_owned(),
                            place: entry.place.clone(),
                        });
                    }
                }
                let internal = entries.iter().any(|entry| {
                    let pattern = entry.pattern.as_ref();
                    pattern.is_ok_and(|p| matches!(p.host(), HostSet::HostInternal))
                });
                if asks.set.is_some() && wants_http && !granted && !internal {
                    for import in asks.imports(&HTTP) {
                        reach.missing.push(GrantNote {
                            kind: "hosts",
                            subject: import,
                            reason: "no host is granted, so every request is refused".to_owned(),
                            place: spec.place.clone(),
                        });
                    }
                }
            }
        }
    }

    pub(super) fn host(
        &self,
        entry: &HostEntry,
        pattern: &HostPattern,
        (asks, denied, wants_http): (&Asks<'_>, &[&HostPattern], bool),
        reach: &mut ComponentReach,
    ) {
        if !wants_http || pattern.access(Plane::Http).is_none() {
            return;
        }
        let mut subject = pattern.describe();
        if !denied.is_empty() {
            let except: Vec<String> = denied.iter().map(|p| p.host().to_string()).collect();
            subject = format!("{subject}, except {}", except.join(", "));
        }
        let spelled = match pattern.ports() {
            crate::grant::PortSet::Spelled(_) => {
                "a URL that doesn't spell the port is refused".to_owned()
            }
            crate::grant::PortSet::Any
            | crate::grant::PortSet::SchemeDefault
            | crate::grant::PortSet::Ranges(_) => String::new(),
        };
        reach.entries.push(Entry {
            verb: Verb::ReachHosts,
            capability: class(asks, &HTTP).to_owned(),
            subject,
            key: pattern.host().to_string(),
            via: asks.granted(),
            grant: Some(GrantLine { text: shown(entry), place: entry.place.clone() }),
            imports: asks.imports(&HTTP),
            note: spelled,
            unbounded: breadth(pattern) == crate::grant::Breadth::Unbounded,
            any_host: matches!(pattern.host(), HostSet::Any),
        });
    }

    pub(super) fn lookups(
        &self,
        spec: &ComponentSpec,
        asks: &Asks<'_>,
        reach: &mut ComponentReach,
    ) {
        let wants = asks.any(&["net.dns"]);
        if let HostGrantList::Elsewhere(reason) = &spec.hosts
            && self.target != Target::Ambit
        {
            if asks.set.is_some() && wants {
                reach.entries.push(Entry {
                    verb: Verb::LookUpNames,
                    capability: "net.dns".to_owned(),
                    subject: "any name".to_owned(),
                    key: "*".to_owned(),
                    via: Via::TargetDefault,
                    grant: None,
                    imports: asks.imports(&["net.dns"]),
                    note: (*reason).to_owned(),
                    unbounded: true,
                    any_host: false,
                });
            }
            return;
        }
        for entry in &spec.lookups {
            if wants && let Some(pattern) = &entry.pattern {
                let any = matches!(pattern.names(), HostSet::Any);
                reach.entries.push(Entry {
                    verb: Verb::LookUpNames,
                    capability: "net.dns".to_owned(),
                    subject: if any { "any name".to_owned() } else { entry.text.clone() },
                    key: entry.text.clone(),
                    via: asks.granted(),
                    grant: Some(GrantLine { text: entry.text.clone(), place: entry.place.clone() }),
                    imports: asks.imports(&["net.dns"]),
                    note: String::new(),
                    unbounded: any,
                    any_host: false,
                });
            } else if !wants {
                reach.dead.push(GrantNote {
                    kind: "lookups",
                    subject: entry.text.clone(),
                    reason: "the component doesn't import `wasi:sockets/ip-name-lookup`".to_owned(),
                    place: entry.place.clone(),
                });
            }
        }
        if asks.set.is_some() && wants && spec.lookups.is_empty() {
            for import in asks.imports(&["net.dns"]) {
                reach.missing.push(GrantNote {
                    kind: "lookups",
                    subject: import,
                    reason: "no name is granted, so every look-up is refused".to_owned(),
                    place: spec.place.clone(),
                });
            }
        }
    }

    pub(super) fn sockets(
        &self,
        spec: &ComponentSpec,
        asks: &Asks<'_>,
        reach: &mut ComponentReach,
    ) {
        let wants = asks.any(&SOCKETS);
        let open = |subject: &str, note: &str| Entry {
            verb: Verb::OpenSockets,
            capability: class(asks, &SOCKETS).to_owned(),
            subject: subject.to_owned(),
            key: "*".to_owned(),
            via: Via::TargetDefault,
            grant: None,
            imports: asks.imports(&SOCKETS),
            note: if asks.set.is_some() {
                note.to_owned()
            } else {
                format!("only if it imports `wasi:sockets`; {note}")
            },
            unbounded: true,
            any_host: true,
        };
        match (&spec.hosts, self.target) {
            (HostGrantList::Elsewhere(reason), Target::Spin | Target::WasmCloud) => {
                if wants && asks.set.is_some() {
                    reach.entries.push(open("any address", reason));
                }
            }
            (HostGrantList::Listed(_), Target::WasmCloud) => {
                if wants {
                    reach.entries.push(open("any non-loopback address", SOCKETS_OPEN));
                }
            }
            (_, Target::Ambit | Target::Spin) => {
                let mut granted = false;
                for entry in spec.hosts.entries() {
                    let Ok(pattern) = &entry.pattern else { continue };
                    let socket = pattern.access(Plane::Socket).is_some();
                    if !wants || !socket || pattern.is_deny() {
                        continue;
                    }
                    if matches!(pattern.host(), HostSet::HostInternal | HostSet::Exact(_)) {
                        continue;
                    }
                    granted = true;
                    reach.entries.push(Entry {
                        verb: Verb::OpenSockets,
                        capability: class(asks, &SOCKETS).to_owned(),
                        subject: pattern.describe(),
                        key: pattern.host().to_string(),
                        via: asks.granted(),
                        grant: Some(GrantLine { text: shown(entry), place: entry.place.clone() }),
                        imports: asks.imports(&SOCKETS),
                        note: String::new(),
                        unbounded: breadth(pattern) == crate::grant::Breadth::Unbounded,
                        any_host: matches!(pattern.host(), HostSet::Any),
                    });
                }
                if asks.set.is_some() && wants && !granted {
                    for import in asks.imports(&SOCKETS) {
                        reach.missing.push(GrantNote {
                            kind: "hosts",
                            subject: import,
                            reason: "no address is granted to sockets, so they stay closed"
                                .to_owned(),
                            place: spec.place.clone(),
                        });
                    }
                }
            }
        }
        if asks.set.is_some() && asks.any(&LISTEN) {
            self.listening(spec, asks, reach);
        }
    }

    /// Binding ports: wasmCloud rewrites it to the workload's own loopback, and only a service may
    /// listen for TCP.
    pub(super) fn listening(
        &self,
        spec: &ComponentSpec,
        asks: &Asks<'_>,
        reach: &mut ComponentReach,
    ) {
        let tcp = asks.any(&["net.tcp.listen"]);
        let udp = asks.any(&["net.udp.recv"]);
        let service = spec.role == Role::Service;
        match self.target {
            Target::WasmCloud => {
                if udp || (tcp && service) {
                    let which = match (tcp && service, udp) {
                        (true, true) => "TCP and UDP ports",
                        (true, false) => "TCP ports",
                        (false, _) => "UDP ports",
                    };
                    reach.entries.push(Entry {
                        verb: Verb::UseMachinePorts,
                        capability: class(asks, &LISTEN).to_owned(),
                        subject: format!("{which} on the workload's own virtual loopback"),
                        key: "virtual loopback".to_owned(),
                        via: Via::TargetDefault,
                        grant: None,
                        imports: asks.imports(&LISTEN),
                        note: "no other workload and no process of the machine sees them"
                            .to_owned(),
                        unbounded: false,
                        any_host: false,
                    });
                }
            }
            Target::Spin => reach.entries.push(Entry {
                verb: Verb::UseMachinePorts,
                capability: class(asks, &LISTEN).to_owned(),
                subject: "ports of the pod".to_owned(),
                key: "pod".to_owned(),
                via: Via::TargetDefault,
                grant: None,
                imports: asks.imports(&LISTEN),
                note: "this document doesn't say; the shim decides".to_owned(),
                unbounded: false,
                any_host: false,
            }),
            Target::Ambit => {}
        }
        let refused = match self.target {
            Target::WasmCloud => tcp && !service && !udp,
            Target::Ambit => true,
            Target::Spin => false,
        };
        // A socket that can't connect either is named once, by the missing host grant.
        if refused && !asks.any(&SOCKETS) {
            for import in asks.imports(&LISTEN) {
                reach.missing.push(GrantNote {
                    kind: "loopback",
                    subject: import,
                    reason: "listening is never granted to a component".to_owned(),
                    place: spec.place.clone(),
                });
            }
        }
    }

    pub(super) fn loopback(
        &self,
        spec: &ComponentSpec,
        asks: &Asks<'_>,
        reach: &mut ComponentReach,
    ) {
        let http = asks.any(&HTTP);
        let sockets = asks.any(&SOCKETS);
        let internal = spec.hosts.entries().iter().find(|entry| {
            entry.pattern.as_ref().is_ok_and(|p| matches!(p.host(), HostSet::HostInternal))
        });
        for entry in &spec.loopback {
            let Some(port) = entry.port else { continue };
            let tcp = port.protocol() == Protocol::Tcp;
            let by_http = http && tcp && internal.is_some();
            if !sockets && !by_http {
                let reason = if http {
                    "no entry of `allowedHosts` names `host.wasmcloud.internal`, and the component imports no sockets"
                } else {
                    "the component imports neither outgoing HTTP nor sockets"
                };
                reach.dead.push(GrantNote {
                    kind: "loopback",
                    subject: entry.text.clone(),
                    reason: reason.to_owned(),
                    place: entry.place.clone(),
                });
                continue;
            }
            let daemon = matches!(port.port(), 2375 | 2376);
            let mut note = "opens only if the host runs with `--allow-host-loopback`".to_owned();
            if daemon {
                note = format!("the container daemon's port: full control of the machine; {note}");
            }
            reach.entries.push(Entry {
                verb: Verb::UseMachinePorts,
                capability: class(asks, if by_http { &HTTP } else { &SOCKETS }).to_owned(),
                subject: format!(
                    "port {}/{} of this machine's loopback",
                    port.port(),
                    port.protocol().as_str()
                ),
                key: format!("host.internal:{}", port.port()),
                via: asks.granted(),
                grant: Some(GrantLine { text: entry.text.clone(), place: entry.place.clone() }),
                imports: asks.imports(if by_http { &HTTP } else { &SOCKETS }),
                note,
                unbounded: false,
                any_host: false,
            });
        }
        if let Some(entry) = internal
            && spec.loopback.is_empty()
            && self.target == Target::WasmCloud
        {
            reach.dead.push(GrantNote {
                kind: "hosts",
                subject: shown(entry),
                reason: "inert: no port of this machine is opened by `allowedHostLoopbackPorts`"
                    .to_owned(),
                place: entry.place.clone(),
            });
        }
        if let Some(entry) = internal
            && self.target == Target::Ambit
            && http
            && let Ok(pattern) = &entry.pattern
        {
            reach.entries.push(Entry {
                verb: Verb::UseMachinePorts,
                capability: class(asks, &HTTP).to_owned(),
                subject: format!("port {} of this machine's loopback", pattern.ports_meant()),
                key: "host.internal".to_owned(),
                via: asks.granted(),
                grant: Some(GrantLine { text: shown(entry), place: entry.place.clone() }),
                imports: asks.imports(&HTTP),
                note: "opens only with `--allow-host-loopback PORT`".to_owned(),
                unbounded: false,
                any_host: false,
            });
        }
    }
}

/// The entry as a report prints it: a password in it is masked.
fn shown(entry: &HostEntry) -> String {
    entry.pattern.as_ref().map_or_else(|_| entry.text.clone(), HostPattern::text_for_report)
}
