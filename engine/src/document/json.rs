//! JSON as RFC 8259 has it, read without recursion.

use super::build::{Budget, Builder, Collection, Scalar};
use super::index::TextIndex;
use super::{Document, DocumentError, Value, scalar};

/// Returns the documents of a JSON text.
pub(super) fn parse(index: &TextIndex<'_>, budget: Budget) -> Result<Vec<Document>, DocumentError> {
    let mut reader = Reader { index, at: 0, builder: Builder::new(budget) };
    reader.documents()?;
    Ok(reader.builder.finish())
}

/// What the grammar allows next.
#[derive(Clone, Copy)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    SeparatorOrEnd,
}

struct Reader<'t> {
    index: &'t TextIndex<'t>,
    at: usize,
    builder: Builder,
}

impl Reader<'_> {
    fn documents(&mut self) -> Result<(), DocumentError> {
        self.skip_blanks();
        if self.peek().is_none() {
            return Err(self.syntax("expected a value, found the end of the text"));
        }
        let mut first = true;
        while let Some(byte) = self.peek() {
            let collection = matches!(byte, b'{' | b'[');
            if !first && !collection {
                let position = self.index.position_at_byte(self.at);
                return Err(DocumentError::TrailingContent { position });
            }
            first = false;
            self.document()?;
            self.builder.end_document(false)?;
            self.skip_blanks();
            if !collection && self.peek().is_some() {
                let position = self.index.position_at_byte(self.at);
                return Err(DocumentError::TrailingContent { position });
            }
        }
        Ok(())
    }

    fn document(&mut self) -> Result<(), DocumentError> {
        let mut expect = Expect::Value;
        loop {
            self.skip_blanks();
            let next = match expect {
                Expect::ValueOrEnd if self.peek() == Some(b']') => self.close()?,
                Expect::Value | Expect::ValueOrEnd => self.value()?,
                Expect::KeyOrEnd if self.peek() == Some(b'}') => self.close()?,
                Expect::Key | Expect::KeyOrEnd => self.key()?,
                Expect::SeparatorOrEnd => self.separator()?,
            };
            match (next, self.builder.innermost()) {
                (Expect::SeparatorOrEnd, None) => return Ok(()),
                _ => expect = next,
            }
        }
    }

    fn separator(&mut self) -> Result<Expect, DocumentError> {
        let innermost = self.builder.innermost();
        match (self.peek(), innermost) {
            (Some(b','), Some(Collection::Mapping)) => self.step(Expect::Key),
            (Some(b','), _) => self.step(Expect::Value),
            (Some(b'}'), Some(Collection::Mapping)) | (Some(b']'), Some(Collection::Sequence)) => {
                self.close()
            }
            (_, Some(Collection::Mapping)) => Err(self.syntax("expected `,` or `}`")),
            (_, _) => Err(self.syntax("expected `,` or `]`")),
        }
    }

    fn value(&mut self) -> Result<Expect, DocumentError> {
        let start = self.at;
        match self.peek() {
            Some(b'{') => self.open(Collection::Mapping, Expect::KeyOrEnd),
            Some(b'[') => self.open(Collection::Sequence, Expect::ValueOrEnd),
            Some(b'"') => {
                let text = self.string()?;
                self.scalar(start, Value::String(text))
            }
            Some(b'-' | b'0'..=b'9') => {
                let number = self.number()?;
                self.scalar(start, number)
            }
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => Err(self.syntax("expected a value")),
            None => Err(self.syntax("expected a value, found the end of the text")),
        }
    }

    fn key(&mut self) -> Result<Expect, DocumentError> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a key in double quotes"));
        }
        let start = self.at;
        let text = self.string()?;
        self.scalar(start, Value::String(text))?;
        self.skip_blanks();
        if self.peek() != Some(b':') {
            return Err(self.syntax("expected `:`"));
        }
        self.step(Expect::Value)
    }

    fn open(&mut self, kind: Collection, next: Expect) -> Result<Expect, DocumentError> {
        let span = self.index.span(self.at, self.at.saturating_add(1));
        self.builder.open(kind, span, 0)?;
        self.step(next)
    }

    fn close(&mut self) -> Result<Expect, DocumentError> {
        let end = self.index.span(self.at, self.at.saturating_add(1));
        self.builder.close(Some(end))?;
        self.step(Expect::SeparatorOrEnd)
    }

    fn scalar(&mut self, start: usize, value: Value) -> Result<Expect, DocumentError> {
        let written = || self.index.slice(start, self.at).to_owned();
        let text = if matches!(value, Value::String(_)) { None } else { Some(written()) };
        let span = self.index.span(start, self.at);
        self.builder.scalar(Scalar { value, text, span, merge: false }, 0)?;
        Ok(Expect::SeparatorOrEnd)
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Expect, DocumentError> {
        let start = self.at;
        if !self.index.from(start).starts_with(word) {
            return Err(self.syntax("expected a value"));
        }
        self.at = start.saturating_add(word.len());
        self.scalar(start, value)
    }

    fn number(&mut self) -> Result<Value, DocumentError> {
        let rest = self.index.from(self.at);
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
        let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let whole = unsigned.split(['.', 'e', 'E']).next().unwrap_or_default();
        let strict = whole.starts_with(|c: char| c.is_ascii_digit())
            && (whole == "0" || !whole.starts_with('0'))
            && !unsigned.ends_with('.')
            && !unsigned.contains(".e")
            && !unsigned.contains(".E");
        match scalar::number(text).filter(|_| strict) {
            // JSON's only zero with a sign; an integer would lose it.
            Some(_) if text == "-0" => {
                self.at = self.at.saturating_add(text.len());
                Ok(Value::Float(-0.0))
            }
            Some(value) => {
                self.at = self.at.saturating_add(text.len());
                Ok(value)
            }
            None => Err(self.syntax("expected a number in JSON form and within range")),
        }
    }

    /// Reads a string from its opening quote on.
    fn string(&mut self) -> Result<String, DocumentError> {
        let start = self.at;
        let mut text = String::new();
        self.at = start.saturating_add(1);
        loop {
            let rest = self.index.from(self.at);
            let Some(stop) = rest.find(['"', '\\', '\n', '\r', '\t']) else {
                self.at = start;
                return Err(self.syntax("string without a closing quote"));
            };
            let (run, from_stop) = rest.split_at(stop);
            text.push_str(run);
            self.at = self.at.saturating_add(stop);
            match from_stop.as_bytes() {
                [b'"', ..] => {
                    self.at = self.at.saturating_add(1);
                    return Ok(text);
                }
                [b'\\', ..] => text.push(self.escape()?),
                _ => return Err(self.syntax("line break or tab in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, DocumentError> {
        let rest = self.index.from(self.at).as_bytes();
        let simple = match rest.get(1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.syntax("unknown escape")),
        };
        self.at = self.at.saturating_add(2);
        Ok(simple)
    }

    fn unicode_escape(&mut self) -> Result<char, DocumentError> {
        let rest = self.index.from(self.at);
        let unit = |from: usize| {
            let digits = rest.get(from..from.saturating_add(4))?;
            let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
            u16::from_str_radix(digits, 16).ok().filter(|_| hex)
        };
        let Some(first) = unit(2) else {
            return Err(self.syntax("expected four hexadecimal digits after `\\u`"));
        };
        let second = if rest.get(6..8) == Some("\\u") { unit(8) } else { None };
        let single = char::from_u32(u32::from(first));
        let (character, length) = match (single, second) {
            (Some(character), _) => (Some(character), 6),
            (None, Some(second)) => {
                (char::decode_utf16([first, second]).next().and_then(Result::ok), 12)
            }
            (None, None) => (None, 6),
        };
        let Some(character) = character else {
            return Err(self.syntax("half of a surrogate pair"));
        };
        self.at = self.at.saturating_add(length);
        Ok(character)
    }

    fn skip_blanks(&mut self) {
        let rest = self.index.from(self.at);
        let kept = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.at = self.index.text().len().saturating_sub(kept.len());
    }

    fn peek(&self) -> Option<u8> {
        self.index.text().as_bytes().get(self.at).copied()
    }

    #[expect(clippy::unnecessary_wraps, reason = "ends the arms of matches that can fail")]
    fn step(&mut self, next: Expect) -> Result<Expect, DocumentError> {
        self.at = self.at.saturating_add(1);
        Ok(next)
    }

    fn syntax(&self, detail: &str) -> DocumentError {
        DocumentError::Syntax {
            format: "JSON",
            position: self.index.position_at_byte(self.at),
            detail: detail.to_owned(),
        }
    }
}
