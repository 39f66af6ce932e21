//! The symbolic linker: which host functions some core module inside really takes.
//!
//! Definition sections are evaluated like a host's linker would, with values that only say where
//! an item comes from. Nested components are instantiated with an explicit stack, so that nesting
//! costs no native stack. Where the linker gives up (a cap, or code that arrives from outside) it
//! takes more functions to be linked, never fewer, and says why.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use wasmparser::{ComponentExternalKind, ComponentOuterAliasKind, ExternalKind};

use super::define::{Definition, Definitions};
use super::{Export, Import, Linkage, NestedPath, Sort};
use crate::limits::Limits;

/// A host function: index of the import, index of the function in it.
type HostFunction = (usize, usize);

/// A component-level item.
#[derive(Clone, Debug)]
enum Item {
    Function(Function),
    Instance(Instance),
    Component(Component),
    Module(Module),
    /// A type or a value: no authority travels in it.
    Inert,
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Host(HostFunction),
    /// Lifted from a core function in here.
    Lifted,
    /// Something that only code from outside knows.
    Opaque,
}

#[derive(Clone, Debug)]
enum Instance {
    /// An imported instance, or an instance inside one (`prefix` is then not empty).
    Host {
        import: usize,
        prefix: Rc<str>,
    },
    /// An instance made in here, by index into [`Linker::instances`].
    Local(usize),
    Opaque,
}

#[derive(Clone, Copy, Debug)]
enum Component {
    /// A component defined in here, closed over the scope that encloses it.
    Local {
        definition: usize,
        scope: usize,
    },
    Opaque,
}

#[derive(Clone, Copy, Debug)]
enum Module {
    Local(usize),
    Opaque,
}

#[derive(Clone, Copy, Debug)]
enum CoreFunction {
    Host(HostFunction),
    Other,
}

#[derive(Clone, Copy, Debug)]
enum CoreInstance {
    /// Made of single items, by index into [`Linker::core_instances`].
    Exports(usize),
    /// Made from a module: what it hands on was linked when it was made.
    Module,
}

/// The index spaces of one component instance.
#[derive(Debug, Default)]
struct Scope {
    definition: usize,
    parent: Option<usize>,
    functions: Vec<Function>,
    instances: Vec<Instance>,
    components: Vec<Component>,
    modules: Vec<Module>,
    core_functions: Vec<CoreFunction>,
    core_instances: Vec<CoreInstance>,
}

/// One component instance that is being made.
struct Frame<'a> {
    scope: usize,
    next: usize,
    args: HashMap<&'a str, Item>,
    exports: Vec<(&'a str, Item)>,
}

/// Linking stopped before the end.
struct GaveUp(String);

struct Linker<'a, 'd> {
    definitions: &'d Definitions<'a>,
    functions: HashMap<(usize, String), usize>,
    scopes: Vec<Scope>,
    instances: Vec<HashMap<&'a str, Item>>,
    core_instances: Vec<HashMap<&'a str, CoreFunction>>,
    linked: BTreeMap<HostFunction, BTreeSet<usize>>,
    reasons: BTreeSet<String>,
    steps: usize,
    made: usize,
    max_steps: usize,
    max_instances: usize,
}

/// Marks what is linked in `imports`, notes exports that hand imports on, and says how sure it is.
pub(super) fn link(
    definitions: &Definitions<'_>,
    imports: &mut [Import],
    exports: &mut [Export],
    limits: &Limits,
) -> Linkage {
    let mut functions = HashMap::new();
    for (index, import) in imports.iter().enumerate() {
        for (position, function) in import.functions.iter().enumerate() {
            functions.insert((index, function.name.clone()), position);
        }
    }
    let mut linker = Linker {
        definitions,
        functions,
        scopes: Vec::new(),
        instances: Vec::new(),
        core_instances: Vec::new(),
        linked: BTreeMap::new(),
        reasons: BTreeSet::new(),
        steps: 0,
        made: 0,
        max_steps: limits.max_link_steps,
        max_instances: limits.max_instances,
    };
    let outcome = match linker.run(imports) {
        Ok(root_exports) => linker.hand_on(root_exports, imports, exports),
        Err(gave_up) => Err(gave_up),
    };
    if let Err(GaveUp(reason)) = outcome {
        linker.reasons.insert(reason);
        let all = imports.iter().enumerate();
        for (index, import) in all {
            for position in 0..import.functions.len() {
                linker.linked.entry((index, position)).or_default().insert(0);
            }
        }
    }
    linker.mark(imports);
    Linkage {
        reasons: linker.reasons.into_iter().collect(),
        modules: definitions.modules.len(),
        components: definitions.components.len().saturating_sub(1),
        depth: definitions.depth.max(1),
    }
}

impl<'a> Linker<'a, '_> {
    fn run(&mut self, imports: &[Import]) -> Result<Vec<(&'a str, Item)>, GaveUp> {
        let root = self.definitions.components.first().map_or(&[][..], |root| &root.items);
        let names = root.iter().filter_map(|definition| {
            if let Definition::Import { name, .. } = definition { Some(*name) } else { None }
        });
        let mut root_args = HashMap::new();
        for ((index, import), name) in imports.iter().enumerate().zip(names) {
            let item = match import.sort {
                Sort::Func => Item::Function(Function::Host((index, 0))),
                Sort::Instance => {
                    Item::Instance(Instance::Host { import: index, prefix: Rc::from("") })
                }
                Sort::Component => Item::Component(Component::Opaque),
                Sort::Module | Sort::Core => Item::Module(Module::Opaque),
                Sort::Type | Sort::Value => Item::Inert,
            };
            root_args.insert(name, item);
        }
        let mut stack = vec![self.frame(0, None, root_args)?];
        loop {
            let Some(frame) = stack.last_mut() else {
                return Err(GaveUp("the linker lost its place".to_owned()));
            };
            let definitions = self.definitions;
            let definition = self.scopes.get(frame.scope).map_or(0, |scope| scope.definition);
            let item = definitions
                .components
                .get(definition)
                .and_then(|component| component.items.get(frame.next));
            let Some(item) = item else {
                let exports = std::mem::take(&mut frame.exports);
                stack.pop();
                match stack.last() {
                    None => return Ok(exports),
                    Some(outer) => {
                        let instance = self.local_instance(exports)?;
                        let scope = outer.scope;
                        self.scope(scope)?.instances.push(instance);
                    }
                }
                continue;
            };
            frame.next = frame.next.saturating_add(1);
            self.step(1)?;
            if let Some(inner) = self.define(frame, item)? {
                stack.push(inner);
            }
        }
    }

    fn step(&mut self, count: usize) -> Result<(), GaveUp> {
        self.steps = self.steps.saturating_add(count);
        if self.steps > self.max_steps {
            return Err(GaveUp(format!("linking needs more than {} steps", self.max_steps)));
        }
        Ok(())
    }

    fn made_one(&mut self) -> Result<(), GaveUp> {
        self.made = self.made.saturating_add(1);
        if self.made > self.max_instances {
            return Err(GaveUp(format!("more than {} instances", self.max_instances)));
        }
        Ok(())
    }

    fn scope(&mut self, index: usize) -> Result<&mut Scope, GaveUp> {
        self.scopes.get_mut(index).ok_or_else(|| GaveUp("a scope is missing".to_owned()))
    }

    fn frame(
        &mut self,
        definition: usize,
        parent: Option<usize>,
        args: HashMap<&'a str, Item>,
    ) -> Result<Frame<'a>, GaveUp> {
        self.made_one()?;
        let scope = self.scopes.len();
        self.scopes.push(Scope { definition, parent, ..Scope::default() });
        Ok(Frame { scope, next: 0, args, exports: Vec::new() })
    }

    fn local_instance(&mut self, exports: Vec<(&'a str, Item)>) -> Result<Instance, GaveUp> {
        self.made_one()?;
        let index = self.instances.len();
        self.instances.push(exports.into_iter().collect());
        Ok(Instance::Local(index))
    }

    /// Evaluates one definition; returns the frame to enter when it instantiates a component.
    fn define(
        &mut self,
        frame: &mut Frame<'a>,
        definition: &Definition<'a>,
    ) -> Result<Option<Frame<'a>>, GaveUp> {
        let at = frame.scope;
        match definition {
            Definition::Import { name, kind } => {
                let item = frame.args.remove(name);
                if item.is_none() && !matches!(kind, ComponentExternalKind::Type) {
                    self.reasons.insert(format!("nothing was found for the inner import `{name}`"));
                }
                self.add(at, *kind, item)?;
            }
            Definition::Module(index) => self.scope(at)?.modules.push(Module::Local(*index)),
            Definition::Component(definition) => {
                let closure = Component::Local { definition: *definition, scope: at };
                self.scope(at)?.components.push(closure);
            }
            Definition::CoreInstantiate { module, args } => {
                self.instantiate_module(at, *module, args)?;
            }
            Definition::CoreExports(items) => {
                self.made_one()?;
                self.step(items.len())?;
                let mut exports = HashMap::with_capacity(items.len());
                for (name, kind, index) in items {
                    if matches!(kind, ExternalKind::Func | ExternalKind::FuncExact) {
                        exports.insert(*name, self.core_function(at, *index)?);
                    }
                }
                let index = self.core_instances.len();
                self.core_instances.push(exports);
                self.scope(at)?.core_instances.push(CoreInstance::Exports(index));
            }
            Definition::Instantiate { component, args } => {
                self.step(args.len())?;
                let mut given = HashMap::with_capacity(args.len());
                for (name, kind, index) in args {
                    given.insert(*name, self.item(at, *kind, *index)?);
                }
                match pick(&self.scope(at)?.components, *component)? {
                    Component::Local { definition, scope } => {
                        return self.frame(definition, Some(scope), given).map(Some);
                    }
                    Component::Opaque => {
                        self.reasons.insert("it instantiates an imported component".to_owned());
                        let items = given.into_values().collect();
                        self.give_away(at, items)?;
                        self.scope(at)?.instances.push(Instance::Opaque);
                    }
                }
            }
            Definition::Exports(items) => {
                self.step(items.len())?;
                let mut exports = Vec::with_capacity(items.len());
                for (name, kind, index) in items {
                    exports.push((*name, self.item(at, *kind, *index)?));
                }
                let instance = self.local_instance(exports)?;
                self.scope(at)?.instances.push(instance);
            }
            Definition::Alias { kind, instance, name } => {
                let instance = pick(&self.scope(at)?.instances, *instance)?;
                if let Instance::Host { prefix, .. } = &instance {
                    // The alias makes a text as long as all the names above it.
                    self.step(prefix.len())?;
                }
                let item = self.export_of(&instance, *kind, name);
                self.add(at, *kind, Some(item))?;
            }
            Definition::CoreAlias { kind, instance, name } => {
                if matches!(kind, ExternalKind::Func | ExternalKind::FuncExact) {
                    let function = match pick(&self.scope(at)?.core_instances, *instance)? {
                        CoreInstance::Exports(index) => self
                            .core_instances
                            .get(index)
                            .and_then(|exports| exports.get(name))
                            .copied()
                            .unwrap_or(CoreFunction::Other),
                        CoreInstance::Module => CoreFunction::Other,
                    };
                    self.scope(at)?.core_functions.push(function);
                }
            }
            Definition::OuterAlias { kind, count, index } => {
                let mut outer = at;
                for _ in 0..*count {
                    self.step(1)?;
                    let parent = self.scope(outer)?.parent;
                    outer = parent.ok_or_else(|| GaveUp("an outer scope is missing".to_owned()))?;
                }
                match kind {
                    ComponentOuterAliasKind::CoreModule => {
                        let module = pick(&self.scope(outer)?.modules, *index)?;
                        self.scope(at)?.modules.push(module);
                    }
                    ComponentOuterAliasKind::Component => {
                        let component = pick(&self.scope(outer)?.components, *index)?;
                        self.scope(at)?.components.push(component);
                    }
                    ComponentOuterAliasKind::CoreType | ComponentOuterAliasKind::Type => {}
                }
            }
            Definition::Lift => self.scope(at)?.functions.push(Function::Lifted),
            Definition::Lower { func } => {
                let function = match pick(&self.scope(at)?.functions, *func)? {
                    Function::Host(host) => CoreFunction::Host(host),
                    Function::Lifted | Function::Opaque => CoreFunction::Other,
                };
                self.scope(at)?.core_functions.push(function);
            }
            Definition::CoreBuiltin => self.scope(at)?.core_functions.push(CoreFunction::Other),
            Definition::Start { func } => {
                if let Function::Host(host) = pick(&self.scope(at)?.functions, *func)? {
                    self.linked.entry(host).or_default().insert(at);
                }
            }
            Definition::Export { name, kind, index } => {
                let item = self.item(at, *kind, *index)?;
                frame.exports.push((*name, item.clone()));
                self.add(at, *kind, Some(item))?;
            }
        }
        Ok(None)
    }

    fn instantiate_module(
        &mut self,
        at: usize,
        module: u32,
        args: &[(&'a str, u32)],
    ) -> Result<(), GaveUp> {
        self.made_one()?;
        let module = pick(&self.scope(at)?.modules, module)?;
        let mut given = HashMap::with_capacity(args.len());
        for (name, index) in args {
            given.insert(*name, pick(&self.scope(at)?.core_instances, *index)?);
        }
        let definitions = self.definitions;
        match module {
            Module::Local(index) => {
                let imports =
                    definitions.modules.get(index).map_or(&[][..], |module| &module.imports);
                self.step(imports.len())?;
                for (from, field) in imports {
                    if let Some(CoreInstance::Exports(exports)) = given.get(from)
                        && let Some(CoreFunction::Host(host)) =
                            self.core_instances.get(*exports).and_then(|e| e.get(field))
                    {
                        self.linked.entry(*host).or_default().insert(at);
                    }
                }
            }
            Module::Opaque => {
                self.reasons.insert("it instantiates an imported core module".to_owned());
                for instance in given.values() {
                    if let CoreInstance::Exports(exports) = instance {
                        let functions = self.core_instances.get(*exports).into_iter().flatten();
                        for (_, function) in functions {
                            if let CoreFunction::Host(host) = function {
                                self.linked.entry(*host).or_default().insert(at);
                            }
                        }
                    }
                }
            }
        }
        self.scope(at)?.core_instances.push(CoreInstance::Module);
        Ok(())
    }

    fn core_function(&mut self, at: usize, index: u32) -> Result<CoreFunction, GaveUp> {
        pick(&self.scope(at)?.core_functions, index)
    }

    /// Returns an item of the current index spaces.
    fn item(&mut self, at: usize, kind: ComponentExternalKind, index: u32) -> Result<Item, GaveUp> {
        let scope = self.scope(at)?;
        Ok(match kind {
            ComponentExternalKind::Func => Item::Function(pick(&scope.functions, index)?),
            ComponentExternalKind::Instance => Item::Instance(pick(&scope.instances, index)?),
            ComponentExternalKind::Component => Item::Component(pick(&scope.components, index)?),
            ComponentExternalKind::Module => Item::Module(pick(&scope.modules, index)?),
            ComponentExternalKind::Value | ComponentExternalKind::Type => Item::Inert,
        })
    }

    /// Adds an item to the index space of its kind; what isn't there is taken to be opaque.
    fn add(
        &mut self,
        at: usize,
        kind: ComponentExternalKind,
        item: Option<Item>,
    ) -> Result<(), GaveUp> {
        let scope = self.scope(at)?;
        match kind {
            ComponentExternalKind::Func => scope.functions.push(match item {
                Some(Item::Function(function)) => function,
                _ => Function::Opaque,
            }),
            ComponentExternalKind::Instance => scope.instances.push(match item {
                Some(Item::Instance(instance)) => instance,
                _ => Instance::Opaque,
            }),
            ComponentExternalKind::Component => scope.components.push(match item {
                Some(Item::Component(component)) => component,
                _ => Component::Opaque,
            }),
            ComponentExternalKind::Module => scope.modules.push(match item {
                Some(Item::Module(module)) => module,
                _ => Module::Opaque,
            }),
            ComponentExternalKind::Value | ComponentExternalKind::Type => {}
        }
        Ok(())
    }

    /// Returns one export of an instance.
    fn export_of(&self, instance: &Instance, kind: ComponentExternalKind, name: &str) -> Item {
        match instance {
            Instance::Local(index) => self
                .instances
                .get(*index)
                .and_then(|exports| exports.get(name))
                .cloned()
                .unwrap_or(Item::Inert),
            Instance::Host { import, prefix } => {
                let full =
                    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
                match kind {
                    ComponentExternalKind::Func => match self.functions.get(&(*import, full)) {
                        Some(position) => Item::Function(Function::Host((*import, *position))),
                        None => Item::Function(Function::Opaque),
                    },
                    ComponentExternalKind::Instance => {
                        Item::Instance(Instance::Host { import: *import, prefix: full.into() })
                    }
                    ComponentExternalKind::Component => Item::Component(Component::Opaque),
                    ComponentExternalKind::Module => Item::Module(Module::Opaque),
                    ComponentExternalKind::Value | ComponentExternalKind::Type => Item::Inert,
                }
            }
            Instance::Opaque => match kind {
                ComponentExternalKind::Func => Item::Function(Function::Opaque),
                ComponentExternalKind::Instance => Item::Instance(Instance::Opaque),
                ComponentExternalKind::Component => Item::Component(Component::Opaque),
                ComponentExternalKind::Module => Item::Module(Module::Opaque),
                ComponentExternalKind::Value | ComponentExternalKind::Type => Item::Inert,
            },
        }
    }

    /// Links every host function that `items` hold, at any depth: somebody outside gets them.
    fn give_away(&mut self, at: usize, items: Vec<Item>) -> Result<BTreeSet<usize>, GaveUp> {
        let mut imports = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut work = items;
        while let Some(item) = work.pop() {
            self.step(1)?;
            match item {
                Item::Function(Function::Host(host)) => {
                    imports.insert(host.0);
                    self.linked.entry(host).or_default().insert(at);
                }
                Item::Instance(Instance::Host { import, prefix }) => {
                    imports.insert(import);
                    let inside = |name: &str| {
                        prefix.is_empty()
                            || name.strip_prefix(&*prefix).is_some_and(|rest| rest.starts_with('/'))
                    };
                    self.step(self.functions.len())?;
                    let found: Vec<usize> = self
                        .functions
                        .iter()
                        .filter(|((index, name), _)| *index == import && inside(name))
                        .map(|(_, position)| *position)
                        .collect();
                    for position in found {
                        self.linked.entry((import, position)).or_default().insert(at);
                    }
                }
                Item::Instance(Instance::Local(index)) if seen.insert(index) => {
                    let exports = self.instances.get(index);
                    work.extend(exports.into_iter().flat_map(|e| e.values().cloned()));
                }
                // A component captures outer modules and components only, and those hold no host
                // function.
                Item::Function(Function::Lifted | Function::Opaque)
                | Item::Instance(Instance::Local(_) | Instance::Opaque)
                | Item::Component(_)
                | Item::Module(_)
                | Item::Inert => {}
            }
        }
        Ok(imports)
    }

    /// Handles what the root exports: a host function that goes out again is reachable by callers.
    fn hand_on(
        &mut self,
        root_exports: Vec<(&'a str, Item)>,
        imports: &[Import],
        exports: &mut [Export],
    ) -> Result<(), GaveUp> {
        let mut passed = HashMap::new();
        for (name, item) in root_exports {
            let through = self.give_away(0, vec![item])?;
            if let Some(import) = through.first().and_then(|index| imports.get(*index)) {
                passed.insert(name, import.name.as_str());
            }
        }
        for export in exports {
            export.passes_through = passed.get(export.name.as_str()).map(|name| (*name).to_owned());
        }
        Ok(())
    }

    fn mark(&mut self, imports: &mut [Import]) {
        let linked = std::mem::take(&mut self.linked);
        let mut used: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for ((import, position), scopes) in &linked {
            if let Some(function) =
                imports.get_mut(*import).and_then(|i| i.functions.get_mut(*position))
            {
                function.linked = true;
            }
            used.entry(*import).or_default().extend(scopes);
        }
        for (import, scopes) in used {
            let mut paths = BTreeSet::new();
            for scope in scopes {
                // Paths in deep nesting are long, and each import has its own.
                let Ok(path) = self.path(scope) else {
                    self.reasons.insert("not every user of every import is listed".to_owned());
                    break;
                };
                paths.insert(path);
            }
            if let Some(import) = imports.get_mut(import) {
                import.used_by = paths.into_iter().collect();
            }
        }
    }

    fn path(&mut self, scope: usize) -> Result<NestedPath, GaveUp> {
        let definitions = &self.definitions.components;
        let component = |scope: &Scope| definitions.get(scope.definition);
        let name =
            self.scopes.get(scope).and_then(component).and_then(|component| component.name.clone());
        let mut steps = Vec::new();
        let mut at = self.scopes.get(scope);
        while let Some((scope, parent)) = at.and_then(|scope| scope.parent.map(|up| (scope, up))) {
            let ordinal = component(scope).map_or(0, |component| component.ordinal);
            steps.push(format!("/component[{ordinal}]"));
            self.step(1)?;
            at = self.scopes.get(parent);
        }
        steps.reverse();
        let path = if steps.is_empty() { "/".to_owned() } else { steps.concat() };
        Ok(NestedPath { path, name })
    }
}

/// Returns an entry of an index space; the validator has checked that it is there.
fn pick<T: Clone>(space: &[T], index: u32) -> Result<T, GaveUp> {
    usize::try_from(index)
        .ok()
        .and_then(|index| space.get(index))
        .cloned()
        .ok_or_else(|| GaveUp(format!("index {index} is outside its index space")))
}
