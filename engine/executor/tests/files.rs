//! Folders against a tree of traps. What lies outside of what was granted is the same before and
//! after, and what lies inside of a read-only folder too.
#![expect(clippy::expect_used, reason = "helpers of tests may fail loudly")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ambit_executor::record::Kept;
use ambit_executor::stdio::Stdio;
use ambit_executor::{Limits, run_command};
use common::{Run, one, sample, try_manifest};

/// A folder `inside` that is granted, beside one that isn't, with every way between them.
struct Traps {
    root: tempfile::TempDir,
}

impl Traps {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let traps = Self { root };
        let (inside, outside) = (traps.path("inside"), traps.path("outside"));
        for dir in ["inside/sub", "inside/twice", "outside/deep"] {
            std::fs::create_dir_all(traps.path(dir)).expect("a folder");
        }
        for (file, text) in [
            ("inside/file", "inside"),
            ("inside/sub/file", "inside too"),
            ("outside/secret", "outside"),
            ("outside/deep/secret", "outside too"),
            ("outside/hard", "outside by another name"),
        ] {
            std::fs::write(traps.path(file), text).expect("a file");
        }
        symlink(outside.join("secret"), inside.join("absolute")).expect("a link");
        symlink("../outside/secret", inside.join("relative")).expect("a link");
        symlink("../outside", inside.join("folder")).expect("a link");
        symlink("/", inside.join("root")).expect("a link");
        symlink("sub/../../outside/secret", inside.join("round")).expect("a link");
        symlink("/proc/self/root", inside.join("magic")).expect("a link");
        symlink("/proc/self/cwd", inside.join("magic-cwd")).expect("a link");
        symlink("loop", inside.join("loop")).expect("a link");
        symlink("../outside/new", inside.join("dangling")).expect("a link");
        std::fs::hard_link(outside.join("hard"), inside.join("hard")).expect("a link");
        let pipe = rustix::fs::CWD;
        rustix::fs::mknodat(
            pipe,
            inside.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o644),
            0,
        )
        .expect("a pipe");
        let _socket = std::os::unix::net::UnixListener::bind(inside.join("socket")).expect("one");
        traps
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().expect("its path").join(name)
    }

    /// Everything beneath a folder: kinds, contents, link targets, times.
    fn snapshot(&self, name: &str) -> String {
        let mut work = vec![self.path(name)];
        let mut seen = BTreeMap::new();
        while let Some(path) = work.pop() {
            let status = path.symlink_metadata().expect("a status");
            let kind = status.file_type();
            let content = if kind.is_dir() {
                let entries = std::fs::read_dir(&path).expect("a folder").map_while(Result::ok);
                work.extend(entries.map(|entry| entry.path()));
                "folder".to_owned()
            } else if kind.is_symlink() {
                format!("{:?}", std::fs::read_link(&path).expect("a link"))
            } else if kind.is_fifo() || kind.is_socket() {
                "special".to_owned()
            } else {
                std::fs::read_to_string(&path).expect("a file")
            };
            let times = (status.mtime(), status.mtime_nsec(), status.mode());
            seen.insert(path, (content, times));
        }
        format!("{seen:#?}")
    }

    /// Runs a script in a component that has `inside` at `/in`.
    async fn run(&self, mode: Mode, script: &str) -> Ran {
        self.run_with(mode, script, Limits::default()).await
    }

    async fn run_with(&self, mode: Mode, script: &str, limits: Limits) -> Ran {
        let run = load(&[(&self.path("inside"), "/in", mode)], limits).expect("it loads");
        script_in(&run, script).await
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Mode {
    Read,
    Write,
}

fn load(folders: &[(&Path, &str, Mode)], limits: Limits) -> Result<Run, String> {
    let (mut volumes, mut mounts) = (String::new(), String::new());
    for (index, (path, guest, mode)) in folders.iter().enumerate() {
        let path = path.display();
        let _ = write!(volumes, "{{name: v{index}, hostPath: {{path: {path}}}}}, ");
        let read_only = *mode == Mode::Read;
        let _ = write!(mounts, "{{name: v{index}, mountPath: {guest}, readOnly: {read_only}}}, ");
    }
    let rest = format!("  volumes: [{volumes}]");
    let resources = format!("      volumeMounts: [{mounts}]");
    let bytes = sample("file-tool.wasm");
    try_manifest(&one("tool", &resources, &rest), &[("tool", &bytes)], |setup| {
        setup.limits = limits;
    })
    .map_err(|error| format!("{}: {error}", error.code()))
}

/// What a script came to.
struct Ran {
    said: String,
    effects: Vec<Kept>,
    error: Option<String>,
}

async fn script_in(run: &Run, script: &str) -> Ran {
    let (stdio, output) = Stdio::captured(script.to_owned());
    let ended = run_command(run.program(), &stdio).await;
    Ran {
        said: String::from_utf8(output.out()).expect("text"),
        effects: run.record.effects(),
        error: ended.err().map(|error| error.code().to_owned()),
    }
}

impl Ran {
    /// What was said to one line of the script.
    fn to(&self, line: &str) -> &str {
        let start = format!("{line}: ");
        let found = self.said.lines().find_map(|said| said.strip_prefix(&start));
        found.unwrap_or_else(|| unreachable!("`{line}` has no answer in\n{}", self.said))
    }
}

#[tokio::test]
async fn what_is_granted_works() {
    let traps = Traps::new();
    let ran = traps
        .run(
            Mode::Write,
            "read /in/file\nread /in/sub/file\nread /in/sub/../file\nwrite /in/new\nlist /in/sub\n\
             mkdir /in/made\nrename /in/new /in/made/new\nread /in/made/new\nunlink /in/made/new\n\
             rmdir /in/made\ntouch /in/file\nstat /in/file\n",
        )
        .await;
    assert_eq!(ran.to("read /in/file"), "ok inside");
    assert_eq!(ran.to("read /in/sub/../file"), "ok inside");
    assert_eq!(ran.to("read /in/made/new"), "ok changed");
    assert!(ran.said.lines().all(|line| line.contains(": ok")), "{}", ran.said);
    let changed = ran.effects.iter().filter(|e| e.verb.as_str() == "change folder").count();
    assert!(changed >= 6, "each change is on record: {:#?}", ran.effects);
    assert!(ran.effects.iter().all(|effect| effect.denied.is_none()));
}

#[tokio::test]
async fn no_path_leads_out() {
    let traps = Traps::new();
    let outside = traps.snapshot("outside");
    let mut script = String::new();
    for path in [
        "/in/../outside/secret",
        "/in/sub/../../outside/secret",
        "/in/absolute",
        "/in/relative",
        "/in/folder/secret",
        "/in/folder/../outside/secret",
        "/in/root/etc/passwd",
        "/in/round",
        "/in/magic/etc/passwd",
        "/in/magic-cwd",
        "/in/loop",
        "/etc/passwd",
        "/proc/self/environ",
        "../../../../etc/passwd",
    ] {
        let _ = writeln!(script, "read {path}\nstat {path}\nwrite {path}\ntruncate {path}");
        let _ = writeln!(script, "touch {path}");
    }
    for line in [
        "write /in/dangling",
        "write /in/folder/new",
        "mkdir /in/folder/new",
        "unlink /in/folder/secret",
        "rmdir /in/folder/deep",
        "rename /in/folder/secret /in/stolen",
        "rename /in/file /in/folder/file",
        "link /in/folder/secret /in/stolen",
        "link /in/relative /in/stolen",
        "list /in/folder",
        "list /in/..",
        "list /",
    ] {
        let _ = writeln!(script, "{line}");
    }
    let ran = traps.run(Mode::Write, &script).await;
    assert_eq!(ran.error, None, "{}", ran.said);
    let leaks: Vec<_> = ran.said.lines().filter(|line| line.contains("outside")).collect();
    let leaks: Vec<_> = leaks.into_iter().filter(|line| line.contains(": ok")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    for line in ran.said.lines() {
        // A link itself may be linked to; nothing else of these works.
        let harmless = line.starts_with("link /in/relative") || line.starts_with("touch /in/loop");
        assert!(harmless || !line.contains(": ok"), "{line}");
    }
    assert_eq!(traps.snapshot("outside"), outside);
    assert!(!traps.path("inside/stolen").is_file() || traps.path("inside/stolen").is_symlink());
}

#[tokio::test]
async fn links_may_be_made_and_lead_nowhere() {
    let traps = Traps::new();
    let outside = traps.snapshot("outside");
    let ran = traps
        .run(
            Mode::Write,
            "symlink ../outside /in/own\nread /in/own/secret\nsymlink /etc /in/etc\n\
             read /in/etc/passwd\nsymlink file /in/near\nread /in/near\n",
        )
        .await;
    assert!(!ran.to("read /in/own/secret").starts_with("ok"), "{}", ran.said);
    assert!(!ran.to("read /in/etc/passwd").starts_with("ok"), "{}", ran.said);
    assert_eq!(ran.to("read /in/near"), "ok inside", "within the folder a link works");
    assert_eq!(traps.snapshot("outside"), outside);
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_not_opened_and_nothing_hangs() {
    let traps = Traps::new();
    let ran = traps
        .run(Mode::Write, "read /in/pipe\nwrite /in/pipe\nread /in/socket\nwrite /in/socket\n")
        .await;
    assert!(ran.said.lines().all(|line| !line.contains(": ok")), "{}", ran.said);
    assert_eq!(ran.said.lines().count(), 4);
}

#[tokio::test]
async fn a_file_with_another_name_elsewhere_is_reported_and_not_written() {
    let traps = Traps::new();
    let outside = traps.snapshot("outside");
    let run = load(&[(&traps.path("inside"), "/in", Mode::Write)], Limits::default());
    let run = run.expect("it loads");
    let warnings = run.workload.warnings().join("\n");
    assert!(warnings.contains("hard links"), "{warnings}");
    let ran = script_in(&run, "read /in/hard\nwrite /in/hard\ntruncate /in/hard\n").await;
    assert_eq!(ran.to("read /in/hard"), "ok outside by another name");
    assert!(!ran.to("write /in/hard").starts_with("ok"), "{}", ran.said);
    assert!(!ran.to("truncate /in/hard").starts_with("ok"), "{}", ran.said);
    assert_eq!(traps.snapshot("outside"), outside);
}

#[tokio::test]
async fn nothing_in_a_read_only_folder_changes() {
    let traps = Traps::new();
    let (inside, outside) = (traps.snapshot("inside"), traps.snapshot("outside"));
    let script = "write /in/file\nwrite /in/new\ntruncate /in/file\ntouch /in/file\n\
                  unlink /in/file\nmkdir /in/new\nrmdir /in/sub\nrename /in/file /in/new\n\
                  link /in/file /in/new\nsymlink file /in/new\nread /in/file\n";
    let ran = traps.run(Mode::Read, script).await;
    assert_eq!(ran.to("read /in/file"), "ok inside");
    let worked: Vec<_> = ran.said.lines().filter(|line| line.contains(": ok")).collect();
    assert_eq!(worked.len(), 1, "{worked:?}");
    assert_eq!((traps.snapshot("inside"), traps.snapshot("outside")), (inside, outside));
    let denied: Vec<_> = ran.effects.iter().filter(|effect| effect.denied.is_some()).collect();
    assert_eq!(denied.len(), 10, "{denied:#?}");
    for effect in denied {
        assert_eq!(effect.denied.as_deref(), Some("folder-read-only"), "{effect:?}");
        assert!(effect.why.contains("workload.yaml:"), "{effect:?}");
    }
}

#[tokio::test]
async fn nothing_moves_between_folders_of_different_modes() {
    let traps = Traps::new();
    let twice = traps.path("inside/twice");
    let (read, write) = (traps.path("inside/sub"), twice.as_path());
    let run = load(&[(&read, "/r", Mode::Read), (write, "/w", Mode::Write)], Limits::default());
    let run = run.expect("it loads");
    let before = traps.snapshot("inside/sub");
    let script = "rename /r/file /w/file\nlink /r/file /w/file\nwrite /w/own\n\
                  rename /w/own /r/own\nlink /w/own /r/own\nread /w/own\n";
    let ran = script_in(&run, script).await;
    assert_eq!(ran.to("read /w/own"), "ok changed");
    for line in ["rename /r/file /w/file", "link /r/file /w/file", "rename /w/own /r/own"] {
        assert!(!ran.to(line).starts_with("ok"), "{}", ran.said);
    }
    assert_eq!(traps.snapshot("inside/sub"), before);

    let inside = traps.path("inside");
    let overlap =
        load(&[(&inside, "/a", Mode::Read), (&read, "/b", Mode::Write)], Limits::default());
    let error = overlap.expect_err("one of them would write what the other may only read");
    assert!(error.starts_with("folder-overlap"), "{error}");
}

#[tokio::test]
async fn a_folder_that_becomes_a_link_after_the_decision_is_not_opened() {
    let traps = Traps::new();
    let granted = traps.path("granted");
    std::fs::create_dir(&granted).expect("a folder");
    let folders = [(granted.as_path(), "/in", Mode::Write)];
    assert!(load(&folders, Limits::default()).is_ok());
    std::fs::remove_dir(&granted).expect("a folder");
    symlink(traps.path("outside"), &granted).expect("a link");
    let error = load(&folders, Limits::default()).expect_err("it is a link now");
    assert!(error.starts_with("folder-"), "{error}");
    std::fs::remove_file(&granted).expect("a link");
    std::fs::write(&granted, "a file").expect("a file");
    let error = load(&folders, Limits::default()).expect_err("it is a file now");
    assert!(error.starts_with("folder-"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_race_of_renames_leads_nowhere() {
    let traps = Traps::new();
    let outside = traps.snapshot("outside");
    let stop = Arc::new(AtomicBool::new(false));
    let (inside, stopped) = (traps.path("inside"), Arc::clone(&stop));
    std::fs::create_dir(inside.join("real")).expect("a folder");
    std::fs::write(inside.join("real/secret"), "inside").expect("a file");
    symlink("../outside", inside.join("fake")).expect("a link");
    let racer = std::thread::spawn(move || {
        let (real, fake, raced) = (inside.join("real"), inside.join("fake"), inside.join("raced"));
        while !stopped.load(Ordering::Relaxed) {
            for from in [&real, &fake] {
                let _ = std::fs::rename(from, &raced);
                let _ = std::fs::rename(&raced, from);
            }
        }
    });
    let script = "try /in/raced/secret 20000\ntry /in/fake/../raced/secret 2000\n";
    let ran = traps.run(Mode::Write, script).await;
    stop.store(true, Ordering::Relaxed);
    racer.join().expect("the racer ends");
    assert_eq!(ran.to("try /in/raced/secret 20000"), "0 leaks", "{:?}", ran.error);
    assert_eq!(ran.to("try /in/fake/../raced/secret 2000"), "0 leaks");
    assert_eq!(traps.snapshot("outside"), outside);
}

#[tokio::test]
async fn files_are_bounded_in_number_size_and_length_of_a_listing() {
    let traps = Traps::new();
    let limits = Limits { descriptors: 32, written_bytes: 100_000, ..Limits::default() };
    let script = "open-many /in/file 30\nopen-many /in/file 100\n";
    let ran = traps.run_with(Mode::Write, script, limits.clone()).await;
    assert_eq!(ran.error.as_deref(), Some("limit-descriptors"), "{}", ran.said);
    assert_eq!(ran.to("open-many /in/file 30"), "30 open");
    let ran = traps.run_with(Mode::Write, "fill /in/big 1000000\n", limits).await;
    assert_eq!(ran.error.as_deref(), Some("limit-written"), "{}", ran.said);
    let written = std::fs::metadata(traps.path("inside/big")).map_or(0, |status| status.len());
    assert!((1..=100_000).contains(&written), "{written}");

    let many = traps.path("inside/many");
    std::fs::create_dir(&many).expect("a folder");
    for number in 0..60 {
        std::fs::write(many.join(number.to_string()), "").expect("a file");
    }
    let limits = Limits { listing: 50, ..Limits::default() };
    let ran = traps.run_with(Mode::Read, "list /in/many\nlist /in/sub\n", limits).await;
    assert_eq!(ran.error.as_deref(), Some("limit-listing"), "{}", ran.said);
}

#[tokio::test]
async fn an_ephemeral_volume_is_gone_with_its_workload() {
    let temporary = tempfile::tempdir().expect("a folder");
    let bytes = sample("file-tool.wasm");
    let rest = "  volumes: [{name: scratch, ephemeral: {}}]";
    let resources = "      volumeMounts: [{name: scratch, mountPath: /tmp}]";
    let text = one("tool", resources, rest);
    let reviewed = ambit_testing::admit::manifest(&text, &[("tool", &bytes)]);
    let admitted = reviewed.admitted.expect("it is allowed");
    let record = ambit_executor::record::Memory::default();
    let setup = common::setup(&record);
    let source = ambit_executor::workload::Source {
        admitted: &admitted,
        bytes: &[&bytes],
        temporary: temporary.path(),
        code: ambit_executor::workload::Code::Compile,
        progress: &|_, _| {},
        arguments: &[],
    };
    let workload = ambit_executor::workload::Workload::load(&common::host(), &source, &setup);
    let workload = workload.expect("it loads");
    let count = || std::fs::read_dir(temporary.path()).expect("a folder").count();
    assert_eq!(count(), 1);
    let (stdio, output) = Stdio::captured("write /tmp/file\nread /tmp/file\n");
    let program = workload.programs().first().expect("a component");
    run_command(program, &stdio).await.expect("it runs");
    let said = String::from_utf8(output.out()).expect("text");
    assert!(said.contains("read /tmp/file: ok changed"), "{said}");
    drop(workload);
    assert_eq!(count(), 0);
}
