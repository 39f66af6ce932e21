//! The folder: files named by digests, how they come and go.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use ambit_engine::digest::Digest;

use super::Kept;
use crate::disk::{self, Audience, Found, TEMPORARY, io};
use crate::error::FetchError;

/// The kinds of entries, which are folders in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The bytes of a blob, under their digest.
    Blob,
    /// The media type of a manifest, a line feed, and its bytes; under the digest of the bytes.
    Manifest,
    /// What a store said, as JSON, under a digest of the question.
    Said,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Blob, Self::Manifest, Self::Said];

    fn folder(self) -> &'static str {
        match self {
            Self::Blob => "blobs",
            Self::Manifest => "manifests",
            Self::Said => "said",
        }
    }
}

/// The longest media type (RFC 6838, section 4.2: 127 characters each side).
const MAX_MEDIA_TYPE: usize = 255;

#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    max_bytes: u64,
    /// What the last look found, and what was written since.
    estimate: AtomicU64,
    /// What was written since the last look; other processes write without telling.
    since: AtomicU64,
}

impl Folder {
    pub(super) fn open(dir: &Path, max_bytes: u64) -> Result<Self, FetchError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt as _;
            builder.mode(0o700);
        }
        for kind in Kind::ALL {
            let path = dir.join(kind.folder());
            builder.create(&path).map_err(|error| io(&path, &error))?;
        }
        let folder = Self {
            dir: dir.to_owned(),
            max_bytes,
            estimate: AtomicU64::new(0),
            since: AtomicU64::new(0),
        };
        folder.evict()?;
        Ok(folder)
    }

    fn path(&self, kind: Kind, name: &Digest) -> PathBuf {
        let text = name.to_string();
        self.dir.join(kind.folder()).join(text.strip_prefix("sha256:").unwrap_or(&text))
    }

    /// Reads an entry of at most `max_bytes`. One that isn't what its name says is removed.
    pub(super) fn get(
        &self,
        kind: Kind,
        name: &Digest,
        max_bytes: usize,
    ) -> Result<Option<Kept>, FetchError> {
        let path = self.path(kind, name);
        let label = match kind {
            Kind::Manifest => MAX_MEDIA_TYPE.saturating_add(1),
            Kind::Blob | Kind::Said => 0,
        };
        let (mut bytes, file) = match disk::read(&path, max_bytes.saturating_add(label))? {
            Found::Bytes(bytes, file) => (bytes, file),
            Found::Nothing => return Ok(None),
            Found::TooLarge | Found::Other => {
                let _ = std::fs::remove_file(&path);
                return Ok(None);
            }
        };
        let mut media_type = Some(String::new());
        if let Kind::Manifest = kind {
            media_type = bytes.iter().position(|byte| *byte == b'\n').and_then(|end| {
                let label: Vec<u8> = bytes.drain(..=end).take(end).collect();
                String::from_utf8(label).ok().filter(|label| label.len() <= MAX_MEDIA_TYPE)
            });
        }
        let right = match kind {
            Kind::Blob | Kind::Manifest => Digest::of(&bytes) == *name,
            Kind::Said => true,
        };
        match media_type {
            Some(media_type) if right => {
                // The order of eviction is by this time. That it can't be set is no reason to stop.
                let _ = file.set_modified(SystemTime::now());
                Ok(Some(Kept { media_type, bytes }))
            }
            Some(_) | None => {
                let _ = std::fs::remove_file(&path);
                Ok(None)
            }
        }
    }

    /// Keeps an entry, unless it is larger than the whole cache may be.
    pub(super) fn put(&self, kind: Kind, name: &Digest, kept: &Kept) -> Result<(), FetchError> {
        let mut labelled = Vec::new();
        let bytes = match kind {
            Kind::Blob | Kind::Said => &kept.bytes,
            Kind::Manifest => {
                if kept.media_type.len() > MAX_MEDIA_TYPE || kept.media_type.contains('\n') {
                    return Ok(());
                }
                labelled.extend_from_slice(kept.media_type.as_bytes());
                labelled.push(b'\n');
                labelled.extend_from_slice(&kept.bytes);
                &labelled
            }
        };
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > self.max_bytes {
            return Ok(());
        }
        let lock = self.lock_file()?;
        lock.lock_shared().map_err(|error| io(&self.dir, &error))?;
        disk::write(&self.path(kind, name), bytes, Audience::Owner)?;
        drop(lock);
        let estimate = self.estimate.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        let since = self.since.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if estimate > self.max_bytes || since > self.max_bytes / 8 {
            self.evict()?;
        }
        Ok(())
    }

    fn lock_file(&self) -> Result<File, FetchError> {
        let path = self.dir.join("lock");
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true);
        options.open(&path).map_err(|error| io(&path, &error))
    }

    /// Counts what is there and removes what was used longest ago, until nine tenths of the limit
    /// are left. Whoever has a file open reads it to its end all the same.
    fn evict(&self) -> Result<(), FetchError> {
        let lock = self.lock_file()?;
        // Writers hold the lock while they have a temporary file, so that each one found now was
        // left behind by a process that is no more.
        lock.lock().map_err(|error| io(&self.dir, &error))?;
        let mut entries = Vec::new();
        let mut total: u64 = 0;
        for kind in Kind::ALL {
            let folder = self.dir.join(kind.folder());
            for entry in std::fs::read_dir(&folder).map_err(|error| io(&folder, &error))? {
                let entry = entry.map_err(|error| io(&folder, &error))?;
                if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                    let _ = std::fs::remove_file(entry.path());
                    continue;
                }
                let Ok(metadata) = entry.metadata() else { continue };
                total = total.saturating_add(metadata.len());
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push((used, entry.path(), metadata.len()));
            }
        }
        if total > self.max_bytes {
            let goal = self.max_bytes.saturating_sub(self.max_bytes / 10);
            entries.sort();
            for (_, path, size) in entries {
                if total <= goal {
                    break;
                }
                if std::fs::remove_file(&path).is_ok() {
                    total = total.saturating_sub(size);
                }
            }
        }
        drop(lock);
        self.estimate.store(total, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
        Ok(())
    }
}
