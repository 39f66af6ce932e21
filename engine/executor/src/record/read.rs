//! Reading a record, and checking that it holds together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::entry::{Entry, Line, MAX_LINE_BYTES, ZERO, sealed};
use super::writer::{hex, segment_name};

/// The most effects that are named because their outcome isn't known.
pub const MAX_NAMED: usize = 100;

/// The most effects that are held as under way at once. A record with more is refused.
const MAX_OPEN: usize = 1 << 20;

/// Why a record can't be read, or doesn't hold together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file can't be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A line is not what a record has there.
    #[error("{path}:{line}: {problem}")]
    Broken {
        /// The file.
        path: String,
        /// The line in it, from 1.
        line: u64,
        /// What is wrong.
        problem: Problem,
    },
}

impl ReadError {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "record-unreadable",
            Self::Broken { .. } => "record-broken",
        }
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is longer than any line of a record.
    #[error("the line is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// It is not a line of a record.
    #[error("this is no line of a record: {0}")]
    Form(String),
    /// It doesn't follow the line before.
    #[error("the line doesn't follow the one before it, which was changed, removed or replaced")]
    Chain,
    /// Its number doesn't follow.
    #[error("the line has number {found}, and {wanted} is next")]
    Number {
        /// The number it has.
        found: u64,
        /// The number that follows.
        wanted: u64,
    },
    /// It ends an effect that isn't under way.
    #[error("the line ends effect {0}, which isn't under way")]
    Outcome(u64),
    /// A segment doesn't begin with its number.
    #[error("segment {0} doesn't begin here")]
    Segment(u32),
    /// A segment says that it goes on in another that isn't there.
    #[error("the record goes on in segment {0}, which isn't there")]
    Missing(u32),
    /// Something follows the end.
    #[error("a line follows the end of the run")]
    AfterEnd,
    /// A signature isn't one of the key.
    #[error("the seal is not a signature of the key")]
    Seal,
}

/// The name of a run: the file's name without `.ndjson` and without the number of a segment.
#[must_use]
pub fn run_of(file_name: &str) -> Option<&str> {
    let name = file_name.strip_suffix(".ndjson")?;
    let run = match name.rsplit_once('.') {
        Some((run, number)) if number.parse::<u32>().is_ok() => run,
        _ => name,
    };
    (!run.is_empty()).then_some(run)
}

/// The lines of a record, through all its segments, each checked against the one before.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    run: String,
    segment: u32,
    path: PathBuf,
    file: BufReader<File>,
    line: u64,
    seq: u64,
    head: [u8; 32],
    next: Option<u32>,
    ended: bool,
    torn: u64,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a record by any of its files; reading begins with the first segment.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let failed = |source| ReadError::Io { path: path.display().to_string(), source };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let run = run_of(name)
            .ok_or_else(|| failed(std::io::Error::other("a record's name ends with `.ndjson`")))?;
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        let first = dir.join(segment_name(run, 1));
        let file = open(&first)?;
        Ok(Self {
            dir,
            run: run.to_owned(),
            segment: 1,
            path: first,
            file: BufReader::new(file),
            line: 0,
            seq: 0,
            head: ZERO,
            next: None,
            ended: false,
            torn: 0,
            buffer: Vec::with_capacity(MAX_LINE_BYTES),
        })
    }

    /// Returns the next line, or `None` at the end. A last line without its line end isn't
    /// returned: it was never written whole.
    ///
    /// # Errors
    ///
    /// [`ReadError`] at the first line that doesn't follow; reading can't go on after that.
    pub fn next_line(&mut self) -> Result<Option<Line<'static>>, ReadError> {
        loop {
            self.buffer.clear();
            let limit = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
            let read = self.file.by_ref().take(limit).read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|source| self.io(source))?;
            if self.buffer.pop_if(|last| *last == b'\n').is_none() {
                if read > MAX_LINE_BYTES {
                    self.line = self.line.saturating_add(1);
                    return Err(self.broken(Problem::TooLong));
                }
                if self.follow(read)? {
                    continue;
                }
                return Ok(None);
            }
            self.line = self.line.saturating_add(1);
            return self.check().map(Some);
        }
    }

    /// At the end of a file: goes on to the next segment, if there is one.
    fn follow(&mut self, torn: usize) -> Result<bool, ReadError> {
        let Some(next) = self.next else {
            self.torn = u64::try_from(torn).unwrap_or(u64::MAX);
            if torn > 0 {
                // What is written of the line so far may be read again, whole.
                let back = i64::try_from(torn).unwrap_or(0).saturating_neg();
                self.file.seek_relative(back).map_err(|source| self.io(source))?;
            }
            return Ok(false);
        };
        if torn > 0 {
            self.line = self.line.saturating_add(1);
            return Err(self.broken(Problem::Form("its end is missing".to_owned())));
        }
        let path = self.dir.join(segment_name(&self.run, next));
        let file = match open(&path) {
            Ok(file) => file,
            Err(ReadError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(self.broken(Problem::Missing(next)));
            }
            Err(error) => return Err(error),
        };
        (self.path, self.file, self.segment) = (path, BufReader::new(file), next);
        (self.line, self.next) = (0, None);
        Ok(true)
    }

    fn check(&mut self) -> Result<Line<'static>, ReadError> {
        let line: Line<'static> = serde_json::from_slice(&self.buffer)
            .map_err(|error| self.broken(Problem::Form(error.to_string())))?;
        let wanted = self.seq.saturating_add(1);
        if line.prev != hex(&self.head) {
            return Err(self.broken(Problem::Chain));
        }
        if line.seq != wanted {
            return Err(self.broken(Problem::Number { found: line.seq, wanted }));
        }
        let first = self.line == 1;
        let start = matches!(line.entry, Entry::Start { segment, .. } if segment == self.segment);
        if first != start {
            return Err(self.broken(Problem::Segment(self.segment)));
        }
        if self.ended && !matches!(line.entry, Entry::Seal { .. }) {
            return Err(self.broken(Problem::AfterEnd));
        }
        if let Entry::Continued { segment } = &line.entry {
            if self.segment.checked_add(1) != Some(*segment) {
                return Err(self.broken(Problem::Segment(*segment)));
            }
            self.next = Some(*segment);
        }
        self.ended |= matches!(line.entry, Entry::End { .. });
        self.seq = wanted;
        self.head.copy_from_slice(digest(&SHA256, &self.buffer).as_ref());
        Ok(line)
    }

    /// Returns the file that is being read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn io(&self, source: std::io::Error) -> ReadError {
        ReadError::Io { path: self.path.display().to_string(), source }
    }

    fn broken(&self, problem: Problem) -> ReadError {
        ReadError::Broken { path: self.path.display().to_string(), line: self.line, problem }
    }

    /// Whether a process still writes the segment.
    #[must_use]
    pub fn is_written(&self) -> bool {
        let file = self.file.get_ref();
        match file.try_lock_shared() {
            Ok(()) => {
                let _ = file.unlock();
                false
            }
            Err(std::fs::TryLockError::WouldBlock) => true,
            Err(std::fs::TryLockError::Error(_)) => false,
        }
    }
}

fn open(path: &Path) -> Result<File, ReadError> {
    let failed = |source| ReadError::Io { path: path.display().to_string(), source };
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::other("this is no regular file")));
    }
    Ok(file)
}

/// An effect whose outcome isn't on record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unknown {
    /// The number of its intent.
    pub seq: u64,
    /// The component.
    pub component: String,
    /// The verb.
    pub verb: String,
    /// What it touches.
    pub subject: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// In order.
    Ended,
    /// It goes on.
    Running,
    /// Nobody writes the record, and it doesn't say that it ended: the process was killed, or the
    /// last lines were cut off.
    Cut,
}

/// What verification found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Verified {
    /// Lines that hold.
    pub lines: u64,
    /// Segments.
    pub segments: u32,
    /// The SHA-256 of the last line, in hex.
    pub head: String,
    /// How the run ended.
    pub ending: Ending,
    /// Bytes of a last line that was never written whole.
    pub torn_bytes: u64,
    /// How many effects have no outcome on record.
    pub unknown: u64,
    /// The first [`MAX_NAMED`] of them.
    pub named: Vec<Unknown>,
    /// The line up to which seals reach; 0 where there is none.
    pub sealed_through: u64,
    /// The keys that sealed, by fingerprint, each once and at most 16.
    pub sealed_by: Vec<String>,
}

/// Checks a signature: the key's fingerprint, the message, the signature.
pub type SealCheck<'a> = dyn Fn(&str, &[u8], &[u8]) -> bool + 'a;

/// Verifies a record: each line follows the one before, each outcome has its intent, each seal that
/// `check` is asked about holds.
///
/// Without seals that are checked, whoever can write the file can write it anew; then only the head,
/// kept elsewhere, shows it.
///
/// # Errors
///
/// [`ReadError`] at the first line that doesn't hold.
pub fn verify(path: &Path, check: Option<&SealCheck<'_>>) -> Result<Verified, ReadError> {
    let mut reader = Reader::open(path)?;
    let mut open: BTreeMap<u64, Option<Unknown>> = BTreeMap::new();
    let mut named = 0_usize;
    let mut sealed_through = 0;
    let mut sealed_by: Vec<String> = Vec::new();
    while let Some(line) = reader.next_line()? {
        match line.entry {
            Entry::Intent { subject, .. } => {
                if open.len() >= MAX_OPEN {
                    let problem = format!("more than {MAX_OPEN} effects are under way");
                    return Err(reader.broken(Problem::Form(problem)));
                }
                // What is named is bounded, and the first are named.
                let unknown = (named < MAX_NAMED).then(|| Unknown {
                    seq: line.seq,
                    component: subject.component.into_owned(),
                    verb: subject.verb.into_owned(),
                    subject: subject.subject.into_owned(),
                });
                named = named.saturating_add(usize::from(unknown.is_some()));
                open.insert(line.seq, unknown);
            }
            Entry::Outcome { of, .. } => match open.remove(&of) {
                Some(unknown) => named = named.saturating_sub(usize::from(unknown.is_some())),
                None => return Err(reader.broken(Problem::Outcome(of))),
            },
            Entry::Seal { key, signature } => {
                if let Some(check) = check {
                    let signature = STANDARD.decode(signature.as_bytes());
                    let message = sealed(line.seq, &line.time, &line.prev);
                    if !signature.is_ok_and(|signature| check(&key, &message, &signature)) {
                        return Err(reader.broken(Problem::Seal));
                    }
                }
                sealed_through = line.seq;
                if sealed_by.len() < 16 && !sealed_by.iter().any(|seen| *seen == key) {
                    sealed_by.push(key.into_owned());
                }
            }
            Entry::Start { .. }
            | Entry::Component { .. }
            | Entry::Denied { .. }
            | Entry::Continued { .. }
            | Entry::End { .. } => {}
        }
    }
    let ending = if reader.ended {
        Ending::Ended
    } else if reader.is_written() {
        Ending::Running
    } else {
        Ending::Cut
    };
    Ok(Verified {
        lines: reader.seq,
        segments: reader.segment,
        head: hex(&reader.head),
        ending,
        torn_bytes: reader.torn,
        unknown: u64::try_from(open.len()).unwrap_or(u64::MAX),
        named: open.into_values().flatten().collect(),
        sealed_through,
        sealed_by,
    })
}
