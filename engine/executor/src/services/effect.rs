//! The order of every service call: the intent on record, then the effect, then the outcome.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use ambit_engine::catalogue::Verb;

use crate::record::{Effect, Outcome, RecordError, Ruling, Ticket};
use crate::scope::Scope;
use crate::state::State;

/// The most characters of a name that a guest chose, as subjects have it.
const NAME_CHARS: usize = 128;

/// One call of a service, before it happens.
pub(super) struct Call<'a> {
    pub(super) interface: &'static str,
    pub(super) function: &'static str,
    pub(super) subject: String,
    pub(super) ruling: Ruling<'a>,
}

/// A call that is on record and has to end.
pub(super) struct Begun {
    scope: Arc<Scope>,
    ticket: Ticket,
    since: Instant,
}

/// Puts a call on record. If that fails, the call must not happen.
pub(super) fn begin(state: &State, call: Call<'_>) -> Result<Begun, RecordError> {
    let scope = Arc::clone(&state.scope);
    let effect = Effect {
        who: scope.who(),
        instance: state.instance.number,
        verb: Verb::UseHostService,
        interface: call.interface,
        function: call.function,
        subject: Cow::Owned(call.subject),
        ruling: call.ruling,
    };
    let ticket = scope.setup().recorder.begin(&effect)?;
    Ok(Begun { scope, ticket, since: Instant::now() })
}

/// What went over, in bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Traffic {
    /// Out of the component.
    pub(super) out: usize,
    /// Into it.
    pub(super) back: usize,
}

impl Begun {
    /// Puts the outcome on record.
    pub(super) fn end(self, result: &'static str, traffic: Traffic) {
        let outcome = Outcome {
            result: Cow::Borrowed(result),
            bytes_out: u64::try_from(traffic.out).unwrap_or(u64::MAX),
            bytes_in: u64::try_from(traffic.back).unwrap_or(u64::MAX),
            duration: self.since.elapsed(),
            detail: String::new(),
        };
        self.scope.setup().recorder.end(self.ticket, outcome);
    }
}

/// A name that a guest chose: quoted, escaped and cut.
pub(super) fn quoted(name: &str) -> String {
    let mut text = String::from("\"");
    let mut left = name.chars();
    for char in left.by_ref().take(NAME_CHARS) {
        // Writing to a String can't fail.
        let _ = write!(text, "{}", char.escape_debug());
    }
    text.push('"');
    if left.next().is_some() {
        text.push('…');
    }
    text
}
