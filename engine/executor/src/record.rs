//! The record of effects: the intent before, the outcome after.
//!
//! A [`Recorder`] is asked before each effect and told after it. If the intent can't be written the
//! effect doesn't happen. Secrets never enter: an effect names what it touches, never what it
//! carries.

mod entry;
mod read;
mod summary;
mod writer;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use ambit_engine::admitted::GrantSource;
use ambit_engine::catalogue::Verb;

pub use entry::{Entry, Grant, Line, MAX_LINE_BYTES, Subject, sealed};
pub use read::{
    Ending, MAX_NAMED, Problem, ReadError, Reader, SealCheck, Unknown, Verified, run_of, verify,
};
pub use summary::{Did, Filter, MAX_SUBJECTS, OTHERS, Summary, Whose};
pub use writer::{Head, Options, SEGMENT_BYTES, Seal, Writer};

/// Whose effect it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Who {
    /// The workload, `NAMESPACE/NAME`.
    pub workload: String,
    /// The component's name in the document.
    pub component: String,
    /// The digest of its bytes.
    pub digest: String,
}

/// Something that is about to happen.
#[derive(Clone, Debug)]
pub struct Effect<'a> {
    /// Whose it is.
    pub who: &'a Who,
    /// The instance, unique in one run.
    pub instance: u64,
    /// What a person would call it.
    pub verb: Verb,
    /// The interface on its version track, and the function: `wasi:http/outgoing-handler@0.2`,
    /// `handle`.
    pub interface: &'a str,
    /// The function.
    pub function: &'a str,
    /// What is touched: `https://api.example.com:443`, `/data/notes.txt`, a bucket, a tool. Never a
    /// value, a header or a query.
    pub subject: Cow<'a, str>,
    /// What was decided.
    pub ruling: Ruling<'a>,
}

/// What was decided about an effect.
#[derive(Clone, Debug)]
pub enum Ruling<'a> {
    /// It may happen; the line that gives it, where one does.
    Allowed(Option<&'a GrantSource>),
    /// It may not.
    Denied {
        /// A stable kebab-case code.
        code: &'a str,
        /// Why.
        reason: Cow<'a, str>,
        /// The line that would allow it, or what to do; may be empty.
        help: Cow<'a, str>,
    },
}

/// How an effect ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// `ok`, or a stable kebab-case code.
    pub result: Cow<'static, str>,
    /// Bytes that went out of the component.
    pub bytes_out: u64,
    /// Bytes that came in.
    pub bytes_in: u64,
    /// How long it took.
    pub duration: Duration,
    /// What else a reader should know: an HTTP status, an address, an exit code. Never a value.
    pub detail: String,
}

/// What [`Recorder::begin`] returns and [`Recorder::end`] takes.
#[derive(Debug, Eq, PartialEq)]
#[must_use = "an effect that begins has to end"]
pub struct Ticket(pub u64);

/// Why the record can't be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file can't be written.
    #[error("{path}: {}", plain(source))]
    Io {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An earlier line failed, and the chain can't go on after a gap.
    #[error("an earlier line of the record could not be written")]
    Broken,
}

/// The text of an error without the number of the operating system.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Keeps a record of effects. Calls are synchronous, since a line is handed to the kernel before
/// the effect; one takes some microseconds.
pub trait Recorder: Send + Sync {
    /// Writes the intent. A denied effect is one line, and needs no [`end`](Self::end).
    ///
    /// # Errors
    ///
    /// If the line can't be written; the effect must not happen then.
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError>;

    /// Writes the outcome.
    fn end(&self, ticket: Ticket, outcome: Outcome);
}

/// Keeps nothing. For embedders that record elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecord;

impl Recorder for NoRecord {
    fn begin(&self, _effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        Ok(Ticket(0))
    }

    fn end(&self, _ticket: Ticket, _outcome: Outcome) {}
}

/// One effect as [`Memory`] keeps it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kept {
    /// The component.
    pub component: String,
    /// The verb.
    pub verb: Verb,
    /// The function.
    pub function: String,
    /// What was touched.
    pub subject: String,
    /// `None` if it was allowed, else the code.
    pub denied: Option<String>,
    /// The reason and help of a denial.
    pub why: String,
    /// The result, once it ended.
    pub result: Option<String>,
    /// Detail of the outcome.
    pub detail: String,
}

/// Keeps effects in memory, for tests and embedders.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<std::sync::Mutex<Vec<Kept>>>);

impl Memory {
    /// Returns what happened, in order.
    #[must_use]
    pub fn effects(&self) -> Vec<Kept> {
        self.0.lock().map(|kept| kept.clone()).unwrap_or_default()
    }
}

impl Recorder for Memory {
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        let (denied, why) = match &effect.ruling {
            Ruling::Allowed(_) => (None, String::new()),
            Ruling::Denied { code, reason, help } => {
                (Some((*code).to_owned()), format!("{reason}; {help}"))
            }
        };
        let mut kept = self.0.lock().map_err(|_| RecordError::Broken)?;
        let index = u64::try_from(kept.len()).unwrap_or(u64::MAX);
        kept.push(Kept {
            component: effect.who.component.clone(),
            verb: effect.verb,
            function: effect.function.to_owned(),
            subject: effect.subject.to_string(),
            denied,
            why,
            result: None,
            detail: String::new(),
        });
        Ok(Ticket(index))
    }

    fn end(&self, ticket: Ticket, outcome: Outcome) {
        let index = usize::try_from(ticket.0).unwrap_or(usize::MAX);
        if let Ok(mut kept) = self.0.lock()
            && let Some(entry) = kept.get_mut(index)
        {
            entry.result = Some(outcome.result.into_owned());
            entry.detail = outcome.detail;
        }
    }
}
