//! From the arguments of `reach` and `check` to workloads with their components' bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambit_engine::capability::CapabilitySet;
use ambit_engine::catalogue::Catalogue;
use ambit_engine::component::{Component, ReadOptions};
use ambit_engine::document::{DocumentLimits, Format};
use ambit_engine::limits::Limits;
use ambit_engine::reach::{Analysis, Bytes};
use ambit_engine::reference::ImageSource;
use ambit_engine::report::ErrorView;
use ambit_engine::workload::{
    self, ComponentSpec, Place, Skipped, Target, Workload, WorkloadError,
};

use super::{layout, read_file, read_stdin};
use crate::output::Failure;
use crate::render::snippet;

/// A component's bytes, read and understood.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) component: Component,
    pub(crate) capabilities: CapabilitySet,
}

/// A workload with what its components are.
#[derive(Debug)]
pub(crate) struct LoadedWorkload {
    /// The file as it was named.
    pub(crate) file: String,
    pub(crate) workload: Workload,
    /// The same workload read for target `ambit`.
    pub(crate) under_ambit: Workload,
    /// One for each component: the bytes, or why they are absent.
    pub(crate) components: Vec<Result<Loaded, String>>,
}

impl LoadedWorkload {
    /// The bytes as the engine takes them.
    pub(crate) fn bytes(&self) -> Vec<Bytes<'_>> {
        self.components
            .iter()
            .map(|loaded| match loaded {
                Ok(loaded) => Bytes::Present(Analysis {
                    component: &loaded.component,
                    capabilities: &loaded.capabilities,
                }),
                Err(reason) => Bytes::Absent(reason),
            })
            .collect()
    }

    /// The digests of the bytes.
    pub(crate) fn digests(&self) -> Vec<Option<String>> {
        let digest = |loaded: &Loaded| loaded.component.digest.to_string();
        self.components.iter().map(|loaded| loaded.as_ref().ok().map(digest)).collect()
    }
}

/// An input from which nothing could be read.
#[derive(Debug)]
pub(crate) struct UnreadInput {
    pub(crate) view: ErrorView,
    pub(crate) failure: Failure,
}

/// Everything that the arguments name.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) workloads: Vec<LoadedWorkload>,
    pub(crate) skipped: Vec<(String, Skipped)>,
    pub(crate) unread: Vec<UnreadInput>,
    /// The text of each file, for snippets.
    pub(crate) texts: BTreeMap<String, String>,
}

/// Reads a binary and derives its capabilities.
pub(crate) fn analyse(
    name: &str,
    bytes: &[u8],
    (limits, options): (&Limits, ReadOptions),
    catalogue: &Catalogue,
) -> Result<Loaded, Failure> {
    let component = Component::read_with(bytes, limits, options)
        .map_err(|error| Failure::new(error.code(), format!("{name}: {error}"), error.help()))?;
    let capabilities = CapabilitySet::of(&component, catalogue);
    Ok(Loaded { component, capabilities })
}

struct Loader<'a> {
    limits: &'a Limits,
    catalogue: &'a Catalogue,
    target: Option<Target>,
    replaced: BTreeMap<String, PathBuf>,
    used: std::collections::BTreeSet<String>,
}

/// Reads all files, in order. A file that can't be read is an error of its own and doesn't stop the
/// others.
pub(crate) fn load(
    files: &[String],
    components: &[String],
    target: Option<Target>,
    (limits, catalogue): (&Limits, &Catalogue),
) -> Result<Inputs, Failure> {
    if files.is_empty() {
        let help =
            "name a workload document or a component: `ambit check workload.yaml`".to_owned();
        return Err(Failure::new("usage-no-file", "no FILE is named", Some(help)));
    }
    let mut replaced = BTreeMap::new();
    for pair in components {
        let Some((name, path)) =
            pair.split_once('=').filter(|(n, p)| !n.is_empty() && !p.is_empty())
        else {
            let help = "write `--component web=build/web.wasm`".to_owned();
            let message = format!("`--component {pair}` is not NAME=PATH");
            return Err(Failure::new("usage-component", message, Some(help)));
        };
        if replaced.insert(name.to_owned(), PathBuf::from(path)).is_some() {
            let message = format!("`--component` names `{name}` twice");
            return Err(Failure::new("usage-component", message, None));
        }
    }
    let mut loader =
        Loader { limits, catalogue, target, replaced, used: std::collections::BTreeSet::new() };
    let mut inputs = Inputs::default();
    let mut stdin_taken = false;
    for file in files {
        if file == "-" && std::mem::replace(&mut stdin_taken, true) {
            return Err(Failure::new("usage-stdin", "standard input is named twice", None));
        }
        if let Err(error) = loader.file(file, &mut inputs) {
            let (failure, place) = *error;
            let help = failure.help.clone().unwrap_or_default();
            let view = ErrorView::of_input(&failure.code, file, &failure.message, &help, &place);
            inputs.unread.push(UnreadInput { view, failure });
        }
    }
    if let Some(name) = loader.replaced.keys().find(|name| !loader.used.contains(*name))
        && inputs.unread.is_empty()
    {
        let message = format!("`--component {name}=…` names no component of these files");
        let help = "the name is that of `components[].name` in the document".to_owned();
        return Err(Failure::new("usage-component", message, Some(help)));
    }
    Ok(inputs)
}

type FileError = Box<(Failure, Place)>;

fn at_start(failure: Failure) -> FileError {
    Box::new((failure, Place::default()))
}

impl Loader<'_> {
    fn file(&mut self, file: &str, inputs: &mut Inputs) -> Result<(), FileError> {
        if let source @ ImageSource::Layout { .. } = ImageSource::parse(file) {
            let ImageSource::Layout { path, tag } = &source else { return Ok(()) };
            let bytes =
                layout::component(Path::new(path), tag.as_deref(), self.limits.max_component_bytes)
                    .map_err(at_start)?;
            return self.bare(file, source.clone(), &bytes, inputs);
        }
        if file.starts_with("oci:") {
            return Err(at_start(not_fetched(file)));
        }
        let limit = self.limits.max_component_bytes.max(DocumentLimits::default().max_bytes);
        let path = Path::new(file);
        let bytes = if file == "-" {
            read_stdin(limit).map_err(at_start)?
        } else if !path.exists() && looks_like_reference(file) {
            return Err(at_start(not_fetched(file)));
        } else if path.join("oci-layout").is_file() {
            let bytes =
                layout::component(path, None, self.limits.max_component_bytes).map_err(at_start)?;
            let source = ImageSource::Layout { path: file.to_owned(), tag: None };
            return self.bare(file, source, &bytes, inputs);
        } else {
            read_file(path, limit).map_err(at_start)?
        };
        let extension = path.extension().and_then(|extension| extension.to_str());
        let binary = bytes.starts_with(b"\0asm");
        let text_format = ["(component", "(module", "(;", ";;"]
            .iter()
            .any(|start| bytes.trim_ascii_start().starts_with(start.as_bytes()));
        if binary || text_format || extension == Some("wasm") {
            return self.bare(file, ImageSource::File(file.to_owned()), &bytes, inputs);
        }
        let format = match extension {
            Some("json") => Format::Json,
            Some("yaml" | "yml") => Format::Yaml,
            _ => Format::Auto,
        };
        self.documents(file, &bytes, format, inputs)
    }

    fn bare(
        &mut self,
        file: &str,
        source: ImageSource,
        bytes: &[u8],
        inputs: &mut Inputs,
    ) -> Result<(), FileError> {
        let options = ReadOptions::default();
        let loaded =
            analyse(file, bytes, (self.limits, options), self.catalogue).map_err(at_start)?;
        let name =
            Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or(file).to_owned();
        let target = self.target.unwrap_or(Target::Ambit);
        let workload = Workload::bare(&name, file, source, target);
        inputs.workloads.push(LoadedWorkload {
            file: file.to_owned(),
            under_ambit: workload.clone(),
            workload,
            components: vec![Ok(loaded)],
        });
        Ok(())
    }

    fn documents(
        &mut self,
        file: &str,
        bytes: &[u8],
        format: Format,
        inputs: &mut Inputs,
    ) -> Result<(), FileError> {
        let limits = DocumentLimits::default();
        let text = String::from_utf8_lossy(bytes).into_owned();
        let found = workload::read(bytes, format, self.target, &limits)
            .map_err(|error| document_failure(file, &text, &error))?;
        let strict = workload::read(bytes, format, Some(Target::Ambit), &limits)
            .map_err(|error| document_failure(file, &text, &error))?;
        inputs.texts.insert(file.to_owned(), text);
        let base = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
        for (workload, under_ambit) in found.workloads.into_iter().zip(strict.workloads) {
            let mut components = Vec::new();
            for spec in &workload.components {
                components.push(
                    self.component(spec, &base)
                        .map_err(|failure| Box::new((failure, spec.image.place.clone())))?,
                );
            }
            inputs.workloads.push(LoadedWorkload {
                file: file.to_owned(),
                workload,
                under_ambit,
                components,
            });
        }
        inputs.skipped.extend(found.skipped.into_iter().map(|skipped| (file.to_owned(), skipped)));
        Ok(())
    }

    /// Finds a component's bytes; that they are nowhere is an answer, that they can't be read is
    /// not.
    fn component(
        &mut self,
        spec: &ComponentSpec,
        base: &Path,
    ) -> Result<Result<Loaded, String>, Failure> {
        let limit = self.limits.max_component_bytes;
        let bytes = if let Some(path) = self.replaced.get(&spec.name) {
            self.used.insert(spec.name.clone());
            (path.display().to_string(), read_file(path, limit)?)
        } else {
            match &spec.image.source {
                ImageSource::File(path) => {
                    let path = base.join(path);
                    (path.display().to_string(), read_file(&path, limit)?)
                }
                ImageSource::Layout { path, tag } => {
                    let path = base.join(path);
                    (path.display().to_string(), layout::component(&path, tag.as_deref(), limit)?)
                }
                ImageSource::Oci(reference) => {
                    return Ok(Err(format!(
                        "`{reference}` is in a registry, which this version doesn't read"
                    )));
                }
                ImageSource::Artifact(name) => {
                    return Ok(Err(format!("Artifact `{name}` is not in this input")));
                }
                ImageSource::Invalid(_) => return Ok(Err("its image is no reference".to_owned())),
            }
        };
        let (name, bytes) = bytes;
        analyse(&name, &bytes, (self.limits, ReadOptions::default()), self.catalogue).map(Ok)
    }
}

/// A name without a file behind it that would do as a reference.
pub(super) fn looks_like_reference(text: &str) -> bool {
    let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
    !matches!(extension, Some("wasm" | "yaml" | "yml" | "json"))
        && text.contains('/')
        && !text.starts_with(['.', '/'])
        && matches!(ImageSource::parse(text), ImageSource::Oci(_))
}

pub(super) fn not_fetched(reference: &str) -> Failure {
    Failure::new(
        "reference-not-fetched",
        format!("`{reference}` is in a registry, which this version doesn't read"),
        Some("give the component as a file or as `layout:DIR`".to_owned()),
    )
}

fn document_failure(file: &str, text: &str, error: &WorkloadError) -> FileError {
    let name = if file == "-" { "standard input" } else { file };
    let message = match error.position() {
        Some(position) => format!("{name}:{position}: {error}"),
        None => format!("{name}: {error}"),
    };
    let mut failure = Failure::new(error.code(), message, error.help());
    failure.snippet = error.position().map(|position| {
        snippet::failure(error.code(), &error.to_string(), (name, text, position), error.help())
    });
    Box::new((failure, Place::default()))
}
