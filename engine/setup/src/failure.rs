//! Why something can't be used, as values that a front end shows in its own way.

use ambit_engine::document::Span;

/// Why there is nothing to work with.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// A stable kebab-case code.
    pub code: String,
    /// What is wrong, naming the thing.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// Every mistake of a file with its place; empty where the message says all.
    pub spots: Vec<Spot>,
}

/// One mistake of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spot {
    /// A stable kebab-case code.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
    /// The file, as messages name it.
    pub file: String,
    /// The text of the file.
    pub text: String,
    /// The stretch that is meant.
    pub span: Span,
}

impl Failure {
    /// A failure without places.
    pub fn new(code: &str, message: impl Into<String>, help: Option<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), help, spots: Vec::new() }
    }

    /// A failure from an error and what lies under it.
    #[must_use]
    pub fn of(error: &dyn std::error::Error, code: &str, help: Option<String>) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::new(code, message, help)
    }
}
