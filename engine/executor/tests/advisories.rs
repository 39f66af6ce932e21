//! The table of advisories has to be looked at whenever wasmtime moves.
#![expect(clippy::expect_used, reason = "helpers of tests read files and may fail loudly")]

use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(path).expect("a file of the repository")
}

fn version(text: &str) -> Vec<u64> {
    text.split('.').map(|part| part.parse().expect("a number")).collect()
}

/// The version of each of wasmtime's own crates in the lock file.
fn locked() -> Vec<(String, String)> {
    let lock = read("Cargo.lock");
    let packages = lock.split("[[package]]").map(|package| {
        let field = |key: &str| {
            let line = package.lines().find(|line| line.starts_with(key)).unwrap_or_default();
            line.split('"').nth(1).unwrap_or_default().to_owned()
        };
        (field("name = "), field("version = "))
    });
    packages.filter(|(name, _)| name == "wasmtime" || name.starts_with("wasmtime-wasi")).collect()
}

#[test]
fn the_table_is_about_the_version_in_the_lock_file() {
    let page = read("docs/security.md");
    let locked = locked();
    assert!(locked.len() >= 4, "{locked:?}");
    for (name, version) in locked {
        let marker = format!("<!-- wasmtime {version} -->");
        assert!(
            page.contains(&marker),
            "`{name}` is {version} in Cargo.lock: go through its advisories, correct the table in \
             docs/security.md, and then its marker"
        );
    }
}

#[test]
fn no_older_wasmtime_than_the_minimum_is_built_with() {
    for (name, found) in locked() {
        let minimum = ambit_executor::MINIMUM_WASMTIME;
        assert!(
            version(&found) >= version(minimum),
            "`{name}` is {found}, {minimum} is the oldest"
        );
    }
}
