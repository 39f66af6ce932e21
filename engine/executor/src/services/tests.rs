//! Flags, files of values, storage and text: what needs no component.

use std::collections::BTreeMap;

use ambit_engine::admitted::{GrantSource, ValueSource, Variable};
use ambit_engine::workload::{Private, ReferenceKind};

use super::logs::plain;
use super::storage::{MAX_KEY, MAX_KEYS, MAX_VALUE, Problem, Storage};
use super::{ConfigMapFlag, SecretFlag, SecretSource, Values, entries};
use crate::error::ExecutorError;

#[test]
fn a_secret_flag_names_object_key_and_source() {
    let read = |text: &str| {
        let flag = SecretFlag::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (flag.name, flag.key.unwrap_or_default(), flag.source)
    };
    let environment = |name: &str| SecretSource::Environment(name.to_owned());
    assert_eq!(read("db=env:DB"), ("db".into(), String::new(), environment("DB")));
    assert_eq!(read("tls.tls.crt=env:A"), ("tls".into(), "tls.crt".into(), environment("A")));
    assert_eq!(read("my.db/key=env:A"), ("my.db".into(), "key".into(), environment("A")));
    assert_eq!(
        read("db.a=cmd:pass show a=b:c"),
        ("db".into(), "a".into(), SecretSource::Command("pass show a=b:c".into()))
    );
    for text in [
        "",
        "db",
        "db=",
        "db=DB",
        "=env:A",
        ".a=env:A",
        "db.=env:A",
        "db=env:",
        "db=env:A=B",
        "db=http:x",
        "a b=env:A",
    ] {
        assert!(SecretFlag::parse(text).is_err(), "{text}");
    }
    let error = SecretFlag::parse("db.password=hunter2").expect_err("it has no source");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    assert!(ConfigMapFlag::parse("base=./base.yaml").is_ok());
    assert!(ConfigMapFlag::parse("base").is_err());
}

fn read(text: &str) -> Result<Vec<(String, String)>, String> {
    let found = entries(text.as_bytes()).map_err(|error| error.to_string())?;
    let shown = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    Ok(found.into_iter().map(|(key, value)| (key, shown(value))).collect())
}

#[test]
fn an_object_is_read_from_each_of_its_forms() {
    let expected = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x y".to_owned())];
    for text in [
        "a: 1\nb: x y\n",
        r#"{"a": 1, "b": "x y"}"#,
        "# values\nexport a=1\n\nb=\"x y\"\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\ndata: {a: '1', b: x y}\n",
        "apiVersion: v1\nkind: Secret\ndata: {a: MQ==}\nstringData: {b: x y}\n",
    ] {
        assert_eq!(read(text), Ok(expected.clone()), "{text}");
    }
    assert_eq!(read(""), Ok(Vec::new()));
    for text in [
        "- a",
        "a: [1]",
        "a: {b: c}",
        "just text",
        "apiVersion: v1\nkind: Secret\ndata: {a: MQ=}",
        "apiVersion: v1\nkind: Pod\n",
        "a b=c",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn an_error_of_a_file_shows_its_line_and_no_value() {
    let error = entries(b"a=1\nhunter2\n").expect_err("the second line is no pair");
    assert_eq!(error.to_string(), "line 2: expected `KEY=VALUE`");
    assert!(entries(&vec![b'#'; 2 * 1024 * 1024]).is_err());
}

fn variable(name: &str, value: ValueSource) -> Variable {
    let source =
        GrantSource { file: "workload.yaml".to_owned(), line: 7, ..GrantSource::default() };
    Variable { name: name.to_owned(), value, source }
}

fn key(object: &str, key: &str) -> ValueSource {
    ValueSource::Key { kind: ReferenceKind::Secret, object: object.to_owned(), key: key.to_owned() }
}

fn all(object: &str) -> ValueSource {
    ValueSource::All { kind: ReferenceKind::Config, object: object.to_owned() }
}

#[test]
fn a_later_variable_replaces_an_earlier_one() {
    let data =
        BTreeMap::from([("A".to_owned(), "object".to_owned()), ("B".to_owned(), "b".to_owned())]);
    let values = Values::builder().config_map("base", data).build();
    let variables =
        [variable("", all("base")), variable("A", ValueSource::Literal(Private::new("own")))];
    let resolved = values.resolve(&variables).unwrap_or_else(|error| panic!("{error}"));
    let shown: Vec<String> =
        resolved.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(shown, ["A=own", "B=b"]);
}

fn problem(values: &Values, variable: Variable) -> (&'static str, String) {
    match values.resolve(&[variable]) {
        Err(error @ ExecutorError::Setup { .. }) => {
            (error.code(), format!("{error}; {}", error.help().unwrap_or_default()))
        }
        other => panic!("{}", other.is_ok()),
    }
}

#[test]
fn a_missing_key_names_the_flag_that_gives_it() {
    let values = Values::builder().secret("db", "user", &Private::new("hunter2")).build();
    assert_eq!(
        problem(&values, variable("DB_PW", key("db", "password"))),
        (
            "value-missing",
            "`DB_PW` needs key `password` of Secret `db`, which isn't given (workload.yaml:7); give it with `--secret db.password=env:VARIABLE`, `file:PATH` or `cmd:…`".to_owned()
        )
    );
    let (code, text) = problem(&values, variable("", all("base")));
    assert_eq!(code, "value-missing");
    assert!(text.ends_with("give it with `--config-map base=FILE`"), "{text}");
}

#[test]
fn bytes_that_are_no_text_and_keys_that_are_no_names_are_refused() {
    let values = Values::builder().secret_bytes("db", "raw", vec![0xff, 1]).build();
    assert_eq!(problem(&values, variable("RAW", key("db", "raw"))).0, "value-not-text");
    let values = Values::builder().secret_bytes("db", "raw", b"a\0b".to_vec()).build();
    assert_eq!(problem(&values, variable("RAW", key("db", "raw"))).0, "value-not-text");
    let data = BTreeMap::from([("A=B".to_owned(), String::new())]);
    let values = Values::builder().config_map("base", data).build();
    assert_eq!(problem(&values, variable("", all("base"))).0, "value-name");
}

#[test]
fn a_store_is_bounded_in_every_direction() {
    let store = Storage::default();
    let long = "k".repeat(MAX_KEY.saturating_add(1));
    assert_eq!(store.set("b", &long, Vec::new()), Err(Problem::Key));
    let large = vec![0; MAX_VALUE.saturating_add(1)];
    assert_eq!(store.set("b", "k", large), Err(Problem::Value));
    for number in 0..16 {
        // Sixteen values of 4 MiB with their keys are a little over 64 MiB.
        let full = store.set("b", &number.to_string(), vec![0; MAX_VALUE]) == Err(Problem::Full);
        assert_eq!(full, number == 15);
    }
    assert_eq!(store.delete("b", "0"), Ok(()));
    assert_eq!(store.set("b", "15", vec![0; MAX_VALUE]), Ok(()));
    let store = Storage::default();
    for number in 0..MAX_KEYS {
        assert_eq!(store.set("b", &number.to_string(), Vec::new()), Ok(()));
    }
    assert_eq!(store.set("c", "k", Vec::new()), Err(Problem::Full));
    assert_eq!(store.set("b", "0", vec![1]), Ok(()));
}

#[test]
fn keys_come_in_pages_that_together_are_all() {
    let store = Storage::default();
    for number in 0..2_500 {
        assert_eq!(store.set("b", &format!("{number:05}"), Vec::new()), Ok(()));
    }
    let (mut cursor, mut found) = (Some(0), Vec::new());
    while let Some(at) = cursor {
        let (page, next) = store.keys("b", at).expect("a page");
        assert!(page.len() <= 1_000);
        found.extend(page);
        cursor = next;
    }
    assert_eq!(found.len(), 2_500);
    assert!(found.is_sorted());
    assert_eq!(store.keys("b", u64::MAX), Ok((Vec::new(), None)));
    assert_eq!(store.keys("none", 0), Ok((Vec::new(), None)));
}

#[test]
fn a_number_is_raised_only_if_it_is_one() {
    let store = Storage::default();
    assert_eq!(store.set("b", "text", b"x".to_vec()), Ok(()));
    assert_eq!(store.increment("b", "text", 1), Err(Problem::Number));
    assert_eq!(store.increment("b", "n", u64::MAX), Ok(u64::MAX));
    assert_eq!(store.increment("b", "n", 1), Err(Problem::Number));
    assert_eq!(store.get("b", "n"), Ok(Some(u64::MAX.to_string().into_bytes())));
}

#[test]
fn a_folder_with_a_damaged_entry_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = Storage::open(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(store.set("b", "k", b"value".to_vec()), Ok(()));
    drop(store);
    let entry = std::fs::read_dir(&path).expect("the folder").filter_map(Result::ok);
    let mut entry = entry.filter(|e| e.path().extension().is_some_and(|e| e == "entry"));
    let entry = entry.next().expect("one entry").path();
    // A whole entry under another key's name would be read as that key's.
    std::fs::rename(&entry, entry.with_file_name("sha256-00.entry")).expect("it is renamed");
    match Storage::open(&path) {
        Err(error) => assert_eq!(error.code(), "state-unusable"),
        Ok(_) => panic!("it was opened"),
    }
}

#[test]
fn a_change_that_can_not_be_written_is_no_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = Storage::open(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(store.set("b", "k", b"old".to_vec()), Ok(()));
    std::fs::remove_dir_all(&path).expect("it is removed");
    assert_eq!(store.set("b", "k", b"new".to_vec()), Err(Problem::Host));
    assert_eq!(store.get("b", "k"), Ok(Some(b"old".to_vec())));
}

#[test]
fn text_of_a_guest_is_cut_and_escaped() {
    assert_eq!(plain("a\r\n\u{202e}b", 100), r"a\r\n\u{202e}b");
    assert_eq!(plain("ééé", 3), "é…");
    assert_eq!(plain("ok", 2), "ok");
    assert_eq!(super::effect::quoted(&"x".repeat(300)).chars().count(), 131);
}
