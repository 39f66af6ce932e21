//! What a registry asks for in `WWW-Authenticate` (RFC 7235, section 4.1).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The longest header that is read, and the most parameters of one challenge.
const MAX_HEADER: usize = 8 << 10;
const MAX_PARAMETERS: usize = 16;
const MAX_CHALLENGES: usize = 8;
const MAX_VALUE: usize = 2 << 10;

/// A way to log in that is understood here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Challenge {
    /// A user name and a password with each request (RFC 7617).
    Basic,
    /// A token from a token server
    /// (<https://distribution.github.io/distribution/spec/auth/token/>).
    Bearer { realm: String, service: String },
}

/// Returns the challenge to answer: a token before a password, since a token can do less.
///
/// A header that breaks the grammar, or a challenge that names a parameter twice, is passed over.
pub(super) fn choose(headers: &HeaderMap) -> Option<Challenge> {
    let mut basic = None;
    for value in headers.get_all(WWW_AUTHENTICATE).iter().take(MAX_CHALLENGES) {
        let Ok(text) = value.to_str() else { continue };
        for raw in parse(text).unwrap_or_default() {
            if raw.scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Challenge::Basic);
            } else if raw.scheme.eq_ignore_ascii_case("bearer")
                && let Some(realm) = raw.parameter("realm")
            {
                let service = raw.parameter("service").unwrap_or_default().to_owned();
                return Some(Challenge::Bearer { realm: realm.to_owned(), service });
            }
        }
    }
    basic
}

#[derive(Debug, Eq, PartialEq)]
struct Raw {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Raw {
    fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (Some((_, value)), None) if !value.is_empty() => Some(value),
            _ => None,
        }
    }
}

/// Returns the challenges of one header, or nothing if it breaks the grammar.
fn parse(text: &str) -> Option<Vec<Raw>> {
    if text.len() > MAX_HEADER {
        return None;
    }
    let mut reader = Reader { rest: text };
    let mut challenges: Vec<Raw> = Vec::new();
    loop {
        reader.skip(|b| matches!(b, b' ' | b'\t' | b','));
        if reader.rest.is_empty() {
            return Some(challenges);
        }
        let word = reader.token()?;
        let blanks = reader.skip(|b| matches!(b, b' ' | b'\t'));
        // `name=` goes on with the last challenge; anything else starts one. A token68 (as
        // `Negotiate` has it) also ends in `=`, but stands right after its scheme.
        if reader.rest.starts_with('=') {
            let last = challenges.last_mut()?;
            reader.skip_one();
            reader.skip(|b| matches!(b, b' ' | b'\t'));
            let value = reader.value()?;
            if last.parameters.len() >= MAX_PARAMETERS || value.len() > MAX_VALUE {
                return None;
            }
            last.parameters.push((word.to_owned(), value));
        } else {
            if challenges.len() >= MAX_CHALLENGES {
                return None;
            }
            challenges.push(Raw { scheme: word.to_owned(), parameters: Vec::new() });
            if blanks > 0 {
                reader.token68();
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip_one(&mut self) {
        self.take(1);
    }

    fn run(&self, of: impl Fn(u8) -> bool) -> usize {
        self.rest.bytes().take_while(|b| of(*b)).count()
    }

    fn skip(&mut self, of: impl Fn(u8) -> bool) -> usize {
        let length = self.run(of);
        self.take(length);
        length
    }

    fn token(&mut self) -> Option<&'a str> {
        let length = self.run(is_token);
        (length > 0).then(|| self.take(length))
    }

    /// Passes over a token68, if one stands here and no parameter.
    fn token68(&mut self) {
        let body = self.run(|b| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b));
        let after = self.rest.get(body..).unwrap_or_default();
        let padding = after.bytes().take_while(|b| *b == b'=').count();
        let end = after.get(padding..).unwrap_or_default().trim_start_matches([' ', '\t']);
        if body > 0 && (end.is_empty() || end.starts_with(',')) {
            self.take(body.saturating_add(padding));
        }
    }

    fn value(&mut self) -> Option<String> {
        if !self.rest.starts_with('"') {
            return self.token().map(str::to_owned);
        }
        self.skip_one();
        let mut value = String::new();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices() {
            match c {
                _ if c.is_control() && c != '\t' => return None,
                _ if escaped => {
                    value.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    self.take(at.saturating_add(1));
                    return Some(value);
                }
                _ => value.push(c),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    fn chosen(lines: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(line).unwrap());
        }
        choose(&headers)
    }

    fn bearer(realm: &str, service: &str) -> Option<Challenge> {
        Some(Challenge::Bearer { realm: realm.to_owned(), service: service.to_owned() })
    }

    #[test]
    fn token_is_preferred_wherever_it_stands() {
        let token = r#"Bearer realm="https://h/t",service="s, x",scope="a:b:c""#;
        assert_eq!(chosen(&[token]), bearer("https://h/t", "s, x"));
        assert_eq!(chosen(&["Basic realm=\"x\"", token]), bearer("https://h/t", "s, x"));
        assert_eq!(chosen(&[&format!("Basic realm=x, {token}")]), bearer("https://h/t", "s, x"));
        assert_eq!(chosen(&[&format!("Negotiate, {token}")]), bearer("https://h/t", "s, x"));
        assert_eq!(chosen(&[&format!("Negotiate YWJj==, {token}")]), bearer("https://h/t", "s, x"));
        assert_eq!(chosen(&["bearer  REALM = \"a\\\"b\""]), bearer("a\"b", ""));
        assert_eq!(chosen(&["basic"]), Some(Challenge::Basic));
    }

    #[test]
    fn hostile_headers_ask_for_nothing() {
        for line in [
            "",
            ",,,",
            "Bearer",
            "Bearer realm=",
            "Bearer realm=\"",
            "Bearer realm=\"a",
            "Bearer realm=\"a\\",
            "Bearer realm=\"a\", realm=\"b\"",
            "realm=\"a\"",
            "=",
            "Digest realm=\"a\"",
            "Bearer realm=\"\"",
        ] {
            assert_eq!(chosen(&[line]), None, "{line}");
        }
        assert_eq!(chosen(&[&format!("Bearer realm=\"{}\"", "a".repeat(9000))]), None);
        assert_eq!(chosen(&[&format!("Bearer realm=a{}", ",x=y".repeat(50))]), None);
    }

    proptest! {
        #[test]
        fn no_header_breaks_the_parser(text in "[ -~\t]{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn quoted_values_come_back(value in "[ -~]{1,40}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("Bearer realm=\"{quoted}\"");
            prop_assert_eq!(chosen(&[line.as_str()]), bearer(&value, ""));
        }
    }
}
