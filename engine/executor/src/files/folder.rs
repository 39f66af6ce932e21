//! The folders of a component, opened at start.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ambit_engine::admitted::{AdmittedComponent, AdmittedFolder, FolderContent, GrantSource};
use ambit_engine::grant::{FolderGrant, FolderMode, FolderSource, HostPath, RefusedFor};
use tempfile::TempDir;

use super::volume::{Volumes, cannot, plain};
use crate::error::ExecutorError;

/// How many entries of a folder are looked at for hard links.
const MAX_WALK: usize = 10_000;

/// How deep.
const MAX_DEPTH: usize = 16;

/// What may be done in a folder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    ReadOnly,
    ReadWrite,
}

/// A folder as a component sees it.
#[derive(Debug)]
pub(super) struct Folder {
    /// Where the component sees it.
    pub(super) guest: String,
    pub(super) mode: Mode,
    /// The line that gives it.
    pub(super) source: GrantSource,
    root: OwnedFd,
    path: PathBuf,
    /// Keeps a volume as long as somebody can see it.
    _volume: Option<Arc<TempDir>>,
}

impl Folder {
    pub(super) fn handle(&self) -> std::io::Result<std::fs::File> {
        Ok(self.root.try_clone()?.into())
    }
}

/// The folders of one component, opened once at start. Clones share the handles.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    folders: Arc<[Folder]>,
    warnings: Vec<String>,
}

impl Folders {
    /// Opens the folders of a component.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Setup`] for a folder that isn't there, that isn't what its path says, that
    /// nobody is given, or that overlaps another one with a different mode; the message names the
    /// line.
    pub fn open(component: &AdmittedComponent, volumes: &Volumes) -> Result<Self, ExecutorError> {
        let mut folders: Vec<Folder> = Vec::new();
        let mut warnings = Vec::new();
        for admitted in component.folders() {
            let folder = open(admitted, volumes)?;
            if let Some(other) = folders.iter().find(|other| {
                other.mode != folder.mode
                    && (other.path.starts_with(&folder.path)
                        || folder.path.starts_with(&other.path))
            }) {
                let message = format!(
                    "`{}` and `{}` overlap with different modes",
                    other.source.text, folder.source.text
                );
                let help = "give one of them the mode of the other, or take it away";
                return Err(refuse("folder-overlap", &message, help, &folder.source));
            }
            let linked = if folder._volume.is_none() { linked_files(&folder.path) } else { 0 };
            if linked > 0 {
                warnings.push(format!(
                    "{linked} files in `{}` have another name elsewhere (hard links): `{}` can read \
                     them and not write them",
                    folder.path.display(),
                    component.name()
                ));
            }
            folders.push(folder);
        }
        Ok(Self { folders: folders.into(), warnings })
    }

    /// Returns what somebody should know who runs the component.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn get(&self, index: usize) -> Option<&Folder> {
        self.folders.get(index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Folder> {
        self.folders.iter()
    }
}

fn refuse(
    code: &'static str,
    message: &str,
    help: impl Into<String>,
    source: &GrantSource,
) -> ExecutorError {
    let place = if source.line == 0 {
        String::new()
    } else {
        format!(" ({}:{})", source.file, source.line)
    };
    ExecutorError::Setup { code, message: format!("{message}{place}"), help: help.into() }
}

fn open(admitted: &AdmittedFolder, volumes: &Volumes) -> Result<Folder, ExecutorError> {
    let source = &admitted.source;
    let (guest, mode, path, volume) = match &admitted.content {
        FolderContent::Object { guest, kind, name } => {
            let volume = volumes.object(*kind, name, source)?;
            let path = volume.path().to_owned();
            (guest.as_str(), Mode::ReadOnly, path, Some(volume))
        }
        FolderContent::Folder(grant) => {
            let mode = mode(grant, source)?;
            match grant.source() {
                FolderSource::Ephemeral => {
                    let volume = volumes.ephemeral(&admitted.volume)?;
                    let path = volume.path().to_owned();
                    (grant.guest().as_str(), mode, path, Some(volume))
                }
                FolderSource::Host(path) => {
                    let path = true_path(path, mode, source)?;
                    (grant.guest().as_str(), mode, path, None)
                }
            }
        }
    };
    super::open::probe().map_err(|error| {
        let help = "run it on Linux 5.6 or newer, where nothing filters `openat2`";
        refuse("folder-system", &format!("this system can't confine paths: {error}"), help, source)
    })?;
    // Where the system keeps its own volumes may be reached by a link; what a manifest names may not.
    let straight = match &volume {
        Some(_) => std::fs::canonicalize(&path).map_err(|error| cannot(&path, &error))?,
        None => path.clone(),
    };
    let root = super::open::straight(&straight).map_err(|error| cannot(&path, &error))?;
    Ok(Folder {
        guest: guest.to_owned(),
        mode,
        source: source.clone(),
        root,
        path,
        _volume: volume,
    })
}

fn mode(grant: &FolderGrant, source: &GrantSource) -> Result<Mode, ExecutorError> {
    match grant.mode() {
        FolderMode::ReadOnly => Ok(Mode::ReadOnly),
        FolderMode::ReadWrite => Ok(Mode::ReadWrite),
        unbuilt @ (FolderMode::EditWithUndo | FolderMode::AskBeforeEdit) => {
            let message = format!("this version can't hold a folder to `{unbuilt}`");
            let help = "grant it `read-only`, or `read-write`";
            Err(refuse("folder-mode-unbuilt", &message, help, source))
        }
    }
}

/// Checks that a folder is what its path says, so that what was decided on is what is opened.
fn true_path(path: &HostPath, mode: Mode, source: &GrantSource) -> Result<PathBuf, ExecutorError> {
    let written = Path::new(path.as_str());
    let real = std::fs::canonicalize(written).map_err(|error| {
        let message = format!("`{path}`: {}", plain(&error));
        refuse("folder-missing", &message, "make the folder, or correct the path", source)
    })?;
    if real != written {
        let message = format!("`{path}` leads to `{}` by a link", real.display());
        let help = format!("write `{}` in the manifest, so that it is decided on", real.display());
        return Err(refuse("folder-link", &message, help, source));
    }
    if !real.is_dir() {
        let message = format!("`{path}` is no folder");
        return Err(refuse("folder-missing", &message, "grant the folder that holds it", source));
    }
    let sensitive = path.sensitivity().filter(|sensitive| {
        sensitive.refused == RefusedFor::ReadAndWrite || mode == Mode::ReadWrite
    });
    if sensitive.is_some() {
        let message = format!("`{path}` is given to nobody");
        return Err(refuse("folder-sensitive", &message, "grant a folder of its own", source));
    }
    Ok(real)
}

/// Counts regular files with several names, up to a bound.
fn linked_files(root: &Path) -> usize {
    let mut left = MAX_WALK;
    let mut found = 0_usize;
    let mut work = vec![(root.to_owned(), 0_usize)];
    while let Some((folder, depth)) = work.pop() {
        // What can't be read can't be opened by the component either.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if left == 0 {
                return found;
            }
            left = left.saturating_sub(1);
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && depth < MAX_DEPTH {
                work.push((entry.path(), depth.saturating_add(1)));
            } else if metadata.is_file() && metadata.nlink() > 1 {
                found = found.saturating_add(1);
            }
        }
    }
    found
}
