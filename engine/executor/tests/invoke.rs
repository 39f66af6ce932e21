//! Functions that are called by hand.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests may fail loudly")]

mod common;
#[path = "common/guest.rs"]
mod guest;

use std::time::Duration;

use ambit_executor::record::Memory;
use ambit_executor::stdio::Stdio;
use ambit_executor::{ExecutorError, Limits, Program, Trip, invoke};
use guest::{MEMORY, component};

const WIT: &str = r#"
package acme:calc@1.2.0;
interface numbers {
  record point { x: s32, y: s32 }
  swap: func(point: point) -> point;
  echo: func(text: string) -> string;
  spin: func();
  same: func() -> u32;
}
interface words { same: func() -> u32; }
interface things { resource thing; make: func() -> thing; }
world guest { export numbers; export words; export things; }
"#;

fn calc() -> Program {
    with(&Limits::default())
}

fn with(limits: &Limits) -> Program {
    let core = r#"
  (func (export "acme:calc/numbers@1.2.0#swap") (param i32 i32) (result i32)
    (i32.store (i32.const 64) (local.get 1))
    (i32.store (i32.const 68) (local.get 0))
    (i32.const 64))
  (func (export "acme:calc/numbers@1.2.0#echo") (param i32 i32) (result i32)
    (i32.store (i32.const 64) (local.get 0))
    (i32.store (i32.const 68) (local.get 1))
    (i32.const 64))
  (func (export "acme:calc/numbers@1.2.0#spin") (loop (br 0)))
  (func (export "acme:calc/numbers@1.2.0#same") (result i32) (i32.const 1))
  (func (export "acme:calc/words@1.2.0#same") (result i32) (i32.const 2))
  (func (export "acme:calc/things@1.2.0#make") (result i32) unreachable)
"#;
    let bytes = component(WIT, "guest", &format!("{core}{MEMORY}"));
    let reviewed = ambit_testing::admit::bare("calc", &bytes);
    let admitted = reviewed.admitted.unwrap_or_else(|error| panic!("{error}"));
    let mut setup = common::setup(&Memory::default());
    setup.limits = limits.clone();
    common::program(&admitted, "calc", &bytes, &setup).unwrap_or_else(|error| panic!("{error}"))
}

async fn call(text: &str) -> Result<String, ExecutorError> {
    invoke::call(&calc(), &Stdio::default(), text).await
}

async fn refused(text: &str) -> (&'static str, String) {
    match call(text).await {
        Err(error) => (error.code(), format!("{error}; {}", error.help().unwrap_or_default())),
        Ok(result) => panic!("{text}: {result}"),
    }
}

#[tokio::test]
async fn a_function_is_found_by_each_of_its_names() {
    for name in ["swap", "numbers#swap", "acme:calc/numbers#swap", "acme:calc/numbers@1.2.0#swap"] {
        let result = call(&format!("{name}({{x: 1, y: -2}})")).await.expect("it is called");
        assert_eq!(result, "{x: -2, y: 1}");
    }
    assert_eq!(call(r#"echo("a\nb")"#).await.expect("it is called"), r#""a\nb""#);
    assert_eq!(call("words#same()").await.expect("it is called"), "2");
    assert_eq!(call("spinning()").await.map_err(|e| e.code()), Err("invoke-function"));
}

#[tokio::test]
async fn a_name_that_means_two_functions_is_refused_with_both() {
    let (code, text) = refused("same()").await;
    assert_eq!(code, "invoke-function");
    assert_eq!(
        text,
        "`same` of `calc` may mean `acme:calc/numbers@1.2.0#same`, `acme:calc/words@1.2.0#same`; name the interface in full"
    );
}

#[tokio::test]
async fn an_unknown_function_is_answered_with_those_there_are() {
    let (code, text) = refused("numbers#swop(1)").await;
    assert_eq!(code, "invoke-function");
    assert!(text.contains("`acme:calc/numbers@1.2.0#swap`"), "{text}");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_before_anything_runs() {
    for text in [
        "swap(1)",
        "swap()",
        "swap({x: 1})",
        "echo(\"a\", \"b\")",
        "echo(",
        "echo",
        "()",
        "echo(\"a\") x",
    ] {
        assert_eq!(refused(text).await.0, "invoke-call", "{text}");
    }
    let (_, text) = refused("echo(1)").await;
    assert!(text.contains("it takes (text: string)"), "{text}");
}

#[tokio::test]
async fn deep_text_is_refused_before_it_is_parsed() {
    let text = format!("echo({}1{})", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(refused(&text).await.0, "invoke-call");
}

#[tokio::test]
async fn a_function_with_handles_has_no_text() {
    assert_eq!(refused("make()").await.0, "invoke-type");
}

#[tokio::test]
async fn a_call_has_the_bounds_of_the_component() {
    let limits = Limits { cpu: Duration::from_millis(30), ..Limits::default() };
    match invoke::call(&with(&limits), &Stdio::default(), "spin()").await {
        Err(ExecutorError::Tripped { trip: Trip::Cpu(_), .. }) => {}
        other => panic!("{other:?}"),
    }
}
