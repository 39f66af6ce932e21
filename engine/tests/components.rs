//! Binaries in, capabilities out: the samples, the tricky ones, and those that must be refused.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "helpers of tests read files and may fail loudly"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ambit_engine::capability::CapabilitySet;
use ambit_engine::catalogue::Catalogue;
use ambit_engine::component::{CodeCheck, Component, ComponentError, HintScan, ReadOptions};
use ambit_engine::limits::Limits;

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(path)
}

fn read(bytes: &[u8]) -> Result<Component, ComponentError> {
    let options = ReadOptions { code: CodeCheck::Validate, hints: HintScan::Collect };
    Component::read_with(bytes, &Limits::default(), options)
}

fn set(component: &Component) -> CapabilitySet {
    CapabilitySet::of(component, &Catalogue::builtin().expect("the built-in catalogue"))
}

fn sample(name: &str) -> (Component, CapabilitySet) {
    let bytes = std::fs::read(testdata("components").join(name)).expect("a sample");
    let component = read(&bytes).expect("a valid sample");
    let set = set(&component);
    (component, set)
}

fn assemble(text: &str) -> Vec<u8> {
    // The assembler of this parser line spells one keyword in an older way.
    let text = text.replace("(version-suffix ", "(versionsuffix ");
    wat::parse_str(text).expect("text that assembles")
}

/// One line for each import and export, then classes, notes and what the executor would refuse.
fn describe(component: &Component, set: &CapabilitySet) -> String {
    let mut text = format!("{}\n", component.kind.as_str());
    for (import, capability) in component.imports.iter().zip(&set.imports) {
        let _ = write!(
            text,
            "import {} {} known={} linked={}/{} declared={:?} linked={:?}",
            capability.name,
            import.sort.as_str(),
            capability.known,
            import.functions.iter().filter(|f| f.linked).count(),
            import.functions.len(),
            capability.declared,
            capability.linked,
        );
        if let Some(near) = &capability.near_miss {
            let _ = write!(text, " near={near}");
        }
        if capability.delegated {
            text.push_str(" delegated");
        }
        for at in &import.used_by {
            let _ = write!(text, " used-by={}", at.path);
        }
        if !import.asks_for.is_empty() {
            let _ = write!(text, " asks-for={:?}", import.asks_for);
        }
        text.push('\n');
    }
    for export in &component.exports {
        let through = export.passes_through.as_deref().unwrap_or("-");
        let _ = writeln!(text, "export {} {} through={through}", export.name, export.sort.as_str());
    }
    let _ = writeln!(text, "declared {:?}", set.declared);
    let _ = writeln!(text, "linked {:?}", set.linked);
    let _ = writeln!(text, "counted {:?}", set.counted);
    for reason in &component.linkage.reasons {
        let _ = writeln!(text, "reason {reason}");
    }
    for note in &component.executor_notes {
        let _ = writeln!(text, "executor {}", note.code);
    }
    text
}

#[test]
fn samples_have_the_interfaces_and_functions_that_they_were_built_with() {
    // Interfaces declared and host functions linked, by hand and with the toolchains' own tools.
    let expected = [
        ("hello.wasm", 14, 18),
        ("env-reader.wasm", 15, 19),
        ("file-reader.wasm", 14, 22),
        ("file-writer.wasm", 14, 19),
        ("linked-not-called.wasm", 18, 54),
        ("fnptr.wasm", 15, 23),
        ("rust-std-hello.wasm", 10, 15),
        ("rust-std-file-reader.wasm", 15, 23),
        ("http-client.wasm", 3, 9),
        ("http-handler.wasm", 3, 7),
        ("socket-client.wasm", 5, 4),
        ("dns-only.wasm", 3, 2),
        ("pair-mem.wasm", 0, 0),
        ("pair-file.wasm", 14, 19),
        ("dummy-everything.wasm", 29, 175),
        ("hello-js-quickjs.wasm", 18, 26),
        ("hello-js-quickjs-stubbed.wasm", 0, 0),
        ("rust-nostd-app.wasm", 1, 1),
        ("pair-part-app.wasm", 1, 1),
    ];
    for (name, interfaces, linked) in expected {
        let (component, _) = sample(name);
        assert_eq!(component.imports.len(), interfaces, "interfaces of {name}");
        assert_eq!(component.linked_count(), linked, "linked functions of {name}");
        assert!(component.linkage.reasons.is_empty(), "{name} is linked exactly");
        // The QuickJS runtime uses built-ins of the async proposal, which the executor keeps off.
        let refused = name == "hello-js-quickjs.wasm";
        assert_eq!(!component.executor_notes.is_empty(), refused, "{name}");
    }
}

#[test]
fn every_sample_is_described() {
    let mut names: Vec<String> = std::fs::read_dir(testdata("components"))
        .expect("the folder of samples")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".wasm"))
        .collect();
    names.sort();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        let (component, set) = sample(&name);
        insta::assert_snapshot!(format!("sample_{name}"), describe(&component, &set));
    }
}

#[test]
fn every_tricky_component_gets_its_answer() {
    let mut names: Vec<PathBuf> = std::fs::read_dir(testdata("components/tricky"))
        .expect("the folder of tricky components")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wat"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 19);
    for path in names {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let text = std::fs::read_to_string(&path).expect("a text");
        let answer = match read(&assemble(&text)) {
            Ok(component) => describe(&component, &set(&component)),
            Err(error) => format!("{}: {error}\n", error.code()),
        };
        insta::assert_snapshot!(format!("tricky_{name}"), answer);
    }
}

#[test]
fn names_that_nearly_are_known_ones_are_unknown_and_named() {
    for (name, near) in [
        ("wasi:file-system/types@0.2.12", Some("wasi:filesystem/types")),
        ("wasi:filesystem/TYPES@0.2.12", Some("wasi:filesystem/types")),
        ("wasi:filesytem/types@0.2.12", Some("wasi:filesystem/types")),
        ("wasi:http/outgoing-handler@9.0.0", Some("wasi:http/outgoing-handler@0.2")),
        ("acme:weather/forecast@1.0.0", None),
    ] {
        let text = format!("(component (import \"{name}\" (instance (export \"f\" (func)))))");
        let set = set(&read(&assemble(&text)).expect("valid"));
        let import = &set.imports[0];
        assert!(!import.known, "{name}");
        assert_eq!(import.near_miss.as_deref(), near, "{name}");
        let unversioned = name.split('@').next().expect("a name");
        assert!(import.declared.contains(&format!("unknown:{unversioned}")), "{name}");
    }
    for invalid in ["wasi:filesystem/Types@0.2.12", "Wasi:filesystem/types@0.2.12"] {
        let text = format!("(component (import \"{invalid}\" (instance)))");
        assert_eq!(read(&assemble(&text)).unwrap_err().code(), "component-invalid", "{invalid}");
    }
}

#[test]
fn rule_for_one_version_holds_for_its_track() {
    for version in ["0.2.0", "0.2.6", "0.2.99"] {
        let text = format!(
            "(component (import \"wasi:http/outgoing-handler@{version}\" (instance (export \"handle\" (func)))))"
        );
        let set = set(&read(&assemble(&text)).expect("valid"));
        assert_eq!(set.declared, ["http.out".to_owned()].into(), "{version}");
    }
}

#[test]
fn hello_cannot_open_a_file_and_says_so() {
    let (component, set) = sample("hello.wasm");
    let document = ambit_engine::report::inspect("hello.wasm", &component, &set);
    let note = document.notes.iter().find(|note| note.code == "filesystem-inert");
    let message = &note.expect("the note").message;
    assert!(message.contains("can't open a file"), "{message}");
    assert!(message.contains("`descriptor.open-at` is not imported"), "{message}");
    assert!(set.counted.iter().all(|class| !class.starts_with("fs.")), "{:?}", set.counted);

    let (component, set) = sample("file-reader.wasm");
    let document = ambit_engine::report::inspect("file-reader.wasm", &component, &set);
    assert!(document.notes.iter().all(|note| note.code != "filesystem-inert"));
    assert!(set.counted.contains("fs.read"));
}

#[test]
fn inner_component_is_named_as_the_user_of_every_import() {
    let (component, _) = sample("pair-file.wasm");
    let users: std::collections::BTreeSet<&str> = component
        .imports
        .iter()
        .flat_map(|import| import.used_by.iter().map(|at| at.path.as_str()))
        .collect();
    assert_eq!(users, ["/component[1]"].into());
}

#[test]
fn linked_is_within_declared() {
    for entry in std::fs::read_dir(testdata("components")).expect("the samples").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "wasm") {
            let bytes = std::fs::read(entry.path()).expect("a sample");
            let set = set(&read(&bytes).expect("a valid sample"));
            assert!(set.linked.is_subset(&set.declared), "{:?}", entry.file_name());
        }
    }
}

#[test]
fn string_hints_show_the_host_that_a_component_calls() {
    let (component, _) = sample("http-client.wasm");
    let hosts: Vec<&str> = component.hints.hosts.iter().map(|h| h.text.as_str()).collect();
    assert_eq!(hosts, ["api.example.com"]);
}

#[test]
fn every_cut_of_a_component_is_refused_or_smaller() {
    // Cut inside, a binary is invalid. Cut between two trailing sections it may be valid, and then
    // it is another binary with another digest; what it can't be is a panic.
    let bytes = std::fs::read(testdata("components/dns-only.wasm")).expect("a sample");
    let mut refused = 0;
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Err(error) => {
                refused += 1;
                assert!(
                    matches!(error.code(), "component-empty" | "component-invalid"),
                    "{length}: {error}"
                );
            }
            Ok(component) => assert_ne!(component.digest, ambit_engine::digest::Digest::of(&bytes)),
        }
    }
    assert!(refused * 10 > bytes.len() * 9, "{refused} of {}", bytes.len());
}

fn nested(depth: usize) -> Vec<u8> {
    // Each layer is a header and one component section that holds the next layer.
    let mut bytes: Vec<u8> = b"\0asm\x0d\0\x01\0".to_vec();
    for _ in 0..depth {
        let mut outer: Vec<u8> = b"\0asm\x0d\0\x01\0".to_vec();
        outer.push(4);
        let mut length = bytes.len();
        loop {
            let low = (length & 0x7f) as u8;
            length >>= 7;
            outer.push(if length == 0 { low } else { low | 0x80 });
            if length == 0 {
                break;
            }
        }
        outer.extend_from_slice(&bytes);
        bytes = outer;
    }
    bytes
}

#[test]
fn nesting_is_bounded() {
    assert_eq!(read(&nested(900)).expect("valid").linkage.components, 900);
    assert_eq!(read(&nested(5_000)).unwrap_err().code(), "component-too-deep");
    let mut shallow = Limits::default();
    shallow.max_nesting = 10;
    assert!(Component::read(&nested(8), &shallow).is_ok());
    assert_eq!(Component::read(&nested(12), &shallow).unwrap_err().code(), "component-too-deep");
}

#[test]
fn nested_parts_are_bounded_over_all_levels() {
    // 70 components of 60 empty modules each: no level holds many, and validating them all would
    // take time in the square of their number.
    let module: Vec<u8> = [&[1, 8][..], b"\0asm\x01\0\0\0"].concat();
    let modules = module.repeat(60);
    let inner: Vec<u8> = [b"\0asm\x0d\0\x01\0".to_vec(), modules].concat();
    let length = [(inner.len() & 0x7f) as u8 | 0x80, (inner.len() >> 7) as u8];
    let part: Vec<u8> = [&[4][..], &length, &inner].concat();
    let whole = |count: usize| [b"\0asm\x0d\0\x01\0".to_vec(), part.repeat(count)].concat();
    assert_eq!(read(&whole(60)).expect("valid").linkage.modules, 3_600);
    assert_eq!(read(&whole(70)).unwrap_err().code(), "component-too-many-nested");
}

#[test]
fn imports_are_bounded() {
    let many = |count: usize| {
        let imports: String = (0..count).map(|n| format!("(import \"f{n}\" (func))")).collect();
        assemble(&format!("(component {imports})"))
    };
    assert_eq!(read(&many(900)).expect("valid").imports.len(), 900);
    let error = read(&many(4_097)).unwrap_err();
    assert_eq!(error, ComponentError::TooManyImports { found: 4_097, limit: 4_096 });
}

#[test]
fn junk_around_a_component_is_refused() {
    let bytes = std::fs::read(testdata("components/dns-only.wasm")).expect("a sample");
    let twice = [bytes.clone(), bytes.clone()].concat();
    let before = [b"junk".to_vec(), bytes.clone()].concat();
    let after = [bytes.clone(), vec![0xff, 0xff, 0xff]].concat();
    for (what, mutant) in [("twice", twice), ("before", before), ("after", after)] {
        assert!(read(&mutant).is_err(), "{what} was accepted");
    }
    // A custom section behind the end is valid and changes the digest only.
    let custom = [bytes.clone(), vec![0, 5, 4, b'n', b'o', b't', b'e']].concat();
    let (plain, with) = (read(&bytes).expect("valid"), read(&custom).expect("valid"));
    assert_ne!(plain.digest, with.digest);
    assert_eq!(plain.imports, with.imports);
}

#[test]
fn interface_that_is_imported_and_exported_is_listed_both_ways() {
    let component = read(&assemble(
        r#"(component
            (import "wasi:random/random@0.2.12" (instance (export "get-random-u64" (func (result u64)))))
            (component $c (core module $m (func (export "f") (result i64) i64.const 4))
              (core instance $i (instantiate $m))
              (func $f (result u64) (canon lift (core func $i "f")))
              (instance $x (export "get-random-u64" (func $f)))
              (export "x" (instance $x)))
            (instance $v (instantiate $c))
            (export "wasi:random/random@0.2.12" (instance $v "x")))"#,
    ))
    .expect("valid");
    assert_eq!(component.imports.len(), 1);
    assert_eq!(component.exports.len(), 1);
    assert_eq!(component.exports[0].passes_through, None);
}

#[test]
fn other_files_are_refused_by_name() {
    for (bytes, code) in [
        (&b""[..], "component-empty"),
        (b"(component)", "component-text"),
        (b"  (module)", "component-text"),
        (b"\x89PNG\r\n", "component-not-wasm"),
        (b"\0as", "component-invalid"),
        (b"\0asm\x01\0", "component-invalid"),
        (b"\0asm\x01\0\x07\0", "component-unknown-layer"),
        (b"\0asm\x63\0\x01\0", "component-invalid"),
    ] {
        let error = read(bytes).unwrap_err();
        assert_eq!(error.code(), code, "{bytes:?}: {error}");
        assert!(error.help().is_some());
    }
    let small = Limits::default().with_max_component_bytes(10);
    let bytes = std::fs::read(testdata("components/dns-only.wasm")).expect("a sample");
    assert_eq!(Component::read(&bytes, &small).unwrap_err().code(), "component-too-large");
}

#[test]
fn bodies_are_checked_only_when_asked_for() {
    // The function promises an i32 and leaves nothing.
    let mut bytes = assemble("(module (func (export \"f\") (result i32) i32.const 7))");
    let at = bytes.windows(2).rposition(|w| w == [0x41, 0x07]).expect("the constant");
    bytes[at] = 0x01;
    bytes[at + 1] = 0x01;
    assert!(Component::read(&bytes, &Limits::default()).is_ok());
    assert_eq!(read(&bytes).unwrap_err().code(), "component-invalid");
}

#[test]
fn linker_gives_up_towards_more() {
    let bytes = std::fs::read(testdata("components/hello.wasm")).expect("a sample");
    let mut limits = Limits::default();
    limits.max_link_steps = 3;
    let component = Component::read(&bytes, &limits).expect("valid");
    assert_eq!(component.linked_count(), component.function_count());
    assert!(!component.linkage.reasons.is_empty());
}

#[test]
fn linker_that_gives_up_among_exports_gives_up_towards_more() {
    let items: String = (0..90).map(|i| format!("(export \"x{i}\" (func $f))")).collect();
    let bytes = assemble(&format!(
        r#"(component
            (import "a:b/c" (instance $c (export "g" (func))))
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (instance $big {items})
            (export "a:b/d" (instance $big))
            (export "a:b/e" (instance $big))
            (alias export $c "g" (func $g))
            (export "last" (func $g)))"#
    ));
    let mut limits = Limits::default();
    limits.max_link_steps = 150;
    let component = Component::read(&bytes, &limits).expect("valid");
    assert_eq!(component.linked_count(), 1);
    assert!(!component.linkage.reasons.is_empty());
}

#[test]
fn names_are_bounded() {
    let outer = |length: usize| {
        let name = "n".repeat(length);
        [
            format!("(component (import \"{name}\" (func)))"),
            format!("(component (import \"f\" (func $f)) (export \"{name}\" (func $f)))"),
            format!("(component (import \"i\" (instance (export \"{name}\" (func)))))"),
            format!("(component (import \"c\" (component (import \"{name}\" (func)))))"),
        ]
    };
    for text in outer(1_024) {
        assert!(read(&assemble(&text)).is_ok(), "{text}");
    }
    for text in outer(1_025) {
        let error = read(&assemble(&text)).unwrap_err();
        assert_eq!(error.code(), "component-name-too-long", "{text}");
    }
    // Names of instances within one another count together.
    let half = "n".repeat(600);
    let nested = format!(
        "(component (import \"i\" (instance (export \"{half}\" (instance (export \"{half}\" (func)))))))"
    );
    assert_eq!(read(&assemble(&nested)).unwrap_err().code(), "component-name-too-long");
}
