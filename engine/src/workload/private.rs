//! Values that no report may show.

use std::fmt;

/// A value of the document that may be a secret: kept for whoever runs the component, and printed
/// by nothing. Its `Debug` form is `Private(…)`, it has no `Display` and can't be serialized.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Private(String);

impl Private {
    /// Keeps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value. The caller must neither print nor record it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Private(…)")
    }
}
