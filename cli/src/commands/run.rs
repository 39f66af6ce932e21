//! `ambit run`: check, then run with exactly what was admitted.

mod given;
mod limits;
mod loaded;
mod record;
mod serve;

use std::time::Duration;

use ambit_engine::admitted::{Admitted, NotAdmitted, Refusal, admit};
use ambit_engine::decision::Verdict;
use ambit_engine::policy::Profile;
use ambit_engine::review::{Mode, Review};
use ambit_executor::{ExecutorError, Host, HostOptions};

use crate::args::{Global, Run};
use crate::commands::check::{Done, Judged, judge, timestamp};
use crate::commands::reach;
use crate::configuration::{self, Configuration};
use crate::exit::Exit;
use crate::fetch::Trusted;
use crate::output::{Failure, Output};
use crate::render::style::{Style, safe};
use crate::render::{human, reach as render_reach};

pub(crate) use given::Given;
use loaded::{Loaded, Loader};

/// A workload that may run, with its bytes.
pub(crate) struct Allowed {
    pub(crate) admitted: Admitted,
    pub(crate) verdict: Verdict,
    pub(crate) bytes: Vec<Vec<u8>>,
}

/// What a check before a run came to.
pub(crate) enum Answer {
    /// Every workload may run.
    Allowed(Vec<Allowed>),
    /// Some may not; how the run ends.
    Refused(Exit),
}

/// Whether the reach is told besides the verdict.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tell {
    /// It is.
    Reach,
    /// Only what is wrong and the verdict.
    Verdict,
}

pub(crate) fn failure(error: &ExecutorError) -> Failure {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    Failure::new(error.code(), message, error.help())
}

/// Checks, then runs.
pub(crate) fn run(command: &Run, global: &Global, output: &Output) -> Result<Exit, Failure> {
    if command.inputs.target.is_some_and(|target| target != crate::args::TargetName::Ambit) {
        let help = "leave `--target` away; `ambit check --target …` judges for another engine";
        let message = "`run` has the semantics of target `ambit` only";
        return Err(Failure::new("usage-target", message, Some(help.to_owned())));
    }
    let mut configuration = configuration::read(global)?;
    let limits = limits::read(&command.bounds, &configuration)?;
    let options = HostOptions { limits: limits.clone(), ..HostOptions::default() };
    // The engine takes no part in the decision, so it starts meanwhile.
    let (checked, host) = std::thread::scope(|scope| {
        let host = scope.spawn(|| Host::new(&options));
        let checked = check(command, &mut configuration, output, Tell::Reach);
        (checked, host.join())
    });
    let allowed = match checked? {
        Answer::Allowed(allowed) => allowed,
        Answer::Refused(exit) => return Ok(exit),
    };
    let host = host.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let host = host.map_err(|error| failure(&error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("runtime-failed", error.to_string(), None))?;
    let given = Given::read(command, limits, output)?;
    let runtime_handle = runtime.handle().clone();
    let loader = Loader { command, output, host: &host, given: &given, runtime: runtime_handle };
    let loaded = loader.all(&allowed);
    let ended = loaded.and_then(|loaded| runtime.block_on(start(&loader, global, loaded)));
    // What a guest left behind on blocking threads must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    given.recording.finish()?;
    ended
}

async fn start(loader: &Loader<'_>, global: &Global, loaded: Vec<Loaded>) -> Result<Exit, Failure> {
    let (command, output) = (loader.command, loader.output);
    loader.given.recording.serve_metrics().await?;
    if let Some(call) = &command.invoke {
        let [workload] = loaded.as_slice() else {
            return Err(usage("`--invoke` calls into one workload"));
        };
        let answer = workload.invoke(call).await.map_err(|error| failure(&error))?;
        output.answer(&format!("{answer}\n"))?;
        return Ok(Exit::Done);
    }
    if let [workload] = loaded.as_slice()
        && workload.is_command().map_err(|error| failure(&error))?
    {
        let outcome = tokio::select! {
            outcome = workload.run_command() => Some(outcome),
            signal = serve::stopped() => {
                signal?;
                None
            }
        };
        let Some(outcome) = outcome else {
            output.about("stopped\n");
            return Ok(Exit::Guest);
        };
        let outcome = outcome.map_err(|error| failure(&error))?;
        if outcome.status == 0 {
            return Ok(Exit::Done);
        }
        let name = safe(workload.name());
        output.note(&format!("`{name}` ended with status {}", outcome.status));
        return Ok(Exit::Guest);
    }
    if !command.arguments.is_empty() {
        return Err(usage("arguments after `--` are for a command component"));
    }
    serve::serve(loader, global, loaded).await
}

/// Runs one workload for the process that started this one.
pub(crate) fn worker() -> Result<Exit, Failure> {
    ambit_executor::isolate::work().map_err(|error| {
        let help = "`ambit run --isolate` starts it".to_owned();
        Failure::new("isolate-failed", error.to_string(), Some(help))
    })?;
    Ok(Exit::Done)
}

fn usage(message: &str) -> Failure {
    Failure::new("usage-run", message, Some("see `ambit run --help`".to_owned()))
}

/// Checks what is to run, and tells what it came to on standard error.
pub(crate) fn check(
    command: &Run,
    configuration: &mut Configuration,
    output: &Output,
    tell: Tell,
) -> Result<Answer, Failure> {
    let now = timestamp(None)?;
    let trusted = Trusted::read(&command.trust, configuration, now)?;
    trusted.warn(output);
    let judged = Judged {
        inputs: &command.inputs,
        profile: command.profile.map(Profile::from),
        policies: &command.policy,
        now,
        mode: Mode::Run,
    };
    let done = judge(&judged, configuration, &trusted, output, admit)?;
    tell_reviews(&done, configuration, output, tell);
    answer(done, output)
}

type Admission = (Review, Result<Admitted, NotAdmitted>);

fn tell_reviews(
    done: &Done<Admission>,
    configuration: &Configuration,
    output: &Output,
    tell: Tell,
) {
    let colored = output.colored_run();
    let style = Style::new(colored);
    let mut text = String::new();
    if tell == Tell::Reach {
        let reaches: Vec<_> = done.reviews.iter().map(|(review, _)| review.reach.clone()).collect();
        let document = reach::document(&done.inputs, &reaches, configuration);
        if !document.workloads.is_empty() {
            text.push_str(&render_reach::human(&document, style));
            text.push('\n');
        }
    }
    for (loaded, (review, _)) in done.inputs.workloads.iter().zip(&done.reviews) {
        text.push_str(&human::subject(loaded, &review.decision, &done.inputs, style, colored));
    }
    output.about(&text);
}

fn answer(done: Done<Admission>, output: &Output) -> Result<Answer, Failure> {
    let unread = !done.inputs.unread.is_empty();
    for unread in &done.inputs.unread {
        output.failure(&unread.failure);
    }
    let mut worst = if unread { Some(Exit::NoDecision) } else { None };
    let mut allowed = Vec::new();
    for (loaded, (review, admitted)) in done.inputs.workloads.into_iter().zip(done.reviews) {
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(reason) => {
                worst = worst.max(Some(refused(&reason, output)));
                continue;
            }
        };
        let bytes: Option<Vec<Vec<u8>>> = loaded
            .components
            .into_iter()
            .map(|component| component.ok().and_then(|loaded| loaded.bytes))
            .collect();
        let Some(bytes) = bytes else {
            let message = format!("the bytes of `{}` are gone", admitted.name());
            return Err(Failure::new("component-unavailable", message, None));
        };
        let verdict = review.decision.verdict;
        allowed.push(Allowed { admitted, verdict, bytes });
    }
    Ok(match worst {
        Some(exit) => Answer::Refused(exit),
        None => Answer::Allowed(allowed),
    })
}

/// Tells why something isn't run. What the decision says was told already.
fn refused(reason: &NotAdmitted, output: &Output) -> Exit {
    match reason {
        NotAdmitted::Decision(Verdict::Error) => Exit::NoDecision,
        NotAdmitted::Decision(_) => Exit::Denied,
        NotAdmitted::Imports(refusals) => {
            for refusal in refusals {
                output.failure(&import_failure(refusal));
            }
            Exit::Denied
        }
        NotAdmitted::Grant { help, line, .. } => {
            let place = if line.line == 0 {
                String::new()
            } else {
                format!(" ({}:{})", line.file, line.line)
            };
            let help = Some(help.clone()).filter(|help| !help.is_empty());
            output.failure(&Failure::new(reason.code(), format!("{reason}{place}"), help));
            Exit::Denied
        }
        NotAdmitted::Target(_) | _ => {
            output.failure(&Failure::new(reason.code(), reason.to_string(), None));
            Exit::NoDecision
        }
    }
}

fn import_failure(refusal: &Refusal) -> Failure {
    let help = Some(refusal.help.clone()).filter(|help| !help.is_empty());
    let message = if refusal.import.is_empty() {
        format!("`{}` can't be run: {}", refusal.component, refusal.reason)
    } else {
        refusal.to_string()
    };
    Failure::new(refusal.code, message, help)
}
