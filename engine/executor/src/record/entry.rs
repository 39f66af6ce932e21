//! The lines of a record.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The longest line, in bytes, without its line end.
pub const MAX_LINE_BYTES: usize = 4096;

/// What comes before the first line: there is no hash.
pub(super) const ZERO: [u8; 32] = [0; 32];

/// One line: where it stands, and what it says.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Line<'a> {
    /// Counts from 1 through all segments.
    pub seq: u64,
    /// When it was written, RFC 3339 in UTC, to the microsecond.
    pub time: Cow<'a, str>,
    /// The SHA-256 of the line before, without its line end, in hex; zeros in the first line.
    pub prev: Cow<'a, str>,
    /// What it says.
    #[serde(flatten)]
    pub entry: Entry<'a>,
}

/// What a line says.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Entry<'a> {
    /// A segment begins.
    Start {
        /// The version of the form, 1.
        format: u32,
        /// The version of ambit.
        version: Cow<'a, str>,
        /// Counts from 1.
        segment: u32,
    },
    /// A component may run.
    Component {
        /// The workload.
        workload: Cow<'a, str>,
        /// The component.
        component: Cow<'a, str>,
        /// The digest of its bytes.
        digest: Cow<'a, str>,
        /// The verdict under which it runs.
        verdict: Cow<'a, str>,
    },
    /// An allowed effect is about to happen.
    Intent {
        /// What it is.
        #[serde(flatten)]
        subject: Subject<'a>,
        /// The line of the document that allows it, where one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<Grant<'a>>,
    },
    /// An effect was denied, and doesn't happen.
    Denied {
        /// What it would have been.
        #[serde(flatten)]
        subject: Subject<'a>,
        /// A stable code.
        code: Cow<'a, str>,
        /// Why.
        reason: Cow<'a, str>,
        /// What would allow it; may be empty.
        help: Cow<'a, str>,
    },
    /// How an effect ended.
    Outcome {
        /// The `seq` of its intent.
        of: u64,
        /// `ok`, or a stable code.
        result: Cow<'a, str>,
        /// Bytes that went out of the component.
        bytes_out: u64,
        /// Bytes that came in.
        bytes_in: u64,
        /// How long it took, in microseconds.
        micros: u64,
        /// A status, an address, an exit code; may be empty.
        #[serde(default, skip_serializing_if = "str_is_empty")]
        detail: Cow<'a, str>,
    },
    /// The lines before are signed.
    Seal {
        /// The digest of the key's SubjectPublicKeyInfo, `sha256:HEX`.
        key: Cow<'a, str>,
        /// The signature, in base64, over what [`sealed`] returns.
        signature: Cow<'a, str>,
    },
    /// The next line is in the next segment.
    Continued {
        /// The next segment.
        segment: u32,
    },
    /// The run ended in order.
    End {
        /// Effects whose outcome isn't known: they were still under way.
        open: u64,
    },
}

/// Whose effect, and on what.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject<'a> {
    /// The workload, `NAMESPACE/NAME`.
    pub workload: Cow<'a, str>,
    /// The component's name in the document.
    pub component: Cow<'a, str>,
    /// The digest of its bytes.
    pub digest: Cow<'a, str>,
    /// The instance, unique per component in one run.
    pub instance: u64,
    /// What a person would call it.
    pub verb: Cow<'a, str>,
    /// The interface on its version track.
    pub interface: Cow<'a, str>,
    /// The function.
    pub function: Cow<'a, str>,
    /// What is touched.
    pub subject: Cow<'a, str>,
}

/// The line of a document that allows something.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Grant<'a> {
    /// The grant as written, passwords masked.
    pub text: Cow<'a, str>,
    /// The file.
    pub file: Cow<'a, str>,
    /// The line, from 1.
    pub line: u32,
}

#[expect(clippy::ptr_arg, reason = "serde gives a reference to the field")]
fn str_is_empty(text: &Cow<'_, str>) -> bool {
    text.is_empty()
}

/// Returns what a seal signs: where and when it stands, and the head of the chain before it.
#[must_use]
pub fn sealed(seq: u64, time: &str, prev: &str) -> Vec<u8> {
    format!("ambit record v1\n{seq}\n{time}\n{prev}\n").into_bytes()
}

/// What stands for what was cut.
const MARK: &str = "…";

/// Cuts `text` so that it takes at most `room` bytes within a JSON string.
pub(super) fn bounded(text: &str, room: usize) -> Cow<'_, str> {
    // A character takes six bytes at most, as `\u001f`, so most texts are not looked at closely.
    if text.len().saturating_mul(6) <= room {
        return Cow::Borrowed(text);
    }
    let mut taken = 0_usize;
    let mut cut = 0_usize;
    for (index, character) in text.char_indices() {
        taken = taken.saturating_add(width(character));
        if taken > room {
            let kept = text.get(..cut).unwrap_or_default();
            return Cow::Owned(format!("{kept}{MARK}"));
        }
        if taken.saturating_add(MARK.len()) <= room {
            cut = index.saturating_add(character.len_utf8());
        }
    }
    Cow::Borrowed(text)
}

/// The bytes that a character takes within a JSON string, as `serde_json` writes it.
fn width(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::bounded;

    #[test]
    fn a_bounded_text_fits_as_json() {
        for text in ["", "plain", "\u{1}\u{2}\u{3}", "\"\"\"\"\"\"\"\"", "ééééééééé", "𝄞𝄞𝄞𝄞𝄞"]
        {
            for room in 3..64 {
                let cut = bounded(text, room);
                let json = serde_json::to_string(&cut).expect("text");
                assert!(json.len() - 2 <= room, "{text:?} in {room}: {json}");
                if serde_json::to_string(text).expect("text").len() - 2 <= room {
                    assert_eq!(cut, text, "it fits as it is");
                }
            }
        }
    }
}
