//! Decoding, and the way from offsets to lines and columns.

use std::fmt;

use super::DocumentError;

/// A place in a text; lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Position {
    line: u32,
    column: u32,
}

impl Position {
    pub(super) const START: Self = Self { line: 1, column: 1 };

    /// Returns the line, counted from 1; CRLF, LF and CR each end one.
    #[must_use]
    pub const fn line(self) -> u32 {
        self.line
    }

    /// Returns the column in characters, counted from 1.
    #[must_use]
    pub const fn column(self) -> u32 {
        self.column
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// A stretch of a text; the end is exclusive.
///
/// A scalar's span is its text as written, with quotes, or from `|` or `>` to the last character
/// that is not white space. A block collection spans from its first to its last item, and a flow
/// collection includes its brackets. The span of an absent value is empty.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span {
    start: Position,
    end: Position,
    start_byte: usize,
    end_byte: usize,
}

impl Span {
    pub(super) const EMPTY: Self =
        Self { start: Position::START, end: Position::START, start_byte: 0, end_byte: 0 };

    /// Returns the position of the first character.
    #[must_use]
    pub const fn start(self) -> Position {
        self.start
    }

    /// Returns the position after the last character.
    #[must_use]
    pub const fn end(self) -> Position {
        self.end
    }

    /// Returns the byte offset of the first character in the bytes that were parsed.
    #[must_use]
    pub const fn start_byte(self) -> usize {
        self.start_byte
    }

    /// Returns the byte offset after the last character in the bytes that were parsed.
    #[must_use]
    pub const fn end_byte(self) -> usize {
        self.end_byte
    }

    pub(super) const fn to_end_of(self, last: Self) -> Self {
        if last.end_byte < self.start_byte {
            return self;
        }
        Self { end: last.end, end_byte: last.end_byte, ..self }
    }
}

/// Returns line `line` of `text`, counted from 1, without its line break and byte order mark.
///
/// Lines end as [`Position::line`] counts them. The line after a final line break is empty.
#[must_use]
pub fn line_text(text: &str, line: u32) -> Option<&str> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    for _ in 1..line {
        let at = rest.find(['\n', '\r'])?;
        let (_, from_break) = rest.split_at(at);
        rest = from_break
            .strip_prefix("\r\n")
            .or_else(|| from_break.strip_prefix(['\n', '\r']))
            .unwrap_or_default();
    }
    if line == 0 { None } else { rest.split(['\n', '\r']).next() }
}

/// Returns the text without its byte order mark, and the mark's length.
pub(super) fn decode(bytes: &[u8]) -> Result<(&str, usize), DocumentError> {
    let foreign = match bytes {
        [0xff, 0xfe, 0, 0, ..]
        | [0, 0, 0xfe, 0xff, ..]
        | [0, 0, 0, 1..=0x7f, ..]
        | [1..=0x7f, 0, 0, 0, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..]
        | [0xfe, 0xff, ..]
        | [1..=0x7f, 0, 1..=0xff, 0, ..]
        | [0, 1..=0x7f, 0, 1..=0xff, ..] => Some("UTF-16"),
        _ => None,
    };
    if let Some(encoding) = foreign {
        return Err(DocumentError::Encoding { encoding });
    }
    let (body, base) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(body) => (body, 3),
        None => (bytes, 0),
    };
    match std::str::from_utf8(body) {
        Ok(text) => Ok((text, base)),
        Err(invalid) => {
            Err(DocumentError::InvalidUtf8 { offset: invalid.valid_up_to().saturating_add(base) })
        }
    }
}

/// Refuses what YAML 1.2 section 5.1 does not call printable, in JSON text as well.
pub(super) fn reject_control_characters(index: &TextIndex<'_>) -> Result<(), DocumentError> {
    let unprintable = |c: char| {
        matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{84}'
            | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
    };
    match index.text().char_indices().find(|(_, c)| unprintable(*c)) {
        Some((at, character)) => Err(DocumentError::ControlCharacter {
            position: index.position_at_byte(at),
            code_point: u32::from(character),
        }),
        None => Ok(()),
    }
}

/// Characters from one remembered byte offset to the next.
const STRIDE: usize = 64;

/// A text with what it takes to place an offset in logarithmic time.
pub(super) struct TextIndex<'t> {
    text: &'t str,
    /// Length of the byte order mark in front of `text`.
    base: usize,
    /// Byte offset of every 64th character.
    marks: Vec<usize>,
    /// Character offset of each line's start.
    lines: Vec<usize>,
}

impl<'t> TextIndex<'t> {
    pub(super) fn new(text: &'t str, base: usize) -> Self {
        let mut marks = Vec::with_capacity(text.len().div_ceil(STRIDE));
        let mut lines = vec![0];
        let mut after_cr = false;
        for (count, (byte, character)) in text.char_indices().enumerate() {
            if count.is_multiple_of(STRIDE) {
                marks.push(byte);
            }
            let next = count.saturating_add(1);
            match character {
                '\n' if after_cr => {
                    if let Some(line) = lines.last_mut() {
                        *line = next;
                    }
                }
                '\n' | '\r' => lines.push(next),
                _ => {}
            }
            after_cr = character == '\r';
        }
        Self { text, base, marks, lines }
    }

    pub(super) const fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the text from byte `start`, which is moved into the text and onto a character.
    pub(super) fn from(&self, start: usize) -> &'t str {
        self.text.get(self.text.floor_char_boundary(start)..).unwrap_or_default()
    }

    /// Returns the text between two bytes, or nothing if they are not in order.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'t str {
        let end = self.text.floor_char_boundary(end);
        self.text.get(self.text.floor_char_boundary(start)..end).unwrap_or_default()
    }

    /// Returns the byte offset of a character, or the text's length for one beyond it.
    pub(super) fn byte_of_char(&self, char_offset: usize) -> usize {
        let Some(mark) = self.marks.get(char_offset.wrapping_div(STRIDE)) else {
            return self.text.len();
        };
        let inside = self.from(*mark).char_indices().nth(char_offset.wrapping_rem(STRIDE));
        inside.map_or(self.text.len(), |(byte, _)| mark.saturating_add(byte))
    }

    fn char_of_byte(&self, byte: usize) -> usize {
        let stride = self.marks.partition_point(|mark| *mark <= byte).saturating_sub(1);
        let mark = self.marks.get(stride).copied().unwrap_or_default();
        let inside = self.slice(mark, byte).chars().count();
        stride.saturating_mul(STRIDE).saturating_add(inside)
    }

    pub(super) fn position_at_byte(&self, byte: usize) -> Position {
        let char_offset = self.char_of_byte(byte);
        let line = self.lines.partition_point(|start| *start <= char_offset).max(1);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let column = char_offset.saturating_sub(start).saturating_add(1);
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Position { line: narrow(line), column: narrow(column) }
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        let end = end.max(start);
        let start_position = self.position_at_byte(start);
        Span {
            start: start_position,
            end: if end == start { start_position } else { self.position_at_byte(end) },
            start_byte: start.saturating_add(self.base),
            end_byte: end.saturating_add(self.base),
        }
    }
}
