//! Answers that go wrong on request.

use std::time::Duration;

/// A rule for answers that go wrong. The first that fits counts.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The method, or `*`.
    pub method: &'static str,
    /// The path without its query; `*` stands for any characters.
    pub path: String,
    /// Which of the requests that fit.
    pub nth: Nth,
    /// What happens.
    pub action: Action,
    pub(super) seen: usize,
}

/// Which of the requests that fit, counted from 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Nth {
    /// Each.
    Each,
    /// Only this one.
    Only(usize),
    /// The first so many.
    First(usize),
    /// This one and all that follow.
    From(usize),
}

/// What happens instead of an answer, or to it.
#[derive(Clone, Debug)]
pub enum Action {
    /// Another answer.
    Answer {
        /// The status.
        status: u16,
        /// Headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// The usual answer with these headers in place of its own; an empty value takes one away.
    Headers(Vec<(String, String)>),
    /// The usual answer later.
    Late(Duration),
    /// The usual answer once the test releases it.
    Hold,
    /// A body without end, with the type of a manifest.
    Endless,
    /// A body without end, a byte now and then.
    Drip,
    /// A body that breaks off after some bytes.
    Cut,
    /// A body of which so many bytes are announced, and few come.
    Announce(u64),
}

impl Fault {
    /// A fault for each request that fits.
    #[must_use]
    pub fn each(method: &'static str, path: &str, action: Action) -> Self {
        Self::nth(method, path, Nth::Each, action)
    }

    /// A fault for some of the requests that fit.
    #[must_use]
    pub fn nth(method: &'static str, path: &str, nth: Nth, action: Action) -> Self {
        Self { method, path: path.to_owned(), nth, action, seen: 0 }
    }

    pub(super) fn hits(&mut self, method: &str, path: &str) -> bool {
        if (self.method != "*" && self.method != method) || !glob(&self.path, path) {
            return false;
        }
        self.seen += 1;
        match self.nth {
            Nth::Each => true,
            Nth::Only(nth) => self.seen == nth,
            Nth::First(count) => self.seen <= count,
            Nth::From(nth) => self.seen >= nth,
        }
    }
}

impl Action {
    /// An answer of this status without more.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Answer { status, headers: Vec::new(), body: Vec::new() }
    }

    /// An answer of this status with one header.
    #[must_use]
    pub fn status_with(status: u16, name: &str, value: &str) -> Self {
        let headers = vec![(name.to_owned(), value.to_owned())];
        Self::Answer { status, headers, body: Vec::new() }
    }

    /// An answer with this body.
    #[must_use]
    pub fn body(media_type: &str, body: &[u8]) -> Self {
        let headers = vec![("content-type".to_owned(), media_type.to_owned())];
        Self::Answer { status: 200, headers, body: body.to_vec() }
    }

    /// A redirect.
    #[must_use]
    pub fn redirect(to: &str) -> Self {
        Self::status_with(307, "location", to)
    }

    /// The usual answer with one header in place of its own.
    #[must_use]
    pub fn header(name: &str, value: &str) -> Self {
        Self::Headers(vec![(name.to_owned(), value.to_owned())])
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    text.strip_prefix(start).is_some_and(|left| {
        (0..=left.len()).filter(|at| left.is_char_boundary(*at)).any(|at| glob(rest, &left[at..]))
    })
}
