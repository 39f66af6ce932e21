//! What a component can't take more of, and who notices: itself, the caller, the record, nobody
//! else.
#![expect(clippy::expect_used, reason = "helpers of tests may fail loudly")]

mod common;
#[path = "common/guest.rs"]
mod guest;

use std::sync::Arc;
use std::time::Duration;

use ambit_executor::record::Memory;
use ambit_executor::serve::Handler;
use ambit_executor::{ExecutorError, Limits, Setup, run_command};
use common::{Run, load, sample, wat};
use guest::{MEMORY, component};
use http_body_util::{BodyExt as _, Empty};

/// Short bounds, each far above what the polite part of a test needs.
fn short() -> Limits {
    Limits {
        wall: Duration::from_secs(2),
        cpu: Duration::from_millis(300),
        memory_bytes: 8 * 1024 * 1024,
        handles: 1000,
        output_bytes: 64 * 1024,
        log_lines: 1000,
        copy_bytes: 1024 * 1024,
        response_body_bytes: 256 * 1024,
        concurrency: 8,
        ..Limits::default()
    }
}

fn with(bytes: &[u8], limits: &Limits) -> Run {
    let reviewed = ambit_testing::admit::bare("rogue", bytes);
    let admitted = reviewed.admitted.expect("it is allowed");
    let adjust = |setup: &mut Setup| setup.limits = limits.clone();
    load(&admitted, &[bytes], adjust).expect("it loads")
}

/// Loads the component that misbehaves as the path says.
fn rogue(limits: &Limits) -> (Run, Arc<Handler>) {
    let run = with(&sample("http-rogue.wasm"), limits);
    let handler = Handler::new(run.program(), run.stdio.clone()).expect("a handler");
    (run, handler)
}

/// What a caller sees: the status, and the body or that it broke off.
async fn ask(handler: &Arc<Handler>, path: &str) -> (u16, Result<String, String>) {
    let body = Empty::<bytes::Bytes>::new();
    let body = body.map_err(|never| -> wasmtime_wasi_http::Error { match never {} });
    let request = http::Request::get(path).header("host", "rogue.localhost");
    let request = request.body(body.boxed_unsync()).expect("a request");
    let answer = tokio::time::timeout(Duration::from_secs(120), async {
        let response = Arc::clone(handler).handle(request).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await;
        let body = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
        (status, body.map_err(|error| format!("{error:?}")))
    });
    answer.await.expect("an answer")
}

fn results(record: &Memory) -> Vec<String> {
    record.effects().into_iter().map(|effect| effect.result.unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_bound_names_itself_to_the_caller_and_on_record() {
    for (path, status, code) in [
        ("/spin", 504, "limit-cpu-time"),
        ("/sleep", 504, "limit-wall-time"),
        ("/grow", 500, "limit-memory"),
        ("/handles", 500, "limit-handles"),
        ("/print", 500, "limit-output"),
        ("/lines", 500, "limit-output"),
        ("/recurse", 502, "run-trapped"),
        ("/copy", 500, "limit-copy"),
        ("/no-answer", 502, "guest-no-answer"),
    ] {
        // What is copied has to be in memory first.
        let memory_bytes = if path == "/copy" { 128 * 1024 * 1024 } else { short().memory_bytes };
        let (run, handler) = rogue(&Limits { memory_bytes, ..short() });
        let (found, body) = ask(&handler, path).await;
        let body = body.expect("an answer of the host's own");
        assert_eq!(found, status, "{path}: {body}");
        assert!(body.starts_with(&format!("{code}: ")), "{path}: {body}");
        assert_eq!(results(&run.record), [code], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_never_looks_whole() {
    for (path, code) in [("/endless", "limit-body"), ("/late-trap", "run-trapped")] {
        let (run, handler) = rogue(&short());
        let (status, body) = ask(&handler, path).await;
        assert_eq!(status, 200, "{path}: the head has gone out");
        body.expect_err(path);
        assert_eq!(results(&run.record), [code], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_misbehaves_does_the_others_no_harm() {
    let (run, rogue) = rogue(&short());
    let polite = with(&sample("http-handler.wasm"), &short());
    let polite = Handler::new(polite.program(), polite.stdio.clone()).expect("a handler");
    let mut bad = tokio::task::JoinSet::new();
    for path in ["/spin", "/sleep", "/grow", "/handles", "/print", "/endless", "/lines"] {
        for _ in 0..3 {
            let rogue = Arc::clone(&rogue);
            bad.spawn(async move { ask(&rogue, path).await });
        }
    }
    for _ in 0..50 {
        let (status, body) = ask(&polite, "/").await;
        assert_eq!((status, body.as_deref()), (200, Ok("hello from the handler\n")));
    }
    while let Some(ended) = bad.join_next().await {
        let (status, body) = ended.expect("an answer");
        assert!(status >= 500 || body.is_err(), "{status} {body:?}");
    }
    // The same component answers again, since nothing of those calls is left.
    let (status, body) = ask(&rogue, "/").await;
    assert_eq!((status, body.as_deref()), (200, Ok("polite\n")));
    assert_eq!(run.record.effects().len(), 22);
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map(Iterator::count).unwrap_or_default()
}

/// Resident memory in MiB.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() / 256
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_ended_leaves_nothing_behind() {
    let limits = Limits { cpu: Duration::from_millis(20), ..short() };
    let limits = Limits { wall: Duration::from_millis(200), ..limits };
    let (_run, handler) = rogue(&limits);
    let paths = ["/spin", "/grow", "/handles", "/print", "/endless", "/late-trap", "/recurse"];
    // Once round, so that what is made once is made.
    for path in paths {
        let _ = ask(&handler, path).await;
    }
    let (files, memory) = (open_files(), resident());
    for _ in 0..30 {
        for path in paths {
            let _ = ask(&handler, path).await;
        }
    }
    let grown = resident().saturating_sub(memory);
    assert!(grown < 64, "resident memory grew by {grown} MiB over 210 calls");
    // Other tests of this process open and close files meanwhile.
    let more = open_files().saturating_sub(files);
    assert!(more < 64, "{more} more files are open after 210 calls");
}

/// A command whose core module has these definitions and runs this code.
fn command(definitions: &str, code: &str) -> Vec<u8> {
    wat(&format!(
        r#"(component
            (core module $m {definitions} (func (export "run") (result i32) {code} i32.const 0))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $cli (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $cli)))"#
    ))
}

async fn ended(bytes: &[u8], limits: &Limits) -> Result<i32, ExecutorError> {
    let run = with(bytes, limits);
    run_command(run.program(), &run.stdio).await.map(|outcome| outcome.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_counted_over_all_memories_and_tables() {
    // Each memory alone is within the bound of 8 MiB: 6 MiB of pages.
    let grow = |memory: u32| {
        format!(
            "(if (i32.eq (memory.grow {memory} (i32.const 95)) (i32.const -1)) (then unreachable))"
        )
    };
    let one = command("(memory 1)", &grow(0));
    assert_eq!(ended(&one, &short()).await.expect("it is within the bound"), 0);
    let two = command("(memory 1) (memory 1)", &format!("{} {}", grow(0), grow(1)));
    let error = ended(&two, &short()).await.expect_err("both are not");
    assert_eq!(error.code(), "limit-memory", "{error}");
    let table = command(
        "(table 1 funcref)",
        "(if (i32.eq (table.grow (ref.null func) (i32.const 2000000)) (i32.const -1)) \
         (then unreachable))",
    );
    let error = ended(&table, &short()).await.expect_err("a table is memory too");
    assert_eq!(error.code(), "limit-memory", "{error}");
    let at_once = command("(memory 1000)", "");
    let error = ended(&at_once, &short()).await.expect_err("it asks at its start");
    assert_eq!(error.code(), "limit-memory", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_ended_by_time_and_by_its_stack() {
    let spin = command("", "(loop $l br $l)");
    let error = ended(&spin, &short()).await.expect_err("it never ends");
    assert_eq!(error.code(), "limit-cpu-time", "{error}");
    let deep = command("(func $f call $f)", "call $f");
    let error = ended(&deep, &short()).await.expect_err("its stack ends");
    assert_eq!(error.code(), "run-trapped", "{error}");
    // A start function runs before anybody calls; its time counts.
    let start = wat(r#"(component
            (core module $m (func $s (loop $l br $l)) (start $s)
                (func (export "run") (result i32) i32.const 0))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $cli (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $cli)))"#);
    let error = ended(&start, &short()).await.expect_err("it never begins");
    assert_eq!(error.code(), "limit-cpu-time", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_the_number_that_may_wait_are_sent_away() {
    let limits = Limits { concurrency: 1, queue: 1, ..short() };
    let (_run, handler) = rogue(&limits);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let handler = Arc::clone(&handler);
        calls.spawn(async move { ask(&handler, "/sleep").await });
    }
    let mut busy = 0;
    while let Some(call) = calls.join_next().await {
        let (status, body) = call.expect("an answer");
        match status {
            503 => {
                assert!(body.expect("text").starts_with("limit-concurrency: "));
                busy += 1;
            }
            status => assert_eq!(status, 504),
        }
    }
    assert!(busy >= 4, "one runs, one waits, and {busy} were sent away");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_growth_over_its_own_maximum_is_refused_to_it_and_not_counted() {
    // Together these would be over the bound of 8 MiB many times; none of them gives anything.
    let grows = "(local $n i32) (local.set $n (i32.const 10000))
        (loop $again
            (if (i32.ne (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
            (if (i32.ne (memory.grow (i32.const 65535)) (i32.const -1)) (then unreachable))
            (if (i32.ne (table.grow (ref.null func) (i32.const 16)) (i32.const -1))
                (then unreachable))
            (local.set $n (i32.sub (local.get $n) (i32.const 1)))
            (br_if $again (local.get $n)))";
    let own = command("(memory 1 2) (table 1 2 funcref)", grows);
    assert_eq!(ended(&own, &short()).await.expect("it has its own bounds"), 0);
    // Where the maximum is no bound, the limit is.
    let wide = command("(memory 1 1000)", "(drop (memory.grow (i32.const 200)))");
    let error = ended(&wide, &short()).await.expect_err("12 MiB");
    assert_eq!(error.code(), "limit-memory", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn core_instances_memories_and_tables_are_bounded_in_number() {
    let limits = Limits { instances: 20, ..short() };
    let several = |count: usize| "(core instance (instantiate $m))".repeat(count);
    let instances = |count: usize| {
        wat(&format!(
            r#"(component
            (core module $m (func (export "run") (result i32) i32.const 0))
            (core instance $i (instantiate $m)) {}
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $cli (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $cli)))"#,
            several(count)
        ))
    };
    assert_eq!(ended(&instances(18), &limits).await.expect("as many may be"), 0);
    let memories = |count: usize| command(&"(memory 0)".repeat(count), "");
    let tables = |count: usize| command(&"(table 0 funcref)".repeat(count), "");
    assert_eq!(ended(&memories(20), &limits).await.expect("as many may be"), 0);
    assert_eq!(ended(&tables(20), &limits).await.expect("as many may be"), 0);
    for (what, bytes) in
        [("instances", instances(21)), ("memories", memories(21)), ("tables", tables(21))]
    {
        let run = with(&bytes, &limits);
        let error = run_command(run.program(), &run.stdio).await.expect_err(what);
        assert_eq!(error.code(), "limit-instances", "{what}: {error}");
        assert_eq!(results(&run.record), ["limit-instances"], "{what}");
    }
}

/// A command that uses a little of WASI 0.2.
fn with_wasi(code: &str) -> Vec<u8> {
    const WIT: &str = r#"
package test:guest;
package wasi:io@0.2.0 {
  interface error { resource error; }
  interface poll { resource pollable { block: func(); } }
  interface streams {
    use error.{error};
    variant stream-error { last-operation-failed(error), closed }
    resource output-stream {
      blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
    }
  }
}
package wasi:clocks@0.2.0 {
  interface monotonic-clock {
    use wasi:io/poll@0.2.0.{pollable};
    subscribe-duration: func(when: u64) -> pollable;
  }
}
package wasi:cli@0.2.0 {
  interface stdout { use wasi:io/streams@0.2.0.{output-stream}; get-stdout: func() -> output-stream; }
  interface run { run: func() -> result; }
}
package wasi:random@0.2.0 {
  interface random { get-random-bytes: func(len: u64) -> list<u8>; }
}
world guest {
  import wasi:clocks/monotonic-clock@0.2.0;
  import wasi:io/poll@0.2.0;
  import wasi:io/streams@0.2.0;
  import wasi:cli/stdout@0.2.0;
  import wasi:random/random@0.2.0;
  export wasi:cli/run@0.2.0;
}
"#;
    let core = format!(
        r#"
  (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration"
    (func $timer (param i64) (result i32)))
  (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))
  (import "wasi:io/poll@0.2.0" "[resource-drop]pollable" (func $drop (param i32)))
  (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  (import "wasi:random/random@0.2.0" "get-random-bytes" (func $random (param i64 i32)))
  (func $sleep (param $nanoseconds i64) (local $timer i32)
    (local.set $timer (call $timer (local.get $nanoseconds)))
    (call $block (local.get $timer))
    (call $drop (local.get $timer)))
  (func (export "wasi:cli/run@0.2.0#run") (result i32) (local $n i32) {code} (i32.const 0))
  {MEMORY}"#
    );
    component(WIT, "guest", &core)
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_is_no_cpu_time() {
    // Sixty naps of 20 ms are six times the bound, and next to no work.
    let naps = with_wasi(
        "(local.set $n (i32.const 60))
         (loop $again
           (call $sleep (i64.const 20000000))
           (local.set $n (i32.sub (local.get $n) (i32.const 1)))
           (br_if $again (local.get $n)))",
    );
    let limits = Limits { cpu: Duration::from_millis(200), ..short() };
    let limits = Limits { wall: Duration::from_secs(60), ..limits };
    assert_eq!(ended(&naps, &limits).await.expect("it only waits"), 0);
    // Work between the naps counts, however short each piece of it is.
    let work = with_wasi(
        "(loop $again
           (call $sleep (i64.const 1000000))
           (local.set $n (i32.const 1000000))
           (loop $work
             (local.set $n (i32.sub (local.get $n) (i32.const 1)))
             (br_if $work (local.get $n)))
           (br $again))",
    );
    let error = ended(&work, &limits).await.expect_err("it works all the time");
    assert_eq!(error.code(), "limit-cpu-time", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_nothing_and_too_much_chance_are_ended() {
    let limits = Limits { log_lines: 100, ..short() };
    let empty = with_wasi(
        "(loop $again
           (call $write (call $stdout) (i32.const 0) (i32.const 0) (i32.const 16))
           (br $again))",
    );
    let error = ended(&empty, &Limits { handles: 1_000_000, ..limits.clone() }).await;
    assert_eq!(error.expect_err("it never ends").code(), "limit-output");
    let bytes =
        |count: u64| with_wasi(&format!("(call $random (i64.const {count}) (i32.const 16))"));
    assert_eq!(ended(&bytes(limits.random_bytes), &limits).await.expect("as much may be"), 0);
    for count in [limits.random_bytes.saturating_add(1), u64::MAX] {
        let error = ended(&bytes(count), &limits).await.expect_err("one more");
        assert_eq!(error.code(), "run-trapped", "{count}: {error}");
    }
}
