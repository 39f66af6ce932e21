//! A finding with the line that it is about.

use ambit_engine::document::{Position, Span};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::style::safe;

/// How a message is headed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Head {
    Deny,
    Warn,
    Audit,
    Error,
}

impl Head {
    fn level(self) -> Level<'static> {
        match self {
            Self::Deny => Level::ERROR.with_name("deny"),
            Self::Warn => Level::WARNING.with_name("warn"),
            Self::Audit => Level::INFO.with_name("audit"),
            Self::Error => Level::ERROR.with_name("error"),
        }
    }
}

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) head: Head,
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    pub(crate) rule: Option<&'a str>,
    pub(crate) help: &'a str,
    /// The file, its text and the stretch that is meant.
    pub(crate) source: Option<(&'a str, &'a str, Span)>,
    /// The file without a text, as a binary.
    pub(crate) file: &'a str,
}

/// Renders a message; the file's line with a caret where there is one.
pub(crate) fn render(message: &Message<'_>, colored: bool) -> String {
    let title = safe(message.message);
    let heading = message.head.level().primary_title(title).id(message.code);
    let mut group = match &message.source {
        Some((file, text, span)) => {
            let (start, end) = first_line(text, *span);
            let snippet = Snippet::source(*text)
                .path(*file)
                .annotation(AnnotationKind::Primary.span(start..end));
            Group::with_title(heading).element(snippet)
        }
        None => Group::with_title(heading)
            .element(annotate_snippets::Origin::path(message.file.to_owned())),
    };
    if let Some(rule) = message.rule {
        group = group.element(Level::NOTE.with_name("rule").message(rule.to_owned()));
    }
    if !message.help.is_empty() {
        group = group.element(Level::HELP.message(safe(message.help)));
    }
    let renderer = if colored { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.decor_style(DecorStyle::Ascii).render(&[group]);
    text.push('\n');
    text
}

/// Renders every mistake of a file with its line.
pub(crate) fn spots(spots: &[ambit_setup::Spot]) -> String {
    let shown: Vec<String> = spots
        .iter()
        .map(|spot| {
            render(
                &Message {
                    head: Head::Error,
                    code: &spot.code,
                    message: &spot.message,
                    rule: None,
                    help: &spot.help,
                    source: Some((&spot.file, &spot.text, spot.span)),
                    file: &spot.file,
                },
                false,
            )
        })
        .collect();
    shown.join("\n")
}

/// Cuts a stretch of text at the end of its first line.
fn first_line(text: &str, span: Span) -> (usize, usize) {
    let start = span.start_byte().min(text.len());
    let end = span.end_byte().clamp(start, text.len());
    let cut = text.get(start..end).map_or(end, |stretch| {
        let line = stretch.split('\n').next().unwrap_or(stretch).trim_end();
        start.saturating_add(line.len())
    });
    (start, cut)
}

/// Renders a failure at one position of a text.
pub(crate) fn failure(
    code: &str,
    message: &str,
    (file, text, position): (&str, &str, Position),
    help: Option<String>,
) -> String {
    let line = usize::try_from(position.line()).unwrap_or(usize::MAX);
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let column = usize::try_from(position.column()).unwrap_or(usize::MAX).saturating_sub(1);
    let offset: usize =
        text.get(before..).map_or(0, |rest| rest.chars().take(column).map(char::len_utf8).sum());
    let start = before.saturating_add(offset).min(text.len());
    let end = text
        .get(start..)
        .and_then(|rest| rest.chars().next())
        .filter(|c| *c != '\n')
        .map_or(start, |c| start.saturating_add(c.len_utf8()));
    let heading = Head::Error.level().primary_title(safe(message)).id(code.to_owned());
    // A hostile file can have lines without end; the renderer gets a window of the text.
    let window_start = floor(text, start.saturating_sub(120).max(before));
    let window_end = text
        .get(start..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |found| start.saturating_add(found));
    let window_end = floor(text, window_end.min(start.saturating_add(120)));
    let Some(window) = text.get(window_start..window_end) else {
        return format!("error[{code}]: {}\n", safe(message));
    };
    let clean: String = window.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let same_length = clean.len() == window.len();
    let (a, b) = if same_length {
        (start.saturating_sub(window_start), end.saturating_sub(window_start))
    } else {
        (0, 0)
    };
    let snippet = Snippet::source(clean)
        .line_start(line)
        .path(file.to_owned())
        .annotation(AnnotationKind::Primary.span(a..b));
    let mut group = Group::with_title(heading).element(snippet);
    if let Some(help) = help {
        group = group.element(Level::HELP.message(safe(&help)));
    }
    let mut text = Renderer::plain().decor_style(DecorStyle::Ascii).render(&[group]);
    text.push('\n');
    text
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at = at.saturating_sub(1);
    }
    at
}
