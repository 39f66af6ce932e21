//! A whole admitted workload, loaded: its components in the order of their links, and which of them
//! is started.

use std::path::Path;
use std::time::Duration;

use ambit_engine::admitted::{Admitted, Link};
use ambit_engine::digest::Digest;
use ambit_engine::workload::Role;

use wasmtime::component::Component;

use crate::aot::{self, Cache};
use crate::engine::Host;
use crate::error::ExecutorError;
use crate::files::{Folders, Volumes};
use crate::limits::Limits;
use crate::program::{Kind, Program, verify};
use crate::scope::{Scope, Setup};

/// A loaded workload. Its ephemeral volumes are removed when the last clone is gone.
#[derive(Debug)]
pub struct Workload {
    name: String,
    namespace: String,
    programs: Vec<Program>,
    hosts: Vec<String>,
    warnings: Vec<String>,
    _volumes: Volumes,
}

/// What starting a workload means.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// It answers HTTP requests.
    Handler(&'a Program),
    /// It runs to its end.
    Command(&'a Program),
    /// It is called.
    Library(&'a Program),
}

/// Where a workload's components come from, and what they share.
pub struct Source<'a> {
    /// What was admitted.
    pub admitted: &'a Admitted,
    /// The bytes of each component, in the same order.
    pub bytes: &'a [&'a [u8]],
    /// The folder under which ephemeral volumes are made.
    pub temporary: &'a Path,
    /// Where compiled code comes from.
    pub code: Code<'a>,
    /// Is told of long compilations: the component, and the time so far.
    pub progress: &'a dyn Fn(&str, Duration),
    /// Arguments of a command.
    pub arguments: &'a [String],
}

/// Where compiled code comes from.
#[derive(Clone, Copy, Debug, Default)]
pub enum Code<'a> {
    /// It is compiled each time.
    #[default]
    Compile,
    /// From a cache, or else it is compiled.
    Cached(&'a Cache),
    /// It is there, in the order of the components. Whoever made it verified their bytes.
    Compiled(&'a Compiled),
}

/// Compiled components of one workload.
pub struct Compiled(pub(crate) Vec<Component>);

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compiled").field(&self.0.len()).finish()
    }
}

impl Compiled {
    /// Verifies the bytes of each component against what was admitted, and compiles them.
    ///
    /// # Errors
    ///
    /// As [`Program::load`], up to its linking.
    pub fn new(host: &Host, source: &Source<'_>, limits: &Limits) -> Result<Self, ExecutorError> {
        if let Code::Compiled(Self(compiled)) = source.code {
            return Ok(Self(compiled.clone()));
        }
        let components = source.admitted.components().iter().enumerate();
        components
            .map(|(index, component)| {
                let bytes = source.bytes.get(index).copied().unwrap_or_default();
                one(host, (component.name(), bytes, component.digest()), source, limits)
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn one(
    host: &Host,
    (name, bytes, digest): (&str, &[u8], &Digest),
    source: &Source<'_>,
    limits: &Limits,
) -> Result<Component, ExecutorError> {
    let told = |time| (source.progress)(name, time);
    let Code::Cached(cache) = source.code else {
        verify(bytes, digest)?;
        return aot::compile(host, name, bytes, limits, &told);
    };
    // An entry is found by the digest that was admitted, so it is loaded while the bytes are hashed.
    // Nothing of it runs before they are.
    let found = std::thread::scope(|scope| {
        let found = scope.spawn(|| cache.find(host, digest));
        verify(bytes, digest)?;
        Ok(found.join().ok().flatten())
    })?;
    match found {
        Some(component) => Ok(component),
        None => cache.compile(host, (name, bytes, digest), limits, &told),
    }
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("admitted", &self.admitted).finish_non_exhaustive()
    }
}

impl Workload {
    /// Opens the folders, resolves the values, and verifies, compiles and links every component.
    ///
    /// # Errors
    ///
    /// Every variant of [`ExecutorError`] that concerns the time before the first call.
    pub fn load(host: &Host, source: &Source<'_>, setup: &Setup) -> Result<Self, ExecutorError> {
        let admitted = source.admitted;
        let compiled = Compiled::new(host, source, &setup.limits)?;
        let volumes = Volumes::new(source.temporary, &setup.values)?;
        let count = admitted.components().len();
        let mut loaded: Vec<Option<Program>> = vec![None; count];
        let mut warnings = Vec::new();
        // The review refuses circles, so each round loads at least one component.
        for _ in 0..count {
            for (index, component) in admitted.components().iter().enumerate() {
                let is_loaded = loaded.get(index).is_some_and(Option::is_some);
                let needed: Vec<usize> = component
                    .plan()
                    .imports()
                    .iter()
                    .filter_map(|import| match import.link {
                        Link::Sibling(sibling) => Some(sibling),
                        Link::Granted | Link::Inert | Link::Types => None,
                    })
                    .collect();
                let siblings: Option<Vec<(usize, Program)>> = needed
                    .into_iter()
                    .map(|sibling| {
                        loaded.get(sibling).cloned().flatten().map(|program| (sibling, program))
                    })
                    .collect();
                let (false, Some(siblings)) = (is_loaded, siblings) else { continue };
                let folders = Folders::open(component, &volumes)?;
                warnings.extend(folders.warnings().iter().cloned());
                let arguments = arguments(component.name(), source.arguments);
                let scope = Scope::open(admitted, component, setup, folders, arguments)?;
                let code = compiled.0.get(index).cloned();
                let code = code.ok_or_else(|| ExecutorError::Engine {
                    reason: "code is missing".to_owned(),
                })?;
                let program = Program::link(host, &scope, code, &siblings)?;
                if let Some(place) = loaded.get_mut(index) {
                    *place = Some(program);
                }
            }
        }
        let programs: Option<Vec<Program>> = loaded.into_iter().collect();
        let programs = programs.ok_or_else(|| ExecutorError::Setup {
            code: "link-cycle",
            message: format!("components of `{}` import one another in a circle", admitted.name()),
            help: "break the circle".to_owned(),
        })?;
        Ok(Self {
            name: admitted.name().to_owned(),
            namespace: admitted.namespace().to_owned(),
            programs,
            hosts: http_hosts(admitted),
            warnings,
            _volumes: volumes,
        })
    }

    /// Returns the workload's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the workload's namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns its components, in the order of the document.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Returns the names under which its HTTP interface is to be served, as the document has them.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns what somebody should know who runs it: hard links in folders, and the like.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Tells what starting it means: the one component that answers HTTP, else the service or the
    /// one command, else the one component there is.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Setup`] with code `run-entry` if there is none, or no single one.
    pub fn entry(&self) -> Result<Entry<'_>, ExecutorError> {
        let of = |kind: Kind| self.programs.iter().filter(move |program| program.kind() == kind);
        let names = |kind: Kind| {
            let names: Vec<&str> = of(kind).map(|p| p.scope().who().component.as_str()).collect();
            names.join("`, `")
        };
        let several = |kind: Kind, what: &str| ExecutorError::Setup {
            code: "run-entry",
            message: format!("`{}` all {what}, so it isn't clear which is started", names(kind)),
            help: "keep one of them in the workload".to_owned(),
        };
        let mut handlers = of(Kind::Handler);
        match (handlers.next(), handlers.next()) {
            (Some(program), None) => return Ok(Entry::Handler(program)),
            (Some(_), Some(_)) => return Err(several(Kind::Handler, "answer HTTP requests")),
            (None, _) => {}
        }
        let service = self.programs.iter().find(|program| {
            program.scope().component().role() == Role::Service && program.kind() == Kind::Command
        });
        if let Some(program) = service {
            return Ok(Entry::Command(program));
        }
        let mut commands = of(Kind::Command);
        match (commands.next(), commands.next()) {
            (Some(program), None) => return Ok(Entry::Command(program)),
            (Some(_), Some(_)) => return Err(several(Kind::Command, "are commands")),
            (None, _) => {}
        }
        match self.programs.as_slice() {
            [program] => Ok(Entry::Library(program)),
            _ => Err(ExecutorError::Setup {
                code: "run-entry",
                message: format!("no component of `{}` can be started", self.name),
                help: "one has to export `wasi:http/incoming-handler` or `wasi:cli/run`; \
                       `--invoke` calls any other"
                    .to_owned(),
            }),
        }
    }
}

/// The arguments of a component: its name first, as programs expect.
fn arguments(name: &str, given: &[String]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(given.iter().cloned()).collect()
}

/// The hosts that `wasi:http` entries of the document name, without ports.
fn http_hosts(admitted: &Admitted) -> Vec<String> {
    let entries = admitted.interfaces().iter();
    let entries = entries.filter(|e| e.namespace == "wasi" && e.package == "http");
    let hosts = entries.filter_map(|entry| entry.config.get("host"));
    hosts
        .flat_map(|hosts| hosts.split(','))
        .map(|host| host.trim().split(':').next().unwrap_or_default().to_ascii_lowercase())
        .filter(|host| !host.is_empty() && host != "*")
        .collect()
}
