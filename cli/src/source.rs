//! Where bytes come from: files, standard input, OCI image layouts on disk.

mod load;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

pub(crate) use load::{
    Inputs, Keep, LoadedWorkload, analyse, document_failure, load, looks_like_reference,
};

use ambit_engine::reference::ImageSource;

use crate::fetch::{Fetch, Wanted};
use crate::output::Failure;

/// Reads a file of at most `limit` bytes.
///
/// Directories, devices and pipes are refused by name, since reading one could hang.
pub(crate) fn read_file(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).map_err(|error| {
        let (code, help) = if error.kind() == std::io::ErrorKind::NotFound {
            ("file-not-found", "check the path")
        } else {
            ("file-unreadable", "check the path and its permissions")
        };
        Failure::new(code, format!("{shown}: {}", plain(&error)), Some(help.to_owned()))
    })?;
    if metadata.is_dir() {
        let help = "name a file in it, or `layout:DIR` for an OCI image layout".to_owned();
        return Err(Failure::new(
            "file-is-directory",
            format!("{shown} is a directory"),
            Some(help),
        ));
    }
    if !metadata.is_file() {
        let help = "give a regular file, or `-` for standard input".to_owned();
        let message = format!("{shown} is neither a file nor a directory");
        return Err(Failure::new("file-not-regular", message, Some(help)));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    read_all(file, &shown.to_string(), limit)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        "file-unreadable",
        format!("{}: {}", path.display(), plain(error)),
        Some("check its permissions".to_owned()),
    )
}

/// The text of an I/O error without the number of the operating system.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
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
    read_all(std::io::stdin().lock(), "standard input", limit)
}

fn read_all(from: impl std::io::Read, name: &str, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let cap = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    from.take(cap).read_to_end(&mut bytes).map_err(|error| {
        Failure::new("file-unreadable", format!("{name}: {}", plain(&error)), None)
    })?;
    if bytes.len() > limit {
        return Err(Failure::new(
            "file-too-large",
            format!("{name} is larger than the limit of {limit} bytes"),
            Some(
                "nothing of this kind is that large; `limits` in `ambit.yaml` raises some limits"
                    .to_owned(),
            ),
        ));
    }
    Ok(bytes)
}
