//! Encodings: base64, PEM, hexadecimal, and as much DER as certificates need.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns PEM as Go writes it: lines of 64 characters and a last line end, byte for byte what a
/// log holds.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let body = base64(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    let _ = writeln!(text, "-----END {label}-----");
    text
}

/// Returns one DER value.
pub(super) fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    match significant.as_slice() {
        [] => bytes.push(0),
        [short] if *short < 0x80 => bytes.push(*short),
        long => {
            bytes.push(0x80 | u8::try_from(long.len()).unwrap_or(0));
            bytes.extend_from_slice(long);
        }
    }
    bytes.extend_from_slice(content);
    bytes
}

/// Returns the first value within the outermost one: of a certificate, what is signed.
pub(super) fn first_inner(bytes: &[u8]) -> &[u8] {
    let (header, _) = header(bytes);
    let inner = bytes.get(header..).unwrap_or_default();
    let (header, content) = self::header(inner);
    inner.get(..header.saturating_add(content)).unwrap_or_default()
}

/// Returns the lengths of the header and of the content of a DER value.
fn header(bytes: &[u8]) -> (usize, usize) {
    match bytes.get(1).copied() {
        None => (0, 0),
        Some(short) if short < 0x80 => (2, usize::from(short)),
        Some(long) => {
            let count = usize::from(long & 0x7f);
            let end = count.saturating_add(2);
            let digits = bytes.get(2..end).unwrap_or_default();
            let length = digits.iter().fold(0_usize, |sum, digit| sum << 8 | usize::from(*digit));
            (end, length)
        }
    }
}
