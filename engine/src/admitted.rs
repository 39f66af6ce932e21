//! What an allowing decision lets an executor link and give, and nothing else.
//!
//! [`admit`] reviews a workload and, where the decision allows it, returns an [`Admitted`]: for each
//! component the digest of its bytes, a [`LinkPlan`] with one entry for each import, and its grants.
//! There is no other way to make one, and its fields are private, so an executor that asks for it
//! can't be handed something that was not decided on.
//!
//! # Invariants
//!
//! - The review was under target `ambit`, so that grants have our own, strict reading.
//! - Every component's bytes were read; `digest` is theirs.
//! - No import of a plan is refused: a workload with such an import can't start, so it isn't
//!   admitted, and [`NotAdmitted::Imports`] names each.

mod plan;
mod wire;

use crate::decision::Verdict;
use crate::digest::Digest;
use crate::grant::{FolderGrant, FolderSource, HostGrants, LookupPattern, LoopbackPort};
use crate::reach::{Bytes, Links};
use crate::review::{Review, Subject, Terms, review};
use crate::workload::{
    ComponentSpec, EnvSource, HostEntry, HostInterface, Place, Private, ReferenceKind, Role,
    Target, VolumeSource, Workload,
};

pub use plan::{Link, LinkPlan, PlannedImport, Refusal};
pub use wire::WireError;

/// A workload that a decision allows, in the form that an executor takes.
#[derive(Clone, Debug)]
pub struct Admitted {
    decision_id: Digest,
    kind: String,
    namespace: String,
    name: String,
    file: String,
    components: Vec<AdmittedComponent>,
    interfaces: Vec<HostInterface>,
}

/// One component of an admitted workload, with all that it may be given.
#[derive(Clone, Debug)]
pub struct AdmittedComponent {
    name: String,
    role: Role,
    digest: Digest,
    plan: LinkPlan,
    hosts: HostGrants,
    host_lines: Vec<GrantSource>,
    hosts_at: GrantSource,
    lookups: Vec<(LookupPattern, GrantSource)>,
    loopback: Vec<LoopbackPort>,
    folders: Vec<AdmittedFolder>,
    environment: Vec<Variable>,
    config: Vec<Variable>,
    memory_bytes: Option<u64>,
    max_concurrency: Option<u64>,
    exports: Vec<String>,
}

/// A line of the document that gives something.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GrantSource {
    /// The grant as written, passwords masked.
    pub text: String,
    /// The file, as messages name it.
    pub file: String,
    /// The line, from 1; 0 where there is none.
    pub line: u32,
    /// The JSON pointer (RFC 6901).
    pub pointer: String,
}

/// A folder that a component sees.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AdmittedFolder {
    /// The name of the volume. Two components that mount one ephemeral volume share it.
    pub volume: String,
    /// What the folder is made of, and what may be done to it.
    pub content: FolderContent,
    /// The line that gives it.
    pub source: GrantSource,
}

/// What a folder is made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FolderContent {
    /// A folder of the machine, or an empty one that lives as long as the workload.
    Folder(FolderGrant),
    /// One file for each key of a Secret or ConfigMap, always read-only.
    Object {
        /// Where the component sees it.
        guest: crate::grant::GuestPath,
        /// Which kind of object.
        kind: ReferenceKind,
        /// The object's name.
        name: String,
    },
}

/// A variable of the environment, or an entry of the configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Variable {
    /// The name; empty where all keys of an object come in under their own names.
    pub name: String,
    /// Where the value comes from.
    pub value: ValueSource,
    /// The line that gives it.
    pub source: GrantSource,
}

/// Where a value comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ValueSource {
    /// Written in the document.
    Literal(Private),
    /// One key of a Secret or ConfigMap.
    Key {
        /// Which kind of object.
        kind: ReferenceKind,
        /// The object's name.
        object: String,
        /// The key.
        key: String,
    },
    /// All keys of a Secret or ConfigMap.
    All {
        /// Which kind of object.
        kind: ReferenceKind,
        /// The object's name.
        object: String,
    },
}

/// Why there is nothing to run.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// The decision doesn't allow it.
    #[error("the decision is {}", .0.as_str())]
    Decision(Verdict),
    /// The review was made for another engine.
    #[error("the review was made for target `{}`, and only one for `ambit` admits", .0.as_str())]
    Target(Target),
    /// Imports that nothing would serve.
    #[error("{} can't be linked", plan::names(.0))]
    Imports(Vec<Refusal>),
    /// A grant that this executor can't hold anybody to.
    #[error("{message}")]
    Grant {
        /// A stable kebab-case code.
        code: &'static str,
        /// What is wrong.
        message: String,
        /// What to do.
        help: String,
        /// Where.
        line: Box<GrantSource>,
    },
}

impl NotAdmitted {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Decision(_) => "not-admitted",
            Self::Target(_) => "admit-target",
            Self::Imports(refusals) => refusals.first().map_or("not-admitted", |r| r.code),
            Self::Grant { code, .. } => code,
        }
    }
}

impl Admitted {
    /// Returns the digest that identifies what was decided on.
    #[must_use]
    pub fn decision_id(&self) -> &Digest {
        &self.decision_id
    }

    /// Returns the document's kind; `Component` for a bare component.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the workload's namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the workload's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file that holds the workload, as messages name it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the components, in the order of the document.
    #[must_use]
    pub fn components(&self) -> &[AdmittedComponent] {
        &self.components
    }

    /// Returns the interfaces that the workload asks the host for, with their configuration.
    #[must_use]
    pub fn interfaces(&self) -> &[HostInterface] {
        &self.interfaces
    }
}

impl AdmittedComponent {
    /// Returns its name in the document.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what it is in its document.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the digest that its bytes must have.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns what each of its imports is linked to.
    #[must_use]
    pub fn plan(&self) -> &LinkPlan {
        &self.plan
    }

    /// Returns the hosts that it may reach, in the order of the document.
    #[must_use]
    pub fn hosts(&self) -> &HostGrants {
        &self.hosts
    }

    /// Returns the line of each entry of [`hosts`](Self::hosts), in the same order.
    #[must_use]
    pub fn host_lines(&self) -> &[GrantSource] {
        &self.host_lines
    }

    /// Returns where another host would be granted: the list, or the component.
    #[must_use]
    pub fn hosts_at(&self) -> &GrantSource {
        &self.hosts_at
    }

    /// Returns the names that it may look up.
    #[must_use]
    pub fn lookups(&self) -> &[(LookupPattern, GrantSource)] {
        &self.lookups
    }

    /// Returns the ports of the machine's own loopback that the document names. They open only if
    /// the operator allows the port too.
    #[must_use]
    pub fn loopback(&self) -> &[LoopbackPort] {
        &self.loopback
    }

    /// Returns its folders. No two of them overlap with different modes.
    #[must_use]
    pub fn folders(&self) -> &[AdmittedFolder] {
        &self.folders
    }

    /// Returns its environment. A later entry counts before an earlier one of the same name.
    #[must_use]
    pub fn environment(&self) -> &[Variable] {
        &self.environment
    }

    /// Returns its configuration, for `wasi:config/store`.
    #[must_use]
    pub fn config(&self) -> &[Variable] {
        &self.config
    }

    /// Returns the most memory that the document gives it, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory_bytes
    }

    /// Returns how many calls the document lets run at once.
    #[must_use]
    pub fn max_concurrency(&self) -> Option<u64> {
        self.max_concurrency
    }

    /// Returns its exported interfaces on their version track, `wasi:http/incoming-handler@0.2`.
    #[must_use]
    pub fn exports(&self) -> &[String] {
        &self.exports
    }
}

/// Reviews a workload and returns what the decision admits.
///
/// The review is the one that [`review`] makes of the same arguments. `Admitted` follows from an
/// allowing decision under target `ambit` only.
///
/// # Errors
///
/// Beside the review, [`NotAdmitted::Decision`] if it denies or has no answer,
/// [`NotAdmitted::Target`] for another target, [`NotAdmitted::Imports`] if an import has nothing
/// that serves it, and [`NotAdmitted::Grant`] for a grant that this version can't enforce.
pub fn admit(subject: Subject<'_>, terms: &Terms<'_>) -> (Review, Result<Admitted, NotAdmitted>) {
    let review = review(subject, terms);
    let admitted = of(subject, &review, terms);
    (review, admitted)
}

fn of(subject: Subject<'_>, review: &Review, terms: &Terms<'_>) -> Result<Admitted, NotAdmitted> {
    let decision = &review.decision;
    if decision.verdict != Verdict::Allow {
        return Err(NotAdmitted::Decision(decision.verdict));
    }
    if review.reach.target != Target::Ambit {
        return Err(NotAdmitted::Target(review.reach.target));
    }
    let workload = subject.workload;
    let mut refusals = Vec::new();
    let mut components = Vec::new();
    for (index, spec) in workload.components.iter().enumerate() {
        let Some(Bytes::Present(analysis)) = subject.bytes.get(index) else {
            // An allowing decision has all bytes; without them there is nothing to hold it to.
            return Err(NotAdmitted::Decision(Verdict::Error));
        };
        let folders = folders(workload, spec, subject.file)?;
        let context = plan::Context {
            workload,
            spec,
            links: &review.reach.links,
            index,
            has_folders: !folders.is_empty(),
            catalogue: terms.catalogue,
        };
        match LinkPlan::of(*analysis, &context) {
            Ok(plan) => {
                components.push(component(
                    spec,
                    (subject.file, workload),
                    plan,
                    folders,
                    *analysis,
                ));
            }
            Err(refused) => refusals.extend(refused),
        }
    }
    if !refusals.is_empty() {
        return Err(NotAdmitted::Imports(refusals));
    }
    Ok(Admitted {
        decision_id: decision.decision_id,
        kind: workload.kind.clone(),
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
        file: subject.file.to_owned(),
        components,
        interfaces: workload.host_interfaces.clone(),
    })
}

fn source(file: &str, place: &Place, text: impl Into<String>) -> GrantSource {
    GrantSource {
        text: text.into(),
        file: file.to_owned(),
        line: place.line(),
        pointer: place.pointer.clone(),
    }
}

fn component(
    spec: &ComponentSpec,
    (file, workload): (&str, &Workload),
    plan: LinkPlan,
    folders: Vec<AdmittedFolder>,
    analysis: crate::reach::Analysis<'_>,
) -> AdmittedComponent {
    let shown = |entry: &HostEntry| {
        entry
            .pattern
            .as_ref()
            .map_or_else(|_| entry.text.clone(), crate::grant::HostPattern::text_for_report)
    };
    let entries: Vec<&HostEntry> =
        spec.hosts.entries().iter().filter(|entry| entry.pattern.is_ok()).collect();
    let list = spec.hosts.entries().last().map_or(&spec.place, |entry| &entry.place);
    let environment = spec
        .env
        .iter()
        .map(|entry| Variable {
            name: entry.name.clone(),
            value: value(&entry.source, &entry.key, &entry.name),
            source: source(file, &entry.place, entry.name.clone()),
        })
        .collect::<Vec<_>>();
    // Objects come first, so that a variable that the document names by itself counts.
    let objects = spec
        .references
        .iter()
        .filter(|reference| reference.into == "environment")
        .filter(|reference| reference.kind != ReferenceKind::PullSecret)
        .map(|reference| all(reference.kind, &reference.name, file, &reference.place));
    let config = spec.config.iter().map(|entry| Variable {
        name: entry.name.clone(),
        value: ValueSource::Literal(entry.value.clone()),
        source: source(file, &entry.place, entry.name.clone()),
    });
    AdmittedComponent {
        name: spec.name.clone(),
        role: spec.role,
        digest: analysis.component.digest,
        plan,
        hosts: entries.iter().filter_map(|entry| entry.pattern.clone().ok()).collect(),
        host_lines: entries.iter().map(|e| source(file, &e.place, shown(e))).collect(),
        hosts_at: source(file, list, format!("{}.localResources.allowedHosts", spec.name)),
        lookups: spec
            .lookups
            .iter()
            .filter_map(|entry| {
                let line = source(file, &entry.place, entry.text.clone());
                entry.pattern.clone().map(|pattern| (pattern, line))
            })
            .collect(),
        loopback: spec.loopback.iter().filter_map(|entry| entry.port).collect(),
        folders,
        environment: objects.chain(environment).collect(),
        config: config_objects(workload, file).into_iter().chain(config).collect(),
        memory_bytes: spec.memory_bytes,
        max_concurrency: spec.max_concurrency,
        exports: analysis
            .component
            .exports
            .iter()
            .filter_map(|export| export.interface.as_ref())
            .map(crate::interface::InterfaceName::on_track)
            .collect(),
    }
}

fn all(kind: ReferenceKind, object: &str, file: &str, place: &Place) -> Variable {
    Variable {
        name: String::new(),
        value: ValueSource::All { kind, object: object.to_owned() },
        source: source(file, place, object),
    }
}

/// What the workload's `wasi:config` entries bring in for every component that links the store.
fn config_objects(workload: &Workload, file: &str) -> Vec<Variable> {
    let entries = workload
        .host_interfaces
        .iter()
        .filter(|entry| entry.namespace == "wasi" && entry.package == "config");
    let mut variables = Vec::new();
    for entry in entries {
        for reference in &entry.references {
            variables.push(all(reference.kind, &reference.name, file, &reference.place));
        }
        for (name, value) in &entry.config {
            variables.push(Variable {
                name: name.clone(),
                value: ValueSource::Literal(Private::new(value.as_str())),
                source: source(file, &entry.place, name.clone()),
            });
        }
    }
    variables
}

fn value(source: &EnvSource, key: &str, name: &str) -> ValueSource {
    let key = if key.is_empty() { name } else { key };
    match source {
        EnvSource::Literal { value, .. } => ValueSource::Literal(value.clone()),
        EnvSource::Secret(object) => ValueSource::Key {
            kind: ReferenceKind::Secret,
            object: object.clone(),
            key: key.to_owned(),
        },
        EnvSource::Config(object) => ValueSource::Key {
            kind: ReferenceKind::Config,
            object: object.clone(),
            key: key.to_owned(),
        },
    }
}

/// Returns the folders of one component, each checked once more.
fn folders(
    workload: &Workload,
    spec: &ComponentSpec,
    file: &str,
) -> Result<Vec<AdmittedFolder>, NotAdmitted> {
    let mut folders: Vec<AdmittedFolder> = Vec::new();
    for mount in &spec.mounts {
        let refuse = |code, message: String, help: &str| NotAdmitted::Grant {
            code,
            message,
            help: help.to_owned(),
            line: Box::new(source(file, &mount.place, mount.volume.clone())),
        };
        let volume = workload.volume(&mount.volume);
        let (Some(guest), Some(volume)) = (&mount.guest, volume) else {
            let message = format!("volume `{}` can't be mounted", mount.volume);
            return Err(refuse(
                "folder-source",
                message,
                "define the volume, with an absolute `mountPath`",
            ));
        };
        let folder =
            |source| FolderContent::Folder(FolderGrant::new(guest.clone(), source, mount.mode));
        let content = match &volume.source {
            VolumeSource::Host(path) => folder(FolderSource::Host(path.clone())),
            VolumeSource::Ephemeral => folder(FolderSource::Ephemeral),
            VolumeSource::Object(kind, name) => {
                FolderContent::Object { guest: guest.clone(), kind: *kind, name: name.clone() }
            }
            VolumeSource::Other(kind) => {
                let message =
                    format!("volume `{}` is a {kind}, which only a cluster has", volume.name);
                let help = "run it with a `hostPath` or an `ephemeral` volume in its place";
                return Err(refuse("folder-source", message, help));
            }
            VolumeSource::Invalid => {
                let message = format!("volume `{}` can't be read in one way", volume.name);
                return Err(refuse("folder-source", message, "give it one source"));
            }
        };
        folders.push(AdmittedFolder {
            volume: volume.name.clone(),
            content,
            source: source(file, &mount.place, format!("{guest} ({})", volume.name)),
        });
    }
    Ok(folders)
}

/// Tells which component serves an interface of another.
fn provider(links: &Links, from: usize, track: &str) -> Option<usize> {
    links.edges.iter().find(|edge| edge.from == from && edge.interface == track).map(|edge| edge.to)
}
