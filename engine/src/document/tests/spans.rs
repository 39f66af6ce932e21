//! Where values are said to stand.

use super::{read, root};
use crate::document::{Node, Value, line_text};

/// Returns the text that the span of `pointer` covers.
fn written<'t>(text: &'t str, pointer: &str) -> &'t str {
    let node = root(text);
    let span = node.at(pointer).unwrap_or_else(|| panic!("{pointer}")).span();
    &text[span.start_byte()..span.end_byte()]
}

#[test]
fn scalar_spans_are_the_text_as_written() {
    let text = "a: 'it''s' # x\nb: \"é\\\"q\"   \nc: plain é text # c\nd: !!str &x 12\ne: |\n  one\n\n  two\n\nf: >- # why | so\n   fold\n   ed\ng: *x\nh:\ni: - # no\n";
    let text = &text[..text.len() - 10];
    for (pointer, expected) in [
        ("/a", "'it''s'"),
        ("/b", "\"é\\\"q\""),
        ("/c", "plain é text"),
        ("/d", "12"),
        ("/e", "|\n  one\n\n  two"),
        ("/f", ">- # why | so\n   fold\n   ed"),
        ("/g", "12"),
    ] {
        assert_eq!(written(text, pointer), expected, "{pointer}");
    }
    assert_eq!(root(text).at("/h").unwrap().span().start().to_string(), "14:3");
}

#[test]
fn collection_spans_run_from_first_to_last_item() {
    let text = "a:\n  b: 1\n  c: [x, y] # z\nd:\n- - 1\n  - 2\n- k: v\n  l:\n  - m # n\nf: {p: q, r: [s]}\ng: &anchor\n  h: i\nj: [k: v, {}]\n";
    for (pointer, expected) in [
        ("/a", "b: 1\n  c: [x, y]"),
        ("/a/c", "[x, y]"),
        ("/d", "- - 1\n  - 2\n- k: v\n  l:\n  - m"),
        ("/d/0", "- 1\n  - 2"),
        ("/d/1", "k: v\n  l:\n  - m"),
        ("/d/1/l", "- m"),
        ("/f", "{p: q, r: [s]}"),
        ("/g", "h: i"),
        ("/j", "[k: v, {}]"),
        ("/j/0", "k: v"),
    ] {
        assert_eq!(written(text, pointer), expected, "{pointer}");
    }
    assert_eq!(written("{ \"a\" : [1, {\"b\": \"c\"}] }", "/a"), "[1, {\"b\": \"c\"}]");
    assert_eq!(written("a: &x\n- 1\n", "/a"), "- 1");
}

#[test]
fn comments_with_wide_characters_do_not_shift_positions() {
    let text =
        "a: x # é€😀\nb: 'y' # é€😀\nc: [1, # é\n  2] # é\n# é\nd: {e: f} # ü\ng: |\n  ü\nh: ok\n";
    assert_eq!(written(text, "/h"), "ok");
    assert_eq!(written(text, "/d/e"), "f");
    assert_eq!(root(text).at("/h").unwrap().span().start().to_string(), "9:4");
}

#[test]
fn nested_spans_lie_within_their_parents_and_reparse() {
    fn check(node: &Node, text: &str) {
        let children: Vec<&Node> = match node.value() {
            Value::Sequence(items) => items.iter().collect(),
            Value::Mapping(mapping) => mapping
                .iter()
                .map(|entry| {
                    let key = entry.key_span();
                    assert!(text[key.start_byte()..key.end_byte()].contains(entry.key()));
                    entry.value()
                })
                .collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::String(_)
            | Value::Legacy { .. } => Vec::new(),
        };
        for child in children {
            assert!(node.span().start() <= child.span().start(), "{child:?}");
            assert!(child.span().end() <= node.span().end(), "{node:?}\n{child:?}");
            check(child, text);
        }
    }
    let text = "apiVersion: v1\nitems:\n- name: a\n  args: [\"x\", 2]\n  env:\n    - name: B\n      value: |\n        text\n    -\n    - c\nlast:\n";
    check(&root(text), text);
}

#[test]
fn lines_are_counted_as_positions_count_them() {
    let text = "\u{feff}one\r\ntwo\rthree\n\nfive\n";
    let lines: Vec<_> = (0..8).map(|line| line_text(text, line)).collect();
    assert_eq!(
        lines,
        [None, Some("one"), Some("two"), Some("three"), Some(""), Some("five"), Some(""), None]
    );
}

#[test]
fn pointers_find_escaped_keys_and_items() {
    let node = root("a/b: {c~d: [x, why]}\n'': z\n");
    assert_eq!(node.at("/a~1b/c~0d/1").unwrap().as_str(), Some("why"));
    assert_eq!(node.at("/").unwrap().as_str(), Some("z"));
    assert_eq!(node.at("").unwrap(), &node);
    for missing in
        ["a", "/x", "/a~1b/c~0d/2", "/a~1b/c~0d/01", "/a~1b/c~0d/+1", "/a~1b/c~0d/-", "//x"]
    {
        assert!(node.at(missing).is_none(), "{missing}");
    }
    assert!(read("a: 1").unwrap()[0].span().start_byte() == 0);
}
