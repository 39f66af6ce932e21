//! Serving workloads until somebody says stop.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ambit_executor::ingress::{CrossSite, Ingress, Route, Routes, label};
use ambit_executor::record::Who;
use ambit_executor::services::{LogLine, LogSink};
use ambit_executor::stdio::{LineSink, Stream};

use super::{Answer, Loaded, Loader, Tell, check, failure};
use crate::args::{Global, Run};
use crate::configuration;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The time that requests have to end after a stop.
const GRACE: Duration = Duration::from_secs(10);

/// How often files are looked at under `--watch`.
const LOOK: Duration = Duration::from_millis(500);

/// Takes what components log, a line each, to standard error.
pub(crate) struct Logs {
    pub(crate) output: Output,
}

/// Takes what components write, a line each, to standard error.
pub(crate) struct Lines {
    output: Output,
}

impl Lines {
    pub(crate) fn new(output: Output) -> Self {
        Self { output }
    }
}

impl LineSink for Lines {
    fn line(&self, who: &Who, _stream: Stream, line: &str) {
        self.output.about(&format!("[{}] {line}\n", who.component));
    }
}

impl LogSink for Logs {
    fn line(&self, line: LogLine) {
        let LogLine { who, level, context, message, .. } = line;
        let level = level.as_str();
        let context = if context.is_empty() { String::new() } else { format!(" {context}:") };
        self.output.about(&format!("[{}] {level}:{context} {message}\n", who.component));
    }
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn stopped() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::new("runtime-failed", error.to_string(), None))
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Serves the workloads.
pub(super) async fn serve(
    loader: &Loader<'_>,
    global: &Global,
    loaded: Vec<Loaded>,
) -> Result<Exit, Failure> {
    let (command, output) = (loader.command, loader.output);
    let (routes, hosts) = routes(command, output, &loaded)?;
    let ingress = Ingress::start(command.listen, routes).await.map_err(|error| {
        let message = format!("{} can't be listened on: {error}", command.listen);
        let help = "choose another address with `--listen`".to_owned();
        Failure::new("ingress-address", message, Some(help))
    })?;
    if !command.listen.ip().is_loopback() {
        output.warning(
            "ingress-open",
            &format!("{} can be reached from other machines", ingress.address()),
            "leave `--listen` away to serve this machine only",
        );
    }
    for host in &hosts {
        output.about(&format!("serving http://{host}:{}/\n", ingress.address().port()));
    }
    let mut held = loaded;
    let mut seen = stamps(command);
    let stop = stopped();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            signal = &mut stop => {
                signal?;
                break;
            }
            () = tokio::time::sleep(LOOK), if command.watch => {
                let now = stamps(command);
                if now == seen {
                    continue;
                }
                seen = now;
                match again(loader, global) {
                    Ok(Some(loaded)) => match self::routes(command, output, &loaded) {
                        Ok((routes, _)) => {
                            ingress.replace(routes);
                            // What still answers keeps what it needs.
                            held = loaded;
                            output.about("serving the new version\n");
                        }
                        Err(failure) => kept(output, &failure),
                    },
                    Ok(None) => output.about("still serving the version before\n"),
                    Err(failure) => kept(output, &failure),
                }
            }
        }
    }
    output.about("stopping\n");
    if !ingress.stop(GRACE).await {
        output.note("requests that were still under way after 10 s were cut off");
    }
    drop(held);
    Ok(Exit::Done)
}

fn kept(output: &Output, failure: &Failure) {
    output.failure(failure);
    output.about("still serving the version before\n");
}

/// Checks and loads again; `None` if it is not allowed.
fn again(loader: &Loader<'_>, global: &Global) -> Result<Option<Vec<Loaded>>, Failure> {
    // Policies evaluate and compilation runs here, beside what is being served.
    tokio::task::block_in_place(|| {
        let mut configuration = configuration::read(global)?;
        match check(loader.command, &mut configuration, loader.output, Tell::Verdict)? {
            Answer::Refused(_) => Ok(None),
            Answer::Allowed(allowed) => loader.all(&allowed).map(Some),
        }
    })
}

/// Builds the routes of all workloads, and the names under which they are served.
fn routes(
    command: &Run,
    output: &Output,
    loaded: &[Loaded],
) -> Result<(Routes, Vec<String>), Failure> {
    let lines: Arc<dyn LineSink> = Arc::new(Lines::new(*output));
    let mut routes = Routes::default();
    let mut hosts = Vec::new();
    for workload in loaded {
        let handler = workload.handler(&lines).map_err(|error| failure(&error))?;
        let allowed = command.allow_cross_site.iter().any(|name| name == workload.name());
        let cross_site = if allowed { CrossSite::Allowed } else { CrossSite::Refused };
        let route = Route { handler, cross_site };
        routes.add(workload.name(), workload.hosts(), &route).map_err(|host| {
            let message = format!("two workloads answer to `{host}`");
            let help = "give them different names, or run them apart".to_owned();
            Failure::new("ingress-name", message, Some(help))
        })?;
        hosts.push(format!("{}.localhost", label(workload.name())));
    }
    Ok((routes, hosts))
}

/// When each named file was changed last, with its length. What can't be read counts as changed.
fn stamps(command: &Run) -> Vec<Option<(SystemTime, u64)>> {
    let named = command.inputs.files.iter().map(String::as_str);
    let replaced = command.inputs.component.iter().filter_map(|pair| pair.split_once('='));
    named
        .chain(replaced.map(|(_, path)| path))
        .map(|path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
        .collect()
}
