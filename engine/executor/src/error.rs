//! Why something can't be run, or stopped.

use ambit_engine::admitted::Link;
use ambit_engine::digest::Digest;

use crate::limits::Trip;
use crate::record::RecordError;

/// Why a component wasn't run, or didn't end by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutorError {
    /// The bytes aren't a binary component: text, a core module, a precompiled one, or else.
    #[error("expected a binary component, found {found}")]
    NotComponent {
        /// What it looks like.
        found: &'static str,
    },
    /// The bytes aren't those that were decided on.
    #[error("the bytes have digest {found}, and {admitted} was admitted")]
    Digest {
        /// The digest of the bytes.
        found: Box<Digest>,
        /// The digest of the decision.
        admitted: Box<Digest>,
    },
    /// wasmtime refuses the component.
    #[error("`{component}` doesn't compile: {reason}")]
    Compile {
        /// The component.
        component: String,
        /// wasmtime's reason.
        reason: String,
    },
    /// What the component imports differs from what was planned.
    #[error("`{component}` imports `{import}`, which its plan doesn't have")]
    Unplanned {
        /// The component.
        component: String,
        /// The import.
        import: String,
    },
    /// The plan links an interface that the executor can't link so.
    #[error("`{import}` of `{component}` can't be linked as {}: {reason}", link.as_str())]
    Unlinkable {
        /// The component.
        component: String,
        /// The import.
        import: String,
        /// What the plan says.
        link: Link,
        /// Why.
        reason: String,
    },
    /// A bound ended it.
    #[error("`{component}` was stopped: {trip}")]
    Tripped {
        /// The component.
        component: String,
        /// The bound.
        trip: Trip,
    },
    /// The component trapped by itself.
    #[error("`{component}` trapped: {reason}")]
    Trapped {
        /// The component.
        component: String,
        /// wasmtime's reason.
        reason: String,
    },
    /// The component exports nothing of that kind.
    #[error("`{component}` exports no {wanted}")]
    NoExport {
        /// The component.
        component: String,
        /// What was looked for.
        wanted: String,
    },
    /// A folder, value or service that the workload is granted isn't there.
    #[error("{message}")]
    Setup {
        /// A stable kebab-case code.
        code: &'static str,
        /// What is wrong, naming the thing.
        message: String,
        /// What to do; may be empty.
        help: String,
    },
    /// The record can't be written, so nothing may happen.
    #[error("the record can't be written")]
    Record(#[source] RecordError),
    /// wasmtime itself can't start.
    #[error("the WebAssembly engine can't start: {reason}")]
    Engine {
        /// wasmtime's reason.
        reason: String,
    },
}

impl ExecutorError {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotComponent { .. } => "run-not-component",
            Self::Digest { .. } => "run-digest",
            Self::Compile { .. } => "run-compile",
            Self::Unplanned { .. } => "run-unplanned-import",
            Self::Unlinkable { .. } => "run-unlinkable",
            Self::Tripped { trip, .. } => trip.code(),
            Self::Trapped { .. } => "run-trapped",
            Self::NoExport { .. } => "run-no-export",
            Self::Setup { code, .. } => code,
            Self::Record(_) => "record-failed",
            Self::Engine { .. } => "run-engine",
        }
    }

    /// Returns what to do about it, where there is a next step.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let text = match self {
            Self::NotComponent { .. } => {
                "give the `.wasm` component itself; precompiled code is never loaded from outside"
            }
            Self::Digest { .. } => "check again, so that what is run is what was decided on",
            Self::Compile { .. } => "build it for WASI 0.2 without experimental features",
            Self::Unplanned { .. } | Self::Unlinkable { .. } => {
                "this is an error in ambit: please report it with the component"
            }
            Self::Tripped { trip, .. } => trip.help(),
            Self::Trapped { .. } => return None,
            Self::NoExport { .. } => {
                "`ambit inspect` lists what it exports, and `--invoke` calls a function of it"
            }
            Self::Setup { help, .. } if help.is_empty() => return None,
            Self::Setup { help, .. } => return Some(help.clone()),
            Self::Record(_) => "make room for the record, or name another place for it",
            Self::Engine { .. } => "see whether the process may reserve address space",
        };
        Some(text.to_owned())
    }
}
