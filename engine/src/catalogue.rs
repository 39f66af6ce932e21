//! What each known interface lets a component do, as data with sources.
//!
//! The built-in catalogue covers WASI 0.2 and 0.3, the functions of preview 1 and 0, WASI drafts,
//! wasmCloud's and Cosmonic's packages and our own. A user may add interfaces with a file in the
//! same form; nothing can be changed or removed, so no file makes an import look harmless.
//! An interface that isn't here is unknown, which is a capability of its own.

mod load;
mod near;

use std::collections::{BTreeMap, BTreeSet};

pub use load::CatalogueError;

use crate::interface::InterfaceName;

/// How much harm a capability can do before anything narrows it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Risk {
    /// No authority.
    None,
    /// A nuisance.
    Low,
    /// Local harm.
    Medium,
    /// Loss of data or secrets.
    High,
    /// Loss of the machine or of everything that the workload holds.
    Critical,
}

impl Risk {
    /// Returns the stable word for this risk.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// What a person would say that a capability does; the verbs of the reach report.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Verb {
    /// Send requests to hosts.
    ReachHosts,
    /// Resolve names.
    LookUpNames,
    /// Open sockets to other machines.
    OpenSockets,
    /// Listen on, or connect to, ports of the machine itself.
    UseMachinePorts,
    /// Read files.
    ReadFolder,
    /// Change files.
    ChangeFolder,
    /// Read variables.
    ReadEnvironment,
    /// Read secrets.
    ReadSecrets,
    /// Call a service that the host provides.
    UseHostService,
    /// Call a tool.
    CallTool,
    /// Send prompts to a model.
    UseModel,
    /// Answer requests.
    ServeRequests,
    /// Run code that is not in the binary.
    RunOtherCode,
    /// Nothing that a report would name.
    None,
}

impl Verb {
    /// All verbs, in the order of a report.
    pub const ALL: [Self; 14] = [
        Self::ReachHosts,
        Self::LookUpNames,
        Self::OpenSockets,
        Self::UseMachinePorts,
        Self::ReadFolder,
        Self::ChangeFolder,
        Self::ReadEnvironment,
        Self::ReadSecrets,
        Self::UseHostService,
        Self::CallTool,
        Self::UseModel,
        Self::ServeRequests,
        Self::RunOtherCode,
        Self::None,
    ];

    /// Returns the verb as reports print it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReachHosts => "reach hosts",
            Self::LookUpNames => "look up names",
            Self::OpenSockets => "open sockets",
            Self::UseMachinePorts => "use this machine's ports",
            Self::ReadFolder => "read folder",
            Self::ChangeFolder => "change folder",
            Self::ReadEnvironment => "read environment",
            Self::ReadSecrets => "read secrets",
            Self::UseHostService => "use host service",
            Self::CallTool => "call tool",
            Self::UseModel => "use model",
            Self::ServeRequests => "serve requests",
            Self::RunOtherCode => "run other code",
            Self::None => "none",
        }
    }
}

/// What kind of grant narrows a capability.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum GrantKind {
    /// A list of folders.
    Folders,
    /// A list of hosts.
    Hosts,
    /// A list of names to look up.
    Names,
    /// Environment variables.
    Environment,
    /// Buckets or containers of a host service.
    Buckets,
    /// The host interface as a whole.
    Interfaces,
    /// Secrets by name.
    Secrets,
    /// Model aliases.
    Models,
    /// Tools by name.
    Tools,
    /// Nothing narrows it.
    None,
}

impl GrantKind {
    /// Returns the stable word for this kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folders => "folders",
            Self::Hosts => "hosts",
            Self::Names => "names",
            Self::Environment => "environment",
            Self::Buckets => "buckets",
            Self::Interfaces => "interfaces",
            Self::Secrets => "secrets",
            Self::Models => "models",
            Self::Tools => "tools",
            Self::None => "none",
        }
    }
}

/// What a capability class means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Class {
    /// The dotted id, `fs.read`.
    pub id: String,
    /// Completes the sentence "it can …".
    pub title: String,
    /// How much harm it can do.
    pub risk: Risk,
    /// The verb of the reach report.
    pub verb: Verb,
    /// What narrows it.
    pub grant: GrantKind,
    /// Whether a ceiling needs no line for it.
    pub free: bool,
    /// Whether it sends or receives over a network by itself.
    pub network: bool,
    /// Whether it touches files.
    pub filesystem: bool,
    /// Where the class comes from.
    pub source: String,
}

/// What one function of an interface does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FunctionEntry {
    /// The name as in a binary.
    pub name: String,
    /// The classes that a call bears once it can act.
    pub classes: Vec<String>,
    /// Handle kinds that must all exist before a call can act.
    pub needs: Vec<String>,
    /// Handle kinds that a call makes.
    pub mints: Vec<String>,
    /// Whether it is the function that makes the authority usable.
    pub key: bool,
    /// Whether a call touches anything outside.
    pub acts: bool,
    /// A handle kind, and classes that a call bears besides once that kind exists.
    pub with: Option<(String, Vec<String>)>,
}

/// What one interface does.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct InterfaceEntry {
    /// The name without version.
    pub interface: String,
    /// The semver track; `None` for every version.
    pub track: Option<String>,
    /// The class of the interface when none of its functions can act.
    pub types: String,
    /// Resources, and the handle kinds that a handle of each can stand for.
    pub resources: BTreeMap<String, Vec<String>>,
    /// Its functions by name.
    pub functions: BTreeMap<String, FunctionEntry>,
    /// Where the entry comes from.
    pub source: String,
    /// Whether the source was read, or recalled from memory.
    pub recalled: bool,
}

/// What exporting an interface means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExportEntry {
    /// The name without version.
    pub interface: String,
    /// The semver track; `None` for every version.
    pub track: Option<String>,
    /// The classes of being called through it.
    pub classes: Vec<String>,
    /// `agent` or `tool`, if the export makes the component one.
    pub role: Option<String>,
}

/// How a name was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Match<'c> {
    /// The interface, at a track that is known.
    Known(&'c InterfaceEntry),
    /// The interface is known, but not at this version; what it does at others is the best guess.
    OtherTrack(&'c InterfaceEntry),
    /// Nothing of that name.
    Unknown,
}

/// The catalogue: classes, interfaces, core modules and exports.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Catalogue {
    classes: BTreeMap<String, Class>,
    interfaces: BTreeMap<String, Vec<InterfaceEntry>>,
    modules: BTreeMap<String, InterfaceEntry>,
    exports: BTreeMap<String, Vec<ExportEntry>>,
}

impl Catalogue {
    /// Reads the catalogue that comes with the engine.
    ///
    /// # Errors
    ///
    /// None that a user can meet: a test reads the embedded files. The type says so rather than a
    /// panic, since a broken catalogue must end in an error and not in an empty one.
    pub fn builtin() -> Result<Self, CatalogueError> {
        load::builtin()
    }

    /// Returns this catalogue with the entries of a user's file added.
    ///
    /// # Errors
    ///
    /// [`CatalogueError`] names the place: a document that doesn't parse, an unknown key or class,
    /// and every entry that the catalogue already has at that track.
    pub fn with_file(mut self, name: &str, text: &[u8]) -> Result<Self, CatalogueError> {
        load::add(&mut self, name, text)?;
        Ok(self)
    }

    /// Returns what a class means; unknown classes have the meaning of `unknown`.
    #[must_use]
    pub fn class(&self, id: &str) -> Option<&Class> {
        let id = if id.starts_with("unknown:") { "unknown" } else { id };
        self.classes.get(id)
    }

    /// Returns all classes, by id.
    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.classes.values()
    }

    /// Returns all interfaces, by name and track.
    pub fn interfaces(&self) -> impl Iterator<Item = &InterfaceEntry> {
        self.interfaces.values().flatten()
    }

    /// Looks an interface up by name and semver track.
    ///
    /// A pre-release is read with the track that it leads to, since its functions are those.
    #[must_use]
    pub fn interface(&self, name: &InterfaceName) -> Match<'_> {
        let Some(entries) = self.interfaces.get(&name.unversioned()) else {
            return Match::Unknown;
        };
        let track = name.track();
        let release = name.version().filter(|version| !version.pre.is_empty()).map(|version| {
            let mut release = version.clone();
            release.pre = semver::Prerelease::EMPTY;
            crate::interface::Track::of(&release)
        });
        let on = |wanted: &Option<crate::interface::Track>| {
            entries.iter().find(|entry| {
                entry.track.as_deref() == wanted.as_ref().map(crate::interface::Track::as_str)
                    && wanted.is_some()
            })
        };
        let any = entries.iter().find(|entry| entry.track.is_none());
        if let Some(entry) = on(&track).or_else(|| on(&release)).or(any) {
            return Match::Known(entry);
        }
        entries.last().map_or(Match::Unknown, Match::OtherTrack)
    }

    /// Returns what a module name of a core module's imports offers.
    #[must_use]
    pub fn module(&self, name: &str) -> Option<&InterfaceEntry> {
        self.modules.get(name)
    }

    /// Returns what exporting an interface means.
    #[must_use]
    pub fn export(&self, name: &InterfaceName) -> Option<&ExportEntry> {
        let track = name.track();
        self.exports.get(&name.unversioned()).and_then(|entries| {
            entries.iter().find(|entry| match (&entry.track, &track) {
                (None, _) => true,
                (Some(wanted), Some(track)) => track.as_str() == wanted,
                (Some(_), None) => false,
            })
        })
    }

    /// Returns the known name that `name` nearly is, if it is one that a person could confuse.
    ///
    /// Compared are the names without version: letters folded to one case and hyphens dropped, or
    /// at most two edits.
    #[must_use]
    pub fn near_miss(&self, name: &str) -> Option<String> {
        let unversioned = name.split('@').next().unwrap_or(name);
        near::nearest(unversioned, self.interfaces.keys().chain(self.modules.keys()))
    }

    /// Returns the ids of all classes of a package's interfaces, for a manifest that names the
    /// package and interface without a binary at hand.
    #[must_use]
    pub fn classes_of(&self, unversioned: &str) -> BTreeSet<String> {
        self.interfaces
            .get(unversioned)
            .into_iter()
            .flatten()
            .flat_map(|entry| entry.functions.values())
            .filter(|function| function.acts)
            .flat_map(|function| function.classes.iter().cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests;
