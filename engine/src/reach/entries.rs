//! From one component's capabilities and grants to the entries of its reach.

use std::collections::BTreeSet;

use super::{
    Bytes, ComponentReach, EffectiveMount, Entry, GrantLine, GrantNote, Links, Via, links, services,
};
use crate::capability::{CapabilitySet, ImportCapability};
use crate::catalogue::{Catalogue, Verb};
use crate::grant::{HostPattern, HostSet, Plane, Protocol, breadth};
use crate::workload::{
    ComponentSpec, EnvSource, HostEntry, HostGrantList, HostInterface, Place, ReferenceKind, Role,
    Target, VolumeSource, Workload,
};

/// What wasmCloud's host does with sockets unless it enforces (`--socket-egress count`).
const SOCKETS_OPEN: &str = "wasmCloud counts socket connections that no entry allows and lets them through unless its host runs with `--socket-egress enforce`";

pub(super) struct Context<'a> {
    pub(super) workload: &'a Workload,
    pub(super) bytes: &'a [Bytes<'a>],
    pub(super) target: Target,
    pub(super) catalogue: &'a Catalogue,
    pub(super) links: &'a Links,
}

/// What a component can ask for: what its bytes say, or everything that its grants would serve.
struct Asks<'a> {
    set: Option<&'a CapabilitySet>,
}

impl<'a> Asks<'a> {
    /// Whether some class of `classes` is declared; without bytes it may be.
    fn any(&self, classes: &[&str]) -> bool {
        self.set.is_none_or(|set| classes.iter().any(|class| set.declared.contains(*class)))
    }

    fn imports(&self, classes: &[&str]) -> Vec<String> {
        let bears = |import: &&ImportCapability| {
            classes.iter().any(|class| import.declared.contains(*class))
        };
        let imports = self.set.map_or(&[][..], |set| &set.imports);
        imports.iter().filter(bears).map(|import| import.name.clone()).collect()
    }

    /// The via of an entry that a line gives.
    fn granted(&self) -> Via {
        if self.set.is_some() { Via::Grant } else { Via::GrantOnly }
    }
}

/// The first of `classes` that is declared; the first of all without bytes.
fn class<'c>(asks: &Asks<'_>, classes: &[&'c str]) -> &'c str {
    let declared = classes
        .iter()
        .find(|class| asks.set.is_none_or(|set| set.declared.contains(**class)))
        .or(classes.first());
    declared.copied().unwrap_or("unknown")
}

const HTTP: [&str; 3] = ["http.out", "net.ws", "net.tls"];
const SOCKETS: [&str; 3] = ["net.tcp.connect", "net.udp.send", "net.key"];
const LISTEN: [&str; 2] = ["net.tcp.listen", "net.udp.recv"];
const READ: [&str; 4] = ["fs.read", "fs.list", "fs.meta", "fs.root"];
const WRITE: [&str; 1] = ["fs.write"];
const FILES: [&str; 5] = ["fs.read", "fs.list", "fs.meta", "fs.root", "fs.write"];
const ENVIRONMENT: [&str; 1] = ["env.read"];

impl<'a> Context<'a> {
    pub(super) fn component(&self, index: usize, mounts: Vec<EffectiveMount>) -> ComponentReach {
        let Some(spec) = self.workload.components.get(index) else {
            return ComponentReach {
                name: String::new(),
                absent: Some("the component is not in the document".to_owned()),
                entries: Vec::new(),
                dead: Vec::new(),
                missing: Vec::new(),
                mounts,
            };
        };
        let bytes = self.bytes.get(index).copied().unwrap_or(Bytes::Absent("not read"));
        let (analysis, absent) = match bytes {
            Bytes::Present(analysis) => (Some(analysis), None),
            Bytes::Absent(reason) => (None, Some(reason.to_owned())),
        };
        let asks = Asks { set: analysis.map(|analysis| analysis.capabilities) };
        let mut reach = ComponentReach {
            name: spec.name.clone(),
            absent,
            entries: Vec::new(),
            dead: Vec::new(),
            missing: Vec::new(),
            mounts,
        };
        self.hosts(spec, &asks, &mut reach);
        self.lookups(spec, &asks, &mut reach);
        self.sockets(spec, &asks, &mut reach);
        self.loopback(spec, &asks, &mut reach);
        self.folders(spec, &asks, &mut reach);
        self.environment(spec, &asks, &mut reach);
        match analysis {
            Some(analysis) => self.imports(index, spec, analysis, &mut reach),
            None => self.interfaces_without_bytes(spec, &mut reach),
        }
        self.exports(analysis, &mut reach);
        let order = |entry: &Entry| Verb::ALL.iter().position(|verb| *verb == entry.verb);
        reach.entries.sort_by_key(order);
        let mut seen = BTreeSet::new();
        reach.entries.retain(|entry| {
            let grant = entry.grant.as_ref().map(|grant| grant.place.pointer.clone());
            seen.insert((entry.verb, entry.subject.clone(), entry.via.to_string(), grant))
        });
        reach
    }

    fn hosts(&self, spec: &ComponentSpec, asks: &Asks<'_>, reach: &mut ComponentReach) {
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

    fn host(
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

    fn lookups(&self, spec: &ComponentSpec, asks: &Asks<'_>, reach: &mut ComponentReach) {
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

    fn sockets(&self, spec: &ComponentSpec, asks: &Asks<'_>, reach: &mut ComponentReach) {
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
    fn listening(&self, spec: &ComponentSpec, asks: &Asks<'_>, reach: &mut ComponentReach) {
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

    fn loopback(&self, spec: &ComponentSpec, asks: &Asks<'_>, reach: &mut ComponentReach) {
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

    fn folders(&self, spec: &ComponentSpec, asks: &Asks<'_>, reach: &mut ComponentReach) {
        let wants = asks.any(&FILES);
        let mut entries = Vec::new();
        let mut usable = false;
        for effective in &reach.mounts {
            let Some(owner) = self.workload.components.get(effective.owner) else { continue };
            let Some(mount) = owner.mounts.get(effective.mount) else { continue };
            let Some(volume) = self.workload.volume(&mount.volume) else { continue };
            let guest = mount.guest.as_ref().map(ToString::to_string).unwrap_or_default();
            if !wants {
                if !effective.inherited {
                    reach.dead.push(GrantNote {
                        kind: "folders",
                        subject: format!("{guest} ({})", mount.volume),
                        reason: "the component doesn't import the filesystem".to_owned(),
                        place: mount.place.clone(),
                    });
                }
                continue;
            }
            let (what, key) = match &volume.source {
                VolumeSource::Host(path) => (format!("{path} as {guest}"), path.to_string()),
                VolumeSource::Ephemeral => (format!("an empty folder as {guest}"), String::new()),
                VolumeSource::Object(kind, name) => {
                    let word = if *kind == ReferenceKind::Secret { "Secret" } else { "ConfigMap" };
                    (format!("{word} {name} as {guest}"), format!("{word} {name}"))
                }
                VolumeSource::Other(kind) => {
                    (format!("{kind} `{}` as {guest}", volume.name), volume.name.clone())
                }
                VolumeSource::Invalid => continue,
            };
            usable = true;
            let via =
                if effective.inherited { Via::Link(owner.name.clone()) } else { asks.granted() };
            let note = if effective.inherited {
                "wasmCloud gives one store the folders of everything that is linked".to_owned()
            } else {
                String::new()
            };
            let entry = |verb: Verb, classes: &[&str], note: &str| Entry {
                verb,
                capability: class(asks, classes).to_owned(),
                subject: what.clone(),
                key: key.clone(),
                via: via.clone(),
                grant: (!effective.inherited || self.target == Target::WasmCloud).then(|| {
                    GrantLine {
                        text: format!("{guest} ({})", mount.volume),
                        place: mount.place.clone(),
                    }
                }),
                imports: asks.imports(classes),
                note: note.to_owned(),
                unbounded: false,
                any_host: false,
            };
            let secret = matches!(volume.source, VolumeSource::Object(ReferenceKind::Secret, _));
            if asks.any(&["fs.read", "fs.list"]) {
                let verb = if secret { Verb::ReadSecrets } else { Verb::ReadFolder };
                entries.push(entry(verb, &READ, &note));
            } else if asks.any(&READ) && asks.set.is_some_and(|set| !files_counted(set)) {
                let limited = "its own metadata only: no function that opens, lists or names a file is imported";
                entries.push(Entry {
                    key: String::new(),
                    ..entry(Verb::ReadFolder, &["fs.meta", "fs.root"], limited)
                });
            } else if asks.any(&READ) {
                entries.push(entry(
                    Verb::ReadFolder,
                    &["fs.meta", "fs.root"],
                    "names and metadata, not contents",
                ));
            }
            if asks.any(&WRITE) && mount.mode.can_write() && !secret {
                entries.push(entry(Verb::ChangeFolder, &WRITE, &note));
            }
        }
        reach.entries.extend(entries);
        let needs = asks.set.is_some_and(files_counted);
        if needs && !usable && spec.mounts.is_empty() {
            for import in asks.imports(&["fs.read", "fs.write", "fs.list"]) {
                reach.missing.push(GrantNote {
                    kind: "folders",
                    subject: import,
                    reason: "no folder is granted, so it sees an empty filesystem".to_owned(),
                    place: spec.place.clone(),
                });
            }
        }
    }

    fn environment(&self, spec: &ComponentSpec, asks: &Asks<'_>, reach: &mut ComponentReach) {
        let wants = asks.any(&ENVIRONMENT);
        let mut give = |verb, subject: String, key: &str, place: &Place, note: &str| {
            if wants {
                reach.entries.push(Entry {
                    verb,
                    capability: "env.read".to_owned(),
                    subject,
                    key: key.to_owned(),
                    via: asks.granted(),
                    grant: Some(GrantLine { text: key.to_owned(), place: place.clone() }),
                    imports: asks.imports(&ENVIRONMENT),
                    note: note.to_owned(),
                    unbounded: false,
                    any_host: false,
                });
            } else {
                reach.dead.push(GrantNote {
                    kind: "environment",
                    subject: key.to_owned(),
                    reason: "the component doesn't import `wasi:cli/environment`".to_owned(),
                    place: place.clone(),
                });
            }
        };
        for entry in &spec.env {
            match &entry.source {
                EnvSource::Literal { looks_secret, .. } => {
                    let verb =
                        if *looks_secret { Verb::ReadSecrets } else { Verb::ReadEnvironment };
                    let note = if *looks_secret { "written in the document itself" } else { "" };
                    give(verb, format!("variable {}", entry.name), &entry.name, &entry.place, note);
                }
                EnvSource::Secret(name) => give(
                    Verb::ReadSecrets,
                    format!("Secret {name} in variable {}", entry.name),
                    name,
                    &entry.place,
                    "",
                ),
                EnvSource::Config(name) => give(
                    Verb::ReadEnvironment,
                    format!("variable {} from {name}", entry.name),
                    &entry.name,
                    &entry.place,
                    "",
                ),
            }
        }
        // What a shim loads for its runtime reaches the component as variables and stores.
        let reaching = |into: &str| matches!(into, "environment" | "interface");
        for reference in spec.references.iter().filter(|entry| reaching(entry.into)) {
            match reference.kind {
                ReferenceKind::Secret => give(
                    Verb::ReadSecrets,
                    format!("all keys of Secret {} in its environment", reference.name),
                    &reference.name,
                    &reference.place,
                    "",
                ),
                ReferenceKind::Config => give(
                    Verb::ReadEnvironment,
                    format!("all keys of ConfigMap {} in its environment", reference.name),
                    &reference.name,
                    &reference.place,
                    "",
                ),
                ReferenceKind::PullSecret => {}
            }
        }
    }

    /// Imports that neither hosts, folders nor the environment narrow: siblings, host services,
    /// models, tools and code.
    fn imports(
        &self,
        index: usize,
        spec: &ComponentSpec,
        analysis: super::Analysis<'_>,
        reach: &mut ComponentReach,
    ) {
        let pairs = analysis.component.imports.iter().zip(&analysis.capabilities.imports);
        for (import, capability) in pairs {
            let verbs: BTreeSet<(Verb, &str)> = capability
                .declared
                .iter()
                .filter_map(|id| self.catalogue.class(id).map(|class| (class.verb, id.as_str())))
                .filter(|(verb, _)| served_elsewhere(*verb))
                .collect();
            let Some((verb, class)) = verbs.first().copied() else { continue };
            let entry = |verb, subject: String, via: Via, grant, note: &str| Entry {
                verb,
                capability: class.to_owned(),
                key: subject.clone(),
                subject,
                via,
                grant,
                imports: vec![capability.name.clone()],
                note: note.to_owned(),
                unbounded: false,
                any_host: false,
            };
            if verb == Verb::RunOtherCode && self.target == Target::Ambit {
                reach.missing.push(GrantNote {
                    kind: "interfaces",
                    subject: capability.name.clone(),
                    reason: "code from outside is never linked".to_owned(),
                    place: spec.place.clone(),
                });
                continue;
            }
            if verb == Verb::RunOtherCode {
                let note = "whoever provides it decides what it does with everything it is given";
                let subject = format!("`{}`", capability.name);
                reach.entries.push(entry(verb, subject, Via::TargetDefault, None, note));
                continue;
            }
            let Some(name) = &import.interface else {
                reach.missing.push(GrantNote {
                    kind: "interfaces",
                    subject: capability.name.clone(),
                    reason: "no host links a function or value of its own name".to_owned(),
                    place: spec.place.clone(),
                });
                continue;
            };
            if let Some(provider) = self.links.provider(index, &name.on_track())
                && let Some(sibling) = self.workload.components.get(provider)
            {
                let via = Via::Link(sibling.name.clone());
                let subject = format!("{} of component `{}`", name.unversioned(), sibling.name);
                reach.entries.push(entry(Verb::UseHostService, subject, via, None, ""));
                continue;
            }
            let granted: Vec<&HostInterface> = self
                .workload
                .host_interfaces
                .iter()
                .filter(|entry| services::gives(entry, name))
                .collect();
            for service in &granted {
                let subject = services::describe(service, Some(name.interface()));
                let line = GrantLine {
                    text: format!("{}:{}", service.namespace, service.package),
                    place: service.place.clone(),
                };
                let (note, secrets) = self.service_note(service);
                reach.entries.push(entry(verb, subject, Via::Grant, Some(line.clone()), &note));
                for secret in secrets {
                    let subject = format!("Secret {secret} through {}", name.unversioned());
                    let mut through =
                        entry(Verb::ReadSecrets, subject, Via::Grant, Some(line.clone()), "");
                    through.key = secret;
                    if verb == Verb::ReadSecrets {
                        reach.entries.push(through);
                    }
                }
            }
            if granted.is_empty() && links::host_links(name) && self.target != Target::Ambit {
                let note = "linked for every component that imports it";
                let subject = name.unversioned();
                reach.entries.push(entry(verb, subject, Via::TargetDefault, None, note));
            } else if granted.is_empty() {
                let reason = match self.target {
                    Target::WasmCloud => {
                        "no `hostInterfaces` entry and no sibling serves it, so the workload fails to start"
                    }
                    Target::Spin => "this document doesn't say what serves it",
                    Target::Ambit => "no grant covers it, so it isn't linked",
                };
                reach.missing.push(GrantNote {
                    kind: "interfaces",
                    subject: capability.name.clone(),
                    reason: reason.to_owned(),
                    place: spec.place.clone(),
                });
            }
        }
    }

    /// What a reader should know of a host service, and the Secrets that feed it.
    fn service_note(&self, service: &HostInterface) -> (String, Vec<String>) {
        let secrets: Vec<String> = service
            .references
            .iter()
            .filter(|reference| reference.kind == ReferenceKind::Secret)
            .map(|reference| reference.name.clone())
            .collect();
        let mut note = Vec::new();
        if !secrets.is_empty() {
            note.push(format!("configured from Secret {}", secrets.join(", ")));
        }
        if self.target == Target::WasmCloud {
            note.push("the host dials it; `allowedHosts` doesn't bound it".to_owned());
        }
        (note.join("; "), secrets)
    }

    /// Upper bounds from `hostInterfaces` alone.
    fn interfaces_without_bytes(&self, spec: &ComponentSpec, reach: &mut ComponentReach) {
        for service in &self.workload.host_interfaces {
            if !service.scope.is_empty() && !service.scope.contains(&spec.name) {
                continue;
            }
            let package = format!("{}:{}/", service.namespace, service.package);
            // What the entry lists, and what the package's other interfaces add to it.
            let mut classes: BTreeSet<String> = self
                .catalogue
                .interfaces()
                .filter(|entry| entry.interface.starts_with(&package))
                .flat_map(|entry| self.catalogue.classes_of(&entry.interface))
                .collect();
            let serves = service.interfaces.iter().all(|interface| {
                matches!(interface.name.as_str(), "incoming-handler" | "handler" | "watcher")
            });
            if serves {
                continue;
            }
            if classes.is_empty() {
                classes.insert(format!("unknown:{}:{}", service.namespace, service.package));
            }
            let (note, secrets) = self.service_note(service);
            let mut verbs = BTreeSet::new();
            for id in &classes {
                let Some(class) = self.catalogue.class(id) else { continue };
                if !served_elsewhere(class.verb) || !verbs.insert(class.verb) {
                    continue;
                }
                let subject = services::describe(service, None);
                let key = match (class.verb, secrets.first()) {
                    (Verb::ReadSecrets, Some(secret)) => secret.clone(),
                    _ => subject.clone(),
                };
                let all: Vec<&str> = classes
                    .iter()
                    .filter(|id| self.catalogue.class(id).is_some_and(|c| c.verb == class.verb))
                    .map(String::as_str)
                    .collect();
                reach.entries.push(Entry {
                    verb: class.verb,
                    capability: all.first().copied().unwrap_or_default().to_owned(),
                    subject,
                    key,
                    via: Via::GrantOnly,
                    grant: Some(GrantLine {
                        text: format!("{}:{}", service.namespace, service.package),
                        place: service.place.clone(),
                    }),
                    imports: Vec::new(),
                    note: format!("up to {}; {note}", all.join(", "))
                        .trim_end_matches("; ")
                        .to_owned(),
                    unbounded: false,
                    any_host: false,
                });
            }
        }
    }

    /// What the outside can ask of the component.
    fn exports(&self, analysis: Option<super::Analysis<'_>>, reach: &mut ComponentReach) {
        let entry = |capability: &str, subject: String, via, grant, imports| Entry {
            verb: Verb::ServeRequests,
            capability: capability.to_owned(),
            key: subject.clone(),
            subject,
            via,
            grant,
            imports,
            note: String::new(),
            unbounded: false,
            any_host: false,
        };
        let Some(analysis) = analysis else {
            for service in &self.workload.host_interfaces {
                for interface in &service.interfaces {
                    let unversioned =
                        format!("{}:{}/{}", service.namespace, service.package, interface.name);
                    let serves = matches!(interface.name.as_str(), "incoming-handler" | "handler");
                    if serves {
                        let line = GrantLine { text: unversioned, place: service.place.clone() };
                        let subject = services::describe(service, Some(&interface.name));
                        let http = service.package == "http";
                        let class = if http { "http.serve" } else { "msg.subscribe" };
                        reach.entries.push(entry(
                            class,
                            subject,
                            Via::GrantOnly,
                            Some(line),
                            Vec::new(),
                        ));
                    }
                }
            }
            return;
        };
        for export in &analysis.component.exports {
            let Some(name) = &export.interface else { continue };
            let Some(class) = self.catalogue.export(name).and_then(|e| e.classes.first()) else {
                continue;
            };
            let granted = self.workload.host_interfaces.iter().find(|e| services::gives(e, name));
            let (subject, via, grant) = match granted {
                Some(service) => (
                    services::describe(service, Some(name.interface())),
                    Via::Grant,
                    Some(GrantLine {
                        text: format!("{}:{}", service.namespace, service.package),
                        place: service.place.clone(),
                    }),
                ),
                // Our executor serves what is asked for, and nothing else.
                None if self.target == Target::Ambit => continue,
                None => (name.unversioned(), Via::TargetDefault, None),
            };
            reach.entries.push(entry(class, subject, via, grant, vec![export.name.clone()]));
        }
    }
}

fn files_counted(set: &CapabilitySet) -> bool {
    FILES.iter().any(|class| set.counted.contains(*class))
}

/// Verbs whose imports a sibling or the host serves.
fn served_elsewhere(verb: Verb) -> bool {
    match verb {
        Verb::UseHostService
        | Verb::CallTool
        | Verb::UseModel
        | Verb::RunOtherCode
        | Verb::ReadSecrets => true,
        Verb::ReachHosts
        | Verb::LookUpNames
        | Verb::OpenSockets
        | Verb::UseMachinePorts
        | Verb::ReadFolder
        | Verb::ChangeFolder
        | Verb::ReadEnvironment
        | Verb::ServeRequests
        | Verb::None => false,
    }
}

/// The entry as a report prints it: a password in it is masked.
fn shown(entry: &HostEntry) -> String {
    entry.pattern.as_ref().map_or_else(|_| entry.text.clone(), HostPattern::text_for_report)
}
