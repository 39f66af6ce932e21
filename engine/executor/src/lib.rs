//! Runs components under wasmtime with exactly what a decision admitted.
//!
//! Everything starts from an [`Admitted`](ambit_engine::admitted::Admitted): only an allowing
//! decision makes one. [`Program::load`] hashes the bytes against it, compiles them, and builds a
//! linker from the component's link plan, interface by interface. What the plan lacks has no
//! definition, so it can't be linked, whatever the component asks for.
//!
//! Each instance is a store of its own with its own memory, tables and handles, bounded by
//! [`Limits`], and dropped after one use: a trap or a time-out leaves nothing to come back to.
//! Effects pass a choke point that decides by the grants, writes the intent into the
//! [`Recorder`](record::Recorder) first and the outcome after.
//!
//! Left out on purpose: decisions (that is `ambit-engine`), where bytes come from
//! (`ambit-trust`), and printing.

pub mod aot;
mod cpu;
pub mod egress;
mod engine;
mod error;
pub mod files;
pub mod ingress;
mod instance;
pub mod invoke;
pub mod isolate;
mod limits;
mod linker;
mod links;
mod meter;
mod program;
pub mod record;
mod scope;
pub mod serve;
pub mod services;
mod state;
pub mod stdio;
pub mod telemetry;
pub mod workload;

pub use engine::{Allocation, Host, HostOptions, MINIMUM_WASMTIME, TICK};
pub use error::ExecutorError;
pub use instance::{CommandOutcome, run_command};
pub use limits::{LimitError, Limits, Trip, TripCell};
pub use program::{Kind, Program, verify};
pub use scope::{PrivateNetwork, Scope, Setup};
pub use state::State;
