//! YAML, from the events of `saphyr-parser`.
//!
//! Events are pulled one at a time, so that a limit stops the scanner; the parser's own recursive
//! `load` is not used. Its marks are refined to exact spans by looking at the text.

mod input;
mod locate;

use std::cell::Cell;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span as Marks, Tag};

use self::input::GuardedInput;
use self::locate::Locator;
use super::build::{Budget, Builder, Collection, Scalar};
use super::error::shortened;
use super::index::TextIndex;
use super::{Document, DocumentError, Span, Value, scalar};

/// Tokens that the scanner may hold back beyond one per permitted value.
const LOOKAHEAD_SLACK: usize = 1024;

/// Returns the documents of a YAML text.
pub(super) fn parse(index: &TextIndex<'_>, budget: Budget) -> Result<Vec<Document>, DocumentError> {
    let max_tokens = budget.limits.max_nodes.saturating_add(LOOKAHEAD_SLACK);
    let tokens = Cell::new(0);
    let input = GuardedInput::new(index.text(), &tokens, max_tokens);
    let mut loader = Loader {
        index,
        locator: Locator::new(index),
        builder: Builder::new(budget),
        flow: Vec::new(),
        empty: true,
    };
    for event in Parser::new(input) {
        if tokens.get() > max_tokens {
            let position = index.position_at_byte(loader.locator.next_content());
            return Err(DocumentError::FlowTooLarge { position, limit: max_tokens });
        }
        tokens.set(0);
        match event {
            Ok((event, marks)) => loader.event(event, marks)?,
            Err(error) => return Err(loader.syntax(&error)),
        }
    }
    Ok(loader.builder.finish())
}

struct Loader<'t> {
    index: &'t TextIndex<'t>,
    locator: Locator<'t>,
    builder: Builder,
    /// Whether each open collection has brackets.
    flow: Vec<bool>,
    /// Whether the document has no content so far.
    empty: bool,
}

impl Loader<'_> {
    fn event(&mut self, event: Event<'_>, marks: Marks) -> Result<(), DocumentError> {
        let start = self.index.byte_of_char(marks.start.index());
        let end = self.index.byte_of_char(marks.end.index());
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd => Ok(()),
            Event::DocumentStart(explicit) => {
                self.empty = true;
                if explicit {
                    self.check_directives(start)?;
                    self.locator.advance(end);
                }
                Ok(())
            }
            Event::DocumentEnd => {
                self.flow.clear();
                if self.index.from(start).starts_with("...") {
                    self.locator.advance(end);
                }
                self.builder.end_document(self.empty)
            }
            Event::Alias(anchor) => {
                self.empty = false;
                self.locator.advance(end);
                self.builder.alias(anchor, self.index.span(start, end))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref();
                let bare = style == ScalarStyle::Plain && text.is_empty();
                self.empty = self.empty && bare && anchor == 0 && tag.is_none();
                let (start, end) = self.locator.scalar(style, start, end, bare);
                let span = self.index.span(start, end);
                let scalar = self.typed(&text, style, tag, span)?;
                self.builder.scalar(scalar, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(Collection::Sequence, start, anchor, tag.as_deref())
            }
            Event::MappingStart(anchor, tag) => {
                self.open(Collection::Mapping, start, anchor, tag.as_deref())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let bracket = self.flow.pop().unwrap_or_default();
                let closing = start.saturating_add(1);
                if bracket {
                    self.locator.advance(closing);
                }
                self.builder.close(bracket.then(|| self.index.span(start, closing)))
            }
        }
    }

    fn open(
        &mut self,
        collection: Collection,
        start: usize,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), DocumentError> {
        self.empty = false;
        let (start, bracket) = self.locator.collection(collection, self.builder.innermost(), start);
        let span = self.index.span(start, start.saturating_add(usize::from(bracket)));
        let expected = match collection {
            Collection::Sequence => "seq",
            Collection::Mapping => "map",
        };
        match tag.map(|tag| core_tag(tag, span)).transpose()? {
            Some(suffix) if suffix != expected => return Err(mismatch(suffix, span)),
            Some(_) | None => {}
        }
        self.builder.open(collection, span, anchor)?;
        self.flow.push(bracket);
        Ok(())
    }

    fn typed(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<Scalar, DocumentError> {
        let plain = style == ScalarStyle::Plain;
        let limit = self.builder.limits().max_scalar_bytes;
        if text.len() > limit {
            let (position, found) = (span.start(), text.len());
            return Err(DocumentError::ScalarTooLarge { position, found, limit });
        }
        if plain
            && self.flow.last() != Some(&true)
            && let Some(at) = self.locator.tab_in_continuation()
        {
            return Err(DocumentError::TabIndentation {
                position: self.index.position_at_byte(at),
            });
        }
        let value = match tag.map(|tag| core_tag(tag, span)).transpose()? {
            None if plain => scalar::resolve_plain(text),
            None | Some("str") => Value::String(text.to_owned()),
            Some(suffix) => tagged(suffix, text).ok_or_else(|| mismatch(suffix, span))?,
        };
        let written = !matches!(value, Value::String(_)) && !text.is_empty();
        let merge = plain && tag.is_none() && text == "<<";
        Ok(Scalar { value, text: written.then(|| text.to_owned()), span, merge })
    }

    /// Looks at the lines since the last content, up to the `---` at `marker`.
    fn check_directives(&self, marker: usize) -> Result<(), DocumentError> {
        for (at, line) in self.locator.lines_until(marker) {
            let mut words = line.split_ascii_whitespace();
            let allowed = match (words.next(), words.next(), words.next()) {
                (Some("%YAML"), Some("1.1" | "1.2"), rest) => {
                    rest.is_none_or(|comment| comment.starts_with('#'))
                }
                _ => !line.starts_with('%'),
            };
            if !allowed {
                let position = self.index.position_at_byte(at);
                return Err(DocumentError::Directive { position, directive: shortened(line) });
            }
        }
        Ok(())
    }

    fn syntax(&self, error: &ScanError) -> DocumentError {
        let at = self.index.byte_of_char(error.marker().index());
        let position = self.index.position_at_byte(at);
        let tab = if error.info().contains("tab") {
            self.locator.tab_around(at, self.index.text().len())
        } else {
            self.locator.tab_before(at)
        };
        if let Some(tab) = tab {
            return DocumentError::TabIndentation { position: self.index.position_at_byte(tab) };
        }
        match error.info() {
            "recursion limit exceeded" => {
                DocumentError::TooDeep { position, limit: self.builder.limits().max_depth }
            }
            "while parsing node, found unknown anchor" => DocumentError::UnknownAlias { position },
            "the handle wasn't declared" => {
                DocumentError::UnknownTag { position, tag: shortened(word(self.index.from(at))) }
            }
            info => DocumentError::Syntax { format: "YAML", position, detail: info.to_owned() },
        }
    }
}

fn word(text: &str) -> &str {
    text.split_ascii_whitespace().next().unwrap_or_default()
}

/// Returns the name of a tag of the core schema.
fn core_tag(tag: &Tag, span: Span) -> Result<&'static str, DocumentError> {
    let full = format!("{}{}", tag.handle, tag.suffix);
    match full.strip_prefix("tag:yaml.org,2002:") {
        Some("str") => Ok("str"),
        Some("int") => Ok("int"),
        Some("bool") => Ok("bool"),
        Some("null") => Ok("null"),
        Some("float") => Ok("float"),
        Some("map") => Ok("map"),
        Some("seq") => Ok("seq"),
        Some(_) | None => {
            Err(DocumentError::UnknownTag { position: span.start(), tag: shortened(&full) })
        }
    }
}

fn mismatch(suffix: &'static str, span: Span) -> DocumentError {
    let tag = match suffix {
        "str" => "!!str",
        "int" => "!!int",
        "bool" => "!!bool",
        "null" => "!!null",
        "float" => "!!float",
        "map" => "!!map",
        _ => "!!seq",
    };
    DocumentError::TagMismatch { position: span.start(), tag }
}

fn tagged(suffix: &str, text: &str) -> Option<Value> {
    match suffix {
        "int" => scalar::number(text).filter(|value| matches!(value, Value::Integer(_))),
        "float" => match scalar::number(text) {
            Some(Value::Integer(_)) => text.parse().ok().map(Value::Float),
            other => other,
        },
        "bool" => scalar::core_bool(text).or_else(|| scalar::legacy_bool(text)).map(Value::Bool),
        "null" => scalar::is_null(text).then_some(Value::Null),
        _ => None,
    }
}
