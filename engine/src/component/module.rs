//! Imports and exports of a core module, in the shape of a component's.

use wasmparser::{ExternalKind, ImportSectionReader, TypeRef};

use super::{ComponentError, Export, Function, Import, Sort};
use crate::limits::Limits;

/// Adds a core module's imports, one entry for each module name.
pub(super) fn imports(
    section: ImportSectionReader<'_>,
    imports: &mut Vec<Import>,
    limits: &Limits,
) -> Result<(), ComponentError> {
    let mut functions = 0_usize;
    for import in section.into_imports() {
        let import = import?;
        let position = imports.iter().position(|known| known.name == import.module);
        if position.is_none() {
            if imports.len() >= limits.max_imports {
                return Err(ComponentError::TooManyImports {
                    found: imports.len().saturating_add(1),
                    limit: limits.max_imports,
                });
            }
            imports.push(Import {
                name: import.module.to_owned(),
                implements: None,
                version_suffix: None,
                external_id: None,
                interface: None,
                sort: Sort::Core,
                functions: Vec::new(),
                resources: Vec::new(),
                type_count: 0,
                asks_for: Vec::new(),
                used_by: Vec::new(),
            });
        }
        let at = position.unwrap_or_else(|| imports.len().saturating_sub(1));
        let Some(entry) = imports.get_mut(at) else { continue };
        match import.ty {
            TypeRef::Func(_) | TypeRef::FuncExact(_) => {
                functions = functions.saturating_add(1);
                if functions > limits.max_functions {
                    return Err(ComponentError::TooManyFunctions { limit: limits.max_functions });
                }
                // A core module may import one function twice, under two types.
                entry.functions.push(Function {
                    name: import.name.to_owned(),
                    asynchronous: false,
                    linked: true,
                });
            }
            TypeRef::Table(_) | TypeRef::Memory(_) | TypeRef::Global(_) | TypeRef::Tag(_) => {
                entry.type_count = entry.type_count.saturating_add(1);
            }
        }
    }
    for import in imports {
        let mut seen = std::collections::BTreeSet::new();
        import.functions.retain(|function| seen.insert(function.name.clone()));
    }
    Ok(())
}

/// Adds a core module's exported functions.
pub(super) fn exports(
    section: wasmparser::ExportSectionReader<'_>,
    exports: &mut Vec<Export>,
) -> Result<(), ComponentError> {
    for export in section {
        let export = export?;
        let functions = match export.kind {
            ExternalKind::Func | ExternalKind::FuncExact => vec![export.name.to_owned()],
            ExternalKind::Table
            | ExternalKind::Memory
            | ExternalKind::Global
            | ExternalKind::Tag => Vec::new(),
        };
        exports.push(Export {
            name: export.name.to_owned(),
            interface: None,
            sort: Sort::Core,
            functions,
            passes_through: None,
        });
    }
    Ok(())
}
