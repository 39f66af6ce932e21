//! Colour and layout of human output. Meaning never rests on colour alone.

/// Whether text is painted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Style {
    colored: bool,
}

impl Style {
    pub(crate) fn new(colored: bool) -> Self {
        Self { colored }
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.colored { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint(text, "2")
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint(text, "1;32")
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint(text, "1;31")
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint(text, "1;33")
    }
}

/// Replaces control characters and those that reorder what is read, so that a name from a file
/// can't steer a terminal.
pub(crate) fn safe(text: &str) -> String {
    text.chars().map(|c| if steers(c) && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// The same in one line, where a line end would begin a line of ours.
pub(crate) fn line(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Lays rows out in columns, each as wide as its widest cell; the last is not padded.
pub(crate) fn table(rows: &[Vec<String>], indent: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if column.saturating_add(1) < row.len() {
                let wanted = widths.get(column).copied().unwrap_or(0).saturating_add(2);
                line.push_str(&" ".repeat(wanted.saturating_sub(cell.chars().count())));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `1 warning`, `2 warnings`.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}
