//! From parser events to values in an arena, with every limit checked before memory is spent.
//!
//! Aliases stay references here, so that a small text cannot grow before it is counted.

use std::collections::BTreeMap;

use super::error::shortened;
use super::materialize::materialize;
use super::{DEPTH_CEILING, Document, DocumentError, DocumentLimits, Position, Span, Value};

/// What is left of the limits.
#[derive(Clone)]
pub(super) struct Budget {
    pub(super) limits: DocumentLimits,
    nodes: usize,
    alias_bytes: usize,
    documents: usize,
}

impl Budget {
    pub(super) fn new(limits: &DocumentLimits) -> Self {
        let mut limits = limits.clone();
        limits.max_depth = limits.max_depth.min(DEPTH_CEILING);
        Self { limits, nodes: 0, alias_bytes: 0, documents: 0 }
    }
}

/// Place of a value in the arena.
pub(super) type Id = usize;

pub(super) struct Raw {
    pub(super) kind: RawKind,
    pub(super) span: Span,
    /// Sizes with aliases expanded.
    nodes: usize,
    bytes: usize,
    /// Levels of collections from here down.
    height: usize,
}

pub(super) enum RawKind {
    Scalar { value: Value, text: Option<String> },
    Sequence(Vec<Id>),
    Mapping(Vec<RawEntry>),
}

pub(super) struct RawEntry {
    pub(super) key: Key,
    pub(super) value: Id,
}

pub(super) struct Key {
    pub(super) text: String,
    pub(super) span: Span,
    pub(super) merge: bool,
}

/// A scalar as a parser found it.
pub(super) struct Scalar {
    pub(super) value: Value,
    /// The text as written, for values other than strings.
    pub(super) text: Option<String>,
    pub(super) span: Span,
    /// Whether it is the plain `<<` of YAML.
    pub(super) merge: bool,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Collection {
    Sequence,
    Mapping,
}

impl Collection {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sequence => "a list",
            Self::Mapping => "a mapping",
        }
    }
}

struct Frame {
    anchor: usize,
    span: Span,
    items: Items,
    nodes: usize,
    bytes: usize,
    height: usize,
}

enum Items {
    Sequence(Vec<Id>),
    Mapping { entries: Vec<RawEntry>, key: Option<Key> },
}

/// Builds one document after the other.
pub(super) struct Builder {
    budget: Budget,
    arena: Vec<Raw>,
    stack: Vec<Frame>,
    /// Anchor numbers with their values; none while the value is unfinished.
    anchors: BTreeMap<usize, Option<Id>>,
    root: Option<Id>,
    documents: Vec<Document>,
}

impl Builder {
    pub(super) const fn new(budget: Budget) -> Self {
        Self {
            budget,
            arena: Vec::new(),
            stack: Vec::new(),
            anchors: BTreeMap::new(),
            root: None,
            documents: Vec::new(),
        }
    }

    pub(super) const fn limits(&self) -> &DocumentLimits {
        &self.budget.limits
    }

    /// Returns whether the next value becomes the key of a mapping.
    pub(super) fn expects_key(&self) -> bool {
        let items = self.stack.last().map(|frame| &frame.items);
        matches!(items, Some(Items::Mapping { key: None, .. }))
    }

    pub(super) fn innermost(&self) -> Option<Collection> {
        self.stack.last().map(|frame| match frame.items {
            Items::Sequence(_) => Collection::Sequence,
            Items::Mapping { .. } => Collection::Mapping,
        })
    }

    /// Adds a scalar; `anchor` is 0 for none.
    pub(super) fn scalar(&mut self, scalar: Scalar, anchor: usize) -> Result<(), DocumentError> {
        let position = scalar.span.start();
        let bytes = match &scalar.value {
            Value::String(text) | Value::Legacy { text, .. } => text.len(),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Sequence(_)
            | Value::Mapping(_) => scalar.text.as_ref().map_or(0, String::len),
        };
        let limit = self.budget.limits.max_scalar_bytes;
        if bytes > limit {
            return Err(DocumentError::ScalarTooLarge { position, found: bytes, limit });
        }
        let is_key = self.expects_key();
        if is_key && anchor == 0 {
            return self.key(scalar);
        }
        self.spend_nodes(1, position)?;
        if is_key {
            let copy = Scalar {
                value: scalar.value.clone(),
                text: scalar.text.clone(),
                span: scalar.span,
                merge: scalar.merge,
            };
            self.key(copy)?;
        }
        let kind = RawKind::Scalar { value: scalar.value, text: scalar.text };
        let id = self.store(Raw { kind, span: scalar.span, nodes: 1, bytes, height: 0 });
        if anchor != 0 {
            self.anchors.insert(anchor, Some(id));
        }
        if is_key { Ok(()) } else { self.attach(id) }
    }

    /// Adds what the anchor stands for.
    pub(super) fn alias(&mut self, anchor: usize, span: Span) -> Result<(), DocumentError> {
        let position = span.start();
        let id = match self.anchors.get(&anchor) {
            Some(Some(id)) => *id,
            Some(None) => return Err(DocumentError::RecursiveAlias { position }),
            None => return Err(DocumentError::UnknownAlias { position }),
        };
        let Some(target) = self.arena.get(id) else {
            return Err(DocumentError::UnknownAlias { position });
        };
        let (nodes, bytes, height) = (target.nodes, target.bytes, target.height);
        let limit = self.budget.limits.max_depth;
        if self.stack.len().saturating_add(height) > limit {
            return Err(DocumentError::TooDeep { position, limit });
        }
        self.spend_nodes(nodes, position)?;
        let limit = self.budget.limits.max_bytes;
        self.budget.alias_bytes = self.budget.alias_bytes.saturating_add(bytes);
        if self.budget.alias_bytes > limit {
            return Err(DocumentError::AliasesTooLarge { position, limit });
        }
        if !self.expects_key() {
            return self.attach(id);
        }
        match self.arena.get(id).map(|target| &target.kind) {
            Some(RawKind::Scalar { value, text }) => {
                let (value, text) = (value.clone(), text.clone());
                self.key(Scalar { value, text, span, merge: false })
            }
            Some(RawKind::Sequence(_)) => Err(collection_key(Collection::Sequence, span)),
            Some(RawKind::Mapping(_)) => Err(collection_key(Collection::Mapping, span)),
            None => Err(DocumentError::UnknownAlias { position }),
        }
    }

    /// Opens a collection at `span`, whose end counts only if there are no items.
    pub(super) fn open(
        &mut self,
        collection: Collection,
        span: Span,
        anchor: usize,
    ) -> Result<(), DocumentError> {
        let position = span.start();
        if self.expects_key() {
            return Err(collection_key(collection, span));
        }
        let limit = self.budget.limits.max_depth;
        if self.stack.len() >= limit {
            return Err(DocumentError::TooDeep { position, limit });
        }
        self.spend_nodes(1, position)?;
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        let items = match collection {
            Collection::Sequence => Items::Sequence(Vec::new()),
            Collection::Mapping => Items::Mapping { entries: Vec::new(), key: None },
        };
        self.stack.push(Frame { anchor, span, items, nodes: 1, bytes: 0, height: 1 });
        Ok(())
    }

    /// Closes the innermost collection; `end` is its closing bracket if it has one.
    pub(super) fn close(&mut self, end: Option<Span>) -> Result<(), DocumentError> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let mut span = frame.span;
        let kind = match frame.items {
            Items::Sequence(ids) => {
                if let Some(last) = ids.last() {
                    span = self.span_through(span, *last);
                }
                RawKind::Sequence(ids)
            }
            Items::Mapping { entries, .. } => {
                reject_duplicates(&entries)?;
                for entry in &entries {
                    self.check_merge(entry)?;
                }
                if let Some(last) = entries.last() {
                    span = self.span_through(span.to_end_of(last.key.span), last.value);
                }
                RawKind::Mapping(entries)
            }
        };
        if let Some(end) = end {
            span = span.to_end_of(end);
        }
        let (nodes, bytes, height) = (frame.nodes, frame.bytes, frame.height);
        let id = self.store(Raw { kind, span, nodes, bytes, height });
        if frame.anchor != 0 {
            self.anchors.insert(frame.anchor, Some(id));
        }
        self.attach(id)
    }

    /// Ends a document; `empty` ones leave no trace.
    pub(super) fn end_document(&mut self, empty: bool) -> Result<(), DocumentError> {
        if let Some(root) = self.root.take()
            && !empty
        {
            let position = self.arena.get(root).map_or(Position::START, |raw| raw.span.start());
            let limit = self.budget.limits.max_documents;
            self.budget.documents = self.budget.documents.saturating_add(1);
            if self.budget.documents > limit {
                return Err(DocumentError::TooManyDocuments { position, limit });
            }
            self.documents.push(Document::new(materialize(&self.arena, root)));
        }
        self.arena.clear();
        self.anchors.clear();
        self.stack.clear();
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<Document> {
        self.documents
    }

    fn key(&mut self, scalar: Scalar) -> Result<(), DocumentError> {
        let found = match scalar.value {
            Value::String(text) => {
                if let Some(frame) = self.stack.last_mut()
                    && let Items::Mapping { key, .. } = &mut frame.items
                {
                    frame.bytes = frame.bytes.saturating_add(text.len());
                    *key = Some(Key { text, span: scalar.span, merge: scalar.merge });
                }
                return Ok(());
            }
            Value::Legacy { text, .. } => (Some(text), "a boolean to kubectl"),
            Value::Bool(_) => (scalar.text, "a boolean"),
            Value::Integer(_) | Value::Float(_) => (scalar.text, "a number"),
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => (scalar.text, "null"),
        };
        Err(DocumentError::Key {
            position: scalar.span.start(),
            found: found.1,
            text: shortened(&found.0.unwrap_or_default()),
        })
    }

    fn spend_nodes(&mut self, nodes: usize, position: Position) -> Result<(), DocumentError> {
        let limit = self.budget.limits.max_nodes;
        self.budget.nodes = self.budget.nodes.saturating_add(nodes);
        if self.budget.nodes > limit {
            return Err(DocumentError::TooManyNodes { position, limit });
        }
        Ok(())
    }

    fn store(&mut self, raw: Raw) -> Id {
        let id = self.arena.len();
        self.arena.push(raw);
        id
    }

    fn attach(&mut self, id: Id) -> Result<(), DocumentError> {
        let Some(raw) = self.arena.get(id) else { return Ok(()) };
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(id);
            return Ok(());
        };
        frame.nodes = frame.nodes.saturating_add(raw.nodes);
        frame.bytes = frame.bytes.saturating_add(raw.bytes);
        frame.height = frame.height.max(raw.height.saturating_add(1));
        match &mut frame.items {
            Items::Sequence(ids) => ids.push(id),
            Items::Mapping { entries, key } => {
                if let Some(key) = key.take() {
                    entries.push(RawEntry { key, value: id });
                }
            }
        }
        Ok(())
    }

    fn span_through(&self, span: Span, last: Id) -> Span {
        self.arena.get(last).map_or(span, |raw| span.to_end_of(raw.span))
    }

    fn check_merge(&self, entry: &RawEntry) -> Result<(), DocumentError> {
        if !entry.key.merge {
            return Ok(());
        }
        let refuse = |raw: &Raw, found| {
            let position = raw.span.start();
            Err(DocumentError::MergeValue { position, found })
        };
        let Some(value) = self.arena.get(entry.value) else { return Ok(()) };
        match &value.kind {
            RawKind::Mapping(_) => Ok(()),
            RawKind::Sequence(ids) => {
                for item in ids.iter().filter_map(|id| self.arena.get(*id)) {
                    match item.kind {
                        RawKind::Mapping(_) => {}
                        RawKind::Sequence(_) => return refuse(item, "a list in a list"),
                        RawKind::Scalar { .. } => return refuse(item, "a scalar in a list"),
                    }
                }
                Ok(())
            }
            RawKind::Scalar { .. } => refuse(value, "a scalar"),
        }
    }
}

fn collection_key(collection: Collection, span: Span) -> DocumentError {
    DocumentError::CollectionKey { position: span.start(), found: collection.name() }
}

fn reject_duplicates(entries: &[RawEntry]) -> Result<(), DocumentError> {
    let mut seen = BTreeMap::new();
    for RawEntry { key, .. } in entries {
        if let Some(first) = seen.insert(key.text.as_str(), key.span) {
            return Err(DocumentError::DuplicateKey {
                key: shortened(&key.text),
                first: first.start(),
                second: key.span.start(),
            });
        }
    }
    Ok(())
}
