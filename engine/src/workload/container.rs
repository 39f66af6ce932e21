//! Pods, pod templates and `SpinApp`: wasm under containerd shims.
//!
//! These documents list no outbound hosts. Spin's list is in the application's own manifest, inside
//! the image; other shims give a component the pod's network. The reading says so instead of
//! claiming an empty list. Fields of Kubernetes that grant nothing are left to the API server.

use super::name::looks_secret;
use super::read::{elsewhere, no_image, place, reference};
use super::wasmcloud::{empty_component, image};
use super::{
    ComponentSpec, EnvEntry, EnvSource, Image, Level, Mount, Place, Private, Problem,
    ReferenceEntry, ReferenceKind, Role, Volume, VolumeSource, Workload,
};
use crate::document::Node;
use crate::document::{FieldProblem, Fields, Pointer, Text};
use crate::grant::{FolderMode, GuestPath, HostPath};
use crate::reference::ImageSource;

/// Words of runtime class names that stand for a wasm runtime.
const RUNTIME_WORDS: [&str; 9] =
    ["wasm", "spin", "wasmtime", "wasmedge", "wasmer", "wws", "slight", "wamr", "lunatic"];

/// Where the hosts of a Spin application are listed.
const IN_SPIN_TOML: &str =
    "the application's own manifest inside the image lists its hosts (`allowed_outbound_hosts`)";

/// What shims other than Spin's do.
const POD_NETWORK: &str = "the shim gives the component the pod's network";

/// Returns the path from an object of a kind to its pod specification.
pub(super) fn template(api_version: &str, kind: &str) -> Option<&'static [&'static str]> {
    match (api_version, kind) {
        ("v1", "Pod") => Some(&["spec"]),
        ("v1", "ReplicationController")
        | ("apps/v1", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch/v1", "Job") => Some(&["spec", "template", "spec"]),
        ("batch/v1", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
        ("v1", "PodTemplate") => Some(&["template", "spec"]),
        _ => None,
    }
}

fn follow<'a>(node: &'a Node, pointer: &Pointer, path: &[&str]) -> Option<(&'a Node, Pointer)> {
    let mut at = (node, pointer.clone());
    for key in path {
        at = (at.0.get(key)?, at.1.key(key));
    }
    Some(at)
}

/// Tells whether a pod runs wasm: by its runtime class, by the annotation of the compatibility
/// shims, or by an image that names a wasm file.
pub(super) fn is_wasm(object: &Node, path: &[&str]) -> bool {
    let pointer = Pointer::default();
    let Some((spec, _)) = follow(object, &pointer, path) else { return false };
    let word = |text: &str| {
        let text = text.to_ascii_lowercase();
        RUNTIME_WORDS.iter().any(|word| text.contains(word))
    };
    if spec.get("runtimeClassName").and_then(Node::as_str).is_some_and(word) {
        return true;
    }
    let parent = path.split_last().map_or(&[][..], |(_, parent)| parent);
    let annotated = [follow(object, &pointer, parent), Some((object, pointer))]
        .into_iter()
        .flatten()
        .filter_map(|(node, _)| node.get("metadata")?.get("annotations"))
        .any(|annotations| annotations.get("module.wasm.image/variant").is_some());
    let image = ["containers", "initContainers", "ephemeralContainers"].iter().any(|list| {
        let containers = spec.get(list).and_then(Node::as_sequence).unwrap_or_default();
        containers
            .iter()
            .filter_map(|container| container.get("image")?.as_str())
            .any(|image| image.starts_with("file:") || image.contains(".wasm"))
    });
    annotated || image || runner(spec)
}

/// Tells whether a container runs Spin's own command on an application: spin-operator starts pods
/// so where an executor names a `spinImage`.
fn runner(spec: &Node) -> bool {
    let containers = spec.get("containers").and_then(Node::as_sequence).unwrap_or_default();
    containers.iter().any(|container| spin_up(container).is_some())
}

/// Returns the argument of a container that names a Spin application, with its index in `args` or
/// `command`: `up -f REF`, `spin up --from REF`. A file on disk is none.
fn spin_up(container: &Node) -> Option<(&'static str, usize, &Node)> {
    let list = |key: &'static str| {
        let nodes = container.get(key).and_then(Node::as_sequence).unwrap_or_default();
        nodes.iter().enumerate().map(move |(index, node)| (key, index, node))
    };
    let words: Vec<_> = list("command").chain(list("args")).collect();
    let text = |at: usize| words.get(at).and_then(|(_, _, node)| node.as_str());
    let first = match (text(0), text(1)) {
        (Some("up"), _) => 1,
        (Some(command), Some("up")) if command.rsplit('/').next() == Some("spin") => 2,
        _ => return None,
    };
    let rest = words.get(first..)?;
    let flag = |word: &str| matches!(word, "-f" | "--from" | "-r" | "--from-registry");
    let after = rest.iter().zip(rest.get(1..)?);
    after
        .filter(|((_, _, word), _)| word.as_str().is_some_and(flag))
        .map(|(_, value)| *value)
        .find(|(_, _, value)| value.as_str().is_some_and(|text| !is_path(text)))
}

/// Tells whether what `spin up --from` names is a file rather than a reference.
fn is_path(text: &str) -> bool {
    let toml = text.rsplit('.').next().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
    toml || text.starts_with(['.', '/', '~'])
}

/// Reads a pod or pod template.
pub(super) fn pod(
    workload: &mut Workload,
    object: &Node,
    pointer: &Pointer,
    path: &[&str],
    problems: &mut Vec<FieldProblem>,
) {
    let parent = path.split_last().map_or(&[][..], |(_, parent)| parent);
    if let Some((template, at)) = follow(object, pointer, parent)
        && !parent.is_empty()
        && let Some(metadata) = template.get("metadata")
        && let Some(mut fields) = Fields::new(metadata, at.key("metadata"), problems)
    {
        workload.labels.extend(super::read::pairs(&fields.string_map("labels", problems)));
        let annotations = fields.string_map("annotations", problems);
        workload.annotations.extend(super::read::pairs(&annotations));
    }
    let Some((spec, at)) = follow(object, pointer, path) else { return };
    let spin = spec
        .get("runtimeClassName")
        .and_then(Node::as_str)
        .is_some_and(|class| class.to_ascii_lowercase().contains("spin"));
    let hosts = if spin { IN_SPIN_TOML } else { POD_NETWORK };
    let Some(mut fields) = Fields::new(spec, at, problems) else { return };
    let mut images = Vec::new();
    for (pointer, node) in fields.sequence("volumes", problems) {
        images.extend(image_volume(node, &pointer));
        if let Some(entry) = Fields::new(node, pointer, problems) {
            volume(workload, entry, problems);
        }
    }
    let mut pull = Vec::new();
    for (pointer, node) in fields.sequence("imagePullSecrets", problems) {
        pull.extend(reference(node, pointer, ReferenceKind::PullSecret, "pull", problems));
    }
    for (key, role) in [
        ("containers", Role::Container),
        ("initContainers", Role::Init),
        ("ephemeralContainers", Role::Ephemeral),
    ] {
        for (pointer, node) in fields.sequence(key, problems) {
            if let Some(entry) = Fields::new(node, pointer.clone(), problems) {
                let mut component = container(workload, entry, role, problems);
                component.hosts = elsewhere(hosts);
                if let Some((list, index, reference)) = spin_up(node) {
                    let place = pointer.key(list).index(index).as_str().to_owned();
                    component.image = named_image(reference, place);
                    component.hosts = elsewhere(IN_SPIN_TOML);
                }
                component.references.extend(pull.iter().cloned());
                workload.components.push(component);
            }
        }
    }
    for mut component in images {
        component.references.extend(pull.iter().cloned());
        workload.components.push(component);
    }
}

fn named_image(node: &Node, pointer: String) -> Image {
    let text = node.as_str().unwrap_or_default().to_owned();
    let source = ImageSource::parse(&text);
    Image { text, source, place: Place { pointer, span: Some(node.span()) }, artifact: None }
}

/// An image that a pod mounts: what is in it may be run by whoever sees the folder.
fn image_volume(volume: &Node, pointer: &Pointer) -> Option<ComponentSpec> {
    let node = volume.get("image")?;
    let pointer = pointer.key("image");
    let reference = node.get("reference")?;
    let name = volume.get("name").and_then(Node::as_str).unwrap_or_default();
    Some(ComponentSpec {
        name: format!("volume/{name}"),
        role: Role::Volume,
        place: Place { pointer: pointer.as_str().to_owned(), span: Some(node.span()) },
        image: named_image(reference, pointer.key("reference").as_str().to_owned()),
        ..empty_component()
    })
}

fn container(
    workload: &mut Workload,
    mut fields: Fields<'_>,
    role: Role,
    problems: &mut Vec<FieldProblem>,
) -> ComponentSpec {
    let name = fields.required_string("name", problems);
    let mut component = ComponentSpec {
        name: name.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        role,
        place: Place { pointer: fields.pointer().as_str().to_owned(), span: Some(fields.span()) },
        image: image(&mut fields, problems),
        ..empty_component()
    };
    environment(&mut component, &mut fields, "env", problems);
    for (pointer, node) in fields.sequence("envFrom", problems) {
        let Some(mut from) = Fields::new(node, pointer, problems) else { continue };
        for (key, kind) in
            [("secretRef", ReferenceKind::Secret), ("configMapRef", ReferenceKind::Config)]
        {
            let pointer = from.pointer_to(key);
            if let Some(node) = from.node(key) {
                component.references.extend(reference(
                    node,
                    pointer,
                    kind,
                    "environment",
                    problems,
                ));
            }
        }
    }
    mounts(workload, &mut component, &mut fields, problems);
    resources(&mut component, &mut fields, problems);
    component
}

fn resources(
    component: &mut ComponentSpec,
    fields: &mut Fields<'_>,
    problems: &mut Vec<FieldProblem>,
) {
    if let Some(mut resources) = fields.mapping("resources", problems)
        && let Some(mut limits) = resources.mapping("limits", problems)
    {
        component.memory_limited = limits.node("memory").is_some_and(|node| !node.is_null());
        component.cpu_limited = limits.node("cpu").is_some_and(|node| !node.is_null());
    }
}

fn environment(
    component: &mut ComponentSpec,
    fields: &mut Fields<'_>,
    key: &str,
    problems: &mut Vec<FieldProblem>,
) {
    for (pointer, node) in fields.sequence(key, problems) {
        let Some(mut entry) = Fields::new(node, pointer, problems) else { continue };
        let Some(name) = entry.required_string("name", problems) else { continue };
        let name = name.as_str().to_owned();
        let at = Place { pointer: entry.pointer().as_str().to_owned(), span: Some(entry.span()) };
        let value: Option<Text<'_>> = entry.string("value", problems);
        let mut key = String::new();
        let source = match (value, entry.mapping("valueFrom", problems)) {
            (Some(value), _) => EnvSource::Literal {
                length: value.as_str().len(),
                looks_secret: looks_secret(&name, value.as_str()),
                value: Private::new(value.as_str()),
            },
            (None, Some(mut from)) => {
                let mut object = |inner: Option<Fields<'_>>, problems: &mut Vec<FieldProblem>| {
                    let Some(mut inner) = inner else { return String::new() };
                    let named = inner.string("key", problems);
                    key = named.map(|key| key.as_str().to_owned()).unwrap_or_default();
                    let name = inner.required_string("name", problems);
                    name.map(|name| name.as_str().to_owned()).unwrap_or_default()
                };
                match from.mapping("secretKeyRef", problems) {
                    Some(inner) => EnvSource::Secret(object(Some(inner), problems)),
                    None => {
                        let inner = from.mapping("configMapKeyRef", problems);
                        EnvSource::Config(match inner {
                            Some(inner) => object(Some(inner), problems),
                            None => "the pod's own fields".to_owned(),
                        })
                    }
                }
            }
            (None, None) => {
                EnvSource::Literal { length: 0, looks_secret: false, value: Private::default() }
            }
        };
        component.env.push(EnvEntry { name, source, key, place: at });
    }
}

fn mounts(
    workload: &mut Workload,
    component: &mut ComponentSpec,
    fields: &mut Fields<'_>,
    problems: &mut Vec<FieldProblem>,
) {
    for (pointer, node) in fields.sequence("volumeMounts", problems) {
        let Some(mut entry) = Fields::new(node, pointer, problems) else { continue };
        let volume = entry.required_string("name", problems);
        let path = entry.required_string("mountPath", problems);
        let read_only = entry.bool("readOnly", problems).is_some_and(|flag| *flag.value());
        let at = Place { pointer: entry.pointer().as_str().to_owned(), span: Some(entry.span()) };
        let (Some(volume), Some(path)) = (volume, path) else { continue };
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
}

fn volume(workload: &mut Workload, mut fields: Fields<'_>, problems: &mut Vec<FieldProblem>) {
    let at = Place { pointer: fields.pointer().as_str().to_owned(), span: Some(fields.span()) };
    let Some(name) = fields.required_string("name", problems) else { return };
    let text = |node: Option<&Node>, key: &str| {
        node.and_then(|node| node.get(key)).and_then(Node::as_str).unwrap_or_default().to_owned()
    };
    let (source, kind) = if let Some(mut host) = fields.mapping("hostPath", problems) {
        match host.required_string("path", problems) {
            Some(path) => match HostPath::parse(path.as_str()) {
                Ok(host) => (VolumeSource::Host(host), "host"),
                Err(error) => {
                    workload.problems.push(Problem {
                        code: error.code(),
                        level: Level::Invalid,
                        severity: "critical",
                        message: format!("`hostPath: {}`: {error}", path.as_str()),
                        help: error.help().unwrap_or_default().to_owned(),
                        component: String::new(),
                        place: place(&path),
                    });
                    (VolumeSource::Invalid, "none")
                }
            },
            None => (VolumeSource::Invalid, "none"),
        }
    } else if fields.node("emptyDir").is_some() {
        (VolumeSource::Ephemeral, "ephemeral")
    } else if let Some(node) = fields.node("secret") {
        let name = text(Some(node), "secretName");
        (VolumeSource::Object(ReferenceKind::Secret, name), "object")
    } else if let Some(node) = fields.node("configMap") {
        (VolumeSource::Object(ReferenceKind::Config, text(Some(node), "name")), "object")
    } else {
        let kinds = [
            "persistentVolumeClaim",
            "projected",
            "csi",
            "nfs",
            "image",
            "downwardAPI",
            "ephemeral",
        ];
        let kind = kinds.into_iter().find(|kind| fields.node(kind).is_some());
        (VolumeSource::Other(kind.unwrap_or("unknown").to_owned()), "other")
    };
    workload.volumes.push(Volume { name: name.as_str().to_owned(), source, kind, place: at });
}

/// Reads a `SpinApp` (core.spinkube.dev).
pub(super) fn spin_app(
    workload: &mut Workload,
    object: &Node,
    pointer: &Pointer,
    problems: &mut Vec<FieldProblem>,
) {
    let Some(mut root) = Fields::new(object, pointer.clone(), problems) else { return };
    root.ignore(&["apiVersion", "kind", "metadata", "status"]);
    let Some(mut fields) = root.mapping("spec", problems) else {
        root.missing("spec", problems);
        root.finish(problems);
        return;
    };
    fields.ignore(&[
        "executor",
        "replicas",
        "enableAutoscaling",
        "checks",
        "serviceAnnotations",
        "deploymentAnnotations",
        "podAnnotations",
        "podLabels",
        "invocationLimits",
        "components",
        "serviceAccountName",
    ]);
    for (pointer, node) in fields.sequence("volumes", problems) {
        if let Some(entry) = Fields::new(node, pointer, problems) {
            volume(workload, entry, problems);
        }
    }
    let mut component = ComponentSpec {
        name: workload.name.clone(),
        role: Role::Container,
        place: Place { pointer: fields.pointer().as_str().to_owned(), span: Some(fields.span()) },
        image: image(&mut fields, problems),
        hosts: elsewhere(IN_SPIN_TOML),
        ..empty_component()
    };
    environment(&mut component, &mut fields, "variables", problems);
    for (pointer, node) in fields.sequence("imagePullSecrets", problems) {
        let kind = ReferenceKind::PullSecret;
        component.references.extend(reference(node, pointer, kind, "pull", problems));
    }
    if let Some(mut runtime) = fields.mapping("runtimeConfig", problems) {
        if let Some(secret) = runtime.string("loadFromSecret", problems) {
            component.references.push(ReferenceEntry {
                kind: ReferenceKind::Secret,
                name: secret.as_str().to_owned(),
                into: "interface",
                place: place(&secret),
            });
        }
        runtime.ignore(&["sqliteDatabases", "keyValueStores", "llmCompute"]);
        runtime.finish(problems);
    }
    mounts(workload, &mut component, &mut fields, problems);
    resources(&mut component, &mut fields, problems);
    fields.finish(problems);
    root.finish(problems);
    if component.image.text.is_empty() {
        component.image = no_image(component.place.clone());
    }
    workload.components.push(component);
}
