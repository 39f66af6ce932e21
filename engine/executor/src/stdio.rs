//! Standard input, output and error of an instance.
//!
//! The output streams are our own. Those of wasmtime queue empty writes without a bound
//! (GHSA-5m8g-xhq4-4h93), and its in-memory pipe traps a guest that fills it. Ours count bytes and
//! calls; over [`Limits::output_bytes`](crate::Limits::output_bytes) or
//! [`Limits::log_lines`](crate::Limits::log_lines) the instance ends with a named limit.

mod lines;
mod pump;
mod stream;

use std::sync::{Arc, Mutex};

use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;

pub use lines::{LineSink, Stream};

use crate::record::Who;
use crate::scope::Scope;
use crate::state::Instance;
use pump::Pump;
use stream::{Budget, Destination, Output};

/// Where an instance's standard streams lead. Clones lead to the same places.
#[derive(Clone, Debug, Default)]
pub struct Stdio {
    input: Input,
    output: Out,
}

#[derive(Clone, Debug, Default)]
enum Input {
    #[default]
    Empty,
    Process,
    Bytes(bytes::Bytes),
}

#[derive(Clone, Default)]
enum Out {
    #[default]
    Nowhere,
    Process {
        out: Arc<Pump>,
        err: Arc<Pump>,
    },
    Lines(Arc<dyn LineSink>),
    Captured(Captured),
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nowhere => "Nowhere",
            Self::Process { .. } => "Process",
            Self::Lines(_) => "Lines",
            Self::Captured(_) => "Captured",
        })
    }
}

/// What instances wrote, kept in memory.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    out: Arc<Mutex<Vec<u8>>>,
    err: Arc<Mutex<Vec<u8>>>,
}

impl Captured {
    /// Returns what went to standard output.
    #[must_use]
    pub fn out(&self) -> Vec<u8> {
        self.out.lock().map(|bytes| bytes.clone()).unwrap_or_default()
    }

    /// Returns what went to standard error.
    #[must_use]
    pub fn err(&self) -> Vec<u8> {
        self.err.lock().map(|bytes| bytes.clone()).unwrap_or_default()
    }
}

impl Stdio {
    /// Leads to the process's own streams, for a command.
    ///
    /// A thread for each of the two outputs writes what comes, so that a slow reader never blocks
    /// the threads that run components. [`finish`](Self::finish) waits for them.
    #[must_use]
    pub fn process() -> Self {
        let out = Pump::start("stdout", std::io::stdout());
        let err = Pump::start("stderr", std::io::stderr());
        Self { input: Input::Process, output: Out::Process { out, err } }
    }

    /// Leads output to a sink that takes lines; there is no input. For what serves many callers.
    #[must_use]
    pub fn lines(sink: Arc<dyn LineSink>) -> Self {
        Self { input: Input::Empty, output: Out::Lines(sink) }
    }

    /// Keeps output in memory, and gives `input` to read. The component's limit bounds what is kept.
    #[must_use]
    pub fn captured(input: impl Into<bytes::Bytes>) -> (Self, Captured) {
        let captured = Captured::default();
        let output = Out::Captured(captured.clone());
        (Self { input: Input::Bytes(input.into()), output }, captured)
    }

    /// Waits until what was written has left the process, or its reader is gone.
    pub async fn finish(&self) {
        if let Out::Process { out, err } = &self.output {
            out.drained().await;
            err.drained().await;
        }
    }

    /// Gives the streams to an instance.
    pub(crate) fn give(
        &self,
        builder: &mut WasiCtxBuilder,
        scope: &Arc<Scope>,
        instance: &Instance,
    ) {
        match &self.input {
            Input::Empty => {}
            Input::Process => {
                builder.inherit_stdin();
            }
            Input::Bytes(bytes) => {
                builder.stdin(MemoryInputPipe::new(bytes.clone()));
            }
        }
        let (out, err) = match &self.output {
            Out::Nowhere => (Destination::Nowhere, Destination::Nowhere),
            Out::Process { out, err } => {
                (Destination::Pump(Arc::clone(out)), Destination::Pump(Arc::clone(err)))
            }
            Out::Lines(sink) => {
                let lines = |stream| Destination::lines(sink, scope, stream);
                (lines(Stream::Out), lines(Stream::Err))
            }
            Out::Captured(kept) => (
                Destination::Memory(Arc::clone(&kept.out)),
                Destination::Memory(Arc::clone(&kept.err)),
            ),
        };
        let budget = Budget::new(scope.limits(), instance.trip.clone());
        builder.stdout(Output::new(out, budget.clone(), self.is_terminal(Stream::Out)));
        builder.stderr(Output::new(err, budget, self.is_terminal(Stream::Err)));
    }

    fn is_terminal(&self, stream: Stream) -> bool {
        use std::io::IsTerminal as _;
        match (&self.output, stream) {
            (Out::Process { .. }, Stream::Out) => std::io::stdout().is_terminal(),
            (Out::Process { .. }, Stream::Err) => std::io::stderr().is_terminal(),
            (Out::Nowhere | Out::Lines(_) | Out::Captured(_), _) => false,
        }
    }
}

/// Text without anything that a terminal would obey.
pub(crate) fn plain(bytes: &[u8]) -> String {
    lines::safe(bytes)
}

/// Tells whose output it is, for sinks of lines.
pub(crate) fn who(scope: &Scope) -> &Who {
    scope.who()
}
