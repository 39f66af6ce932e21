//! `ambit record`: what runs did, from what they wrote down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ambit_executor::record::{
    Entry, Filter, Line, ReadError, Reader, Summary, Verified, run_of, verify,
};
use ambit_trust::policy::{HashChoice, PublicKey, public_keys};

use crate::args::{
    Format, Record, RecordFilter, RecordList, RecordShow, RecordSource, RecordTail, RecordVerify,
};
use crate::exit::Exit;
use crate::output::{Failure, Output};
use crate::render::record as render;
use crate::render::style::{Style, line, table};
use crate::source::read_file;

/// The most records that are listed.
const MAX_LISTED: usize = 1000;

/// The most files of a folder that are looked at.
const MAX_FILES: usize = 100_000;

/// The largest file of public keys.
const MAX_KEY_FILE: usize = 64 << 10;

/// How often `tail` looks for more.
const LOOK: Duration = Duration::from_millis(200);

/// Runs a subcommand.
pub(crate) fn run(command: &Record, output: &Output) -> Result<Exit, Failure> {
    match command {
        Record::List(command) => list(command, output),
        Record::Show(command) => show(command, output),
        Record::Verify(command) => check(command, output),
        Record::Tail(command) => tail(command, output),
    }
}

/// The folder of records, unless one is named (XDG Base Directory Specification 0.8).
pub(crate) fn default_dir() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|dir| dir.join("ambit/record"))
}

fn dir(named: Option<&Path>) -> Result<PathBuf, Failure> {
    named.map(Path::to_owned).or_else(default_dir).ok_or_else(|| {
        let help = "name a folder with `--dir`".to_owned();
        Failure::new("record-unreadable", "there is no home folder to look in", Some(help))
    })
}

fn failure(error: &ReadError) -> Failure {
    let help = if matches!(error, ReadError::Broken { .. }) {
        "what stands before that line holds; what follows can't be relied on"
    } else {
        "see `ambit record list` for what there is"
    };
    Failure::new(error.code(), error.to_string(), Some(help.to_owned()))
}

/// The runs of a folder with the time at which each began to be written, the newest first.
fn runs(dir: &Path) -> Result<Vec<(SystemTime, String)>, Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("{}: {error}", dir.display());
        let help = "`ambit run` keeps a record there, or where its `--record` says".to_owned();
        Failure::new("record-unreadable", message, Some(help))
    };
    let mut runs = BTreeMap::new();
    for (count, entry) in std::fs::read_dir(dir).map_err(failed)?.enumerate() {
        if count >= MAX_FILES {
            return Err(failed(std::io::Error::other("there are too many files")));
        }
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(run) = name.to_str().and_then(run_of) else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            let time = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let last = runs.entry(run.to_owned()).or_insert(time);
            *last = time.max(*last);
        }
    }
    let mut runs: Vec<_> = runs.into_iter().map(|(run, time)| (time, run)).collect();
    runs.sort_unstable_by(|left, right| right.cmp(left));
    Ok(runs)
}

/// The file of a record: a file's name as it is, else a run's name in the folder, else the newest.
fn find(source: &RecordSource) -> Result<PathBuf, Failure> {
    let file = |dir: &Path, run: &str| dir.join(format!("{run}.ndjson"));
    match source.record.as_deref() {
        Some(name) if name.ends_with(".ndjson") => Ok(PathBuf::from(name)),
        Some(run) => Ok(file(&dir(source.dir.as_deref())?, run)),
        None => {
            let dir = dir(source.dir.as_deref())?;
            let runs = runs(&dir)?;
            let Some((_, run)) = runs.first() else {
                let message = format!("{} holds no record", dir.display());
                let help = "`ambit run` keeps one".to_owned();
                return Err(Failure::new("record-unreadable", message, Some(help)));
            };
            Ok(file(&dir, run))
        }
    }
}

fn filter(flags: &RecordFilter) -> Filter {
    Filter {
        workload: flags.workload.clone(),
        component: flags.component.clone(),
        verb: flags.verb.clone(),
        host: flags.host.as_deref().map(str::to_ascii_lowercase),
        denied: flags.denied,
    }
}

fn list(command: &RecordList, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let dir = dir(command.dir.as_deref())?;
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for (_, run) in runs(&dir)?.into_iter().take(MAX_LISTED) {
        let glance = glance(&dir.join(format!("{run}.ndjson")));
        let (workloads, problem) = match &glance {
            Ok(workloads) => (workloads.as_slice(), None),
            Err(error) => (&[][..], Some(error.to_string())),
        };
        documents.push(serde_json::json!({
            "run": run, "workloads": workloads, "problem": problem,
        }));
        let said = problem.unwrap_or_else(|| workloads.join(", "));
        rows.push(vec![line(&run), line(&said)]);
    }
    if output.format == Format::Json {
        let schema = "ambit.records/v1alpha1";
        output.json(&serde_json::json!({ "schema": schema, "records": documents }))?;
    } else {
        output.answer(&table(&rows, 0))?;
    }
    Ok(Exit::Done)
}

/// The workloads of a record, from the lines before its first effect.
fn glance(path: &Path) -> Result<Vec<String>, ReadError> {
    const MAX_NAMES: usize = 100;

    let mut reader = Reader::open(path)?;
    let mut workloads = Vec::new();
    while let Some(line) = reader.next_line()? {
        if matches!(line.entry, Entry::Start { .. }) {
            continue;
        }
        let Entry::Component { workload, .. } = line.entry else { break };
        let workload = workload.into_owned();
        if workloads.len() < MAX_NAMES && !workloads.contains(&workload) {
            workloads.push(workload);
        }
    }
    Ok(workloads)
}

fn show(command: &RecordShow, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let path = find(&command.source)?;
    let filter = filter(&command.filter);
    let mut reader = Reader::open(&path).map_err(|error| failure(&error))?;
    let style = Style::new(output.colored());
    let mut summary = Summary::default();
    let mut lines = Lines::new(*output, style);
    let broken = loop {
        match reader.next_line() {
            Ok(Some(line)) if command.lines => lines.print(&filter, &line)?,
            Ok(Some(line)) => summary.take(&filter, &line),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    if !command.lines {
        let run = path.file_name().and_then(|name| run_of(name.to_str()?)).unwrap_or_default();
        if output.format == Format::Json {
            output.json(&render::json(run, &summary))?;
        } else {
            output.answer(&render::human(run, &summary, style))?;
        }
    }
    match broken {
        None => Ok(Exit::Done),
        Some(error) => broke(&error, output),
    }
}

/// A record that doesn't hold is an answer, one that can't be read is none.
fn broke(error: &ReadError, output: &Output) -> Result<Exit, Failure> {
    if !matches!(error, ReadError::Broken { .. }) {
        return Err(failure(error));
    }
    output.failure(&failure(error));
    Ok(Exit::Denied)
}

/// Prints lines, and remembers what the outcomes belong to.
struct Lines {
    output: Output,
    style: Style,
    open: BTreeMap<u64, String>,
}

impl Lines {
    fn new(output: Output, style: Style) -> Self {
        Self { output, style, open: BTreeMap::new() }
    }

    fn print(&mut self, filter: &Filter, line: &Line<'_>) -> Result<(), Failure> {
        /// Outcomes of older effects are printed without what they belong to.
        const MAX_OPEN: usize = 1 << 16;

        if let Entry::Outcome { of, .. } = &line.entry {
            let Some(effect) = self.open.remove(of) else { return Ok(()) };
            return self.put(line, Some(&effect));
        }
        if !filter.takes_line(line) {
            return Ok(());
        }
        if let Entry::Intent { subject, .. } = &line.entry
            && self.open.len() < MAX_OPEN
        {
            self.open.insert(line.seq, render::effect(subject));
        }
        self.put(line, None)
    }

    fn put(&self, line: &Line<'_>, effect: Option<&str>) -> Result<(), Failure> {
        if self.output.format == Format::Json {
            let text = serde_json::to_string(line)
                .map_err(|error| Failure::new("output-failed", error.to_string(), None))?;
            return self.output.answer(&format!("{text}\n"));
        }
        self.output.answer(&render::line(line, effect, self.style))
    }
}

fn check(command: &RecordVerify, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let path = find(&command.source)?;
    let keys = match &command.key {
        Some(path) => Some(keys(path)?),
        None => None,
    };
    let sealed = |fingerprint: &str, message: &[u8], signature: &[u8]| {
        let mut keys = keys.iter().flatten();
        keys.any(|key| {
            key.fingerprint().to_string() == fingerprint && key.verifies(message, signature)
        })
    };
    let found = verify(&path, keys.is_some().then_some(&sealed));
    let found = match found {
        Ok(found) => found,
        Err(error) => return broke(&error, output),
    };
    let wrong = wrong(command, &found);
    if output.format == Format::Json {
        output.json(&render::verified_json(&path, &found, keys.is_some(), wrong.as_ref()))?;
    } else {
        let style = Style::new(output.colored());
        output.answer(&render::verified(&path, &found, keys.is_some(), wrong.as_ref(), style))?;
    }
    Ok(if wrong.is_some() { Exit::Denied } else { Exit::Done })
}

/// What is asked for beyond the chain, and isn't so.
fn wrong(command: &RecordVerify, found: &Verified) -> Option<String> {
    if command.key.is_some() && found.sealed_through < found.lines {
        let after = found.sealed_through.saturating_add(1);
        return Some(format!("from line {after} on, no seal of the key covers it"));
    }
    let wanted = command.head.as_deref()?.trim_start_matches("sha256:");
    (wanted != found.head)
        .then(|| format!("it ends with sha256:{}, not with the hash that was given", found.head))
}

fn keys(path: &Path) -> Result<Vec<PublicKey>, Failure> {
    let bytes = read_file(path, MAX_KEY_FILE)?;
    let text = String::from_utf8_lossy(&bytes);
    public_keys(&text, HashChoice::Unnamed).map_err(|error| {
        let message = format!("{}: {error}", path.display());
        Failure::new("key-form", message, Some(error.help().to_owned()))
    })
}

fn tail(command: &RecordTail, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let path = find(&command.source)?;
    let filter = filter(&command.filter);
    let mut reader = Reader::open(&path).map_err(|error| failure(&error))?;
    let mut lines = Lines::new(*output, Style::new(output.colored()));
    let mut shown = command.all;
    loop {
        match reader.next_line() {
            Ok(Some(line)) => {
                if shown {
                    lines.print(&filter, &line)?;
                }
            }
            Ok(None) => {
                shown = true;
                if !reader.is_written() {
                    // What was written between the last look and the end.
                    while let Some(line) = reader.next_line().map_err(|error| failure(&error))? {
                        lines.print(&filter, &line)?;
                    }
                    return Ok(Exit::Done);
                }
                std::thread::sleep(LOOK);
            }
            Err(error) => return broke(&error, output),
        }
    }
}
