//! What each import of a component is linked to.

use std::fmt;

use super::provider;
use crate::catalogue::Catalogue;
use crate::component::{Import, Sort};
use crate::grant::Plane;
use crate::interface::InterfaceName;
use crate::reach::{Analysis, Links, gives};
use crate::workload::{ComponentSpec, Workload};

/// What an import is linked to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Link {
    /// The host serves it, within the component's grants.
    Granted,
    /// The host links it so that the component can start, with nothing behind it: every use is
    /// refused, and recorded as denied.
    Inert,
    /// This component of the workload serves it, by index.
    Sibling(usize),
    /// It names types only, so there is nothing to link.
    Types,
}

impl Link {
    /// Returns the stable word for this link.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Inert => "inert",
            Self::Sibling(_) => "sibling",
            Self::Types => "types",
        }
    }
}

/// One import and its link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlannedImport {
    /// The import as the component names it.
    pub name: String,
    /// The interface on its version track: `wasi:http/outgoing-handler@0.2`.
    pub track: String,
    /// What it is linked to.
    pub link: Link,
    /// Why, in words.
    pub reason: String,
}

/// Why an import has nothing to link to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The component.
    pub component: String,
    /// The import as the component names it.
    pub import: String,
    /// A stable kebab-case code.
    pub code: &'static str,
    /// Why.
    pub reason: String,
    /// What to do.
    pub help: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` imports `{}`: {}", self.component, self.import, self.reason)
    }
}

/// What the imports of one component are linked to: one entry for each, in the binary's order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LinkPlan {
    pub(super) imports: Vec<PlannedImport>,
}

/// What a plan depends on.
pub(super) struct Context<'a> {
    pub(super) workload: &'a Workload,
    pub(super) spec: &'a ComponentSpec,
    pub(super) links: &'a Links,
    pub(super) index: usize,
    pub(super) has_folders: bool,
    pub(super) catalogue: &'a Catalogue,
}

/// When the host serves an interface of its own.
#[derive(Clone, Copy, Debug)]
enum Condition {
    /// Always: it touches nothing, or only what the run itself brings.
    Free,
    /// If the component has a host to reach over HTTP; inert otherwise.
    Hosts,
    /// If it has a folder; inert otherwise.
    Folders,
    /// If it has an address for sockets; inert otherwise.
    Sockets,
    /// If it has a name to look up; inert otherwise.
    Lookups,
    /// If `hostInterfaces` names it; refused otherwise.
    Listed,
    /// If the component has configuration or `hostInterfaces` names it; refused otherwise.
    Config,
}

/// The interfaces that our executor serves, each on one version track.
const SERVED: [(&str, Condition); 38] = [
    ("wasi:io/error@0.2", Condition::Free),
    ("wasi:io/poll@0.2", Condition::Free),
    ("wasi:io/streams@0.2", Condition::Free),
    ("wasi:cli/environment@0.2", Condition::Free),
    ("wasi:cli/exit@0.2", Condition::Free),
    ("wasi:cli/stdin@0.2", Condition::Free),
    ("wasi:cli/stdout@0.2", Condition::Free),
    ("wasi:cli/stderr@0.2", Condition::Free),
    ("wasi:cli/terminal-input@0.2", Condition::Free),
    ("wasi:cli/terminal-output@0.2", Condition::Free),
    ("wasi:cli/terminal-stdin@0.2", Condition::Free),
    ("wasi:cli/terminal-stdout@0.2", Condition::Free),
    ("wasi:cli/terminal-stderr@0.2", Condition::Free),
    ("wasi:clocks/wall-clock@0.2", Condition::Free),
    ("wasi:clocks/monotonic-clock@0.2", Condition::Free),
    ("wasi:random/random@0.2", Condition::Free),
    ("wasi:random/insecure@0.2", Condition::Free),
    ("wasi:random/insecure-seed@0.2", Condition::Free),
    ("wasi:http/types@0.2", Condition::Free),
    ("wasi:http/outgoing-handler@0.2", Condition::Hosts),
    ("wasi:filesystem/types@0.2", Condition::Folders),
    ("wasi:filesystem/preopens@0.2", Condition::Folders),
    ("wasi:sockets/network@0.2", Condition::Sockets),
    ("wasi:sockets/instance-network@0.2", Condition::Sockets),
    ("wasi:sockets/tcp@0.2", Condition::Sockets),
    ("wasi:sockets/tcp-create-socket@0.2", Condition::Sockets),
    ("wasi:sockets/udp@0.2", Condition::Sockets),
    ("wasi:sockets/udp-create-socket@0.2", Condition::Sockets),
    ("wasi:sockets/ip-name-lookup@0.2", Condition::Lookups),
    ("wasi:config/store@0.2.0-rc.1", Condition::Config),
    ("wasi:keyvalue/store@0.2.0-draft", Condition::Listed),
    ("wasi:keyvalue/atomics@0.2.0-draft", Condition::Listed),
    ("wasi:keyvalue/batch@0.2.0-draft", Condition::Listed),
    // Handles of the other two come from this one only.
    ("wasi:blobstore/blobstore@0.2.0-draft", Condition::Listed),
    ("wasi:blobstore/container@0.2.0-draft", Condition::Free),
    ("wasi:blobstore/types@0.2.0-draft", Condition::Free),
    ("wasi:logging/logging", Condition::Listed),
    ("wasi:logging/logging@0.1.0-draft", Condition::Listed),
];

impl LinkPlan {
    /// Returns the entries, in the binary's order.
    #[must_use]
    pub fn imports(&self) -> &[PlannedImport] {
        &self.imports
    }

    /// Tells whether an interface is linked with something behind it. `track` is the interface on
    /// its version track.
    #[must_use]
    pub fn grants(&self, track: &str) -> bool {
        self.imports.iter().any(|import| import.track == track && import.link == Link::Granted)
    }

    /// Plans the imports of one component; every refused one is named.
    pub(super) fn of(analysis: Analysis<'_>, context: &Context<'_>) -> Result<Self, Vec<Refusal>> {
        let mut plan = Self::default();
        let mut refused = Vec::new();
        for import in &analysis.component.imports {
            match planned(import, context) {
                Ok(planned) => plan.imports.push(planned),
                Err((code, reason, help)) => refused.push(Refusal {
                    component: context.spec.name.clone(),
                    import: import.name.clone(),
                    code,
                    reason,
                    help,
                }),
            }
        }
        for note in &analysis.component.executor_notes {
            // An import that is refused by name above needs no second refusal.
            if note.code == "executor-feature" || note.code == "executor-reexport" {
                refused.push(Refusal {
                    component: context.spec.name.clone(),
                    import: String::new(),
                    code: note.code,
                    reason: note.reason.clone(),
                    help: "build it for WASI 0.2 without experimental features".to_owned(),
                });
            }
        }
        if refused.is_empty() { Ok(plan) } else { Err(refused) }
    }
}

type Refused = (&'static str, String, String);

fn planned(import: &Import, context: &Context<'_>) -> Result<PlannedImport, Refused> {
    let plan = |track: String, link, reason: &str| PlannedImport {
        name: import.name.clone(),
        track,
        link,
        reason: reason.to_owned(),
    };
    let unlinked = |what: &str| {
        let help = "import an interface of a package instead".to_owned();
        ("import-kind", format!("{what}, which nothing links"), help)
    };
    match import.sort {
        Sort::Type => return Ok(plan(import.name.clone(), Link::Types, "it only names a type")),
        Sort::Instance => {}
        Sort::Func => return Err(unlinked("it is a function of the world itself")),
        Sort::Value => return Err(unlinked("it is a value")),
        Sort::Module => return Err(unlinked("it is a core module")),
        Sort::Component => return Err(unlinked("it is a component")),
        Sort::Core => return Err(unlinked("it belongs to a core module")),
    }
    let name = match (&import.interface, &import.implements) {
        (Some(name), None) => name,
        (_, Some(_)) => return Err(unlinked("it stands for an interface under another name")),
        (None, None) => return Err(unlinked("it names no interface of a package")),
    };
    let track = name.on_track();
    if let Some(sibling) = provider(context.links, context.index, &track) {
        return Ok(plan(track, Link::Sibling(sibling), "a component of the workload exports it"));
    }
    let Some((_, condition)) = SERVED.iter().find(|(served, _)| *served == track) else {
        return Err(unserved(name, context));
    };
    let (link, reason) = match condition {
        Condition::Free => (Link::Granted, "every component may use it"),
        Condition::Hosts if has_hosts(context.spec, Plane::Http) => {
            (Link::Granted, "hosts are granted")
        }
        Condition::Hosts => (Link::Inert, "no host is granted, so every request is refused"),
        Condition::Folders if context.has_folders => (Link::Granted, "folders are granted"),
        Condition::Folders => (Link::Inert, "no folder is granted, so it sees an empty filesystem"),
        Condition::Sockets
            if has_hosts(context.spec, Plane::Socket) || !context.spec.loopback.is_empty() =>
        {
            (Link::Granted, "addresses are granted")
        }
        Condition::Sockets => (Link::Inert, "no address is granted, so sockets stay closed"),
        Condition::Lookups if !context.spec.lookups.is_empty() => {
            (Link::Granted, "names are granted")
        }
        Condition::Lookups => (Link::Inert, "no name is granted, so every look-up is refused"),
        Condition::Config if !context.spec.config.is_empty() => {
            (Link::Granted, "the component has configuration")
        }
        Condition::Config | Condition::Listed => {
            let listed = context.workload.host_interfaces.iter().any(|entry| {
                gives(entry, name)
                    && (entry.scope.is_empty() || entry.scope.contains(&context.spec.name))
            });
            if !listed {
                return Err(unlisted(name));
            }
            (Link::Granted, "`hostInterfaces` names it")
        }
    };
    Ok(plan(track, link, reason))
}

fn has_hosts(spec: &ComponentSpec, plane: Plane) -> bool {
    let patterns = spec.hosts.entries().iter().filter_map(|entry| entry.pattern.as_ref().ok());
    patterns.filter(|pattern| !pattern.is_deny()).any(|pattern| pattern.access(plane).is_some())
}

fn unlisted(name: &InterfaceName) -> Refused {
    let help = format!(
        "add `{{namespace: {}, package: {}, interfaces: [{}]}}` to `hostInterfaces`",
        name.namespace(),
        name.package(),
        name.interface()
    );
    ("interface-not-granted", "no entry of `hostInterfaces` names it".to_owned(), help)
}

fn unserved(name: &InterfaceName, context: &Context<'_>) -> Refused {
    let version = name.version();
    if name.namespace() == "wasi" && version.is_some_and(|v| v.major == 0 && v.minor == 3) {
        let reason = "it needs WASI 0.3, which this version doesn't run".to_owned();
        return ("executor-wasi-p3", reason, "build it for WASI 0.2".to_owned());
    }
    let short = name.unversioned();
    let other = SERVED
        .iter()
        .map(|(served, _)| *served)
        .find(|served| served.split('@').next() == Some(short.as_str()));
    if let Some(other) = other {
        let reason = format!("this version of it isn't served; `{other}` is");
        return ("interface-not-served", reason, format!("build it against `{other}`"));
    }
    let known = matches!(context.catalogue.interface(name), crate::catalogue::Match::Known(_));
    let (code, reason) = if known {
        ("interface-not-served", "this executor doesn't serve it")
    } else {
        ("interface-unknown", "nobody knows it")
    };
    let help = "add a component that exports it to the workload, or remove the import";
    (code, reason.to_owned(), help.to_owned())
}

/// Names the first few refusals.
pub(super) fn names(refusals: &[Refusal]) -> String {
    let mut names: Vec<String> = refusals
        .iter()
        .take(3)
        .map(|refusal| match refusal.import.as_str() {
            "" => format!("`{}`", refusal.component),
            import => format!("`{import}`"),
        })
        .collect();
    if let Some(more) = refusals.len().checked_sub(3).filter(|more| *more > 0) {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}
