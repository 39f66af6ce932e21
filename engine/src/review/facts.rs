//! From workload, capabilities and reach to Input v1: facts, so that rules only compare.

use std::collections::{BTreeMap, BTreeSet};

use super::{Subject, Terms};
use crate::capability::CapabilitySet;
use crate::catalogue::Verb;
use crate::ceiling;
use crate::component::Component as Binary;
use crate::evidence::{self, Checked, Evidence, Supply};
use crate::grant::{
    self, AddressClass, Breadth, HostSet, LintContext, PortSet, RefusedFor, SensitiveKind,
};
use crate::input;
use crate::reach::{Bytes, ComponentReach, Reach, Via};
use crate::reference::ImageSource;
use crate::workload::{
    ComponentSpec, EnvSource, HostEntry, Level, Place, Problem, ReferenceKind, Role, Target,
    VolumeSource, Workload, has_secret,
};

pub(super) fn input(
    subject: Subject<'_>,
    terms: &Terms<'_>,
    target: Target,
    reach: &Reach,
    problems: &[Problem],
) -> input::Input {
    let workload = subject.workload;
    let components = workload.components.iter().zip(&reach.components).enumerate();
    let components = components
        .map(|(index, (spec, reached))| {
            let bytes = subject.bytes.get(index).copied().unwrap_or(Bytes::Absent("not read"));
            component(subject, terms, (index, spec, reached), bytes, reach)
        })
        .collect();
    input::Input {
        schema: "v1".to_owned(),
        mode: terms.mode.as_str().to_owned(),
        now: terms.now.to_owned(),
        target: target.as_str().to_owned(),
        request: terms.request.clone(),
        source: input::Source { file: subject.file.to_owned(), line: workload.place.line() },
        workload: input::Workload {
            api_version: workload.api_version.clone(),
            kind: workload.kind.clone(),
            name: workload.name.clone(),
            namespace: workload.namespace.clone(),
            labels: workload.labels.clone(),
            annotations: workload.annotations.clone(),
            namespace_labels: BTreeMap::new(),
            placement: placement(workload),
            components,
            volumes: workload
                .volumes
                .iter()
                .map(|volume| input::Volume {
                    name: volume.name.clone(),
                    kind: volume.kind.to_owned(),
                    path: volume.place.pointer.clone(),
                })
                .collect(),
            host_interfaces: host_interfaces(workload, terms, reach),
            problems: in_order(problems).into_iter().map(problem).collect(),
            paths: reach.paths.iter().map(path).collect(),
        },
        has_previous: terms.previous.is_some(),
        previous: terms.previous.clone(),
    }
}

/// Problems by the place that they name, not by the line: lines depend on who wrote the text.
fn in_order(problems: &[Problem]) -> Vec<&Problem> {
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by(|a, b| {
        let key = |p: &Problem| (p.place.pointer.clone(), p.code, p.message.clone());
        key(a).cmp(&key(b))
    });
    sorted
}

fn placement(workload: &Workload) -> input::Placement {
    let host = workload.placement.host_id.as_ref();
    let environment = workload.placement.environment.as_ref();
    input::Placement {
        has_host_id: host.is_some(),
        host_id: host.map(|named| named.name.clone()),
        has_environment: environment.is_some(),
        environment: environment.map(|named| named.name.clone()),
        foreign_environment: environment.is_some_and(|named| named.name != workload.namespace),
        path: host.or(environment).map(|named| named.place.pointer.clone()).unwrap_or_default(),
    }
}

fn problem(problem: &Problem) -> input::Problem {
    input::Problem {
        code: problem.code.to_owned(),
        level: match problem.level {
            Level::Invalid => "invalid",
            Level::Lint => "lint",
        }
        .to_owned(),
        severity: problem.severity.to_owned(),
        message: problem.message.clone(),
        help: problem.help.clone(),
        component: problem.component.clone(),
        path: problem.place.pointer.clone(),
    }
}

fn path(path: &crate::reach::ReachPath) -> input::ReachPath {
    input::ReachPath {
        source: path.hops.first().cloned().unwrap_or_default(),
        reads: path.reads.join(", "),
        hops: path.hops.clone(),
        sink: path.hops.last().cloned().unwrap_or_default(),
        sends: path.sends.clone(),
        unbounded: path.unbounded,
        host_count: if path.unbounded { 0 } else { path.sends.len() },
        along: path.along.as_str().to_owned(),
        path: path.place.pointer.clone(),
    }
}

fn host_interfaces(
    workload: &Workload,
    terms: &Terms<'_>,
    reach: &Reach,
) -> Vec<input::HostInterface> {
    let entries = workload.host_interfaces.iter().enumerate();
    entries
        .map(|(index, entry)| {
            let classes: BTreeSet<String> = entry
                .interfaces
                .iter()
                .flat_map(|interface| {
                    let name = format!("{}:{}/{}", entry.namespace, entry.package, interface.name);
                    terms.catalogue.classes_of(&name)
                })
                .collect();
            input::HostInterface {
                package: format!("{}:{}", entry.namespace, entry.package),
                interfaces: entry.interfaces.iter().map(|i| i.name.clone()).collect(),
                version: entry.version.clone(),
                config_keys: entry.config.keys().cloned().collect(),
                has_secret: entry.references.iter().any(|r| r.kind == ReferenceKind::Secret),
                classes: classes.into_iter().collect(),
                used: !reach.unused_interfaces.contains(&index),
                path: entry.place.pointer.clone(),
            }
        })
        .collect()
}

/// What a component is: by what it exports, by labels, and by configuration. Labels can add a
/// class and never remove one.
fn classes(
    workload: &Workload,
    spec: &ComponentSpec,
    set: Option<&CapabilitySet>,
    terms: &Terms<'_>,
) -> BTreeSet<String> {
    let mut classes: BTreeSet<String> = set.map(|set| set.roles.clone()).unwrap_or_default();
    for key in ["ambit.dev/class", "mcp.ai/function-type"] {
        match workload.labels.get(key).map(String::as_str) {
            Some("agent") => classes.insert("agent".to_owned()),
            Some("tool" | "tools") => classes.insert("tool".to_owned()),
            Some("service") => classes.insert("service".to_owned()),
            Some(_) | None => false,
        };
    }
    if spec.role == Role::Service {
        classes.insert("service".to_owned());
    }
    let known = classes.clone();
    for rule in &terms.config.classes {
        if ceiling::applies(&rule.matches, workload, spec, &known) {
            classes.insert(rule.class.clone());
        }
    }
    classes
}

fn component(
    subject: Subject<'_>,
    terms: &Terms<'_>,
    (index, spec, reached): (usize, &ComponentSpec, &ComponentReach),
    bytes: Bytes<'_>,
    reach: &Reach,
) -> input::Component {
    let workload = subject.workload;
    let analysis = bytes.analysis();
    let set = analysis.map(|analysis| analysis.capabilities);
    let classes = classes(workload, spec, set, terms);
    let counted = set.map(|set| set.counted.clone()).unwrap_or_default();
    let ceilings = ceiling::facts(
        &terms.config.ceilings,
        &ceiling::Subject {
            workload,
            spec,
            classes: &classes,
            capabilities: set,
            mounts: &reached.mounts,
            counted: &counted,
        },
    );
    let image = image(spec);
    let digest = analysis.map(|analysis| analysis.component.digest.to_string());
    let none = Supply::default();
    let supply = subject.supplies.get(index).unwrap_or(&none);
    // A reference pins a manifest or an index, not the layer below it.
    let pin = image.digest.as_deref().filter(|_| supply.manifest.is_some());
    let named = [&supply.manifest, &supply.index].into_iter().flatten().map(ToString::to_string);
    let digest_matches = pin.is_some_and(|pin| named.into_iter().any(|digest| digest == pin));
    let digest_checked = pin.is_some();
    let unchecked = Checked::default();
    let checked = match &supply.evidence {
        Evidence::Checked(checked) => checked,
        Evidence::NotChecked | Evidence::Unknown(_) => &unchecked,
    };
    let signed = checked.signatures.iter().any(|signature| signature.verified);
    let attested = |types: &[&str]| {
        let mut attestations = checked.attestations.iter();
        attestations
            .any(|a| a.verified && a.subject_matches && types.contains(&a.predicate_type.as_str()))
    };
    let local = matches!(spec.image.source, ImageSource::File(_) | ImageSource::Layout { .. });
    input::Component {
        name: spec.name.clone(),
        role: spec.role.as_str().to_owned(),
        classes: classes.into_iter().collect(),
        path: spec.place.pointer.clone(),
        pinned: image.has_digest || local,
        image,
        bytes: if analysis.is_some() { "present" } else { "absent" }.to_owned(),
        digest,
        digest_checked,
        digest_matches,
        manifest_digest: supply.manifest.as_ref().map(ToString::to_string),
        claims: claims(supply, analysis.map(|analysis| analysis.component)),
        evidence_state: supply.evidence.state().to_owned(),
        trust: checked.trust.clone(),
        signed,
        bad_signature: !signed && checked.signatures.iter().any(|signature| signature.wrong),
        in_transparency_log: checked.signatures.iter().any(|s| s.verified && s.tlog),
        has_provenance: attested(&evidence::PROVENANCE),
        has_sbom: attested(&evidence::SBOM),
        signatures: checked.signatures.clone(),
        attestations: checked.attestations.clone(),
        interfaces: analysis
            .map(|analysis| {
                interfaces(analysis.component, analysis.capabilities, index, reach, workload)
            })
            .unwrap_or_default(),
        capabilities: set.map(|set| capabilities(set, terms)).unwrap_or_default(),
        grants: grants(workload, spec, reached),
        reach: reached.entries.iter().map(reach_entry).collect(),
        dead_grants: reached.dead.iter().map(note).collect(),
        missing_grants: reached.missing.iter().map(note).collect(),
        links: reach
            .links
            .edges
            .iter()
            .filter(|edge| edge.from == index)
            .map(|edge| input::Link {
                interface: edge.interface.clone(),
                provider: workload
                    .components
                    .get(edge.to)
                    .map(|provider| provider.name.clone())
                    .unwrap_or_default(),
            })
            .collect(),
        closure: closure(workload, index, reach),
        resources: input::Resources {
            memory_limited: spec.memory_limited,
            cpu_limited: spec.cpu_limited,
            pool_size: spec.pool_size,
        },
        ceilings,
    }
}

fn claims(supply: &Supply, component: Option<&Binary>) -> input::Claims {
    match (&supply.claims, component) {
        (Some(claims), Some(component)) => {
            let (unnamed_imports, absent_imports) = claims.differences(component);
            input::Claims { known: true, unnamed_imports, absent_imports }
        }
        (None, _) | (_, None) => input::Claims::default(),
    }
}

fn image(spec: &ComponentSpec) -> input::Image {
    let mut image = input::Image {
        raw: spec.image.text.clone(),
        kind: spec.image.source.kind().to_owned(),
        path: spec.image.place.pointer.clone(),
        ..input::Image::default()
    };
    if let ImageSource::Layout { tag, digest, .. } = &spec.image.source {
        image.tag.clone_from(tag);
        image.has_tag = tag.is_some();
        image.digest = digest.as_ref().map(ToString::to_string);
        image.has_digest = digest.is_some();
    }
    if let ImageSource::Oci(reference) = &spec.image.source {
        let repository = reference.repository();
        repository.registry().clone_into(&mut image.registry);
        repository.path().clone_into(&mut image.repository);
        image.name = repository.to_string();
        image.tag = reference.tag().map(str::to_owned);
        image.has_tag = image.tag.is_some();
        image.digest = reference.digest().map(ToString::to_string);
        image.has_digest = image.digest.is_some();
    }
    image
}

fn interfaces(
    binary: &Binary,
    set: &CapabilitySet,
    index: usize,
    reach: &Reach,
    workload: &Workload,
) -> input::Interfaces {
    let imports = binary.imports.iter().zip(&set.imports);
    let imports = imports
        .map(|(import, capability)| {
            let interface = import.interface.as_ref();
            let edge = interface.and_then(|name| {
                let on_track = name.on_track();
                let mut edges = reach.links.edges.iter();
                edges.find(|edge| edge.from == index && edge.interface == on_track)
            });
            let provider = edge.and_then(|edge| workload.components.get(edge.to));
            input::Import {
                name: capability.name.clone(),
                interface: interface.map_or_else(
                    || import.name.clone(),
                    crate::interface::InterfaceName::unversioned,
                ),
                track: interface
                    .and_then(crate::interface::InterfaceName::track)
                    .map(|track| track.to_string())
                    .unwrap_or_default(),
                sort: import.sort.as_str().to_owned(),
                known: capability.known,
                has_near_miss: capability.near_miss.is_some(),
                near_miss: capability.near_miss.clone(),
                classes: capability.declared.iter().cloned().collect(),
                served_by: provider
                    .map_or_else(|| "host".to_owned(), |p| format!("component:{}", p.name)),
            }
        })
        .collect();
    let exports = binary.exports.iter().map(|export| input::Export {
        name: export.name.clone(),
        interface: export
            .interface
            .as_ref()
            .map_or_else(|| export.name.clone(), crate::interface::InterfaceName::unversioned),
        track: export
            .interface
            .as_ref()
            .and_then(crate::interface::InterfaceName::track)
            .map(|track| track.to_string())
            .unwrap_or_default(),
    });
    input::Interfaces { imports, exports: exports.collect() }
}

fn capabilities(set: &CapabilitySet, terms: &Terms<'_>) -> input::Capabilities {
    let names = |found: Vec<&crate::capability::ImportCapability>| {
        found.into_iter().map(|import| import.name.clone()).collect::<Vec<_>>()
    };
    let network = names(set.bearing(terms.catalogue, |class| class.network).collect());
    let filesystem = names(set.bearing(terms.catalogue, |class| class.filesystem).collect());
    input::Capabilities {
        declared: set.declared.iter().cloned().collect(),
        linked: set.linked.iter().cloned().collect(),
        reachable: set.linked.iter().cloned().collect(),
        reachable_computed: false,
        precision: "not-computed".to_owned(),
        counted: set.counted.iter().cloned().collect(),
        unknown: set.unknown().map(|import| import.name.clone()).collect(),
        network: !network.is_empty(),
        filesystem: !filesystem.is_empty(),
        network_imports: network,
        filesystem_imports: filesystem,
    }
}

fn host(entry: &HostEntry, context: &LintContext) -> Option<input::HostGrant> {
    let pattern = entry.pattern.as_ref().ok()?;
    let classes = grant::address_classes(pattern);
    let lints = grant::lints(pattern, context);
    let coded = |code: &str| lints.iter().any(|lint| lint.code() == code);
    let kind = match pattern.host() {
        HostSet::Any => "any",
        HostSet::Subdomains(_) => "suffix",
        HostSet::SubdomainsAndApex(_) => "suffix-and-apex",
        HostSet::Exact(_) => "name",
        HostSet::Ip(_) => "ip",
        HostSet::Cidr(_) => "cidr",
        HostSet::HostInternal => "host-internal",
        HostSet::SelfHost => "self",
    };
    let metadata = classes.contains(&AddressClass::Metadata);
    Some(input::HostGrant {
        raw: pattern.text_for_report(),
        canonical: pattern.canonical(),
        meaning: pattern.describe(),
        kind: kind.to_owned(),
        host: pattern.host().to_string(),
        deny: pattern.is_deny(),
        any_host: matches!(pattern.host(), HostSet::Any),
        any_port: matches!(pattern.ports(), PortSet::Any),
        unbounded: grant::breadth(pattern) == Breadth::Unbounded,
        address_classes: classes.iter().map(|class| class.as_str().to_owned()).collect(),
        metadata,
        special: classes.iter().any(|class| class.is_special()),
        private: classes.iter().any(|class| class.is_private()),
        public_suffix: coded("host-public-suffix"),
        shared_suffix: coded("host-shared-suffix"),
        lints: lints.iter().map(|lint| lint.code().to_owned()).collect(),
        path: entry.place.pointer.clone(),
    })
}

fn grants(workload: &Workload, spec: &ComponentSpec, reached: &ComponentReach) -> input::Grants {
    let secret = has_secret(workload, spec);
    let context = LintContext { has_secret: secret };
    let folders = reached.mounts.iter().filter_map(|effective| {
        let owner = workload.components.get(effective.owner)?;
        let mount = owner.mounts.get(effective.mount)?;
        let volume = workload.volume(&mount.volume)?;
        let host = match &volume.source {
            VolumeSource::Host(path) => Some(path),
            VolumeSource::Ephemeral
            | VolumeSource::Object(..)
            | VolumeSource::Other(_)
            | VolumeSource::Invalid => None,
        };
        let sensitive = host.and_then(grant::HostPath::sensitivity);
        let reads = sensitive.as_ref().is_some_and(|s| s.refused == RefusedFor::ReadAndWrite);
        Some(input::FolderGrant {
            guest: mount.guest.as_ref().map(ToString::to_string).unwrap_or_default(),
            source: if host.is_some() { "host" } else { volume.kind }.to_owned(),
            has_host: host.is_some(),
            host: host.map(ToString::to_string),
            mode: mount.mode.as_str().to_owned(),
            writable: mount.mode.can_write(),
            holds_sensitive: sensitive.as_ref().is_some_and(|s| {
                reads
                    && matches!(
                        s.kind,
                        SensitiveKind::Root | SensitiveKind::Home | SensitiveKind::AncestorOf(_)
                    )
            }),
            sensitive_read: reads,
            sensitive_write: sensitive.is_some(),
            sensitive_reason: sensitive.map(|s| sensitive_words(s.kind)).unwrap_or_default(),
            inherited: effective.inherited,
            owner: owner.name.clone(),
            path: mount.place.pointer.clone(),
        })
    });
    let env = spec.env.iter().map(|entry| {
        let (source, looks_secret, length) = match &entry.source {
            EnvSource::Literal { length, looks_secret, .. } => ("literal", *looks_secret, *length),
            EnvSource::Secret(_) => ("secret", false, 0),
            EnvSource::Config(_) => ("config", false, 0),
        };
        input::EnvGrant {
            name: entry.name.clone(),
            source: source.to_owned(),
            looks_secret,
            length,
            path: entry.place.pointer.clone(),
        }
    });
    let named = |text: &str, place: &Place| input::NamedGrant {
        name: text.to_owned(),
        path: place.pointer.clone(),
    };
    input::Grants {
        hosts: spec.hosts.entries().iter().filter_map(|entry| host(entry, &context)).collect(),
        lookups: spec.lookups.iter().map(|entry| named(&entry.text, &entry.place)).collect(),
        loopback_ports: spec
            .loopback
            .iter()
            .filter_map(|entry| {
                let port = entry.port?;
                let text = format!("{}/{}", port.port(), port.protocol().as_str());
                Some(named(&text, &entry.place))
            })
            .collect(),
        folders: folders.collect(),
        env: env.collect(),
        references: spec
            .references
            .iter()
            .map(|reference| input::ReferenceGrant {
                kind: reference.kind.as_str().to_owned(),
                name: reference.name.clone(),
                into: reference.into.to_owned(),
                path: reference.place.pointer.clone(),
            })
            .collect(),
        has_secret: secret,
    }
}

fn sensitive_words(kind: SensitiveKind) -> String {
    match kind {
        SensitiveKind::Root => "it is the root of the machine".to_owned(),
        SensitiveKind::System => "it belongs to the operating system".to_owned(),
        SensitiveKind::Credentials => "it holds credentials".to_owned(),
        SensitiveKind::ContainerSocket => "it controls the container runtime".to_owned(),
        SensitiveKind::Home => "it is the home of all users or of the administrator".to_owned(),
        SensitiveKind::ServiceAccount => "it holds service account tokens".to_owned(),
        SensitiveKind::AncestorOf(inner) => format!("it holds `{inner}`"),
    }
}

fn reach_entry(entry: &crate::reach::Entry) -> input::ReachEntry {
    input::ReachEntry {
        verb: entry.verb.as_str().to_owned(),
        capability: entry.capability.clone(),
        subject: entry.subject.clone(),
        via: entry.via.to_string(),
        has_grant: entry.grant.is_some(),
        grant: entry.grant.as_ref().map(|grant| grant.text.clone()),
        path: entry.grant.as_ref().map(|grant| grant.place.pointer.clone()).unwrap_or_default(),
    }
}

fn note(note: &crate::reach::GrantNote) -> input::GrantNote {
    input::GrantNote {
        kind: note.kind.to_owned(),
        subject: note.subject.clone(),
        reason: note.reason.clone(),
        path: note.place.pointer.clone(),
    }
}

/// What the members of a closure can do together. A component without bytes counts with what its
/// grants list, and not with what a target would give it if it asked.
fn closure(workload: &Workload, index: usize, reach: &Reach) -> input::Closure {
    let members = reach.links.connected(index);
    let entries = || {
        members.iter().filter_map(|member| reach.components.get(*member)).flat_map(|component| {
            let absent = component.absent.is_some();
            component.entries.iter().filter(move |e| !(absent && e.via == Via::TargetDefault))
        })
    };
    let mut names: Vec<String> = members
        .iter()
        .filter_map(|member| workload.components.get(*member))
        .map(|component| component.name.clone())
        .collect();
    names.sort();
    input::Closure {
        members: names,
        any_host: entries().any(|entry| entry.any_host),
        folder: entries().any(|entry| {
            matches!(entry.verb, Verb::ReadFolder | Verb::ChangeFolder) && !entry.key.is_empty()
        }),
        secret: entries().any(|entry| entry.verb == Verb::ReadSecrets),
    }
}

/// Every place of a workload that a rule can point at, by JSON pointer.
pub(super) fn places(workload: &Workload) -> BTreeMap<&str, &Place> {
    let mut places = Vec::new();
    for component in &workload.components {
        places.push(&component.place);
        places.push(&component.image.place);
        places.extend(component.hosts.entries().iter().map(|entry| &entry.place));
        places.extend(component.lookups.iter().map(|entry| &entry.place));
        places.extend(component.loopback.iter().map(|entry| &entry.place));
        places.extend(component.env.iter().map(|entry| &entry.place));
        places.extend(component.references.iter().map(|entry| &entry.place));
        places.extend(component.mounts.iter().map(|entry| &entry.place));
        places.extend(component.config.iter().map(|entry| &entry.place));
    }
    places.extend(workload.volumes.iter().map(|volume| &volume.place));
    for interface in &workload.host_interfaces {
        places.push(&interface.place);
        places.extend(interface.interfaces.iter().map(|named| &named.place));
        places.extend(interface.references.iter().map(|entry| &entry.place));
    }
    places.extend(workload.placement.host_id.iter().map(|named| &named.place));
    places.extend(workload.placement.environment.iter().map(|named| &named.place));
    places.extend(workload.problems.iter().map(|problem| &problem.place));
    places.push(&workload.place);
    places
        .into_iter()
        .filter(|place| place.span.is_some())
        .map(|place| (place.pointer.as_str(), place))
        .collect()
}
