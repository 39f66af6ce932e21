//! `ambit.inspect/v1`: one binary.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::capability::CapabilitySet;
use crate::component::{CodeCheck, Component, HandleVia};

/// What a binary can do before any configuration.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct InspectDocument {
    /// `ambit.inspect/v1`.
    pub schema: String,
    /// The binary as it was named.
    pub source: String,
    /// The digest of all its bytes.
    pub digest: String,
    /// Its size in bytes.
    pub size: usize,
    /// `component` or `core-module`.
    pub kind: String,
    /// Capability classes by depth; `reachable` is not a key until it is computed.
    pub capabilities: CapabilityDepths,
    /// Top-level imports, in the order of the binary.
    pub imports: Vec<ImportView>,
    /// Top-level exports, in the order of the binary.
    pub exports: Vec<ExportView>,
    /// What is nested inside.
    pub nested: NestedView,
    /// What the analysis rests on.
    pub analysis: AnalysisView,
    /// What the executor would refuse.
    pub executor: Vec<ExecutorView>,
    /// What should be known besides, in words.
    pub notes: Vec<NoteView>,
    /// What the binary says about itself; unverified.
    pub hints: HintsView,
}

/// Capability classes by depth.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct CapabilityDepths {
    /// From every top-level import; sorted.
    pub declared: Vec<String>,
    /// From the functions that some core module inside takes; sorted.
    pub linked: Vec<String>,
    /// From what the exports offer; sorted.
    pub offered: Vec<String>,
}

/// One import.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ImportView {
    /// The name as in the binary.
    pub name: String,
    /// The interface without version, or the name itself.
    pub interface: String,
    /// The version, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The semver track, if there is a version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track: Option<String>,
    /// The interface that a named import implements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implements: Option<String>,
    /// The publisher's hint at a resource; unverified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// The sort of the item.
    pub sort: String,
    /// Whether the catalogue knows it.
    pub known: bool,
    /// The known name that it nearly is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_miss: Option<String>,
    /// Classes at the declared depth; sorted.
    pub classes: Vec<String>,
    /// Whether handles arrive from outside.
    pub delegated: bool,
    /// Its functions, in the order of the binary.
    pub functions: Vec<FunctionView>,
    /// For an imported component, the names that it imports in turn.
    pub asks_for: Vec<String>,
    /// The nested components that take functions of it.
    pub used_by: Vec<PathView>,
}

/// One function of an import.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct FunctionView {
    /// The name as in the binary.
    pub name: String,
    /// The classes that the catalogue gives it; sorted.
    pub classes: Vec<String>,
    /// Whether a handle for it can exist.
    pub live: bool,
    /// Whether some core module inside takes it.
    pub linked: bool,
}

/// Where a nested component stands.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct PathView {
    /// From the root, `/component[1]`.
    pub path: String,
    /// What it calls itself; unverified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One export.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ExportView {
    /// The name as in the binary.
    pub name: String,
    /// The sort of the item.
    pub sort: String,
    /// Its functions.
    pub functions: Vec<String>,
    /// The import whose functions it hands on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes_through: Option<String>,
}

/// What is nested inside.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct NestedView {
    /// Components at any depth, the root not counted.
    pub components: usize,
    /// Core modules at any depth.
    pub modules: usize,
    /// The deepest nesting.
    pub depth: usize,
}

/// What the analysis rests on.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct AnalysisView {
    /// `exact`, `over-approximate` or `not-computed`, of the reachable depth.
    pub precision: String,
    /// `checked` if function bodies were validated, else `unchecked`.
    pub code: String,
    /// Why more is taken to be linked than may be.
    pub reasons: Vec<String>,
}

/// Why the executor would refuse the binary.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ExecutorView {
    /// A stable code.
    pub code: String,
    /// The reason.
    pub reason: String,
}

/// Something to know.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct NoteView {
    /// A stable code.
    pub code: String,
    /// The note.
    pub message: String,
}

/// What the binary says about itself.
#[derive(Clone, Debug, Default, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct HintsView {
    /// Always true: nothing here is verified.
    pub unverified: bool,
    /// One-string metadata of the root.
    pub metadata: BTreeMap<String, String>,
    /// `field name version` of `producers` sections.
    pub producers: Vec<String>,
    /// Crates from a bill of materials, `name version`.
    pub dependencies: Vec<String>,
    /// URLs seen in data.
    pub urls: Vec<String>,
    /// Host names and addresses seen in data.
    pub hosts: Vec<String>,
    /// Absolute paths seen in data.
    pub paths: Vec<String>,
    /// Custom sections, by name, with their size in bytes.
    pub sections: BTreeMap<String, usize>,
    /// Lists that were cut at a limit.
    pub truncated: Vec<String>,
}

/// Builds the document of one binary.
#[must_use]
pub fn inspect(source: &str, component: &Component, set: &CapabilitySet) -> InspectDocument {
    let imports = component.imports.iter().zip(&set.imports);
    InspectDocument {
        schema: "ambit.inspect/v1".to_owned(),
        source: source.to_owned(),
        digest: component.digest.to_string(),
        size: component.size,
        kind: component.kind.as_str().to_owned(),
        capabilities: CapabilityDepths {
            declared: set.declared.iter().cloned().collect(),
            linked: set.linked.iter().cloned().collect(),
            offered: set.offered.iter().cloned().collect(),
        },
        imports: imports
            .map(|(import, capability)| ImportView {
                name: import.name.clone(),
                interface: import.interface.as_ref().map_or_else(
                    || import.name.clone(),
                    crate::interface::InterfaceName::unversioned,
                ),
                version: import
                    .interface
                    .as_ref()
                    .and_then(|name| name.version())
                    .map(ToString::to_string),
                track: import
                    .interface
                    .as_ref()
                    .and_then(crate::interface::InterfaceName::track)
                    .map(|track| track.to_string()),
                implements: import.implements.clone(),
                external_id: import.external_id.clone(),
                sort: import.sort.as_str().to_owned(),
                known: capability.known,
                near_miss: capability.near_miss.clone(),
                classes: capability.declared.iter().cloned().collect(),
                delegated: capability.delegated,
                functions: capability
                    .functions
                    .iter()
                    .map(|function| FunctionView {
                        name: function.name.clone(),
                        classes: function.classes.iter().cloned().collect(),
                        live: function.live,
                        linked: function.linked,
                    })
                    .collect(),
                asks_for: import.asks_for.clone(),
                used_by: import
                    .used_by
                    .iter()
                    .map(|at| PathView { path: at.path.clone(), name: at.name.clone() })
                    .collect(),
            })
            .collect(),
        exports: component
            .exports
            .iter()
            .map(|export| ExportView {
                name: export.name.clone(),
                sort: export.sort.as_str().to_owned(),
                functions: export.functions.clone(),
                passes_through: export.passes_through.clone(),
            })
            .collect(),
        nested: NestedView {
            components: component.linkage.components,
            modules: component.linkage.modules,
            depth: component.linkage.depth,
        },
        analysis: AnalysisView {
            precision: "not-computed".to_owned(),
            code: match component.code {
                CodeCheck::Skip => "unchecked",
                CodeCheck::Validate => "checked",
            }
            .to_owned(),
            reasons: component.linkage.reasons.clone(),
        },
        executor: component
            .executor_notes
            .iter()
            .map(|note| ExecutorView { code: note.code.to_owned(), reason: note.reason.clone() })
            .collect(),
        notes: notes(component, set),
        hints: hints(component),
    }
}

fn note(code: &str, message: String) -> NoteView {
    NoteView { code: code.to_owned(), message }
}

/// Says in words what the lists leave a reader to work out.
fn notes(component: &Component, set: &CapabilitySet) -> Vec<NoteView> {
    let mut notes = Vec::new();
    let files = set.imports.iter().any(|import| import.name.starts_with("wasi:filesystem/"));
    let counted = set.counted.iter().any(|class| class.starts_with("fs."));
    if files && !counted {
        let roots = set.declared.contains("fs.root");
        let open = set
            .imports
            .iter()
            .flat_map(|import| &import.functions)
            .any(|f| f.name == "[method]descriptor.open-at");
        if !open {
            let handles = if roots {
                "it can only get handles to granted folders"
            } else {
                "no handle to a folder can exist"
            };
            notes.push(note(
                "filesystem-inert",
                format!(
                    "it imports `wasi:filesystem` and can't open a file: `descriptor.open-at` is not imported, so {handles}. The usual cause is a C library or preview 1 adapter that links the stream functions of files for printing"
                ),
            ));
        }
    }
    for handle in &component.handles {
        let Some(import) = component.imports.get(handle.import) else { continue };
        if !set.imports.get(handle.import).is_some_and(|import| import.delegated) {
            continue;
        }
        match &handle.via {
            HandleVia::ExportParameter { function } => notes.push(note(
                "handle-delegated",
                format!(
                    "callers of `{function}` hand it a `{}` of `{}`, so it can act on what they hold",
                    handle.resource, import.name
                ),
            )),
            HandleVia::ReExport { export } => notes.push(note(
                "handle-delegated",
                format!(
                    "`{export}` offers `{}` of `{}` again, so callers can hand it what they hold",
                    handle.resource, import.name
                ),
            )),
            HandleVia::ImportResult { .. } => {}
        }
    }
    if component.imports.is_empty() && component.linkage.components > 0 {
        notes.push(note(
            "virtualised",
            "it imports nothing: what its inner components need is served inside".to_owned(),
        ));
    }
    for import in &component.imports {
        if import_is_code(set, &import.name) {
            notes.push(note(
                "code-import",
                format!("`{}` is a dependency, not an interface: code from outside runs inside, and an integrity value in its name is a claim", import.name),
            ));
        }
    }
    for import in set.imports.iter().filter(|import| import.near_miss.is_some()) {
        let near = import.near_miss.as_deref().unwrap_or_default();
        notes.push(note(
            "near-miss",
            format!("`{}` is not in the catalogue; it is nearly `{near}`", import.name),
        ));
    }
    notes
}

fn import_is_code(set: &CapabilitySet, name: &str) -> bool {
    set.imports.iter().any(|i| i.name == name && i.declared.contains("code.import"))
}

fn hints(component: &Component) -> HintsView {
    let hints = &component.hints;
    let words = |parts: [&str; 3]| {
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    };
    HintsView {
        unverified: true,
        metadata: hints.metadata.clone(),
        producers: hints
            .producers
            .iter()
            .map(|p| words([p.field.as_str(), p.name.as_str(), p.version.as_str()]))
            .collect(),
        dependencies: hints
            .dependencies
            .iter()
            .map(|d| words([d.name.as_str(), d.version.as_str(), ""]))
            .collect(),
        urls: hints.urls.iter().map(|hint| hint.text.clone()).collect(),
        hosts: hints.hosts.iter().map(|hint| hint.text.clone()).collect(),
        paths: hints.paths.iter().map(|hint| hint.text.clone()).collect(),
        sections: hints
            .sections
            .iter()
            .map(|section| (section.name.clone(), section.bytes))
            .collect(),
        truncated: hints.truncated.iter().cloned().collect(),
    }
}
