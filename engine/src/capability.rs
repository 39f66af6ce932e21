//! From imports to capabilities: what each import lets the component do, before any configuration.
//!
//! [`CapabilitySet::of`] is total: an import that the catalogue lacks becomes the capability
//! `unknown:NAME`. Two depths are computed and never merged: *declared*, from every top-level
//! import, and *linked*, from the functions that some core module inside takes.
//!
//! **Handle rule.** A method bears its classes only if a handle for it can exist: because a live
//! function makes one, because a caller passes one in, or because an import outside the interface
//! returns one. That is what turns "imports the filesystem" into "prints text" for a program whose
//! C library links `write` but never `open`. The rule rests on hosts preopening folders only, as
//! wasmtime does.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::{Catalogue, Class, FunctionEntry, InterfaceEntry, Match, Risk};
use crate::component::{Component, HandleVia, Import, Sort};

/// What one function of an import bears.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FunctionCapability {
    /// The function's name as in the binary.
    pub name: String,
    /// The classes that the catalogue gives it, whether or not a handle for it can exist.
    pub classes: BTreeSet<String>,
    /// Whether it can act at the declared depth (handle rule).
    pub live: bool,
    /// Whether it is live and makes its authority usable, or acts on a delegated handle.
    pub key: bool,
    /// Whether some core module inside takes it.
    pub linked: bool,
}

/// What one import bears.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImportCapability {
    /// The name as in the binary, with the version that it means.
    pub name: String,
    /// Whether the catalogue knows it at this version.
    pub known: bool,
    /// The known name that it nearly is, or the same name if only the version is unknown.
    pub near_miss: Option<String>,
    /// Classes at the declared depth; never empty.
    pub declared: BTreeSet<String>,
    /// Classes at the linked depth; empty if nothing inside takes a function of it.
    pub linked: BTreeSet<String>,
    /// Its functions, in the order of the binary.
    pub functions: Vec<FunctionCapability>,
    /// Whether a handle arrives from the caller or from an import outside the catalogue.
    pub delegated: bool,
}

/// What a component can do, before configuration.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CapabilitySet {
    /// One entry for each import of the component, in the same order.
    pub imports: Vec<ImportCapability>,
    /// Classes of every top-level import.
    pub declared: BTreeSet<String>,
    /// Classes of the functions that some core module inside takes.
    pub linked: BTreeSet<String>,
    /// Declared classes that count against a ceiling: those that need a line there, with file
    /// classes only where a live key function exists.
    pub counted: BTreeSet<String>,
    /// Classes of being called through the exports.
    pub offered: BTreeSet<String>,
    /// Roles that exports imply: `agent`, `tool`.
    pub roles: BTreeSet<String>,
}

impl CapabilitySet {
    /// Derives the capabilities of a component.
    ///
    /// `linked ⊆ declared` holds for the whole set and for each import.
    #[must_use]
    pub fn of(component: &Component, catalogue: &Catalogue) -> Self {
        let entries: Vec<Found<'_>> =
            component.imports.iter().map(|import| Found::of(import, catalogue)).collect();
        let delegated = delegated(component, &entries);
        let given: BTreeSet<&str> =
            delegated.iter().flat_map(|(_, kinds)| kinds.iter().copied()).collect();
        let handles = fixpoint(component, &entries, &given, |_| true);
        let linked_handles = fixpoint(component, &entries, &given, |linked| linked);
        let mut set = Self::default();
        for (index, (import, found)) in component.imports.iter().zip(&entries).enumerate() {
            let delegated = delegated.iter().any(|(at, _)| *at == index);
            let capability =
                found.capability(import, (&handles, &linked_handles, &given), delegated);
            set.declared.extend(capability.declared.iter().cloned());
            set.linked.extend(capability.linked.iter().cloned());
            set.imports.push(capability);
        }
        set.counted = set.counted_against_ceilings(catalogue);
        for interface in component.exports.iter().filter_map(|export| export.interface.as_ref()) {
            if let Some(entry) = catalogue.export(interface) {
                set.offered.extend(entry.classes.iter().cloned());
            }
            // A role holds on any version track, so that no version walks around a rule.
            if let Some(role) = role(interface.unversioned().as_str()) {
                set.roles.insert(role.to_owned());
            } else if let Some(role) = catalogue.export(interface).and_then(|e| e.role.clone()) {
                set.roles.insert(role);
            }
        }
        set
    }

    fn counted_against_ceilings(&self, catalogue: &Catalogue) -> BTreeSet<String> {
        let filesystem =
            |class: &String| catalogue.class(class).is_some_and(|class| class.filesystem);
        let mut live_files = false;
        for import in &self.imports {
            for function in import.functions.iter().filter(|function| function.key) {
                live_files |= function.classes.iter().any(filesystem);
            }
        }
        let needs_line = |class: &&String| {
            catalogue.class(class).is_none_or(|class| !class.free && class.risk != Risk::None)
        };
        let counts = |class: &&String| live_files || !filesystem(class);
        self.declared.iter().filter(needs_line).filter(counts).cloned().collect()
    }

    /// Returns the names of the imports that bear `class` at the declared depth.
    pub fn bearers<'s>(&'s self, class: &'s str) -> impl Iterator<Item = &'s ImportCapability> {
        self.imports.iter().filter(move |import| import.declared.contains(class))
    }

    /// Returns the imports for which some declared class fits `test`.
    pub fn bearing<'s>(
        &'s self,
        catalogue: &'s Catalogue,
        test: impl Fn(&Class) -> bool + 's,
    ) -> impl Iterator<Item = &'s ImportCapability> {
        self.imports.iter().filter(move |import| {
            import.declared.iter().filter_map(|class| catalogue.class(class)).any(&test)
        })
    }

    /// Returns the names of the imports that the catalogue doesn't know.
    pub fn unknown(&self) -> impl Iterator<Item = &ImportCapability> {
        self.imports.iter().filter(|import| !import.known)
    }
}

/// Exports that make a component an agent on every version track.
fn role(unversioned: &str) -> Option<&'static str> {
    matches!(unversioned, "cosmonic:agent/run" | "ambit:agent/run").then_some("agent")
}

/// One import with what the catalogue says of it.
struct Found<'c> {
    entry: Option<&'c InterfaceEntry>,
    known: bool,
    near_miss: Option<String>,
    /// What the import is called in an `unknown:` class and in reports.
    name: String,
}

impl<'c> Found<'c> {
    fn of(import: &Import, catalogue: &'c Catalogue) -> Self {
        let name = match (&import.interface, &import.implements) {
            (Some(interface), None) => interface.to_string(),
            _ => import.name.clone(),
        };
        let short = match &import.interface {
            Some(interface) => interface.unversioned(),
            None => import.implements.clone().unwrap_or_else(|| import.name.clone()),
        };
        let (entry, known, near_miss) = match (import.sort, &import.interface) {
            _ if is_dependency(&import.name) => (None, true, None),
            (Sort::Core, _) => match catalogue.module(&import.name) {
                Some(entry) => (Some(entry), true, None),
                None => (None, false, catalogue.near_miss(&import.name)),
            },
            (Sort::Instance, Some(interface)) => match catalogue.interface(interface) {
                Match::Known(entry) => (Some(entry), true, None),
                Match::OtherTrack(entry) => {
                    let track = entry.track.as_deref().unwrap_or_default();
                    (Some(entry), false, Some(format!("{}@{track}", entry.interface)))
                }
                Match::Unknown => (None, false, catalogue.near_miss(&short)),
            },
            (Sort::Type | Sort::Module | Sort::Component, _) => (None, true, None),
            (Sort::Instance | Sort::Func | Sort::Value, _) => {
                (None, false, catalogue.near_miss(&short))
            }
        };
        Self { entry, known, near_miss, name }
    }

    fn unknown_class(&self, import: &Import) -> String {
        let name = match &import.interface {
            Some(interface) => interface.unversioned(),
            None => import.name.clone(),
        };
        format!("unknown:{name}")
    }

    fn function(&self, name: &str) -> Option<&'c FunctionEntry> {
        self.entry.and_then(|entry| entry.functions.get(name))
    }

    fn capability(
        &self,
        import: &Import,
        (handles, linked_handles, given): (&Handles<'_>, &Handles<'_>, &Handles<'_>),
        delegated: bool,
    ) -> ImportCapability {
        let mut capability = ImportCapability {
            name: self.name.clone(),
            known: self.known,
            near_miss: self.near_miss.clone(),
            declared: BTreeSet::new(),
            linked: BTreeSet::new(),
            functions: Vec::new(),
            delegated,
        };
        match import.sort {
            _ if is_dependency(&import.name) => {
                capability.declared.insert("code.import".to_owned());
                capability.linked.insert("code.import".to_owned());
                return capability;
            }
            Sort::Module | Sort::Component => {
                capability.declared.insert("code.import".to_owned());
                capability.linked.insert("code.import".to_owned());
                return capability;
            }
            Sort::Type => {
                capability.declared.insert("types".to_owned());
                return capability;
            }
            Sort::Func | Sort::Instance | Sort::Value | Sort::Core => {}
        }
        let unknown = self.unknown_class(import);
        for function in &import.functions {
            let entry = self.function(&function.name);
            let (mut classes, live, linked_live, key) = match entry {
                Some(entry) => {
                    let live = entry.acts && holds(handles, &entry.needs);
                    let linked_live = entry.acts && holds(linked_handles, &entry.needs);
                    let by_delegation = live
                        && !entry.needs.is_empty()
                        && entry.needs.iter().any(|kind| given.contains(kind.as_str()));
                    let mut classes: BTreeSet<String> = entry.classes.iter().cloned().collect();
                    if let Some((handle, extra)) = &entry.with
                        && handles.contains(handle.as_str())
                    {
                        classes.extend(extra.iter().cloned());
                    }
                    (classes, live, linked_live, live && (entry.key || by_delegation))
                }
                // A function that the catalogue doesn't list, of whatever interface.
                None => ([unknown.clone()].into(), true, true, true),
            };
            if !self.known && entry.is_some() {
                classes.insert(unknown.clone());
            }
            if live {
                capability.declared.extend(classes.iter().cloned());
            }
            if function.linked && linked_live {
                capability.linked.extend(classes.iter().cloned());
            }
            capability.functions.push(FunctionCapability {
                name: function.name.clone(),
                classes,
                live,
                key,
                linked: function.linked,
            });
        }
        if !self.known {
            capability.declared.insert(unknown);
        }
        if capability.declared.is_empty() {
            let types = self.entry.map_or("types", |entry| entry.types.as_str());
            capability.declared.insert(types.to_owned());
        }
        // What only names types, or moves bytes for others, is linked as such.
        if capability.linked.is_empty() && import.functions.iter().any(|f| f.linked) {
            let types = self.entry.map_or("types", |entry| entry.types.as_str());
            if capability.declared.contains(types) {
                capability.linked.insert(types.to_owned());
            }
        }
        capability
    }
}

/// Names that stand for code to be fetched, not for an interface (component model, "Import and
/// export definitions": dependency, URL and hash names).
fn is_dependency(name: &str) -> bool {
    ["unlocked-dep=", "locked-dep=", "url=", "relative-url=", "integrity="]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

type Handles<'a> = BTreeSet<&'a str>;

fn holds(handles: &Handles<'_>, needs: &[String]) -> bool {
    needs.iter().all(|kind| handles.contains(kind.as_str()))
}

/// Returns, for each import, the handle kinds that arrive without a function of the catalogue
/// making them: from callers, and from imports that the catalogue doesn't know.
fn delegated<'c>(component: &Component, entries: &[Found<'c>]) -> Vec<(usize, Vec<&'c str>)> {
    let mut found: BTreeMap<usize, BTreeSet<&'c str>> = BTreeMap::new();
    for handle in &component.handles {
        let outside = match &handle.via {
            HandleVia::ExportParameter { .. } | HandleVia::ReExport { .. } => true,
            HandleVia::ImportResult { import, function } => entries
                .get(*import)
                .is_none_or(|entry| !entry.known || entry.function(function).is_none()),
        };
        let Some(entry) = entries.get(handle.import).and_then(|found| found.entry) else {
            continue;
        };
        if outside && let Some(kinds) = entry.resources.get(&handle.resource) {
            let all = found.entry(handle.import).or_default();
            all.extend(kinds.iter().map(String::as_str));
        }
    }
    found.into_iter().map(|(import, kinds)| (import, kinds.into_iter().collect())).collect()
}

/// Returns every handle kind that can come to exist, starting from `given`.
fn fixpoint<'c>(
    component: &Component,
    entries: &[Found<'c>],
    given: &BTreeSet<&'c str>,
    counts: impl Fn(bool) -> bool,
) -> BTreeSet<&'c str> {
    let mut handles = given.clone();
    let mut functions: Vec<&'c FunctionEntry> = component
        .imports
        .iter()
        .zip(entries)
        .flat_map(|(import, found)| {
            let counted = import.functions.iter().filter(|function| counts(function.linked));
            counted.filter_map(|function| found.function(&function.name)).collect::<Vec<_>>()
        })
        .filter(|function| !function.mints.is_empty())
        .collect();
    loop {
        let before = functions.len();
        functions.retain(|function| {
            let live = holds(&handles, &function.needs);
            if live {
                handles.extend(function.mints.iter().map(String::as_str));
            }
            !live
        });
        if functions.len() == before {
            return handles;
        }
    }
}
