//! How deeply the brackets of a Rego module are nested.
//!
//! The parser tries `{` as a comprehension, as a set and as an object, each from the start, so that
//! its time doubles with every level. A bound keeps four kilobytes of `{` from taking for ever.

/// The deepest nesting that is parsed. Rego that people write stays below ten.
pub(super) const MAX_NESTING: usize = 16;

/// Checks the nesting of `text`, outside of strings and comments.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut depth = 0_usize;
    let mut line = 1_usize;
    let mut state = State::Code;
    let mut escaped = false;
    for c in text.chars() {
        if c == '\n' {
            line = line.saturating_add(1);
        }
        state = match (state, c) {
            (State::Code, '"') => State::Text,
            (State::Code, '`') => State::Raw,
            (State::Code, '#') => State::Comment,
            (State::Code, '{' | '[' | '(') => {
                depth = depth.saturating_add(1);
                if depth > MAX_NESTING {
                    return Err(format!(
                        "brackets in line {line} are nested more than {MAX_NESTING} deep"
                    ));
                }
                State::Code
            }
            (State::Code, '}' | ']' | ')') => {
                depth = depth.saturating_sub(1);
                State::Code
            }
            // A string ends with its line; the parser refuses what goes on.
            (State::Comment | State::Text, '\n') | (State::Raw, '`') => State::Code,
            (State::Text, '"') if !escaped => State::Code,
            (state, _) => state,
        };
        escaped = state == State::Text && c == '\\' && !escaped;
    }
    Ok(())
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    Code,
    Text,
    Raw,
    Comment,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_of_strings_and_comments() {
        let deep = "{".repeat(MAX_NESTING);
        assert!(check(&deep).is_ok());
        assert!(check(&format!("{deep}[")).is_err());
        assert!(check(&format!("{deep}}}{{")).is_ok());
        for quiet in ["# {{{{\n", "\"{{{{\"", "`{{\n{{`", "\"\\\"{{\"", "\"\\\\\""] {
            assert!(check(&format!("{quiet}{deep}")).is_ok(), "{quiet}");
            assert!(check(&format!("{quiet}{deep}(")).is_err(), "{quiet}");
        }
        assert_eq!(
            check(&format!("\n\n{deep}{{")).unwrap_err(),
            "brackets in line 3 are nested more than 16 deep"
        );
    }
}
