use super::*;

fn builtin() -> Catalogue {
    Catalogue::builtin().unwrap()
}

fn lookup(name: &str) -> String {
    let catalogue = builtin();
    match catalogue.interface(&InterfaceName::parse(name).unwrap()) {
        Match::Known(entry) => {
            format!("{}@{}", entry.interface, entry.track.as_deref().unwrap_or("*"))
        }
        Match::OtherTrack(entry) => format!("other {}", entry.track.as_deref().unwrap_or("*")),
        Match::Unknown => "unknown".to_owned(),
    }
}

#[test]
fn interfaces_are_found_by_track() {
    assert_eq!(lookup("wasi:http/types@0.2.0"), "wasi:http/types@0.2");
    assert_eq!(lookup("wasi:http/types@0.2.99"), "wasi:http/types@0.2");
    assert_eq!(lookup("wasi:http/client@0.3.0-rc-2026-01-06"), "wasi:http/client@0.3");
    assert_eq!(lookup("wasi:http/outgoing-handler@1.0.0"), "other 0.2");
    assert_eq!(lookup("acme:store/kv@1.0.0"), "unknown");
}

#[test]
fn every_class_has_a_meaning_and_every_function_a_known_one() {
    let catalogue = builtin();
    assert!(catalogue.classes().count() > 50);
    assert!(catalogue.interfaces().count() > 100);
    for entry in catalogue.interfaces() {
        for function in entry.functions.values() {
            for class in &function.classes {
                assert!(catalogue.class(class).is_some(), "{}: {class}", entry.interface);
            }
        }
    }
    assert_eq!(catalogue.class("unknown:acme:store/kv").unwrap().id, "unknown");
}

#[test]
fn handles_that_are_needed_can_be_made() {
    let catalogue = builtin();
    let made: BTreeSet<&String> = catalogue
        .interfaces()
        .flat_map(|entry| entry.functions.values().flat_map(|f| &f.mints))
        .collect();
    for entry in catalogue.interfaces() {
        for function in entry.functions.values() {
            for kind in &function.needs {
                assert!(made.contains(kind), "{}.{}: {kind}", entry.interface, function.name);
            }
        }
    }
}

#[test]
fn user_file_adds_and_never_changes() {
    let add = |text: &str| builtin().with_file("more.yaml", text.as_bytes());
    let good = "interfaces:\n- interface: acme:store/kv\n  source: ours\n  confidence: read\n  functions:\n  - {name: get, classes: [kv.read]}\n";
    let catalogue = add(good).unwrap();
    let name = InterfaceName::parse("acme:store/kv@1.0.0").unwrap();
    assert!(matches!(catalogue.interface(&name), Match::Known(_)));
    for (text, words) in [
        (
            "interfaces:\n- interface: wasi:http/outgoing-handler\n  track: '0.2'\n  source: s\n  confidence: read\n",
            "already",
        ),
        (
            "interfaces:\n- interface: acme:x/y\n  source: s\n  confidence: read\n  functions: [{name: f, classes: [no.such]}]\n",
            "`no.such`",
        ),
        ("interfaces:\n- interface: acme:x/y\n  source: s\n  confidence: surely\n", "`surely`"),
        (
            "interfaces:\n- interface: acme:x\n  source: s\n  confidence: read\n",
            "no interface name",
        ),
        (
            "classes:\n- {id: http.out, title: t, risk: none, verb: none, grant: none, source: s}\n",
            "already",
        ),
        (
            "interfaces:\n- interface: acme:x/y\n  source: s\n  confidence: read\n  harmless: true\n",
            "harmless",
        ),
    ] {
        let error = add(text).expect_err(text);
        assert_eq!(error.code(), "catalogue-entry");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}
