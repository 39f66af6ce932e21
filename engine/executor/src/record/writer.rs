//! Writing a record: one file per segment, each line chained to the one before.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::entry::{Entry, Grant, Line, MAX_LINE_BYTES, Subject, ZERO, bounded, sealed};
use super::{Effect, Outcome, RecordError, Recorder, Ruling, Ticket, Who};

/// The size at which a new segment begins, unless told otherwise.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// Outcomes that wait for room on the disk. More effects than that are never under way.
const MAX_WAITING: usize = 4096;

/// How a record is written.
pub struct Options {
    /// Whether each line is on the disk, and not only with the kernel, before the effect.
    pub sync: bool,
    /// The size at which a new segment begins, in bytes.
    pub segment_bytes: u64,
    /// Signs the head of the chain where a segment ends and at the end.
    pub seal: Option<Box<dyn Seal>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { sync: false, segment_bytes: SEGMENT_BYTES, seal: None }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("sync", &self.sync).finish_non_exhaustive()
    }
}

/// Signs the head of a record.
pub trait Seal: Send + Sync {
    /// Returns the digest of the key's SubjectPublicKeyInfo: `sha256:HEX`.
    fn key(&self) -> String;

    /// Signs `message`.
    ///
    /// # Errors
    ///
    /// Why it can't.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String>;
}

/// Writes a record into a folder: `RUN.ndjson`, then `RUN.2.ndjson` and so on.
///
/// A line is with the kernel when [`begin`](Recorder::begin) returns. If it can't be written whole
/// it is taken back, and the effect doesn't happen; once there is room again, effects do. What has
/// happened meanwhile is kept and written first.
#[derive(Debug)]
pub struct Writer {
    state: Mutex<State>,
}

/// Where a record ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Head {
    /// The file of the last line.
    pub path: PathBuf,
    /// The number of lines in all segments.
    pub lines: u64,
    /// The SHA-256 of the last line, in hex.
    pub hash: String,
}

#[derive(Debug)]
struct State {
    options: Options,
    dir: PathBuf,
    run: String,
    segment: u32,
    path: PathBuf,
    file: File,
    length: u64,
    seq: u64,
    head: [u8; 32],
    open: u64,
    broken: bool,
    waiting: VecDeque<(u64, Outcome)>,
    buffer: Vec<u8>,
}

impl Writer {
    /// Begins a record in `dir`, which is made if it isn't there, for its owner only.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] if the folder or the file can't be made.
    pub fn create(dir: &Path, options: Options) -> Result<Self, RecordError> {
        make_dir(dir).map_err(|error| io(dir, error))?;
        let mut random = [0_u8; 3];
        getrandom::fill(&mut random).map_err(|error| io(dir, std::io::Error::other(error)))?;
        let time: String = now().chars().filter(|c| !matches!(c, '-' | ':')).collect();
        let time = time.split('.').next().unwrap_or_default();
        let run = format!("{time}Z-{}", hex(&random));
        let (path, file) = segment(dir, &run, 1)?;
        let state = State {
            options,
            dir: dir.to_owned(),
            run,
            segment: 1,
            path,
            file,
            length: 0,
            seq: 0,
            head: ZERO,
            open: 0,
            broken: false,
            waiting: VecDeque::new(),
            buffer: Vec::with_capacity(MAX_LINE_BYTES),
        };
        let writer = Self { state: Mutex::new(state) };
        writer.with(State::start)?;
        Ok(writer)
    }

    /// Returns the file of the present segment.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.state.lock().map(|state| state.path.clone()).unwrap_or_default()
    }

    /// Records that a component may run.
    ///
    /// # Errors
    ///
    /// If the line can't be written; the component must not run then.
    pub fn component(&self, who: &Who, verdict: &str) -> Result<(), RecordError> {
        self.with(|state| {
            state
                .line(&Entry::Component {
                    workload: bounded(&who.workload, 520),
                    component: bounded(&who.component, 256),
                    digest: bounded(&who.digest, 80),
                    verdict: Cow::Borrowed(verdict),
                })
                .map(|_| ())
        })
    }

    /// Ends the record: signs it if it is to be signed, and says where it ends.
    ///
    /// # Errors
    ///
    /// If the last lines can't be written or signed.
    pub fn finish(&self) -> Result<Head, RecordError> {
        self.with(|state| {
            state.catch_up()?;
            state.line(&Entry::End { open: state.open })?;
            state.seal()?;
            state.file.sync_data().map_err(|error| io(&state.path, error))?;
            // Nothing may come after the end.
            state.broken = true;
            Ok(Head { path: state.path.clone(), lines: state.seq, hash: hex(&state.head) })
        })
    }

    fn with<T>(
        &self,
        act: impl FnOnce(&mut State) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        let mut state = self.state.lock().map_err(|_| RecordError::Broken)?;
        act(&mut state)
    }
}

impl Recorder for Writer {
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        self.with(|state| {
            state.catch_up()?;
            let seq = state.line(&entry(effect))?;
            if matches!(effect.ruling, Ruling::Allowed(_)) {
                state.open = state.open.saturating_add(1);
            }
            Ok(Ticket(seq))
        })
    }

    fn end(&self, ticket: Ticket, outcome: Outcome) {
        // A poisoned lock leaves the outcome unknown, as a reader of the record will see.
        let _ = self.with(|state| {
            state.open = state.open.saturating_sub(1);
            if state.waiting.len() >= MAX_WAITING {
                state.broken = true;
                return Err(RecordError::Broken);
            }
            state.waiting.push_back((ticket.0, outcome));
            state.catch_up()
        });
    }
}

fn entry<'a>(effect: &'a Effect<'_>) -> Entry<'a> {
    let subject = Subject {
        workload: bounded(&effect.who.workload, 520),
        component: bounded(&effect.who.component, 256),
        digest: bounded(&effect.who.digest, 80),
        instance: effect.instance,
        verb: effect.verb.as_str().into(),
        interface: bounded(effect.interface, 200),
        function: bounded(effect.function, 120),
        subject: bounded(&effect.subject, 1024),
    };
    match &effect.ruling {
        Ruling::Allowed(source) => Entry::Intent {
            subject,
            grant: source.map(|source| Grant {
                text: bounded(&source.text, 512),
                file: bounded(&source.file, 256),
                line: source.line,
            }),
        },
        Ruling::Denied { code, reason, help } => Entry::Denied {
            subject,
            code: bounded(code, 64),
            reason: bounded(reason, 512),
            help: bounded(help, 512),
        },
    }
}

impl State {
    fn start(&mut self) -> Result<(), RecordError> {
        let version = env!("CARGO_PKG_VERSION").into();
        self.line(&Entry::Start { format: 1, version, segment: self.segment }).map(|_| ())
    }

    /// Writes the outcomes that wait.
    fn catch_up(&mut self) -> Result<(), RecordError> {
        while let Some((of, outcome)) = self.waiting.pop_front() {
            let entry = Entry::Outcome {
                of,
                result: bounded(&outcome.result, 64),
                bytes_out: outcome.bytes_out,
                bytes_in: outcome.bytes_in,
                micros: u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX),
                detail: bounded(&outcome.detail, 512),
            };
            if let Err(error) = self.line(&entry) {
                drop(entry);
                self.waiting.push_front((of, outcome));
                return Err(error);
            }
        }
        Ok(())
    }

    fn line(&mut self, entry: &Entry<'_>) -> Result<u64, RecordError> {
        if self.length >= self.options.segment_bytes {
            self.rotate()?;
        }
        self.append(entry)
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<u64, RecordError> {
        self.append_at(now(), entry)
    }

    fn append_at(&mut self, time: String, entry: &Entry<'_>) -> Result<u64, RecordError> {
        if self.broken {
            return Err(RecordError::Broken);
        }
        let seq = self.seq.saturating_add(1);
        let line =
            Line { seq, time: time.into(), prev: hex(&self.head).into(), entry: entry.clone() };
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, &line)
            .map_err(|error| io(&self.path, error.into()))?;
        if self.buffer.len() > MAX_LINE_BYTES {
            let error = std::io::Error::other("a line is too long");
            return Err(io(&self.path, error));
        }
        let head = digest(&SHA256, &self.buffer);
        self.buffer.push(b'\n');
        let written = self
            .file
            .write_all(&self.buffer)
            .and_then(|()| if self.options.sync { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // Take back what was written of it. If that fails too, no line may follow.
            self.broken = self.file.set_len(self.length).is_err();
            return Err(io(&self.path, error));
        }
        let length = u64::try_from(self.buffer.len()).unwrap_or(u64::MAX);
        self.length = self.length.saturating_add(length);
        self.seq = seq;
        self.head.copy_from_slice(head.as_ref());
        Ok(seq)
    }

    fn seal(&mut self) -> Result<(), RecordError> {
        let Some(seal) = &self.options.seal else { return Ok(()) };
        let time = now();
        let message = sealed(self.seq.saturating_add(1), &time, &hex(&self.head));
        let signature =
            seal.sign(&message).map_err(|reason| io(&self.path, std::io::Error::other(reason)))?;
        let key = seal.key().into();
        let entry = Entry::Seal { key, signature: STANDARD.encode(signature).into() };
        self.append_at(time, &entry).map(|_| ())
    }

    /// Goes on in a new file. The old one ends with a line that says so.
    fn rotate(&mut self) -> Result<(), RecordError> {
        let next = self.segment.saturating_add(1);
        let (path, file) = segment(&self.dir, &self.run, next)?;
        if let Err(error) = self.append(&Entry::Continued { segment: next }) {
            // It is tried again; a file that is in the way would stop that.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        let sealed = self.seal();
        let synced = |()| self.file.sync_data().map_err(|error| io(&self.path, error));
        if let Err(error) = sealed.and_then(synced) {
            self.broken = true;
            return Err(error);
        }
        (self.path, self.file, self.segment, self.length) = (path, file, next, 0);
        self.start()
    }
}

/// Makes the file of a segment; it must not exist.
fn segment(dir: &Path, run: &str, number: u32) -> Result<(PathBuf, File), RecordError> {
    let path = dir.join(segment_name(run, number));
    let file = std::os::unix::fs::OpenOptionsExt::mode(&mut File::options(), 0o600)
        .append(true)
        .create_new(true)
        .open(&path)
        .map_err(|error| io(&path, error))?;
    // Readers see by the lock that the run goes on. A file system without locks does no harm.
    let _ = file.try_lock();
    Ok((path, file))
}

pub(super) fn segment_name(run: &str, number: u32) -> String {
    if number == 1 { format!("{run}.ndjson") } else { format!("{run}.{number}.ndjson") }
}

fn make_dir(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(dir)
}

fn io(path: &Path, source: std::io::Error) -> RecordError {
    RecordError::Io { path: path.display().to_string(), source }
}

/// The time, RFC 3339 in UTC, to the microsecond.
fn now() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
