//! Ceilings: `capabilities ⊆ ceiling` and `grants ⊆ ceiling`, for the components that each matches.

use std::collections::BTreeSet;

use crate::capability::CapabilitySet;
use crate::config::{Ceiling, CeilingMatch};
use crate::grant::{HostGrants, HostPattern};
use crate::input::{self, Excess};
use crate::reach::EffectiveMount;
use crate::reference::ImageSource;
use crate::workload::{ComponentSpec, HostGrantList, VolumeSource, Workload};

/// A component, as far as matching looks at it.
pub(crate) struct Subject<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) spec: &'a ComponentSpec,
    pub(crate) classes: &'a BTreeSet<String>,
    pub(crate) capabilities: Option<&'a CapabilitySet>,
    pub(crate) mounts: &'a [EffectiveMount],
    /// Whether the host list is read as unbounded although the document gives none.
    pub(crate) counted: &'a BTreeSet<String>,
}

/// Tells whether a match takes a component in.
pub(crate) fn applies(
    matches: &CeilingMatch,
    workload: &Workload,
    spec: &ComponentSpec,
    classes: &BTreeSet<String>,
) -> bool {
    let namespace =
        matches.namespace.as_ref().is_none_or(|name| name == "*" || *name == workload.namespace);
    let class = matches.class.as_ref().is_none_or(|class| classes.contains(class));
    let labels = matches.labels.iter().all(|(key, value)| workload.labels.get(key) == Some(value));
    let image = matches.image.as_ref().is_none_or(|prefix| match &spec.image.source {
        ImageSource::Oci(reference) => reference.repository().is_within(prefix),
        ImageSource::File(_)
        | ImageSource::Layout { .. }
        | ImageSource::Artifact(_)
        | ImageSource::Invalid(_) => spec.image.text == *prefix,
    });
    namespace && class && labels && image
}

/// Returns the ceilings that match a component, with what goes over each.
pub(crate) fn facts(ceilings: &[Ceiling], subject: &Subject<'_>) -> Vec<input::Ceiling> {
    ceilings
        .iter()
        .filter(|c| applies(&c.matches, subject.workload, subject.spec, subject.classes))
        .map(|ceiling| input::Ceiling {
            origin: ceiling.origin.clone(),
            excess: excess(ceiling, subject),
        })
        .collect()
}

fn listed<T: ToString>(items: &[T]) -> String {
    if items.is_empty() {
        return "nothing".to_owned();
    }
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn allows_class(ceiling: &Ceiling, class: &str) -> bool {
    ceiling.capabilities.iter().any(|allowed| {
        allowed == class
            || allowed == "*"
            || allowed.strip_suffix(".*").is_some_and(|prefix| {
                class.strip_prefix(prefix).is_some_and(|r| r.starts_with('.'))
            })
    })
}

fn excess(ceiling: &Ceiling, subject: &Subject<'_>) -> Vec<Excess> {
    let mut found = Vec::new();
    let spec = subject.spec;
    for class in subject.counted {
        if !allows_class(ceiling, class) {
            let bearers: Vec<String> = subject
                .capabilities
                .into_iter()
                .flat_map(|set| set.bearers(class).map(|import| import.name.clone()))
                .collect();
            found.push(Excess {
                kind: "capability".to_owned(),
                value: class.clone(),
                because: bearers.join(", "),
                allowed: listed(&ceiling.capabilities),
                path: spec.place.pointer.clone(),
            });
        }
    }
    hosts(ceiling, subject, &mut found);
    folders(ceiling, subject, &mut found);
    for interface in &subject.workload.host_interfaces {
        let package = format!("{}:{}", interface.namespace, interface.package);
        for name in &interface.interfaces {
            let full = format!("{package}/{}", name.name);
            let serves = matches!(name.name.as_str(), "incoming-handler" | "handler");
            let allowed = ceiling.interfaces.iter().any(|i| *i == full || *i == package);
            if !serves && !allowed {
                found.push(Excess {
                    kind: "interface".to_owned(),
                    value: full,
                    because: format!("hostInterfaces entry `{package}`"),
                    allowed: listed(&ceiling.interfaces),
                    path: name.place.pointer.clone(),
                });
            }
        }
    }
    found
}

fn hosts(ceiling: &Ceiling, subject: &Subject<'_>, found: &mut Vec<Excess>) {
    let spec = subject.spec;
    let allowed = HostGrants::new(ceiling.hosts.clone());
    let words = listed(&ceiling.hosts);
    match &spec.hosts {
        HostGrantList::Elsewhere(reason) => {
            let unbounded = HostGrants::new(ceiling.hosts.clone());
            let any = unbounded
                .entries()
                .iter()
                .any(|own| matches!(own.host(), crate::grant::HostSet::Any));
            if !any {
                found.push(Excess {
                    kind: "host".to_owned(),
                    value: "hosts that this document doesn't list".to_owned(),
                    because: (*reason).to_owned(),
                    allowed: words,
                    path: spec.place.pointer.clone(),
                });
            }
        }
        HostGrantList::Listed(entries) => {
            let denies: Vec<HostPattern> = entries
                .iter()
                .filter_map(|entry| entry.pattern.clone().ok())
                .filter(HostPattern::is_deny)
                .collect();
            for entry in entries {
                let Ok(pattern) = &entry.pattern else { continue };
                let mut one = denies.clone();
                one.push(pattern.clone());
                let over = allowed.first_not_covered(&HostGrants::new(one)).is_some();
                if !pattern.is_deny() && over {
                    found.push(Excess {
                        kind: "host".to_owned(),
                        value: pattern.describe(),
                        because: pattern.text_for_report(),
                        allowed: words.clone(),
                        path: entry.place.pointer.clone(),
                    });
                }
            }
        }
    }
}

fn folders(ceiling: &Ceiling, subject: &Subject<'_>, found: &mut Vec<Excess>) {
    let allowed: Vec<String> = ceiling
        .folders
        .iter()
        .map(|folder| {
            format!(
                "{} ({})",
                folder.path,
                if folder.writable { "read-write" } else { "read-only" }
            )
        })
        .collect();
    for effective in subject.mounts {
        let owner = subject.workload.components.get(effective.owner);
        let Some(mount) = owner.and_then(|owner| owner.mounts.get(effective.mount)) else {
            continue;
        };
        let Some(volume) = subject.workload.volume(&mount.volume) else { continue };
        let writable = mount.mode.can_write();
        let (value, fits) = match &volume.source {
            VolumeSource::Ephemeral | VolumeSource::Invalid => continue,
            VolumeSource::Host(path) => {
                let fits = ceiling
                    .folders
                    .iter()
                    .any(|own| own.path.covers(path) && (own.writable || !writable));
                (path.to_string(), fits)
            }
            VolumeSource::Object(kind, name) => (format!("{} {name}", kind.as_str()), false),
            VolumeSource::Other(kind) => (format!("{kind} `{}`", volume.name), false),
        };
        if !fits {
            found.push(Excess {
                kind: "folder".to_owned(),
                value: format!("{value} ({})", mount.mode.as_str()),
                because: format!("mount of volume `{}`", mount.volume),
                allowed: if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") },
                path: mount.place.pointer.clone(),
            });
        }
    }
}
