//! Bounds on what the engine reads, so that hostile input costs bounded time and memory.
//!
//! Every parser here takes its limits as an argument; nothing reads them from the process.
//! Defaults are those of the reference page `docs/reference/limits.md`.

/// Bounds for reading one component or core module.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Size of the binary in bytes. Default 64 MiB.
    pub max_component_bytes: usize,
    /// Nesting of components and modules in one another. Default 1 000.
    pub max_nesting: usize,
    /// Components and modules at any depth. Validating one costs time in the number of those before
    /// it. Default 4 096.
    pub max_nested: usize,
    /// Imports at the top level. Default 4 096.
    pub max_imports: usize,
    /// Functions and resources over all top-level imports, and over all top-level exports; also
    /// handles that come from outside. Default 65 536.
    pub max_functions: usize,
    /// Core and component instances made while linking symbolically. Default 4 096.
    pub max_instances: usize,
    /// Steps of the symbolic linker, one for each definition or export handled and more for what
    /// costs more. Default 4 000 000.
    pub max_link_steps: usize,
    /// Distinct strings kept for each kind of hint. Default 256.
    pub max_hints: usize,
    /// Bytes that an embedded compressed bill of materials may inflate to. Default 8 MiB.
    pub max_inflated_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_component_bytes: 64 << 20,
            max_nesting: 1_000,
            max_nested: 4_096,
            max_imports: 4_096,
            max_functions: 65_536,
            max_instances: 4_096,
            max_link_steps: 4_000_000,
            max_hints: 256,
            max_inflated_bytes: 8 << 20,
        }
    }
}

impl Limits {
    /// Returns these limits with another bound on the size of the binary.
    #[must_use]
    pub fn with_max_component_bytes(mut self, max_component_bytes: usize) -> Self {
        self.max_component_bytes = max_component_bytes;
        self
    }
}
