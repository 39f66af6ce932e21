//! The tree.

use super::{DocumentError, Span};

/// One document of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    root: Node,
}

impl Document {
    pub(super) const fn new(root: Node) -> Self {
        Self { root }
    }

    /// Returns the outermost value.
    #[must_use]
    pub const fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the outermost value by itself.
    #[must_use]
    pub fn into_root(self) -> Node {
        self.root
    }

    /// Returns where the outermost value stands.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.root.span
    }
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    value: Value,
    span: Span,
    text: Option<String>,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `~`, or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number; infinite or not a number only if written so in YAML.
    Float(f64),
    /// Text.
    String(String),
    /// A plain `yes`, `no`, `on`, `off`, `y` or `n`: a boolean to kubectl, text to YAML 1.2.
    Legacy {
        /// The word as written.
        text: String,
        /// The boolean that kubectl reads.
        reading: bool,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// Keys with values.
    Mapping(Mapping),
}

impl Node {
    pub(super) const fn new(value: Value, span: Span, text: Option<String>) -> Self {
        Self { value, span, text }
    }

    /// Returns what the node holds.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// Returns where the node was written; for an alias, where its anchor was.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// Returns a scalar's text: a string's content, and anything else as it was written.
    ///
    /// It is `None` for mappings, sequences, and a null that is written as nothing.
    #[must_use]
    pub fn scalar_text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) | Value::Legacy { text, .. } => Some(text),
            Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) => {
                self.text.as_deref()
            }
            Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    /// Returns the value under `key` if this is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_mapping()?.get(key)
    }

    /// Returns the text of a string; other scalars are not converted.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = &self.value { Some(text) } else { None }
    }

    /// Returns a boolean, also the one that kubectl reads from a [`Value::Legacy`].
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(reading) | Value::Legacy { reading, .. } => Some(reading),
            Value::Null
            | Value::Integer(_)
            | Value::Float(_)
            | Value::String(_)
            | Value::Sequence(_)
            | Value::Mapping(_) => None,
        }
    }

    /// Returns a whole number within `i64`.
    #[must_use]
    pub const fn as_i64(&self) -> Option<i64> {
        if let Value::Integer(number) = self.value { Some(number) } else { None }
    }

    /// Returns the items of a sequence.
    #[must_use]
    pub fn as_sequence(&self) -> Option<&[Self]> {
        if let Value::Sequence(items) = &self.value { Some(items) } else { None }
    }

    /// Returns a mapping.
    #[must_use]
    pub const fn as_mapping(&self) -> Option<&Mapping> {
        if let Value::Mapping(mapping) = &self.value { Some(mapping) } else { None }
    }

    /// Returns whether this is null.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// Returns the kind of value with its article, for messages.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) | Value::Legacy { .. } => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a number",
            Value::String(_) => "a string",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    /// Returns the tree as kubectl would send it, with a [`Value::Legacy`] as its boolean.
    ///
    /// What JSON numbers cannot say (`.inf`, `.nan`) becomes the text as written.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(reading) | Value::Legacy { reading, .. } => (*reading).into(),
            Value::Integer(number) => (*number).into(),
            Value::Float(number) => match serde_json::Number::from_f64(*number) {
                Some(number) => serde_json::Value::Number(number),
                None => self.text.clone().unwrap_or_default().into(),
            },
            Value::String(text) => text.clone().into(),
            Value::Sequence(items) => items.iter().map(Self::to_json).collect(),
            Value::Mapping(mapping) => mapping
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    /// Returns the node that an RFC 6901 pointer names, if there is one.
    ///
    /// The empty pointer names this node; a pointer that does not start with `/` names none.
    #[must_use]
    pub fn at(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |node, token| match &node.value {
            Value::Mapping(mapping) => mapping.get(&token.replace("~1", "/").replace("~0", "~")),
            Value::Sequence(items) => {
                let canonical = token == "0" || !token.starts_with(['0', '+']);
                items.get(token.parse::<usize>().ok().filter(|_| canonical)?)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::String(_)
            | Value::Legacy { .. } => None,
        })
    }
}

/// Keys with values, in the order in which they were written; no key is there twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    entries: Vec<Entry>,
}

impl Mapping {
    pub(super) const fn new(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// Returns the value under `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(Entry::value)
    }

    /// Returns the key and value under `key`.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<'a> IntoIterator for &'a Mapping {
    type Item = &'a Entry;
    type IntoIter = std::slice::Iter<'a, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    key: String,
    key_span: Span,
    value: Node,
}

impl Entry {
    pub(super) const fn new(key: String, key_span: Span, value: Node) -> Self {
        Self { key, key_span, value }
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns where the key was written.
    #[must_use]
    pub const fn key_span(&self) -> Span {
        self.key_span
    }

    /// Returns the value.
    #[must_use]
    pub const fn value(&self) -> &Node {
        &self.value
    }
}

impl DocumentError {
    /// Whether another notation may read the text that raised this.
    pub(super) const fn is_syntax(&self) -> bool {
        matches!(
            self,
            Self::Syntax { .. } | Self::TrailingContent { .. } | Self::TabIndentation { .. }
        )
    }
}
