//! From the arguments of `reach` and `check` to workloads with their components' bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambit_engine::capability::CapabilitySet;
use ambit_engine::catalogue::Catalogue;
use ambit_engine::component::{Component, ReadOptions};
use ambit_engine::document::{DocumentLimits, Format};
use ambit_engine::evidence::Supply;
use ambit_engine::limits::Limits;
use ambit_engine::reach::{Analysis, Bytes};
use ambit_engine::reference::{ImageSource, ReferenceError};
use ambit_engine::report::ErrorView;
use ambit_engine::workload::{
    self, ComponentSpec, Place, Skipped, Target, Workload, WorkloadError,
};

use super::{read_file, read_stdin};
use crate::fetch::{Answer, Fetch, Wanted};
use crate::output::Failure;
use crate::render::snippet;

/// A component's bytes, read and understood.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) component: Component,
    pub(crate) capabilities: CapabilitySet,
    /// The bytes themselves, where somebody asked to keep them.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Whether the bytes of components are kept after they are understood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Keep {
    /// What they say is enough.
    Nothing,
    /// Somebody will run them.
    Bytes,
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
    /// One for each component: where the bytes came from and what vouches for them.
    pub(crate) supplies: Vec<Supply>,
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
    Ok(Loaded { component, capabilities, bytes: None })
}

struct Loader<'a> {
    limits: &'a Limits,
    catalogue: &'a Catalogue,
    target: Option<Target>,
    keep: Keep,
    replaced: BTreeMap<String, PathBuf>,
    used: std::collections::BTreeSet<String>,
    /// What has to be fetched, each once, in the order of its first mention.
    wanted: Vec<Wanted>,
}

/// A workload while some of its components are still to come.
struct Draft {
    file: String,
    workload: Workload,
    under_ambit: Workload,
    components: Vec<Part>,
}

/// A component while its bytes may still be to come.
enum Part {
    Here(Box<Loaded>),
    Absent(String),
    /// At this index of what is fetched.
    Wanted(usize),
}

/// Reads all files, in order, and fetches what they name, all at once. A file that can't be read is
/// an error of its own and doesn't stop the others.
pub(crate) fn load(
    arguments: &crate::args::Inputs,
    (target, keep): (Option<Target>, Keep),
    (limits, catalogue): (&Limits, &Catalogue),
    fetch: &dyn Fetch,
) -> Result<Inputs, Failure> {
    if arguments.files.is_empty() {
        let help =
            "name a workload document or a component: `ambit check workload.yaml`".to_owned();
        return Err(Failure::new("usage-no-file", "no FILE is named", Some(help)));
    }
    let mut loader = Loader {
        limits,
        catalogue,
        target,
        keep,
        replaced: replacements(&arguments.component)?,
        used: std::collections::BTreeSet::new(),
        wanted: Vec::new(),
    };
    let mut inputs = Inputs::default();
    let mut drafts = Vec::new();
    let mut stdin_taken = false;
    for file in &arguments.files {
        if file == "-" && std::mem::replace(&mut stdin_taken, true) {
            return Err(Failure::new("usage-stdin", "standard input is named twice", None));
        }
        if let Err(error) = loader.file(file, &mut inputs, &mut drafts) {
            inputs.unread(file, *error);
        }
    }
    if let Some(name) = loader.replaced.keys().find(|name| !loader.used.contains(*name))
        && inputs.unread.is_empty()
    {
        let message = format!("`--component {name}=…` names no component of these files");
        let help = "the name is that of `components[].name` in the document".to_owned();
        return Err(Failure::new("usage-component", message, Some(help)));
    }
    let fetched =
        if loader.wanted.is_empty() { Vec::new() } else { fetch.fetch(&loader.wanted)? };
    for draft in drafts {
        let file = draft.file.clone();
        match loader.finish(draft, &fetched) {
            Ok(workload) => inputs.workloads.push(workload),
            Err(error) => inputs.unread(&file, *error),
        }
    }
    Ok(inputs)
}

/// Reads the pairs of `--component`.
fn replacements(pairs: &[String]) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let mut replaced = BTreeMap::new();
    for pair in pairs {
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
    Ok(replaced)
}

impl Inputs {
    fn unread(&mut self, file: &str, (failure, place): (Failure, Place)) {
        let help = failure.help.clone().unwrap_or_default();
        let view = ErrorView::of_input(&failure.code, file, &failure.message, &help, &place);
        self.unread.push(UnreadInput { view, failure });
    }
}

type FileError = Box<(Failure, Place)>;

fn at_start(failure: Failure) -> FileError {
    Box::new((failure, Place::default()))
}

impl Loader<'_> {
    fn file(
        &mut self,
        file: &str,
        inputs: &mut Inputs,
        drafts: &mut Vec<Draft>,
    ) -> Result<(), FileError> {
        let path = Path::new(file);
        let source = ImageSource::parse(file);
        let reference = file.starts_with("oci:") || (!path.exists() && looks_like_reference(file));
        match &source {
            ImageSource::Layout { .. } => {
                drafts.push(self.fetched(file, source));
                return Ok(());
            }
            ImageSource::Oci(_) if reference => {
                drafts.push(self.fetched(file, source));
                return Ok(());
            }
            ImageSource::Invalid(error) if file.starts_with("oci:") => {
                return Err(at_start(invalid_reference(file, error)));
            }
            ImageSource::Oci(_)
            | ImageSource::File(_)
            | ImageSource::Artifact(_)
            | ImageSource::Invalid(_) => {}
        }
        if path.join("oci-layout").is_file() {
            let source = ImageSource::Layout { path: file.to_owned(), tag: None, digest: None };
            drafts.push(self.fetched(file, source));
            return Ok(());
        }
        let limit = self.limits.max_component_bytes.max(DocumentLimits::default().max_bytes);
        let bytes = if file == "-" { read_stdin(limit) } else { read_file(path, limit) };
        let bytes = bytes.map_err(at_start)?;
        let extension = path.extension().and_then(|extension| extension.to_str());
        let binary = bytes.starts_with(b"\0asm");
        let text_format = ["(component", "(module", "(;", ";;"]
            .iter()
            .any(|start| bytes.trim_ascii_start().starts_with(start.as_bytes()));
        if binary || text_format || extension == Some("wasm") {
            let loaded = self.analyse(file, &bytes).map_err(at_start)?;
            let source = ImageSource::File(file.to_owned());
            drafts.push(self.bare(file, source, Part::Here(Box::new(loaded))));
            return Ok(());
        }
        let format = match extension {
            Some("json") => Format::Json,
            Some("yaml" | "yml") => Format::Yaml,
            _ => Format::Auto,
        };
        self.documents(file, &bytes, format, (inputs, drafts))
    }

    fn analyse(&self, name: &str, bytes: &[u8]) -> Result<Loaded, Failure> {
        let loaded = analyse(name, bytes, (self.limits, ReadOptions::default()), self.catalogue);
        loaded.map(|mut loaded| {
            loaded.bytes = (self.keep == Keep::Bytes).then(|| bytes.to_vec());
            loaded
        })
    }

    fn fetched(&mut self, file: &str, source: ImageSource) -> Draft {
        let part = self.want(source.clone());
        self.bare(file, source, part)
    }

    fn want(&mut self, source: ImageSource) -> Part {
        let wanted = Wanted { source };
        let at = self.wanted.iter().position(|known| *known == wanted);
        Part::Wanted(at.unwrap_or_else(|| {
            self.wanted.push(wanted);
            self.wanted.len().saturating_sub(1)
        }))
    }

    fn bare(&self, file: &str, source: ImageSource, part: Part) -> Draft {
        let name = match &source {
            ImageSource::Oci(_) | ImageSource::Layout { .. } => file,
            ImageSource::File(_) | ImageSource::Artifact(_) | ImageSource::Invalid(_) => {
                Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or(file)
            }
        };
        let target = self.target.unwrap_or(Target::Ambit);
        let workload = Workload::bare(name, file, source, target);
        Draft {
            file: file.to_owned(),
            under_ambit: workload.clone(),
            workload,
            components: vec![part],
        }
    }

    fn documents(
        &mut self,
        file: &str,
        bytes: &[u8],
        format: Format,
        (inputs, drafts): (&mut Inputs, &mut Vec<Draft>),
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
            drafts.push(Draft { file: file.to_owned(), workload, under_ambit, components });
        }
        inputs.skipped.extend(found.skipped.into_iter().map(|skipped| (file.to_owned(), skipped)));
        Ok(())
    }

    /// Finds a component's bytes; that they are nowhere is an answer, that they can't be read is
    /// not.
    fn component(&mut self, spec: &ComponentSpec, base: &Path) -> Result<Part, Failure> {
        let limit = self.limits.max_component_bytes;
        let path = if let Some(path) = self.replaced.get(&spec.name) {
            self.used.insert(spec.name.clone());
            path.clone()
        } else {
            match &spec.image.source {
                ImageSource::File(path) => base.join(path),
                ImageSource::Layout { path, tag, digest } => {
                    let path = base.join(path).display().to_string();
                    let (tag, digest) = (tag.clone(), *digest);
                    return Ok(self.want(ImageSource::Layout { path, tag, digest }));
                }
                ImageSource::Oci(_) => return Ok(self.want(spec.image.source.clone())),
                ImageSource::Artifact(name) => {
                    return Ok(Part::Absent(format!("Artifact `{name}` is not in this input")));
                }
                ImageSource::Invalid(_) => {
                    return Ok(Part::Absent("its image is no reference".to_owned()));
                }
            }
        };
        let bytes = read_file(&path, limit)?;
        self.analyse(&path.display().to_string(), &bytes).map(|loaded| Part::Here(Box::new(loaded)))
    }

    /// Puts what was fetched into its places.
    fn finish(&self, draft: Draft, fetched: &[Answer]) -> Result<LoadedWorkload, FileError> {
        let bare = draft.workload.kind == "Component" && draft.workload.api_version.is_empty();
        let mut components = Vec::new();
        let mut supplies = Vec::new();
        for (part, spec) in draft.components.into_iter().zip(&draft.workload.components) {
            let (component, supply) = match part {
                Part::Here(loaded) => (Ok(*loaded), Supply::default()),
                Part::Absent(reason) => (Err(reason), Supply::default()),
                Part::Wanted(at) => match fetched.get(at) {
                    Some(Ok(found)) => {
                        let loaded = self.analyse(&spec.image.text, &found.bytes);
                        let loaded = loaded
                            .map_err(|failure| Box::new((failure, spec.image.place.clone())))?;
                        (Ok(loaded), found.supply.clone())
                    }
                    Some(Err(failure)) if bare => return Err(at_start(failure.clone())),
                    Some(Err(failure)) => {
                        let reason = format!("{} [{}]", failure.message, failure.code);
                        (Err(reason), Supply::default())
                    }
                    None => (Err("it was not fetched".to_owned()), Supply::default()),
                },
            };
            components.push(component);
            supplies.push(supply);
        }
        Ok(LoadedWorkload {
            file: draft.file,
            workload: draft.workload,
            under_ambit: draft.under_ambit,
            components,
            supplies,
        })
    }
}

fn invalid_reference(text: &str, error: &ReferenceError) -> Failure {
    Failure::new(error.code(), format!("`{text}`: {error}"), Some(error.help()))
}

/// A name without a file behind it that would do as a reference.
pub(crate) fn looks_like_reference(text: &str) -> bool {
    let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
    !matches!(extension, Some("wasm" | "yaml" | "yml" | "json"))
        && text.contains('/')
        && !text.starts_with(['.', '/'])
        && matches!(ImageSource::parse(text), ImageSource::Oci(_))
}

pub(crate) fn document_failure(file: &str, text: &str, error: &WorkloadError) -> FileError {
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
