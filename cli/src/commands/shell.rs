//! `ambit completions` and `ambit man`.

use clap::CommandFactory as _;

use crate::args::{Arguments, Completions};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints a shell's completion script.
pub(crate) fn completions(command: &Completions, output: &Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Arguments::command(), "ambit", &mut script);
    output.answer(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Prints the manual page.
pub(crate) fn man(output: &Output) -> Result<Exit, Failure> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut page);
    rendered.map_err(|error| Failure::new("output-failed", error.to_string(), None))?;
    output.answer(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Done)
}
