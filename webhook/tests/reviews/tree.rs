//! What the webhook is made of.

use std::process::Command;

#[test]
fn nothing_in_the_webhook_can_run_a_component() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
        .args(["--package", "ambit-webhook", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"ambit-trust") && names.contains(&"wasmparser"), "{names:?}");
    let runs = |name: &&str| name.starts_with("wasmtime") || *name == "ambit-executor";
    let runs: Vec<&str> = names.into_iter().filter(runs).collect();
    assert!(runs.is_empty(), "{runs:?}");
}
