//! Running one instance: a command, under a deadline.

use std::sync::Arc;
use std::time::Instant;

use ambit_engine::catalogue::Verb;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

use crate::cpu::Cpu;
use crate::error::ExecutorError;
use crate::limits::{Limits, Trip, TripCell};
use crate::program::Program;
use crate::record::{Effect, Outcome, Recorder, Ruling, Ticket};
use crate::scope::Scope;
use crate::stdio::Stdio;

/// How a command ended by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CommandOutcome {
    /// The status that it ended with; 0 for success.
    pub status: i32,
}

/// Runs a component that exports `wasi:cli/run` to its end.
///
/// # Errors
///
/// [`ExecutorError::NoExport`] if it exports no such interface, [`ExecutorError::Tripped`] if a
/// bound ended it, [`ExecutorError::Trapped`] if it trapped, [`ExecutorError::Record`] if its start
/// can't be recorded.
pub async fn run_command(
    program: &Program,
    stdio: &Stdio,
) -> Result<CommandOutcome, ExecutorError> {
    let name = || program.scope().who().component.clone();
    let pre = CommandPre::new(program.pre().clone()).map_err(|_| ExecutorError::NoExport {
        component: name(),
        wanted: "`wasi:cli/run` that this host can call".to_owned(),
    })?;
    let scope = program.scope();
    let wall = scope.limits().wall;
    let number = scope.next_instance();
    let told = Call::begin(scope, number, "wasi:cli/run@0.2", "run")?;
    let mut store = program.store(stdio, number, wall);
    let (deadline, trip, cpu) = {
        let instance = &store.data().instance;
        (instance.deadline, instance.trip.clone(), instance.cpu.clone())
    };
    let call = async {
        let command = pre.instantiate_async(&mut store).await?;
        command.wasi_cli_run().call_run(&mut store).await
    };
    let status = match within(deadline, (&trip, &cpu), wall, call).await {
        Ok(Ok(())) => 0,
        Ok(Err(())) => 1,
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => exit.0,
            None => return Err(told.failed(ended(program, &trip, &error))),
        },
    };
    let result = if status == 0 { "ok" } else { "guest-status" };
    told.end(result, format!("status {status}"));
    Ok(CommandOutcome { status })
}

/// A call from outside, on record.
pub(crate) struct Call {
    recorder: Arc<dyn Recorder>,
    ticket: Option<Ticket>,
    since: Instant,
}

impl Call {
    /// Writes the intent.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Record`]; the call must not happen then.
    pub(crate) fn begin(
        scope: &Scope,
        instance: u64,
        interface: &str,
        function: &str,
    ) -> Result<Self, ExecutorError> {
        let recorder = Arc::clone(&scope.setup().recorder);
        let effect = Effect {
            who: scope.who(),
            instance,
            verb: Verb::None,
            interface,
            function,
            subject: format!("{interface}#{function}").into(),
            ruling: Ruling::Allowed(None),
        };
        let ticket = recorder.begin(&effect).map_err(ExecutorError::Record)?;
        Ok(Self { recorder, ticket: Some(ticket), since: Instant::now() })
    }

    /// Writes the outcome.
    pub(crate) fn end(mut self, result: &'static str, detail: String) {
        self.told(result, detail);
    }

    /// Writes that it failed, and returns the error.
    pub(crate) fn failed(self, error: ExecutorError) -> ExecutorError {
        self.end(error.code(), error.to_string());
        error
    }

    fn told(&mut self, result: &'static str, detail: String) {
        let Some(ticket) = self.ticket.take() else { return };
        let duration = self.since.elapsed();
        let outcome = Outcome { result: result.into(), duration, detail, ..Outcome::default() };
        self.recorder.end(ticket, outcome);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.told("dropped", String::new());
    }
}

/// Awaits a call until the deadline, and counts its CPU time. After the deadline its store must be
/// dropped.
pub(crate) async fn within<T>(
    deadline: Instant,
    (trip, cpu): (&TripCell, &Cpu),
    wall: std::time::Duration,
    call: impl Future<Output = wasmtime::Result<T>>,
) -> wasmtime::Result<T> {
    match tokio::time::timeout_at(deadline.into(), cpu.measure(call)).await {
        Ok(result) => result,
        Err(_) => {
            trip.set(Trip::Wall(wall));
            Err(wasmtime::Error::msg("over the limit of wall time"))
        }
    }
}

/// Says why a call ended: the bound that was met first, or else the trap.
pub(crate) fn ended(program: &Program, trip: &TripCell, error: &wasmtime::Error) -> ExecutorError {
    let component = program.scope().who().component.clone();
    // A sibling that ended is what a person has to look at, not the component that called it.
    if let Some(sibling) = error.downcast_ref::<crate::links::Ended>()
        && trip.get().is_none()
    {
        return sibling.error();
    }
    match trip.get().or_else(|| of_engine(program.scope().limits(), error)) {
        Some(trip) => ExecutorError::Tripped { component, trip },
        None => ExecutorError::Trapped { component, reason: reason(error) },
    }
}

/// The bounds that the engine keeps by itself. Those of its own tables have no type, so they are known
/// by their text, which tests hold to be so.
pub(crate) fn of_engine(limits: &Limits, error: &wasmtime::Error) -> Option<Trip> {
    let handles = Trip::Handles(limits.handles);
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return Some(handles);
    }
    let text = error.root_cause().to_string();
    if text.contains("store handle limit exceeded") {
        return Some(handles);
    }
    if text.starts_with("resource limit exceeded") {
        return Some(Trip::Instances(limits.instances));
    }
    text.contains("fuel allocated for hostcalls").then_some(Trip::Copy(limits.copy_bytes))
}

/// The cause of a trap in one line, without the list of frames.
pub(crate) fn reason(error: &wasmtime::Error) -> String {
    match error.downcast_ref::<wasmtime::Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    }
}
