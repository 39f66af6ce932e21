//! Host services as a component sees them, and what is on record about them.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests may fail loudly")]

mod common;
#[path = "common/guest.rs"]
mod guest;

use std::collections::BTreeMap;
use std::sync::Arc;

use ambit_engine::catalogue::Verb;
use ambit_engine::workload::Private;
use ambit_executor::record::{Effect, Kept, Memory, Outcome, RecordError, Recorder, Ticket};
use ambit_executor::services::{Backing, Level, MemoryLogs, Values};
use ambit_executor::stdio::Stdio;
use ambit_executor::{ExecutorError, Limits, Program, Setup, Trip, invoke};
use guest::{MEMORY, component, manifest};

const KEYVALUE: &str = r#"
package acme:probe;
interface kv {
  variant problem { no-such-store, access-denied, other(string) }
  get: func(bucket: string, key: string) -> result<option<list<u8>>, problem>;
  set: func(bucket: string, key: string, value: list<u8>) -> result<_, problem>;
  delete: func(bucket: string, key: string) -> result<_, problem>;
  exists: func(bucket: string, key: string) -> result<bool, problem>;
  keys: func(bucket: string, cursor: option<u64>) -> result<tuple<list<string>, option<u64>>, problem>;
  add: func(bucket: string, key: string, delta: u64) -> result<u64, problem>;
  many: func(bucket: string, keys: list<string>) -> result<list<option<tuple<string, list<u8>>>>, problem>;
}
world guest {
  import wasi:keyvalue/store@0.2.0-draft;
  import wasi:keyvalue/atomics@0.2.0-draft;
  import wasi:keyvalue/batch@0.2.0-draft;
  export kv;
}
package wasi:keyvalue@0.2.0-draft {
  interface store {
    variant error { no-such-store, access-denied, other(string) }
    record key-response { keys: list<string>, cursor: option<u64> }
    open: func(identifier: string) -> result<bucket, error>;
    resource bucket {
      get: func(key: string) -> result<option<list<u8>>, error>;
      set: func(key: string, value: list<u8>) -> result<_, error>;
      delete: func(key: string) -> result<_, error>;
      exists: func(key: string) -> result<bool, error>;
      list-keys: func(cursor: option<u64>) -> result<key-response, error>;
    }
  }
  interface atomics {
    use store.{bucket, error};
    increment: func(bucket: borrow<bucket>, key: string, delta: u64) -> result<u64, error>;
  }
  interface batch {
    use store.{bucket, error};
    get-many: func(bucket: borrow<bucket>, keys: list<string>) -> result<list<option<tuple<string, list<u8>>>>, error>;
  }
}
"#;

/// Every export opens the bucket and passes its arguments on; the layouts of both sides are equal.
fn keyvalue() -> Vec<u8> {
    let core = r#"
  (import "wasi:keyvalue/store@0.2.0-draft" "open" (func $open (param i32 i32 i32)))
  (import "wasi:keyvalue/store@0.2.0-draft" "[method]bucket.get" (func $get (param i32 i32 i32 i32)))
  (import "wasi:keyvalue/store@0.2.0-draft" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
  (import "wasi:keyvalue/store@0.2.0-draft" "[method]bucket.delete" (func $delete (param i32 i32 i32 i32)))
  (import "wasi:keyvalue/store@0.2.0-draft" "[method]bucket.exists" (func $exists (param i32 i32 i32 i32)))
  (import "wasi:keyvalue/store@0.2.0-draft" "[method]bucket.list-keys" (func $list (param i32 i32 i64 i32)))
  (import "wasi:keyvalue/store@0.2.0-draft" "[resource-drop]bucket" (func $drop (param i32)))
  (import "wasi:keyvalue/atomics@0.2.0-draft" "increment" (func $increment (param i32 i32 i32 i64 i32)))
  (import "wasi:keyvalue/batch@0.2.0-draft" "get-many" (func $many (param i32 i32 i32 i32)))
  (func $bucket (param i32 i32) (result i32)
    (call $open (local.get 0) (local.get 1) (i32.const 16))
    (i32.load8_u (i32.const 16)))
  (func $close (result i32) (call $drop (i32.load (i32.const 20))) (i32.const 64))
  (func (export "acme:probe/kv#get") (param i32 i32 i32 i32) (result i32)
    (if (call $bucket (local.get 0) (local.get 1)) (then (return (i32.const 16))))
    (call $get (i32.load (i32.const 20)) (local.get 2) (local.get 3) (i32.const 64))
    (call $close))
  (func (export "acme:probe/kv#set") (param i32 i32 i32 i32 i32 i32) (result i32)
    (if (call $bucket (local.get 0) (local.get 1)) (then (return (i32.const 16))))
    (call $set (i32.load (i32.const 20)) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (i32.const 64))
    (call $close))
  (func (export "acme:probe/kv#delete") (param i32 i32 i32 i32) (result i32)
    (if (call $bucket (local.get 0) (local.get 1)) (then (return (i32.const 16))))
    (call $delete (i32.load (i32.const 20)) (local.get 2) (local.get 3) (i32.const 64))
    (call $close))
  (func (export "acme:probe/kv#exists") (param i32 i32 i32 i32) (result i32)
    (if (call $bucket (local.get 0) (local.get 1)) (then (return (i32.const 16))))
    (call $exists (i32.load (i32.const 20)) (local.get 2) (local.get 3) (i32.const 64))
    (call $close))
  (func (export "acme:probe/kv#keys") (param i32 i32 i32 i64) (result i32)
    (if (call $bucket (local.get 0) (local.get 1)) (then unreachable))
    (call $list (i32.load (i32.const 20)) (local.get 2) (local.get 3) (i32.const 64))
    (call $close))
  (func (export "acme:probe/kv#add") (param i32 i32 i32 i32 i64) (result i32)
    (if (call $bucket (local.get 0) (local.get 1)) (then unreachable))
    (call $increment (i32.load (i32.const 20)) (local.get 2) (local.get 3) (local.get 4) (i32.const 64))
    (call $close))
  (func (export "acme:probe/kv#many") (param i32 i32 i32 i32) (result i32)
    (if (call $bucket (local.get 0) (local.get 1)) (then (return (i32.const 16))))
    (call $many (i32.load (i32.const 20)) (local.get 2) (local.get 3) (i32.const 64))
    (call $close))
"#;
    component(KEYVALUE, "guest", &format!("{core}{MEMORY}"))
}

const BUCKETS: &str = "  - namespace: wasi
    package: keyvalue
    interfaces: [store, atomics, batch]
    config: {buckets: \"default, cache\"}";

struct Run {
    program: Program,
    record: Memory,
}

impl Run {
    /// What was done to the services, without the calls from outside.
    fn effects(&self) -> Vec<Kept> {
        let effects = self.record.effects().into_iter();
        effects.filter(|effect| effect.verb != Verb::None).collect()
    }

    async fn call(&self, text: &str) -> String {
        let result = invoke::call(&self.program, &Stdio::default(), text).await;
        result.unwrap_or_else(|error| panic!("{text}: {error}"))
    }
}

fn run(bytes: &[u8], resources: &str, interfaces: &str, change: impl Fn(&mut Setup)) -> Run {
    try_run(bytes, resources, interfaces, change).unwrap_or_else(|error| panic!("{error}"))
}

fn try_run(
    bytes: &[u8],
    resources: &str,
    interfaces: &str,
    change: impl Fn(&mut Setup),
) -> Result<Run, ExecutorError> {
    let record = Memory::default();
    let parts = [("probe", bytes, resources)];
    let mut loaded = guest::load(&manifest(&parts, interfaces), &parts, |_| {
        let mut setup = common::setup(&record);
        change(&mut setup);
        setup
    })?;
    let program = loaded.remove("probe").expect("it is there");
    Ok(Run { program, record })
}

#[tokio::test]
async fn a_granted_bucket_keeps_values_as_long_as_the_workload_runs() {
    let run = run(&keyvalue(), "", BUCKETS, |_| ());
    assert_eq!(run.call(r#"get("default", "a")"#).await, "ok(none)");
    assert_eq!(run.call(r#"set("default", "a", [1, 2, 3])"#).await, "ok");
    assert_eq!(run.call(r#"get("default", "a")"#).await, "ok(some([1, 2, 3]))");
    assert_eq!(run.call(r#"get("", "a")"#).await, "ok(some([1, 2, 3]))");
    assert_eq!(run.call(r#"get("cache", "a")"#).await, "ok(none)");
    assert_eq!(run.call(r#"exists("default", "a")"#).await, "ok(true)");
    assert_eq!(run.call(r#"add("default", "n", 40)"#).await, "ok(40)");
    assert_eq!(run.call(r#"add("default", "n", 2)"#).await, "ok(42)");
    assert_eq!(run.call(r#"keys("default", none)"#).await, r#"ok((["a", "n"], none))"#);
    let many = run.call(r#"many("default", ["a", "b"])"#).await;
    assert_eq!(many, r#"ok([some(("a", [1, 2, 3])), none])"#);
    assert_eq!(run.call(r#"delete("default", "a")"#).await, "ok");
    assert_eq!(run.call(r#"get("default", "a")"#).await, "ok(none)");
}

#[tokio::test]
async fn another_bucket_is_denied_with_the_line_that_would_grant_it() {
    let run = run(&keyvalue(), "", BUCKETS, |_| ());
    assert_eq!(run.call(r#"set("other", "a", [1])"#).await, "err(access-denied)");
    let effects = run.effects();
    assert_eq!(effects.len(), 1, "{effects:?}");
    assert_eq!(effects[0].denied.as_deref(), Some("bucket-not-granted"));
    assert_eq!(
        effects[0].why,
        r#"bucket "other" isn't granted; add "other" to `buckets` of the `wasi:keyvalue` entry in `hostInterfaces` (workload.yaml:9)"#
    );
}

#[tokio::test]
async fn an_entry_without_buckets_grants_the_default_one_only() {
    let entry = "  - {namespace: wasi, package: keyvalue, interfaces: [store, atomics, batch]}";
    let run = run(&keyvalue(), "", entry, |_| ());
    assert_eq!(run.call(r#"set("default", "a", [1])"#).await, "ok");
    assert_eq!(run.call(r#"set("cache", "a", [1])"#).await, "err(access-denied)");
}

#[tokio::test]
async fn keys_are_on_record_and_values_are_not() {
    let run = run(&keyvalue(), "", BUCKETS, |_| ());
    run.call("set(\"default\", \"a\\n\\\"b\", [77, 77, 77, 77, 77])").await;
    let effects = run.effects();
    assert_eq!(effects[1].subject, r#"bucket "default" key "a\n\"b""#);
    assert_eq!(effects[1].result.as_deref(), Some("ok"));
    assert!(!format!("{effects:?}").contains("MMMMM"), "{effects:?}");
    assert!(!format!("{effects:?}").contains("77, 77"), "{effects:?}");
}

#[tokio::test]
async fn values_outlive_the_run_in_a_state_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = |setup: &mut Setup| setup.state_dir = Some(folder.path().to_owned());
    let first = run(&keyvalue(), "", BUCKETS, within);
    assert_eq!(first.call(r#"set("default", "../../a", [1])"#).await, "ok");
    assert_eq!(first.call(r#"set("cache", "gone", [2])"#).await, "ok");
    assert_eq!(first.call(r#"delete("cache", "gone")"#).await, "ok");
    match try_run(&keyvalue(), "", BUCKETS, within) {
        Err(error) => assert_eq!(error.code(), "state-unusable"),
        Ok(_) => panic!("two runs hold one folder"),
    }
    drop(first);
    let second = run(&keyvalue(), "", BUCKETS, within);
    assert_eq!(second.call(r#"get("default", "../../a")"#).await, "ok(some([1]))");
    assert_eq!(second.call(r#"get("cache", "gone")"#).await, "ok(none)");
}

#[tokio::test]
async fn a_batch_that_would_copy_too_much_is_refused() {
    let run = run(&keyvalue(), "", BUCKETS, |setup| setup.limits.copy_bytes = 64 * 1024);
    let value = vec!["0"; 2000].join(", ");
    assert_eq!(run.call(&format!("set(\"default\", \"a\", [{value}])")).await, "ok");
    let keys = vec![r#""a""#; 100].join(", ");
    let many = run.call(&format!("many(\"default\", [{keys}])")).await;
    assert_eq!(many, r#"err(other("too much for one call"))"#);
}

/// A record that can't be written.
struct Full;

impl Recorder for Full {
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        // The call from outside still has room.
        if effect.verb == Verb::None { Ok(Ticket(0)) } else { Err(RecordError::Broken) }
    }

    fn end(&self, _ticket: Ticket, _outcome: Outcome) {}
}

#[tokio::test]
async fn what_can_not_be_recorded_does_not_happen() {
    let backing = Backing::default();
    let full = run(&keyvalue(), "", BUCKETS, |setup| {
        setup.services = backing.clone();
        setup.recorder = Arc::new(Full);
    });
    let result = full.call(r#"set("default", "a", [1])"#).await;
    assert_eq!(result, r#"err(other("the host can\'t record the call"))"#);
    let run = run(&keyvalue(), "", BUCKETS, |setup| setup.services = backing.clone());
    assert_eq!(run.call(r#"exists("default", "a")"#).await, "ok(false)");
}

const CONFIG: &str = r#"
package acme:probe;
interface settings {
  variant problem { upstream(string), io(string) }
  get: func(key: string) -> result<option<string>, problem>;
  all: func() -> result<list<tuple<string, string>>, problem>;
}
world guest { import wasi:config/store@0.2.0-rc.1; export settings; }
package wasi:config@0.2.0-rc.1 {
  interface store {
    variant error { upstream(string), io(string) }
    get: func(key: string) -> result<option<string>, error>;
    get-all: func() -> result<list<tuple<string, string>>, error>;
  }
}
"#;

fn config() -> Vec<u8> {
    let core = r#"
  (import "wasi:config/store@0.2.0-rc.1" "get" (func $get (param i32 i32 i32)))
  (import "wasi:config/store@0.2.0-rc.1" "get-all" (func $all (param i32)))
  (func (export "acme:probe/settings#get") (param i32 i32) (result i32)
    (call $get (local.get 0) (local.get 1) (i32.const 64)) (i32.const 64))
  (func (export "acme:probe/settings#all") (result i32) (call $all (i32.const 64)) (i32.const 64))
"#;
    component(CONFIG, "guest", &format!("{core}{MEMORY}"))
}

#[tokio::test]
async fn configuration_comes_from_the_component_and_from_objects() {
    let entry = "  - {namespace: wasi, package: config, interfaces: [store], configFrom: [{name: base}], secretFrom: [{name: db}]}";
    let data = BTreeMap::from([
        ("color".to_owned(), "red".to_owned()),
        ("size".to_owned(), "big".to_owned()),
    ]);
    let values = Values::builder()
        .config_map("base", data)
        .secret("db", "password", &Private::new("hunter2"))
        .build();
    assert!(!format!("{values:?}").contains("hunter2"), "{values:?}");
    let values = Arc::new(values);
    let run = run(&config(), "      config: {color: blue}", entry, |setup| {
        setup.values = Arc::clone(&values);
    });
    assert_eq!(run.call(r#"get("color")"#).await, r#"ok(some("blue"))"#);
    assert_eq!(run.call(r#"get("other")"#).await, "ok(none)");
    assert_eq!(
        run.call("all()").await,
        r#"ok([("color", "blue"), ("password", "hunter2"), ("size", "big")])"#
    );
    let effects = run.effects();
    assert_eq!(effects[0].subject, r#"configuration key "color""#);
    assert!(!format!("{effects:?}").contains("hunter2"), "{effects:?}");
}

#[test]
fn a_value_that_is_not_given_is_named_with_its_line_and_flag() {
    let resources = "      environment: {secretFrom: [{name: db}]}";
    let entry = "  - {namespace: wasi, package: config, interfaces: [store]}";
    let Err(error) = try_run(&config(), resources, entry, |_| ()) else {
        panic!("a Secret came from nowhere");
    };
    assert_eq!(error.code(), "value-missing");
    assert_eq!(error.to_string(), "`db` needs Secret `db`, which isn't given (workload.yaml:15)");
    assert_eq!(
        error.help().as_deref(),
        Some("give its keys with `--secret db=file:PATH` or each with `--secret db.KEY=…`")
    );
}

const LOGGING: &str = r#"
package acme:probe;
interface speaker { say: func(context: string, message: string); }
world guest { import wasi:logging/logging@0.1.0-draft; export speaker; }
package wasi:logging@0.1.0-draft {
  interface logging {
    enum level { trace, debug, info, warn, error, critical }
    log: func(level: level, context: string, message: string);
  }
}
"#;

fn logging() -> Vec<u8> {
    let core = r#"
  (import "wasi:logging/logging@0.1.0-draft" "log" (func $log (param i32 i32 i32 i32 i32)))
  (func (export "acme:probe/speaker#say") (param i32 i32 i32 i32)
    (call $log (i32.const 3) (local.get 0) (local.get 1) (local.get 2) (local.get 3))
    (call $log (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
"#;
    component(LOGGING, "guest", &format!("{core}{MEMORY}"))
}

const LOGS: &str = "  - {namespace: wasi, package: logging, interfaces: [logging]}";

#[tokio::test]
async fn log_lines_lose_their_control_characters() {
    let logs = MemoryLogs::default();
    let run =
        run(&logging(), "", LOGS, |setup| setup.services = Backing::new(Arc::new(logs.clone())));
    run.call(r#"say("main", "a\u{1b}[2J\nb é")"#).await;
    let lines = logs.lines();
    assert_eq!(lines[0].level, Level::Warn);
    assert_eq!(lines[0].context, "main");
    assert_eq!(lines[0].message, r"a\u{1b}[2J\nb é");
    assert_eq!(lines[0].who.component, "probe");
    assert_eq!(run.effects()[0].subject, "log, level warn");
}

#[tokio::test]
async fn log_lines_are_counted() {
    let run = run(&logging(), "", LOGS, |setup| {
        setup.limits = Limits { log_lines: 1, ..Limits::default() };
    });
    match invoke::call(&run.program, &Stdio::default(), r#"say("", "")"#).await {
        Err(ExecutorError::Tripped { trip: Trip::Output, .. }) => {}
        other => panic!("{other:?}"),
    }
}
