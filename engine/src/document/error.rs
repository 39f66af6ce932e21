//! Why a text has no tree.

use super::Position;

/// Why a text could not be read as documents.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The text follows the grammar up to `position` only.
    #[error("invalid {format} at {position}: {detail}")]
    Syntax {
        /// `YAML` or `JSON`.
        format: &'static str,
        /// Where reading stopped.
        position: Position,
        /// What is wrong there.
        detail: String,
    },
    /// A line is indented with a tab, which YAML 1.2 section 6.1 forbids.
    #[error("tab character in the indentation at {position}")]
    TabIndentation {
        /// The tab.
        position: Position,
    },
    /// A directive could change what the rest of the text means.
    #[error("directive `{directive}` at {position} is not supported")]
    Directive {
        /// The start of the directive.
        position: Position,
        /// The directive's line, shortened.
        directive: String,
    },
    /// Something follows the JSON value.
    #[error("unexpected content at {position}, after the end of the JSON value")]
    TrailingContent {
        /// The first character that is too many.
        position: Position,
    },
    /// One mapping has a key twice.
    #[error("key `{key}` at {second} is already set at {first}")]
    DuplicateKey {
        /// The key, shortened.
        key: String,
        /// The first one.
        first: Position,
        /// The one that repeats it.
        second: Position,
    },
    /// A key is not a string.
    #[error("mapping key `{text}` at {position} is {found}, expected a string")]
    Key {
        /// The key.
        position: Position,
        /// The kind of key, with its article.
        found: &'static str,
        /// The key as written, shortened.
        text: String,
    },
    /// A key is a collection.
    #[error("mapping key at {position} is {found}, expected a string")]
    CollectionKey {
        /// The key.
        position: Position,
        /// The kind of key, with its article.
        found: &'static str,
    },
    /// A merge key's value cannot be merged.
    #[error("merge key `<<` at {position} holds {found}, expected a mapping or a list of mappings")]
    MergeValue {
        /// The value, or the item of the list.
        position: Position,
        /// The kind of value, with its article.
        found: &'static str,
    },
    /// The text is too long.
    #[error("text of {found} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its length in bytes.
        found: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// One string, number or key is too long.
    #[error("value at {position} has {found} bytes, over the limit of {limit}")]
    ScalarTooLarge {
        /// Its start.
        position: Position,
        /// Its length in bytes.
        found: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Aliases repeat more text than the limit.
    #[error("aliases up to {position} repeat more than {limit} bytes of text")]
    AliasesTooLarge {
        /// The alias that goes over the limit.
        position: Position,
        /// The limit in bytes.
        limit: usize,
    },
    /// Collections are nested too deeply.
    #[error("nesting at {position} is deeper than the limit of {limit}")]
    TooDeep {
        /// The collection or alias that goes over the limit.
        position: Position,
        /// The limit.
        limit: usize,
    },
    /// There are too many values.
    #[error("values up to {position} are more than the limit of {limit}")]
    TooManyNodes {
        /// The value or alias that goes over the limit.
        position: Position,
        /// The limit.
        limit: usize,
    },
    /// One `[…]` or `{…}` has more parts than YAML can be read ahead for.
    #[error("the YAML collection at {position} has more than {limit} parts between its brackets")]
    FlowTooLarge {
        /// The collection, or something in front of it on the way there.
        position: Position,
        /// The limit.
        limit: usize,
    },
    /// There are too many documents.
    #[error("document at {position} is over the limit of {limit} documents")]
    TooManyDocuments {
        /// The start of the document that goes over the limit.
        position: Position,
        /// The limit.
        limit: usize,
    },
    /// The text is not in UTF-8, judging by its first bytes.
    #[error("text is in {encoding}, expected UTF-8")]
    Encoding {
        /// The encoding.
        encoding: &'static str,
    },
    /// A byte is not part of any character.
    #[error("invalid UTF-8 at byte offset {offset}")]
    InvalidUtf8 {
        /// Offset of the first such byte.
        offset: usize,
    },
    /// A character may only be written as an escape.
    #[error("control character U+{code_point:04X} at {position}")]
    ControlCharacter {
        /// The character.
        position: Position,
        /// Its code point.
        code_point: u32,
    },
    /// A tag is not one of the core schema's.
    #[error("tag `{tag}` at {position} is not supported")]
    UnknownTag {
        /// The tagged value.
        position: Position,
        /// The tag, shortened.
        tag: String,
    },
    /// A tag says something else than the value it stands at.
    #[error("tag `{tag}` at {position} does not fit the value")]
    TagMismatch {
        /// The tagged value.
        position: Position,
        /// The tag.
        tag: &'static str,
    },
    /// An alias names no anchor of its document.
    #[error("alias at {position} names no anchor before it in its document")]
    UnknownAlias {
        /// The alias.
        position: Position,
    },
    /// An alias stands inside of what it names.
    #[error("alias at {position} stands inside of its own anchor")]
    RecursiveAlias {
        /// The alias.
        position: Position,
    },
}

impl DocumentError {
    /// Returns the stable name of this kind of error.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Syntax { .. }
            | Self::TabIndentation { .. }
            | Self::Directive { .. }
            | Self::TrailingContent { .. } => "manifest-syntax",
            Self::DuplicateKey { .. } => "manifest-duplicate-key",
            Self::Key { .. } | Self::CollectionKey { .. } | Self::MergeValue { .. } => {
                "manifest-key"
            }
            Self::TooLarge { .. } | Self::ScalarTooLarge { .. } | Self::AliasesTooLarge { .. } => {
                "manifest-too-large"
            }
            Self::TooDeep { .. } => "manifest-too-deep",
            Self::TooManyNodes { .. } | Self::FlowTooLarge { .. } => "manifest-too-many-nodes",
            Self::TooManyDocuments { .. } => "manifest-too-many-documents",
            Self::Encoding { .. } | Self::InvalidUtf8 { .. } => "manifest-encoding",
            Self::ControlCharacter { .. } => "manifest-control-character",
            Self::UnknownTag { .. } | Self::TagMismatch { .. } => "manifest-tag",
            Self::UnknownAlias { .. } | Self::RecursiveAlias { .. } => "manifest-alias",
        }
    }

    /// Returns what to do about it, where there is something to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::Syntax { detail, .. } if detail.contains("mapping values are not allowed") => {
                "indent the line like its neighbours, and quote text that holds `: `"
            }
            Self::Syntax { detail, .. }
                if detail.contains("followed by a valid YAML whitespace") =>
            {
                "write a space there instead of a tab"
            }
            Self::Syntax { .. } => return None,
            Self::TabIndentation { .. } => "indent with spaces",
            Self::Directive { .. } => "remove the line",
            Self::TrailingContent { .. } => "remove what follows the value",
            Self::DuplicateKey { .. } => "keep one of the two",
            Self::Key { text, .. } if text.is_empty() => "write a key before the `:`",
            Self::Key { text, .. } => return Some(format!("put the key in quotes: `\"{text}\"`")),
            Self::CollectionKey { .. } => {
                "write a string as the key, and quote text that starts with `{` or `[`"
            }
            Self::MergeValue { .. } => "merge an alias of a mapping, such as `<<: *defaults`",
            Self::TooLarge { .. } | Self::TooManyNodes { .. } | Self::TooManyDocuments { .. } => {
                "split the text into several files"
            }
            Self::ScalarTooLarge { .. } => "move the data out of the manifest",
            Self::AliasesTooLarge { .. } => "write fewer aliases of long values",
            Self::TooDeep { .. } => "nest fewer mappings and lists",
            Self::FlowTooLarge { .. } => {
                "write the collection as block YAML, or the whole file as JSON"
            }
            Self::Encoding { .. } | Self::InvalidUtf8 { .. } => "save it as UTF-8",
            Self::ControlCharacter { .. } => {
                "remove it, or write it as an escape within double quotes"
            }
            Self::UnknownTag { .. } => "remove the tag",
            Self::TagMismatch { .. } => "remove the tag, or write a value of its type",
            Self::UnknownAlias { .. } => {
                "define the anchor earlier in the same document, or quote text that starts with `*`"
            }
            Self::RecursiveAlias { .. } => "write the value out",
        };
        Some(help.to_owned())
    }

    /// Returns where the problem is, unless it is the text as a whole or a byte in it.
    #[must_use]
    pub const fn position(&self) -> Option<Position> {
        match self {
            Self::Syntax { position, .. }
            | Self::TabIndentation { position }
            | Self::Directive { position, .. }
            | Self::TrailingContent { position }
            | Self::DuplicateKey { second: position, .. }
            | Self::Key { position, .. }
            | Self::CollectionKey { position, .. }
            | Self::MergeValue { position, .. }
            | Self::ScalarTooLarge { position, .. }
            | Self::AliasesTooLarge { position, .. }
            | Self::TooDeep { position, .. }
            | Self::TooManyNodes { position, .. }
            | Self::FlowTooLarge { position, .. }
            | Self::TooManyDocuments { position, .. }
            | Self::ControlCharacter { position, .. }
            | Self::UnknownTag { position, .. }
            | Self::TagMismatch { position, .. }
            | Self::UnknownAlias { position }
            | Self::RecursiveAlias { position } => Some(*position),
            Self::TooLarge { .. } | Self::Encoding { .. } | Self::InvalidUtf8 { .. } => None,
        }
    }
}

/// Returns at most 64 characters of `text`, on one line, for a message.
pub(super) fn shortened(text: &str) -> String {
    let flat = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(64).map(flat).collect();
    if text.chars().nth(64).is_some() {
        short.push('…');
    }
    short
}
