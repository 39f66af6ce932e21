//! Folders that live as long as a workload.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ambit_engine::admitted::GrantSource;
use ambit_engine::workload::ReferenceKind;
use tempfile::TempDir;

use crate::error::ExecutorError;
use crate::services::Values;

/// The volumes of one workload: ephemeral ones, and those made of Secrets and ConfigMaps. Each is a
/// folder that only this user can enter, and it is removed with the last component that has it.
#[derive(Clone, Debug)]
pub struct Volumes {
    root: PathBuf,
    values: Arc<Values>,
    made: Arc<Mutex<BTreeMap<String, Arc<TempDir>>>>,
}

impl Volumes {
    /// Prepares the volumes of a workload; none is made before it is asked for.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Setup`] if `root` is no folder.
    pub fn new(root: &Path, values: &Arc<Values>) -> Result<Self, ExecutorError> {
        if !root.is_dir() {
            return Err(ExecutorError::Setup {
                code: "folder-missing",
                message: format!("`{}`, where volumes are made, is no folder", root.display()),
                help: "set `TMPDIR` to a folder".to_owned(),
            });
        }
        Ok(Self { root: root.to_owned(), values: Arc::clone(values), made: Arc::default() })
    }

    /// Returns the ephemeral volume of a name, the same to all components that mount it.
    pub(super) fn ephemeral(&self, name: &str) -> Result<Arc<TempDir>, ExecutorError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(volume) = made.get(name) {
            return Ok(Arc::clone(volume));
        }
        let volume = Arc::new(self.make()?);
        made.insert(name.to_owned(), Arc::clone(&volume));
        Ok(volume)
    }

    /// Makes a volume with a file for each key of an object.
    pub(super) fn object(
        &self,
        kind: ReferenceKind,
        name: &str,
        source: &GrantSource,
    ) -> Result<Arc<TempDir>, ExecutorError> {
        let object = self.values.object(kind, name, source)?;
        let volume = self.make()?;
        for (key, value) in object {
            // A key is a file's name and never a way.
            let plain = !key.is_empty()
                && !matches!(key.as_str(), "." | "..")
                && !key.contains(['/', '\0']);
            if !plain {
                return Err(ExecutorError::Setup {
                    code: "value-key",
                    message: format!(
                        "`{}` of `{name}` can't be the name of a file",
                        key.escape_debug()
                    ),
                    help: "give it another key".to_owned(),
                });
            }
            let path = volume.path().join(key);
            let written = std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o400)
                .open(&path)
                .and_then(|mut file| file.write_all(value));
            written.map_err(|error| cannot(&path, &error))?;
        }
        Ok(Arc::new(volume))
    }

    fn make(&self) -> Result<TempDir, ExecutorError> {
        // The folder has mode 0700 from its first moment.
        tempfile::Builder::new()
            .prefix("ambit-volume-")
            .tempdir_in(&self.root)
            .map_err(|error| cannot(&self.root, &error))
    }
}

pub(super) fn cannot(path: &Path, error: &std::io::Error) -> ExecutorError {
    ExecutorError::Setup {
        code: "folder-unusable",
        message: format!("`{}`: {}", path.display(), plain(error)),
        help: "check the path and its permissions".to_owned(),
    }
}

/// The text of an I/O error without the number of the operating system.
pub(super) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
