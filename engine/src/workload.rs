//! Workload documents: which components run together, and what each is granted.
//!
//! The native form is wasmCloud's `runtime.wasmcloud.dev/v1alpha1`. Pods with a wasm runtime class,
//! `SpinApp` and `HTTPTrigger` are read into the same model. Nothing is dropped silently: a field
//! that isn't known becomes a [`Problem`], and a document of another kind is counted as skipped.
//! What a grant *means* depends on the [`Target`]; this module keeps the text and the place of each
//! and reads host entries in the target's dialect.

mod container;
mod lint;
mod name;
mod private;
mod read;
mod wasmcloud;

use std::collections::BTreeMap;

pub(crate) use lint::has_secret;
pub use private::Private;
pub use read::{
    Artifacts, Documents, Object, Skipped, Surroundings, WorkloadError, read, read_object,
};

use crate::document::Span;
use crate::grant::{
    Dialect, FolderMode, GuestPath, HostPath, HostPattern, HostPatternError, LookupPattern,
    LoopbackPort,
};
use crate::reference::ImageSource;

/// Whose semantics grants have.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Target {
    /// wasmCloud's host: ports not pinned, sockets open unless enforced, mounts shared along links.
    WasmCloud,
    /// Spin, and containerd shims: the manifest lists no hosts, the application does.
    Spin,
    /// Our executor: the strict reading.
    Ambit,
}

impl Target {
    /// Returns the stable word for this target.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WasmCloud => "wasmcloud",
            Self::Spin => "spin",
            Self::Ambit => "ambit",
        }
    }

    /// Returns the dialect of host entries.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        match self {
            Self::WasmCloud => Dialect::WasmCloud,
            Self::Spin => Dialect::Spin,
            Self::Ambit => Dialect::Ambit,
        }
    }
}

/// Where something stands in its document.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Place {
    /// The JSON pointer (RFC 6901); empty for the whole document.
    pub pointer: String,
    /// The stretch of text; `None` for what isn't in a text, as in a binary.
    pub span: Option<Span>,
}

impl Place {
    /// Returns the line, or 0 where there is none.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.span.map_or(0, |span| span.start().line())
    }

    /// Returns the column, or 0 where there is none.
    #[must_use]
    pub fn column(&self) -> u32 {
        self.span.map_or(0, |span| span.start().column())
    }
}

/// A name or text with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Named {
    /// The text.
    pub name: String,
    /// Where it stands.
    pub place: Place,
}

/// How much a problem weighs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// What the document grants can't be read in one way.
    Invalid,
    /// It can be read; somebody should know.
    Lint,
}

/// Something wrong with a document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// A stable kebab-case code.
    pub code: &'static str,
    /// How much it weighs.
    pub level: Level,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
    /// The component it concerns; empty for the workload.
    pub component: String,
    /// Where.
    pub place: Place,
}

/// What a component is in its document.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// A component of a workload.
    Component,
    /// The long-running service of a workload.
    Service,
    /// A container of a pod.
    Container,
    /// An init container.
    Init,
    /// An ephemeral container.
    Ephemeral,
    /// An image that a pod mounts as a volume.
    Volume,
    /// An `Artifact` object: an image without grants.
    Artifact,
    /// A file or reference without a document.
    Bare,
}

impl Role {
    /// Returns the stable word for this role.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Service => "service",
            Self::Container => "container",
            Self::Init => "init",
            Self::Ephemeral => "ephemeral",
            Self::Volume => "volume",
            Self::Artifact => "artifact",
            Self::Bare => "bare",
        }
    }
}

/// The reference that names a component's bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Image {
    /// The text that counts: that of the `Artifact` where the document goes through one.
    pub text: String,
    /// What it means.
    pub source: ImageSource,
    /// Where the document names it.
    pub place: Place,
    /// The `Artifact` that the text comes from, if the document goes through one.
    pub artifact: Option<String>,
}

/// Outbound hosts of a component.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostGrantList {
    /// The document lists them; an empty list means none.
    Listed(Vec<HostEntry>),
    /// The document can't say; the reason is what a report prints.
    Elsewhere(&'static str),
}

impl HostGrantList {
    /// Returns the entries; empty if the document can't say.
    #[must_use]
    pub fn entries(&self) -> &[HostEntry] {
        match self {
            Self::Listed(entries) => entries,
            Self::Elsewhere(_) => &[],
        }
    }
}

/// One entry of a host list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// The entry as written.
    pub text: String,
    /// Where it stands.
    pub place: Place,
    /// What it means to the target.
    pub pattern: Result<HostPattern, HostPatternError>,
}

/// One entry of a name look-up list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LookupEntry {
    /// The entry as written.
    pub text: String,
    /// Where it stands.
    pub place: Place,
    /// What it means; `None` if it can't be read (a [`Problem`] says why).
    pub pattern: Option<LookupPattern>,
}

/// One port of the machine's own loopback.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoopbackEntry {
    /// The entry as written.
    pub text: String,
    /// Where it stands.
    pub place: Place,
    /// What it means; `None` if it can't be read (a [`Problem`] says why).
    pub port: Option<LoopbackPort>,
}

/// Where the value of an environment variable comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EnvSource {
    /// Written in the document.
    Literal {
        /// The value's length in bytes.
        length: usize,
        /// Whether name or value look like a secret.
        looks_secret: bool,
        /// The value, for whoever runs the component.
        value: Private,
    },
    /// A key of a Secret.
    Secret(String),
    /// A key of a ConfigMap, or a field of the pod.
    Config(String),
}

/// One environment variable that the document names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EnvEntry {
    /// The variable.
    pub name: String,
    /// Where its value comes from.
    pub source: EnvSource,
    /// The key of the Secret or ConfigMap; empty for another source, and for the variable's own name.
    pub key: String,
    /// Where it stands.
    pub place: Place,
}

/// One entry of a component's configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigEntry {
    /// The key.
    pub name: String,
    /// The value, for whoever runs the component.
    pub value: Private,
    /// Where it stands.
    pub place: Place,
}

/// What a reference to an object brings in.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ReferenceKind {
    /// A Secret, all keys.
    Secret,
    /// A ConfigMap, all keys.
    Config,
    /// A Secret with registry credentials; it doesn't reach the component.
    PullSecret,
}

impl ReferenceKind {
    /// Returns the stable word for this kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Config => "config",
            Self::PullSecret => "pull-secret",
        }
    }
}

/// A Secret or ConfigMap given by reference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReferenceEntry {
    /// What it is.
    pub kind: ReferenceKind,
    /// The object's name.
    pub name: String,
    /// `environment`, `interface`, `volume` or `pull`.
    pub into: &'static str,
    /// Where it stands.
    pub place: Place,
}

/// What a volume is made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VolumeSource {
    /// A folder of the machine.
    Host(HostPath),
    /// An empty folder that lives as long as the workload.
    Ephemeral,
    /// Files made of a Secret or ConfigMap, by the object's name.
    Object(ReferenceKind, String),
    /// Storage of the cluster that the document names but doesn't describe.
    Other(String),
    /// Two sources at once, or none, or one that can't be read; a [`Problem`] says which.
    Invalid,
}

/// A volume that the workload defines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub source: VolumeSource,
    /// `host`, `ephemeral`, `object`, `other`, `both` or `none`, for reports.
    pub kind: &'static str,
    /// Where it stands.
    pub place: Place,
}

/// A volume in a component.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mount {
    /// The volume's name.
    pub volume: String,
    /// Where the component sees it; `None` if the path can't be read.
    pub guest: Option<GuestPath>,
    /// What the component may do there.
    pub mode: FolderMode,
    /// Where it stands.
    pub place: Place,
}

/// A component, and what the document grants it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComponentSpec {
    /// Its name in the document.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Where it stands.
    pub place: Place,
    /// The reference that names its bytes.
    pub image: Image,
    /// Outbound hosts.
    pub hosts: HostGrantList,
    /// Names that may be looked up.
    pub lookups: Vec<LookupEntry>,
    /// Ports of the machine's own loopback.
    pub loopback: Vec<LoopbackEntry>,
    /// Environment variables that the document names.
    pub env: Vec<EnvEntry>,
    /// Secrets and ConfigMaps given by reference.
    pub references: Vec<ReferenceEntry>,
    /// Configuration for interface plugins, `wasi:config/store` above all.
    pub config: Vec<ConfigEntry>,
    /// Volumes in this component.
    pub mounts: Vec<Mount>,
    /// Whether a memory limit is set.
    pub memory_limited: bool,
    /// The memory limit in bytes, where the document gives one in numbers.
    pub memory_bytes: Option<u64>,
    /// Whether a CPU limit is set.
    pub cpu_limited: bool,
    /// Warm instances that keep state between calls; 0 if none.
    pub pool_size: u64,
    /// How many calls may run at once; `None` where the document leaves it to the host.
    pub max_concurrency: Option<u64>,
}

/// An interface that the workload asks the host for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostInterface {
    /// The WIT namespace.
    pub namespace: String,
    /// The WIT package.
    pub package: String,
    /// The version as written; empty for any.
    pub version: String,
    /// The interfaces.
    pub interfaces: Vec<Named>,
    /// The label by which a component's named import is routed here.
    pub name: Option<String>,
    /// Configuration, by key. Values stay, since hosts and bucket names are in them.
    pub config: BTreeMap<String, String>,
    /// Secrets and ConfigMaps that feed the configuration.
    pub references: Vec<ReferenceEntry>,
    /// Components that the configuration claims to scope it to (Cosmonic Desktop).
    pub scope: Vec<String>,
    /// Where it stands.
    pub place: Place,
}

/// Fields that say where the workload runs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Placement {
    /// The host that is pinned.
    pub host_id: Option<Named>,
    /// The tenant pool that is asked for.
    pub environment: Option<Named>,
}

/// One workload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Workload {
    /// The API version as written.
    pub api_version: String,
    /// The kind as written; `Component` for a bare component.
    pub kind: String,
    /// The name; empty if the document leaves it to the server.
    pub name: String,
    /// The namespace; `default` if the document names none.
    pub namespace: String,
    /// Labels of the object, then those of its template.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the object, then those of its template.
    pub annotations: BTreeMap<String, String>,
    /// The engine that the document is written for.
    pub engine: Target,
    /// Its components, the service last.
    pub components: Vec<ComponentSpec>,
    /// Its volumes.
    pub volumes: Vec<Volume>,
    /// Interfaces that it asks the host for.
    pub host_interfaces: Vec<HostInterface>,
    /// Fields that say where it runs.
    pub placement: Placement,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// Where it stands in its file.
    pub place: Place,
}

impl Workload {
    /// Returns the workload that a bare component is: one component, no grants.
    #[must_use]
    pub fn bare(name: &str, image: &str, source: ImageSource, target: Target) -> Self {
        Self {
            api_version: String::new(),
            kind: "Component".to_owned(),
            name: name.to_owned(),
            namespace: "default".to_owned(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            engine: target,
            components: vec![ComponentSpec {
                name: name.to_owned(),
                role: Role::Bare,
                place: Place::default(),
                image: Image {
                    text: image.to_owned(),
                    source,
                    place: Place::default(),
                    artifact: None,
                },
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
            }],
            volumes: Vec::new(),
            host_interfaces: Vec::new(),
            placement: Placement::default(),
            problems: Vec::new(),
            place: Place::default(),
        }
    }

    /// Tells whether this is a component without a document.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.kind == "Component" && self.api_version.is_empty()
    }

    /// Returns a volume by name.
    #[must_use]
    pub fn volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|volume| volume.name == name)
    }
}
