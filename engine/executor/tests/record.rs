//! The record: what is written can be read, and what was done to it shows.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests may fail loudly")]

use std::borrow::Cow;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ambit_engine::admitted::GrantSource;
use ambit_engine::catalogue::Verb;
use ambit_executor::record::{
    Effect, Ending, Entry, Filter, MAX_LINE_BYTES, Options, Outcome, Problem, ReadError, Reader,
    RecordError, Recorder as _, Ruling, Seal, Summary, Ticket, Verified, Who, Writer, verify,
};
use aws_lc_rs::hmac;

/// Where a child process of a test writes; the test that names it does nothing without.
const CHILD: &str = "AMBIT_TEST_RECORD";

fn who() -> Who {
    Who {
        workload: "shop/mail".to_owned(),
        component: "mailer".to_owned(),
        digest: format!("sha256:{}", "ab".repeat(32)),
    }
}

fn effect<'a>(who: &'a Who, subject: &'a str, ruling: Ruling<'a>) -> Effect<'a> {
    Effect {
        who,
        instance: 7,
        verb: Verb::ReachHosts,
        interface: "wasi:http/outgoing-handler@0.2",
        function: "handle",
        subject: Cow::Borrowed(subject),
        ruling,
    }
}

fn denied<'a>() -> Ruling<'a> {
    Ruling::Denied {
        code: "request-not-granted",
        reason: "it isn't granted".into(),
        help: "add it to `allowedHosts`".into(),
    }
}

fn allowed(writer: &Writer, subject: &str) -> Ticket {
    writer.begin(&effect(&who(), subject, Ruling::Allowed(None))).expect("room")
}

fn outcome(result: &'static str) -> Outcome {
    Outcome {
        result: result.into(),
        bytes_out: 10,
        bytes_in: 200,
        duration: Duration::from_millis(3),
        detail: "200".to_owned(),
    }
}

/// A record with two effects, one of which is still under way, and a denial.
fn write(dir: &Path, options: Options) -> (PathBuf, Writer) {
    let writer = Writer::create(dir, options).expect("a folder");
    writer.component(&who(), "allow").expect("room");
    let first = allowed(&writer, "https://api.example.com:443");
    writer.end(first, outcome("ok"));
    let _ = writer.begin(&effect(&who(), "https://other.example:443", denied())).expect("room");
    let _ = allowed(&writer, "https://api.example.com:443");
    (writer.path(), writer)
}

fn checked(path: &Path) -> Result<Verified, ReadError> {
    verify(path, None)
}

fn problem(path: &Path) -> Problem {
    let error = checked(path).expect_err("it doesn't hold");
    let ReadError::Broken { problem, .. } = error else { panic!("{error}") };
    problem
}

struct Key(hmac::Key);

impl Key {
    fn new() -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, b"a key of the test"))
    }

    fn check(&self, key: &str, message: &[u8], signature: &[u8]) -> bool {
        key == "00ff" && hmac::verify(&self.0, message, signature).is_ok()
    }
}

impl Seal for Key {
    fn key(&self) -> String {
        "00ff".to_owned()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

#[test]
fn what_is_written_verifies_and_can_be_summed_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let (path, writer) = write(dir.path(), Options::default());

    let running = checked(&path).expect("it holds");
    assert_eq!((running.ending, running.lines, running.unknown), (Ending::Running, 6, 1));
    assert_eq!(running.named.first().map(|named| named.seq), Some(6));

    let head = writer.finish().expect("room");
    drop(writer);
    let ended = checked(&path).expect("it holds");
    assert_eq!((ended.ending, ended.lines, ended.head), (Ending::Ended, head.lines, head.hash));
    assert_eq!((ended.unknown, ended.sealed_through, ended.torn_bytes), (1, 0, 0));

    let mut reader = Reader::open(&path).expect("a record");
    let mut summary = Summary::default();
    while let Some(line) = reader.next_line().expect("it holds") {
        summary.take(&Filter::default(), &line);
    }
    let (_, verbs) = summary.components.first_key_value().expect("a component");
    let hosts = &verbs["reach hosts"];
    let reached = &hosts["https://api.example.com:443"];
    assert_eq!((reached.allowed, reached.unknown, reached.bytes_in), (2, 1, 200));
    let other = &hosts["https://other.example:443"];
    assert_eq!((other.denied, other.help.as_deref()), (1, Some("add it to `allowedHosts`")));
}

#[test]
fn each_filter_leaves_only_its_lines() {
    let dir = tempfile::tempdir().expect("a folder");
    let (path, _writer) = write(dir.path(), Options::default());
    let count = |filter: &Filter| {
        let mut reader = Reader::open(&path).expect("a record");
        let mut taken = 0;
        while let Some(line) = reader.next_line().expect("it holds") {
            taken += usize::from(filter.takes_line(&line));
        }
        taken
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(count(&Filter::default()), 6);
    for (filter, wanted) in [
        (Filter { denied: true, ..Filter::default() }, 1),
        (Filter { host: text("api.example.com"), ..Filter::default() }, 2),
        (Filter { host: text("example.com"), ..Filter::default() }, 0),
        (Filter { verb: text("reach-hosts"), ..Filter::default() }, 3),
        (Filter { verb: text("read folder"), ..Filter::default() }, 0),
        (Filter { workload: text("mail"), ..Filter::default() }, 3),
        (Filter { workload: text("shop/mail"), ..Filter::default() }, 3),
        (Filter { component: text("other"), ..Filter::default() }, 0),
    ] {
        assert_eq!(count(&filter), wanted, "{filter:?}");
    }
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let seal = Box::new(Key::new());
    let (path, writer) = write(dir.path(), Options { seal: Some(seal), ..Options::default() });
    writer.finish().expect("room");
    drop(writer);
    let key = Key::new();
    let check =
        |key_hash: &str, message: &[u8], signature: &[u8]| key.check(key_hash, message, signature);
    let whole = std::fs::read(&path).expect("a file");
    let held = verify(&path, Some(&check)).expect("it holds");
    assert_eq!(held.sealed_through, held.lines);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).expect("room");
        match verify(&path, Some(&check)) {
            Err(_) => {}
            // Without its line end the last line, the seal, isn't there.
            Ok(found) => assert!(
                at == whole.len() - 1 && found.sealed_through < held.lines,
                "a change at byte {at} isn't found"
            ),
        }
    }
}

#[test]
fn a_line_that_is_taken_out_moved_or_repeated_is_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let (path, writer) = write(dir.path(), Options::default());
    drop(writer);
    let text = std::fs::read_to_string(&path).expect("a file");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let with = |lines: &[&str]| std::fs::write(&path, lines.concat()).expect("room");

    for gone in 0..lines.len() - 1 {
        let mut left = lines.clone();
        left.remove(gone);
        with(&left);
        assert!(checked(&path).is_err(), "without line {gone}");
    }
    let mut moved = lines.clone();
    moved.swap(2, 3);
    with(&moved);
    assert_eq!(problem(&path), Problem::Chain);
    let mut repeated = lines.clone();
    repeated.insert(4, lines[3]);
    with(&repeated);
    assert_eq!(problem(&path), Problem::Chain);

    // The last line has no line after it: only a seal or the head tells.
    with(&lines[..lines.len() - 1]);
    let cut = checked(&path).expect("what is left holds");
    assert_eq!((cut.ending, cut.lines), (Ending::Cut, 5));
}

#[test]
fn a_line_that_says_what_no_record_says_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("run.ndjson");
    let long = format!("{}\n", "x".repeat(MAX_LINE_BYTES + 1));
    for (text, wanted) in [
        ("{}\n", "this is no line"),
        ("hello\n", "this is no line"),
        ("\u{0}\n", "this is no line"),
        ("[[[[[[[[[[[[[[[[[[\n", "this is no line"),
        (long.as_str(), "the line is longer"),
    ] {
        std::fs::write(&path, text).expect("room");
        let found = checked(&path).expect_err("it is no record").to_string();
        assert!(found.contains(wanted), "{found}");
    }
    assert!(checked(dir.path()).is_err(), "a folder");
    assert!(checked(&dir.path().join("none.ndjson")).is_err(), "nothing");
    assert!(checked(Path::new("/dev/zero")).is_err(), "a device");
}

#[test]
fn a_record_that_is_cut_anywhere_holds_up_to_its_last_whole_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let (path, writer) = write(dir.path(), Options::default());
    drop(writer);
    let whole = std::fs::read(&path).expect("a file");
    for length in 0..whole.len() {
        let cut = &whole[..length];
        std::fs::write(&path, cut).expect("room");
        let found = checked(&path).expect("it holds");
        let lines = cut.iter().filter(|byte| **byte == b'\n').count();
        let rest = cut.iter().rev().take_while(|byte| **byte != b'\n').count();
        assert_eq!((found.lines, found.torn_bytes), (lines as u64, rest as u64), "{length}");
        assert_eq!(found.ending, Ending::Cut);
    }
}

#[test]
fn a_record_goes_on_in_segments_and_a_missing_one_is_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let seal = Box::new(Key::new());
    let options = Options { segment_bytes: 2000, seal: Some(seal), ..Options::default() };
    let writer = Writer::create(dir.path(), options).expect("a folder");
    let first = writer.path();
    for _ in 0..20 {
        let ticket = allowed(&writer, "https://api.example.com:443");
        writer.end(ticket, outcome("ok"));
    }
    let head = writer.finish().expect("room");
    let found = checked(&first).expect("it holds");
    assert!(found.segments > 3, "{found:?}");
    assert_eq!((&found.head, found.lines), (&head.hash, head.lines));
    assert_eq!(found.sealed_through, found.lines);
    assert_eq!(checked(&head.path).expect("by any file of it"), found);

    let name = first.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let second = dir.path().join(format!("{name}.2.ndjson"));
    let bytes = std::fs::read(&second).expect("a file");
    std::fs::remove_file(&second).expect("a file");
    assert_eq!(problem(&first), Problem::Missing(2));
    std::fs::copy(&first, &second).expect("room");
    assert_eq!(problem(&first), Problem::Chain);
    std::fs::write(&second, bytes).expect("room");
    assert!(checked(&first).is_ok());
}

#[test]
fn no_name_makes_a_line_too_long_or_breaks_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let writer = Writer::create(dir.path(), Options::default()).expect("a folder");
    for text in ["\u{1}\n\"\\", "é", "𝄞", "\u{202e}\u{2028}"] {
        let long = text.repeat(100_000);
        let who = Who { workload: long.clone(), component: long.clone(), digest: long.clone() };
        let source =
            GrantSource { text: long.clone(), file: long.clone(), ..GrantSource::default() };
        for ruling in [
            Ruling::Allowed(Some(&source)),
            Ruling::Denied {
                code: "a-code",
                reason: long.as_str().into(),
                help: long.as_str().into(),
            },
        ] {
            let effect = Effect {
                who: &who,
                instance: u64::MAX,
                verb: Verb::UseMachinePorts,
                interface: &long,
                function: &long,
                subject: long.as_str().into(),
                ruling,
            };
            let ticket = writer.begin(&effect).expect("room");
            if matches!(effect.ruling, Ruling::Allowed(_)) {
                let (result, detail) = (long.clone().into(), long.clone());
                writer.end(ticket, Outcome { result, detail, ..Outcome::default() });
            }
        }
    }
    let path = writer.path();
    let found = checked(&path).expect("it holds");
    assert_eq!((found.lines, found.unknown), (13, 0));
    let text = std::fs::read_to_string(path).expect("a file");
    assert!(text.lines().all(|line| line.len() <= MAX_LINE_BYTES));
}

#[test]
fn nothing_follows_the_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, writer) = write(dir.path(), Options::default());
    writer.finish().expect("room");
    let who = who();
    let late = writer.begin(&effect(&who, "https://late.example:443", Ruling::Allowed(None)));
    assert!(matches!(late, Err(RecordError::Broken)));
}

/// Runs one test of this file in a process of its own, with a folder to write to.
fn child(test: &str, shell: &str, dir: &Path) -> std::process::Child {
    let this = std::env::current_exe().expect("a test binary");
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" --exact {test} --nocapture")])
        .arg(this)
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a process")
}

fn only_file(dir: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(dir).expect("a folder");
    files.next().expect("a record").expect("readable").path()
}

/// Not a test by itself: what [`a_killed_process_leaves_a_record_that_holds`] kills.
#[test]
fn writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let writer = Writer::create(Path::new(&dir), Options::default()).expect("a folder");
    for count in 0.. {
        let ticket = allowed(&writer, "https://api.example.com:443");
        if count == 50 {
            println!("fifty");
        }
        writer.end(ticket, outcome("ok"));
    }
}

#[test]
fn a_killed_process_leaves_a_record_that_holds() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut child = child("writes_until_it_is_killed", "", dir.path());
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let told = lines.map_while(Result::ok).any(|line| line.contains("fifty"));
    assert!(told, "the child writes");
    child.kill().expect("a process");
    child.wait().expect("a process");
    let found = checked(&only_file(dir.path())).expect("it holds");
    assert_eq!(found.ending, Ending::Cut);
    assert!(found.lines > 100, "{found:?}");
    assert!(found.unknown <= 1, "{found:?}");
}

/// Not a test by itself: what [`a_full_disk_stops_effects_until_there_is_room`] runs, under a limit
/// on the size of files.
#[test]
fn writes_until_there_is_no_room() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let writer = Writer::create(Path::new(&dir), Options::default()).expect("a folder");
    let under_way = allowed(&writer, "https://slow.example:443");
    let mut happened = 0_u32;
    let who = who();
    let full = loop {
        let subject = "https://api.example.com:443";
        match writer.begin(&effect(&who, subject, Ruling::Allowed(None))) {
            Ok(ticket) => writer.end(ticket, outcome("ok")),
            Err(error) => break error,
        }
        happened += 1;
    };
    assert!(matches!(full, RecordError::Io { .. }), "{full:?}");
    assert!(happened > 3);
    writer.end(under_way, outcome("ok"));
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, raised).expect("a limit");
    let last = allowed(&writer, "https://last.example:443");
    writer.end(last, outcome("ok"));
    writer.finish().expect("room");
}

#[test]
fn a_full_disk_stops_effects_until_there_is_room() {
    let dir = tempfile::tempdir().expect("a folder");
    let shell = "trap '' XFSZ; ulimit -S -f 16;";
    let child = child("writes_until_there_is_no_room", shell, dir.path());
    let out = child.wait_with_output().expect("a process");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    let path = only_file(dir.path());
    let found = checked(&path).expect("it holds");
    assert_eq!((found.ending, found.unknown), (Ending::Ended, 0), "no outcome is lost");
    let mut reader = Reader::open(&path).expect("a record");
    let mut last = None;
    while let Some(line) = reader.next_line().expect("it holds") {
        if let Entry::Intent { subject, .. } = line.entry {
            last = Some(subject.subject.into_owned());
        }
    }
    assert_eq!(last.as_deref(), Some("https://last.example:443"));
}

#[test]
fn the_files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().expect("a folder");
    let dir = parent.path().join("new");
    let (path, _writer) = write(&dir, Options { sync: true, ..Options::default() });
    let mode = |path: &Path| path.metadata().expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&path)), (0o700, 0o600));
}
