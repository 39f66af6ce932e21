//! Strict reading of mappings: what is not asked for is reported.

mod problem;

pub use self::problem::{FieldProblem, ProblemKind};

use std::collections::BTreeSet;
use std::fmt;

use super::{Entry, Mapping, Node, Span, Value};

/// A JSON pointer as RFC 6901 has it, from the root of a document.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Pointer(String);

impl Pointer {
    /// Returns the pointer to a whole document.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Appends a key.
    pub fn push(&mut self, key: &str) {
        self.0.push('/');
        self.0.push_str(&key.replace('~', "~0").replace('/', "~1"));
    }

    /// Appends the place of an item, counted from 0.
    pub fn push_index(&mut self, index: usize) {
        self.0.push('/');
        self.0.push_str(&index.to_string());
    }

    /// Returns this pointer with a key appended.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut child = self.clone();
        child.push(key);
        child
    }

    /// Returns this pointer with the place of an item appended.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut child = self.clone();
        child.push_index(index);
        child
    }

    /// Returns the pointer as text; it is empty for a whole document.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A value that was read, with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Located<T> {
    value: T,
    span: Span,
    pointer: Pointer,
}

/// A string that was read, with its place.
pub type Text<'a> = Located<&'a str>;

impl<T> Located<T> {
    const fn new(value: T, span: Span, pointer: Pointer) -> Self {
        Self { value, span, pointer }
    }

    /// Returns the value.
    #[must_use]
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// Returns the value by itself.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }

    /// Returns where it was written.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// Returns where it is in its document.
    #[must_use]
    pub const fn pointer(&self) -> &Pointer {
        &self.pointer
    }
}

impl<'a> Text<'a> {
    /// Returns the string, which lives as long as its document.
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.value
    }
}

/// Reads one mapping and remembers which keys were asked for.
///
/// A key whose value is null counts as absent, as it does to Kubernetes. A value of the wrong type
/// becomes a problem and then counts as absent too.
#[derive(Debug)]
#[must_use = "keys that were not asked for are reported by `finish`"]
pub struct Fields<'a> {
    mapping: &'a Mapping,
    span: Span,
    pointer: Pointer,
    known: BTreeSet<String>,
}

impl<'a> Fields<'a> {
    /// Starts reading `node`, which stands at `pointer`.
    ///
    /// It is `None` for null, and `None` with a problem for what is not a mapping.
    pub fn new(node: &'a Node, pointer: Pointer, problems: &mut Vec<FieldProblem>) -> Option<Self> {
        if node.is_null() {
            return None;
        }
        let Some(mapping) = node.as_mapping() else {
            problems.push(FieldProblem::wrong_type("a mapping", node, pointer));
            return None;
        };
        Some(Self { mapping, span: node.span(), pointer, known: BTreeSet::new() })
    }

    /// Returns where the mapping is in its document.
    #[must_use]
    pub const fn pointer(&self) -> &Pointer {
        &self.pointer
    }

    /// Returns where the mapping was written.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// Returns the pointer to the value of `key`.
    #[must_use]
    pub fn pointer_to(&self, key: &str) -> Pointer {
        self.pointer.key(key)
    }

    /// Takes a value of any type.
    pub fn node(&mut self, key: &str) -> Option<&'a Node> {
        self.entry(key).map(Entry::value)
    }

    /// Takes a key with its value of any type.
    pub fn entry(&mut self, key: &str) -> Option<&'a Entry> {
        self.known.insert(key.to_owned());
        self.mapping.entry(key).filter(|entry| !entry.value().is_null())
    }

    /// Takes a string; numbers and booleans are problems, with the help to quote them.
    pub fn string(&mut self, key: &str, problems: &mut Vec<FieldProblem>) -> Option<Text<'a>> {
        let node = self.node(key)?;
        text(node, self.pointer_to(key), problems)
    }

    /// Takes a string that must be there.
    pub fn required_string(
        &mut self,
        key: &str,
        problems: &mut Vec<FieldProblem>,
    ) -> Option<Text<'a>> {
        if self.node(key).is_none() {
            self.missing(key, problems);
            return None;
        }
        self.string(key, problems)
    }

    /// Reports that `key` must be there.
    pub fn missing(&mut self, key: &str, problems: &mut Vec<FieldProblem>) {
        self.known.insert(key.to_owned());
        let kind = ProblemKind::Missing { key: key.to_owned() };
        problems.push(FieldProblem::new(kind, self.pointer_to(key), self.span));
    }

    /// Takes a boolean; the plain words `yes`, `no`, `on`, `off`, `y` and `n` read as in kubectl.
    pub fn bool(&mut self, key: &str, problems: &mut Vec<FieldProblem>) -> Option<Located<bool>> {
        let node = self.node(key)?;
        let pointer = self.pointer_to(key);
        let Some(value) = node.as_bool() else {
            problems.push(FieldProblem::wrong_type("a boolean", node, pointer));
            return None;
        };
        Some(Located::new(value, node.span(), pointer))
    }

    /// Takes a whole number from 0 to `u32::MAX`.
    pub fn u32(&mut self, key: &str, problems: &mut Vec<FieldProblem>) -> Option<Located<u32>> {
        self.integer(key, 0, i64::from(u32::MAX), problems)
    }

    /// Takes a whole number from 0 to `i64::MAX`.
    pub fn u64(&mut self, key: &str, problems: &mut Vec<FieldProblem>) -> Option<Located<u64>> {
        self.integer(key, 0, i64::MAX, problems)
    }

    /// Takes a whole number within bounds, both of which are allowed.
    pub fn integer<T: TryFrom<i64>>(
        &mut self,
        key: &str,
        minimum: i64,
        maximum: i64,
        problems: &mut Vec<FieldProblem>,
    ) -> Option<Located<T>> {
        let node = self.node(key)?;
        let pointer = self.pointer_to(key);
        let written = node.scalar_text().unwrap_or_default();
        let value = match node.value() {
            Value::Integer(number) => Some(*number),
            // Digits beyond `i64` are a whole number all the same, out of any range.
            Value::Float(_) if !written.contains(['.', 'e', 'E']) => None,
            Value::Null
            | Value::Bool(_)
            | Value::Float(_)
            | Value::String(_)
            | Value::Legacy { .. }
            | Value::Sequence(_)
            | Value::Mapping(_) => {
                problems.push(FieldProblem::wrong_type("an integer", node, pointer));
                return None;
            }
        };
        let within = value.filter(|number| (minimum..=maximum).contains(number));
        let Some(number) = within.and_then(|number| T::try_from(number).ok()) else {
            let found = problem::shortened(written);
            let kind = ProblemKind::OutOfRange { found, minimum, maximum };
            problems.push(FieldProblem::new(kind, pointer, node.span()));
            return None;
        };
        Some(Located::new(number, node.span(), pointer))
    }

    /// Takes a mapping, to be finished on its own.
    pub fn mapping(&mut self, key: &str, problems: &mut Vec<FieldProblem>) -> Option<Self> {
        let node = self.node(key)?;
        Self::new(node, self.pointer_to(key), problems)
    }

    /// Takes the items of a list, which is empty if the key is absent.
    pub fn sequence(
        &mut self,
        key: &str,
        problems: &mut Vec<FieldProblem>,
    ) -> Vec<(Pointer, &'a Node)> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let pointer = self.pointer_to(key);
        let Some(items) = node.as_sequence() else {
            problems.push(FieldProblem::wrong_type("a list", node, pointer));
            return Vec::new();
        };
        items.iter().enumerate().map(|(index, item)| (pointer.index(index), item)).collect()
    }

    /// Takes a list of strings; each item that is not one becomes a problem and is left out.
    pub fn string_list(&mut self, key: &str, problems: &mut Vec<FieldProblem>) -> Vec<Text<'a>> {
        let items = self.sequence(key, problems);
        items.into_iter().filter_map(|(pointer, item)| text(item, pointer, problems)).collect()
    }

    /// Takes a mapping from strings to strings, by key: the order in a text means nothing.
    ///
    /// Key and value have the same pointer. A value that is not a string, null included, becomes a
    /// problem and its entry is left out.
    pub fn string_map(
        &mut self,
        key: &str,
        problems: &mut Vec<FieldProblem>,
    ) -> Vec<(Text<'a>, Text<'a>)> {
        let Some(inner) = self.mapping(key, problems) else { return Vec::new() };
        let mut pairs = Vec::new();
        for entry in inner.mapping {
            let pointer = inner.pointer_to(entry.key());
            if let Some(value) = text(entry.value(), pointer.clone(), problems) {
                pairs.push((Located::new(entry.key(), entry.key_span(), pointer), value));
            }
        }
        pairs.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        pairs
    }

    /// Marks keys as known without reading them, for parts that are left to somebody else.
    pub fn ignore(&mut self, keys: &[&str]) {
        self.known.extend(keys.iter().map(|key| (*key).to_owned()));
    }

    /// Reports every key that was not asked for; a null value is no problem.
    pub fn finish(self, problems: &mut Vec<FieldProblem>) {
        for entry in self.mapping {
            let key = entry.key();
            if self.known.contains(key) || entry.value().is_null() {
                continue;
            }
            let nearest = problem::nearest(key, &self.known);
            let kind = ProblemKind::Unknown { key: key.to_owned(), nearest };
            problems.push(FieldProblem::new(kind, self.pointer.key(key), entry.key_span()));
        }
    }
}

fn text<'a>(
    node: &'a Node,
    pointer: Pointer,
    problems: &mut Vec<FieldProblem>,
) -> Option<Text<'a>> {
    let Some(value) = node.as_str() else {
        problems.push(FieldProblem::wrong_type("a string", node, pointer));
        return None;
    };
    Some(Located::new(value, node.span(), pointer))
}
