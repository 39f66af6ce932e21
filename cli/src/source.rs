//! Where bytes come from: files, standard input, OCI image layouts on disk.

mod load;

use std::path::Path;

pub(crate) use load::{
    Inputs, Keep, LoadedWorkload, analyse, document_failure, load, looks_like_reference,
};

use ambit_engine::reference::ImageSource;

use crate::fetch::{Fetch, Wanted};
use crate::output::Failure;

/// Reads a file of at most `limit` bytes.
pub(crate) fn read_file(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    Ok(ambit_setup::read_file(path, limit)?)
}

/// Reads the bytes that a SOURCE names: a file, `-`, a reference, or a place in a layout.
pub(crate) fn read_source(
    source: &str,
    limit: usize,
    fetch: &dyn Fetch,
) -> Result<Vec<u8>, Failure> {
    if source == "-" {
        return read_stdin(limit);
    }
    let path = Path::new(source);
    let parsed = match ImageSource::parse(source) {
        ImageSource::File(path) => return read_file(Path::new(&path), limit),
        layout @ ImageSource::Layout { .. } => layout,
        ImageSource::Oci(_) if path.join("oci-layout").is_file() => {
            ImageSource::Layout { path: source.to_owned(), tag: None, digest: None }
        }
        reference @ (ImageSource::Oci(_) | ImageSource::Invalid(_))
            if source.starts_with("oci:") =>
        {
            reference
        }
        reference @ ImageSource::Oci(_) if !path.exists() && looks_like_reference(source) => {
            reference
        }
        ImageSource::Oci(_) | ImageSource::Artifact(_) | ImageSource::Invalid(_) => {
            return read_file(path, limit);
        }
    };
    let answers = fetch.fetch(&[Wanted { source: parsed }])?;
    match answers.into_iter().next() {
        Some(answer) => Ok(answer?.bytes),
        None => Err(Failure::new("registry-unavailable", format!("{source} gave no answer"), None)),
    }
}

/// Reads standard input up to `limit` bytes.
pub(crate) fn read_stdin(limit: usize) -> Result<Vec<u8>, Failure> {
    Ok(ambit_setup::read_all(std::io::stdin().lock(), "standard input", limit)?)
}
