//! As much DER as tokens need: values in a row, and values to be written.

use x509_cert::der::{self, AnyRef, Decode as _, Reader as _, SliceReader, Tag, Tagged as _};

/// The most values in one sequence or set.
const MAX_ITEMS: usize = 64;

/// Reads the values within a constructed one.
pub(super) fn items(content: &[u8]) -> Result<Vec<AnyRef<'_>>, String> {
    let bad = |error: der::Error| format!("it is not DER: {error}");
    let mut reader = SliceReader::new(content).map_err(bad)?;
    let mut items = Vec::new();
    while !reader.is_finished() {
        if items.len() == MAX_ITEMS {
            return Err(format!("a sequence in it has more than {MAX_ITEMS} values"));
        }
        items.push(AnyRef::decode(&mut reader).map_err(bad)?);
    }
    Ok(items)
}

/// Reads the values of a sequence.
pub(super) fn sequence(any: AnyRef<'_>) -> Result<Vec<AnyRef<'_>>, String> {
    is(any, Tag::Sequence)?;
    items(any.value())
}

/// Reads the values of a sequence with nothing behind it.
pub(super) fn document(bytes: &[u8]) -> Result<Vec<AnyRef<'_>>, String> {
    match items(bytes)?.as_slice() {
        [single] => sequence(*single),
        _ => Err("it is not one value".to_owned()),
    }
}

/// Asks for a tag.
pub(super) fn is(any: AnyRef<'_>, tag: Tag) -> Result<(), String> {
    if any.tag() == tag { Ok(()) } else { Err(format!("a {tag} in it is a {}", any.tag())) }
}

/// Writes one value.
pub(super) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut bytes = vec![tag];
    let length: Vec<u8> =
        content.len().to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    match length.as_slice() {
        [] => bytes.push(0),
        [short] if *short < 0x80 => bytes.push(*short),
        long => {
            // A length has at most eight bytes.
            bytes.push(0x80 | u8::try_from(long.len()).unwrap_or(0x7f));
            bytes.extend_from_slice(long);
        }
    }
    bytes.extend_from_slice(&content);
    bytes
}
