//! Why bytes are not a component that can be judged.

/// There is no [`Component`](super::Component), and so nothing is known about the bytes.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ComponentError {
    /// There are no bytes.
    #[error("the file is empty")]
    Empty,
    /// The bytes look like the text format.
    #[error("expected a binary, found WebAssembly text")]
    Text,
    /// The bytes don't start with the magic number `\0asm`.
    #[error("not a WebAssembly binary: it starts with {start}, not with `\\0asm`")]
    NotWasm {
        /// The first bytes, in hexadecimal.
        start: String,
    },
    /// The header names a layer other than 0 (core module) and 1 (component).
    #[error("unknown WebAssembly layer {layer} (version {version})")]
    UnknownLayer {
        /// The version field of the header.
        version: u16,
        /// The layer field of the header.
        layer: u16,
    },
    /// The binary breaks the specification.
    #[error("invalid binary at offset {offset:#x}: {reason}")]
    Invalid {
        /// Bytes from the start of the outermost binary.
        offset: usize,
        /// What the validator says.
        reason: String,
    },
    /// The binary is larger than the limit.
    #[error("{found} bytes are over the limit of {limit}")]
    TooLarge {
        /// The size in bytes.
        found: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Components or modules are nested deeper than the limit.
    #[error("nesting deeper than the limit of {limit} at offset {offset:#x}")]
    TooDeep {
        /// The limit.
        limit: usize,
        /// Bytes from the start of the outermost binary.
        offset: usize,
    },
    /// There are more components and modules, at any depth, than the limit.
    #[error("more than {limit} nested components and modules at offset {offset:#x}")]
    TooManyNested {
        /// The limit.
        limit: usize,
        /// Bytes from the start of the outermost binary.
        offset: usize,
    },
    /// The outermost layer imports more than the limit.
    #[error("{found} imports are over the limit of {limit}")]
    TooManyImports {
        /// How many imports were seen when reading stopped.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A name is longer than the limit.
    #[error("a name of {found} bytes is over the limit of {limit}")]
    NameTooLong {
        /// Its length in bytes, with the names of the instances around it.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The imports, or the exports, hold more functions and resources than the limit.
    #[error("more than {limit} functions and resources of imports or of exports")]
    TooManyFunctions {
        /// The limit.
        limit: usize,
    },
    /// The component sections define more items than the limit.
    #[error("more than {limit} definitions in component sections")]
    TooManyDefinitions {
        /// The limit.
        limit: usize,
    },
}

impl ComponentError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "component-empty",
            Self::Text => "component-text",
            Self::NotWasm { .. } => "component-not-wasm",
            Self::UnknownLayer { .. } => "component-unknown-layer",
            Self::Invalid { .. } => "component-invalid",
            Self::TooLarge { .. } => "component-too-large",
            Self::TooDeep { .. } => "component-too-deep",
            Self::TooManyNested { .. } => "component-too-many-nested",
            Self::TooManyImports { .. } => "component-too-many-imports",
            Self::NameTooLong { .. } => "component-name-too-long",
            Self::TooManyFunctions { .. } => "component-too-many-functions",
            Self::TooManyDefinitions { .. } => "component-too-many-definitions",
        }
    }

    /// Returns what to do next, where there is something.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Empty => "check that the build or the download finished".to_owned(),
            Self::Text => "assemble it first: `wasm-tools parse FILE -o FILE.wasm`".to_owned(),
            Self::NotWasm { .. } => {
                "give a `.wasm` binary; an archive or a compiled `.cwasm` can't be read".to_owned()
            }
            Self::UnknownLayer { .. } => {
                "build it with a toolchain that writes components (layer 1) or core modules (layer 0)"
                    .to_owned()
            }
            Self::Invalid { .. } => {
                "rebuild or fetch it again; `wasm-tools validate` shows the same place".to_owned()
            }
            Self::TooLarge { .. } => {
                "raise `limits.component_bytes` in `ambit.yaml`, up to its hard cap".to_owned()
            }
            Self::TooDeep { .. }
            | Self::TooManyNested { .. }
            | Self::TooManyImports { .. }
            | Self::NameTooLong { .. }
            | Self::TooManyFunctions { .. }
            | Self::TooManyDefinitions { .. } => {
                "no toolchain is known to write such a binary; treat it as hostile".to_owned()
            }
        })
    }

    /// Returns where in the binary reading stopped, if there is one place.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::Invalid { offset, .. }
            | Self::TooDeep { offset, .. }
            | Self::TooManyNested { offset, .. } => Some(*offset),
            Self::Empty | Self::Text | Self::NotWasm { .. } | Self::UnknownLayer { .. } => Some(0),
            Self::TooLarge { .. }
            | Self::TooManyImports { .. }
            | Self::NameTooLong { .. }
            | Self::TooManyFunctions { .. }
            | Self::TooManyDefinitions { .. } => None,
        }
    }
}

impl From<wasmparser::BinaryReaderError> for ComponentError {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::Invalid { offset: error.offset(), reason: error.message().to_owned() }
    }
}
