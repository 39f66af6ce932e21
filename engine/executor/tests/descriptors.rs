//! What a component keeps open, and by which ways: the C library closes what these guests hold.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests may fail loudly")]

mod common;
#[path = "common/guest.rs"]
mod guest;

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ambit_executor::record::{Effect, Outcome, RecordError, Recorder, Ticket};
use ambit_executor::stdio::Stdio;
use ambit_executor::{ExecutorError, Limits, invoke};
use common::{Run, one, try_manifest};
use guest::{MEMORY, component};

/// The part of WASI 0.2 that the guest uses, with the types as they are there.
const WIT: &str = r#"
package test:guest;
package wasi:io@0.2.0 {
  interface error { resource error; }
  interface streams {
    use error.{error};
    variant stream-error { last-operation-failed(error), closed }
    resource input-stream;
    resource output-stream {
      blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
      blocking-write-zeroes-and-flush: func(len: u64) -> result<_, stream-error>;
    }
  }
}
package wasi:clocks@0.2.0 {
  interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } }
}
package wasi:filesystem@0.2.0 {
  interface types {
    use wasi:io/streams@0.2.0.{input-stream, output-stream};
    use wasi:clocks/wall-clock@0.2.0.{datetime};
    enum error-code {
      access, would-block, already, bad-descriptor, busy, deadlock, quota, exist,
      file-too-large, illegal-byte-sequence, in-progress, interrupted, invalid, io,
      is-directory, loop, too-many-links, message-size, name-too-long, no-device, no-entry,
      no-lock, insufficient-memory, insufficient-space, not-directory, not-empty,
      not-recoverable, unsupported, no-tty, no-such-device, overflow, not-permitted, pipe,
      read-only, invalid-seek, text-file-busy, cross-device
    }
    flags path-flags { symlink-follow }
    flags open-flags { create, directory, exclusive, truncate }
    flags descriptor-flags {
      read, write, file-integrity-sync, data-integrity-sync, requested-write-sync,
      mutate-directory
    }
    variant new-timestamp { no-change, now, timestamp(datetime) }
    resource directory-entry-stream;
    resource descriptor {
      read-via-stream: func(offset: u64) -> result<input-stream, error-code>;
      write-via-stream: func(offset: u64) -> result<output-stream, error-code>;
      append-via-stream: func() -> result<output-stream, error-code>;
      write: func(buffer: list<u8>, offset: u64) -> result<u64, error-code>;
      set-size: func(size: u64) -> result<_, error-code>;
      set-times: func(access: new-timestamp, modified: new-timestamp) -> result<_, error-code>;
      read-directory: func() -> result<directory-entry-stream, error-code>;
      create-directory-at: func(path: string) -> result<_, error-code>;
      link-at: func(old-path-flags: path-flags, old-path: string,
        new-descriptor: borrow<descriptor>, new-path: string) -> result<_, error-code>;
      symlink-at: func(old-path: string, new-path: string) -> result<_, error-code>;
      set-times-at: func(path-flags: path-flags, path: string, access: new-timestamp,
        modified: new-timestamp) -> result<_, error-code>;
      open-at: func(path-flags: path-flags, path: string, open-flags: open-flags,
        %flags: descriptor-flags) -> result<descriptor, error-code>;
    }
  }
  interface preopens {
    use types.{descriptor};
    get-directories: func() -> list<tuple<descriptor, string>>;
  }
}
world holder {
  import wasi:filesystem/preopens@0.2.0;
  import wasi:filesystem/types@0.2.0;
  import wasi:io/streams@0.2.0;
  export roots: func(times: u32, keep: bool) -> u32;
  export readers: func(path: string, times: u32, keep: bool) -> u32;
  export writers: func(path: string, times: u32, keep: bool) -> u32;
  export listings: func(times: u32, keep: bool) -> u32;
  export touch: func(path: string) -> u32;
  export touch-at: func(path: string) -> u32;
  export late: func(path: string) -> u32;
  export fill: func(path: string, way: u32, times: u32) -> u32;
  export name: func(path: string, way: u32, times: u32) -> u32;
}
"#;

/// Every function gives 0, or one more than the number of the error code.
const CORE: &str = r#"
  (import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $dirs (param i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.open-at"
    (func $open-at (param i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.read-via-stream"
    (func $read-via (param i32 i64 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.write-via-stream"
    (func $write-via (param i32 i64 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.append-via-stream"
    (func $append-via (param i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.write"
    (func $write (param i32 i32 i32 i64 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.set-size"
    (func $set-size (param i32 i64 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.read-directory"
    (func $list (param i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.create-directory-at"
    (func $make (param i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.link-at"
    (func $link (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.symlink-at"
    (func $symlink (param i32 i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.set-times"
    (func $set-times (param i32 i32 i64 i32 i32 i64 i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.set-times-at"
    (func $set-times-at (param i32 i32 i32 i32 i32 i64 i32 i32 i64 i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[resource-drop]descriptor" (func $close (param i32)))
  (import "wasi:filesystem/types@0.2.0" "[resource-drop]directory-entry-stream"
    (func $close-list (param i32)))
  (import "wasi:io/streams@0.2.0" "[resource-drop]input-stream" (func $close-in (param i32)))
  (import "wasi:io/streams@0.2.0" "[resource-drop]output-stream" (func $close-out (param i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
    (func $flush (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-zeroes-and-flush"
    (func $zeroes (param i32 i64 i32)))

  (func $root (result i32)
    (call $dirs (i32.const 16))
    (i32.load (i32.load (i32.const 16))))
  ;; Whether the last call went wrong, with its payload at 36.
  (func $bad (result i32) (i32.load8_u (i32.const 32)))
  (func $error (result i32) (i32.add (i32.load8_u (i32.const 36)) (i32.const 1)))
  (func $last (result i32) (i32.load (i32.const 36)))
  (func $open (param $dir i32) (param $path i32) (param $length i32) (param $how i32)
      (param $mode i32)
    (call $open-at (local.get $dir) (i32.const 1) (local.get $path) (local.get $length)
      (local.get $how) (local.get $mode) (i32.const 32)))

  (func (export "roots") (param $times i32) (param $keep i32) (result i32)
    (local $at i32)
    (loop $again
      (local.set $at (call $root))
      (if (i32.eqz (local.get $keep)) (then (call $close (local.get $at))))
      (local.set $times (i32.sub (local.get $times) (i32.const 1)))
      (br_if $again (local.get $times)))
    (i32.const 0))

  (func (export "readers") (param $path i32) (param $length i32) (param $times i32)
      (param $keep i32) (result i32) (local $dir i32) (local $fd i32)
    (local.set $dir (call $root))
    (loop $again
      (call $open (local.get $dir) (local.get $path) (local.get $length) (i32.const 0)
        (i32.const 1))
      (if (call $bad) (then (return (call $error))))
      (local.set $fd (call $last))
      (call $read-via (local.get $fd) (i64.const 0) (i32.const 32))
      (if (call $bad) (then (return (call $error))))
      (call $close (local.get $fd))
      (if (i32.eqz (local.get $keep)) (then (call $close-in (call $last))))
      (local.set $times (i32.sub (local.get $times) (i32.const 1)))
      (br_if $again (local.get $times)))
    (i32.const 0))

  (func (export "writers") (param $path i32) (param $length i32) (param $times i32)
      (param $keep i32) (result i32) (local $dir i32) (local $fd i32)
    (local.set $dir (call $root))
    (loop $again
      (call $open (local.get $dir) (local.get $path) (local.get $length) (i32.const 1)
        (i32.const 2))
      (if (call $bad) (then (return (call $error))))
      (local.set $fd (call $last))
      (call $append-via (local.get $fd) (i32.const 32))
      (if (call $bad) (then (return (call $error))))
      (call $close (local.get $fd))
      (if (i32.eqz (local.get $keep)) (then (call $close-out (call $last))))
      (local.set $times (i32.sub (local.get $times) (i32.const 1)))
      (br_if $again (local.get $times)))
    (i32.const 0))

  (func (export "listings") (param $times i32) (param $keep i32) (result i32) (local $dir i32)
    (local.set $dir (call $root))
    (loop $again
      (call $list (local.get $dir) (i32.const 32))
      (if (call $bad) (then (return (call $error))))
      (if (i32.eqz (local.get $keep)) (then (call $close-list (call $last))))
      (local.set $times (i32.sub (local.get $times) (i32.const 1)))
      (br_if $again (local.get $times)))
    (i32.const 0))

  ;; Opens for reading alone: a descriptor needs no right to write for its times to be set.
  (func (export "touch") (param $path i32) (param $length i32) (result i32) (local $fd i32)
    (call $open (call $root) (local.get $path) (local.get $length) (i32.const 0) (i32.const 1))
    (if (call $bad) (then (return (call $error))))
    (local.set $fd (call $last))
    (call $set-times (local.get $fd) (i32.const 2) (i64.const 1000) (i32.const 0)
      (i32.const 2) (i64.const 1000) (i32.const 0) (i32.const 32))
    (if (call $bad) (then
      (return (i32.add (i32.load8_u (i32.const 33)) (i32.const 1)))))
    (i32.const 0))

  (func (export "touch-at") (param $path i32) (param $length i32) (result i32)
    (call $set-times-at (call $root) (i32.const 1) (local.get $path) (local.get $length)
      (i32.const 2) (i64.const 1000) (i32.const 0)
      (i32.const 2) (i64.const 1000) (i32.const 0) (i32.const 32))
    (if (call $bad) (then
      (return (i32.add (i32.load8_u (i32.const 33)) (i32.const 1)))))
    (i32.const 0))

  ;; Writes by way of a stream whose descriptor is gone.
  (func (export "late") (param $path i32) (param $length i32) (result i32) (local $fd i32)
    (call $open (call $root) (local.get $path) (local.get $length) (i32.const 1) (i32.const 2))
    (if (call $bad) (then (return (call $error))))
    (local.set $fd (call $last))
    (call $write-via (local.get $fd) (i64.const 0) (i32.const 32))
    (if (call $bad) (then (return (call $error))))
    (call $close (local.get $fd))
    (local.set $fd (call $last))
    (call $flush (local.get $fd) (i32.const 0) (i32.const 100) (i32.const 32))
    (if (call $bad) (then (return (i32.const 999))))
    (call $close-out (local.get $fd))
    (i32.const 0))

  ;; Asks for a name, by one of three ways, and doesn't mind if it is there.
  (func (export "name") (param $path i32) (param $length i32) (param $way i32)
      (param $times i32) (result i32) (local $dir i32)
    (local.set $dir (call $root))
    (loop $again
      (block $done (block $symlink (block $link (block $make
        (br_table $make $link $symlink (local.get $way)))
        (call $make (local.get $dir) (local.get $path) (local.get $length) (i32.const 32))
        (br $done))
        (call $link (local.get $dir) (i32.const 0) (local.get $path) (local.get $length)
          (local.get $dir) (local.get $path) (local.get $length) (i32.const 32))
        (br $done))
        (call $symlink (local.get $dir) (local.get $path) (local.get $length)
          (local.get $path) (local.get $length) (i32.const 32)))
      (local.set $times (i32.sub (local.get $times) (i32.const 1)))
      (br_if $again (local.get $times)))
    (i32.const 0))

  ;; Writes 1000 bytes at a time, by one of five ways.
  (func (export "fill") (param $path i32) (param $length i32) (param $way i32)
      (param $times i32) (result i32) (local $fd i32) (local $at i64) (local $out i32)
    (call $open (call $root) (local.get $path) (local.get $length) (i32.const 1) (i32.const 2))
    (if (call $bad) (then (return (call $error))))
    (local.set $fd (call $last))
    (loop $again
      (block $done (block $zeroes (block $append (block $stream (block $size (block $write
        (br_table $write $size $stream $append $zeroes (local.get $way)))
        (call $write (local.get $fd) (i32.const 0) (i32.const 1000) (local.get $at)
          (i32.const 32))
        (br $done))
        (call $set-size (local.get $fd) (i64.add (local.get $at) (i64.const 1000))
          (i32.const 32))
        (br $done))
        (call $write-via (local.get $fd) (local.get $at) (i32.const 32))
        (local.set $out (call $last))
        (call $flush (local.get $out) (i32.const 0) (i32.const 1000) (i32.const 32))
        (call $close-out (local.get $out))
        (br $done))
        (call $append-via (local.get $fd) (i32.const 32))
        (local.set $out (call $last))
        (call $flush (local.get $out) (i32.const 0) (i32.const 1000) (i32.const 32))
        (call $close-out (local.get $out))
        (br $done))
        (call $write-via (local.get $fd) (local.get $at) (i32.const 32))
        (local.set $out (call $last))
        (call $zeroes (local.get $out) (i64.const 1000) (i32.const 32))
        (call $close-out (local.get $out)))
      (if (call $bad) (then (return (i32.const 999))))
      (local.set $at (i64.add (local.get $at) (i64.const 1000)))
      (local.set $times (i32.sub (local.get $times) (i32.const 1)))
      (br_if $again (local.get $times)))
    (i32.const 0))
"#;

/// What the guest gives for `not-permitted`.
const NOT_PERMITTED: &str = "32";

struct Holder {
    root: tempfile::TempDir,
    bytes: Vec<u8>,
}

impl Holder {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let holder = Self { root, bytes: component(WIT, "holder", &format!("{CORE}{MEMORY}")) };
        for dir in ["inside", "outside"] {
            std::fs::create_dir(holder.path(dir)).expect("a folder");
        }
        std::fs::write(holder.path("inside/file"), "inside").expect("a file");
        holder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().expect("its path").join(name)
    }

    /// Loads the guest with `inside` at `/in`.
    fn load(&self, limits: &Limits, recorder: Option<Arc<dyn Recorder>>) -> Run {
        let path = self.path("inside");
        let rest = format!("  volumes: [{{name: in, hostPath: {{path: {}}}}}]", path.display());
        let resources = "      volumeMounts: [{name: in, mountPath: /in}]";
        let run =
            try_manifest(&one("holder", resources, &rest), &[("holder", &self.bytes)], |setup| {
                setup.limits = limits.clone();
                if let Some(recorder) = recorder {
                    setup.recorder = recorder;
                }
            });
        run.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn call(&self, limits: &Limits, text: &str) -> Result<String, ExecutorError> {
        let run = self.load(limits, None);
        invoke::call(run.program(), &Stdio::default(), text).await
    }
}

/// Bounds that are far below those of the handles, so that these are met first.
fn few() -> Limits {
    Limits { descriptors: 40, ..Limits::default() }
}

async fn tripped(holder: &Holder, limits: &Limits, call: &str) -> &'static str {
    match holder.call(limits, call).await {
        Err(error) => error.code(),
        Ok(answer) => panic!("`{call}` gave {answer}"),
    }
}

#[tokio::test]
async fn the_folders_themselves_count_each_time_they_are_asked_for() {
    let holder = Holder::new();
    let call = "roots(1000, true)";
    assert_eq!(tripped(&holder, &few(), call).await, "limit-descriptors");
    assert_eq!(holder.call(&few(), "roots(1000, false)").await.expect("they are closed"), "0");
    assert_eq!(holder.call(&few(), "roots(39, true)").await.expect("as many may be"), "0");
}

#[tokio::test]
async fn a_stream_keeps_its_file_open_and_counts() {
    let holder = Holder::new();
    for way in ["readers", "writers"] {
        let call = |times: u32, keep: bool| format!("{way}(\"file\", {times}, {keep})");
        let code = tripped(&holder, &few(), &call(1000, true)).await;
        assert_eq!(code, "limit-descriptors", "{way}");
        let closed = holder.call(&few(), &call(1000, false)).await;
        assert_eq!(closed.expect("they are closed"), "0", "{way}");
        let within = holder.call(&few(), &call(38, true)).await;
        assert_eq!(within.expect("as many may be"), "0", "{way}");
    }
}

#[tokio::test]
async fn listings_that_are_kept_count_together() {
    let holder = Holder::new();
    for number in 0..99 {
        std::fs::write(holder.path(&format!("inside/{number}")), "").expect("a file");
    }
    let limits = Limits { listing: 1000, ..Limits::default() };
    let within = holder.call(&limits, "listings(10, true)").await;
    assert_eq!(within.expect("ten of a hundred"), "0");
    assert_eq!(tripped(&holder, &limits, "listings(11, true)").await, "limit-listing");
    let closed = holder.call(&limits, "listings(100, false)").await;
    assert_eq!(closed.expect("they are closed"), "0");
}

#[tokio::test]
async fn the_times_of_a_file_with_another_name_elsewhere_stay() {
    let holder = Holder::new();
    let outside = holder.path("outside/file");
    std::fs::write(&outside, "outside").expect("a file");
    std::fs::hard_link(&outside, holder.path("inside/hard")).expect("a link");
    std::os::unix::fs::symlink("hard", holder.path("inside/link")).expect("a link");
    let status = || {
        let status = outside.metadata().expect("a status");
        (status.mtime(), status.mtime_nsec(), status.atime(), status.atime_nsec())
    };
    let before = status();
    for call in ["touch(\"hard\")", "touch-at(\"hard\")", "touch(\"link\")", "touch-at(\"link\")"] {
        let answer = holder.call(&Limits::default(), call).await.expect("it runs");
        assert_eq!(answer, NOT_PERMITTED, "{call}");
        assert_eq!(status(), before, "{call}");
    }
    for call in ["touch(\"file\")", "touch-at(\"file\")"] {
        let answer = holder.call(&Limits::default(), call).await.expect("it runs");
        assert_eq!(answer, "0", "{call}");
        let status = holder.path("inside/file").metadata().expect("a status");
        assert_eq!(status.mtime(), 1000, "{call}");
    }
}

#[tokio::test]
async fn bytes_are_bounded_by_every_way_of_writing() {
    // The new name counts as 4096 bytes.
    let limits = Limits { written_bytes: 24_096, ..Limits::default() };
    for (way, name) in ["write", "set-size", "stream", "append", "zeroes"].iter().enumerate() {
        let holder = Holder::new();
        let call = |times: u32| format!("fill(\"new\", {way}, {times})");
        let code = tripped(&holder, &limits, &call(100)).await;
        assert_eq!(code, "limit-written", "{name}");
        let size = holder.path("inside/new").metadata().expect("a status").len();
        assert!((1_000..=20_000).contains(&size), "{name}: {size}");

        let within = holder.call(&limits, &call(20)).await;
        assert_eq!(within.expect("as many may be"), "0", "{name}");
    }
}

#[tokio::test]
async fn names_are_bounded_by_every_way_of_making_one() {
    let limits = Limits { written_bytes: 20_000, ..Limits::default() };
    let holder = Holder::new();
    let calls = |times: u32| {
        [
            format!("writers(\"new\", {times}, false)"),
            format!("name(\"folder\", 0, {times})"),
            format!("name(\"absent\", 1, {times})"),
            format!("name(\"link\", 2, {times})"),
        ]
    };
    for (within, over) in calls(4).iter().zip(&calls(5)) {
        assert_eq!(holder.call(&limits, within).await.expect("as many may be"), "0", "{within}");
        assert_eq!(tripped(&holder, &limits, over).await, "limit-written", "{over}");
    }
    assert!(holder.path("inside/folder").is_dir());
    assert!(holder.path("inside/link").is_symlink());
}

/// Keeps how many bytes went out by each effect.
#[derive(Debug, Default)]
struct Bytes(Mutex<Vec<(String, Option<u64>)>>);

impl Recorder for Bytes {
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        let mut kept = self.0.lock().map_err(|_| RecordError::Broken)?;
        let ticket = u64::try_from(kept.len()).map_err(|_| RecordError::Broken)?;
        kept.push((effect.function.to_owned(), None));
        Ok(Ticket(ticket))
    }

    fn end(&self, ticket: Ticket, outcome: Outcome) {
        let mut kept = self.0.lock().expect("nothing panics");
        let index = usize::try_from(ticket.0).expect("an index");
        let ended = &mut kept.get_mut(index).expect("it began").1;
        assert_eq!(ended.replace(outcome.bytes_out), None, "it ends once");
    }
}

#[tokio::test]
async fn what_a_stream_writes_after_its_descriptor_is_closed_is_on_record() {
    let holder = Holder::new();
    let recorder = Arc::new(Bytes::default());
    let run = holder.load(&Limits::default(), Some(Arc::clone(&recorder) as Arc<dyn Recorder>));
    let answer = invoke::call(run.program(), &Stdio::default(), "late(\"new\")").await;
    assert_eq!(answer.expect("it runs"), "0");
    assert_eq!(holder.path("inside/new").metadata().expect("a status").len(), 100);
    let kept = recorder.0.lock().expect("nothing panics");
    let opened: Vec<_> = kept.iter().filter(|(function, _)| function == "open-at").collect();
    assert_eq!(opened, [&("open-at".to_owned(), Some(100))]);
}
