//! The only place that prints. Standard output is the answer, standard error is the run.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use crate::args::{Color, Format, Global};
use crate::render::snippet;
use crate::render::style::safe;

/// Why a run has no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    /// A stable kebab-case code.
    pub(crate) code: String,
    /// What is wrong, naming the thing.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
    /// The snippet of the file, rendered already.
    pub(crate) snippet: Option<String>,
}

impl From<ambit_setup::Failure> for Failure {
    fn from(failure: ambit_setup::Failure) -> Self {
        let snippet = (!failure.spots.is_empty()).then(|| snippet::spots(&failure.spots));
        Self { code: failure.code, message: failure.message, help: failure.help, snippet }
    }
}

impl Failure {
    /// A failure without a snippet.
    pub(crate) fn new(code: &str, message: impl Into<String>, help: Option<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), help, snippet: None }
    }
}

/// Standard output and standard error, with what the flags say about them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// The form of the answer.
    pub(crate) format: Format,
    color_out: bool,
    color_err: bool,
    quiet: bool,
}

impl Output {
    /// Reads the flags and the terminal.
    pub(crate) fn new(global: &Global) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let wanted = |terminal: bool| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !no_color,
        };
        Self {
            format: global.format,
            color_out: global.format == Format::Human && wanted(std::io::stdout().is_terminal()),
            color_err: wanted(std::io::stderr().is_terminal()),
            quiet: global.quiet,
        }
    }

    /// Whether somebody watches who may be shown progress.
    pub(crate) fn shows_progress(self) -> bool {
        self.format == Format::Human && !self.quiet && std::io::stderr().is_terminal()
    }

    /// Whether the answer is coloured.
    pub(crate) fn colored(self) -> bool {
        self.color_out
    }

    /// Prints the answer. A closed pipe ends it quietly.
    pub(crate) fn answer(self, text: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        match written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::new("output-failed", format!("standard output: {error}"), None))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Prints a JSON document, with a line end.
    pub(crate) fn json<T: serde::Serialize>(self, document: &T) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document)
            .map_err(|error| Failure::new("output-failed", error.to_string(), None))?;
        self.answer(&format!("{text}\n"))
    }

    /// Prints a line about the run.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            self.run(&format!("{}: {text}\n", self.err_paint("note", "\u{1b}[1;32m")));
        }
    }

    /// Prints a warning about the run, with its code and what to do.
    pub(crate) fn warning(self, code: &str, message: &str, help: &str) {
        if !self.quiet {
            let head = self.err_paint(&format!("warning[{code}]"), "\u{1b}[1;33m");
            self.run(&format!("{head}: {}\n  = help: {help}\n", safe(message)));
        }
    }

    /// Prints that something was denied while it ran.
    pub(crate) fn denied(self, code: &str, message: &str, help: &str) {
        let head = self.err_paint(&format!("denied[{code}]"), "\u{1b}[1;31m");
        let help =
            if help.is_empty() { String::new() } else { format!("  = help: {}\n", safe(help)) };
        self.run(&format!("{head}: {message}\n{help}"));
    }

    /// Prints about the run, as it is.
    pub(crate) fn about(self, text: &str) {
        if !self.quiet {
            self.run(text);
        }
    }

    /// Whether what concerns the run is coloured.
    pub(crate) fn colored_run(self) -> bool {
        self.color_err
    }

    /// Prints why there is no answer.
    pub(crate) fn failure(self, failure: &Failure) {
        let mut text = match &failure.snippet {
            Some(snippet) => snippet.clone(),
            None => {
                let head = self.err_paint(&format!("error[{}]", failure.code), "\u{1b}[1;31m");
                format!("{head}: {}\n", safe(&failure.message))
            }
        };
        if failure.snippet.is_none()
            && let Some(help) = &failure.help
        {
            text.push_str(&format!("  = help: {}\n", safe(help)));
        }
        self.run(&text);
    }

    fn err_paint(self, text: &str, code: &str) -> String {
        if self.color_err { format!("{code}{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// What concerns the run goes to standard error; if that is closed there is nobody to tell.
    fn run(self, text: &str) {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// Refuses a format that a command doesn't have.
    pub(crate) fn only(self, formats: &[Format]) -> Result<(), Failure> {
        if formats.contains(&self.format) {
            return Ok(());
        }
        let names: Vec<String> = formats.iter().map(|f| format!("`{}`", f.as_str())).collect();
        Err(Failure::new(
            "usage-format",
            format!("this command has no format `{}`", self.format.as_str()),
            Some(format!("use one of {}", names.join(", "))),
        ))
    }
}
