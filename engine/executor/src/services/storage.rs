//! What key-value stores hold: in memory, and in a folder too where the operator names one.
//!
//! # Invariants
//!
//! - One storage for each workload; components of one workload share it, others never see it.
//! - Everything is bounded: length of keys and values, their number, and all bytes together.
//! - A file's name is a digest, so no name that a guest chooses becomes a path.
//! - What isn't in the folder isn't in memory either: a change that can't be written is an error.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ambit_engine::digest::Digest;

use super::logs::{LogSink, NoLogs};
use crate::error::ExecutorError;

/// The most bytes of a key.
pub(super) const MAX_KEY: usize = 1024;
/// The most bytes of a value.
pub(super) const MAX_VALUE: usize = 4 * 1024 * 1024;
/// The most keys of a workload, over all buckets.
pub(super) const MAX_KEYS: usize = 100_000;
/// The most bytes of a workload's keys and values.
pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The most keys of one call.
pub(super) const MAX_BATCH: usize = 1_000;
/// The keys of one page of a listing.
const PAGE: usize = 1_000;
/// The first bytes of each file.
const MAGIC: [u8; 8] = *b"ambitkv1";

/// What stands behind host services: who takes log lines, and what keeps values. Clones share both,
/// so that the components of a workload see one store.
#[derive(Clone)]
pub struct Backing {
    logs: Arc<dyn LogSink>,
    storages: Arc<Mutex<BTreeMap<String, Arc<Storage>>>>,
}

impl Default for Backing {
    fn default() -> Self {
        Self::new(Arc::new(NoLogs))
    }
}

impl std::fmt::Debug for Backing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backing").finish_non_exhaustive()
    }
}

impl Backing {
    /// Makes a backing with an empty store for each workload.
    #[must_use]
    pub fn new(logs: Arc<dyn LogSink>) -> Self {
        Self { logs, storages: Arc::default() }
    }

    pub(crate) fn logs(&self) -> &Arc<dyn LogSink> {
        &self.logs
    }

    /// Returns the storage of one workload, opened on the first call.
    pub(super) fn storage(
        &self,
        kind: &str,
        workload: &str,
        state_dir: Option<&Path>,
    ) -> Result<Arc<Storage>, ExecutorError> {
        let mut storages = self.storages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(storage) = storages.get(&format!("{kind} {workload}")) {
            return Ok(Arc::clone(storage));
        }
        let storage = match state_dir {
            None => Storage::default(),
            Some(folder) => {
                let name = Digest::of(workload.as_bytes()).to_string();
                Storage::open(&folder.join(kind).join(name.replace(':', "-")))?
            }
        };
        let storage = Arc::new(storage);
        storages.insert(format!("{kind} {workload}"), Arc::clone(&storage));
        Ok(storage)
    }
}

/// Why a store can't do what it is asked.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Problem {
    #[error("a key has at most {MAX_KEY} bytes")]
    Key,
    #[error("a value has at most {MAX_VALUE} bytes")]
    Value,
    #[error("the store is full")]
    Full,
    #[error("too much for one call")]
    Batch,
    #[error("the value isn't a number that can be raised so far")]
    Number,
    #[error("the host can't keep the value")]
    Host,
}

impl Problem {
    /// Returns a stable kebab-case code.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Key | Self::Value | Self::Full | Self::Batch => "keyvalue-limit",
            Self::Number => "keyvalue-number",
            Self::Host => "keyvalue-failed",
        }
    }
}

/// What the stores of one workload hold.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    folder: Option<Folder>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    buckets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    keys: usize,
    bytes: usize,
}

impl Held {
    fn get(&self, bucket: &str, key: &str) -> Option<&Vec<u8>> {
        self.buckets.get(bucket)?.get(key)
    }

    /// Returns the number of keys and bytes after a change.
    fn after(&self, bucket: &str, key: &str, value: &[u8]) -> Result<(usize, usize), Problem> {
        if key.len() > MAX_KEY {
            return Err(Problem::Key);
        }
        if value.len() > MAX_VALUE {
            return Err(Problem::Value);
        }
        let (keys, bytes) = match self.get(bucket, key) {
            Some(old) => (self.keys, self.bytes.saturating_sub(old.len())),
            None => (self.keys.saturating_add(1), self.bytes.saturating_add(key.len())),
        };
        let bytes = bytes.saturating_add(value.len());
        if keys > MAX_KEYS || bytes > MAX_BYTES { Err(Problem::Full) } else { Ok((keys, bytes)) }
    }

    fn put(&mut self, bucket: &str, key: &str, value: Vec<u8>, (keys, bytes): (usize, usize)) {
        self.buckets.entry(bucket.to_owned()).or_default().insert(key.to_owned(), value);
        self.keys = keys;
        self.bytes = bytes;
    }
}

impl Storage {
    /// Opens a folder and reads what it holds. The folder is locked as long as the storage lives.
    pub(super) fn open(path: &Path) -> Result<Self, ExecutorError> {
        let folder = Folder::open(path)?;
        let held = folder.read()?;
        Ok(Self { folder: Some(folder), held: Mutex::new(held) })
    }

    fn held(&self) -> Result<std::sync::MutexGuard<'_, Held>, Problem> {
        self.held.lock().map_err(|_| Problem::Host)
    }

    pub(super) fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, Problem> {
        Ok(self.held()?.get(bucket, key).cloned())
    }

    pub(super) fn exists(&self, bucket: &str, key: &str) -> Result<bool, Problem> {
        Ok(self.held()?.get(bucket, key).is_some())
    }

    pub(super) fn size(&self, bucket: &str, key: &str) -> Result<Option<u64>, Problem> {
        let held = self.held()?;
        Ok(held.get(bucket, key).map(|value| u64::try_from(value.len()).unwrap_or(u64::MAX)))
    }

    pub(super) fn set(&self, bucket: &str, key: &str, value: Vec<u8>) -> Result<(), Problem> {
        let mut held = self.held()?;
        self.put(&mut held, bucket, key, value)
    }

    fn put(&self, held: &mut Held, bucket: &str, key: &str, value: Vec<u8>) -> Result<(), Problem> {
        let after = held.after(bucket, key, &value)?;
        if let Some(folder) = &self.folder {
            folder.write(bucket, key, &value).map_err(|_| Problem::Host)?;
        }
        held.put(bucket, key, value, after);
        Ok(())
    }

    pub(super) fn delete(&self, bucket: &str, key: &str) -> Result<(), Problem> {
        let mut held = self.held()?;
        if held.get(bucket, key).is_none() {
            return Ok(());
        }
        if let Some(folder) = &self.folder {
            folder.remove(bucket, key).map_err(|_| Problem::Host)?;
        }
        let removed = held.buckets.get_mut(bucket).and_then(|keys| keys.remove(key));
        if let Some(value) = removed {
            held.keys = held.keys.saturating_sub(1);
            held.bytes = held.bytes.saturating_sub(value.len().saturating_add(key.len()));
        }
        Ok(())
    }

    /// Adds to a number that is kept as decimal text; a key that isn't there counts as 0.
    pub(super) fn increment(&self, bucket: &str, key: &str, delta: u64) -> Result<u64, Problem> {
        let mut held = self.held()?;
        let old = match held.get(bucket, key) {
            None => 0,
            Some(value) => {
                let text = std::str::from_utf8(value).map_err(|_| Problem::Number)?;
                text.parse::<u64>().map_err(|_| Problem::Number)?
            }
        };
        let new = old.checked_add(delta).ok_or(Problem::Number)?;
        self.put(&mut held, bucket, key, new.to_string().into_bytes())?;
        Ok(new)
    }

    /// Returns one page of keys in order, and where the next begins.
    pub(super) fn keys(
        &self,
        bucket: &str,
        cursor: u64,
    ) -> Result<(Vec<String>, Option<u64>), Problem> {
        let held = self.held()?;
        let Some(keys) = held.buckets.get(bucket) else {
            return Ok((Vec::new(), None));
        };
        let start = usize::try_from(cursor).unwrap_or(usize::MAX);
        let mut rest = keys.range::<str, _>((Bound::Unbounded, Bound::Unbounded)).skip(start);
        let page: Vec<String> = rest.by_ref().take(PAGE).map(|(key, _)| key.clone()).collect();
        let next = cursor.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
        Ok((page, rest.next().map(|_| next)))
    }
}

/// A folder with one file for each key.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Holds the lock against another run on the same folder.
    _lock: std::fs::File,
}

fn unusable(path: &Path, why: &str) -> ExecutorError {
    ExecutorError::Setup {
        code: "state-unusable",
        message: format!("the state folder {} can't be used: {why}", path.display()),
        help: "name another folder with `--state-dir`, or move what is in this one away".to_owned(),
    }
}

impl Folder {
    fn open(path: &Path) -> Result<Self, ExecutorError> {
        let failed = |error: std::io::Error| unusable(path, &error.to_string());
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(failed)?;
        let lock =
            private().create(true).truncate(false).open(path.join("lock")).map_err(failed)?;
        lock.try_lock().map_err(|_| unusable(path, "another run holds it"))?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    fn file(&self, bucket: &str, key: &str) -> PathBuf {
        let mut named = length(bucket).to_vec();
        named.extend_from_slice(bucket.as_bytes());
        named.extend_from_slice(key.as_bytes());
        let name = Digest::of(&named).to_string();
        self.path.join(format!("{}.entry", name.replace(':', "-")))
    }

    /// Replaces a file in one step, so that a crash leaves the old value or the new one.
    fn write(&self, bucket: &str, key: &str, value: &[u8]) -> std::io::Result<()> {
        let target = self.file(bucket, key);
        let draft = target.with_extension("draft");
        let mut file = private().create(true).truncate(true).open(&draft)?;
        let written =
            [&MAGIC[..], &length(bucket), &length(key), bucket.as_bytes(), key.as_bytes()]
                .into_iter()
                .chain([value])
                .try_for_each(|part| file.write_all(part))
                .and_then(|()| file.sync_data())
                .and_then(|()| std::fs::rename(&draft, &target));
        if written.is_err() {
            // The draft is no value; what is left of it is removed at the next start at the latest.
            let _ = std::fs::remove_file(&draft);
        }
        written
    }

    fn remove(&self, bucket: &str, key: &str) -> std::io::Result<()> {
        match std::fs::remove_file(self.file(bucket, key)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn read(&self) -> Result<Held, ExecutorError> {
        let failed = |error: std::io::Error| unusable(&self.path, &error.to_string());
        let mut held = Held::default();
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let extension = path.extension().and_then(std::ffi::OsStr::to_str);
            match extension {
                Some("draft") => std::fs::remove_file(&path).map_err(failed)?,
                Some("entry") => {
                    let most = MAX_KEY.saturating_add(MAX_VALUE).saturating_add(64 * 1024);
                    let most = u64::try_from(most).unwrap_or(u64::MAX);
                    let mut bytes = Vec::new();
                    let file = std::fs::File::open(&path).map_err(failed)?;
                    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
                    let broken = || unusable(&path, "it isn't an entry of a store");
                    let (bucket, key, value) = entry_of(&bytes).ok_or_else(broken)?;
                    if self.file(bucket, key) != path {
                        return Err(broken());
                    }
                    let after = held
                        .after(bucket, key, value)
                        .map_err(|problem| unusable(&path, &problem.to_string()))?;
                    held.put(bucket, key, value.to_vec(), after);
                }
                // The lock, or a file of somebody else.
                _ => {}
            }
        }
        Ok(held)
    }
}

fn private() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn length(text: &str) -> [u8; 4] {
    u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes()
}

fn entry_of(bytes: &[u8]) -> Option<(&str, &str, &[u8])> {
    let bytes = bytes.strip_prefix(&MAGIC)?;
    let (bucket, bytes) = bytes.split_first_chunk::<4>()?;
    let (key, bytes) = bytes.split_first_chunk::<4>()?;
    let size = |bytes: &[u8; 4]| usize::try_from(u32::from_le_bytes(*bytes)).ok();
    let (bucket, bytes) = bytes.split_at_checked(size(bucket)?)?;
    let (key, value) = bytes.split_at_checked(size(key)?)?;
    Some((std::str::from_utf8(bucket).ok()?, std::str::from_utf8(key).ok()?, value))
}
