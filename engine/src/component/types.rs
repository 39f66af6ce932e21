//! From the validator's types to imports, exports and handles.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentDefinedType, ComponentEntityType, ComponentFuncTypeId,
    ComponentInstanceTypeId, ComponentItem, ComponentValType, ResourceId,
};
use wasmparser::types::TypesRef;
use wasmparser::{ComponentExport, ComponentExternalKind, ComponentImport};

use super::{ComponentError, Export, Function, HandleSource, HandleVia, Import, Sort};
use crate::interface::InterfaceName;
use crate::limits::Limits;

/// The longest name of an import, an export or something in one; for what lies in an instance inside
/// an instance, the names joined. Classes and reports repeat an import's name for each function.
const MAX_NAME_BYTES: usize = 1_024;

fn bounded(name: &str) -> Result<&str, ComponentError> {
    if name.len() > MAX_NAME_BYTES {
        return Err(ComponentError::NameTooLong { found: name.len(), limit: MAX_NAME_BYTES });
    }
    Ok(name)
}

/// Where resources come from: the import that defines each, and its name there.
#[derive(Debug, Default)]
pub(super) struct Resources(HashMap<ResourceId, (usize, String)>);

/// The function types behind imports and exports, kept for the handle rule.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    imports: Vec<(usize, String, ComponentFuncTypeId)>,
    exports: Vec<(String, ComponentFuncTypeId)>,
    /// Resources whose types exports offer, with the export's name.
    offered: Vec<(String, ResourceId)>,
}

/// What one item holds, instances inside instances flattened.
#[derive(Default)]
struct Contents {
    functions: Vec<(String, ComponentFuncTypeId, bool)>,
    resources: Vec<(String, ResourceId)>,
    type_count: usize,
}

fn sort_of(kind: ComponentExternalKind) -> Sort {
    match kind {
        ComponentExternalKind::Module => Sort::Module,
        ComponentExternalKind::Func => Sort::Func,
        ComponentExternalKind::Value => Sort::Value,
        ComponentExternalKind::Type => Sort::Type,
        ComponentExternalKind::Instance => Sort::Instance,
        ComponentExternalKind::Component => Sort::Component,
    }
}

/// Reads one top-level import.
pub(super) fn import(
    types: TypesRef<'_>,
    import: &ComponentImport<'_>,
    index: usize,
    (resources, signatures): (&mut Resources, &mut Signatures),
    limits: &Limits,
) -> Result<Import, ComponentError> {
    let name = import.name;
    for text in [Some(name.name), name.implements, name.version_suffix].into_iter().flatten() {
        bounded(text)?;
    }
    let sort = sort_of(import.ty.kind());
    let item = types.component_item_for_import(name.name);
    let mut contents = Contents::default();
    let mut asks_for = Vec::new();
    match item.map(|item| item.ty) {
        Some(ComponentEntityType::Func(id)) => {
            let asynchronous = types.get(id).is_some_and(|ty| ty.async_);
            contents.functions.push((name.name.to_owned(), id, asynchronous));
        }
        Some(ComponentEntityType::Instance(id)) => {
            contents = instance_contents(types, id, limits)?;
        }
        Some(ComponentEntityType::Component(id)) => {
            let inner = types.get(id).into_iter().flat_map(|ty| ty.imports.keys());
            let inner = inner.take(limits.max_imports);
            asks_for =
                inner.map(|name| bounded(name).map(str::to_owned)).collect::<Result<_, _>>()?;
        }
        Some(ComponentEntityType::Type { created, .. }) => match created {
            ComponentAnyTypeId::Resource(id) => {
                contents.resources.push((name.name.to_owned(), id.resource()));
            }
            ComponentAnyTypeId::Defined(_)
            | ComponentAnyTypeId::Func(_)
            | ComponentAnyTypeId::Instance(_)
            | ComponentAnyTypeId::Component(_) => contents.type_count = 1,
        },
        Some(ComponentEntityType::Module(_) | ComponentEntityType::Value(_)) | None => {}
    }
    for (resource, id) in &contents.resources {
        // The first import that names a resource defines it; a later one only mentions it.
        resources.0.entry(*id).or_insert_with(|| (index, resource.clone()));
    }
    let functions = contents.functions.into_iter().map(|(function, id, asynchronous)| {
        signatures.imports.push((index, function.clone(), id));
        Function { name: function, asynchronous, linked: false }
    });
    let interface = match name.implements {
        Some(implements) => InterfaceName::parse(implements),
        None => InterfaceName::parse_with_suffix(name.name, name.version_suffix),
    };
    Ok(Import {
        name: name.name.to_owned(),
        implements: name.implements.map(str::to_owned),
        version_suffix: name.version_suffix.map(str::to_owned),
        external_id: name.external_id.map(str::to_owned),
        interface: if matches!(sort, Sort::Module | Sort::Component) { None } else { interface },
        sort,
        functions: functions.collect(),
        resources: contents.resources.into_iter().map(|(name, _)| name).collect(),
        type_count: contents.type_count,
        asks_for,
        used_by: Vec::new(),
    })
}

/// Reads one top-level export.
pub(super) fn export(
    types: TypesRef<'_>,
    export: &ComponentExport<'_>,
    signatures: &mut Signatures,
    limits: &Limits,
) -> Result<Export, ComponentError> {
    let name = export.name;
    bounded(name.name)?;
    let item = types.component_item_for_export(name.name);
    let functions = match item.map(|item| item.ty) {
        Some(ComponentEntityType::Func(id)) => vec![(name.name.to_owned(), id)],
        Some(ComponentEntityType::Instance(id)) => {
            let contents = instance_contents(types, id, limits)?;
            let offered = contents.resources.into_iter();
            signatures.offered.extend(offered.map(|(_, id)| (name.name.to_owned(), id)));
            contents.functions.into_iter().map(|(function, id, _)| (function, id)).collect()
        }
        Some(ComponentEntityType::Type { created: ComponentAnyTypeId::Resource(id), .. }) => {
            signatures.offered.push((name.name.to_owned(), id.resource()));
            Vec::new()
        }
        Some(
            ComponentEntityType::Module(_)
            | ComponentEntityType::Value(_)
            | ComponentEntityType::Type { .. }
            | ComponentEntityType::Component(_),
        )
        | None => Vec::new(),
    };
    let sort = sort_of(export.kind);
    for (function, id) in &functions {
        let full = match sort {
            Sort::Instance => format!("{}.{function}", name.name),
            Sort::Func | Sort::Type | Sort::Value | Sort::Module | Sort::Component | Sort::Core => {
                function.clone()
            }
        };
        signatures.exports.push((full, *id));
    }
    if signatures.exports.len().saturating_add(signatures.offered.len()) > limits.max_functions {
        return Err(ComponentError::TooManyFunctions { limit: limits.max_functions });
    }
    Ok(Export {
        name: name.name.to_owned(),
        interface: InterfaceName::parse_with_suffix(name.name, name.version_suffix),
        sort,
        functions: functions.into_iter().map(|(function, _)| function).collect(),
        passes_through: None,
    })
}

/// Flattens an instance type. Nesting is bounded by the validator's type depth (100).
fn instance_contents(
    types: TypesRef<'_>,
    id: ComponentInstanceTypeId,
    limits: &Limits,
) -> Result<Contents, ComponentError> {
    let mut contents = Contents::default();
    let mut work = vec![(String::new(), id)];
    let mut instances = 0_usize;
    while let Some((prefix, id)) = work.pop() {
        instances = instances.saturating_add(1);
        if instances > limits.max_imports {
            return Err(ComponentError::TooManyImports {
                found: instances,
                limit: limits.max_imports,
            });
        }
        let Some(ty) = types.get(id) else { continue };
        for (name, item) in &ty.exports {
            let full = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            bounded(&full)?;
            entity(types, full, item, &mut contents, &mut work);
            let named = contents.functions.len().saturating_add(contents.resources.len());
            if named > limits.max_functions {
                return Err(ComponentError::TooManyFunctions { limit: limits.max_functions });
            }
        }
    }
    Ok(contents)
}

fn entity(
    types: TypesRef<'_>,
    name: String,
    item: &ComponentItem,
    contents: &mut Contents,
    work: &mut Vec<(String, ComponentInstanceTypeId)>,
) {
    match item.ty {
        ComponentEntityType::Func(id) => {
            let asynchronous = types.get(id).is_some_and(|ty| ty.async_);
            contents.functions.push((name, id, asynchronous));
        }
        ComponentEntityType::Instance(id) => work.push((name, id)),
        ComponentEntityType::Type { created: ComponentAnyTypeId::Resource(id), .. } => {
            contents.resources.push((name, id.resource()));
        }
        ComponentEntityType::Type { .. }
        | ComponentEntityType::Module(_)
        | ComponentEntityType::Value(_)
        | ComponentEntityType::Component(_) => {
            contents.type_count = contents.type_count.saturating_add(1);
        }
    }
}

/// Finds the handles of imported resources that callers or other imports can bring in.
pub(super) fn handles(
    types: TypesRef<'_>,
    resources: &Resources,
    signatures: &Signatures,
    limits: &Limits,
) -> Result<Vec<HandleSource>, ComponentError> {
    let mut found = BTreeSet::new();
    let mut cache = HashMap::new();
    for (function, id) in &signatures.exports {
        let Some(ty) = types.get(*id) else { continue };
        for (_, param) in &ty.params {
            for resource in resources_in(types, *param, &mut cache) {
                if let Some((import, name)) = resources.0.get(&resource) {
                    found.insert(HandleSource {
                        import: *import,
                        resource: name.clone(),
                        via: HandleVia::ExportParameter { function: function.clone() },
                    });
                }
            }
        }
        enough(found.len(), limits)?;
    }
    for (export, id) in &signatures.offered {
        if let Some((import, name)) = resources.0.get(id) {
            found.insert(HandleSource {
                import: *import,
                resource: name.clone(),
                via: HandleVia::ReExport { export: export.clone() },
            });
        }
    }
    for (index, function, id) in &signatures.imports {
        let Some(result) = types.get(*id).and_then(|ty| ty.result) else { continue };
        for resource in resources_in(types, result, &mut cache) {
            if let Some((import, name)) = resources.0.get(&resource)
                && import != index
            {
                found.insert(HandleSource {
                    import: *import,
                    resource: name.clone(),
                    via: HandleVia::ImportResult { import: *index, function: function.clone() },
                });
            }
        }
        enough(found.len(), limits)?;
    }
    Ok(found.into_iter().collect())
}

/// Each handle carries the names of its resource and of a function.
fn enough(handles: usize, limits: &Limits) -> Result<(), ComponentError> {
    if handles > limits.max_functions {
        return Err(ComponentError::TooManyFunctions { limit: limits.max_functions });
    }
    Ok(())
}

type Cache =
    HashMap<wasmparser::component_types::ComponentDefinedTypeId, BTreeMap<u64, ResourceId>>;

/// Returns the resources whose handles occur in a value type, at any depth.
fn resources_in(types: TypesRef<'_>, ty: ComponentValType, cache: &mut Cache) -> Vec<ResourceId> {
    let ComponentValType::Type(root) = ty else { return Vec::new() };
    if let Some(known) = cache.get(&root) {
        return known.values().copied().collect();
    }
    let mut found: BTreeMap<u64, ResourceId> = BTreeMap::new();
    let mut seen = HashSet::new();
    let mut work = vec![root];
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(defined) = types.get(id) else { continue };
        let mut child = |ty: &ComponentValType| {
            if let ComponentValType::Type(id) = ty {
                work.push(*id);
            }
        };
        match defined {
            ComponentDefinedType::Primitive(_)
            | ComponentDefinedType::Flags(_)
            | ComponentDefinedType::Enum(_) => {}
            ComponentDefinedType::Record(record) => record.fields.values().for_each(child),
            ComponentDefinedType::Variant(variant) => {
                variant.cases.values().filter_map(|case| case.ty.as_ref()).for_each(child);
            }
            ComponentDefinedType::Tuple(tuple) => tuple.types.iter().for_each(child),
            ComponentDefinedType::List { element, .. }
            | ComponentDefinedType::FixedLengthList { element, .. } => child(element),
            ComponentDefinedType::Map { key, value, .. } => {
                child(key);
                child(value);
            }
            ComponentDefinedType::Option { ty, .. } => child(ty),
            ComponentDefinedType::Result { ok, err, .. } => {
                ok.iter().chain(err).for_each(child);
            }
            ComponentDefinedType::Future { ty, .. } | ComponentDefinedType::Stream { ty, .. } => {
                ty.iter().for_each(child);
            }
            ComponentDefinedType::Own(id) | ComponentDefinedType::Borrow(id) => {
                let order = found.len() as u64;
                found.insert(order, id.resource());
            }
        }
    }
    cache.insert(root, found.clone());
    found.into_values().collect()
}
