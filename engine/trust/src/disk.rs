//! Files that are read whole and replaced whole.
//!
//! Nothing is ever written in place: a reader sees the old bytes or the new ones, and a writer that
//! is killed leaves at most a temporary file.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use crate::error::FetchError;

/// What names of temporary files start with.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Runs `work`, which blocks, where it doesn't hold up the other tasks.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|stopped| {
        Err(FetchError::Io { path: "background task".to_owned(), reason: stopped.to_string() })
    })
}

/// Puts an error of the operating system into words, without its number.
pub(crate) fn io(path: &Path, error: &std::io::Error) -> FetchError {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    FetchError::Io { path: path.display().to_string(), reason }
}

/// What stands under a path.
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// Something that isn't a regular file: a folder, a device, a pipe.
    Other,
    /// More than was asked for at most.
    TooLarge,
    /// The bytes of a regular file, with the open file.
    Bytes(Vec<u8>, File),
}

/// Reads a regular file of at most `max_bytes`.
pub(crate) fn read(path: &Path, max_bytes: usize) -> Result<Found, FetchError> {
    // Opening a pipe would wait for a writer, so the kind is looked at before; and once more after,
    // since another file may have come in between.
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(Found::Other),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(io(path, &error)),
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(io(path, &error)),
    };
    let metadata = file.metadata().map_err(|error| io(path, &error))?;
    if !metadata.is_file() {
        return Ok(Found::Other);
    }
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if metadata.len() > limit {
        return Ok(Found::TooLarge);
    }
    let mut bytes = Vec::new();
    (&file)
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| io(path, &error))?;
    if bytes.len() > max_bytes {
        return Ok(Found::TooLarge);
    }
    Ok(Found::Bytes(bytes, file))
}

/// Who may read a file that is written.
#[derive(Clone, Copy)]
pub(crate) enum Audience {
    /// Everybody whom the process's mask allows.
    All,
    /// The owner.
    Owner,
}

/// Puts `bytes` at `path`, in place of what is there.
pub(crate) fn write(path: &Path, bytes: &[u8], audience: Audience) -> Result<(), FetchError> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    let permissions = permissions(audience);
    if let Some(permissions) = permissions {
        builder.permissions(permissions);
    }
    let mut file = builder.tempfile_in(folder).map_err(|error| io(folder, &error))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(|error| io(path, &error))?;
    file.persist(path).map_err(|failed| io(path, &failed.error))?;
    // The new name outlives a crash of the machine once the folder is written too. Where folders
    // can't be opened as files there is nothing to do.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(unix)]
fn permissions(audience: Audience) -> Option<std::fs::Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    match audience {
        Audience::All => Some(std::fs::Permissions::from_mode(0o666)),
        Audience::Owner => None,
    }
}

#[cfg(not(unix))]
fn permissions(_: Audience) -> Option<std::fs::Permissions> {
    None
}
