//! The strict reader.

use super::root;
use crate::document::{FieldProblem, Fields, Pointer};

fn shown(problems: &[FieldProblem]) -> Vec<String> {
    let show = |problem: &FieldProblem| {
        let help = problem.help().map(|help| format!(" ({help})")).unwrap_or_default();
        format!(
            "{} {} {}: {}{help}",
            problem.code(),
            problem.span().start(),
            problem.pointer(),
            problem.message()
        )
    };
    problems.iter().map(show).collect()
}

#[test]
fn fields_that_fit_raise_no_problem() {
    let node = root(
        "name: a\ncount: 3\non2: yes\nlist: [x, z]\nmap: {k: v}\ninner: {z: 1}\nnothing: null\nwhat:\n",
    );
    let problems = &mut Vec::new();
    let mut fields = Fields::new(&node, Pointer::root(), problems).unwrap();
    let name = fields.required_string("name", problems).unwrap();
    assert_eq!(
        (name.as_str(), name.pointer().to_string(), name.span().start().column()),
        ("a", "/name".to_owned(), 7)
    );
    assert_eq!(fields.u32("count", problems).unwrap().into_value(), 3);
    assert!(*fields.bool("on2", problems).unwrap().value());
    assert_eq!(fields.string_list("list", problems)[1].pointer().as_str(), "/list/1");
    assert_eq!(fields.string_map("map", problems)[0].1.as_str(), "v");
    let mut inner = fields.mapping("inner", problems).unwrap();
    assert_eq!(inner.u64("z", problems).unwrap().pointer().as_str(), "/inner/z");
    inner.finish(problems);
    assert!(fields.string("nothing", problems).is_none());
    assert!(fields.mapping("absent", problems).is_none());
    fields.finish(problems);
    assert!(problems.is_empty(), "{:?}", shown(problems));
}

#[test]
fn fields_that_do_not_fit_are_reported_with_a_fix() {
    let node = root(
        "name: 8080\nflag: 'yes'\ncount: -1\nbig: 99999999999999999999\nhalf: 1.5\nlist: [a, 1, no]\nmap: {k: null}\ninner: []\nReplicas: 2\nimgae: x\nodd/key: 1\n",
    );
    let problems = &mut Vec::new();
    let mut fields = Fields::new(&node, Pointer::root(), problems).unwrap();
    fields.string("name", problems);
    fields.bool("flag", problems);
    fields.u32("count", problems);
    fields.u64("big", problems);
    fields.u64("half", problems);
    assert_eq!(fields.string_list("list", problems).len(), 1);
    assert!(fields.string_map("map", problems).is_empty());
    fields.mapping("inner", problems);
    fields.required_string("kind", problems);
    fields.ignore(&["replicas", "image"]);
    fields.finish(problems);
    assert_eq!(
        shown(problems),
        [
            "manifest-wrong-type 1:7 /name: `/name` is an integer, `8080`, expected a string (put it in quotes: `\"8080\"`)",
            "manifest-wrong-type 2:7 /flag: `/flag` is a string, expected a boolean",
            "manifest-out-of-range 3:8 /count: `/count` is -1, expected 0 to 4294967295",
            "manifest-out-of-range 4:6 /big: `/big` is 99999999999999999999, expected 0 to 9223372036854775807",
            "manifest-wrong-type 5:7 /half: `/half` is a number, `1.5`, expected an integer",
            "manifest-wrong-type 6:11 /list/1: `/list/1` is an integer, `1`, expected a string (put it in quotes: `\"1\"`)",
            "manifest-wrong-type 6:14 /list/2: `/list/2` is a boolean, `no`, expected a string (put it in quotes: `\"no\"`)",
            "manifest-wrong-type 7:10 /map/k: `/map/k` is null, `null`, expected a string (put it in quotes: `\"null\"`)",
            "manifest-wrong-type 8:8 /inner: `/inner` is a list, expected a mapping",
            "manifest-missing-field 1:1 /kind: missing field `kind` (add `kind`)",
            "manifest-unknown-field 9:1 /Replicas: unknown field `Replicas` (write `replicas` if that is meant)",
            "manifest-unknown-field 10:1 /imgae: unknown field `imgae` (write `image` if that is meant)",
            "manifest-unknown-field 11:1 /odd~1key: unknown field `odd/key`",
        ]
    );
}

#[test]
fn only_mappings_have_fields_and_null_has_none() {
    let problems = &mut Vec::new();
    assert!(Fields::new(&root("null"), Pointer::root(), problems).is_none());
    assert!(problems.is_empty());
    assert!(Fields::new(&root("[]"), Pointer::root(), problems).is_none());
    assert_eq!(shown(problems), ["manifest-wrong-type 1:1 : `/` is a list, expected a mapping"]);
}

#[test]
fn pointers_escape_keys() {
    let mut pointer = Pointer::root();
    pointer.push("a/b~c");
    pointer.push_index(3);
    assert_eq!(pointer.to_string(), "/a~1b~0c/3");
}
