//! One pass over the payloads of a binary.

use wasmparser::types::Types;
use wasmparser::{
    ComponentExport, ComponentImport, ComponentName, FuncValidatorAllocations, KnownCustom, Parser,
    Payload, ValidPayload, Validator, WasmFeatures,
};

use super::define::Definitions;
use super::hints::Collector;
use super::types::{Resources, Signatures};
use super::{
    CodeCheck, Component, ComponentError, HintScan, Kind, Linkage, ReadOptions, executor, link,
    module, types,
};
use crate::digest::Digest;
use crate::limits::Limits;

/// The header of every binary: `\0asm`, a version and a layer, both 16 bits little endian.
const MAGIC: &[u8] = b"\0asm";

pub(super) fn read(
    bytes: &[u8],
    limits: &Limits,
    options: ReadOptions,
) -> Result<Component, ComponentError> {
    let kind = sniff(bytes, limits)?;
    // Most binaries pass under the executor's features at once. One that doesn't is read again
    // with all features, so that it can be explained; what the executor said goes along.
    let (walk, complaint) =
        match Walk::new(bytes, kind, executor::executor_features(), limits, options).run() {
            Ok(walk) => (walk, None),
            Err(ComponentError::Invalid { reason, .. }) => {
                let features = executor::describing_features();
                let walk = Walk::new(bytes, kind, features, limits, options).run()?;
                (walk, Some(reason))
            }
            Err(other) => return Err(other),
        };
    let mut component = walk.finish(bytes, kind, options)?;
    component.executor_notes = executor::notes(&component, complaint);
    Ok(component)
}

fn sniff(bytes: &[u8], limits: &Limits) -> Result<Kind, ComponentError> {
    if bytes.is_empty() {
        return Err(ComponentError::Empty);
    }
    if bytes.len() > limits.max_component_bytes {
        return Err(ComponentError::TooLarge {
            found: bytes.len(),
            limit: limits.max_component_bytes,
        });
    }
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        let text = bytes.trim_ascii_start();
        if [&b"(component"[..], b"(module", b"(;", b";;"].iter().any(|s| text.starts_with(s)) {
            return Err(ComponentError::Text);
        }
        if MAGIC.starts_with(bytes) {
            return Err(truncated(bytes.len()));
        }
        let start = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
        return Err(ComponentError::NotWasm { start: start.join(" ") });
    };
    let Some(&[version_low, version_high, layer_low, layer_high]) = rest.first_chunk::<4>() else {
        return Err(truncated(bytes.len()));
    };
    match (
        u16::from_le_bytes([version_low, version_high]),
        u16::from_le_bytes([layer_low, layer_high]),
    ) {
        (_, 0) => Ok(Kind::CoreModule),
        (_, 1) => Ok(Kind::Component),
        (version, layer) => Err(ComponentError::UnknownLayer { version, layer }),
    }
}

fn truncated(offset: usize) -> ComponentError {
    ComponentError::Invalid { offset, reason: "the header is cut short".to_owned() }
}

struct Walk<'a, 'l> {
    bytes: &'a [u8],
    limits: &'l Limits,
    options: ReadOptions,
    kind: Kind,
    validator: Validator,
    definitions: Definitions<'a>,
    component_imports: Vec<ComponentImport<'a>>,
    component_exports: Vec<ComponentExport<'a>>,
    imports: Vec<super::Import>,
    exports: Vec<super::Export>,
    hints: Collector,
    types: Option<Types>,
}

impl<'a, 'l> Walk<'a, 'l> {
    fn new(
        bytes: &'a [u8],
        kind: Kind,
        features: WasmFeatures,
        limits: &'l Limits,
        options: ReadOptions,
    ) -> Self {
        Self {
            bytes,
            limits,
            options,
            kind,
            validator: Validator::new_with_features(features),
            definitions: Definitions::for_component(),
            component_imports: Vec::new(),
            component_exports: Vec::new(),
            imports: Vec::new(),
            exports: Vec::new(),
            hints: Collector::new(limits),
            types: None,
        }
    }

    fn run(mut self) -> Result<Self, ComponentError> {
        let mut nested = 0_usize;
        let mut allocations = FuncValidatorAllocations::default();
        let mut parser = Parser::new(0);
        parser.set_features(*self.validator.features());
        for payload in parser.parse_all(self.bytes) {
            let payload = payload?;
            if let Payload::ModuleSection { unchecked_range, .. }
            | Payload::ComponentSection { unchecked_range, .. } = &payload
            {
                let offset = unchecked_range.start;
                nested = nested.saturating_add(1);
                if nested > self.limits.max_nested {
                    return Err(ComponentError::TooManyNested {
                        limit: self.limits.max_nested,
                        offset,
                    });
                }
                if self.definitions.open_depth() >= self.limits.max_nesting {
                    return Err(ComponentError::TooDeep { limit: self.limits.max_nesting, offset });
                }
            }
            match self.validator.payload(&payload)? {
                ValidPayload::Func(function, body) => {
                    if self.options.code == CodeCheck::Validate {
                        let mut function =
                            function.into_validator(std::mem::take(&mut allocations));
                        function.validate(&body)?;
                        allocations = function.into_allocations();
                    }
                }
                ValidPayload::End(types) => self.types = Some(types),
                ValidPayload::Ok | ValidPayload::Parser(_) => {}
            }
            match self.kind {
                Kind::Component => self.component_payload(&payload)?,
                Kind::CoreModule => self.module_payload(&payload)?,
            }
            if self.options.hints == HintScan::Collect {
                let root = self.definitions.open_depth() <= 1;
                self.hints.payload(&payload, root);
            }
        }
        Ok(self)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the linker's definitions take the other sections in"
    )]
    fn component_payload(&mut self, payload: &Payload<'a>) -> Result<(), ComponentError> {
        let root = self.definitions.open_depth() == 1;
        match payload {
            Payload::ComponentImportSection(section) if root => {
                for import in section.clone() {
                    self.component_imports.push(import?);
                    if self.component_imports.len() > self.limits.max_imports {
                        return Err(ComponentError::TooManyImports {
                            found: self.component_imports.len(),
                            limit: self.limits.max_imports,
                        });
                    }
                }
            }
            Payload::ComponentExportSection(section) if root => {
                for export in section.clone() {
                    self.component_exports.push(export?);
                }
            }
            Payload::CustomSection(section) => {
                // The name is a label for attribution only, and printed as unverified.
                if let KnownCustom::ComponentName(names) = section.as_known()
                    && let Some(component) = self.definitions.open_component()
                {
                    for name in names.into_iter().take(16) {
                        if let Ok(ComponentName::Component { name, .. }) = name {
                            component.name = Some(super::hints::printable(name, 80));
                        }
                    }
                }
            }
            _ => {}
        }
        self.definitions.payload(payload)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a core module asks for things in its import section only"
    )]
    fn module_payload(&mut self, payload: &Payload<'a>) -> Result<(), ComponentError> {
        match payload {
            Payload::ImportSection(section) => {
                module::imports(section.clone(), &mut self.imports, self.limits)
            }
            Payload::ExportSection(section) => module::exports(section.clone(), &mut self.exports),
            _ => Ok(()),
        }
    }

    fn finish(
        self,
        bytes: &[u8],
        kind: Kind,
        options: ReadOptions,
    ) -> Result<Component, ComponentError> {
        let mut component = Component {
            digest: Digest::of(bytes),
            size: bytes.len(),
            kind,
            imports: self.imports,
            exports: self.exports,
            handles: Vec::new(),
            linkage: Linkage { depth: 1, ..Linkage::default() },
            code: options.code,
            executor_notes: Vec::new(),
            hints: self.hints.finish(),
        };
        let Some(found) = self.types else {
            return Err(ComponentError::Invalid {
                offset: bytes.len(),
                reason: "the binary ends early".to_owned(),
            });
        };
        if kind == Kind::CoreModule {
            return Ok(component);
        }
        let found = found.as_ref();
        let mut resources = Resources::default();
        let mut signatures = Signatures::default();
        let mut functions = 0_usize;
        for (index, import) in self.component_imports.iter().enumerate() {
            let collected = (&mut resources, &mut signatures);
            let import = types::import(found, import, index, collected, self.limits)?;
            for named in [import.functions.len(), import.resources.len(), import.asks_for.len()] {
                functions = functions.saturating_add(named);
            }
            if functions > self.limits.max_functions {
                return Err(ComponentError::TooManyFunctions { limit: self.limits.max_functions });
            }
            component.imports.push(import);
        }
        for export in &self.component_exports {
            component.exports.push(types::export(found, export, &mut signatures, self.limits)?);
        }
        component.handles = types::handles(found, &resources, &signatures, self.limits)?;
        component.linkage = link::link(
            &self.definitions,
            &mut component.imports,
            &mut component.exports,
            self.limits,
        );
        Ok(component)
    }
}
