//! Refusals on their way to a [`Reject`], and text from outside made fit to print.

use super::{Claimed, Reject, RejectCode};

/// The most characters of one quoted text.
const QUOTED: usize = 200;

/// The most characters of a message.
const MESSAGE: usize = 600;

/// A [`Reject`] that doesn't know the candidate's claims yet.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) code: RejectCode,
    pub(super) message: String,
}

impl Refusal {
    /// Adds what the candidate says of itself.
    pub(super) fn with(self, claimed: Claimed) -> Reject {
        Reject { code: self.code, message: cleaned(&self.message, MESSAGE), claimed }
    }
}

/// Makes a refusal.
pub(super) fn refuse(code: RejectCode, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into() }
}

/// Returns `text` as it may stand in a message: bounded, in one line, without characters that
/// steer a terminal or reorder what is read.
pub(super) fn shown(text: &str) -> String {
    cleaned(text, QUOTED)
}

fn cleaned(text: &str, limit: usize) -> String {
    let mut kept: String = text
        .chars()
        .take(limit)
        .map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(limit).is_some() {
        kept.push('…');
    }
    kept
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_is_bounded_and_steers_nothing() {
        assert_eq!(shown("a\u{1b}[31m\nb\u{202e}c"), "a\u{fffd}[31m\u{fffd}b\u{fffd}c");
        let long = "é".repeat(QUOTED + 1);
        let kept = shown(&long);
        assert_eq!(kept.chars().count(), QUOTED + 1);
        assert!(kept.ends_with('…'));
        assert_eq!(shown(&"é".repeat(QUOTED)), "é".repeat(QUOTED));
    }
}
