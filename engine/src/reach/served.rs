//! Imports that siblings or host services serve, and what the exports offer.

use std::collections::BTreeSet;

use super::entries::Context;
use super::{Analysis, ComponentReach, Entry, GrantLine, GrantNote, Via, links, services};
use crate::catalogue::Verb;
use crate::workload::{ComponentSpec, HostInterface, ReferenceKind, Target};

impl Context<'_> {
    /// Imports that neither hosts, folders nor the environment narrow: siblings, host services,
    /// models, tools and code.
    pub(super) fn imports(
        &self,
        index: usize,
        spec: &ComponentSpec,
        analysis: Analysis<'_>,
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
    pub(super) fn service_note(&self, service: &HostInterface) -> (String, Vec<String>) {
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
    pub(super) fn interfaces_without_bytes(
        &self,
        spec: &ComponentSpec,
        reach: &mut ComponentReach,
    ) {
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
    pub(super) fn exports(&self, analysis: Option<Analysis<'_>>, reach: &mut ComponentReach) {
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
