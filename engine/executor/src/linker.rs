//! From a link plan to a linker: one interface at a time, and none besides.
//!
//! wasmtime's bundle functions are never used, and unknown imports never become traps, so what the
//! plan lacks has no definition. That an interface is linked says nothing about what it may touch:
//! each view asks the component's grants.

use std::collections::BTreeSet;

use ambit_engine::admitted::{Link, PlannedImport};
use wasmtime::component::Linker;
use wasmtime_wasi::cli::WasiCli;
use wasmtime_wasi::clocks::WasiClocks;
use wasmtime_wasi::p2::bindings as wasi;
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi_io::bindings::wasi::io;

use crate::error::ExecutorError;
use crate::links::Provider;
use crate::state::{HasTable, State};
use crate::{egress, files, links, services};

/// Whether a part of the executor links an interface.
pub(crate) enum Linked {
    /// It did.
    Yes,
    /// The interface belongs to another part.
    NotMine,
}

/// Builds the linker of one component.
///
/// `providers` has the programs of its siblings, by the index that the plan uses.
pub(crate) fn build(
    engine: &wasmtime::Engine,
    component: &ambit_engine::admitted::AdmittedComponent,
    compiled: &wasmtime::component::Component,
    providers: &[(usize, Provider)],
) -> Result<Linker<State>, ExecutorError> {
    let mut linker = Linker::new(engine);
    let mut done = BTreeSet::new();
    for import in component.plan().imports() {
        let unlinkable = |reason: String| ExecutorError::Unlinkable {
            component: component.name().to_owned(),
            import: import.name.clone(),
            link: import.link,
            reason,
        };
        match import.link {
            Link::Types => {}
            // Two versions of one track are one definition.
            Link::Granted | Link::Inert if !done.insert(import.track.as_str()) => {}
            Link::Granted | Link::Inert => match host(&mut linker, import) {
                Ok(Linked::Yes) => {}
                Ok(Linked::NotMine) => {
                    return Err(unlinkable("this version doesn't serve it".to_owned()));
                }
                Err(error) => return Err(unlinkable(format!("{error:#}"))),
            },
            Link::Sibling(index) => {
                let provider = providers.iter().find(|(of, _)| *of == index);
                let Some((_, provider)) = provider else {
                    return Err(unlinkable(
                        "the component that exports it isn't loaded".to_owned(),
                    ));
                };
                links::add(&mut linker, component.name(), import, compiled, provider)?;
            }
        }
    }
    Ok(linker)
}

/// Links one interface of the host's own.
fn host(linker: &mut Linker<State>, import: &PlannedImport) -> wasmtime::Result<Linked> {
    match import.track.as_str() {
        "wasi:io/error@0.2" => {
            io::error::add_to_linker::<State, HasTable>(linker, |state| &mut state.table)?;
        }
        "wasi:io/poll@0.2" => {
            io::poll::add_to_linker::<State, HasTable>(linker, |state| &mut state.table)?;
        }
        "wasi:io/streams@0.2" => {
            io::streams::add_to_linker::<State, HasTable>(linker, |state| &mut state.table)?;
        }
        "wasi:cli/environment@0.2" => {
            wasi::cli::environment::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/exit@0.2" => {
            wasi::cli::exit::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/stdin@0.2" => {
            wasi::cli::stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/stdout@0.2" => {
            wasi::cli::stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/stderr@0.2" => {
            wasi::cli::stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/terminal-input@0.2" => {
            wasi::cli::terminal_input::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/terminal-output@0.2" => {
            wasi::cli::terminal_output::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/terminal-stdin@0.2" => {
            wasi::cli::terminal_stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/terminal-stdout@0.2" => {
            wasi::cli::terminal_stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:cli/terminal-stderr@0.2" => {
            wasi::cli::terminal_stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
        }
        "wasi:clocks/wall-clock@0.2" => {
            wasi::clocks::wall_clock::add_to_linker::<State, WasiClocks>(linker, State::clocks)?;
        }
        "wasi:clocks/monotonic-clock@0.2" => {
            wasi::clocks::monotonic_clock::add_to_linker::<State, WasiClocks>(
                linker,
                State::clocks,
            )?;
        }
        "wasi:random/random@0.2" => {
            wasi::random::random::add_to_linker::<State, WasiRandom>(linker, State::random)?;
        }
        "wasi:random/insecure@0.2" => {
            wasi::random::insecure::add_to_linker::<State, WasiRandom>(linker, State::random)?;
        }
        "wasi:random/insecure-seed@0.2" => {
            wasi::random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, State::random)?;
        }
        _ => {
            for part in [files::link, egress::link, services::link] {
                if matches!(part(linker, import)?, Linked::Yes) {
                    return Ok(Linked::Yes);
                }
            }
            return Ok(Linked::NotMine);
        }
    }
    Ok(Linked::Yes)
}

#[cfg(test)]
mod tests;
