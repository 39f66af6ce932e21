//! The definition sections of components, kept as data for the symbolic linker.
//!
//! Type index spaces are left out: linking never looks at a type, since the validator has.

use wasmparser::{
    CanonicalFunction, ComponentAlias, ComponentExternalKind, ComponentInstance,
    ComponentOuterAliasKind, ExternalKind, Instance, Payload, TypeRef,
};

use super::ComponentError;

/// One definition in the order of the binary; each adds to one index space at most.
#[derive(Debug)]
pub(super) enum Definition<'a> {
    /// An import of the enclosing component.
    Import { name: &'a str, kind: ComponentExternalKind },
    /// A core module defined in place, by index into [`Definitions::modules`].
    Module(usize),
    /// A component defined in place, by index into [`Definitions::components`].
    Component(usize),
    /// A core instance made from a module; arguments are core instances by name.
    CoreInstantiate { module: u32, args: Vec<(&'a str, u32)> },
    /// A core instance made of single items.
    CoreExports(Vec<(&'a str, ExternalKind, u32)>),
    /// A component instance made from a component.
    Instantiate { component: u32, args: Vec<(&'a str, ComponentExternalKind, u32)> },
    /// A component instance made of single items.
    Exports(Vec<(&'a str, ComponentExternalKind, u32)>),
    /// An item of a component instance.
    Alias { kind: ComponentExternalKind, instance: u32, name: &'a str },
    /// An item of a core instance.
    CoreAlias { kind: ExternalKind, instance: u32, name: &'a str },
    /// A module or component of an enclosing component.
    OuterAlias { kind: ComponentOuterAliasKind, count: u32, index: u32 },
    /// `canon lift`: a component function made of a core function.
    Lift,
    /// `canon lower`: a core function that calls a component function.
    Lower { func: u32 },
    /// Any other canonical built-in: a core function that touches no import.
    CoreBuiltin,
    /// The component's start function.
    Start { func: u32 },
    /// An export; it also adds an alias to its index space.
    Export { name: &'a str, kind: ComponentExternalKind, index: u32 },
}

/// One component's definitions.
#[derive(Debug, Default)]
pub(super) struct ComponentDefinitions<'a> {
    pub(super) items: Vec<Definition<'a>>,
    /// The place among the components that its parent defines.
    pub(super) ordinal: usize,
    pub(super) name: Option<String>,
    child_components: usize,
}

/// The function imports of one core module, as (module, field).
#[derive(Debug, Default)]
pub(super) struct ModuleDefinition<'a> {
    pub(super) imports: Vec<(&'a str, &'a str)>,
}

/// What is being read: the innermost module or component that is open.
#[derive(Clone, Copy, Debug)]
enum Open {
    Component(usize),
    Module(usize),
}

/// All components and modules of one binary, flat; the root component is number 0.
#[derive(Debug, Default)]
pub(super) struct Definitions<'a> {
    pub(super) components: Vec<ComponentDefinitions<'a>>,
    pub(super) modules: Vec<ModuleDefinition<'a>>,
    pub(super) depth: usize,
    open: Vec<Open>,
    count: usize,
}

/// Definitions over all components; a binary at the limit needs about 64 MB here.
const MAX_DEFINITIONS: usize = 1_000_000;

impl<'a> Definitions<'a> {
    /// Starts with the root component open.
    pub(super) fn for_component() -> Self {
        Self {
            components: vec![ComponentDefinitions::default()],
            open: vec![Open::Component(0)],
            ..Self::default()
        }
    }

    /// Returns how deep the payload that comes next is nested; 1 in the root.
    pub(super) fn open_depth(&self) -> usize {
        self.open.len()
    }

    /// Returns the component whose sections are being read, if it isn't a module's.
    pub(super) fn open_component(&mut self) -> Option<&mut ComponentDefinitions<'a>> {
        match self.open.last() {
            Some(Open::Component(index)) => self.components.get_mut(*index),
            Some(Open::Module(_)) | None => None,
        }
    }

    fn push(&mut self, item: Definition<'a>) -> Result<(), ComponentError> {
        self.count = self.count.saturating_add(1);
        if self.count > MAX_DEFINITIONS {
            return Err(ComponentError::TooManyDefinitions { limit: MAX_DEFINITIONS });
        }
        if let Some(component) = self.open_component() {
            component.items.push(item);
        }
        Ok(())
    }

    fn weigh(&mut self, extra: usize) -> Result<(), ComponentError> {
        self.count = self.count.saturating_add(extra);
        if self.count > MAX_DEFINITIONS {
            return Err(ComponentError::TooManyDefinitions { limit: MAX_DEFINITIONS });
        }
        Ok(())
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other sections define nothing that can be linked"
    )]
    /// Takes the next payload in; it has to be one that the validator accepted.
    pub(super) fn payload(&mut self, payload: &Payload<'a>) -> Result<(), ComponentError> {
        match payload {
            Payload::ModuleSection { .. } => {
                let index = self.modules.len();
                self.modules.push(ModuleDefinition::default());
                self.push(Definition::Module(index))?;
                self.open.push(Open::Module(index));
            }
            Payload::ComponentSection { .. } => {
                let index = self.components.len();
                let ordinal = self.open_component().map_or(0, |parent| {
                    let ordinal = parent.child_components;
                    parent.child_components = parent.child_components.saturating_add(1);
                    ordinal
                });
                self.components.push(ComponentDefinitions { ordinal, ..Default::default() });
                self.push(Definition::Component(index))?;
                self.open.push(Open::Component(index));
                self.depth = self.depth.max(self.open.len().saturating_sub(1));
            }
            Payload::End(_) => {
                self.open.pop();
            }
            Payload::ImportSection(section) => {
                for import in section.clone().into_imports() {
                    let import = import?;
                    let function = matches!(import.ty, TypeRef::Func(_) | TypeRef::FuncExact(_));
                    self.weigh(1)?;
                    if let (true, Some(Open::Module(index))) = (function, self.open.last())
                        && let Some(module) = self.modules.get_mut(*index)
                    {
                        module.imports.push((import.module, import.name));
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    let import = import?;
                    self.push(Definition::Import {
                        name: import.name.name,
                        kind: import.ty.kind(),
                    })?;
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export?;
                    self.push(Definition::Export {
                        name: export.name.name,
                        kind: export.kind,
                        index: export.index,
                    })?;
                }
            }
            Payload::InstanceSection(section) => {
                for instance in section.clone() {
                    let item = match instance? {
                        Instance::Instantiate { module_index, args } => {
                            self.weigh(args.len())?;
                            let args = args.iter().map(|arg| (arg.name, arg.index)).collect();
                            Definition::CoreInstantiate { module: module_index, args }
                        }
                        Instance::FromExports(exports) => {
                            self.weigh(exports.len())?;
                            let items = exports.iter().map(|e| (e.name, e.kind, e.index));
                            Definition::CoreExports(items.collect())
                        }
                    };
                    self.push(item)?;
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section.clone() {
                    let item = match instance? {
                        ComponentInstance::Instantiate { component_index, args } => {
                            self.weigh(args.len())?;
                            let args = args.iter().map(|a| (a.name, a.kind, a.index)).collect();
                            Definition::Instantiate { component: component_index, args }
                        }
                        ComponentInstance::FromExports(exports) => {
                            self.weigh(exports.len())?;
                            let items = exports.iter().map(|e| (e.name.name, e.kind, e.index));
                            Definition::Exports(items.collect())
                        }
                    };
                    self.push(item)?;
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section.clone() {
                    self.push(match alias? {
                        ComponentAlias::InstanceExport { kind, instance_index, name } => {
                            Definition::Alias { kind, instance: instance_index, name }
                        }
                        ComponentAlias::CoreInstanceExport { kind, instance_index, name } => {
                            Definition::CoreAlias { kind, instance: instance_index, name }
                        }
                        ComponentAlias::Outer { kind, count, index } => {
                            Definition::OuterAlias { kind, count, index }
                        }
                    })?;
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for function in section.clone() {
                    // Every other built-in makes one core function and reaches no import.
                    self.push(match function? {
                        CanonicalFunction::Lift { .. } => Definition::Lift,
                        CanonicalFunction::Lower { func_index, .. } => {
                            Definition::Lower { func: func_index }
                        }
                        _ => Definition::CoreBuiltin,
                    })?;
                }
            }
            Payload::ComponentStartSection { start, .. } => {
                self.push(Definition::Start { func: start.func_index })?;
            }
            _ => {}
        }
        Ok(())
    }
}
