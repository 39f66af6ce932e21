//! The process that runs one workload.

use std::io;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::sync::Arc;

use ambit_engine::admitted::{Admitted, FolderContent};
use ambit_engine::grant::{FolderMode, FolderSource};
use http::Request;
use http::header::{CONNECTION, HeaderName, TE, UPGRADE};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use wasmtime::component::Component;

use super::channel::{Channel, memory_file, read_memory};
use super::confine::{Allowance, Confined, confine};
use super::message::{
    CALLS, CONTROL, Entry, MAX_ANSWER, MAX_CODE, MAX_TERMS, Order, Report, Terms,
};
use super::remote::Parent;
use crate::engine::{Allocation, Host, HostOptions};
use crate::error::ExecutorError;
use crate::ingress::Answers as _;
use crate::instance::run_command;
use crate::invoke;
use crate::program::Program;
use crate::scope::{PrivateNetwork, Setup};
use crate::serve::Handler;
use crate::services::{Backing, Values};
use crate::stdio::{LineSink, Stdio};
use crate::workload::{self, Code, Compiled, Source, Workload};

/// File descriptors beside those that components may have.
const OWN_DESCRIPTORS: u64 = 256;

/// Runs a workload for the parent that started this process, until the parent is gone.
///
/// Nothing else may run in the process yet: it is confined before its first thread starts.
///
/// # Errors
///
/// If this process was not started as a worker.
pub fn work() -> io::Result<()> {
    let control = inherited(CONTROL)?;
    let calls = inherited(CALLS)?;
    let (control, calls) = (Channel::from_fd(control), Channel::from_fd(calls));
    let Some(orders) = Orders::read(&control)? else { return Ok(()) };
    match orders.load(calls) {
        Ok(loaded) => loaded.serve(&control),
        Err(error) => control.send(&failed(&error), &[]),
    }
}

/// Takes over a descriptor that the parent left open.
#[expect(unsafe_code, reason = "a number becomes a descriptor")]
pub(super) fn inherited(number: i32) -> io::Result<OwnedFd> {
    let target = std::fs::read_link(format!("/proc/self/fd/{number}"))?;
    if !target.to_string_lossy().starts_with("socket:") {
        return Err(io::Error::other("this process was not started by `ambit run`"));
    }
    // SAFETY: the descriptor is open, as its link shows; nothing in this process has made it or
    // uses it, since this runs first, and once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn failed(error: &ExecutorError) -> Report {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    let help = error.help().unwrap_or_default();
    Report::Failed { code: error.code().to_owned(), message, help }
}

/// What the parent gives before anything is loaded.
struct Orders {
    terms: Terms,
    code: Vec<Vec<u8>>,
}

impl Orders {
    fn read(control: &Channel) -> io::Result<Option<Self>> {
        let mut terms = None;
        let mut code = Vec::new();
        while let Some((order, handles)) = control.receive::<Order>()? {
            let file = handles.into_iter().next();
            match (order, file) {
                (Order::Terms, Some(file)) => {
                    let bytes = read_memory(file, MAX_TERMS)?;
                    terms = Some(serde_json::from_slice(&bytes).map_err(io::Error::other)?);
                }
                (Order::Code, Some(file)) => code.push(read_memory(file, MAX_CODE)?),
                (Order::Load, None) => {
                    let terms = terms.ok_or_else(|| io::Error::other("there are no terms"))?;
                    return Ok(Some(Self { terms, code }));
                }
                (order, _) => return Err(io::Error::other(format!("{order:?} comes too early"))),
            }
        }
        Ok(None)
    }

    fn load(self, calls: Channel) -> Result<Loaded, ExecutorError> {
        let broken = |reason: String| ExecutorError::Engine { reason };
        let Terms { limits, .. } = &self.terms;
        let admitted = Admitted::from_parent(self.terms.admitted.as_bytes())
            .map_err(|error| broken(error.to_string()))?;
        let confined =
            confine(&self.allowance(&admitted)).map_err(|error| ExecutorError::Setup {
                code: "isolate-walls",
                message: format!("the process of the workload can't be confined: {error}"),
                help: "run it with `--isolate=never`, without a process of its own".to_owned(),
            })?;
        let allocation = if self.terms.pooled { Allocation::Pooling } else { Allocation::OnDemand };
        let host = Host::new(&HostOptions { limits: limits.clone(), allocation })?;
        let components: Result<Vec<Component>, ExecutorError> =
            self.code.iter().map(|code| component(&host, code)).collect();
        let parent = Arc::new(Parent::new(calls));
        let setup = self.setup(&parent);
        let compiled = Compiled(components?);
        let source = Source {
            admitted: &admitted,
            bytes: &[],
            temporary: &self.terms.temporary,
            code: Code::Compiled(&compiled),
            progress: &|_, _| {},
            arguments: &self.terms.arguments,
        };
        let workload = Workload::load(&host, &source, &setup)?;
        Ok(Loaded { workload, confined, parent })
    }

    /// What the workload's grants need of the machine, and nothing else.
    fn allowance(&self, admitted: &Admitted) -> Allowance {
        let (mut read, mut write) = (Vec::new(), vec![self.terms.temporary.clone()]);
        write.extend(self.terms.state_dir.clone());
        let mut network = false;
        for component in admitted.components() {
            let plan = component.plan();
            network |= plan.imports().iter().any(|import| {
                import.track.starts_with("wasi:sockets/") && plan.grants(&import.track)
            });
            for folder in component.folders() {
                let FolderContent::Folder(grant) = &folder.content else { continue };
                let FolderSource::Host(path) = grant.source() else { continue };
                let path = PathBuf::from(path.as_str());
                if grant.mode() == FolderMode::ReadOnly {
                    read.push(path);
                } else {
                    write.push(path);
                }
            }
        }
        if network {
            // Where the system's resolver looks.
            read.push(PathBuf::from("/etc"));
        }
        let limits = &self.terms.limits;
        let each = u64::try_from(limits.descriptors).unwrap_or(u64::MAX);
        let instances = u64::try_from(limits.concurrency).unwrap_or(u64::MAX);
        let descriptors = each.saturating_mul(instances).saturating_add(OWN_DESCRIPTORS);
        Allowance { read, write, descriptors, network }
    }

    fn setup(&self, parent: &Arc<Parent>) -> Setup {
        let mut values = Values::builder();
        for object in &self.terms.values {
            for (key, value) in &object.keys {
                values = if object.is_secret {
                    values.secret_bytes(&object.name, key, value.clone())
                } else {
                    values.config_bytes(&object.name, key, value.clone())
                };
            }
        }
        let private_network =
            if self.terms.private_network { PrivateNetwork::Open } else { PrivateNetwork::Closed };
        Setup {
            limits: self.terms.limits.clone(),
            recorder: Arc::<Parent>::clone(parent),
            egress: Arc::new(parent.egress()),
            loopback: self.terms.loopback.clone(),
            private_network,
            values: Arc::new(values.build()),
            // They stay with the parent.
            secrets: Vec::new(),
            services: Backing::new(Arc::<Parent>::clone(parent)),
            state_dir: self.terms.state_dir.clone(),
        }
    }
}

#[expect(unsafe_code, reason = "wasmtime's loading of its own compiled code is unsafe")]
fn component(host: &Host, code: &[u8]) -> Result<Component, ExecutorError> {
    // SAFETY: `code` came in a sealed memory file over the channel that only the parent has, which
    // is this same program and puts nothing there but the output of `Component::serialize`.
    unsafe { Component::deserialize(host.engine(), code) }
        .map_err(|error| ExecutorError::Engine { reason: format!("{error:#}") })
}

/// A workload that is ready.
struct Loaded {
    workload: Workload,
    confined: Confined,
    parent: Arc<Parent>,
}

impl Loaded {
    fn serve(self, control: &Channel) -> io::Result<()> {
        let entry = match self.workload.entry() {
            Ok(entry) => entry,
            Err(error) => return control.send(&failed(&error), &[]),
        };
        let (kind, program) = match entry {
            workload::Entry::Handler(program) => (Entry::Handler, program.clone()),
            workload::Entry::Command(program) => (Entry::Command, program.clone()),
            workload::Entry::Library(program) => (Entry::Library, program.clone()),
        };
        let sink: Arc<dyn LineSink> = Arc::<Parent>::clone(&self.parent);
        let handler = match kind {
            Entry::Handler => match Handler::new(&program, Stdio::lines(sink)) {
                Ok(handler) => Some(handler),
                Err(error) => return control.send(&failed(&error), &[]),
            },
            Entry::Command | Entry::Library => None,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let loaded = Report::Loaded {
            confined: self.confined,
            entry: kind,
            hosts: self.workload.hosts().to_vec(),
            warnings: self.workload.warnings().to_vec(),
        };
        control.send(&loaded, &[])?;
        while let Some((order, handles)) = control.receive::<Order>()? {
            match (order, handles.into_iter().next()) {
                (Order::Connection, Some(socket)) => {
                    let Some(handler) = &handler else { continue };
                    runtime.spawn(answer(Arc::clone(handler), socket));
                }
                (Order::Command, None) => {
                    let stdio = Stdio::process();
                    let outcome = runtime.block_on(run_command(&program, &stdio));
                    runtime.block_on(stdio.finish());
                    let report = match outcome {
                        Ok(outcome) => Report::Ended { status: outcome.status },
                        Err(error) => failed(&error),
                    };
                    control.send(&report, &[])?;
                }
                (Order::Invoke, Some(text)) => {
                    let text = read_memory(text, MAX_ANSWER)?;
                    let text = String::from_utf8(text).map_err(io::Error::other)?;
                    let stdio = Stdio::process();
                    let answer = runtime.block_on(invoke(&program, &stdio, &text));
                    runtime.block_on(stdio.finish());
                    match answer {
                        Ok(answer) => {
                            let file = memory_file("ambit-answer", answer.as_bytes())?;
                            control.send(&Report::Answer, &[file.as_fd()])?;
                        }
                        Err(error) => control.send(&failed(&error), &[])?,
                    }
                }
                (order, _) => return Err(io::Error::other(format!("{order:?} comes too late"))),
            }
        }
        // The parent is gone, so nobody waits for what still runs.
        runtime.shutdown_background();
        Ok(())
    }
}

async fn invoke(program: &Program, stdio: &Stdio, text: &str) -> Result<String, ExecutorError> {
    invoke::call(program, stdio, text).await
}

/// Answers what comes on one socket.
async fn answer(handler: Arc<Handler>, socket: OwnedFd) {
    let Ok(stream) = UnixStream::from_std(StdStream::from(socket)) else { return };
    let service = service_fn(move |mut request: Request<Incoming>| {
        const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
        for name in [CONNECTION, KEEP_ALIVE, TE, UPGRADE] {
            request.headers_mut().remove(name);
        }
        let handler = Arc::clone(&handler);
        async move { Ok::<_, std::convert::Infallible>(handler.answer(request).await) }
    });
    // How it ends is seen by the parent.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
