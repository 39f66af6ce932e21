//! wasmCloud's WorkloadSpec (`runtime.wasmcloud.dev/v1alpha1`), as its CRDs define it.

use super::name::looks_secret;
use super::read::{named, no_image, pairs, place, reference};
use super::{
    ComponentSpec, ConfigEntry, EnvEntry, EnvSource, HostEntry, HostGrantList, HostInterface,
    Image, Level, LookupEntry, LoopbackEntry, Mount, Place, Private, Problem, ReferenceEntry,
    ReferenceKind, Role, Volume, VolumeSource, Workload,
};
use crate::document::{FieldProblem, Fields, Text};
use crate::grant::{
    Dialect, FolderMode, GuestPath, HostPath, HostPattern, LookupPattern, LoopbackPort,
};
use crate::reference::ImageSource;

/// What the reading of a specification depends on.
pub(super) struct Spec {
    /// The dialect of host entries.
    pub(super) dialect: Dialect,
}

/// Returns a component with nothing in it.
pub(super) fn empty_component() -> ComponentSpec {
    ComponentSpec {
        name: String::new(),
        role: Role::Component,
        place: Place::default(),
        image: no_image(Place::default()),
        hosts: HostGrantList::Listed(Vec::new()),
        lookups: Vec::new(),
        loopback: Vec::new(),
        env: Vec::new(),
        references: Vec::new(),
        config: Vec::new(),
        mounts: Vec::new(),
        memory_limited: false,
        memory_bytes: None,
        cpu_limited: false,
        pool_size: 0,
        max_concurrency: None,
    }
}

/// Reads a WorkloadSpec.
pub(super) fn spec(
    workload: &mut Workload,
    mut fields: Fields<'_>,
    context: &Spec,
    problems: &mut Vec<FieldProblem>,
) {
    fields.ignore(&["hostSelector"]);
    workload.placement.host_id = fields.string("hostId", problems).as_ref().map(named);
    workload.placement.environment = fields.string("environment", problems).as_ref().map(named);
    if let Some(inner) = fields.mapping("kubernetes", problems) {
        kubernetes(inner, problems);
    }
    for (pointer, node) in fields.sequence("volumes", problems) {
        if let Some(entry) = Fields::new(node, pointer, problems) {
            volume(workload, entry, problems);
        }
    }
    for (pointer, node) in fields.sequence("hostInterfaces", problems) {
        if let Some(entry) = Fields::new(node, pointer, problems)
            && let Some(interface) = host_interface(entry, problems)
        {
            workload.host_interfaces.push(interface);
        }
    }
    for (pointer, node) in fields.sequence("components", problems) {
        let Some(mut entry) = Fields::new(node, pointer, problems) else { continue };
        let name = entry.required_string("name", problems);
        let name = name.map(|name| name.as_str().to_owned()).unwrap_or_default();
        component(workload, entry, (name, Role::Component), context, problems);
    }
    if let Some(entry) = fields.mapping("service", problems) {
        component(workload, entry, ("service".to_owned(), Role::Service), context, problems);
    }
    fields.finish(problems);
}

/// Reads `kubernetes.service.name`: it names a Service and grants nothing.
pub(super) fn kubernetes(mut fields: Fields<'_>, problems: &mut Vec<FieldProblem>) {
    if let Some(mut service) = fields.mapping("service", problems) {
        service.required_string("name", problems);
        service.finish(problems);
    }
    fields.finish(problems);
}

/// Adds a template's labels and annotations.
pub(super) fn template_metadata(
    workload: &mut Workload,
    template: &mut Fields<'_>,
    problems: &mut Vec<FieldProblem>,
) {
    workload.labels.extend(pairs(&template.string_map("labels", problems)));
    workload.annotations.extend(pairs(&template.string_map("annotations", problems)));
    if let Some(mut metadata) = template.mapping("metadata", problems) {
        workload.labels.extend(pairs(&metadata.string_map("labels", problems)));
        workload.annotations.extend(pairs(&metadata.string_map("annotations", problems)));
    }
}

/// Reads the required `image`.
pub(super) fn image(fields: &mut Fields<'_>, problems: &mut Vec<FieldProblem>) -> Image {
    let at = Place {
        pointer: fields.pointer_to("image").as_str().to_owned(),
        span: Some(fields.span()),
    };
    match fields.required_string("image", problems) {
        Some(text) => Image {
            text: text.as_str().to_owned(),
            source: ImageSource::parse(text.as_str()),
            place: place(&text),
            artifact: None,
        },
        None => no_image(at),
    }
}

/// Reads `imagePullSecret`.
pub(super) fn pull_secret(
    fields: &mut Fields<'_>,
    references: &mut Vec<ReferenceEntry>,
    problems: &mut Vec<FieldProblem>,
) {
    let pointer = fields.pointer_to("imagePullSecret");
    if let Some(node) = fields.node("imagePullSecret") {
        let kind = ReferenceKind::PullSecret;
        references.extend(reference(node, pointer, kind, "pull", problems));
    }
}

fn component(
    workload: &mut Workload,
    mut fields: Fields<'_>,
    (name, role): (String, Role),
    context: &Spec,
    problems: &mut Vec<FieldProblem>,
) {
    let mut component = ComponentSpec {
        name,
        role,
        place: Place { pointer: fields.pointer().as_str().to_owned(), span: Some(fields.span()) },
        image: image(&mut fields, problems),
        ..empty_component()
    };
    fields.string("imagePullPolicy", problems);
    pull_secret(&mut fields, &mut component.references, problems);
    match role {
        Role::Service => {
            fields.u32("maxRestarts", problems);
        }
        Role::Component
        | Role::Container
        | Role::Init
        | Role::Ephemeral
        | Role::Volume
        | Role::Artifact
        | Role::Bare => {
            component.pool_size = fields.u64("poolSize", problems).map_or(0, |n| *n.value());
            fields.u64("maxInvocations", problems);
            component.max_concurrency = fields.u64("maxConcurrency", problems).map(|n| *n.value());
        }
    }
    if let Some(resources) = fields.mapping("localResources", problems) {
        local_resources(workload, &mut component, resources, context, problems);
    }
    fields.finish(problems);
    workload.components.push(component);
}

fn local_resources(
    workload: &mut Workload,
    component: &mut ComponentSpec,
    mut fields: Fields<'_>,
    context: &Spec,
    problems: &mut Vec<FieldProblem>,
) {
    let hosts = fields.string_list("allowedHosts", problems);
    component.hosts =
        HostGrantList::Listed(hosts.iter().map(|text| host_entry(text, context.dialect)).collect());
    for text in fields.string_list("allowedIpNameLookups", problems) {
        let pattern = LookupPattern::parse(text.as_str());
        if let Err(error) = &pattern {
            workload.problems.push(Problem {
                code: error.code(),
                level: Level::Invalid,
                severity: "high",
                message: format!("`{}`: {error}", text.as_str()),
                help: error.help().unwrap_or_default().to_owned(),
                component: component.name.clone(),
                place: place(&text),
            });
        }
        component.lookups.push(LookupEntry {
            text: text.as_str().to_owned(),
            place: place(&text),
            pattern: pattern.ok(),
        });
    }
    for text in fields.string_list("allowedHostLoopbackPorts", problems) {
        let port = LoopbackPort::parse(text.as_str());
        if let Err(error) = &port {
            workload.problems.push(Problem {
                code: error.code(),
                level: Level::Invalid,
                severity: "high",
                message: format!("`{}`: {error}", text.as_str()),
                help: error.help().unwrap_or_default().to_owned(),
                component: component.name.clone(),
                place: place(&text),
            });
        }
        component.loopback.push(LoopbackEntry {
            text: text.as_str().to_owned(),
            place: place(&text),
            port: port.ok(),
        });
    }
    if let Some(environment) = fields.mapping("environment", problems) {
        environment_values(component, environment, problems);
    }
    let config = fields.string_map("config", problems);
    let entry = |(key, value): &(Text<'_>, Text<'_>)| ConfigEntry {
        name: key.as_str().to_owned(),
        value: Private::new(value.as_str()),
        place: place(key),
    };
    component.config = config.iter().map(entry).collect();
    for (pointer, node) in fields.sequence("volumeMounts", problems) {
        if let Some(entry) = Fields::new(node, pointer, problems) {
            mount(workload, component, entry, problems);
        }
    }
    // Cosmonic Desktop's own fields; the cluster's CRD prunes them.
    let megabytes = fields.u64("memoryLimitMb", problems).map(|n| *n.value());
    component.memory_bytes = megabytes.map(|n| n.saturating_mul(1024 * 1024));
    for (key, limited) in
        [("memoryLimitMb", &mut component.memory_limited), ("cpuLimit", &mut component.cpu_limited)]
    {
        if let Some(node) = fields.node(key) {
            *limited = true;
            workload.problems.push(Problem {
                code: "manifest-pruned-field",
                level: Level::Lint,
                severity: "low",
                message: format!("`{key}` is Desktop's own field; a cluster's CRD drops it"),
                help: "set the limit on the host".to_owned(),
                component: component.name.clone(),
                place: Place {
                    pointer: fields.pointer_to(key).as_str().to_owned(),
                    span: Some(node.span()),
                },
            });
        }
    }
    fields.finish(problems);
}

/// Reads one entry of a host list in a dialect.
pub(super) fn host_entry(text: &Text<'_>, dialect: Dialect) -> HostEntry {
    HostEntry {
        text: text.as_str().to_owned(),
        place: place(text),
        pattern: HostPattern::parse(text.as_str(), dialect),
    }
}

fn environment_values(
    component: &mut ComponentSpec,
    mut fields: Fields<'_>,
    problems: &mut Vec<FieldProblem>,
) {
    for (key, value) in fields.string_map("config", problems) {
        component.env.push(EnvEntry {
            name: key.as_str().to_owned(),
            source: EnvSource::Literal {
                length: value.as_str().len(),
                looks_secret: looks_secret(key.as_str(), value.as_str()),
                value: Private::new(value.as_str()),
            },
            key: String::new(),
            place: place(&value),
        });
    }
    for (key, kind) in
        [("configFrom", ReferenceKind::Config), ("secretFrom", ReferenceKind::Secret)]
    {
        for (pointer, node) in fields.sequence(key, problems) {
            component.references.extend(reference(node, pointer, kind, "environment", problems));
        }
    }
    fields.finish(problems);
}

fn mount(
    workload: &mut Workload,
    component: &mut ComponentSpec,
    mut fields: Fields<'_>,
    problems: &mut Vec<FieldProblem>,
) {
    let at = Place { pointer: fields.pointer().as_str().to_owned(), span: Some(fields.span()) };
    let volume = fields.required_string("name", problems);
    let path = fields.required_string("mountPath", problems);
    let read_only = fields.bool("readOnly", problems).is_some_and(|flag| *flag.value());
    fields.finish(problems);
    let (Some(volume), Some(path)) = (volume, path) else { return };
    let guest = match GuestPath::parse(path.as_str()) {
        Ok(guest) => Some(guest),
        Err(error) => {
            workload.problems.push(Problem {
                code: error.code(),
                level: Level::Invalid,
                severity: "high",
                message: format!("`mountPath: {}`: {error}", path.as_str()),
                help: error.help().unwrap_or_default().to_owned(),
                component: component.name.clone(),
                place: place(&path),
            });
            None
        }
    };
    component.mounts.push(Mount {
        volume: volume.as_str().to_owned(),
        guest,
        mode: if read_only { FolderMode::ReadOnly } else { FolderMode::ReadWrite },
        place: at,
    });
}

fn volume(workload: &mut Workload, mut fields: Fields<'_>, problems: &mut Vec<FieldProblem>) {
    let at = Place { pointer: fields.pointer().as_str().to_owned(), span: Some(fields.span()) };
    let Some(name) = fields.required_string("name", problems) else { return };
    let ephemeral = fields.node("ephemeral").is_some_and(|node| !node.is_null());
    let path = fields.mapping("hostPath", problems).and_then(|mut host| {
        let path = host.required_string("path", problems);
        host.ignore(&["type"]);
        host.finish(problems);
        path
    });
    fields.finish(problems);
    let mut complain = |code, message: String, help: &str, place: Place| {
        workload.problems.push(Problem {
            code,
            level: Level::Invalid,
            severity: "critical",
            message,
            help: help.to_owned(),
            component: String::new(),
            place,
        });
    };
    let (source, kind) = match (&path, ephemeral) {
        (Some(path), true) => {
            let message = format!(
                "volume `{}` is both `ephemeral` and `hostPath: {}`, and hosts disagree on which one counts",
                name.as_str(),
                path.as_str()
            );
            complain("volume-ambiguous", message, "delete one of the two", at.clone());
            (VolumeSource::Invalid, "both")
        }
        (Some(path), false) => match HostPath::parse(path.as_str()) {
            Ok(host) => (VolumeSource::Host(host), "host"),
            Err(error) => {
                let message = format!("`hostPath: {}`: {error}", path.as_str());
                complain(error.code(), message, error.help().unwrap_or_default(), place(path));
                (VolumeSource::Invalid, "none")
            }
        },
        (None, true) => (VolumeSource::Ephemeral, "ephemeral"),
        (None, false) => {
            let message = format!("volume `{}` has no source", name.as_str());
            let help = "write `ephemeral: {}` or `hostPath: {path: …}`";
            complain("volume-no-source", message, help, at.clone());
            (VolumeSource::Invalid, "none")
        }
    };
    workload.volumes.push(Volume { name: name.as_str().to_owned(), source, kind, place: at });
}

fn host_interface(
    mut fields: Fields<'_>,
    problems: &mut Vec<FieldProblem>,
) -> Option<HostInterface> {
    let at = Place { pointer: fields.pointer().as_str().to_owned(), span: Some(fields.span()) };
    let namespace = fields.required_string("namespace", problems);
    let package = fields.required_string("package", problems);
    let interfaces = fields.string_list("interfaces", problems);
    if interfaces.is_empty() {
        fields.missing("interfaces", problems);
    }
    let version = fields.string("version", problems);
    let name = fields.string("name", problems);
    let config = pairs(&fields.string_map("config", problems));
    let mut references = Vec::new();
    for (key, kind) in
        [("configFrom", ReferenceKind::Config), ("secretFrom", ReferenceKind::Secret)]
    {
        for (pointer, node) in fields.sequence(key, problems) {
            references.extend(reference(node, pointer, kind, "interface", problems));
        }
    }
    fields.finish(problems);
    let scope = config.get("components").map_or_else(Vec::new, |names| {
        names.split(',').map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()).collect()
    });
    Some(HostInterface {
        namespace: namespace?.as_str().to_owned(),
        package: package?.as_str().to_owned(),
        version: version.map(|version| version.as_str().to_owned()).unwrap_or_default(),
        interfaces: interfaces.iter().map(named).collect(),
        name: name.map(|name| name.as_str().to_owned()),
        config,
        references,
        scope,
        place: at,
    })
}
