//! `wasi:blobstore` as a component sees it, and what is on record about it.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests may fail loudly")]

mod common;
#[path = "common/guest.rs"]
mod guest;

use ambit_engine::catalogue::Verb;
use ambit_executor::record::{Kept, Memory};
use ambit_executor::stdio::Stdio;
use ambit_executor::{Program, Setup, invoke};
use guest::{MEMORY, component, manifest};

const WIT: &str = r#"
package acme:probe;
interface blobs {
  put: func(container: string, object: string, data: list<u8>) -> result<_, string>;
  get: func(container: string, object: string) -> result<list<u8>, string>;
  copy: func(container: string, object: string, to: string) -> result<_, string>;
  abandon: func(container: string, object: string, data: list<u8>) -> result<_, string>;
}
world guest {
  import wasi:io/streams@0.2.0;
  import wasi:blobstore/types@0.2.0-draft;
  import wasi:blobstore/container@0.2.0-draft;
  import wasi:blobstore/blobstore@0.2.0-draft;
  export blobs;
}
package wasi:io@0.2.0 {
  interface error { resource error; }
  interface streams {
    use error.{error};
    variant stream-error { last-operation-failed(error), closed }
    resource output-stream {
      blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
    }
  }
}
package wasi:blobstore@0.2.0-draft {
  interface types {
    use wasi:io/streams@0.2.0.{output-stream};
    record object-id { container: string, object: string }
    resource outgoing-value {
      new-outgoing-value: static func() -> outgoing-value;
      outgoing-value-write-body: func() -> result<output-stream>;
      finish: static func(this: outgoing-value) -> result<_, string>;
    }
    resource incoming-value {
      incoming-value-consume-sync: static func(this: incoming-value) -> result<list<u8>, string>;
    }
  }
  interface container {
    use types.{incoming-value, outgoing-value};
    resource container {
      get-data: func(name: string, start: u64, end: u64) -> result<incoming-value, string>;
      write-data: func(name: string, data: borrow<outgoing-value>) -> result<_, string>;
    }
  }
  interface blobstore {
    use container.{container};
    use types.{object-id};
    get-container: func(name: string) -> result<container, string>;
    copy-object: func(src: object-id, dest: object-id) -> result<_, string>;
  }
}
"#;

fn blobs() -> Vec<u8> {
    let core = r#"
  (import "wasi:blobstore/blobstore@0.2.0-draft" "get-container" (func $open (param i32 i32 i32)))
  (import "wasi:blobstore/blobstore@0.2.0-draft" "copy-object"
    (func $copy (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:blobstore/types@0.2.0-draft" "[static]outgoing-value.new-outgoing-value"
    (func $new (result i32)))
  (import "wasi:blobstore/types@0.2.0-draft" "[method]outgoing-value.outgoing-value-write-body"
    (func $body (param i32 i32)))
  (import "wasi:blobstore/types@0.2.0-draft" "[static]outgoing-value.finish"
    (func $finish (param i32 i32)))
  (import "wasi:blobstore/types@0.2.0-draft" "[resource-drop]outgoing-value"
    (func $drop-value (param i32)))
  (import "wasi:blobstore/types@0.2.0-draft" "[static]incoming-value.incoming-value-consume-sync"
    (func $consume (param i32 i32)))
  (import "wasi:blobstore/container@0.2.0-draft" "[method]container.get-data"
    (func $get (param i32 i32 i32 i64 i64 i32)))
  (import "wasi:blobstore/container@0.2.0-draft" "[method]container.write-data"
    (func $write (param i32 i32 i32 i32 i32)))
  (import "wasi:blobstore/container@0.2.0-draft" "[resource-drop]container"
    (func $drop-container (param i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
    (func $put (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.0" "[resource-drop]output-stream" (func $drop-stream (param i32)))
  (func $value (param $container i32) (param i32 i32 i32 i32) (result i32) (local $value i32)
    (local.set $value (call $new))
    (call $body (local.get $value) (i32.const 64))
    (call $write (local.get $container) (local.get 1) (local.get 2) (local.get $value) (i32.const 128))
    (call $put (i32.load (i32.const 68)) (local.get 3) (local.get 4) (i32.const 96))
    (call $drop-stream (i32.load (i32.const 68)))
    (local.get $value))
  (func (export "acme:probe/blobs#put") (param i32 i32 i32 i32 i32 i32) (result i32)
    (local $container i32) (local $value i32)
    (call $open (local.get 0) (local.get 1) (i32.const 16))
    (if (i32.load8_u (i32.const 16)) (then (return (i32.const 16))))
    (local.set $container (i32.load (i32.const 20)))
    (local.set $value (call $value (local.get $container)
      (local.get 2) (local.get 3) (local.get 4) (local.get 5)))
    (call $finish (local.get $value) (i32.const 16))
    (call $drop-container (local.get $container))
    (i32.const 16))
  (func (export "acme:probe/blobs#abandon") (param i32 i32 i32 i32 i32 i32) (result i32)
    (local $container i32)
    (call $open (local.get 0) (local.get 1) (i32.const 16))
    (if (i32.load8_u (i32.const 16)) (then (return (i32.const 16))))
    (local.set $container (i32.load (i32.const 20)))
    (call $drop-value (call $value (local.get $container)
      (local.get 2) (local.get 3) (local.get 4) (local.get 5)))
    (call $drop-container (local.get $container))
    (i32.store (i32.const 16) (i32.const 0))
    (i32.const 16))
  (func (export "acme:probe/blobs#get") (param i32 i32 i32 i32) (result i32) (local $container i32)
    (call $open (local.get 0) (local.get 1) (i32.const 16))
    (if (i32.load8_u (i32.const 16)) (then (return (i32.const 16))))
    (local.set $container (i32.load (i32.const 20)))
    (call $get (local.get $container) (local.get 2) (local.get 3)
      (i64.const 0) (i64.const -1) (i32.const 64))
    (call $drop-container (local.get $container))
    (if (i32.load8_u (i32.const 64)) (then (return (i32.const 64))))
    (call $consume (i32.load (i32.const 68)) (i32.const 16))
    (i32.const 16))
  (func (export "acme:probe/blobs#copy") (param i32 i32 i32 i32 i32 i32) (result i32)
    (call $copy (local.get 0) (local.get 1) (local.get 2) (local.get 3)
      (local.get 0) (local.get 1) (local.get 4) (local.get 5) (i32.const 16))
    (i32.const 16))
"#;
    component(WIT, "guest", &format!("{core}{MEMORY}"))
}

const CONTAINERS: &str = "  - namespace: wasi
    package: blobstore
    interfaces: [blobstore]
    config: {containers: \"photos\"}";

struct Run {
    program: Program,
    record: Memory,
}

impl Run {
    async fn call(&self, text: &str) -> String {
        let result = invoke::call(&self.program, &Stdio::default(), text).await;
        result.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn effects(&self) -> Vec<Kept> {
        let effects = self.record.effects().into_iter();
        effects.filter(|effect| effect.verb != Verb::None).collect()
    }
}

fn run(change: impl Fn(&mut Setup)) -> Run {
    let (record, bytes) = (Memory::default(), blobs());
    let parts = [("probe", bytes.as_slice(), "")];
    let mut loaded = guest::load(&manifest(&parts, CONTAINERS), &parts, |_| {
        let mut setup = common::setup(&record);
        change(&mut setup);
        setup
    })
    .unwrap_or_else(|error| panic!("{error}"));
    Run { program: loaded.remove("probe").expect("it is there"), record }
}

#[tokio::test]
async fn an_object_is_stored_once_it_is_finished() {
    let run = run(|_| ());
    assert_eq!(run.call(r#"put("photos", "a", [1, 2, 3])"#).await, "ok");
    assert_eq!(run.call(r#"get("photos", "a")"#).await, "ok([1, 2, 3])");
    assert_eq!(run.call(r#"copy("photos", "a", "b")"#).await, "ok");
    assert_eq!(run.call(r#"get("photos", "b")"#).await, "ok([1, 2, 3])");
    assert_eq!(run.call(r#"abandon("photos", "c", [9])"#).await, "ok");
    assert_eq!(run.call(r#"get("photos", "c")"#).await, r#"err("there is no object \"c\"")"#);
    let effects = run.effects();
    let stored = effects.iter().find(|effect| effect.function == "write-data").expect("one");
    assert_eq!(stored.subject, r#"container "photos" object "a""#);
    assert_eq!(stored.result.as_deref(), Some("ok"));
    assert!(effects.iter().all(|effect| effect.denied.is_none()), "{effects:#?}");
}

#[tokio::test]
async fn another_container_is_denied_with_the_line_that_would_grant_it() {
    let run = run(|_| ());
    for call in [r#"put("letters", "a", [1])"#, r#"get("letters", "a")"#] {
        assert_eq!(run.call(call).await, r#"err("container \"letters\" isn\'t granted")"#);
    }
    let effects = run.effects();
    assert_eq!(effects.len(), 2, "{effects:#?}");
    for effect in effects {
        assert_eq!(effect.denied.as_deref(), Some("container-not-granted"));
        assert!(effect.why.contains("add \"letters\" to `containers`"), "{}", effect.why);
        assert!(effect.why.contains("workload.yaml:"), "{}", effect.why);
    }
}

#[tokio::test]
async fn objects_outlive_the_run_in_a_state_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = |setup: &mut Setup| setup.state_dir = Some(folder.path().to_owned());
    let first = run(within);
    assert_eq!(first.call(r#"put("photos", "a", [4, 5])"#).await, "ok");
    drop(first);
    let second = run(within);
    assert_eq!(second.call(r#"get("photos", "a")"#).await, "ok([4, 5])");
}
