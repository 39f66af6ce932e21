//! Compiled components, kept between runs.
//!
//! A compiled component is native code, and loading it runs no check of its contents. So an entry
//! counts only if its authentication code (keyed BLAKE3 under a key of this installation) is right,
//! which is looked at before anything else. Entries are keyed by the component's digest and by
//! everything that wasmtime says its code depends on. An entry that is broken, foreign or old is
//! compiled again and replaced, never trusted.
//!
//! The folder belongs to the user alone. Whoever can write to it and read the key in it can run
//! code as this user, which that person can do anyway.

use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ambit_engine::digest::Digest;
use sha2::{Digest as _, Sha256};
use wasmtime::component::Component;

use crate::engine::Host;
use crate::error::ExecutorError;
use crate::limits::Limits;

/// The end of an entry; the number goes up when its form changes.
const MAGIC: &[u8; 10] = b"ambit-aot2";

/// The length of an authentication code.
const MAC: usize = blake3::OUT_LEN;

/// What follows the code in an entry: its authentication code, and [`MAGIC`].
const TRAILER: usize = MAC + MAGIC.len();

/// How much of an entry is read and hashed at once.
const PART: usize = 1 << 20;

/// The most threads that hash one entry.
const MAX_WORKERS: usize = 4;

/// Reads the part of a code that starts at an offset, and fills the bytes.
type ReadPart<'a> = dyn Fn(&mut [u8], u64) -> io::Result<()> + Sync + 'a;

/// The largest entry.
const MAX_ENTRY: u64 = 1 << 30;

/// The most bytes of all entries; the oldest go first.
const MAX_TOTAL: u64 = 2 << 30;

/// How long a compilation goes on before somebody is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// A folder with compiled components.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    key: [u8; blake3::KEY_LEN],
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Is told how long a compilation has taken so far, about once a second.
pub type Progress<'a> = &'a dyn Fn(Duration);

impl Cache {
    /// Opens the folder, and makes it and its key if they aren't there.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Setup`] with code `aot-cache` if the folder can't be made or read, belongs
    /// to somebody else, or can be written to by others.
    pub fn open(dir: &Path) -> Result<Self, ExecutorError> {
        let failed = |reason: String| ExecutorError::Setup {
            code: "aot-cache",
            message: format!("`{}` can't keep compiled components: {reason}", dir.display()),
            help: "name another folder with `--cache-dir`".to_owned(),
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|error| failed(error.to_string()))?;
        let metadata = std::fs::metadata(dir).map_err(|error| failed(error.to_string()))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(failed("it belongs to another user".to_owned()));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(failed("others may write to it".to_owned()));
        }
        let key = key(dir).map_err(|error| failed(error.to_string()))?;
        Ok(Self { dir: dir.to_owned(), key, hits: AtomicU64::new(0), misses: AtomicU64::new(0) })
    }

    /// Returns how many components came out of the cache, and how many were compiled.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Returns the compiled component of a digest, if there is an entry that counts.
    pub(crate) fn find(&self, host: &Host, digest: &Digest) -> Option<Component> {
        let component = self.load(host, &entry_name(host, digest))?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(component)
    }

    /// Compiles a component, which becomes the entry. `bytes` have been verified against `digest`.
    ///
    /// # Errors
    ///
    /// As [`compile`]. An entry that can't be written is not an error: the next run compiles again.
    pub(crate) fn compile(
        &self,
        host: &Host,
        (name, bytes, digest): (&str, &[u8], &Digest),
        limits: &Limits,
        progress: Progress<'_>,
    ) -> Result<Component, ExecutorError> {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let component = compile(host, name, bytes, limits, progress)?;
        if let Ok(code) = component.serialize() {
            // A full disk costs only time.
            let _ = self.store(&entry_name(host, digest), &code);
            self.trim();
        }
        Ok(component)
    }

    #[expect(unsafe_code, reason = "wasmtime's loading of its own compiled code is unsafe")]
    fn load(&self, host: &Host, entry: &str) -> Option<Component> {
        let file = File::open(self.dir.join(entry)).ok()?;
        let length = file.metadata().ok()?.len();
        let code = length.checked_sub(u64::try_from(TRAILER).ok()?)?;
        if length > MAX_ENTRY {
            return None;
        }
        let own = self.code_of(entry, code, &|bytes, at| file.read_exact_at(bytes, at)).ok()?;
        let mut trailer = [0; TRAILER];
        file.read_exact_at(&mut trailer, code).ok()?;
        let (mac, magic) = trailer.split_at_checked(MAC)?;
        // Comparing hashes of BLAKE3 takes the same time wherever they differ.
        if magic != MAGIC.as_slice() || own != blake3::Hash::from_slice(mac).ok()? {
            return None;
        }
        // The name of this very file, whatever stands under its path by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the file holds what `store` wrote: its authentication code was just checked over
        // all of it, under a key that only this user can read, and entries are replaced and never
        // written to. `store` is given nothing but the output of `Component::serialize`, and the
        // entry's name holds the compatibility hash of this engine, which the code covers.
        unsafe { Component::deserialize_file(host.engine(), path) }.ok()
    }

    /// Computes the authentication code of an entry from its name, its length and its code: over
    /// the codes of its parts, which are computed side by side.
    fn code_of(&self, entry: &str, length: u64, part: &ReadPart<'_>) -> io::Result<blake3::Hash> {
        let starts: Vec<u64> = (0..length).step_by(PART).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            let mut bytes = vec![0; PART];
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(start) = starts.get(index) else { return Ok(done) };
                let size = usize::try_from(length.saturating_sub(*start)).unwrap_or(PART);
                let bytes = bytes.get_mut(..size.min(PART)).unwrap_or_default();
                part(bytes, *start)?;
                let mut hasher = blake3::Hasher::new_keyed(&self.key);
                hasher.update(format!("part\0{start}\0").as_bytes()).update(bytes);
                done.push((index, hasher.finalize()));
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
        let parts: io::Result<Vec<Vec<_>>> = std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..workers.min(starts.len())).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|other| {
                other.join().unwrap_or_else(|_| Err(io::Error::other("a thread gave up")))
            });
            std::iter::once(own).chain(others).collect()
        });
        let mut parts: Vec<(usize, blake3::Hash)> = parts?.into_iter().flatten().collect();
        parts.sort_unstable_by_key(|(index, _)| *index);
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(format!("{entry}\0{length}\0").as_bytes());
        for (_, part) in &parts {
            hasher.update(part.as_bytes());
        }
        Ok(hasher.finalize())
    }

    fn store(&self, entry: &str, code: &[u8]) -> io::Result<()> {
        let length = u64::try_from(code.len()).map_err(io::Error::other)?;
        let mac = self.code_of(entry, length, &|bytes, at| {
            let start = usize::try_from(at).map_err(io::Error::other)?;
            let part = code.get(start..).and_then(|rest| rest.get(..bytes.len()));
            bytes.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.dir)?;
        file.write_all(code)?;
        file.write_all(mac.as_bytes())?;
        file.write_all(MAGIC)?;
        file.as_file().sync_all()?;
        file.persist(self.dir.join(entry)).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the oldest entries over the bound, and what dead processes left behind.
    fn trim(&self) {
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return };
        let mut found: Vec<(std::time::SystemTime, u64, PathBuf)> = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(modified) = metadata.modified() else { continue };
            let left = name.to_string_lossy().starts_with(".new-")
                && modified.elapsed().is_ok_and(|age| age > Duration::from_secs(3600));
            if left {
                // Somebody else may have removed it, which is as good.
                let _ = std::fs::remove_file(entry.path());
            } else if name.to_string_lossy().ends_with(".aot") {
                found.push((modified, metadata.len(), entry.path()));
            }
        }
        found.sort();
        let mut total: u64 = found.iter().map(|(_, length, _)| *length).sum();
        for (_, length, path) in found {
            if total <= MAX_TOTAL {
                break;
            }
            let _ = std::fs::remove_file(path);
            total = total.saturating_sub(length);
        }
    }
}

/// Everything that code depends on, as a file's name.
fn entry_name(host: &Host, digest: &Digest) -> String {
    struct Bytes(Sha256);
    impl Hasher for Bytes {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hasher = Bytes(Sha256::new());
    host.engine().precompile_compatibility_hash().hash(&mut hasher);
    let hash = hasher.0.finalize();
    let engine: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let component: String =
        digest.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{component}-{engine}.aot")
}

/// Reads the installation's key, or makes it.
fn key(dir: &Path) -> io::Result<[u8; 32]> {
    let path = dir.join("key");
    for _ in 0..2 {
        match File::open(&path) {
            Ok(mut file) => {
                let metadata = file.metadata()?;
                if metadata.mode() & 0o077 != 0 || metadata.len() != 32 {
                    return Err(io::Error::other("its key was tampered with; remove the folder"));
                }
                let mut key = [0; 32];
                file.read_exact(&mut key)?;
                return Ok(key);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let draft = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
        let mut file = OpenOptions::new().write(true).mode(0o600).open(draft.path())?;
        file.write_all(&key)?;
        file.sync_all()?;
        // Of several processes, the first one's key stays.
        match draft.persist_noclobber(&path) {
            Ok(_) => {}
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.error),
        }
    }
    Err(io::Error::other("its key can't be made"))
}

/// Compiles a component on a bounded number of threads, and gives up after the time limit.
///
/// A compilation that is given up goes on until it ends by itself, since nothing can stop it; its
/// result is dropped.
///
/// # Errors
///
/// [`ExecutorError::Compile`] if wasmtime refuses the component or the time is over, and
/// [`ExecutorError::Engine`] if the machine gives no threads.
pub(crate) fn compile(
    host: &Host,
    name: &str,
    bytes: &[u8],
    limits: &Limits,
    progress: Progress<'_>,
) -> Result<Component, ExecutorError> {
    let engine_failed = |reason: String| ExecutorError::Engine { reason };
    let refused = |reason: String| ExecutorError::Compile { component: name.to_owned(), reason };
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(limits.compile_threads.max(1))
        .build()
        .map_err(|error| engine_failed(error.to_string()))?;
    let (sender, receiver) = channel();
    let (engine, bytes) = (host.engine().clone(), bytes.to_vec());
    std::thread::Builder::new()
        .name("ambit-compile".to_owned())
        .spawn(move || {
            let compiled = threads.install(|| Component::from_binary(&engine, &bytes));
            // Nobody may be waiting any more.
            let _ = sender.send(compiled);
        })
        .map_err(|error| engine_failed(error.to_string()))?;
    let since = Instant::now();
    loop {
        let left = limits.compile_time.saturating_sub(since.elapsed());
        match receiver.recv_timeout(left.min(PATIENCE)) {
            Ok(Ok(component)) => return Ok(component),
            Ok(Err(error)) => return Err(refused(format!("{error:#}"))),
            Err(RecvTimeoutError::Timeout) if since.elapsed() >= limits.compile_time => {
                return Err(refused(format!("it took longer than {:?}", limits.compile_time)));
            }
            Err(RecvTimeoutError::Timeout) => progress(since.elapsed()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(refused("the compiler gave up".to_owned()));
            }
        }
    }
}
