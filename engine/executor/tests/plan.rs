//! What is never run, whatever was decided: other bytes, other forms, other types, other features.

mod common;

use ambit_engine::admitted::NotAdmitted;
use ambit_executor::verify;
use common::{bare, hello, host, try_bare, wat};
use wasmtime::component::Component;

#[test]
fn only_the_bytes_that_were_decided_on_are_loaded() {
    let admitted = hello();
    let mut other = hello();
    let last = other.len().checked_sub(1).expect("bytes");
    *other.get_mut(last).expect("a byte") ^= 1;
    let error = try_bare("hello", &admitted, &other).expect_err("one bit differs");
    assert_eq!(error.code(), "run-digest", "{error}");
    bare("hello", &admitted);
}

#[test]
fn nothing_but_a_binary_component_is_loaded() {
    let host = host();
    let precompiled = host.engine().precompile_component(&hello()).expect("it compiles");
    let module = wat("(module)");
    for (what, bytes) in [
        ("precompiled code", precompiled.as_slice()),
        ("an ELF file", b"\x7fELF\x02\x01\x01\0"),
        ("text", b"(component)"),
        ("a core module", module.as_slice()),
        ("nothing", b""),
        ("a script", b"#!/bin/sh\n"),
        ("another version", b"\0asm\x09\0\x01\0"),
    ] {
        let digest = ambit_engine::digest::Digest::of(bytes);
        let error = verify(bytes, &digest).expect_err(what);
        assert_eq!(error.code(), "run-not-component", "{what}: {error}");
        // The bytes of a component that was admitted are no way in either.
        let error = try_bare("hello", &hello(), bytes).expect_err(what);
        assert_eq!(error.code(), "run-not-component", "{what}: {error}");
    }
}

#[test]
fn an_interface_with_other_types_is_refused_before_it_runs() {
    for (name, import) in [
        ("wasi:cli/exit@0.2.0", r#"(export "exit" (func (param "status" u64)))"#),
        ("wasi:random/random@0.2.0", r#"(export "get-random-u64" (func (result string)))"#),
        ("wasi:clocks/monotonic-clock@0.2.0", r#"(export "now" (func))"#),
        ("wasi:cli/environment@0.2.0", r#"(export "get-everything" (func (result string)))"#),
    ] {
        let bytes = wat(&format!("(component (import \"{name}\" (instance {import})))"));
        let error = try_bare("one", &bytes, &bytes).expect_err(name);
        assert_eq!(error.code(), "run-compile", "{name}: {error}");
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
}

/// Binaries that need a proposal which is off, each valid with it. Of all but the last the outline
/// shows it; bodies of functions are the engine's to read.
fn with_features() -> Vec<(&'static str, Vec<u8>)> {
    let core = |text: &str| wat(&format!("(component (core module {text}))"));
    vec![
        ("threads", core("(memory 1 1 shared)")),
        ("gc", core("(type (struct (field i32)))")),
        ("function subtypes", core("(rec (type $a (sub (func))) (type (sub $a (func))))")),
        ("function references", core("(type $t (func)) (func (param (ref $t)))")),
        ("exceptions", core("(tag)")),
        ("stack switching", core("(type $f (func)) (type (cont $f))")),
        ("custom page sizes", core("(memory 1 (pagesize 1))")),
        ("async functions", wat(r#"(component (import "f" (func async)))"#)),
        ("futures", wat(r#"(component (type (future u8)))"#)),
        ("error contexts", wat("(component (type error-context))")),
        ("fixed-length lists", wat("(component (type (list u8 4)))")),
        (
            "wide arithmetic",
            core("(func (param i64 i64) (result i64 i64) local.get 0 local.get 1 i64.mul_wide_u)"),
        ),
    ]
}

#[test]
fn a_feature_that_is_off_is_refused_by_the_decision_and_by_the_engine() {
    let host = host();
    for (feature, bytes) in with_features() {
        assert!(
            Component::from_binary(host.engine(), &bytes).is_err(),
            "the engine takes {feature}"
        );
        if feature == "wide arithmetic" {
            let error = try_bare("one", &bytes, &bytes).expect_err(feature);
            assert_eq!(error.code(), "run-compile", "{error}");
            continue;
        }
        let refused = ambit_testing::admit::bare("one", &bytes).admitted;
        assert!(
            matches!(refused, Err(NotAdmitted::Imports(_) | NotAdmitted::Decision(_))),
            "the decision takes {feature}: {refused:?}"
        );
    }
}

#[test]
fn a_component_of_wasi_0_3_is_told_what_it_needs() {
    let bytes = wat(r#"(component (import "wasi:http/handler@0.3.0" (instance)))"#);
    let refused = ambit_testing::admit::bare("three", &bytes).admitted.expect_err("it is refused");
    let text = refused.to_string();
    assert!(text.contains("wasi:http/handler@0.3.0"), "{text}");
    let NotAdmitted::Imports(refusals) = refused else { unreachable!("{text}") };
    let first = refusals.first().expect("a refusal");
    assert_eq!(first.code, "executor-wasi-p3", "{first:?}");
    assert!(first.help.contains("WASI 0.2"), "{first:?}");
}
