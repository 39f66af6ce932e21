//! A workload that is loaded, in this process or in one of its own.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use ambit_executor::ingress::Answers;
use ambit_executor::isolate::{self, Ground, Isolated, Launch, Wall};
use ambit_executor::record::Who;
use ambit_executor::serve::Handler;
use ambit_executor::stdio::{LineSink, Stdio};
use ambit_executor::workload::{Code, Entry, Source, Workload};
use ambit_executor::{CommandOutcome, ExecutorError, Host, Program, invoke, run_command};

use super::serve::Lines;
use super::{Allowed, Given, failure};
use crate::args::{Isolate, Run};
use crate::output::{Failure, Output};
use crate::render::style::safe;

/// Loads workloads.
pub(super) struct Loader<'a> {
    pub(super) command: &'a Run,
    pub(super) output: &'a Output,
    pub(super) host: &'a Host,
    pub(super) given: &'a Given,
    pub(super) runtime: tokio::runtime::Handle,
}

impl Loader<'_> {
    /// Loads what is allowed, and puts it on record.
    pub(super) fn all(&self, allowed: &[Allowed]) -> Result<Vec<Loaded>, Failure> {
        let apart = match self.command.isolate {
            Isolate::Always => true,
            Isolate::Never => false,
            Isolate::Auto => allowed.len() > 1 && cfg!(target_os = "linux"),
        };
        // What may run is on record before it does.
        for one in allowed {
            self.record(one)?;
        }
        allowed.iter().map(|one| self.one(one, apart)).collect()
    }

    fn record(&self, allowed: &Allowed) -> Result<(), Failure> {
        let admitted = &allowed.admitted;
        for component in admitted.components() {
            let who = Who {
                workload: format!("{}/{}", admitted.namespace(), admitted.name()),
                component: component.name().to_owned(),
                digest: component.digest().to_string(),
            };
            self.given.recording.component(&who, allowed.verdict.as_str())?;
        }
        Ok(())
    }

    fn one(&self, allowed: &Allowed, apart: bool) -> Result<Loaded, Failure> {
        let given = self.given;
        let bytes: Vec<&[u8]> = allowed.bytes.iter().map(Vec::as_slice).collect();
        let waited = Cell::new(false);
        let progress = |component: &str, _time: Duration| {
            if !waited.replace(true) {
                self.output.about(&format!("compiling {} …\n", safe(component)));
            }
        };
        let source = Source {
            admitted: &allowed.admitted,
            bytes: &bytes,
            temporary: &given.temporary,
            arguments: &self.command.arguments,
            code: given.cache.as_ref().map_or(Code::Compile, Code::Cached),
            progress: &progress,
        };
        let loaded = if apart {
            let ground = Ground {
                host: self.host,
                setup: &given.setup,
                lines: Arc::new(Lines::new(*self.output)),
                runtime: self.runtime.clone(),
            };
            Isolated::start(&launch(), &source, &ground).map(Loaded::Apart)
        } else {
            Workload::load(self.host, &source, &given.setup).map(Loaded::Here)
        };
        let loaded = loaded.map_err(|error| failure(&error))?;
        for warning in loaded.warnings() {
            self.output.note(&safe(warning));
        }
        if let Loaded::Apart(isolated) = &loaded {
            let confined = isolated.confined();
            if [confined.files, confined.calls].contains(&Wall::None) {
                let message = format!(
                    "the kernel gives no {} around the process of `{}`",
                    if confined.files == Wall::None { "Landlock" } else { "seccomp" },
                    safe(isolated.name())
                );
                let help = "the engine's sandbox holds it alone there";
                self.output.warning("isolate-walls", &message, help);
            }
        }
        Ok(loaded)
    }
}

/// This program again, as a worker, whatever has become of its file since.
fn launch() -> Launch {
    Launch {
        program: "/proc/self/exe".into(),
        arguments: vec!["isolated-worker".into()],
        environment: Vec::new(),
    }
}

/// A workload that is ready.
pub(super) enum Loaded {
    Here(Workload),
    Apart(Isolated),
}

impl Loaded {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Here(workload) => workload.name(),
            Self::Apart(isolated) => isolated.name(),
        }
    }

    pub(super) fn hosts(&self) -> &[String] {
        match self {
            Self::Here(workload) => workload.hosts(),
            Self::Apart(isolated) => isolated.hosts(),
        }
    }

    fn warnings(&self) -> &[String] {
        match self {
            Self::Here(workload) => workload.warnings(),
            Self::Apart(isolated) => isolated.warnings(),
        }
    }

    /// Whether it is a command; an error if it can't be started at all.
    pub(super) fn is_command(&self) -> Result<bool, ExecutorError> {
        match self {
            Self::Here(workload) => Ok(matches!(workload.entry()?, Entry::Command(_))),
            Self::Apart(isolated) => Ok(isolated.entry() == isolate::Entry::Command),
        }
    }

    /// Returns what answers HTTP requests.
    pub(super) fn handler(
        &self,
        lines: &Arc<dyn LineSink>,
    ) -> Result<Arc<dyn Answers>, ExecutorError> {
        let missing = |component: &str| ExecutorError::NoExport {
            component: component.to_owned(),
            wanted: "`wasi:http/incoming-handler` and so answers no requests".to_owned(),
        };
        match self {
            Self::Here(workload) => match workload.entry()? {
                Entry::Handler(program) => {
                    Ok(Handler::new(program, Stdio::lines(Arc::clone(lines)))?)
                }
                Entry::Command(program) | Entry::Library(program) => {
                    Err(missing(&program.scope().who().component))
                }
            },
            Self::Apart(isolated) if isolated.entry() == isolate::Entry::Handler => {
                Ok(isolated.handler())
            }
            Self::Apart(isolated) => Err(missing(isolated.name())),
        }
    }

    pub(super) async fn run_command(&self) -> Result<CommandOutcome, ExecutorError> {
        match self {
            Self::Here(workload) => {
                let program = the_one(workload)?;
                let stdio = Stdio::process();
                let outcome = run_command(program, &stdio).await;
                stdio.finish().await;
                outcome
            }
            Self::Apart(isolated) => isolated.run_command().await,
        }
    }

    pub(super) async fn invoke(&self, text: &str) -> Result<String, ExecutorError> {
        match self {
            Self::Here(workload) => {
                let program = the_one(workload)?;
                let stdio = Stdio::process();
                let answer = invoke::call(program, &stdio, text).await;
                stdio.finish().await;
                answer
            }
            Self::Apart(isolated) => isolated.invoke(text).await,
        }
    }
}

/// The component that is started or called.
fn the_one(workload: &Workload) -> Result<&Program, ExecutorError> {
    Ok(match workload.entry()? {
        Entry::Handler(program) | Entry::Command(program) | Entry::Library(program) => program,
    })
}
