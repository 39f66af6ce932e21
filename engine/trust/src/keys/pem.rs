//! PEM (RFC 7468, <https://www.rfc-editor.org/rfc/rfc7468>): as much as key files need.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::KeyError;

/// The most blocks of a file.
const MAX_BLOCKS: usize = 8;

/// One block.
pub(super) struct Block {
    pub(super) label: String,
    pub(super) bytes: Zeroizing<Vec<u8>>,
}

/// Reads the blocks of a text. Text between blocks is skipped, as the standard says.
pub(super) fn blocks(text: &[u8]) -> Result<Vec<Block>, KeyError> {
    let wrong = |reason: &str| KeyError::Form(reason.to_owned());
    let text = std::str::from_utf8(text).map_err(|_| wrong("the file is no text"))?;
    let mut blocks = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let label = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----"));
        let Some(label) = label else { continue };
        if blocks.len() >= MAX_BLOCKS {
            return Err(wrong("the file holds too many PEM blocks"));
        }
        let end = format!("-----END {label}-----");
        let mut body = Zeroizing::new(String::with_capacity(text.len()));
        loop {
            match lines.next() {
                Some(line) if line == end => break,
                // Header lines are how OpenSSL marks a key under its own, older encryption.
                Some(line) if line.contains(':') => {
                    return Err(wrong("the key is encrypted in OpenSSL's older form"));
                }
                Some(line) => body.push_str(line),
                None => return Err(wrong("the PEM block has no end")),
            }
        }
        let bytes = STANDARD
            .decode(body.as_bytes())
            .map_err(|_| wrong("the PEM block holds something that is no base64"))?;
        blocks.push(Block { label: label.to_owned(), bytes: Zeroizing::new(bytes) });
    }
    Ok(blocks)
}

/// Writes one block, with lines of 64 characters.
pub(super) fn write(label: &str, bytes: &[u8]) -> Zeroizing<String> {
    let body = Zeroizing::new(STANDARD.encode(bytes));
    // The room is reserved at once: growing would leave copies of a secret behind.
    let room = body.len().saturating_mul(2).saturating_add(label.len().saturating_mul(2));
    let mut text = Zeroizing::new(String::with_capacity(room.saturating_add(64)));
    for part in ["-----BEGIN ", label, "-----\n"] {
        text.push_str(part);
    }
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    for part in ["-----END ", label, "-----\n"] {
        text.push_str(part);
    }
    text
}
