//! The command as a person runs it: exit code, standard output and standard error together.
#![expect(clippy::expect_used, reason = "helpers of tests may fail loudly")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NOW: &str = "2026-12-01T00:00:00Z";

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").canonicalize().expect("testdata")
}

fn ambit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ambit"));
    command.env_clear().env("COLUMNS", "100").current_dir(testdata());
    command
}

struct Run {
    exit: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the command runs");
        Self {
            exit: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// All three together, for a snapshot.
    fn shown(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.exit, self.stdout, self.stderr)
    }
}

fn run(arguments: &[&str]) -> Run {
    Run::of(ambit().args(arguments))
}

fn check(arguments: &[&str]) -> Run {
    Run::of(ambit().arg("check").args(["--offline", "--now", NOW]).args(arguments))
}

fn validate(schema: &serde_json::Value, text: &str) -> serde_json::Value {
    let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    document
}

fn schema(name: &str) -> serde_json::Value {
    let path = testdata().join("../docs/reference/schemas").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).expect("a schema")).expect("JSON")
}

#[test]
fn help_of_every_command() {
    for command in [
        &["--help"][..],
        &["inspect", "--help"],
        &["reach", "--help"],
        &["check", "--help"],
        &["run", "--help"],
        &["record", "--help"],
        &["record", "list", "--help"],
        &["record", "show", "--help"],
        &["record", "tail", "--help"],
        &["record", "verify", "--help"],
        &["verify", "--help"],
        &["pin", "--help"],
        &["pull", "--help"],
        &["push", "--help"],
        &["sign", "--help"],
        &["attest", "--help"],
        &["keygen", "--help"],
        &["explain", "--help"],
        &["policy", "--help"],
        &["policy", "list", "--help"],
        &["policy", "schema", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
    ] {
        let name = command.join("_").replace("--", "");
        let run = run(command);
        assert_eq!(run.exit, 0);
        insta::assert_snapshot!(format!("help_{name}"), run.stdout);
    }
}

#[test]
fn reach_and_decision_of_a_workload() {
    let document = testdata().join("workloads/cases/11-link-closure/workload.yaml");
    let dir = tempfile::tempdir().expect("a folder");
    for (wat, wasm) in [("mail-app", "app"), ("secrets-plugin", "store")] {
        let text = std::fs::read(testdata().join(format!("components/wat/{wat}.wat"))).unwrap();
        std::fs::write(dir.path().join(format!("{wasm}.wasm")), wat::parse_bytes(&text).unwrap())
            .unwrap();
    }
    std::fs::copy(document, dir.path().join("workload.yaml")).unwrap();
    let arguments =
        ["workload.yaml", "--component", "app=app.wasm", "--component", "store=store.wasm"];
    let reach = Run::of(ambit().current_dir(dir.path()).arg("reach").args(arguments));
    insta::assert_snapshot!("reach_link_closure", reach.shown());
    let arguments = [&["check", "--now", NOW], &arguments[..]].concat();
    let decision = Run::of(ambit().current_dir(dir.path()).args(arguments));
    assert_eq!(decision.exit, 1);
    insta::assert_snapshot!("check_link_closure", decision.shown());
}

#[test]
fn wild_documents_with_samples_for_their_bytes() {
    let mut names: Vec<String> = std::fs::read_dir(testdata().join("workloads/wild"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    names.sort();
    let samples = [
        ("cosmonic-after-effects-mcp", "after-effects-mcp", "http-handler"),
        ("cosmonic-fred-mcp", "fred-mcp", "http-client"),
        ("cosmonic-sec-edgar-mcp", "sec-edgar-mcp", "http-client"),
        ("wasmcloud-blobby", "test", "http-handler"),
        ("wasmcloud-http-hello-world", "hello-world", "http-handler"),
        ("wasmcloud-messaging", "messaging-echo", "socket-client"),
        ("wasmcloud-oci-registry-secrets", "oci-registry", "env-reader"),
        ("wasmcloud-service-deployment", "hello-world", "http-handler"),
    ];
    assert_eq!(names.len(), samples.len());
    let mut text = String::new();
    for (file, component, sample) in samples {
        let pair = format!("{component}=components/{sample}.wasm");
        let file = format!("workloads/wild/{file}.yaml");
        let run = run(&["reach", "--offline", &file, "--component", &pair]);
        let _ = writeln!(text, "== {file} {pair}\n{}", run.shown());
    }
    insta::assert_snapshot!("reach_wild_with_samples", text);
}

#[test]
fn reach_is_turned_round_for_an_auditor() {
    let files =
        ["workloads/wild/cosmonic-fred-mcp.yaml", "workloads/wild/cosmonic-sec-edgar-mcp.yaml"];
    for by in ["host", "folder", "secret"] {
        let run = run(&["reach", "--offline", files[0], files[1], "--by", by]);
        assert_eq!(run.exit, 0);
        insta::assert_snapshot!(format!("reach_by_{by}"), run.shown());
    }
}

#[test]
fn ceiling_of_three_lines_gates_a_component() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["http-client.wasm", "socket-client.wasm"] {
        std::fs::copy(testdata().join("components").join(name), dir.path().join(name)).unwrap();
    }
    let config = "ceilings:\n- capabilities: [http.out]\n  hosts: [\"https://api.example.com\"]\n";
    std::fs::write(dir.path().join("ambit.yaml"), config).unwrap();
    let check =
        |file: &str| Run::of(ambit().current_dir(dir.path()).args(["check", "--now", NOW, file]));
    let allowed = check("http-client.wasm");
    assert_eq!(allowed.exit, 0, "{}", allowed.shown());
    let denied = check("socket-client.wasm");
    assert_eq!(denied.exit, 1);
    for words in ["wasi:sockets/tcp@0.2.12", "net.tcp.connect", "`ambit.yaml:2`", "allows http.out"]
    {
        assert!(denied.stdout.contains(words), "{words} in {}", denied.stdout);
    }
    insta::assert_snapshot!("check_ceiling", format!("{}\n{}", allowed.shown(), denied.shown()));
    // A file found in the tree can be left out.
    std::fs::write(dir.path().join("other.yaml"), "profile: baseline\n").unwrap();
    let other = ["check", "--now", NOW, "--config", "other.yaml", "socket-client.wasm"];
    assert_eq!(Run::of(ambit().current_dir(dir.path()).args(other)).exit, 0);
}

#[test]
fn exit_codes_are_fixed() {
    let http = "components/http-client.wasm";
    let denied = "workloads/cases/10-ambiguous-volume/workload.yaml";
    assert_eq!(check(&[http]).exit, 0);
    assert_eq!(check(&[http, "--fail-on-warn"]).exit, 3);
    assert_eq!(check(&["workloads/wild/wasmcloud-blobby.yaml"]).exit, 2);
    let fs = "fs=components/file-writer.wasm";
    assert_eq!(check(&[denied, "--component", fs]).exit, 1);
    assert_eq!(check(&[denied, "--component", fs, "--fail-on-warn"]).exit, 1);
    assert_eq!(check(&[denied, "--component", fs, "nothing.yaml"]).exit, 2);
    assert_eq!(run(&["reach", "--offline", "workloads/wild/wasmcloud-blobby.yaml"]).exit, 0);
    assert_eq!(run(&["no-such-command"]).exit, 2);
    assert_eq!(run(&["check"]).exit, 2);
    assert_eq!(run(&["--version"]).exit, 0);
    assert_eq!(check(&["--profile", "strict", http]).exit, 2);
}

#[test]
fn json_fits_the_published_schemas() {
    let file = "workloads/wild/cosmonic-fred-mcp.yaml";
    let component = ["--component", "fred-mcp=components/http-client.wasm"];
    let reach = run(&[&["reach", "--offline", "--format", "json", file], &component[..]].concat());
    let reach = validate(&schema("reach-v1.schema.json"), &reach.stdout);
    assert_eq!(reach["schema"], "ambit.reach/v1");
    assert_eq!(reach["workloads"][0]["components"][0]["reach"][0]["grant"]["line"], 59);
    for arguments in [
        &["--format", "json", file, component[0], component[1]][..],
        &["--format", "json", file],
        &["--format", "json", "nothing.yaml", file],
        &["--format", "json", "components/socket-client.wasm", "--profile", "strict"],
    ] {
        validate(&schema("decision-v1.schema.json"), &check(arguments).stdout);
    }
    for entry in std::fs::read_dir(testdata().join("components")).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let run = run(&["inspect", "--format", "json", path.to_str().unwrap()]);
            let document = validate(&schema("inspect-v1.schema.json"), &run.stdout);
            assert!(document["capabilities"].get("reachable").is_none());
            assert_eq!(document["analysis"]["precision"], "not-computed");
        }
    }
    let published = run(&["policy", "schema"]).stdout;
    let input: serde_json::Value = serde_json::from_str(&published).unwrap();
    assert_eq!(input, schema("input-v1.schema.json"));
}

#[test]
fn sarif_fits_its_standard() {
    let text = std::fs::read_to_string(testdata().join("schemas/sarif-2.1.0.json")).unwrap();
    // The standard's own schema has a pattern that is no regular expression.
    let text =
        text.replace("^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$", "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$");
    let standard: serde_json::Value = serde_json::from_str(&text).unwrap();
    for arguments in [
        &["--format", "sarif", "workloads/wild/cosmonic-fred-mcp.yaml"][..],
        &["--format", "sarif", "components/http-client.wasm", "nothing.wasm"],
        &[
            "--format",
            "sarif",
            "workloads/cases/10-ambiguous-volume/workload.yaml",
            "--component",
            "fs=components/file-writer.wasm",
        ],
    ] {
        let log = validate(&standard, &check(arguments).stdout);
        assert_eq!(log["version"], "2.1.0");
    }
}

#[test]
fn two_runs_are_equal_to_the_byte() {
    let arguments = ["--format", "json", "workloads/wild/cosmonic-fred-mcp.yaml"];
    assert_eq!(check(&arguments).stdout, check(&arguments).stdout);
}

#[test]
fn other_formats() {
    let arguments = [
        "workloads/cases/10-ambiguous-volume/workload.yaml",
        "--component",
        "fs=components/file-writer.wasm",
        "--format",
    ];
    for format in ["junit", "github", "markdown"] {
        let run = check(&[&arguments[..], &[format]].concat());
        assert_eq!(run.exit, 1);
        insta::assert_snapshot!(format!("format_{format}"), run.stdout);
    }
    let refused = run(&["inspect", "components/hello.wasm", "--format", "junit"]);
    assert_eq!(refused.exit, 2);
    assert!(refused.stderr.contains("error[usage-format]"));
}

#[test]
fn bad_input_gets_a_coded_error_that_names_file_and_place() {
    let dir = tempfile::tempdir().unwrap();
    let bomb = {
        let mut text = String::from("a: &a [x, x, x, x, x, x, x, x, x, x]\n");
        for (this, last) in
            ["b", "c", "d", "e", "f", "g", "h"].iter().zip(["a", "b", "c", "d", "e", "f", "g"])
        {
            let items = vec![format!("*{last}"); 10].join(", ");
            let _ = writeln!(text, "{this}: &{this} [{items}]");
        }
        text
    };
    let workload =
        std::fs::read_to_string(testdata().join("workloads/cases/04-default-port/workload.yaml"))
            .unwrap();
    let documents = vec![workload.as_str(); 65].join("---\n");
    let files: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("bomb.yaml", bomb.into_bytes(), "manifest-too-many-nodes", "bomb.yaml:"),
        ("twice.yaml", b"kind: a\nkind: b\n".to_vec(), "manifest-duplicate-key", "twice.yaml:2:1"),
        ("tab.yaml", b"spec:\n\tcomponents: []\n".to_vec(), "manifest-syntax", "tab.yaml:2:1"),
        ("nul.yaml", b"kind: \0\n".to_vec(), "manifest-control-character", "nul.yaml:1:7"),
        ("utf16.yaml", b"\xff\xfek\0i\0n\0d\0".to_vec(), "manifest-encoding", "utf16.yaml"),
        ("deep.yaml", b"[".repeat(100_000), "manifest-too-deep", "deep.yaml:1"),
        ("deep.json", b"[".repeat(100_000), "manifest-too-deep", "deep.json:1"),
        ("many.yaml", documents.into_bytes(), "manifest-too-many-documents", "many.yaml"),
        (
            "other.yaml",
            b"apiVersion: v1\nkind: Service\n".to_vec(),
            "manifest-no-workload",
            "other.yaml",
        ),
        ("empty.yaml", Vec::new(), "manifest-no-workload", "empty.yaml"),
        ("cut.json", b"{\"kind\": \"Wor".to_vec(), "manifest-syntax", "cut.json:1"),
        ("after.json", b"{} x".to_vec(), "manifest-syntax", "after.json:1"),
        ("text.wasm", b"(component)".to_vec(), "component-text", "text.wasm"),
        ("png.wasm", b"\x89PNG".to_vec(), "component-not-wasm", "png.wasm"),
        ("empty.wasm", Vec::new(), "component-empty", "empty.wasm"),
        ("cut.wasm", b"\0asm\x0d\0\x01\0\x0b\x05".to_vec(), "component-invalid", "offset 0x"),
        ("big.yaml", vec![b'a'; (64 << 20) + 1], "file-too-large", "big.yaml"),
        ("large.yaml", vec![b'a'; (4 << 20) + 1], "manifest-too-large", "large.yaml"),
    ];
    let mut text = String::new();
    for (name, bytes, code, place) in &files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
        let run = Run::of(ambit().current_dir(dir.path()).args([
            "check",
            "--offline",
            "--now",
            NOW,
            name,
        ]));
        assert_eq!(run.exit, 2, "{name}: {}", run.shown());
        assert!(run.stderr.contains(&format!("error[{code}]")), "{name}: {}", run.shown());
        assert!(run.stderr.contains(place), "{name}: {}", run.shown());
        assert!(run.stdout.is_empty(), "{name}: a partial answer: {}", run.stdout);
        let _ = writeln!(text, "== {name}\n{}", run.stderr);
    }
    insta::assert_snapshot!("bad_input", text);
    for (arguments, code) in [
        (&["check", "."][..], "file-is-directory"),
        (&["check", "nothing.yaml"], "file-not-found"),
        (&["check", "--offline", "ghcr.io/acme/mail:1"], "registry-offline"),
        (&["check", "twice.yaml", "--now", "yesterday"], "usage-now"),
        (&["check", "twice.yaml", "--component", "a"], "usage-component"),
        (&["inspect", "layout:nothing"], "registry-not-found"),
    ] {
        let run = Run::of(ambit().current_dir(dir.path()).args(arguments));
        assert_eq!(run.exit, 2, "{arguments:?}: {}", run.shown());
        assert!(run.stderr.contains(&format!("error[{code}]")), "{arguments:?}: {}", run.shown());
    }
}

#[test]
fn crlf_anchors_merge_keys_and_lists_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        std::fs::read_to_string(testdata().join("workloads/cases/04-default-port/workload.yaml"))
            .unwrap();
    let nested = text.replace('\n', "\n  ");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}", nested.trim_end());
    let anchored = text
        .replace("    localResources:\n", "    localResources: &r\n")
        .replace("kind: Workload\n", "kind: Workload\nx-unused: &u {a: b}\n");
    for (name, text) in
        [("crlf.yaml", text.replace('\n', "\r\n")), ("list.yaml", list), ("anchor.yaml", anchored)]
    {
        std::fs::write(dir.path().join(name), text).unwrap();
        let run = Run::of(ambit().current_dir(dir.path()).args(["reach", name]));
        assert_eq!(run.exit, 0, "{name}: {}", run.shown());
        assert!(run.stdout.contains("api.example.com over https, any port"), "{}", run.shown());
    }
}

#[test]
fn closed_pipe_ends_output_quietly() {
    let mut child = ambit()
        .args(["inspect", "--format", "json", "components/dummy-everything.wasm"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn standard_input_is_read() {
    let mut child = ambit()
        .args(["inspect", "--format", "json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = std::fs::read(testdata().join("components/http-client.wasm")).unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("wasi:http/outgoing-handler"));
}

#[test]
fn world_is_printed_where_the_printer_can() {
    let world = run(&["inspect", "--wit", "components/http-client.wasm"]);
    assert_eq!(world.exit, 0);
    assert!(world.stdout.contains("import wasi:http/outgoing-handler@0.2.12;"), "{}", world.stdout);
}

#[test]
fn oci_layout_on_disk_is_read_and_its_digests_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = dir.path().join("blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    let put = |bytes: &[u8]| {
        let digest = ambit_engine::digest::Digest::of(bytes).to_string();
        std::fs::write(blobs.join(digest.trim_start_matches("sha256:")), bytes).unwrap();
        digest
    };
    let wasm = std::fs::read(testdata().join("components/http-client.wasm")).unwrap();
    let layer = put(&wasm);
    let config = put(b"{}");
    let manifest = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"application/vnd.wasm.config.v0+json","digest":"{config}","size":2}},"layers":[{{"mediaType":"application/wasm","digest":"{layer}","size":{}}}]}}"#,
        wasm.len()
    );
    let manifest_digest = put(manifest.as_bytes());
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"{manifest_digest}","size":{}}}]}}"#,
        manifest.len()
    );
    std::fs::write(dir.path().join("index.json"), index).unwrap();
    std::fs::write(dir.path().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    let source = format!("layout:{}", dir.path().display());
    assert_eq!(run(&["inspect", &source]).exit, 0);
    let blob = blobs.join(layer.trim_start_matches("sha256:"));
    let mut changed = wasm;
    changed[100] ^= 1;
    std::fs::write(blob, changed).unwrap();
    let run = run(&["inspect", &source]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("error[registry-digest-mismatch]"), "{}", run.shown());
}

#[test]
fn user_pack_takes_part_and_bad_packs_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("mine.rego");
    let deny = "package mine\n\ndeny contains \"no component may be named so\" if {\n\tsome c in input.workload.components\n\tc.name == \"http-client.wasm\"\n}\n";
    std::fs::write(&policy, deny).unwrap();
    let policy_arg = policy.to_str().unwrap();
    let run = check(&["components/http-client.wasm", "--policy", policy_arg]);
    assert_eq!(run.exit, 1);
    assert!(run.stdout.contains("deny[mine-deny]: no component may be named so"), "{}", run.stdout);
    std::fs::write(&policy, deny.replace("http-client", "other")).unwrap();
    assert_eq!(check(&["components/http-client.wasm", "--policy", policy_arg]).exit, 0);
    std::fs::write(&policy, deny.replace("contains", "containz")).unwrap();
    let broken = check(&["components/http-client.wasm", "--policy", policy_arg]);
    assert_eq!(broken.exit, 2);
    assert!(broken.stderr.contains("error[pack-syntax]"), "{}", broken.stderr);
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let root = testdata().join("..");
    let mut sources = String::new();
    let mut work = [
        "engine/src",
        "engine/executor/src",
        "engine/setup/src",
        "engine/trust/src",
        "webhook/src",
        "cli/src",
        "policies",
    ]
    .map(|dir| root.join(dir))
    .to_vec();
    while let Some(path) = work.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap().flatten();
            work.extend(entries.map(|entry| entry.path()).filter(|path| !path.ends_with("tests")));
        } else if path.extension().is_some_and(|e| e == "rs" || e == "rego")
            && !path.to_string_lossy().ends_with("tests.rs")
            && !path.to_string_lossy().ends_with("_test.rego")
        {
            sources.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
    let pages: std::collections::BTreeSet<String> =
        std::fs::read_dir(root.join("docs/diagnostics"))
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".md").map(str::to_owned))
            .filter(|name| name != "README")
            .collect();
    for page in &pages {
        assert!(sources.contains(&format!("\"{page}\"")), "nothing raises `{page}`");
        let run = run(&["explain", page]);
        assert_eq!(run.exit, 0);
        assert!(run.stdout.starts_with(&format!("# `{page}`: ")), "{page}: {}", run.stdout);
    }
    for code in codes(&sources) {
        assert!(pages.contains(&code), "`{code}` has no page in docs/diagnostics");
    }
}

/// The literals of functions named `code`, of failures and problems, and of Rego findings.
fn codes(sources: &str) -> std::collections::BTreeSet<String> {
    let mut codes = std::collections::BTreeSet::new();
    let mut inside = false;
    let mut before = "";
    for line in sources.lines() {
        let text = line.trim();
        if text.contains("fn code(") {
            inside = true;
        } else if line == "    }" {
            inside = false;
        }
        let raised = inside
            || text.starts_with("code: \"")
            || text.starts_with("\"code\": \"")
            || text.contains("Failure::new(\"")
            || before.ends_with("Failure::new(")
            || before.ends_with("problem(");
        if raised
            && let Some(literal) =
                text.split('"').nth(if text.starts_with("\"code\"") { 3 } else { 1 })
        {
            let kebab = literal.len() > 3
                && literal.contains('-')
                && literal
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            if kebab {
                codes.insert(literal.to_owned());
            }
        }
        before = text;
    }
    codes
}

#[test]
fn explain_answers_for_rules_and_refuses_the_unknown() {
    assert_eq!(run(&["explain", "baseline/image/digest-pin"]).exit, 0);
    let run = run(&["explain", "no-such-code"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("error[explain-unknown-code]"));
}

#[test]
fn completions_and_manual_page_are_written() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).stdout.contains("ambit"));
    }
    assert!(run(&["man"]).stdout.contains(".TH ambit"));
}

#[test]
fn readme_shows_what_its_first_command_prints() {
    let root = testdata().join("..").canonicalize().unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let arguments = ["check", "--reach", "testdata/workloads/demo/workload.yaml"];
    let run = Run::of(ambit().current_dir(&root).args(arguments));
    assert_eq!(run.exit, 0);
    assert!(readme.contains(run.stdout.trim_end()), "README differs from:\n{}", run.stdout);
}
