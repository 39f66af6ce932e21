//! `identities`: who may sign with a certificate.

use std::collections::BTreeMap;

use ambit_engine::document::{Fields, Node, Pointer, Text};
use regex::{Regex, RegexBuilder};

use super::{Dialect, MAX_EXPRESSIONS, Reader, shown};
use crate::policy::problem::{ProblemCode, WarningCode};
use crate::policy::{Claim, Identity, Matcher};

/// The longest regular expression, in bytes.
const MAX_BYTES: usize = 2_048;

/// The memory that one compiled expression may take, in bytes.
const MAX_COMPILED: usize = 1 << 18;

/// How much of a name an expression has to cover.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::policy) enum Cover {
    /// All of it.
    Full,
    /// Any part, as policy-controller and cosign have it.
    Search,
}

/// Why an expression can't be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(in crate::policy) enum ExpressionError {
    /// It has no text.
    #[error("the expression is empty")]
    Empty,
    /// It is too long.
    #[error("an expression of {0} bytes is over the limit of {MAX_BYTES}")]
    TooLong(usize),
    /// It doesn't compile within the limits.
    #[error("the expression can't be used: {0}")]
    Invalid(String),
}

/// Compiles an expression of RE2's syntax.
pub(in crate::policy) fn matcher(text: &str, cover: Cover) -> Result<Matcher, ExpressionError> {
    if text.is_empty() {
        return Err(ExpressionError::Empty);
    }
    if text.len() > MAX_BYTES {
        return Err(ExpressionError::TooLong(text.len()));
    }
    let compile = |pattern: &str| {
        RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build().map_err(|error| {
            let error = error.to_string();
            let last = error.lines().last().unwrap_or_default();
            ExpressionError::Invalid(shown(last.trim_start_matches("error: ")))
        })
    };
    // By itself first: `a)|(b` would only compile within the group that anchors it.
    let plain: Regex = compile(text)?;
    let regex = match cover {
        Cover::Full => compile(&format!(r"\A(?:{text})\z"))?,
        Cover::Search => plain,
    };
    Ok(Matcher::Pattern { text: text.to_owned(), regex })
}

impl Reader<'_> {
    pub(super) fn identities(
        &mut self,
        keyless: &mut Fields<'_>,
        dialect: Dialect,
    ) -> Vec<Identity> {
        let items = self.list(keyless, "identities");
        let written = keyless.node("identities").and_then(Node::as_sequence);
        if written.is_none_or(<[_]>::is_empty) {
            let (span, pointer) = (keyless.span(), keyless.pointer_to("identities"));
            let message = "`keyless` without identities would accept everybody".to_owned();
            let help = "add `identities` with `issuer` and `subject`";
            self.problem(ProblemCode::Insecure, span, &pointer, message, help);
        }
        items
            .into_iter()
            .filter_map(|(pointer, node)| self.identity(node, pointer, dialect))
            .collect()
    }

    fn identity(&mut self, node: &Node, pointer: Pointer, dialect: Dialect) -> Option<Identity> {
        let mut fields = Fields::new(node, pointer, &mut self.fields)?;
        let cover = match dialect {
            Dialect::Ours => self.cover(&mut fields),
            Dialect::Imported => Cover::Search,
        };
        let issuer = self.name(&mut fields, ["issuer", "issuerRegExp"], cover, dialect);
        let subject = self.name(&mut fields, ["subject", "subjectRegExp"], cover, dialect);
        let claims = match dialect {
            Dialect::Ours => self.claims(&mut fields),
            Dialect::Imported => BTreeMap::new(),
        };
        fields.finish(&mut self.fields);
        Some(Identity { issuer: issuer?, subject: subject?, claims })
    }

    fn cover(&mut self, fields: &mut Fields<'_>) -> Cover {
        let Some(mode) = fields.string("regexMode", &mut self.fields) else { return Cover::Full };
        if fields.entry("issuerRegExp").is_none() && fields.entry("subjectRegExp").is_none() {
            let message = "`regexMode` has no effect without an expression".to_owned();
            self.invalid(mode.span(), mode.pointer(), message, "delete it");
        }
        match mode.as_str() {
            "full" => Cover::Full,
            "search" => Cover::Search,
            other => {
                let message = format!("`{}` is no mode of expressions", shown(other));
                self.invalid(mode.span(), mode.pointer(), message, "write `full` or `search`");
                Cover::Full
            }
        }
    }

    /// Reads one of a name and an expression over it.
    fn name(
        &mut self,
        fields: &mut Fields<'_>,
        keys: [&str; 2],
        cover: Cover,
        dialect: Dialect,
    ) -> Option<Matcher> {
        let key = self.one_of(fields, &keys)?;
        let text = fields.string(key, &mut self.fields)?;
        if key == keys[0] {
            return self.nonempty(&text).then(|| Matcher::Exact(text.as_str().to_owned()));
        }
        self.expressions = self.expressions.saturating_add(1);
        if self.expressions > MAX_EXPRESSIONS {
            let message = format!("more than {MAX_EXPRESSIONS} regular expressions");
            self.problem(
                ProblemCode::Limit,
                text.span(),
                text.pointer(),
                message,
                "split the file",
            );
            return None;
        }
        match matcher(text.as_str(), cover) {
            Ok(matcher) => {
                self.remark(&text, &matcher, cover, dialect);
                Some(matcher)
            }
            Err(error) => {
                let help = "write a regular expression of RE2's syntax that names what you trust";
                self.invalid(text.span(), text.pointer(), error.to_string(), help);
                None
            }
        }
    }

    fn remark(&mut self, text: &Text<'_>, matcher: &Matcher, cover: Cover, dialect: Dialect) {
        // An expression that fits the empty name names nobody in particular. In a search it fits
        // every name.
        if matcher.matches("") {
            let message = format!("`{}` matches every name", shown(text.as_str()));
            let help =
                "write what you trust; anybody can get a certificate for a name of their own";
            self.warn(WarningCode::Any, text.span(), text.pointer(), message, help);
        } else if cover == Cover::Search {
            let message = format!("`{}` may match anywhere within a name", shown(text.as_str()));
            let help = match dialect {
                Dialect::Ours => "write an expression for the whole name, and delete `regexMode`",
                Dialect::Imported => "put `^` in front and `$` behind, and escape the dots",
            };
            let whole = text.as_str();
            if !(whole.starts_with('^') && whole.ends_with('$') && !whole.contains('|')) {
                self.warn(WarningCode::Search, text.span(), text.pointer(), message, help);
            }
        }
    }

    fn claims(&mut self, fields: &mut Fields<'_>) -> BTreeMap<Claim, String> {
        let mut claims = BTreeMap::new();
        let Some(mut inner) = fields.mapping("claims", &mut self.fields) else { return claims };
        for claim in Claim::ALL {
            let value = inner.string(claim.key(), &mut self.fields);
            if let Some(value) = value.filter(|value| self.nonempty(value)) {
                claims.insert(claim, value.as_str().to_owned());
            }
        }
        inner.finish(&mut self.fields);
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_cover_the_whole_name_or_search() {
        let text = "https://github.com/acme/app";
        let full = matcher(text, Cover::Full).unwrap();
        let search = matcher(text, Cover::Search).unwrap();
        assert!(full.matches(text) && search.matches(text));
        for evil in [
            "https://evil.example/?u=https://github.com/acme/app",
            "https://github.com/acme/app-evil/x",
            "https://github.com/acme/app\nx",
        ] {
            assert!(!full.matches(evil), "{evil}");
            assert!(search.matches(evil), "{evil}");
        }
        let either = matcher("a|b", Cover::Full).unwrap();
        assert!(either.matches("a") && either.matches("b") && !either.matches("ab"));
        let lines = matcher("(?m)^a$", Cover::Full).unwrap();
        assert!(!lines.matches("x\na"));
    }

    #[test]
    fn expressions_that_break_out_of_the_anchors_are_refused() {
        for text in ["", "a)|(b", "(", "a{1000}{1000}", r"\Qa\E", "(?=a)", "(?x)a # "] {
            assert!(matcher(text, Cover::Full).is_err(), "`{text}` was accepted");
        }
        assert!(matcher(&"a".repeat(MAX_BYTES + 1), Cover::Full).is_err());
    }
}
