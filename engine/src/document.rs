//! YAML and JSON text as a tree in which every value knows where it was written.
//!
//! The tree is what a Kubernetes client would send: anchors and merge keys are resolved, keys are
//! strings, and a repeated key is an error. What readers disagree about is either an error or
//! visible in the type ([`Value::Legacy`]).
//!
//! Left out on purpose: comments, key styles, application tags, and writing YAML.
//!
//! Invariants: work and memory are bounded by [`DocumentLimits`] whatever the input is; the depth
//! of a tree is at most `max_depth`, so that walking one recursively is safe; no input panics.

mod build;
mod error;
mod fields;
mod index;
mod json;
mod materialize;
mod node;
mod scalar;
#[cfg(test)]
mod tests;
mod yaml;

pub use self::error::DocumentError;
pub use self::fields::{FieldProblem, Fields, Located, Pointer, ProblemKind, Text};
pub use self::index::{Position, Span, line_text};
pub use self::node::{Document, Entry, Mapping, Node, Value};

use self::build::Budget;
use self::index::TextIndex;

/// The greatest nesting depth that [`parse`] works with, however large `max_depth` is.
///
/// It keeps recursive walks over a tree within a small stack.
pub const DEPTH_CEILING: usize = 200;

/// How much a text may ask of the parser.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DocumentLimits {
    /// Length of the whole text in bytes, and the most text that aliases may add to it.
    pub max_bytes: usize,
    /// Number of documents that are not empty.
    pub max_documents: usize,
    /// Levels of mappings and sequences within each other, at most [`DEPTH_CEILING`].
    pub max_depth: usize,
    /// Number of values over all documents, each alias counted as what it stands for.
    pub max_nodes: usize,
    /// Length of one string, number or key in bytes, after escapes.
    pub max_scalar_bytes: usize,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self {
            max_bytes: 4 * 1024 * 1024,
            max_documents: 64,
            max_depth: 64,
            max_nodes: 200_000,
            max_scalar_bytes: 1024 * 1024,
        }
    }
}

/// The notation of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// JSON if the text starts with `{` or `[` and is JSON, and YAML otherwise.
    Auto,
    /// YAML 1.2 with the merge keys of YAML 1.1.
    Yaml,
    /// JSON as RFC 8259 has it; several objects or arrays in a row are several documents.
    Json,
}

/// Returns the documents in `bytes`, in order, without the empty ones.
///
/// Positions and byte offsets count in `bytes` as given; a byte order mark has no column. Plain
/// YAML scalars are typed by the core schema of YAML 1.2 (section 10.3.2,
/// <https://yaml.org/spec/1.2.2/#103-core-schema>), save that `yes`, `no`, `on`, `off`, `y` and
/// `n` become [`Value::Legacy`]. A whole number beyond `i64` becomes a [`Value::Float`], with its
/// digits in [`Node::scalar_text`]. An expanded alias keeps the positions of its anchor.
///
/// # Errors
///
/// [`DocumentError`], with the position of the first thing that is wrong. For text under
/// [`Format::Auto`] that is neither JSON nor YAML, the error that lies further in is returned.
///
/// # Examples
/// ```
/// # use ambit_engine::document::{DocumentLimits, Format, parse};
/// let documents = parse(b"spec:\n  replicas: 2\n", Format::Auto, &DocumentLimits::default())?;
/// let replicas = documents.first().and_then(|document| document.root().at("/spec/replicas"));
/// assert_eq!(replicas.and_then(|node| node.as_i64()), Some(2));
/// assert_eq!(replicas.map(|node| node.span().start().to_string()).as_deref(), Some("2:13"));
/// # Ok::<(), ambit_engine::document::DocumentError>(())
/// ```
pub fn parse(
    bytes: &[u8],
    format: Format,
    limits: &DocumentLimits,
) -> Result<Vec<Document>, DocumentError> {
    if bytes.len() > limits.max_bytes {
        return Err(DocumentError::TooLarge { found: bytes.len(), limit: limits.max_bytes });
    }
    let (text, base) = index::decode(bytes)?;
    let index = TextIndex::new(text, base);
    index::reject_control_characters(&index)?;
    let budget = Budget::new(limits);
    match format {
        Format::Json => json::parse(&index, budget),
        Format::Auto if text.trim_start().starts_with(['{', '[']) => {
            match json::parse(&index, budget.clone()) {
                Err(from_json) if from_json.is_syntax() => {
                    yaml::parse(&index, budget).map_err(|from_yaml| further(from_json, from_yaml))
                }
                outcome => outcome,
            }
        }
        Format::Auto | Format::Yaml => yaml::parse(&index, budget),
    }
}

fn further(from_json: DocumentError, from_yaml: DocumentError) -> DocumentError {
    if from_yaml.is_syntax() && from_yaml.position() <= from_json.position() {
        from_json
    } else {
        from_yaml
    }
}
