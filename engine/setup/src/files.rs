//! Files, read within bounds, and remembered so that a change can be seen.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ambit_engine::digest::Digest;

use crate::Failure;

/// Reads a file of at most `limit` bytes.
///
/// Folders, devices and pipes are refused by name, since reading one could hang.
///
/// # Errors
///
/// [`Failure`] with what the path is, or why it can't be read.
pub fn read_file(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
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
        let message = format!("{shown} is a directory");
        return Err(Failure::new("file-is-directory", message, Some(help)));
    }
    if !metadata.is_file() {
        let help = "give a regular file, or `-` for standard input".to_owned();
        let message = format!("{shown} is neither a file nor a directory");
        return Err(Failure::new("file-not-regular", message, Some(help)));
    }
    let file = File::open(path).map_err(|error| {
        let help = Some("check its permissions".to_owned());
        Failure::new("file-unreadable", format!("{shown}: {}", plain(&error)), help)
    })?;
    read_all(file, &shown.to_string(), limit)
}

/// Reads to the end, at most `limit` bytes. `name` is how messages call it.
///
/// # Errors
///
/// [`Failure`] if reading fails, or if there is more.
pub fn read_all(from: impl Read, name: &str, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let cap = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    from.take(cap).read_to_end(&mut bytes).map_err(|error| {
        Failure::new("file-unreadable", format!("{name}: {}", plain(&error)), None)
    })?;
    if bytes.len() > limit {
        let message = format!("{name} is larger than the limit of {limit} bytes");
        let help =
            "nothing of this kind is that large; `limits` in `ambit.yaml` raises some limits";
        return Err(Failure::new("file-too-large", message, Some(help.to_owned())));
    }
    Ok(bytes)
}

/// The text of an I/O error without the number of the operating system.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// What was found at a path.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Seen {
    /// A file with these bytes.
    File(Digest),
    /// A folder with these names in it.
    Folder(Vec<PathBuf>),
    /// Nothing that can be read.
    Nothing,
}

/// Files and folders that were looked at, with what was in them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Files {
    /// With the most bytes that are read there.
    seen: BTreeMap<PathBuf, (Seen, usize)>,
}

impl Files {
    /// Reads a file as [`read_file`] does, and remembers it.
    ///
    /// # Errors
    ///
    /// As [`read_file`].
    pub fn read(&mut self, path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
        let read = read_file(path, limit);
        let seen = match &read {
            Ok(bytes) => Seen::File(Digest::of(bytes)),
            Err(_) => Seen::Nothing,
        };
        self.seen.insert(path.to_owned(), (seen, limit));
        read
    }

    /// Remembers that there was no file at a path.
    pub fn absent(&mut self, path: &Path) {
        self.seen.insert(path.to_owned(), (Seen::Nothing, 0));
    }

    /// Returns what is in a folder, in order, and remembers it.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the folder can't be read.
    pub fn list(&mut self, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
        let listed = list(dir).map_err(|error| {
            let message = format!("{}: {}", dir.display(), plain(&error));
            Failure::new("file-unreadable", message, None)
        });
        let seen = match &listed {
            Ok(names) => Seen::Folder(names.clone()),
            Err(_) => Seen::Nothing,
        };
        self.seen.insert(dir.to_owned(), (seen, 0));
        listed
    }

    /// Tells whether something of what was looked at is another now. Contents are compared, since a
    /// mounted ConfigMap changes by a link that leads elsewhere, with times that say nothing.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.seen.iter().any(|(path, (seen, limit))| {
            let now = if path.is_dir() {
                list(path).map_or(Seen::Nothing, Seen::Folder)
            } else {
                match read_file(path, *limit) {
                    Ok(bytes) => Seen::File(Digest::of(&bytes)),
                    Err(_) => Seen::Nothing,
                }
            };
            // Where there was nothing, a file of any size is a change.
            now != *seen || (*limit == 0 && *seen == Seen::Nothing && path.exists())
        })
    }
}

fn list(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests;
