//! `ambit pin`.

use std::io::Write as _;
use std::path::Path;

use ambit_engine::digest::Digest;
use ambit_engine::document::{DocumentLimits, Format as DocumentFormat};
use ambit_engine::reference::ImageSource;
use ambit_engine::workload::{self, Place};
use serde::Serialize;

use crate::args::{Format, Global, Pin};
use crate::configuration::{self, Configuration};
use crate::exit::Exit;
use crate::fetch::{Fetcher, Wanted};
use crate::output::{Failure, Output};
use crate::render::style::safe;
use crate::source::{document_failure, read_file, read_stdin};

/// An image that names no digest.
#[derive(Debug, Serialize)]
struct Unpinned {
    file: String,
    line: u32,
    component: String,
    image: String,
    /// The same with the digest; absent with `--check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<String>,
    #[serde(skip)]
    place: Place,
}

/// A document with what has to change in it.
struct Edited {
    file: String,
    text: String,
    unpinned: Vec<Unpinned>,
}

/// Writes the digest of each tag behind it.
pub(crate) fn run(command: &Pin, global: &Global, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let configuration = configuration::read(global)?;
    let mut documents = Vec::new();
    for file in &command.files {
        documents.push(read(file)?);
    }
    if !command.check {
        resolve(&mut documents, command, &configuration, output)?;
        for document in &documents {
            write(document, output)?;
        }
    }
    let all: Vec<&Unpinned> = documents.iter().flat_map(|document| &document.unpinned).collect();
    if output.format == Format::Json {
        output.json(&serde_json::json!({ "schema": "ambit.pin/v1", "images": all }))?;
    } else {
        let mut text = String::new();
        for image in &all {
            let place = format!("{}:{}", image.file, image.line);
            let line = match &image.pinned {
                Some(pinned) => format!("{place}  {}\n", safe(pinned)),
                None => format!("{place}  {} names no digest\n", safe(&image.image)),
            };
            text.push_str(&line);
        }
        if all.is_empty() {
            text.push_str("every image names a digest\n");
        }
        // The edited document itself is the answer for standard input.
        if command.check || !command.files.iter().any(|file| file == "-") {
            output.answer(&text)?;
        }
    }
    Ok(if command.check && !all.is_empty() { Exit::Denied } else { Exit::Done })
}

fn read(file: &str) -> Result<Edited, Failure> {
    let limits = DocumentLimits::default();
    let bytes = if file == "-" {
        read_stdin(limits.max_bytes)?
    } else {
        read_file(Path::new(file), limits.max_bytes)?
    };
    let lossy = String::from_utf8_lossy(&bytes).into_owned();
    let found = workload::read(&bytes, format(file), None, &limits)
        .map_err(|error| document_failure(file, &lossy, &error).0)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let help = "save it as UTF-8".to_owned();
        Failure::new("manifest-encoding", format!("{file} is not UTF-8"), Some(help))
    })?;
    let mut unpinned = Vec::new();
    for workload in &found.workloads {
        for component in &workload.components {
            let image = &component.image;
            let reference = match &image.source {
                ImageSource::Oci(reference) => reference,
                ImageSource::Invalid(error) if !image.text.is_empty() => {
                    let line = image.place.line();
                    let message = format!("{file}:{line}: `{}`: {error}", image.text);
                    return Err(Failure::new(error.code(), message, Some(error.help())));
                }
                ImageSource::Invalid(_)
                | ImageSource::File(_)
                | ImageSource::Layout { .. }
                | ImageSource::Artifact(_) => continue,
            };
            // The image of an Artifact is changed where the Artifact names it.
            if reference.digest().is_some() || image.artifact.is_some() {
                continue;
            }
            let same = |known: &Unpinned| known.place.span == image.place.span;
            if unpinned.iter().any(same) {
                continue;
            }
            unpinned.push(Unpinned {
                file: file.to_owned(),
                line: image.place.line(),
                component: component.name.clone(),
                image: image.text.clone(),
                pinned: None,
                place: image.place.clone(),
            });
        }
    }
    Ok(Edited { file: file.to_owned(), text, unpinned })
}

fn format(file: &str) -> DocumentFormat {
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("json") => DocumentFormat::Json,
        Some("yaml" | "yml") => DocumentFormat::Yaml,
        _ => DocumentFormat::Auto,
    }
}

/// Asks for the digest of each tag, all at once, and works out the new text of every document
/// before any is written.
fn resolve(
    documents: &mut [Edited],
    command: &Pin,
    configuration: &Configuration,
    output: &Output,
) -> Result<(), Failure> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for image in documents.iter().flat_map(|document| &document.unpinned) {
        let one = Wanted { source: ImageSource::parse(&image.image) };
        if !wanted.contains(&one) {
            wanted.push(one);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let fetcher = Fetcher::new(&command.registry, configuration, output)?;
    let digests = fetcher.digests(&wanted)?;
    for document in documents {
        let mut edits = Vec::new();
        for image in &mut document.unpinned {
            let source = ImageSource::parse(&image.image);
            let at = wanted.iter().position(|one| one.source == source);
            let digest = match at.and_then(|at| digests.get(at)) {
                Some(Ok(digest)) => digest,
                Some(Err(failure)) => {
                    let mut failure = failure.clone();
                    failure.message = format!("{}:{}: {}", image.file, image.line, failure.message);
                    return Err(failure);
                }
                None => continue,
            };
            image.pinned = Some(format!("{}@{digest}", image.image));
            edits.push(edit(&document.text, image, digest)?);
        }
        document.text = apply(&document.text, edits);
        confirm(document)?;
    }
    Ok(())
}

/// Returns the byte offset at which the digest goes, with the digest.
fn edit(text: &str, image: &Unpinned, digest: &Digest) -> Result<(usize, String), Failure> {
    let span = image.place.span;
    let raw = span.and_then(|span| text.get(span.start_byte()..span.end_byte()));
    let quoted = |quote: char| format!("{quote}{}{quote}", image.image);
    let end = span.map(ambit_engine::document::Span::end_byte).unwrap_or_default();
    let at = match raw {
        Some(raw) if raw == image.image => Some(end),
        Some(raw) if raw == quoted('"') || raw == quoted('\'') => Some(end.saturating_sub(1)),
        Some(_) | None => None,
    };
    at.map(|at| (at, format!("@{digest}"))).ok_or_else(|| {
        Failure::new(
            "pin-place",
            format!(
                "{}:{}: the image of `{}` is not written out in one piece",
                image.file, image.line, image.component
            ),
            Some(format!(
                "write `image: {}` there, without alias, escapes or line breaks",
                image.image
            )),
        )
    })
}

fn apply(text: &str, mut edits: Vec<(usize, String)>) -> String {
    edits.sort();
    let mut result =
        String::with_capacity(text.len().saturating_add(edits.len().saturating_mul(72)));
    let mut done = 0;
    for (at, insert) in edits {
        result.push_str(text.get(done..at).unwrap_or_default());
        result.push_str(&insert);
        done = at;
    }
    result.push_str(text.get(done..).unwrap_or_default());
    result
}

/// Reads the new text once more: it names what it should, and nothing else changed its meaning.
fn confirm(document: &Edited) -> Result<(), Failure> {
    let limits = DocumentLimits::default();
    let file = &document.file;
    let found = workload::read(document.text.as_bytes(), format(file), None, &limits)
        .map_err(|error| document_failure(file, &document.text, &error).0)?;
    let mut images: Vec<&str> = Vec::new();
    for workload in &found.workloads {
        images.extend(workload.components.iter().map(|component| component.image.text.as_str()));
    }
    for image in &document.unpinned {
        let wanted = image.pinned.as_deref().unwrap_or(&image.image);
        if !images.contains(&wanted) {
            return Err(Failure::new(
                "pin-place",
                format!(
                    "{file}:{}: the digest can't be written behind `{}`",
                    image.line, image.image
                ),
                Some("put the image into double quotes and try again".to_owned()),
            ));
        }
    }
    Ok(())
}

/// Puts the new text in the place of the old one, whole or not at all.
fn write(document: &Edited, output: &Output) -> Result<(), Failure> {
    if document.file == "-" {
        return if output.format == Format::Json { Ok(()) } else { output.answer(&document.text) };
    }
    if document.unpinned.is_empty() {
        return Ok(());
    }
    let path = Path::new(&document.file);
    let failure = |error: &dyn std::fmt::Display| {
        Failure::new(
            "file-not-written",
            format!("{}: {error}", document.file),
            Some("check its permissions and the free space".to_owned()),
        )
    };
    // A link stays a link: what it leads to is replaced.
    let path = path.canonicalize().map_err(|error| failure(&error))?;
    let permissions = std::fs::metadata(&path).map_err(|error| failure(&error))?.permissions();
    // A replacement asks the folder only; the file's own protection is somebody's wish all the same.
    if permissions.readonly() {
        return Err(failure(&"it is read-only"));
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(|error| failure(&error))?;
    file.write_all(document.text.as_bytes()).map_err(|error| failure(&error))?;
    file.as_file().set_permissions(permissions).map_err(|error| failure(&error))?;
    file.as_file().sync_all().map_err(|error| failure(&error))?;
    file.persist(&path).map_err(|error| failure(&error.error))?;
    Ok(())
}
