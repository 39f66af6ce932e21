//! `wasi:logging`: lines for whoever shows them, bounded and without control bytes.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower};

use super::effect::{Call, Traffic, begin};
use crate::limits::{Limits, Trip};
use crate::record::{Ruling, Who};
use crate::state::State;

pub(super) const LOGGING: &str = "wasi:logging/logging";
pub(super) const LOGGING_DRAFT: &str = "wasi:logging/logging@0.1.0-draft";

/// The most bytes of a line's context, and of its message.
const CONTEXT_BYTES: usize = 256;
const MESSAGE_BYTES: usize = 8 * 1024;

/// How grave a line is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ComponentType, Lift, Lower)]
#[component(enum)]
#[repr(u8)]
pub enum Level {
    /// Each step.
    #[component(name = "trace")]
    Trace,
    /// For whoever looks for an error.
    #[component(name = "debug")]
    Debug,
    /// What happens as it should.
    #[component(name = "info")]
    Info,
    /// What may go wrong.
    #[component(name = "warn")]
    Warn,
    /// What went wrong.
    #[component(name = "error")]
    Error,
    /// What ends the work.
    #[component(name = "critical")]
    Critical,
}

impl Level {
    /// Reads the stable word.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let all = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error, Self::Critical];
        all.into_iter().find(|level| level.as_str() == text)
    }

    /// Returns the stable word for this level.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// One line of a component's log. Its text comes from the component: it is bounded and has no
/// control characters, and is data all the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogLine {
    /// Whose it is.
    pub who: Who,
    /// The instance, unique in one run.
    pub instance: u64,
    /// How grave it is.
    pub level: Level,
    /// What the component calls the part that speaks; at most 256 bytes before escapes.
    pub context: String,
    /// What it says; at most 8 KiB before escapes.
    pub message: String,
}

/// Takes the lines that components log. A call must return soon, since the component waits for it.
pub trait LogSink: Send + Sync {
    /// Takes one line.
    fn line(&self, line: LogLine);
}

/// Drops all lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLogs;

impl LogSink for NoLogs {
    fn line(&self, _line: LogLine) {}
}

/// Keeps lines in memory, for tests and embedders.
#[derive(Clone, Debug, Default)]
pub struct MemoryLogs(Arc<Mutex<Vec<LogLine>>>);

impl MemoryLogs {
    /// Returns the lines, in order.
    #[must_use]
    pub fn lines(&self) -> Vec<LogLine> {
        self.0.lock().map(|lines| lines.clone()).unwrap_or_default()
    }
}

impl LogSink for MemoryLogs {
    fn line(&self, line: LogLine) {
        if let Ok(mut lines) = self.0.lock() {
            lines.push(line);
        }
    }
}

/// What one instance may still log.
#[derive(Debug)]
pub(crate) struct Served {
    lines_left: u64,
    pub(super) room: super::blobstore::Room,
}

impl Served {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { lines_left: limits.log_lines, room: super::blobstore::Room::default() }
    }
}

pub(super) fn link(
    linker: &mut LinkerInstance<'_, State>,
    interface: &'static str,
) -> wasmtime::Result<()> {
    linker.func_wrap("log", move |mut store, (level, context, message): (Level, String, String)| {
        log(store.data_mut(), interface, level, &context, &message)
    })
}

fn log(
    state: &mut State,
    interface: &'static str,
    level: Level,
    context: &str,
    message: &str,
) -> wasmtime::Result<()> {
    let Some(left) = state.served.lines_left.checked_sub(1) else {
        state.instance.trip.set(Trip::Output);
        return Err(wasmtime::Error::msg("over the limit of log lines"));
    };
    state.served.lines_left = left;
    let call = Call {
        interface,
        function: "log",
        subject: format!("log, level {}", level.as_str()),
        ruling: Ruling::Allowed(None),
    };
    // The function has no result that could carry an error, so only a trap keeps the line from
    // being lost without a word.
    let call =
        begin(state, call).map_err(|_| wasmtime::Error::msg("the record can't be written"))?;
    let line = LogLine {
        who: state.scope.who().clone(),
        instance: state.instance.number,
        level,
        context: plain(context, CONTEXT_BYTES),
        message: plain(message, MESSAGE_BYTES),
    };
    state.scope.services().logs.line(line);
    call.end("ok", Traffic { out: context.len().saturating_add(message.len()), back: 0 });
    Ok(())
}

/// Cuts a text and escapes what could move a terminal's cursor or fake a line.
pub(super) fn plain(text: &str, max_bytes: usize) -> String {
    let end = text.floor_char_boundary(max_bytes);
    let (kept, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let mut plain = String::with_capacity(kept.len());
    for char in kept.chars() {
        // Bidirectional and other invisible format characters change what a reader sees as much
        // as control characters do.
        let hidden = matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if char.is_control() || hidden {
            // Writing to a String can't fail.
            let _ = write!(plain, "{}", char.escape_default());
        } else {
            plain.push(char);
        }
    }
    if !rest.is_empty() {
        plain.push('…');
    }
    plain
}
