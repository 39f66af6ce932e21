//! Exact spans, found in the text near the parser's marks.
//!
//! A mark may include a tag or anchor in front, or white space and a comment behind; a block
//! scalar's mark starts at its content.

use saphyr_parser::ScalarStyle;

use crate::document::build::Collection;
use crate::document::index::TextIndex;

/// Follows the events through the text.
pub(super) struct Locator<'t> {
    index: &'t TextIndex<'t>,
    /// End of the last content, in bytes.
    last: usize,
    /// Start of the last scalar, in bytes.
    scalar_start: usize,
}

impl<'t> Locator<'t> {
    pub(super) const fn new(index: &'t TextIndex<'t>) -> Self {
        Self { index, last: 0, scalar_start: 0 }
    }

    /// Remembers that content ends at `end`; it never moves back.
    pub(super) fn advance(&mut self, end: usize) {
        self.last = self.last.max(end);
    }

    /// Returns the span of a scalar with these marks; `bare` says that nothing is written.
    pub(super) fn scalar(
        &mut self,
        style: ScalarStyle,
        start: usize,
        end: usize,
        bare: bool,
    ) -> (usize, usize) {
        let (start, end) = match style {
            // The mark of an absent value is the next token, but for a `:` that it follows.
            ScalarStyle::Plain if bare => {
                let dash = self.find(&['-'], start);
                let at = if self.index.from(start).starts_with(':') {
                    start.saturating_add(1)
                } else if dash < start && self.index.from(dash).starts_with('-') {
                    dash.saturating_add(1)
                } else {
                    self.last
                };
                (at, at)
            }
            ScalarStyle::Plain => (self.skip_properties(start), end),
            ScalarStyle::SingleQuoted => {
                let start = self.skip_properties(start);
                (start, self.after_quote(start, '\'', end))
            }
            ScalarStyle::DoubleQuoted => {
                let start = self.skip_properties(start);
                (start, self.after_quote(start, '"', end))
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let written = self.index.slice(self.last, end).trim_end().len();
                (self.find(&['|', '>'], start), self.last.saturating_add(written))
            }
        };
        self.scalar_start = start;
        self.advance(end.max(start));
        (start, end.max(start))
    }

    /// Returns the start of a collection with this mark, and whether it has brackets.
    pub(super) fn collection(
        &mut self,
        collection: Collection,
        parent: Option<Collection>,
        mark: usize,
    ) -> (usize, bool) {
        let start = self.skip_properties(mark);
        let bracket = self.index.from(start).starts_with(match collection {
            Collection::Sequence => '[',
            Collection::Mapping => '{',
        });
        if bracket {
            self.advance(start.saturating_add(1));
            return (start, true);
        }
        // A list at its key's own indentation is marked behind its first dash.
        let start = match (collection, parent) {
            (Collection::Sequence, Some(Collection::Mapping)) => self.find(&['-'], start),
            (Collection::Sequence | Collection::Mapping, _) => start,
        };
        (start, false)
    }

    /// Returns where the next thing that is neither white space nor a comment stands.
    pub(super) fn next_content(&self) -> usize {
        let mut rest = self.index.from(self.last).trim_start();
        while rest.starts_with('#') {
            rest = rest.get(comment_length(rest)..).unwrap_or_default().trim_start();
        }
        self.index.text().len().saturating_sub(rest.len())
    }

    /// Returns the lines from the last content up to byte `end`, with their offsets.
    pub(super) fn lines_until(&self, end: usize) -> impl Iterator<Item = (usize, &'t str)> {
        let mut at = self.last;
        self.index.slice(self.last, end).split_inclusive(['\n', '\r']).map(move |line| {
            let start = at;
            at = at.saturating_add(line.len());
            (start, line.trim_end())
        })
    }

    /// Returns the first tab that indents a later line of the last scalar.
    pub(super) fn tab_in_continuation(&self) -> Option<usize> {
        self.tab_in(self.scalar_start, self.last)
    }

    /// Returns the first tab that indents the line of byte `at` or one since the last content.
    pub(super) fn tab_before(&self, at: usize) -> Option<usize> {
        let rest = self.index.from(at);
        let line_end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        self.tab_around(self.last.min(at), at.saturating_add(line_end))
    }

    /// Returns the first tab that indents a line from that of `start` to byte `end`.
    pub(super) fn tab_around(&self, start: usize, end: usize) -> Option<usize> {
        let before = self.index.slice(0, start);
        let line_start = before.rfind(['\n', '\r']).map_or(0, |at| at.saturating_add(1));
        let first = self.index.from(line_start).trim_start_matches(' ');
        if first.starts_with('\t') && !blank_line(first) {
            return Some(self.index.text().len().saturating_sub(first.len()));
        }
        self.tab_in(line_start, end)
    }

    fn tab_in(&self, start: usize, end: usize) -> Option<usize> {
        let text = self.index.slice(start, end);
        text.match_indices(['\n', '\r']).find_map(|(at, _)| {
            let line = text.get(at.saturating_add(1)..)?;
            let indented = line.trim_start_matches(' ');
            let spaces = line.len().saturating_sub(indented.len());
            let tab = start.saturating_add(at).saturating_add(1).saturating_add(spaces);
            (indented.starts_with('\t') && !blank_line(indented)).then_some(tab)
        })
    }

    /// Skips tags, anchors, white space and comments.
    fn skip_properties(&self, start: usize) -> usize {
        let mut at = start;
        loop {
            let rest = self.index.from(at);
            let length = match rest.chars().next() {
                Some('!') if rest.starts_with("!<") => {
                    rest.find('>').map_or(0, |end| end.saturating_add(1))
                }
                Some('&' | '!') => property_length(rest),
                Some(' ' | '\t' | '\n' | '\r') if at > start => 1,
                Some('#') if at > start => comment_length(rest),
                _ => 0,
            };
            if length == 0 {
                return at;
            }
            at = at.saturating_add(length);
        }
    }

    /// Returns the first of `indicators` after the last content, past comments and properties.
    fn find(&self, indicators: &[char], fallback: usize) -> usize {
        let mut at = self.last;
        while at <= fallback {
            let rest = self.index.from(at);
            let length = match rest.chars().next() {
                Some(first) if indicators.contains(&first) => return at,
                Some('#') => comment_length(rest),
                Some('&' | '!') => property_length(rest),
                Some(first) => first.len_utf8(),
                None => break,
            };
            at = at.saturating_add(length);
        }
        fallback
    }

    fn after_quote(&self, start: usize, quote: char, fallback: usize) -> usize {
        let mut characters = self.index.from(start).char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if character == '\\' && quote == '"' {
                characters.next();
            } else if character == quote {
                let doubled = quote == '\'' && characters.peek().is_some_and(|next| next.1 == '\'');
                if !doubled {
                    return start.saturating_add(at).saturating_add(1);
                }
                characters.next();
            }
        }
        fallback
    }
}

fn blank_line(line: &str) -> bool {
    line.trim_start_matches([' ', '\t']).starts_with(['\n', '\r', '#'])
}

fn comment_length(rest: &str) -> usize {
    rest.find(['\n', '\r']).unwrap_or(rest.len())
}

fn property_length(rest: &str) -> usize {
    rest.find([' ', '\t', '\n', '\r', ',', '[', ']', '{', '}']).unwrap_or(rest.len())
}
