//! One WebAssembly binary, read: what it imports, who inside it uses each import, what it exports,
//! and what it says about itself.
//!
//! Reading validates the structure with a fixed feature set and our [`Limits`]; function bodies
//! are skipped unless [`CodeCheck::Validate`] asks for them, since no import hides in one. The
//! module knows names and types only. What an import *means* is the catalogue's business
//! ([`crate::catalogue`]).
//!
//! Invariants: every import of the outermost component is in [`Component::imports`], whatever its
//! sort; nothing in a custom section influences anything but [`Component::hints`]; an error means
//! that there is no component, never a partial one.

mod define;
mod error;
mod executor;
mod hints;
mod link;
mod module;
mod read;
mod types;

pub use error::ComponentError;
pub use executor::ExecutorNote;
pub use hints::{CustomSection, Dependency, Hints, Producer, StringHint};

use crate::digest::Digest;
use crate::interface::InterfaceName;
use crate::limits::Limits;

/// Whether function bodies are decoded and type-checked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CodeCheck {
    /// Bodies are skipped by their length. Imports, exports and links are known all the same.
    #[default]
    Skip,
    /// Bodies are validated as a runtime would, at the cost of reading them.
    Validate,
}

/// Whether the strings of data segments and the metadata sections are collected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HintScan {
    /// No hints. Decisions never need them.
    #[default]
    Skip,
    /// Hints, up to the limits.
    Collect,
}

/// How a binary is read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReadOptions {
    /// What happens to function bodies.
    pub code: CodeCheck,
    /// What happens to hints.
    pub hints: HintScan,
}

/// What the outermost layer of a binary is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A component (layer 1 of the binary format).
    Component,
    /// A core module (layer 0). It imports functions, not interfaces.
    CoreModule,
}

impl Kind {
    /// Returns the stable word for this kind: `component` or `core-module`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::CoreModule => "core-module",
        }
    }
}

/// The sort of an imported or exported item, with the Component Model's words.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Sort {
    /// A component-level function.
    Func,
    /// An instance, usually of an interface.
    Instance,
    /// A type.
    Type,
    /// A value.
    Value,
    /// A core module: code that arrives from outside.
    Module,
    /// A component: code that arrives from outside.
    Component,
    /// The imports that a core module takes from one module name.
    Core,
}

impl Sort {
    /// Returns the stable word for this sort.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Func => "func",
            Self::Instance => "instance",
            Self::Type => "type",
            Self::Value => "value",
            Self::Module => "module",
            Self::Component => "component",
            Self::Core => "core",
        }
    }
}

/// One function behind an import.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Function {
    /// The name as in the binary: `get-stdout`, `[method]descriptor.open-at`.
    pub name: String,
    /// Whether its type is `async`. This never changes what it can reach.
    pub asynchronous: bool,
    /// Whether some core module inside takes it, or an export hands it on.
    pub linked: bool,
}

/// One item that the outermost component or module asks its host for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Import {
    /// The name as in the binary, without a version suffix.
    pub name: String,
    /// The interface that the import says it implements, if it has a name of its own.
    pub implements: Option<String>,
    /// The rest of a canonical version, as in `@0.2` + `.12`.
    pub version_suffix: Option<String>,
    /// A resource that the publisher suggests; unverified.
    pub external_id: Option<String>,
    /// The interface that the name (or `implements`) names; `None` for every other form.
    pub interface: Option<InterfaceName>,
    /// The sort of the item.
    pub sort: Sort,
    /// Its functions, in the order of the binary. For a function import, itself.
    pub functions: Vec<Function>,
    /// Names of the resources that it defines.
    pub resources: Vec<String>,
    /// How many types other than resources it defines.
    pub type_count: usize,
    /// For an imported component: the names that it would import in turn.
    pub asks_for: Vec<String>,
    /// The nested components that take functions of this import, by path from the root (`/`).
    pub used_by: Vec<NestedPath>,
}

/// Where a nested component stands: `/` for the root, then one step a nesting level.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NestedPath {
    /// The path in the form `/component[1]/component[0]`, counted in definition order.
    pub path: String,
    /// The name that the innermost component gives itself; unverified.
    pub name: Option<String>,
}

/// One item that the component offers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Export {
    /// The name as in the binary.
    pub name: String,
    /// The interface that it names, if it does.
    pub interface: Option<InterfaceName>,
    /// The sort of the item.
    pub sort: Sort,
    /// Its functions, in the order of the binary.
    pub functions: Vec<String>,
    /// Set when the export hands on functions of an import untouched: that import's name.
    pub passes_through: Option<String>,
}

/// How a handle to an imported resource can come to exist without a function of the interface
/// itself making one.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct HandleSource {
    /// Index into [`Component::imports`] of the import that defines the resource.
    pub import: usize,
    /// The resource's name.
    pub resource: String,
    /// Where the handle comes from.
    pub via: HandleVia,
}

/// The way that a handle takes into the component.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HandleVia {
    /// The caller of an export passes it in.
    ExportParameter {
        /// The function, written `export-name.function` or `function`.
        function: String,
    },
    /// An export offers the resource's type, so that callers can hold handles.
    ReExport {
        /// The export's name.
        export: String,
    },
    /// A function of another import returns it.
    ImportResult {
        /// Index into [`Component::imports`].
        import: usize,
        /// The function's name.
        function: String,
    },
}

/// Whether the set of linked functions is exact.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Linkage {
    /// Reasons why more is taken to be linked than may be; empty if the set is exact.
    pub reasons: Vec<String>,
    /// How many core modules are inside, at any depth.
    pub modules: usize,
    /// How many components are inside, at any depth, the root not counted.
    pub components: usize,
    /// The deepest nesting; 1 for a component with nothing but core modules inside.
    pub depth: usize,
}

/// A binary that has been read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Component {
    /// The digest of all its bytes, custom sections included.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: usize,
    /// What its outermost layer is.
    pub kind: Kind,
    /// Every import of the outermost layer, in the order of the binary.
    pub imports: Vec<Import>,
    /// Every export of the outermost layer, in the order of the binary.
    pub exports: Vec<Export>,
    /// Handles that can come from outside the interface that defines them.
    pub handles: Vec<HandleSource>,
    /// How sure the linked depth is, and how much is nested.
    pub linkage: Linkage,
    /// Whether function bodies were validated.
    pub code: CodeCheck,
    /// Why our executor's parser or linker would refuse it, if it would.
    pub executor_notes: Vec<ExecutorNote>,
    /// What the binary says about itself; unverified, and empty unless asked for.
    pub hints: Hints,
}

impl Component {
    /// Reads a binary with the default options.
    ///
    /// # Errors
    ///
    /// As [`Component::read_with`].
    ///
    /// # Examples
    /// ```
    /// use ambit_engine::{component::Component, limits::Limits};
    ///
    /// let empty_component = b"\0asm\x0d\0\x01\0";
    /// let component = Component::read(empty_component, &Limits::default())?;
    /// assert!(component.imports.is_empty());
    /// # Ok::<(), ambit_engine::component::ComponentError>(())
    /// ```
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self, ComponentError> {
        Self::read_with(bytes, limits, ReadOptions::default())
    }

    /// Reads a binary.
    ///
    /// Time and memory are linear in the size of `bytes`, up to the limits.
    ///
    /// # Errors
    ///
    /// [`ComponentError::Empty`], [`ComponentError::Text`] and [`ComponentError::NotWasm`] for
    /// bytes that are no binary of WebAssembly, [`ComponentError::UnknownLayer`] for a layer that
    /// is neither component nor core module, [`ComponentError::Invalid`] with the offset for a
    /// binary that breaks the specification, and one variant for each limit.
    pub fn read_with(
        bytes: &[u8],
        limits: &Limits,
        options: ReadOptions,
    ) -> Result<Self, ComponentError> {
        read::read(bytes, limits, options)
    }

    /// Returns how many functions the imports hold.
    #[must_use]
    pub fn function_count(&self) -> usize {
        self.imports.iter().map(|import| import.functions.len()).sum()
    }

    /// Returns how many functions of the imports are linked.
    #[must_use]
    pub fn linked_count(&self) -> usize {
        self.imports.iter().flat_map(|import| &import.functions).filter(|f| f.linked).count()
    }
}
