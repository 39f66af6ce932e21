//! Names that nearly are a known one.

/// Edits up to which two names are confusable; shorter names are compared folded only.
const MAX_EDITS: usize = 2;

/// Returns the known name nearest to `name`, if it is near enough and not the same.
pub(super) fn nearest<'c>(name: &str, known: impl Iterator<Item = &'c String>) -> Option<String> {
    if name.chars().count() > 200 {
        return None;
    }
    let folded = fold(name);
    known
        .filter(|candidate| candidate.as_str() != name)
        .filter_map(|candidate| {
            if fold(candidate) == folded {
                return Some((0, candidate));
            }
            let edits = distance(name, candidate);
            (edits <= MAX_EDITS && candidate.len() >= 8).then_some((edits, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate.clone())
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| *c != '-' && *c != '_').flat_map(char::to_lowercase).collect()
}

/// Returns the edit distance of two names, or more than [`MAX_EDITS`] as soon as that is sure.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > MAX_EDITS {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i.saturating_add(1));
        for ((to, diagonal), above) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or(usize::MAX);
            let change = diagonal.saturating_add(usize::from(from != to));
            next.push(change.min(above.saturating_add(1)).min(left.saturating_add(1)));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}
