//! The `ambit` command.
//!
//! Reads arguments, files and the environment, asks the engine, prints. It holds no knowledge about
//! components or rules.

mod args;
mod commands;
mod configuration;
mod exit;
mod fetch;
mod key;
mod output;
mod render;
mod source;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Arguments, Command};
use crate::exit::Exit;
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let wanted = !error.use_stderr();
            // A closed pipe behind `--help` is no failure.
            let _ = error.print();
            return if wanted { Exit::Done.into() } else { Exit::NoDecision.into() };
        }
    };
    let output = Output::new(&arguments.global);
    let exit = run(&arguments, &output).unwrap_or_else(|failure| {
        output.failure(&failure);
        Exit::NoDecision
    });
    exit.into()
}

fn run(arguments: &Arguments, output: &Output) -> Result<Exit, output::Failure> {
    let global = &arguments.global;
    match &arguments.command {
        Command::Inspect(command) => commands::inspect::run(command, global, output),
        Command::Reach(command) => commands::reach::run(command, global, output),
        Command::Check(command) => commands::check::run(command, global, output),
        Command::Run(command) => commands::run::run(command, global, output),
        Command::IsolatedWorker => commands::run::worker(),
        Command::Record(command) => commands::record::run(command, output),
        Command::Verify(command) => commands::verify::run(command, global, output),
        Command::Pin(command) => commands::pin::run(command, global, output),
        Command::Pull(command) => commands::artifact::pull(command, global, output),
        Command::Push(command) => commands::artifact::push(command, global, output),
        Command::Sign(command) => commands::sign::sign(command, global, output),
        Command::Attest(command) => commands::sign::attest(command, global, output),
        Command::Keygen(command) => commands::keygen::run(command, output),
        Command::Explain(command) => commands::explain::run(command, output),
        Command::Policy(command) => commands::policy::run(command, global, output),
        Command::Completions(command) => commands::shell::completions(command, output),
        Command::Man => commands::shell::man(output),
    }
}
