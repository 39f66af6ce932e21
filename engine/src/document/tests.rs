//! Each error code with a near miss, exact spans, and hostile texts.

mod fields;
mod hostile;
mod spans;

use super::{Document, DocumentError, DocumentLimits, Format, Node, Value, parse};

fn read(text: &str) -> Result<Vec<Document>, DocumentError> {
    parse(text.as_bytes(), Format::Auto, &DocumentLimits::default())
}

fn root(text: &str) -> Node {
    let mut documents = read(text).unwrap();
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0).into_root()
}

fn json_of(text: &str) -> String {
    root(text).to_json().to_string()
}

fn error(text: &str) -> DocumentError {
    read(text).expect_err(text)
}

/// Returns code and position of the error.
fn refusal(text: &str) -> String {
    let error = error(text);
    let place = error.position().map_or_else(|| "-".to_owned(), |at| at.to_string());
    format!("{} {place}", error.code())
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    let json = json_of(
        "[~, null, true, FALSE, 12, -3, +4, 0o17, 0x1F, 1.5, .5, 1e3, 0b1, 1_0, 0o8, 12:30, 1.2.3, '1']",
    );
    assert_eq!(
        json,
        r#"[null,null,true,false,12,-3,4,15,31,1.5,0.5,1000.0,"0b1","1_0","0o8","12:30","1.2.3","1"]"#
    );
}

#[test]
fn legacy_booleans_are_told_apart_from_text_and_booleans() {
    let node = root("a: yes\nb: 'yes'\nc: Off\nd: yEs\n");
    assert_eq!(
        node.get("a").unwrap().value(),
        &Value::Legacy { text: "yes".to_owned(), reading: true }
    );
    assert_eq!(node.get("a").unwrap().as_bool(), Some(true));
    assert_eq!(node.get("a").unwrap().scalar_text(), Some("yes"));
    assert_eq!(node.get("b").unwrap().as_str(), Some("yes"));
    assert_eq!(node.get("c").unwrap().as_bool(), Some(false));
    assert_eq!(node.get("d").unwrap().as_str(), Some("yEs"));
}

#[test]
fn scalars_keep_the_text_that_was_written() {
    let node = root("a: 0x1F\nb: TRUE\nc: 99999999999999999999\nd: .inf\ne:\n");
    let text = |key: &str| node.get(key).unwrap().scalar_text();
    assert_eq!(text("a"), Some("0x1F"));
    assert_eq!(text("b"), Some("TRUE"));
    assert_eq!(text("c"), Some("99999999999999999999"));
    assert!(matches!(node.get("c").unwrap().value(), Value::Float(_)));
    assert_eq!(node.get("d").unwrap().to_json(), ".inf");
    assert_eq!(text("e"), None);
}

#[test]
fn core_tags_are_honoured_and_others_refused() {
    assert_eq!(
        json_of(
            "a: !!str 12\nb: !!int '7'\nc: !!bool yes\nd: !!null ''\ne: !!float 3\nf: !!map {}\ng: !!seq []\n"
        ),
        r#"{"a":"12","b":7,"c":true,"d":null,"e":3.0,"f":{},"g":[]}"#
    );
    assert_eq!(json_of("a: !<tag:yaml.org,2002:str> 1"), r#"{"a":"1"}"#);
    for text in ["a: !!binary aGk=", "a: !Ref x", "a: ! x", "a: !<x:y> {}", "a: !e!x y"] {
        assert_eq!(error(text).code(), "manifest-tag", "{text}");
    }
    for text in ["a: !!int x", "a: !!map []", "a: !!str []", "a: !!seq x", "a: !!bool 1"] {
        assert_eq!(error(text).code(), "manifest-tag", "{text}");
    }
}

#[test]
fn duplicate_keys_name_both_places() {
    let error = error("a:\n  b: 1\n  c: 2\n  \"b\": 3\n");
    assert_eq!(error.code(), "manifest-duplicate-key");
    assert_eq!(error.to_string(), "key `b` at 4:3 is already set at 2:3");
    assert_eq!(refusal(r#"{"a": 1, "a": 2}"#), "manifest-duplicate-key 1:10");
    assert_eq!(refusal(r#"{"a": 1, "\u0061": 2}"#), "manifest-duplicate-key 1:10");
    assert_eq!(json_of("A: 2\na: {b: 1}\nc: {b: 1}"), r#"{"A":2,"a":{"b":1},"c":{"b":1}}"#);
}

#[test]
fn merge_keys_give_way_to_explicit_keys_and_earlier_sources() {
    let text = "base: &base {a: 1, b: 2}\nother: &other {b: 9, c: 3}\none:\n  <<: *base\n  b: 7\nall:\n  <<: [*base, *other]\n";
    let node = root(text);
    assert_eq!(node.at("/one").unwrap().to_json().to_string(), r#"{"a":1,"b":7}"#);
    assert_eq!(node.at("/all").unwrap().to_json().to_string(), r#"{"a":1,"b":2,"c":3}"#);
    assert_eq!(node.at("/one/a").unwrap().span().start().to_string(), "1:17");
    assert_eq!(
        json_of("a: &a {x: 1}\nb: &b {<<: *a, z: 2}\nc: {<<: *b}\n"),
        r#"{"a":{"x":1},"b":{"x":1,"z":2},"c":{"x":1,"z":2}}"#
    );
    for text in ["a: {<<: 1}", "a: {<<: [1]}", "a: {<<: [[]]}", "a:\n  <<:\n"] {
        assert_eq!(error(text).code(), "manifest-key", "{text}");
    }
    assert_eq!(json_of("a: {'<<': 1}"), r#"{"a":{"<<":1}}"#);
    assert_eq!(json_of(r#"{"<<": 1}"#), r#"{"<<":1}"#);
}

#[test]
fn keys_are_strings() {
    for text in [
        "1: a",
        "true: a",
        "~: a",
        "null: a",
        ": a",
        "1.5: a",
        "on: a",
        "[a]: b",
        "{a: b}: c",
        "? [a]\n: b",
        "{1: a}",
    ] {
        assert_eq!(error(text).code(), "manifest-key", "{text}");
    }
    assert_eq!(
        error("a:\n  8080: b\n").help().as_deref(),
        Some("put the key in quotes: `\"8080\"`")
    );
    assert_eq!(json_of("'1': a\n\"on\": c\n!!str true: b\n"), r#"{"1":"a","on":"c","true":"b"}"#);
    assert_eq!(json_of("&k a: 1\nb: *k\nc: {*k : 2}"), r#"{"a":1,"b":"a","c":{"a":2}}"#);
}

#[test]
fn aliases_are_copies_within_their_document() {
    assert_eq!(json_of("a: &x [1]\nb: *x\n"), r#"{"a":[1],"b":[1]}"#);
    assert_eq!(json_of("a: &x 1\nb: &x 2\nc: *x\n"), r#"{"a":1,"b":2,"c":2}"#);
    assert_eq!(refusal("a: *x\n"), "manifest-alias 1:4");
    assert_eq!(refusal("a: &x\n  b: *x\n"), "manifest-alias 2:6");
    assert_eq!(refusal("a: &x 1\n---\nb: *x\n"), "manifest-alias 3:4");
}

#[test]
fn empty_documents_are_skipped() {
    for text in ["", "\n", "# only\n", "---\n", "---\n---\n# c\n...\n", "\u{feff}"] {
        assert_eq!(read(text).unwrap().len(), 0, "{text:?}");
    }
    assert_eq!(read("---\na: 1\n---\n\n---\nb: 2\n...\n---\nnull\n").unwrap().len(), 3);
    assert_eq!(read("{\"a\":1}\n{\"b\":2} [3]").unwrap().len(), 3);
}

#[test]
fn line_breaks_and_byte_order_mark_do_not_change_the_reading() {
    assert_eq!(json_of("\u{feff}a: 1\r\nb:\r\n  - x\r\n"), r#"{"a":1,"b":["x"]}"#);
    let node = root("\u{feff}a: 1\r\nb: é x\r\n");
    let span = node.get("b").unwrap().span();
    assert_eq!((span.start().to_string(), span.start_byte()), ("2:4".to_owned(), 12));
    assert_eq!(node.get("a").unwrap().span().start().to_string(), "1:4");
}

#[test]
fn other_encodings_are_named() {
    let encode = |text: &str, big: bool| -> Vec<u8> {
        let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    };
    for bytes in [
        encode("\u{feff}a: 1", true),
        encode("\u{feff}a: 1", false),
        encode("a: 1", true),
        encode("a: 1", false),
        b"a\0\0\0:\0\0\0".to_vec(),
        b"\0\0\0a".to_vec(),
    ] {
        let error = parse(&bytes, Format::Auto, &DocumentLimits::default()).unwrap_err();
        assert_eq!(error.code(), "manifest-encoding");
        assert_eq!(error.help().as_deref(), Some("save it as UTF-8"));
    }
    let error =
        parse(b"\xef\xbb\xbfa: \xff", Format::Auto, &DocumentLimits::default()).unwrap_err();
    assert_eq!(error, DocumentError::InvalidUtf8 { offset: 6 });
}

#[test]
fn control_characters_have_a_position() {
    assert_eq!(refusal("a: 1\nb: \u{0}x\n"), "manifest-control-character 2:4");
    assert_eq!(refusal("a: \u{1b}[31m"), "manifest-control-character 1:4");
    assert_eq!(refusal("{\"a\": \"\u{7f}\"}"), "manifest-control-character 1:8");
    assert_eq!(root("a: \"\\e\\u0000\"\n").get("a").unwrap().as_str(), Some("\u{1b}\0"));
}

#[test]
fn tabs_as_indentation_are_named() {
    assert_eq!(refusal("a:\n\tb: 1\n"), "manifest-syntax 2:1");
    for text in [
        "a:\n\tb: 1\n",
        "a:\n  b: 1\n\tc: 2\n",
        "a:\n  - x\n\t- y\n",
        "a:\n  b: x\n  \tc: y\n",
        "\ta: 1\nb: 2\n",
    ] {
        assert!(
            matches!(error(text), DocumentError::TabIndentation { .. }),
            "{text:?} {:?}",
            error(text)
        );
    }
    assert_eq!(json_of("a: \tx\t# y\n\t\nb: |\n  \tz\n"), r#"{"a":"x","b":"\tz\n"}"#);
    assert_eq!(json_of("{\n\t\"a\":\t1\n}"), r#"{"a":1}"#);
    assert_eq!(json_of("{\n\ta: 1,\n\tb: [\n\t2]\n}"), r#"{"a":1,"b":[2]}"#);
}

#[test]
fn only_version_directives_are_taken() {
    assert_eq!(json_of("%YAML 1.2 # c\n---\na: 1\n"), r#"{"a":1}"#);
    assert_eq!(json_of("--- |\n %x\n"), r#""%x\n""#);
    assert_eq!(refusal("a: 1\n...\n%TAG ! tag:x,2000:\n---\nb: 1\n"), "manifest-syntax 3:1");
    for text in [
        "%YAML 1.3\n---\na: 1\n",
        "%YAML 2.0\n---\n",
        "%FOO x\n--- a\n",
        "%TAG !e! x:\n---\na: !e!y 1\n",
    ] {
        assert!(matches!(error(text), DocumentError::Directive { .. }), "{text} {:?}", error(text));
    }
}

#[test]
fn json_is_strict() {
    let strict = |text: &str| parse(text.as_bytes(), Format::Json, &DocumentLimits::default());
    for text in [
        "",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "[01]",
        "[1.]",
        "[.5]",
        "[+1]",
        "[-]",
        "[1e]",
        "[1e400]",
        "['a']",
        "{a:1}",
        "[tru]",
        "[nul",
        "[\"\\x\"]",
        "[\"\\ud800\"]",
        "[\"\\ud800\\u0041\"]",
        "[\"a\nb\"]",
        "[\"a\tb\"]",
        "// c\n1",
        "[1 2]",
        "{\"a\" 1}",
        "{\"a\":}",
        "[}",
        "{]",
        "\"a",
        "[\"\\u00g0\"]",
        "nullx",
        "1 2",
        "{} x",
        "[\u{a0}1]",
    ] {
        assert_eq!(strict(text).expect_err(text).code(), "manifest-syntax", "{text}");
    }
    for (text, value) in [
        ("[-0, 1.5E+2, 1e-1]", "[-0.0,150.0,0.1]"),
        ("\"\\ud83d\\ude00\\/\"", "\"😀/\""),
        (" {\"a\" : [ ] , \"b\" : { } } ", "{\"a\":[],\"b\":{}}"),
        ("null", "null"),
    ] {
        assert_eq!(strict(text).unwrap()[0].root().to_json().to_string(), value, "{text}");
    }
    assert_eq!(
        strict("{\"a\": 1}\n x").unwrap_err(),
        DocumentError::TrailingContent {
            position: strict("{\"a\": 1}\n x").unwrap_err().position().unwrap()
        }
    );
    assert_eq!(refusal("{\"a\": 1}\n  x"), "manifest-syntax 2:3");
    assert!(error("{\n\t\"a\": 1\n\t\"b\": 2\n}").to_string().starts_with("invalid JSON at 3:2"));
}

#[test]
fn flow_yaml_is_read_where_json_is_not() {
    assert_eq!(json_of("{a: 1, 'b': [x, z]}"), r#"{"a":1,"b":["x","z"]}"#);
    assert_eq!(json_of("{\"a\": 1} # c"), r#"{"a":1}"#);
    assert_eq!(refusal("{a: 1"), "manifest-syntax 1:6");
}

#[test]
fn limits_are_inclusive() {
    let limits = DocumentLimits {
        max_bytes: 40,
        max_documents: 2,
        max_depth: 2,
        max_nodes: 6,
        max_scalar_bytes: 8,
    };
    let code = |text: &str, format| match parse(text.as_bytes(), format, &limits) {
        Ok(_) => "ok",
        Err(error) => error.code(),
    };
    for (fits, exceeds, expected) in [
        ("a: [1]", "a: [[1]]", "manifest-too-deep"),
        ("[1, 2, 3, 4, 5]", "[1, 2, 3, 4, 5, 6]", "manifest-too-many-nodes"),
        ("a: 1\n---\na: 1", "a\n---\nb\n---\nc", "manifest-too-many-documents"),
        ("a: 12345678", "a: 123456789", "manifest-too-large"),
        ("12345678: a", "a23456789: a", "manifest-too-large"),
        ("a: &x [1]\nb: *x", "a: &x [1, 2]\nb: *x", "manifest-too-many-nodes"),
        ("a: &x [1]\nb: *x", "a: &x [1]\nb: [*x]", "manifest-too-deep"),
    ] {
        let near_miss = if fits.starts_with('1') { "manifest-key" } else { "ok" };
        assert_eq!(code(fits, Format::Yaml), near_miss, "{fits}");
        assert_eq!(code(exceeds, Format::Yaml), expected, "{exceeds}");
    }
    assert_eq!(code("{\"a\":[1]}", Format::Json), "ok");
    assert_eq!(code("{\"a\":[[]]}", Format::Json), "manifest-too-deep");
    assert_eq!(code(&" ".repeat(40), Format::Yaml), "ok");
    assert_eq!(code(&" ".repeat(41), Format::Yaml), "manifest-too-large");
}
