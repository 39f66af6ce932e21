//! Exit codes: 0 allowed or done, 1 denied, 2 no decision, 3 warnings under `--fail-on-warn`, and
//! 4 for a guest of `ambit run` that failed by itself.

use std::process::ExitCode;

/// How a run ends. Of several, no decision comes before denied, before warned, before done.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Exit {
    /// Allowed, or done.
    Done,
    /// Warnings, under `--fail-on-warn`.
    Warned,
    /// A guest ended with a status of its own that isn't zero.
    Guest,
    /// Denied.
    Denied,
    /// No answer.
    NoDecision,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Denied => 1,
            Exit::NoDecision => 2,
            Exit::Warned => 3,
            Exit::Guest => 4,
        })
    }
}
