//! What our executor's parser and linker would refuse, although the binary is valid.
//!
//! Description takes the union of what validators accept, so that everything can be explained;
//! running takes the intersection. The facts are those of wasmtime 48
//! (`docs/decisions/0002-one-parser.md`).

use wasmparser::WasmFeatures;

use super::{Component, Sort};

/// One reason why the executor would refuse the binary.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ExecutorNote {
    /// A stable kebab-case code.
    pub code: &'static str,
    /// The reason in words.
    pub reason: String,
}

/// The features that our executor enables: WASI 0.2 on the stable core, nothing that its advisories
/// table tells to keep off (garbage collection, exceptions, shared memory, async).
pub(super) fn executor_features() -> WasmFeatures {
    WasmFeatures::WASM2
        | WasmFeatures::COMPONENT_MODEL
        | WasmFeatures::EXTENDED_CONST
        | WasmFeatures::MULTI_MEMORY
        | WasmFeatures::MEMORY64
        | WasmFeatures::RELAXED_SIMD
        | WasmFeatures::TAIL_CALL
        | WasmFeatures::CALL_INDIRECT_OVERLONG
        | WasmFeatures::BULK_MEMORY_OPT
}

/// The features under which a binary can be described: all that the validator knows.
pub(super) fn describing_features() -> WasmFeatures {
    WasmFeatures::all()
}

/// Collects what the executor would refuse. `parser` is its validator's complaint, if it had one.
pub(super) fn notes(component: &Component, parser: Option<String>) -> Vec<ExecutorNote> {
    let mut notes = Vec::new();
    if let Some(reason) = parser {
        notes.push(ExecutorNote {
            code: "executor-feature",
            reason: format!("the executor's parser refuses it: {reason}"),
        });
    }
    for import in &component.imports {
        if import.name.contains("-dep=<") {
            notes.push(ExecutorNote {
                code: "executor-dependency-import",
                reason: format!("`{}` names a dependency that nothing fetches", import.name),
            });
        }
        match import.sort {
            Sort::Component => notes.push(ExecutorNote {
                code: "executor-component-import",
                reason: format!("`{}` imports a component at the root", import.name),
            }),
            Sort::Module => notes.push(ExecutorNote {
                code: "executor-module-import",
                reason: format!("`{}` imports a core module", import.name),
            }),
            Sort::Value => notes.push(ExecutorNote {
                code: "executor-value-import",
                reason: format!("`{}` imports a value", import.name),
            }),
            Sort::Func | Sort::Instance | Sort::Type | Sort::Core => {}
        }
        if import
            .interface
            .as_ref()
            .and_then(|i| i.version())
            .is_some_and(|v| v.minor == 3 && v.major == 0)
            && import.interface.as_ref().is_some_and(|i| i.namespace() == "wasi")
        {
            notes.push(ExecutorNote {
                code: "executor-wasi-p3",
                reason: format!("`{}` needs WASI 0.3, which the executor doesn't run", import.name),
            });
        }
    }
    for export in &component.exports {
        if let Some(import) = &export.passes_through {
            notes.push(ExecutorNote {
                code: "executor-reexport",
                reason: format!(
                    "export `{}` hands on the import `{import}` untouched",
                    export.name
                ),
            });
        }
    }
    notes
}
