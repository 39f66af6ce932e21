//! Texts that are made to hurt.

use std::thread;

use proptest::prelude::*;

use super::error;
use crate::document::{DocumentError, DocumentLimits, Format, Value, parse};

/// Runs on a small stack. Work in the square of the length would not end.
fn outcome(text: String) -> &'static str {
    let run = move || {
        let mut code = "ok";
        for format in [Format::Auto, Format::Yaml, Format::Json] {
            code = match parse(text.as_bytes(), format, &DocumentLimits::default()) {
                Ok(_) => "ok",
                Err(error) => error.code(),
            };
            if format == Format::Auto && code != "ok" {
                return code;
            }
        }
        code
    };
    thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap()
}

#[test]
fn deep_nesting_is_refused_on_a_small_stack() {
    for unit in ["[", "{\"a\":", "{", "- ", "? ", "[{a: ", "- [", "a: {", "&a [", "!!seq ["] {
        let code = outcome(unit.repeat(100_000));
        assert!(
            ["manifest-too-deep", "manifest-syntax", "manifest-key"].contains(&code),
            "{unit} {code}"
        );
    }
    assert_eq!(outcome("[".repeat(100_000)), "manifest-too-deep");
    assert_eq!(outcome("- ".repeat(100_000)), "manifest-too-deep");
    assert_eq!(outcome(format!("# yaml\n{}", "[".repeat(100_000))), "manifest-too-deep");
    let nested: String = (0..2000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(outcome(nested), "manifest-too-deep");
}

#[test]
fn depth_ceiling_holds_whatever_the_limit() {
    let limits = DocumentLimits { max_depth: usize::MAX, ..DocumentLimits::default() };
    let text = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let run = move || {
        for format in [Format::Yaml, Format::Json] {
            let documents = parse(text.as_bytes(), format, &limits).unwrap();
            let copy = documents.clone();
            assert!(copy[0].root().to_json().is_array());
            let deeper = format!("[{text}]");
            assert_eq!(
                parse(deeper.as_bytes(), format, &limits).unwrap_err().code(),
                "manifest-too-deep"
            );
        }
    };
    thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn alias_bombs_are_counted_before_they_are_copied() {
    let mut bomb = String::from("a0: &a0 x\n");
    for level in 1..60 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert_eq!(error(&bomb).code(), "manifest-too-many-nodes");
    let merges: String = (1..40)
        .map(|n| format!("a{n}: &a{n}\n  <<: [*a{0}, *a{0}, *a{0}]\n  k{n}: 1\n", n - 1))
        .collect();
    assert_eq!(error(&format!("a0: &a0 {{x: 1}}\n{merges}")).code(), "manifest-too-many-nodes");
    let wide = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(100_000), "*a,".repeat(10_000));
    assert!(matches!(error(&wide), DocumentError::AliasesTooLarge { .. }));
    let deep: String = (1..100).map(|n| format!("a{n}: &a{n} [*a{}]\n", n - 1)).collect();
    assert_eq!(error(&format!("a0: &a0 x\n{deep}")).code(), "manifest-too-deep");
}

#[test]
fn wide_flow_collection_is_refused_before_it_fills_memory() {
    let text = format!("# yaml\n[{}", ",".repeat(4_000_000));
    let error = error(&text);
    assert!(matches!(error, DocumentError::FlowTooLarge { .. }), "{error}");
    assert_eq!(error.position().unwrap().to_string(), "2:1");
    let plain = format!("- {}x\n", "a, ".repeat(400_000));
    assert!(
        parse(
            plain.as_bytes(),
            Format::Yaml,
            &DocumentLimits { max_scalar_bytes: 4 << 20, ..DocumentLimits::default() }
        )
        .is_ok()
    );
}

#[test]
fn four_mebibytes_of_anything_take_bounded_time() {
    let units = [
        " ",
        "\n",
        "\r",
        "\t",
        "a",
        "é",
        "😀",
        "'",
        "\"",
        "#",
        "-",
        "- ",
        "-\n",
        ":",
        ": ",
        "?",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&",
        "&a ",
        "*",
        "*a ",
        "!",
        "!a ",
        "|",
        ">",
        "%",
        "@",
        "`",
        "0",
        "\\",
        "\"\\",
        "a: ",
        "a:\n",
        "a\n",
        "# a\n",
        "---\n",
        "...\n",
        "a\n---\n",
        "- a\n",
        "{}",
        "[],",
        "[]\n",
        "'a' ",
        "\"\\u0000",
        "1 ",
        "\u{feff}",
        "\u{feff}\n",
        "<<: ",
        "{a: ",
        "[a, ",
        "? a\n",
        "- - ",
        "&a a\n",
        "''",
        "\"a\": 1,",
        "\n ",
        "|\n",
        "- |\n a\n",
        "%a\n",
    ];
    let limits = DocumentLimits::default();
    for unit in units {
        for prefix in ["", "[", "a: ", "\"", "'", "{\"a\": \"", "- |\n "] {
            // The whole size where it gets far; a debug build takes long enough as it is.
            let far = prefix.is_empty()
                && [" ", "a", "é", "'", "\\", "- ", "a: ", "a\n", "# a\n", "- a\n", "---\n"]
                    .contains(&unit);
            let size = if far { limits.max_bytes } else { limits.max_bytes / 128 };
            let mut text = prefix.to_owned();
            text.push_str(&unit.repeat((size - prefix.len()) / unit.len()));
            // What it answers is the other tests' business; here it answers at all.
            let answer = parse(text.as_bytes(), Format::Auto, &limits);
            assert!(
                answer.map_or_else(|error| !error.code().is_empty(), |found| found.len() <= 64)
            );
        }
    }
}

#[test]
fn many_long_keys_are_compared_in_bounded_time() {
    let text: String = (0..60_000).map(|n| format!("{}{n}: 1\n", "k".repeat(20))).collect();
    let documents = parse(text.as_bytes(), Format::Yaml, &DocumentLimits::default()).unwrap();
    assert!(
        matches!(documents[0].root().value(), Value::Mapping(mapping) if mapping.len() == 60_000)
    );
}

fn soup() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "a",
        "b: ",
        ": ",
        ":",
        "- ",
        "-",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        ", ",
        "&x ",
        "*x",
        "*x ",
        "!",
        "!!str ",
        "!<t> ",
        "|",
        ">",
        "|-\n",
        ">2\n",
        "'",
        "\"",
        "''",
        "\"\"",
        "\\",
        "#",
        " #c",
        "---",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "%TAG ! x\n",
        "<<: ",
        "1",
        "true",
        "~",
        "é",
        "\u{feff}",
        "\u{85}",
        "\u{2028}",
        "\"\\u0041\"",
        "\\x",
        "\n  ",
        "\n - ",
        "0x1",
        "1e5",
        "@",
        "`",
    ]);
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for format in [Format::Auto, Format::Yaml, Format::Json] {
            let _ = parse(&bytes, format, &DocumentLimits::default());
        }
    }

    #[test]
    fn no_pieces_of_yaml_make_the_parser_panic(text in soup()) {
        for format in [Format::Auto, Format::Yaml, Format::Json] {
            let _ = parse(text.as_bytes(), format, &DocumentLimits::default());
        }
    }

    #[test]
    fn strict_json_reads_as_serde_json_reads_it(text in "[\\[\\]{},:\"\\\\ 0-9a-fnrtuls.eE+-]{0,24}") {
        let ours = parse(text.as_bytes(), Format::Json, &DocumentLimits::default());
        if let (Ok(ours), Ok(theirs)) = (&ours, serde_json::from_str::<serde_json::Value>(&text)) {
            prop_assert_eq!(ours[0].root().to_json(), theirs);
        }
    }
}
