//! Output as lines, made safe to show.

use crate::record::Who;

/// Which of the two outputs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Returns the stable word for this stream.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

/// Takes lines that components write.
pub trait LineSink: Send + Sync {
    /// Takes one line, without its end. It has at most 8 KiB before its control
    /// characters are escaped.
    /// The call must not block.
    fn line(&self, who: &Who, stream: Stream, line: &str);
}

/// The longest line in bytes; a longer one is cut into several.
pub(crate) const MAX_LINE: usize = 8 * 1024;

/// Cuts bytes into lines.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    rest: Vec<u8>,
}

impl Splitter {
    /// Takes bytes and gives each line that they complete.
    pub(crate) fn take(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        for byte in bytes {
            if *byte == b'\n' {
                line(&safe(&self.rest));
                self.rest.clear();
                continue;
            }
            if self.rest.len() >= MAX_LINE {
                line(&safe(&self.rest));
                self.rest.clear();
            }
            self.rest.push(*byte);
        }
    }

    /// Gives what is left, if anything is.
    pub(crate) fn end(&mut self, line: impl FnOnce(&str)) {
        if !self.rest.is_empty() {
            line(&safe(&self.rest));
            self.rest.clear();
        }
    }
}

/// Text without anything that a terminal would obey.
pub(crate) fn safe(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '\t' => text.push('\t'),
            '\r' => {}
            _ if character.is_control() || is_format(character) => {
                text.extend(character.escape_unicode());
            }
            _ => text.push(character),
        }
    }
    text
}

/// Characters that reorder or hide text: those of Unicode's bidirectional algorithm and those
/// without a width.
fn is_format(character: char) -> bool {
    matches!(character,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(parts: &[&[u8]]) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        for part in parts {
            splitter.take(part, |line| lines.push(line.to_owned()));
        }
        splitter.end(|line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn a_line_may_come_in_parts() {
        assert_eq!(split(&[b"one\ntw", b"o\n", b"three"]), ["one", "two", "three"]);
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(split(&[b"\x1b[2Jgone\r\n"]), ["\\u{1b}[2Jgone"]);
        assert_eq!(split(&["a\u{202e}b".as_bytes()]), ["a\\u{202e}b"]);
        assert_eq!(split(&[b"\xff\xfe"]), ["\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn an_endless_line_is_cut() {
        let long = vec![b'x'; MAX_LINE * 2 + 1];
        let lengths: Vec<usize> = split(&[&long]).iter().map(String::len).collect();
        assert_eq!(lengths, [MAX_LINE, MAX_LINE, 1]);
    }
}
