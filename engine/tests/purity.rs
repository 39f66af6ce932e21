//! The engine has no input and output of its own, and nothing that has comes along with it.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test looks at files and asks cargo"
)]

use std::path::Path;
use std::process::Command;

fn sources(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "tests") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|e| e == "rs")
            && path.file_name().is_none_or(|name| name != "tests.rs")
        {
            let text = std::fs::read_to_string(&path).expect("a source");
            found.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn engine_has_no_input_and_output() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 40);
    let forbidden = [
        "std::fs",
        "std::env",
        "std::io",
        "std::process",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "SystemTime",
        "Instant::now",
        "println!",
        "eprintln!",
        "tokio",
        "reqwest",
        "rand::",
    ];
    for (path, text) in &found {
        for word in forbidden {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let hit = code.into_iter().find(|line| line.contains(word));
            assert_eq!(hit, None, "{path} uses {word}");
        }
    }
    let threads: Vec<&str> = found
        .iter()
        .filter(|(_, text)| text.contains("std::thread"))
        .map(|(path, _)| path.as_str())
        .collect();
    assert!(
        matches!(threads.as_slice(), [one] if one.ends_with("policy/evaluate.rs")),
        "{threads:?}"
    );
}

#[test]
fn engine_brings_no_runtime_client_or_jit() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", "ambit-engine", "-e", "normal", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(tree.contains("wasmparser"));
    for name in [
        "tokio",
        "async-std",
        "hyper",
        "reqwest",
        "ureq",
        "wasmtime",
        "cranelift",
        "rustls",
        "openssl",
    ] {
        let hit = tree.lines().find(|line| line.starts_with(name));
        assert_eq!(hit, None, "{name} is in the tree");
    }
}

#[test]
fn lock_file_holds_one_wasmparser() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    let lock = std::fs::read_to_string(lock).expect("the lock file");
    assert_eq!(lock.matches("name = \"wasmparser\"").count(), 1);
}
