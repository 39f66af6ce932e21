//! Calls between components of one workload.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail loudly"
)]

mod common;
#[path = "common/guest.rs"]
mod guest;

use std::collections::BTreeMap;
use std::time::Duration;

use ambit_engine::catalogue::Verb;
use ambit_executor::record::Memory;
use ambit_executor::stdio::Stdio;
use ambit_executor::{ExecutorError, Limits, Program, Trip, invoke};
use guest::{MEMORY, Part, component, manifest};

const WIT: &str = r#"
package acme:pair;
interface store {
  echo: func(text: string, n: u64) -> tuple<string, u64>;
  count: func() -> u32;
  env: func() -> list<tuple<string, string>>;
  spin: func();
  fail: func();
}
interface front {
  echo: func(text: string, n: u64) -> tuple<string, u64>;
  twice: func() -> u32;
  env: func() -> list<tuple<string, string>>;
  mine: func() -> list<tuple<string, string>>;
  spin: func();
  fail: func();
}
world back { import wasi:cli/environment@0.2.0; export store; }
world app { import wasi:cli/environment@0.2.0; import store; export front; }
package wasi:cli@0.2.0 {
  interface environment { get-environment: func() -> list<tuple<string, string>>; }
}
"#;

fn back() -> Vec<u8> {
    let core = r#"
  (import "wasi:cli/environment@0.2.0" "get-environment" (func $env (param i32)))
  (global $count (mut i32) (i32.const 0))
  (func (export "acme:pair/store#echo") (param i32 i32 i64) (result i32)
    (i32.store (i32.const 64) (local.get 0))
    (i32.store (i32.const 68) (local.get 1))
    (i64.store (i32.const 72) (i64.add (local.get 2) (i64.const 1)))
    (i32.const 64))
  (func (export "acme:pair/store#count") (result i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (global.get $count))
  (func (export "acme:pair/store#env") (result i32) (call $env (i32.const 64)) (i32.const 64))
  (func (export "acme:pair/store#spin") (loop (br 0)))
  (func (export "acme:pair/store#fail") unreachable)
"#;
    component(WIT, "back", &format!("{core}{MEMORY}"))
}

fn app() -> Vec<u8> {
    let core = r#"
  (import "acme:pair/store" "echo" (func $echo (param i32 i32 i64 i32)))
  (import "acme:pair/store" "count" (func $count (result i32)))
  (import "acme:pair/store" "env" (func $env (param i32)))
  (import "acme:pair/store" "spin" (func $spin))
  (import "acme:pair/store" "fail" (func $fail))
  (import "wasi:cli/environment@0.2.0" "get-environment" (func $mine (param i32)))
  (func (export "acme:pair/front#echo") (param i32 i32 i64) (result i32)
    (call $echo (local.get 0) (local.get 1) (local.get 2) (i32.const 64)) (i32.const 64))
  (func (export "acme:pair/front#twice") (result i32) (drop (call $count)) (call $count))
  (func (export "acme:pair/front#env") (result i32) (call $env (i32.const 64)) (i32.const 64))
  (func (export "acme:pair/front#mine") (result i32) (call $mine (i32.const 64)) (i32.const 64))
  (func (export "acme:pair/front#spin") (call $spin))
  (func (export "acme:pair/front#fail") (call $fail))
"#;
    component(WIT, "app", &format!("{core}{MEMORY}"))
}

struct Pair {
    programs: BTreeMap<String, Program>,
    record: Memory,
}

impl Pair {
    async fn call(&self, text: &str) -> Result<String, ExecutorError> {
        invoke::call(&self.programs["app"], &Stdio::default(), text).await
    }
}

fn load(parts: &[Part<'_>], limits: impl Fn(&str) -> Limits) -> Result<Pair, ExecutorError> {
    let record = Memory::default();
    let programs = guest::load(&manifest(parts, ""), parts, |name| {
        let mut setup = common::setup(&record);
        setup.limits = limits(name);
        setup
    })?;
    Ok(Pair { programs, record })
}

fn pair(limits: impl Fn(&str) -> Limits) -> Pair {
    let (app, back) = (app(), back());
    let parts: [Part<'_>; 2] = [
        ("app", &app, "      environment: {config: {WHO: app}}"),
        ("back", &back, "      environment: {config: {WHO: back}}"),
    ];
    load(&parts, limits).unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test]
async fn values_cross_and_the_call_is_on_the_callers_record() {
    let pair = pair(|_| Limits::default());
    let result = pair.call(r#"echo("hello", 41)"#).await.expect("it is called");
    assert_eq!(result, r#"("hello", 42)"#);
    let effects = pair.record.effects();
    assert_eq!(effects.len(), 2, "the call from outside and this one: {effects:?}");
    let effect = &effects[1];
    assert_eq!((effect.component.as_str(), effect.verb), ("app", Verb::UseHostService));
    assert_eq!(effect.subject, "component `back` acme:pair/store#echo");
    assert_eq!(effect.result.as_deref(), Some("ok"));
    assert_eq!(effect.detail, "instance 0 of `back`, parent `app` instance 0");
}

#[tokio::test]
async fn neither_side_sees_the_others_environment() {
    let pair = pair(|_| Limits::default());
    assert_eq!(pair.call("mine()").await.expect("it is called"), r#"[("WHO", "app")]"#);
    assert_eq!(pair.call("env()").await.expect("it is called"), r#"[("WHO", "back")]"#);
}

#[tokio::test]
async fn a_providers_state_lives_as_long_as_its_callers_instance() {
    let pair = pair(|_| Limits::default());
    assert_eq!(pair.call("twice()").await.expect("it is called"), "2");
    assert_eq!(pair.call("twice()").await.expect("it is called"), "2");
}

#[tokio::test]
async fn a_provider_that_spins_meets_its_own_bound() {
    let short = Limits { cpu: Duration::from_millis(30), ..Limits::default() };
    let pair = pair(|name| if name == "back" { short.clone() } else { Limits::default() });
    match pair.call("spin()").await {
        Err(ExecutorError::Tripped { component, trip: Trip::Cpu(_) }) => {
            assert_eq!(component, "back");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(pair.record.effects()[0].result.as_deref(), Some("limit-cpu-time"));
}

#[tokio::test]
async fn a_provider_has_no_more_time_than_its_caller() {
    let wall = Duration::from_millis(100);
    let pair = pair(|name| match name {
        "app" => Limits { wall, ..Limits::default() },
        _ => Limits {
            cpu: Duration::from_secs(3600),
            wall: Duration::from_secs(3600),
            ..Limits::default()
        },
    });
    match pair.call("spin()").await {
        Err(ExecutorError::Tripped { trip: Trip::Wall(_), .. }) => {}
        other => panic!("{other:?}"),
    }
    let result = pair.record.effects()[0].result.clone();
    assert!(matches!(result.as_deref(), Some("limit-wall-time" | "call-cut-off")), "{result:?}");
}

#[tokio::test]
async fn a_trap_in_the_provider_names_it() {
    match pair(|_| Limits::default()).call("fail()").await {
        Err(ExecutorError::Trapped { component, reason }) => {
            assert_eq!(component, "back");
            assert!(reason.contains("unreachable"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

fn refused(wit_app: &str, wit_back: &str, core_app: &str, core_back: &str) -> ExecutorError {
    let app = component(wit_app, "app", &format!("{core_app}{MEMORY}"));
    let back = component(wit_back, "back", &format!("{core_back}{MEMORY}"));
    let parts: [Part<'_>; 2] = [("app", &app, ""), ("back", &back, "")];
    match load(&parts, |_| Limits::default()) {
        Err(error) => error,
        Ok(_) => panic!("it was linked"),
    }
}

#[test]
fn no_handle_crosses_a_link() {
    let wit = "package acme:pair;
        interface things { resource thing; make: func() -> thing; }
        world back { export things; }
        world app { import things; export run: func(); }";
    let error = refused(
        wit,
        wit,
        r#"(import "acme:pair/things" "make" (func $make (result i32)))
           (func (export "run") (drop (call $make)))"#,
        r#"(func (export "acme:pair/things#make") (result i32) unreachable)"#,
    );
    assert_eq!(error.code(), "link-resource");
    assert_eq!(
        error.to_string(),
        "`acme:pair/things#make`, which `app` imports from `back`, has a type with a resource, and no handle crosses between components"
    );
}

#[test]
fn functions_that_differ_are_refused_at_load() {
    let wit = |ty: &str| {
        format!(
            "package acme:pair;
             interface store {{ put: func(key: {ty}); }}
             world back {{ export store; }}
             world app {{ import store; export run: func(); }}"
        )
    };
    let error = refused(
        &wit("u32"),
        &wit("s32"),
        r#"(import "acme:pair/store" "put" (func $put (param i32)))
           (func (export "run") (call $put (i32.const 1)))"#,
        r#"(func (export "acme:pair/store#put") (param i32))"#,
    );
    assert_eq!(error.code(), "link-type");
    assert_eq!(
        error.to_string(),
        "`acme:pair/store#put` differs between `app` and `back`: parameter `key` has another type"
    );
}

/// A component that exports `acme:chain/lN` and calls `acme:chain/lN-1`; the first answers itself.
fn ring(number: usize) -> Vec<u8> {
    let text = match number.checked_sub(1) {
        None => r#"(component
            (core module $m (func (export "f") (result i32) (i32.const 7)))
            (core instance $c (instantiate $m))
            (func $f (result u32) (canon lift (core func $c "f")))
            (instance $out (export "f" (func $f)))
            (export "acme:chain/l0" (instance $out)))"#
            .to_owned(),
        Some(before) => format!(
            r#"(component
            (import "acme:chain/l{before}" (instance $i (export "f" (func (result u32)))))
            (core func $g (canon lower (func $i "f")))
            (core module $m (import "i" "f" (func $g (result i32)))
                (func (export "f") (result i32) (call $g)))
            (core instance $c (instantiate $m (with "i" (instance (export "f" (func $g))))))
            (func $f (result u32) (canon lift (core func $c "f")))
            (instance $out (export "f" (func $f)))
            (export "acme:chain/l{number}" (instance $out)))"#
        ),
    };
    wat::parse_str(text).expect("the text is right")
}

#[tokio::test]
async fn a_chain_of_calls_ends_at_its_depth() {
    let rings: Vec<(String, Vec<u8>)> =
        (0..10).map(|number| (format!("ring{number}"), ring(number))).collect();
    let parts: Vec<Part<'_>> =
        rings.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice(), "")).collect();
    let chain = load(&parts, |_| Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let call = |name: &str| {
        let program = chain.programs[name].clone();
        async move { invoke::call(&program, &Stdio::default(), "f()").await }
    };
    assert_eq!(call("ring8").await.expect("eight calls are within bounds"), "7");
    match call("ring9").await {
        Err(ExecutorError::Trapped { reason, .. }) => {
            assert!(reason.contains("more than 8 components"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let denied = chain.record.effects().into_iter().filter_map(|effect| effect.denied);
    assert_eq!(denied.collect::<Vec<_>>(), ["link-depth"]);
}
