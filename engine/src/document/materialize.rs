//! From the arena to the tree: aliases are copied and merge keys applied.
//!
//! The builder has counted the result before, and bounded its depth, so that recursion is safe.

use std::collections::BTreeSet;

use super::build::{Id, Raw, RawEntry, RawKind};
use super::{Entry, Mapping, Node, Span, Value};

/// Returns the tree under `id`.
pub(super) fn materialize(arena: &[Raw], id: Id) -> Node {
    let Some(raw) = arena.get(id) else { return missing() };
    match &raw.kind {
        RawKind::Scalar { value, text } => Node::new(value.clone(), raw.span, text.clone()),
        RawKind::Sequence(ids) => {
            let items = ids.iter().map(|item| materialize(arena, *item)).collect();
            Node::new(Value::Sequence(items), raw.span, None)
        }
        RawKind::Mapping(entries) => {
            let mapping = Mapping::new(merged(arena, entries));
            Node::new(Value::Mapping(mapping), raw.span, None)
        }
    }
}

/// Applies merge keys as <https://yaml.org/type/merge.html> has them: explicit keys win over
/// merged ones, and the earlier of several merged mappings over the later.
fn merged(arena: &[Raw], entries: &[RawEntry]) -> Vec<Entry> {
    let explicit = entries.iter().filter(|entry| !entry.key.merge);
    let mut taken: BTreeSet<String> = BTreeSet::new();
    if entries.iter().any(|entry| entry.key.merge) {
        taken.extend(explicit.map(|entry| entry.key.text.clone()));
    }
    let mut result = Vec::with_capacity(entries.len());
    for RawEntry { key, value } in entries {
        if !key.merge {
            let node = materialize(arena, *value);
            result.push(Entry::new(key.text.clone(), key.span, node));
            continue;
        }
        for source in sources(arena, *value) {
            for entry in merged(arena, source) {
                if taken.insert(entry.key().to_owned()) {
                    result.push(entry);
                }
            }
        }
    }
    result
}

fn sources(arena: &[Raw], id: Id) -> Vec<&[RawEntry]> {
    match arena.get(id).map(|raw| &raw.kind) {
        Some(RawKind::Mapping(entries)) => vec![entries],
        Some(RawKind::Sequence(ids)) => ids.iter().flat_map(|id| mapping(arena, *id)).collect(),
        Some(RawKind::Scalar { .. }) | None => Vec::new(),
    }
}

fn mapping(arena: &[Raw], id: Id) -> Option<&[RawEntry]> {
    match arena.get(id).map(|raw| &raw.kind) {
        Some(RawKind::Mapping(entries)) => Some(entries),
        Some(RawKind::Sequence(_) | RawKind::Scalar { .. }) | None => None,
    }
}

/// Identifiers come from the arena itself, so that none is ever missing.
const fn missing() -> Node {
    Node::new(Value::Null, Span::EMPTY, None)
}
