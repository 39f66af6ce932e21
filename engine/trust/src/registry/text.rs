//! Foreign text in messages.

/// The most characters of an answer that a message repeats.
const MAX_SHOWN: usize = 200;

/// Returns `text` in one line, without control characters, at most 200 characters of it.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::new();
    let mut count = 0_usize;
    for word in text.split_whitespace() {
        if !shown.is_empty() {
            shown.push(' ');
            count = count.saturating_add(1);
        }
        for c in word.chars().filter(|c| !hidden(*c)) {
            if count >= MAX_SHOWN {
                return shown;
            }
            shown.push(c);
            count = count.saturating_add(1);
        }
    }
    shown
}

/// Control characters, and those that reorder or hide the text around them.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_is_short_and_plain() {
        assert_eq!(printable("a\r\n\u{1b}[31mb\u{202e}  c\0"), "a [31mb c");
        assert_eq!(printable(&"x".repeat(1000)).len(), 200);
        assert!(printable(&"x ".repeat(1000)).chars().count() <= 201);
    }
}
