//! From the text of a file to workloads: kinds, lists, and what is skipped.

use std::collections::BTreeMap;

use super::container;
use super::wasmcloud::{self, Spec};
use super::{
    ComponentSpec, HostGrantList, Image, Level, Named, Place, Placement, Problem, ReferenceEntry,
    ReferenceKind, Role, Target, VolumeSource, Workload, lint,
};
use crate::document::{self, DocumentError, DocumentLimits, Format, Node, Position};
use crate::document::{FieldProblem, Fields, Pointer, Text};
use crate::reference::ImageSource;

/// Items of one list of a workload: components, volumes, mounts, hosts. Some checks compare each
/// with each.
const MAX_ITEMS: usize = 512;

/// What a file's workloads may weigh, each times the number of its components: a report names what
/// a workload shares (host interfaces, folders along links, members of a closure) once for each.
const MAX_SHARED: usize = 16 << 20;

/// What an item weighs besides its text.
const ITEM_WEIGHT: usize = 64;

/// Lists in lists beyond this depth are refused; Kubernetes has no use for one.
const MAX_LIST_DEPTH: usize = 4;

/// Why a file holds nothing that can be judged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The file is no YAML or JSON that can be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// No document in it is a workload.
    #[error("no workload among {documents} {}{}", plural(*documents), kinds(skipped))]
    NoWorkload {
        /// How many documents the file holds.
        documents: usize,
        /// What they are.
        skipped: Vec<Skipped>,
    },
    /// A list of a workload is longer than the limit.
    #[error("{found} {what} of one workload are over the limit of {limit}")]
    TooManyItems {
        /// What the list holds.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The workloads of the file, each times the number of its components, weigh more than the
    /// limit.
    #[error("what the components share weighs {found}, over the limit of {limit} for one file")]
    TooMuchShared {
        /// The weight: bytes of text, and a constant for each item.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// One object was asked for.
    #[error("{documents} documents where one object is expected")]
    NotOneObject {
        /// How many documents there are.
        documents: usize,
    },
    /// Lists are nested deeper than the limit.
    #[error("`List` objects are nested deeper than {limit}")]
    ListTooDeep {
        /// The limit.
        limit: usize,
    },
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "document" } else { "documents" }
}

fn kinds(skipped: &[Skipped]) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let names: Vec<String> = skipped.iter().take(5).map(|one| format!("`{}`", one.kind)).collect();
    format!(" ({})", names.join(", "))
}

impl WorkloadError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document(source) => source.code(),
            Self::NoWorkload { .. } => "manifest-no-workload",
            Self::TooManyItems { .. } => "manifest-too-many-items",
            Self::TooMuchShared { .. } => "manifest-too-much-shared",
            Self::NotOneObject { .. } => "manifest-not-one-object",
            Self::ListTooDeep { .. } => "manifest-list-too-deep",
        }
    }

    /// Returns what to do next, where there is something.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Document(source) => source.help(),
            Self::NoWorkload { .. } => Some(
                "give a Workload, WorkloadDeployment, WorkloadReplicaSet, Artifact, HTTPTrigger or SpinApp, or a Pod or pod template with a wasm runtime class"
                    .to_owned(),
            ),
            Self::TooManyItems { .. } | Self::TooMuchShared { .. } => {
                Some("split the workload, or the file".to_owned())
            }
            Self::NotOneObject { .. } => Some("send each object by itself".to_owned()),
            Self::ListTooDeep { .. } => Some("put the workloads into one list".to_owned()),
        }
    }

    /// Returns where in the file reading stopped, if there is one place.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::Document(source) => source.position(),
            Self::NoWorkload { .. }
            | Self::TooManyItems { .. }
            | Self::TooMuchShared { .. }
            | Self::NotOneObject { .. }
            | Self::ListTooDeep { .. } => None,
        }
    }
}

/// A document that is no workload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Skipped {
    /// `apiVersion` and `kind`, as far as they are there.
    pub kind: String,
    /// Why it was skipped.
    pub reason: &'static str,
    /// Where it stands.
    pub place: Place,
}

/// Why a document was skipped whose kind isn't known in its version.
const ANOTHER_KIND: &str = "another kind";

impl Skipped {
    /// Tells whether its kind isn't known in its version, rather than known not to bring code.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.reason == ANOTHER_KIND
    }
}

/// What a file holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Documents {
    /// Its workloads, in order.
    pub workloads: Vec<Workload>,
    /// Its other documents, in order.
    pub skipped: Vec<Skipped>,
}

/// Reads the workloads of a file.
///
/// `target` replaces each document's own engine in the reading of host entries.
///
/// # Errors
///
/// [`WorkloadError::Document`] for text that is no YAML or JSON, [`WorkloadError::NoWorkload`] if
/// no document is a workload. What is wrong *inside* a workload is in its problems.
pub fn read(
    text: &[u8],
    format: Format,
    target: Option<Target>,
    limits: &DocumentLimits,
) -> Result<Documents, WorkloadError> {
    let documents = document::parse(text, format, limits)?;
    let mut objects = Vec::new();
    for document in &documents {
        flatten(document.root(), &mut objects)?;
    }
    let artifacts = objects.iter().filter_map(|(node, _)| artifact_image(node)).collect();
    let surroundings = Surroundings { target, namespace: None, artifacts };
    let mut found = Documents::default();
    let mut shared = 0_usize;
    for (node, pointer) in &objects {
        match surroundings.object(node, pointer)? {
            Object::Workload(workload) => {
                shared = shared.saturating_add(shared_weight(&workload));
                if shared > MAX_SHARED {
                    return Err(WorkloadError::TooMuchShared { found: shared, limit: MAX_SHARED });
                }
                found.workloads.push(*workload);
            }
            Object::Skipped(skipped) => found.skipped.push(skipped),
        }
    }
    if found.workloads.is_empty() {
        return Err(WorkloadError::NoWorkload { documents: objects.len(), skipped: found.skipped });
    }
    Ok(found)
}

/// What is known about an object beside its text.
#[derive(Clone, Debug, Default)]
pub struct Surroundings<'a> {
    /// Replaces the document's own engine in the reading of host entries.
    pub target: Option<Target>,
    /// The namespace that the object is in, whatever it says itself; `None` for what it says.
    pub namespace: Option<&'a str>,
    /// Images of `Artifact` objects that it may name, by namespace and name.
    pub artifacts: Artifacts,
}

/// Images of `Artifact` objects by namespace and name.
pub type Artifacts = BTreeMap<(String, String), String>;

/// What one object is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Object {
    /// A workload.
    Workload(Box<Workload>),
    /// Something else.
    Skipped(Skipped),
}

/// Reads one object, as an API server sends it; places count from its own root.
///
/// # Errors
///
/// Those of [`read`] but [`WorkloadError::NoWorkload`]; [`WorkloadError::NotOneObject`] for another
/// number of documents than one.
pub fn read_object(
    text: &[u8],
    format: Format,
    surroundings: &Surroundings<'_>,
    limits: &DocumentLimits,
) -> Result<Object, WorkloadError> {
    let documents = document::parse(text, format, limits)?;
    let [document] = documents.as_slice() else {
        return Err(WorkloadError::NotOneObject { documents: documents.len() });
    };
    let object = surroundings.object(document.root(), &Pointer::default())?;
    if let Object::Workload(workload) = &object {
        let found = shared_weight(workload);
        if found > MAX_SHARED {
            return Err(WorkloadError::TooMuchShared { found, limit: MAX_SHARED });
        }
    }
    Ok(object)
}

/// Takes the items of `List` objects out, in order.
fn flatten<'a>(
    root: &'a Node,
    objects: &mut Vec<(&'a Node, Pointer)>,
) -> Result<(), WorkloadError> {
    let mut work = vec![(root, Pointer::default(), 0_usize)];
    while let Some((node, pointer, depth)) = work.pop() {
        let list = node.get("kind").and_then(Node::as_str).is_some_and(|kind| {
            kind == "List" || (kind.ends_with("List") && node.get("items").is_some())
        });
        let Some(items) = node.get("items").and_then(Node::as_sequence).filter(|_| list) else {
            objects.push((node, pointer));
            continue;
        };
        if depth >= MAX_LIST_DEPTH {
            return Err(WorkloadError::ListTooDeep { limit: MAX_LIST_DEPTH });
        }
        let items = items.iter().enumerate().rev();
        work.extend(items.map(|(index, item)| {
            (item, pointer.key("items").index(index), depth.saturating_add(1))
        }));
    }
    Ok(())
}

/// What an `Artifact` stands for: what its controller found, or else what its author named.
fn artifact_image(node: &Node) -> Option<((String, String), String)> {
    let own = node.get("kind")?.as_str()? == "Artifact"
        && node.get("apiVersion")?.as_str()?.starts_with("runtime.wasmcloud.dev/");
    let metadata = node.get("metadata").filter(|_| own)?;
    let name = metadata.get("name")?.as_str()?.to_owned();
    let namespace =
        metadata.get("namespace").and_then(Node::as_str).unwrap_or("default").to_owned();
    let named = node.get("spec").and_then(|spec| spec.get("image")).and_then(Node::as_str);
    let image = artifact_url(node).map_or(named, |url| url.as_str())?;
    Some(((namespace, name), image.to_owned()))
}

/// The image that a workload gets where it names an `Artifact`, once its controller has looked.
fn artifact_url(node: &Node) -> Option<&Node> {
    let url = node.get("status")?.get("artifactUrl")?;
    (url.as_str() != Some("")).then_some(url)
}

/// Kinds of the wasmCloud group; everything else in it is refused rather than skipped.
const WASMCLOUD_KINDS: [&str; 5] =
    ["Workload", "WorkloadDeployment", "WorkloadReplicaSet", "Artifact", "Host"];

impl Surroundings<'_> {
    fn object(&self, node: &Node, pointer: &Pointer) -> Result<Object, WorkloadError> {
        let text = |key: &str| node.get(key).and_then(Node::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Ok(match (group, kind) {
            ("runtime.wasmcloud.dev", "Host") => self.skip(node, pointer, "it carries no code"),
            ("runtime.wasmcloud.dev", _) if WASMCLOUD_KINDS.contains(&kind) => {
                let known = version == "v1alpha1";
                self.wasmcloud(node, pointer, kind, known)?
            }
            ("runtime.wasmcloud.dev", _) => self.wasmcloud(node, pointer, kind, false)?,
            ("control.cosmonic.io", "HTTPTrigger") => self.wasmcloud(node, pointer, kind, true)?,
            ("core.spinkube.dev" | "core.spinoperator.dev", "SpinApp") => Object::Workload(
                Box::new(self.finish(node, pointer, Target::Spin, |w, p, node| {
                    container::spin_app(w, node, pointer, p);
                })?),
            ),
            _ => match container::template(api_version, kind) {
                Some(path) if container::is_wasm(node, path) => Object::Workload(Box::new(
                    self.finish(node, pointer, Target::Spin, |workload, problems, node| {
                        container::pod(workload, node, pointer, path, problems);
                    })?,
                )),
                Some(_) => self.skip(node, pointer, "no wasm runtime class or wasm image"),
                None => self.skip(node, pointer, ANOTHER_KIND),
            },
        })
    }

    fn skip(&self, node: &Node, pointer: &Pointer, reason: &'static str) -> Object {
        let text = |key: &str| node.get(key).and_then(Node::as_str).unwrap_or_default();
        let kind = match (text("apiVersion"), text("kind")) {
            ("", "") => node.kind_name().to_owned(),
            (version, kind) => format!("{version} {kind}").trim().to_owned(),
        };
        let kind = kind.chars().take(120).collect();
        let place = Place { pointer: pointer.as_str().to_owned(), span: Some(node.span()) };
        Object::Skipped(Skipped { kind, reason, place })
    }

    fn wasmcloud(
        &self,
        node: &Node,
        pointer: &Pointer,
        kind: &str,
        known: bool,
    ) -> Result<Object, WorkloadError> {
        let workload = self.finish(node, pointer, Target::WasmCloud, |workload, problems, node| {
            if !known {
                let place = Place {
                    pointer: pointer.key("kind").as_str().to_owned(),
                    span: node.get("kind").or(Some(node)).map(Node::span),
                };
                workload.problems.push(Problem {
                    code: "manifest-kind",
                    level: Level::Invalid,
                    severity: "high",
                    message: format!(
                        "`{} {kind}` is no kind that can be read",
                        workload.api_version
                    ),
                    help: "write `runtime.wasmcloud.dev/v1alpha1` and Workload, WorkloadDeployment, WorkloadReplicaSet or Artifact".to_owned(),
                    component: String::new(),
                    place,
                });
                return;
            }
            self.wasmcloud_object(workload, problems, node, pointer, kind);
        })?;
        Ok(Object::Workload(Box::new(workload)))
    }

    fn wasmcloud_object(
        &self,
        workload: &mut Workload,
        problems: &mut Vec<FieldProblem>,
        node: &Node,
        pointer: &Pointer,
        kind: &str,
    ) {
        let Some(mut root) = Fields::new(node, pointer.clone(), problems) else { return };
        root.ignore(&["apiVersion", "kind", "metadata", "status"]);
        let spec = root.mapping("spec", problems);
        if spec.is_none() {
            root.missing("spec", problems);
        }
        if let Some(mut spec) = spec {
            let dialect = self.target.unwrap_or(Target::WasmCloud).dialect();
            let context = Spec { dialect };
            match kind {
                "Workload" => wasmcloud::spec(workload, spec, &context, problems),
                "Artifact" => {
                    artifact(workload, spec, problems);
                    resolved_artifact(workload, node, pointer);
                }
                _ => {
                    spec.ignore(&["replicas", "deployPolicy", "ingress"]);
                    if let Some(kubernetes) = spec.mapping("kubernetes", problems) {
                        wasmcloud::kubernetes(kubernetes, problems);
                    }
                    let names = artifact_names(&mut spec, problems);
                    match spec.mapping("template", problems) {
                        Some(mut template) => {
                            wasmcloud::template_metadata(workload, &mut template, problems);
                            match template.mapping("spec", problems) {
                                Some(inner) => {
                                    wasmcloud::spec(workload, inner, &context, problems);
                                }
                                None => template.missing("spec", problems),
                            }
                            template.finish(problems);
                        }
                        None => spec.missing("template", problems),
                    }
                    spec.finish(problems);
                    self.resolve_artifacts(workload, &names);
                }
            }
        }
        root.finish(problems);
    }

    /// Follows `artifact://NAME` to the `Artifact` in the same input.
    fn resolve_artifacts(&self, workload: &mut Workload, names: &BTreeMap<String, Named>) {
        let namespace = workload.namespace.clone();
        let mut unresolved = Vec::new();
        for component in &mut workload.components {
            let ImageSource::Artifact(name) = &component.image.source else { continue };
            let object = names.get(name).map_or(name, |from| &from.name);
            match self.artifacts.get(&(namespace.clone(), object.clone())) {
                Some(image) => {
                    component.image.artifact = Some(object.clone());
                    component.image.source = ImageSource::parse(image);
                    component.image.text.clone_from(image);
                }
                None => unresolved.push((component.name.clone(), component.image.clone())),
            }
        }
        for (component, image) in unresolved {
            workload.problems.push(Problem {
                code: "artifact-unresolved",
                level: Level::Lint,
                severity: "medium",
                message: format!("`{}` names an Artifact that is not in this input", image.text),
                help: "give the file that holds the Artifact together with this one".to_owned(),
                component,
                place: image.place,
            });
        }
    }

    /// Reads what all kinds share, lets `fill` read the rest, and lints the result.
    fn finish(
        &self,
        node: &Node,
        pointer: &Pointer,
        engine: Target,
        fill: impl FnOnce(&mut Workload, &mut Vec<FieldProblem>, &Node),
    ) -> Result<Workload, WorkloadError> {
        let text = |key: &str| node.get(key).and_then(Node::as_str).unwrap_or_default().to_owned();
        let mut workload = Workload {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: String::new(),
            namespace: self.namespace.unwrap_or("default").to_owned(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            engine,
            components: Vec::new(),
            volumes: Vec::new(),
            host_interfaces: Vec::new(),
            placement: Placement::default(),
            problems: Vec::new(),
            place: Place { pointer: pointer.as_str().to_owned(), span: Some(node.span()) },
        };
        let mut problems = Vec::new();
        if let Some(metadata) = node.get("metadata") {
            let at = pointer.key("metadata");
            if let Some(mut fields) = Fields::new(metadata, at, &mut problems) {
                // Other fields of metadata are the API server's and are checked there.
                if let Some(name) = fields.string("name", &mut problems) {
                    workload.name = name.as_str().to_owned();
                }
                if let Some(namespace) = fields.string("namespace", &mut problems)
                    && !namespace.as_str().is_empty()
                {
                    workload.namespace = namespace.as_str().to_owned();
                }
                if let Some(namespace) = self.namespace {
                    namespace.clone_into(&mut workload.namespace);
                }
                workload.labels = pairs(&fields.string_map("labels", &mut problems));
                workload.annotations = pairs(&fields.string_map("annotations", &mut problems));
            }
        }
        fill(&mut workload, &mut problems, node);
        bounded(&workload)?;
        lint::run(&mut workload, self.target.unwrap_or(engine));
        let found = problems.iter().map(|problem| from_field(problem, &workload.components));
        let found: Vec<Problem> = found.collect();
        workload.problems.extend(found);
        workload.problems.sort_by_key(|problem| (problem.place.line(), problem.place.column()));
        Ok(workload)
    }
}

/// Refuses lists that make the checks which compare each item with each expensive.
fn bounded(workload: &Workload) -> Result<(), WorkloadError> {
    let check = |what: &'static str, found: usize| {
        if found > MAX_ITEMS {
            return Err(WorkloadError::TooManyItems { what, found, limit: MAX_ITEMS });
        }
        Ok(())
    };
    check("components", workload.components.len())?;
    check("volumes", workload.volumes.len())?;
    check("host interfaces", workload.host_interfaces.len())?;
    for component in &workload.components {
        check("hosts", component.hosts.entries().len())?;
        check("name look-ups", component.lookups.len())?;
        check("loopback ports", component.loopback.len())?;
        check("volume mounts", component.mounts.len())?;
    }
    Ok(())
}

/// Returns what a report over a workload can come to, in bytes of text and a constant for each item.
///
/// Every component can be named with all others, with each host interface, and under wasmCloud's
/// reading with the folders of everything that it is linked to.
fn shared_weight(workload: &Workload) -> usize {
    let item = |text: usize| text.saturating_add(ITEM_WEIGHT);
    let sum = |items: &mut dyn Iterator<Item = usize>| items.fold(0, usize::saturating_add);
    let count = workload.components.len();
    let interfaces = sum(&mut workload.host_interfaces.iter().map(|entry| {
        let names = sum(&mut entry.interfaces.iter().map(|named| item(named.name.len())));
        let values = sum(&mut entry.config.values().map(String::len));
        let references = sum(&mut entry.references.iter().map(|r| item(r.name.len())));
        [entry.namespace.len(), entry.package.len(), values, references]
            .into_iter()
            .fold(item(names), usize::saturating_add)
    }));
    let volume = |name: &str| {
        // A host path is written again for each mount of its volume.
        workload.volume(name).map_or(0, |volume| match &volume.source {
            VolumeSource::Host(path) => path.as_str().len(),
            VolumeSource::Object(_, name) | VolumeSource::Other(name) => name.len(),
            VolumeSource::Ephemeral | VolumeSource::Invalid => 0,
        })
    };
    let mounts = sum(&mut workload.components.iter().flat_map(|c| &c.mounts).map(|mount| {
        let guest = mount.guest.as_ref().map_or(0, |guest| guest.as_str().len());
        item(mount.volume.len().saturating_add(guest).saturating_add(volume(&mount.volume)))
    }));
    let hosts = sum(&mut workload
        .components
        .iter()
        .flat_map(|component| component.hosts.entries())
        .map(|entry| item(entry.text.len())));
    let names = sum(&mut workload.components.iter().map(|c| item(c.name.len())));
    let once = [interfaces, mounts, hosts, names].into_iter().fold(0, usize::saturating_add);
    count.saturating_mul(once)
}

/// Turns pairs of strings into a map; the last of equal keys wins, and the parser refuses those.
pub(super) fn pairs(pairs: &[(Text<'_>, Text<'_>)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| (key.as_str().to_owned(), value.as_str().to_owned())).collect()
}

/// Returns the place of something that was read.
pub(super) fn place<T>(located: &document::Located<T>) -> Place {
    Place { pointer: located.pointer().as_str().to_owned(), span: Some(located.span()) }
}

/// Returns a text with its place.
pub(super) fn named(text: &Text<'_>) -> Named {
    Named { name: text.as_str().to_owned(), place: place(text) }
}

fn from_field(problem: &FieldProblem, components: &[ComponentSpec]) -> Problem {
    let pointer = problem.pointer().as_str().to_owned();
    let component = components
        .iter()
        .find(|component| {
            pointer
                .strip_prefix(&component.place.pointer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
        .map(|component| component.name.clone())
        .unwrap_or_default();
    let unknown = problem.code() == "manifest-unknown-field";
    Problem {
        code: problem.code(),
        level: if unknown { Level::Lint } else { Level::Invalid },
        severity: if unknown { "medium" } else { "high" },
        message: problem.message(),
        help: problem.help().unwrap_or_default(),
        component,
        place: Place { pointer, span: Some(problem.span()) },
    }
}

/// Reads `spec.artifacts[]` of a deployment: local names and the objects behind them.
fn artifact_names(
    spec: &mut Fields<'_>,
    problems: &mut Vec<FieldProblem>,
) -> BTreeMap<String, Named> {
    let mut names = BTreeMap::new();
    for (pointer, node) in spec.sequence("artifacts", problems) {
        let Some(mut entry) = Fields::new(node, pointer, problems) else { continue };
        let name = entry.required_string("name", problems);
        if let Some(mut from) = entry.mapping("artifactFrom", problems) {
            if let (Some(name), Some(object)) = (name, from.required_string("name", problems)) {
                names.insert(name.as_str().to_owned(), named(&object));
            }
            from.finish(problems);
        } else {
            entry.missing("artifactFrom", problems);
        }
        entry.finish(problems);
    }
    names
}

/// Reads an `Artifact`: an image that others name, judged as a component without grants.
fn artifact(workload: &mut Workload, mut spec: Fields<'_>, problems: &mut Vec<FieldProblem>) {
    let image = wasmcloud::image(&mut spec, problems);
    let mut references = Vec::new();
    wasmcloud::pull_secret(&mut spec, &mut references, problems);
    workload.components.push(ComponentSpec {
        name: workload.name.clone(),
        role: Role::Artifact,
        place: Place { pointer: spec.pointer().as_str().to_owned(), span: Some(spec.span()) },
        image,
        references,
        ..wasmcloud::empty_component()
    });
    spec.finish(problems);
}

/// Reads what the status of an `Artifact` leads workloads to, where that isn't what its author
/// named. Whoever may write the status chooses what runs.
fn resolved_artifact(workload: &mut Workload, node: &Node, pointer: &Pointer) {
    let Some(url) = artifact_url(node) else { return };
    let text = url.as_str().unwrap_or_default();
    if workload.components.iter().any(|component| component.image.text == text) {
        return;
    }
    let place = Place {
        pointer: pointer.key("status").key("artifactUrl").as_str().to_owned(),
        span: Some(url.span()),
    };
    workload.components.push(ComponentSpec {
        name: format!("{}.status", workload.name),
        role: Role::Artifact,
        place: place.clone(),
        image: Image {
            text: text.to_owned(),
            source: ImageSource::parse(text),
            place,
            artifact: None,
        },
        ..wasmcloud::empty_component()
    });
}

/// Returns an image for a place that names none, so that the missing field alone is reported.
pub(super) fn no_image(place: Place) -> Image {
    Image { text: String::new(), source: ImageSource::parse(""), place, artifact: None }
}

/// Reads `{name: …}` as a reference to an object.
pub(super) fn reference(
    node: &Node,
    pointer: Pointer,
    kind: ReferenceKind,
    into: &'static str,
    problems: &mut Vec<FieldProblem>,
) -> Option<ReferenceEntry> {
    let mut fields = Fields::new(node, pointer, problems)?;
    let name = fields.required_string("name", problems)?;
    let entry = ReferenceEntry { kind, name: name.as_str().to_owned(), into, place: place(&name) };
    fields.ignore(&["optional"]);
    fields.finish(problems);
    Some(entry)
}

/// A host list that the document can't hold.
pub(super) fn elsewhere(reason: &'static str) -> HostGrantList {
    HostGrantList::Elsewhere(reason)
}
