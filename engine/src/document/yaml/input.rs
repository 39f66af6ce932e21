//! The scanner's input, with a bound on how far it reads ahead.
//!
//! Until an outermost `[` or `{` is closed the scanner keeps every token of it, since the whole
//! may be a key. At about a hundred bytes for a `,` that is far more memory than the text.

use std::cell::Cell;

use saphyr_parser::input::SkipTabs;
use saphyr_parser::{Input, StrInput};

/// Text that ends early once `limit` tokens were scanned without an event.
pub(super) struct GuardedInput<'t> {
    inner: StrInput<'t>,
    tokens: &'t Cell<usize>,
    limit: usize,
}

impl<'t> GuardedInput<'t> {
    /// `tokens` counts up; whoever takes an event sets it back to zero.
    pub(super) fn new(text: &'t str, tokens: &'t Cell<usize>, limit: usize) -> Self {
        Self { inner: StrInput::new(text), tokens, limit }
    }
}

impl Input for GuardedInput<'_> {
    fn lookahead(&mut self, count: usize) {
        if self.tokens.get() > self.limit {
            self.inner = StrInput::new("");
        }
        self.inner.lookahead(count);
    }

    fn buflen(&self) -> usize {
        self.inner.buflen()
    }

    fn bufmaxlen(&self) -> usize {
        self.inner.bufmaxlen()
    }

    fn buf_is_empty(&self) -> bool {
        self.inner.buf_is_empty()
    }

    fn raw_read_ch(&mut self) -> char {
        self.inner.raw_read_ch()
    }

    fn raw_read_non_breakz_ch(&mut self) -> Option<char> {
        self.inner.raw_read_non_breakz_ch()
    }

    fn skip(&mut self) {
        self.inner.skip();
    }

    fn skip_n(&mut self, count: usize) {
        self.inner.skip_n(count);
    }

    fn peek(&self) -> char {
        self.inner.peek()
    }

    fn peek_nth(&self, n: usize) -> char {
        self.inner.peek_nth(n)
    }

    fn peek_opt(&self) -> Option<char> {
        self.inner.peek_opt()
    }

    /// The scanner asks for a byte order mark once per token and nowhere else; the test
    /// `wide_flow_collection_is_refused_before_it_fills_memory` fails should that change.
    fn next_char_is(&self, character: char) -> bool {
        if character == '\u{feff}' {
            self.tokens.set(self.tokens.get().saturating_add(1));
        }
        self.inner.next_char_is(character)
    }

    fn skip_ws_to_eol(&mut self, skip_tabs: SkipTabs) -> (usize, Result<SkipTabs, &'static str>) {
        self.inner.skip_ws_to_eol(skip_tabs)
    }

    fn next_is_document_indicator(&self) -> bool {
        self.inner.next_is_document_indicator()
    }

    fn next_is_document_start(&self) -> bool {
        self.inner.next_is_document_start()
    }

    fn next_is_document_end(&self) -> bool {
        self.inner.next_is_document_end()
    }

    fn next_can_be_plain_scalar(&self, in_flow: bool) -> bool {
        self.inner.next_can_be_plain_scalar(in_flow)
    }

    fn next_is_blank_or_break(&self) -> bool {
        self.inner.next_is_blank_or_break()
    }

    fn next_is_blank_or_breakz(&self) -> bool {
        self.inner.next_is_blank_or_breakz()
    }

    fn next_is_blank(&self) -> bool {
        self.inner.next_is_blank()
    }

    fn next_is_break(&self) -> bool {
        self.inner.next_is_break()
    }

    fn next_is_breakz(&self) -> bool {
        self.inner.next_is_breakz()
    }

    fn next_is_z(&self) -> bool {
        self.inner.next_is_z()
    }

    fn skip_while_non_breakz(&mut self) -> usize {
        self.inner.skip_while_non_breakz()
    }
}
