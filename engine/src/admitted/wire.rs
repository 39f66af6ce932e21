//! An admitted workload on its way to a child process of the same program.
//!
//! A process that holds an [`Admitted`] may start another one of itself to run it in. The form here
//! goes over a channel that nobody else can write to. It is not a document: it has no stable form,
//! and reading one makes no statement about who wrote it. Never read one from a file, a socket that
//! others can reach, or an argument.

use serde::{Deserialize, Serialize};

use super::plan::{Link, LinkPlan, PlannedImport};
use super::{
    Admitted, AdmittedComponent, AdmittedFolder, FolderContent, GrantSource, ValueSource, Variable,
};
use crate::digest::Digest;
use crate::grant::{
    Dialect, FolderGrant, FolderMode, FolderSource, GuestPath, HostPath, HostPattern,
    LookupPattern, LoopbackPort,
};
use crate::workload::{HostInterface, Named, Place, Private, ReferenceEntry, ReferenceKind, Role};

/// Why a message isn't an admitted workload.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the message holds no admitted workload: {0}")]
pub struct WireError(String);

#[derive(Deserialize, Serialize)]
struct Whole {
    decision_id: String,
    kind: String,
    namespace: String,
    name: String,
    file: String,
    components: Vec<Part>,
    interfaces: Vec<Interface>,
}

#[derive(Deserialize, Serialize)]
struct Part {
    name: String,
    role: String,
    digest: String,
    plan: Vec<Import>,
    hosts: Vec<(String, Source)>,
    hosts_at: Source,
    lookups: Vec<(String, Source)>,
    loopback: Vec<String>,
    folders: Vec<Folder>,
    environment: Vec<Value>,
    config: Vec<Value>,
    memory_bytes: Option<u64>,
    max_concurrency: Option<u64>,
    exports: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Source {
    text: String,
    file: String,
    line: u32,
    pointer: String,
}

#[derive(Deserialize, Serialize)]
struct Import {
    name: String,
    track: String,
    link: String,
    sibling: usize,
    reason: String,
}

#[derive(Deserialize, Serialize)]
struct Folder {
    volume: String,
    guest: String,
    mode: String,
    host: Option<String>,
    object: Option<(String, String)>,
    source: Source,
}

#[derive(Deserialize, Serialize)]
struct Value {
    name: String,
    literal: Option<String>,
    kind: String,
    object: String,
    key: Option<String>,
    source: Source,
}

#[derive(Deserialize, Serialize)]
struct Interface {
    namespace: String,
    package: String,
    version: String,
    interfaces: Vec<String>,
    name: Option<String>,
    config: std::collections::BTreeMap<String, String>,
    references: Vec<(String, String)>,
    scope: Vec<String>,
}

impl Admitted {
    /// Returns the workload as bytes for a child process of this program. Literal values of the
    /// document are in it, so the bytes are as secret as they are.
    #[must_use]
    pub fn to_child(&self) -> Vec<u8> {
        let whole = Whole {
            decision_id: self.decision_id.to_string(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            file: self.file.clone(),
            components: self.components.iter().map(Part::of).collect(),
            interfaces: self.interfaces.iter().map(Interface::of).collect(),
        };
        // A tree of strings and numbers always has a JSON form.
        serde_json::to_vec(&whole).unwrap_or_default()
    }

    /// Reads what a parent process wrote with [`to_child`](Self::to_child), from a channel that only
    /// the parent can write to. The caller vouches for that: this is no way to admit anything.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the bytes are anything else.
    pub fn from_parent(bytes: &[u8]) -> Result<Self, WireError> {
        let bad = |what: &dyn std::fmt::Display| WireError(what.to_string());
        let whole: Whole = serde_json::from_slice(bytes).map_err(|error| bad(&error))?;
        Ok(Self {
            decision_id: whole.decision_id.parse::<Digest>().map_err(|error| bad(&error))?,
            kind: whole.kind,
            namespace: whole.namespace,
            name: whole.name,
            file: whole.file,
            components: whole
                .components
                .into_iter()
                .map(Part::into_component)
                .collect::<Result<_, _>>()?,
            interfaces: whole
                .interfaces
                .into_iter()
                .map(Interface::into_interface)
                .collect::<Result<_, _>>()?,
        })
    }
}

fn wrong(what: impl std::fmt::Display) -> WireError {
    WireError(what.to_string())
}

impl Source {
    fn of(source: &GrantSource) -> Self {
        Self {
            text: source.text.clone(),
            file: source.file.clone(),
            line: source.line,
            pointer: source.pointer.clone(),
        }
    }

    fn into_source(self) -> GrantSource {
        GrantSource { text: self.text, file: self.file, line: self.line, pointer: self.pointer }
    }
}

const ROLES: [Role; 8] = [
    Role::Component,
    Role::Service,
    Role::Container,
    Role::Init,
    Role::Ephemeral,
    Role::Volume,
    Role::Artifact,
    Role::Bare,
];

const KINDS: [ReferenceKind; 3] =
    [ReferenceKind::Secret, ReferenceKind::Config, ReferenceKind::PullSecret];

fn kind(word: &str) -> Result<ReferenceKind, WireError> {
    KINDS.into_iter().find(|kind| kind.as_str() == word).ok_or_else(|| wrong(word))
}

impl Part {
    fn of(component: &AdmittedComponent) -> Self {
        let hosts = component.hosts.entries().iter().map(ToString::to_string);
        Self {
            name: component.name.clone(),
            role: component.role.as_str().to_owned(),
            digest: component.digest.to_string(),
            plan: component.plan.imports().iter().map(Import::of).collect(),
            hosts: hosts.zip(component.host_lines.iter().map(Source::of)).collect(),
            hosts_at: Source::of(&component.hosts_at),
            lookups: component
                .lookups
                .iter()
                .map(|(pattern, line)| (pattern.to_string(), Source::of(line)))
                .collect(),
            loopback: component.loopback.iter().map(ToString::to_string).collect(),
            folders: component.folders.iter().map(Folder::of).collect(),
            environment: component.environment.iter().map(Value::of).collect(),
            config: component.config.iter().map(Value::of).collect(),
            memory_bytes: component.memory_bytes,
            max_concurrency: component.max_concurrency,
            exports: component.exports.clone(),
        }
    }

    fn into_component(self) -> Result<AdmittedComponent, WireError> {
        let mut hosts = Vec::new();
        let mut host_lines = Vec::new();
        for (text, line) in self.hosts {
            hosts.push(HostPattern::parse(&text, Dialect::Ambit).map_err(wrong)?);
            host_lines.push(line.into_source());
        }
        let role = ROLES.into_iter().find(|role| role.as_str() == self.role);
        let mut lookups = Vec::new();
        for (text, line) in self.lookups {
            lookups.push((LookupPattern::parse(&text).map_err(wrong)?, line.into_source()));
        }
        let loopback: Result<Vec<_>, _> =
            self.loopback.iter().map(|text| LoopbackPort::parse(text)).collect();
        let imports: Result<Vec<_>, _> = self.plan.into_iter().map(Import::into_import).collect();
        Ok(AdmittedComponent {
            name: self.name,
            role: role.ok_or_else(|| wrong(&self.role))?,
            digest: self.digest.parse().map_err(wrong)?,
            plan: LinkPlan { imports: imports? },
            hosts: hosts.into_iter().collect(),
            host_lines,
            hosts_at: self.hosts_at.into_source(),
            lookups,
            loopback: loopback.map_err(wrong)?,
            folders: self.folders.into_iter().map(Folder::into_folder).collect::<Result<_, _>>()?,
            environment: variables(self.environment)?,
            config: variables(self.config)?,
            memory_bytes: self.memory_bytes,
            max_concurrency: self.max_concurrency,
            exports: self.exports,
        })
    }
}

fn variables(values: Vec<Value>) -> Result<Vec<Variable>, WireError> {
    values.into_iter().map(Value::into_variable).collect()
}

impl Import {
    fn of(import: &PlannedImport) -> Self {
        Self {
            name: import.name.clone(),
            track: import.track.clone(),
            link: import.link.as_str().to_owned(),
            sibling: match import.link {
                Link::Sibling(index) => index,
                Link::Granted | Link::Inert | Link::Types => 0,
            },
            reason: import.reason.clone(),
        }
    }

    fn into_import(self) -> Result<PlannedImport, WireError> {
        let links = [Link::Granted, Link::Inert, Link::Types, Link::Sibling(self.sibling)];
        let link = links.into_iter().find(|link| link.as_str() == self.link);
        Ok(PlannedImport {
            link: link.ok_or_else(|| wrong(&self.link))?,
            name: self.name,
            track: self.track,
            reason: self.reason,
        })
    }
}

impl Folder {
    fn of(folder: &AdmittedFolder) -> Self {
        let (guest, mode, host, object) = match &folder.content {
            FolderContent::Folder(grant) => {
                let host = match grant.source() {
                    FolderSource::Host(path) => Some(path.to_string()),
                    FolderSource::Ephemeral => None,
                };
                (grant.guest().to_string(), grant.mode().as_str(), host, None)
            }
            FolderContent::Object { guest, kind, name } => {
                let object = Some((kind.as_str().to_owned(), name.clone()));
                (guest.to_string(), FolderMode::ReadOnly.as_str(), None, object)
            }
        };
        Self {
            volume: folder.volume.clone(),
            guest,
            mode: mode.to_owned(),
            host,
            object,
            source: Source::of(&folder.source),
        }
    }

    fn into_folder(self) -> Result<AdmittedFolder, WireError> {
        let guest = GuestPath::parse(&self.guest).map_err(wrong)?;
        let content = match self.object {
            Some((word, name)) => FolderContent::Object { guest, kind: kind(&word)?, name },
            None => {
                let source = match self.host {
                    Some(path) => FolderSource::Host(HostPath::parse(&path).map_err(wrong)?),
                    None => FolderSource::Ephemeral,
                };
                let mode: FolderMode = self.mode.parse().map_err(wrong)?;
                FolderContent::Folder(FolderGrant::new(guest, source, mode))
            }
        };
        Ok(AdmittedFolder { volume: self.volume, content, source: self.source.into_source() })
    }
}

impl Value {
    fn of(variable: &Variable) -> Self {
        let (literal, kind, object, key) = match &variable.value {
            ValueSource::Literal(value) => {
                (Some(value.reveal().to_owned()), "", String::new(), None)
            }
            ValueSource::Key { kind, object, key } => {
                (None, kind.as_str(), object.clone(), Some(key.clone()))
            }
            ValueSource::All { kind, object } => (None, kind.as_str(), object.clone(), None),
        };
        Self {
            name: variable.name.clone(),
            literal,
            kind: kind.to_owned(),
            object,
            key,
            source: Source::of(&variable.source),
        }
    }

    fn into_variable(self) -> Result<Variable, WireError> {
        let value = match (self.literal, self.key) {
            (Some(value), _) => ValueSource::Literal(Private::new(value)),
            (None, Some(key)) => {
                ValueSource::Key { kind: kind(&self.kind)?, object: self.object, key }
            }
            (None, None) => ValueSource::All { kind: kind(&self.kind)?, object: self.object },
        };
        Ok(Variable { name: self.name, value, source: self.source.into_source() })
    }
}

impl Interface {
    fn of(entry: &HostInterface) -> Self {
        Self {
            namespace: entry.namespace.clone(),
            package: entry.package.clone(),
            version: entry.version.clone(),
            interfaces: entry.interfaces.iter().map(|interface| interface.name.clone()).collect(),
            name: entry.name.clone(),
            config: entry.config.clone(),
            references: entry
                .references
                .iter()
                .map(|reference| (reference.kind.as_str().to_owned(), reference.name.clone()))
                .collect(),
            scope: entry.scope.clone(),
        }
    }

    fn into_interface(self) -> Result<HostInterface, WireError> {
        let named = |name: String| Named { name, place: Place::default() };
        let references = self.references.into_iter().map(|(word, name)| {
            let place = Place::default();
            kind(&word).map(|kind| ReferenceEntry { kind, name, into: "interface", place })
        });
        Ok(HostInterface {
            namespace: self.namespace,
            package: self.package,
            version: self.version,
            interfaces: self.interfaces.into_iter().map(named).collect(),
            name: self.name,
            config: self.config,
            references: references.collect::<Result<_, _>>()?,
            scope: self.scope,
            place: Place::default(),
        })
    }
}
