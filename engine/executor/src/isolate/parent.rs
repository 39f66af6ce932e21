//! A workload in a process of its own, as its parent sees it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ambit_engine::admitted::{Admitted, FolderContent, ValueSource};
use ambit_engine::catalogue::Verb;
use ambit_engine::workload::ReferenceKind;
use command_fds::{CommandFdExt as _, FdMapping};
use http::header::{CONNECTION, HeaderName, HeaderValue, TE, UPGRADE};
use http::{Request, Response, StatusCode, Uri, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tempfile::TempDir;

use super::channel::{Channel, memory_file, read_memory};
use super::confine::Confined;
use super::message::{self, Ask, Begun, CALLS, CONTROL, Entry, MAX_ANSWER, Order, Report, Terms};
use super::pool::Pool;
use super::relay::Relay;
use crate::egress::{Body, BoxFuture};
use crate::engine::Host;
use crate::error::ExecutorError;
use crate::ingress::Answers;
use crate::instance::CommandOutcome;
use crate::record::{Effect, Outcome, Recorder, Ruling, Ticket, Who};
use crate::scope::{PrivateNetwork, Setup};
use crate::serve::refusal;
use crate::services::{Level, LogLine};
use crate::stdio::{LineSink, Stream, plain};
use crate::workload::{Compiled, Source};

/// How long a worker may take to load what is compiled already.
const LOAD_TIME: Duration = Duration::from_secs(60);

/// Effects of one worker under way at once. A worker with more is ended.
const MAX_OPEN: usize = 1 << 16;

/// How a worker is started: this program again, as one that calls [`super::work`].
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its environment; nothing of this process's own is passed on.
    pub environment: Vec<(OsString, OsString)>,
}

/// What a worker works with, beside its workload.
pub struct Ground<'a> {
    /// The engine for which code is compiled.
    pub host: &'a Host,
    /// What the operator brings. Record, egress and logs are reached through the parent.
    pub setup: &'a Setup,
    /// Takes what components write, line by line, unless it is a command's.
    pub lines: Arc<dyn LineSink>,
    /// Where requests are relayed.
    pub runtime: tokio::runtime::Handle,
}

impl std::fmt::Debug for Ground<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ground").finish_non_exhaustive()
    }
}

/// A workload in a process of its own. The process ends with the last clone.
#[derive(Clone, Debug)]
pub struct Isolated {
    name: String,
    hosts: Vec<String>,
    warnings: Vec<String>,
    entry: Entry,
    confined: Confined,
    components: Vec<Who>,
    worker: Arc<Worker>,
}

impl Isolated {
    /// Verifies and compiles the components, starts a process, and loads them there.
    ///
    /// The process is told what the workload is granted and no more, is confined before it looks at
    /// a component, and asks this one for every effect that goes on record and every request that
    /// it sends.
    ///
    /// # Errors
    ///
    /// As [`Workload::load`](crate::workload::Workload::load), and [`ExecutorError::Setup`] with
    /// code `isolate-failed` if the process can't be started or dies.
    pub fn start(
        launch: &Launch,
        source: &Source<'_>,
        ground: &Ground<'_>,
    ) -> Result<Self, ExecutorError> {
        let admitted = source.admitted;
        let compiled = Compiled::new(ground.host, source, &ground.setup.limits)?;
        let temporary = tempfile::Builder::new()
            .prefix("ambit-worker-")
            .tempdir_in(source.temporary)
            .map_err(|error| broken(&error))?;
        let terms = terms(source, ground, temporary.path().to_owned());
        let terms = serde_json::to_vec(&terms).map_err(|error| broken(&error))?;
        let components: Vec<Who> = admitted
            .components()
            .iter()
            .map(|component| Who {
                workload: format!("{}/{}", admitted.namespace(), admitted.name()),
                component: component.name().to_owned(),
                digest: component.digest().to_string(),
            })
            .collect();
        let worker = Worker::spawn(launch, admitted, &components, ground, temporary)?;
        let failed = |error: io::Error| worker.failed(&error);
        let order = |order: &Order, bytes: &[u8]| {
            let file = memory_file("ambit-order", bytes)?;
            worker.control.send(order, &[file.as_fd()])
        };
        order(&Order::Terms, &terms).map_err(failed)?;
        for component in &compiled.0 {
            let code = component.serialize().map_err(|error| broken(&error))?;
            order(&Order::Code, &code).map_err(failed)?;
        }
        worker.control.send(&Order::Load, &[]).map_err(failed)?;
        worker.control.patience(Some(LOAD_TIME)).map_err(failed)?;
        let report = worker.report();
        worker.control.patience(None).map_err(failed)?;
        match report? {
            (Report::Loaded { confined, entry, hosts, warnings }, _) => Ok(Self {
                name: admitted.name().to_owned(),
                hosts,
                warnings,
                entry,
                confined,
                components,
                worker: Arc::new(worker),
            }),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Returns the workload's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names under which its HTTP interface is to be served, as the document has them.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns what somebody should know who runs it.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Tells what starting it means.
    #[must_use]
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Returns which walls stand round the process.
    #[must_use]
    pub fn confined(&self) -> Confined {
        self.confined
    }

    /// Returns its components.
    #[must_use]
    pub fn components(&self) -> &[Who] {
        &self.components
    }

    /// Returns the number of its process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.worker.id
    }

    /// Returns what answers HTTP requests.
    #[must_use]
    pub fn handler(&self) -> Arc<dyn Answers> {
        Arc::<Worker>::clone(&self.worker)
    }

    /// Runs the command, with the standard streams of this process.
    ///
    /// # Errors
    ///
    /// As [`run_command`](crate::run_command).
    pub async fn run_command(&self) -> Result<CommandOutcome, ExecutorError> {
        match self.ask(Order::Command, None).await? {
            (Report::Ended { status }, _) => Ok(CommandOutcome { status }),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Calls a function, as [`invoke::call`](crate::invoke::call).
    ///
    /// # Errors
    ///
    /// As [`invoke::call`](crate::invoke::call).
    pub async fn invoke(&self, text: &str) -> Result<String, ExecutorError> {
        let text = memory_file("ambit-call", text.as_bytes()).map_err(|error| broken(&error))?;
        match self.ask(Order::Invoke, Some(text)).await? {
            (Report::Answer, Some(answer)) => {
                let answer = read_memory(answer, MAX_ANSWER).map_err(|error| broken(&error))?;
                Ok(String::from_utf8_lossy(&answer).into_owned())
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    async fn ask(
        &self,
        order: Order,
        file: Option<OwnedFd>,
    ) -> Result<(Report, Option<OwnedFd>), ExecutorError> {
        let worker = Arc::clone(&self.worker);
        let mut unfinished = Unfinished(Some(&self.worker));
        let asked = tokio::task::spawn_blocking(move || {
            let files: Vec<_> = file.iter().map(OwnedFd::as_fd).collect();
            worker.control.send(&order, &files).map_err(|error| worker.failed(&error))?;
            worker.report()
        });
        let answer = asked.await;
        unfinished.0 = None;
        answer.map_err(|error| broken(&error))?
    }
}

/// Ends the process when nobody waits for what it does any more.
struct Unfinished<'a>(Option<&'a Worker>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(worker) = self.0 {
            worker.kill();
        }
    }
}

fn broken(error: &dyn std::fmt::Display) -> ExecutorError {
    ExecutorError::Setup {
        code: "isolate-failed",
        message: format!("a process for the workload can't be started: {error}"),
        help: "`--isolate=never` runs it without one".to_owned(),
    }
}

fn unexpected(report: &Report) -> ExecutorError {
    broken(&format!("it reports {report:?}"))
}

/// What of the machine and of the operator's values the workload needs.
pub(super) fn terms(source: &Source<'_>, ground: &Ground<'_>, temporary: PathBuf) -> Terms {
    let setup = ground.setup;
    let admitted = source.admitted;
    let admits = String::from_utf8_lossy(&admitted.to_child()).into_owned();
    let wanted = |wanted: ReferenceKind, name: &str| {
        admitted.components().iter().any(|component| {
            let variables = component.environment().iter().chain(component.config());
            let mut variables = variables.map(|variable| &variable.value);
            let mut folders = component.folders().iter().map(|folder| &folder.content);
            variables.any(|value| match value {
                ValueSource::Key { kind, object, .. } | ValueSource::All { kind, object } => {
                    *kind == wanted && object == name
                }
                ValueSource::Literal(_) => false,
            }) || folders.any(|content| match content {
                FolderContent::Object { kind, name: object, .. } => {
                    *kind == wanted && object == name
                }
                FolderContent::Folder(_) => false,
            })
        })
    };
    let values = setup
        .values
        .objects()
        .iter()
        .filter(|((kind, name), _)| wanted(*kind, name))
        .map(|((kind, name), keys)| message::Object {
            is_secret: *kind == ReferenceKind::Secret,
            name: name.clone(),
            keys: keys.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        })
        .collect();
    Terms {
        admitted: admits,
        limits: setup.limits.clone(),
        pooled: ground.host.is_pooled(),
        values,
        loopback: setup.loopback.clone(),
        private_network: setup.private_network == PrivateNetwork::Open,
        state_dir: setup.state_dir.clone(),
        temporary,
        arguments: source.arguments.to_vec(),
    }
}

/// The process.
#[derive(Debug)]
struct Worker {
    id: u32,
    control: Arc<Channel>,
    pool: Pool,
    child: Arc<Mutex<Child>>,
    /// Whether its end is wanted.
    ending: Arc<AtomicBool>,
    watch: Option<std::thread::JoinHandle<()>>,
    _temporary: TempDir,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        if let Some(watch) = self.watch.take() {
            // Its folder is removed only after the process is gone.
            let _ = watch.join();
        }
    }
}

impl Worker {
    fn spawn(
        launch: &Launch,
        admitted: &Admitted,
        components: &[Who],
        ground: &Ground<'_>,
        temporary: TempDir,
    ) -> Result<Self, ExecutorError> {
        let made = || Ok::<_, io::Error>((Channel::pair()?, Channel::pair()?));
        let ((control, own), (calls, asks)) = made().map_err(|error| broken(&error))?;
        let control = Arc::new(control);
        let ending = Arc::new(AtomicBool::new(false));
        let relay = Arc::new(Relay::new(admitted, components, ground.setup));
        let served = Served {
            calls,
            components: components.to_vec(),
            recorder: Arc::clone(&ground.setup.recorder),
            logs: ground.setup.services.clone(),
            lines: Arc::clone(&ground.lines),
            runtime: ground.runtime.clone(),
            relay,
            open: HashMap::new(),
            ending: Arc::clone(&ending),
        };
        let launch = launch.clone();
        let (started, start) = std::sync::mpsc::channel();
        // The worker dies with the thread that starts it, so this one lives as long as it does.
        let watch = std::thread::Builder::new()
            .name("ambit-worker".to_owned())
            .spawn(move || match spawn(&launch, own, asks) {
                Ok(child) => {
                    let id = child.id();
                    let child = Arc::new(Mutex::new(child));
                    // Whoever waits for it may be gone, and then so is the worker, soon.
                    let _ = started.send(Ok((id, Arc::clone(&child))));
                    served.until_its_end(id, &child);
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                }
            })
            .map_err(|error| broken(&error))?;
        let (id, child) =
            start.recv().map_err(|error| broken(&error))?.map_err(|error| broken(&error))?;
        let connect = Arc::clone(&control);
        let pool = Pool::new(Box::new(move |fd| connect.send(&Order::Connection, &[fd.as_fd()])));
        let watch = Some(watch);
        Ok(Self { id, control, pool, child, ending, watch, _temporary: temporary })
    }

    /// Ends the process, as somebody wants.
    fn kill(&self) {
        self.ending.store(true, Ordering::Relaxed);
        // It may be gone already.
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    /// Waits for a report.
    fn report(&self) -> Result<(Report, Option<OwnedFd>), ExecutorError> {
        match self.control.receive::<Report>() {
            Ok(Some((Report::Failed { code, message, help }, _))) => {
                Err(ExecutorError::Setup { code: known(code), message, help })
            }
            Ok(Some((report, handles))) => Ok((report, handles.into_iter().next())),
            Ok(None) => Err(self.failed(&io::Error::from(io::ErrorKind::UnexpectedEof))),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &io::Error) -> ExecutorError {
        ExecutorError::Setup {
            code: "isolate-died",
            message: format!("the process {} of the workload is gone: {error}", self.id),
            help: "`ambit record show` has what it did; start it again".to_owned(),
        }
    }
}

fn spawn(launch: &Launch, control: Channel, calls: Channel) -> io::Result<Child> {
    let mapping = |channel: Channel, child_fd| FdMapping { parent_fd: channel.into_fd(), child_fd };
    Command::new(&launch.program)
        .args(&launch.arguments)
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .fd_mappings(vec![mapping(control, CONTROL), mapping(calls, CALLS)])
        .map_err(|error| io::Error::other(error.to_string()))?
        .spawn()
}

/// The code of a worker's error as the static text that errors hold. A failed start costs these
/// few bytes for as long as the process lives.
fn known(code: String) -> &'static str {
    let is_code = code.len() <= 40 && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    if is_code { code.leak() } else { "isolate-failed" }
}

impl Answers for Worker {
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<Response<Body>> {
        Box::pin(async move {
            match self.pool.send(onward(request)).await {
                Ok(response) => {
                    let mut response = response.map(|body| body.map_err(Into::into).boxed_unsync());
                    response.headers_mut().remove(CONNECTION);
                    response
                }
                Err(_) => refusal(
                    StatusCode::BAD_GATEWAY,
                    "isolate-died",
                    "the process of the workload is gone",
                ),
            }
        })
    }
}

/// A request as it goes to the worker: without what concerns the client's connection only.
fn onward(request: Request<Incoming>) -> Request<Body> {
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    for name in [CONNECTION, KEEP_ALIVE, TE, UPGRADE] {
        request.headers_mut().remove(name);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    *request.version_mut() = Version::HTTP_11;
    if !request.headers().contains_key(http::header::HOST) {
        request.headers_mut().insert(http::header::HOST, HeaderValue::from_static("localhost"));
    }
    request
}

/// The parent's side of the calls of one worker.
struct Served {
    calls: Channel,
    components: Vec<Who>,
    recorder: Arc<dyn Recorder>,
    logs: crate::services::Backing,
    lines: Arc<dyn LineSink>,
    runtime: tokio::runtime::Handle,
    relay: Arc<Relay>,
    /// Effects under way: what they touch, for those that send requests.
    open: HashMap<u64, Option<String>>,
    ending: Arc<AtomicBool>,
}

impl Served {
    /// Serves the worker until it is gone, and records how it ended.
    fn until_its_end(mut self, id: u32, child: &Mutex<Child>) {
        let whole = self.components.first().cloned();
        let since = std::time::Instant::now();
        let begun = whole.as_ref().map(|who| {
            self.recorder.begin(&Effect {
                who,
                instance: 0,
                verb: Verb::None,
                interface: "ambit:isolate",
                function: "process",
                subject: format!("process {id}").into(),
                ruling: Ruling::Allowed(None),
            })
        });
        // Without a record nothing runs.
        if let Some(Ok(_)) = &begun {
            while let Ok(Some((ask, handles))) = self.calls.receive::<Ask>() {
                if self.take(ask, handles.into_iter().next()).is_err() {
                    break;
                }
            }
        }
        let status = {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            // A worker that closed its channel is of no use, whether it ended or not.
            let _ = child.kill();
            child.wait()
        };
        let wanted = self.ending.load(Ordering::Relaxed);
        for (ticket, _) in self.open.drain() {
            let result = if wanted { "run-stopped" } else { "isolate-died" };
            self.recorder
                .end(Ticket(ticket), Outcome { result: result.into(), ..Outcome::default() });
        }
        if let Some(Ok(ticket)) = begun {
            let result = if wanted { "ok" } else { "isolate-died" };
            let (result, duration) = (result.into(), since.elapsed());
            let detail = ended(&status);
            self.recorder.end(ticket, Outcome { result, duration, detail, ..Outcome::default() });
        }
    }

    fn who(&self, component: &str) -> io::Result<&Who> {
        let who = self.components.iter().find(|who| who.component == component);
        who.ok_or_else(|| io::Error::other("no component of this workload"))
    }

    /// Does what is asked. An error ends the worker.
    fn take(&mut self, ask: Ask, handle: Option<OwnedFd>) -> io::Result<()> {
        match ask {
            Ask::Begin(effect) => {
                let ticket = self.begin(&effect)?;
                self.calls.send(&Begun(ticket), &[])
            }
            Ask::End { ticket, result, bytes_out, bytes_in, duration, detail } => {
                let Some(sends) = self.open.remove(&ticket) else {
                    return Err(io::Error::other("no effect of this worker"));
                };
                if let Some(target) = sends {
                    self.relay.ended(&target);
                }
                let result = result.into();
                let outcome = Outcome { result, bytes_out, bytes_in, duration, detail };
                self.recorder.end(Ticket(ticket), outcome);
                Ok(())
            }
            Ask::Line { component, is_error, text } => {
                let stream = if is_error { Stream::Err } else { Stream::Out };
                self.lines.line(self.who(&component)?, stream, &plain(text.as_bytes()));
                Ok(())
            }
            Ask::Log { component, instance, level, context, message } => {
                let level =
                    Level::parse(&level).ok_or_else(|| io::Error::other("no level of a log"))?;
                let who = self.who(&component)?.clone();
                let (context, message) = (plain(context.as_bytes()), plain(message.as_bytes()));
                self.logs.logs().line(LogLine { who, instance, level, context, message });
                Ok(())
            }
            Ask::Egress => {
                let socket = handle.ok_or_else(|| io::Error::other("no socket"))?;
                self.runtime.spawn(Arc::clone(&self.relay).serve(socket));
                Ok(())
            }
        }
    }

    fn begin(&mut self, effect: &message::Effect) -> io::Result<Option<u64>> {
        if self.open.len() >= MAX_OPEN {
            return Err(io::Error::other("too many effects under way"));
        }
        let verb = Verb::ALL.into_iter().find(|verb| verb.as_str() == effect.verb);
        let verb = verb.ok_or_else(|| io::Error::other("no verb"))?;
        let source =
            effect.grant.as_ref().map(|(text, file, line)| ambit_engine::admitted::GrantSource {
                text: text.clone(),
                file: file.clone(),
                line: *line,
                ..ambit_engine::admitted::GrantSource::default()
            });
        let ruling = match &effect.denied {
            Some((code, reason, help)) => {
                Ruling::Denied { code, reason: reason.as_str().into(), help: help.as_str().into() }
            }
            None => Ruling::Allowed(source.as_ref()),
        };
        let allowed = effect.denied.is_none();
        let begun = self.recorder.begin(&Effect {
            who: self.who(&effect.component)?,
            instance: effect.instance,
            verb,
            interface: &effect.interface,
            function: &effect.function,
            subject: effect.subject.as_str().into(),
            ruling,
        });
        let Ok(Ticket(ticket)) = begun else { return Ok(None) };
        if allowed {
            let sends = (verb == Verb::ReachHosts).then(|| effect.subject.clone());
            if let Some(target) = &sends {
                self.relay.begun(target);
            }
            self.open.insert(ticket, sends);
        }
        Ok(Some(ticket))
    }
}

fn ended(status: &io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}
