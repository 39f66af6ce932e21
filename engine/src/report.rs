//! The JSON documents that people's scripts read, as views over the engine's own types.
//!
//! Each carries a `schema`; new fields are compatible, a removal or a rename raises the version.
//! Their JSON Schemas are generated from these types and published in `docs/reference/`.

mod decision;
mod inspect;
mod reach;

pub use decision::{
    DecisionDocument, ErrorView, FindingView, PackView, SubjectView, canonical, decision,
};
pub use inspect::{
    AnalysisView, CapabilityDepths, ExecutorView, ExportView, FunctionView, HintsView, ImportView,
    InspectDocument, NestedView, NoteView, PathView, inspect,
};
pub use reach::{
    ComponentView, EntryView, GrantView, NoteView as GrantNoteView, PathView as ReachPathView,
    ProblemView, ReachDocument, ReachSource, SkippedView, WorkloadView, reach,
};

use schemars::JsonSchema;
use serde::Serialize;

use crate::workload::Place;

/// A place in a file.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Location {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1; 0 where there is none.
    pub line: u32,
    /// The column in characters, from 1; 0 where there is none.
    pub column: u32,
}

impl Location {
    /// Returns the location of a place in a file.
    #[must_use]
    pub fn of(file: &str, place: &Place) -> Self {
        Self { file: file.to_owned(), line: place.line(), column: place.column() }
    }
}

/// Returns the JSON Schema of `ambit.inspect/v1`.
#[must_use]
pub fn inspect_schema() -> serde_json::Value {
    schemars::schema_for!(InspectDocument).to_value()
}

/// Returns the JSON Schema of `ambit.reach/v1`.
#[must_use]
pub fn reach_schema() -> serde_json::Value {
    schemars::schema_for!(ReachDocument).to_value()
}

/// Returns the JSON Schema of `ambit.decision/v1`.
#[must_use]
pub fn decision_schema() -> serde_json::Value {
    schemars::schema_for!(DecisionDocument).to_value()
}
