//! What is wrong with a field.

use std::collections::BTreeSet;

use super::{Pointer, Span};
use crate::document::Node;
pub(super) use crate::document::error::shortened;

/// A field that does not fit what the manifest should hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldProblem {
    kind: ProblemKind,
    pointer: Pointer,
    span: Span,
}

/// What is wrong with a field.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Nothing reads this key.
    Unknown {
        /// The key.
        key: String,
        /// A known key that looks like it.
        nearest: Option<String>,
    },
    /// The value has another type.
    WrongType {
        /// The type that is read, with its article.
        expected: &'static str,
        /// The type that is there, with its article.
        found: &'static str,
        /// The value as written, shortened, for scalars that are not strings.
        written: Option<String>,
    },
    /// The key must be there.
    Missing {
        /// The key.
        key: String,
    },
    /// The number is too small or too large.
    OutOfRange {
        /// The number as written, shortened.
        found: String,
        /// The least number that is allowed.
        minimum: i64,
        /// The greatest number that is allowed.
        maximum: i64,
    },
    /// The value has the right type and yet no meaning; for parsers of single fields.
    Invalid {
        /// What is wrong with it, in the style of an error message.
        detail: String,
    },
}

impl FieldProblem {
    /// Returns a problem with the field at `pointer`, shown at `span`.
    #[must_use]
    pub const fn new(kind: ProblemKind, pointer: Pointer, span: Span) -> Self {
        Self { kind, pointer, span }
    }

    /// Returns the problem that `node` at `pointer` is not `expected`, a type with its article.
    #[must_use]
    pub fn wrong_type(expected: &'static str, node: &Node, pointer: Pointer) -> Self {
        let written = match node.as_str() {
            Some(_) => None,
            None => node.scalar_text().map(shortened),
        };
        let kind = ProblemKind::WrongType { expected, found: node.kind_name(), written };
        Self::new(kind, pointer, node.span())
    }

    /// Returns what is wrong.
    #[must_use]
    pub const fn kind(&self) -> &ProblemKind {
        &self.kind
    }

    /// Returns where the field is in its document.
    #[must_use]
    pub const fn pointer(&self) -> &Pointer {
        &self.pointer
    }

    /// Returns what to show: the key if it is unknown, the mapping if a key is missing, and the
    /// value otherwise.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// Returns the stable name of this kind of problem.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self.kind {
            ProblemKind::Unknown { .. } => "manifest-unknown-field",
            ProblemKind::WrongType { .. } => "manifest-wrong-type",
            ProblemKind::Missing { .. } => "manifest-missing-field",
            ProblemKind::OutOfRange { .. } => "manifest-out-of-range",
            ProblemKind::Invalid { .. } => "manifest-invalid-value",
        }
    }

    /// Returns a sentence without its full stop.
    #[must_use]
    pub fn message(&self) -> String {
        let name =
            shortened(if self.pointer.as_str().is_empty() { "/" } else { self.pointer.as_str() });
        match &self.kind {
            ProblemKind::Unknown { key, .. } => format!("unknown field `{}`", shortened(key)),
            ProblemKind::WrongType { expected, found, written: Some(text) } => {
                format!("`{name}` is {found}, `{text}`, expected {expected}")
            }
            ProblemKind::WrongType { expected, found, written: None } => {
                format!("`{name}` is {found}, expected {expected}")
            }
            ProblemKind::Missing { key } => format!("missing field `{key}`"),
            ProblemKind::OutOfRange { found, minimum, maximum } => {
                format!("`{name}` is {found}, expected {minimum} to {maximum}")
            }
            ProblemKind::Invalid { detail } => detail.clone(),
        }
    }

    /// Returns what to do about it, where there is something to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match &self.kind {
            ProblemKind::Unknown { nearest: Some(nearest), .. } => {
                Some(format!("write `{nearest}` if that is meant"))
            }
            ProblemKind::WrongType { expected: "a string", written: Some(text), .. } => {
                Some(format!("put it in quotes: `\"{text}\"`"))
            }
            ProblemKind::Missing { key } => Some(format!("add `{key}`")),
            ProblemKind::Unknown { nearest: None, .. }
            | ProblemKind::WrongType { .. }
            | ProblemKind::OutOfRange { .. }
            | ProblemKind::Invalid { .. } => None,
        }
    }
}

/// No field of any manifest has a longer name, and longer ones would make comparing costly.
const MAX_COMPARED: usize = 64;

/// Returns the known key that differs in case only or else in at most two characters.
pub(super) fn nearest(key: &str, known: &BTreeSet<String>) -> Option<String> {
    if key.len() > MAX_COMPARED {
        return None;
    }
    if let Some(same) =
        known.iter().find(|candidate| candidate.to_lowercase() == key.to_lowercase())
    {
        return Some(same.clone());
    }
    let close = known.iter().filter(|candidate| candidate.len().abs_diff(key.len()) <= 2);
    let rated = close.map(|candidate| (distance(key, candidate), candidate));
    // Two changes to a key of three letters make any other one.
    let alike = rated.filter(|(changes, candidate)| {
        *changes <= 2 && changes.saturating_mul(2) < candidate.len()
    });
    alike.min().map(|(_, candidate)| candidate.clone())
}

/// Returns the Levenshtein distance in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (removed, a) in left.chars().enumerate() {
        let mut diagonal = removed;
        let mut before = removed.saturating_add(1);
        if let Some(first) = row.first_mut() {
            *first = before;
        }
        for (cell, b) in row.iter_mut().skip(1).zip(&right) {
            let replaced = diagonal.saturating_add(usize::from(a != *b));
            diagonal = *cell;
            before = replaced.min(diagonal.saturating_add(1)).min(before.saturating_add(1));
            *cell = before;
        }
    }
    row.last().copied().unwrap_or_default()
}
