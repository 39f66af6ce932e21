//! `ambit run` and `ambit record` as a person uses them.
#![expect(clippy::expect_used, reason = "helpers of tests may fail loudly")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything here takes, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").canonicalize().expect("testdata")
}

/// A home folder, and the command in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ambit"));
        command.env_clear().env("HOME", self.0.path()).env("COLUMNS", "100");
        command.current_dir(testdata()).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Done {
        Done::of(&mut self.command(arguments))
    }

    fn serve(&self, arguments: &[&str]) -> Serving {
        let mut command = self.command(&["run", "--listen", "127.0.0.1:0"]);
        command.args(arguments);
        Serving::start(command)
    }
}

struct Done {
    exit: i32,
    stdout: String,
    stderr: String,
}

impl Done {
    fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the command runs");
        Self {
            exit: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// A run that serves, until it is told to stop or dropped.
struct Serving {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command runs");
        let said = Arc::<Mutex<String>>::default();
        let theirs = Arc::clone(&said);
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut said = theirs.lock().expect("what was said");
                said.push_str(&line);
                said.push('\n');
            }
        });
        Self { child, said }
    }

    fn said(&self) -> String {
        self.said.lock().expect("what was said").clone()
    }

    /// Waits until it has said this so many times.
    fn says(&self, text: &str, times: usize) {
        let since = std::time::Instant::now();
        while self.said().matches(text).count() < times {
            assert!(since.elapsed() < PATIENCE, "`{text}` isn't in\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The port of a workload that it serves.
    fn port(&self, host: &str) -> u16 {
        let wanted = format!("serving http://{host}:");
        self.says(&wanted, 1);
        let said = self.said();
        let (_, rest) = said.split_once(&wanted).expect("it was said");
        rest.split('/').next().and_then(|port| port.parse().ok()).expect("a port")
    }

    fn get(&self, host: &str, path: &str) -> String {
        get(self.port(host), host, path)
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.expect("a signal").success());
    }

    /// Waits for its end, and returns its exit code.
    fn end(mut self) -> (i32, String) {
        let status = self.child.wait().expect("it ends");
        // The reader of its lines may be a moment behind.
        std::thread::sleep(Duration::from_millis(100));
        (status.code().expect("an exit code"), self.said())
    }
}

fn get(port: u16, host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// A server on loopback that says hello to everybody.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = stream;
            let mut part = [0; 4096];
            let _ = stream.read(&mut part);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    address
}

/// The manifest of a component that fetches what it is asked for.
fn fetch(hosts: &[&str]) -> String {
    let component = testdata().join("components/http-fetch.wasm");
    let mut text = format!(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata:
  name: fetch
  labels: {{owner: team-a}}
spec:
  hostInterfaces:
  - namespace: wasi
    package: http
    interfaces: [incoming-handler]
  components:
  - name: fetch
    image: file:{}
    localResources:
      allowedHosts:
",
        component.display()
    );
    for host in hosts {
        text.push_str(&format!("      - {host}\n"));
    }
    text
}

#[test]
fn a_command_runs_and_its_record_verifies() {
    let home = Home::new();
    let done = home.run(&["run", "components/hello.wasm"]);
    assert_eq!((done.exit, done.stdout.as_str()), (0, "hello\n"), "{}", done.stderr);
    let last = done.stderr.lines().last().expect("a line");
    assert!(last.starts_with("record ") && last.contains("5 lines, sha256:"), "{last}");
    let head = last.rsplit(", ").next().expect("a hash");

    let shown = home.run(&["record", "show"]);
    assert_eq!(shown.exit, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("wasi:cli/run@0.2#run  once"), "{}", shown.stdout);
    let verified = home.run(&["record", "verify", "--head", head]);
    assert_eq!(verified.exit, 0, "{}", verified.stdout);
    assert!(verified.stdout.starts_with("HOLDS"), "{}", verified.stdout);
    let other = home.run(&["record", "verify", "--head", &format!("sha256:{}", "0".repeat(64))]);
    assert_eq!(other.exit, 1, "{}", other.stdout);
    let listed = home.run(&["record", "list", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(listed["records"][0]["workloads"][0], "default/hello.wasm");
}

#[test]
fn a_record_that_was_changed_is_found_out() {
    let home = Home::new();
    let dir = home.path("kept");
    let dir = dir.to_str().expect("text");
    assert_eq!(home.run(&["run", "components/hello.wasm", "--record", dir]).exit, 0);
    let file = std::fs::read_dir(dir).expect("a folder").next().expect("a record");
    let file = file.expect("a file").path();
    let text = std::fs::read_to_string(&file).expect("text");
    std::fs::write(&file, text.replace("\"result\":\"ok\"", "\"result\":\"no\"")).expect("room");
    let verified = home.run(&["record", "verify", file.to_str().expect("text")]);
    assert_eq!(verified.exit, 1);
    assert!(verified.stderr.contains("error[record-broken]"), "{}", verified.stderr);
    assert!(
        verified.stderr.contains(".ndjson:5: "),
        "the line after is named: {}",
        verified.stderr
    );
    let gone = home.run(&["record", "verify", "gone", "--dir", dir]);
    assert_eq!(gone.exit, 2, "{}", gone.stderr);
}

#[test]
fn a_sealed_record_needs_its_key() {
    let home = Home::new();
    let keys = home.path("seal");
    let made =
        Done::of(home.command(&["keygen", "--output"]).arg(&keys).env("COSIGN_PASSWORD", "p"));
    assert_eq!(made.exit, 0, "{}", made.stderr);
    let (private, public) = (keys.with_extension("key"), keys.with_extension("pub"));
    let run = Done::of(
        home.command(&["run", "components/hello.wasm", "--record-key"])
            .arg(&private)
            .env("COSIGN_PASSWORD", "p"),
    );
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let public = public.to_str().expect("text");
    let verified = home.run(&["record", "verify", "--key", public]);
    assert_eq!(verified.exit, 0, "{}{}", verified.stdout, verified.stderr);
    assert!(verified.stdout.contains("up to line 6, verified"), "{}", verified.stdout);

    assert_eq!(home.run(&["run", "components/hello.wasm"]).exit, 0);
    let unsealed = home.run(&["record", "verify", "--key", public]);
    assert_eq!(unsealed.exit, 1, "{}", unsealed.stdout);
    assert!(unsealed.stdout.contains("from line 1 on, no seal"), "{}", unsealed.stdout);
}

#[test]
fn what_is_denied_is_not_run() {
    let home = Home::new();
    let manifest = fetch(&["http://169.254.169.254"]);
    let manifest = home.write("workload.yaml", &manifest);
    let done = home.run(&["run", manifest.to_str().expect("text")]);
    assert_eq!(done.exit, 1, "{}", done.stderr);
    assert!(done.stderr.contains("deny[net-metadata]"), "{}", done.stderr);
    assert!(!done.stderr.contains("serving"), "{}", done.stderr);
    assert!(home.run(&["record", "show"]).exit == 2, "there is no record of nothing");
    let missing = home.run(&["run", "components/none.wasm"]);
    assert_eq!(missing.exit, 2, "{}", missing.stderr);
    let target = home.run(&["run", "components/hello.wasm", "--target", "wasmcloud"]);
    assert_eq!(target.exit, 2, "{}", target.stderr);
    assert!(target.stderr.contains("error[usage-target]"), "{}", target.stderr);
}

#[test]
fn a_host_that_is_not_granted_is_refused_until_its_line_is_added() {
    let home = Home::new();
    let port = upstream().port();
    let path = format!("/http/host.internal:{port}/");
    let manifest = home.write("workload.yaml", &fetch(&["https://api.example.com"]));
    let manifest = manifest.to_str().expect("text");
    let opened = port.to_string();
    let serving = home.serve(&[manifest, "--allow-host-loopback", &opened]);
    let answer = serving.get("fetch.localhost", &path);
    assert!(answer.contains("refused: the host denied it"), "{answer}");
    serving.says("denied[host-not-granted]", 1);
    let line = format!("add `http://host.internal:{port}` to `allowedHosts` of `fetch` (");
    serving.says(&line, 1);
    serving.says("workload.yaml:16)", 1);
    serving.signal("TERM");
    let (exit, said) = serving.end();
    assert_eq!(exit, 0, "{said}");
    let shown = home.run(&["record", "show", "--denied"]);
    assert!(shown.stdout.contains("denied once (host-not-granted)"), "{}", shown.stdout);
    assert!(shown.stdout.contains(&line), "{}", shown.stdout);

    let granted = format!("http://host.internal:{port}");
    std::fs::write(manifest, fetch(&[&granted])).expect("a file");
    let serving = home.serve(&[manifest, "--allow-host-loopback", &opened]);
    let answer = serving.get("fetch.localhost", &path);
    assert!(answer.contains("status 200") && answer.contains("hello"), "{answer}");
    drop(serving);
    // Without the operator's flag the grant alone opens nothing.
    let serving = home.serve(&[manifest]);
    let answer = serving.get("fetch.localhost", &path);
    assert!(answer.contains("refused: the host denied it"), "{answer}");
    serving.says("denied[loopback-closed]", 1);
}

#[test]
fn workloads_in_processes_of_their_own_answer_and_die_alone() {
    let home = Home::new();
    let port = upstream().port();
    let granted = format!("http://host.internal:{port}");
    let manifest = home.write("workload.yaml", &fetch(&[&granted]));
    let opened = port.to_string();
    let serving = home.serve(&[
        manifest.to_str().expect("text"),
        "components/http-handler.wasm",
        "--allow-host-loopback",
        &opened,
    ]);
    let answer = serving.get("http-handler.localhost", "/");
    assert!(answer.contains("hello from the handler"), "{answer}");
    let answer = serving.get("fetch.localhost", &format!("/http/host.internal:{port}/"));
    assert!(answer.contains("status 200") && answer.contains("hello"), "{answer}");
    let refused = serving.get("fetch.localhost", "/https/other.example/");
    assert!(refused.contains("refused: the host denied it"), "{refused}");

    let lines = home.run(&["record", "show", "--lines", "--workload", "fetch"]).stdout;
    let process = lines.split("run: process ").nth(1).expect("a process on record");
    let process = process.split_whitespace().next().expect("its number");
    assert!(Command::new("kill").args(["-9", process]).status().expect("a signal").success());
    let since = std::time::Instant::now();
    while !home.run(&["record", "show", "--lines"]).stdout.contains("isolate-died") {
        assert!(since.elapsed() < PATIENCE, "its end isn't on record");
    }
    assert!(serving.get("fetch.localhost", "/").starts_with("HTTP/1.1 502"));
    assert!(serving.get("http-handler.localhost", "/").starts_with("HTTP/1.1 200"));
    serving.signal("INT");
    let (exit, said) = serving.end();
    assert_eq!(exit, 0, "{said}");
    let verified = home.run(&["record", "verify"]);
    assert_eq!(verified.exit, 0, "{}{}", verified.stdout, verified.stderr);
}

#[test]
fn a_change_is_taken_up_only_if_it_is_allowed() {
    let home = Home::new();
    let manifest = home.write("workload.yaml", &fetch(&["https://api.example.com"]));
    let path = manifest.to_str().expect("text");
    let serving = home.serve(&[path, "--watch"]);
    assert!(serving.get("fetch.localhost", "/").starts_with("HTTP/1.1 200"));

    std::fs::write(&manifest, fetch(&["http://169.254.169.254"])).expect("a file");
    serving.says("still serving the version before", 1);
    assert!(serving.get("fetch.localhost", "/").starts_with("HTTP/1.1 200"));
    std::fs::write(&manifest, "kind: [").expect("a file");
    serving.says("still serving the version before", 2);

    let port = upstream().port();
    std::fs::write(&manifest, fetch(&["https://api.example.com", "https://b.example.com"]))
        .expect("a file");
    serving.says("serving the new version", 1);
    let answer = serving.get("fetch.localhost", &format!("/http/host.internal:{port}/"));
    assert!(answer.contains("refused"), "{answer}");
    serving.says("denied[host-not-granted]", 1);
}

#[test]
fn a_guest_that_fails_ends_the_run_with_four() {
    let home = Home::new();
    let component = wat::parse_str(
        r#"(component
            (core module $m (func (export "run") (result i32) i32.const 1))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $cli (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $cli)))"#,
    );
    let path = home.path("fails.wasm");
    std::fs::write(&path, component.expect("it assembles")).expect("a file");
    let path = path.to_str().expect("text");
    for isolate in ["--isolate=never", "--isolate"] {
        let done = home.run(&["run", path, isolate]);
        assert_eq!(done.exit, 4, "{}", done.stderr);
        assert!(done.stderr.contains("ended with status 1"), "{}", done.stderr);
        let shown = home.run(&["record", "show", "--lines"]);
        assert!(shown.stdout.contains("[guest-status] status 1"), "{}", shown.stdout);
    }
}

#[test]
fn a_bound_that_is_met_is_named() {
    let home = Home::new();
    let component = wat::parse_str(
        r#"(component
            (core module $m (func (export "run") (result i32) (loop $l br $l) i32.const 0))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $cli (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $cli)))"#,
    );
    let path = home.path("spins.wasm");
    std::fs::write(&path, component.expect("it assembles")).expect("a file");
    let path = path.to_str().expect("text");
    for isolate in ["--isolate=never", "--isolate"] {
        let done = home.run(&["run", path, isolate, "--cpu-time", "200ms"]);
        assert_eq!(done.exit, 2, "{}", done.stderr);
        assert!(done.stderr.contains("error[limit-cpu-time]"), "{}", done.stderr);
        assert!(done.stderr.contains("`--cpu-time` raises it"), "{}", done.stderr);
    }
    let bad = home.run(&["run", path, "--limit", "none=1"]);
    assert_eq!(bad.exit, 2);
    assert!(bad.stderr.contains("wallTime"), "{}", bad.stderr);
}

#[test]
fn a_secret_is_given_by_the_operator_and_is_in_no_record() {
    let home = Home::new();
    let component = testdata().join("components/env-reader.wasm");
    let text = format!(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata: {{name: reader}}
spec:
  components:
  - name: reader
    image: file:{}
    localResources:
      environment:
        secretFrom: [{{name: mail}}]
        config: {{MODE: fast}}
",
        component.display()
    );
    let manifest = home.write("workload.yaml", &text);
    let manifest = manifest.to_str().expect("text");
    let missing = home.run(&["run", manifest]);
    assert_eq!(missing.exit, 2, "{}", missing.stderr);
    assert!(missing.stderr.contains("error[value-missing]"), "{}", missing.stderr);
    for isolate in ["--isolate=never", "--isolate"] {
        let flag = "mail.API_TOKEN=env:MAIL_PASSWORD";
        let done = Done::of(
            home.command(&["run", manifest, isolate, "--secret", flag])
                .env("MAIL_PASSWORD", "correct horse"),
        );
        assert_eq!(done.exit, 0, "{}", done.stderr);
        assert!(done.stdout.contains("token is set"), "{}", done.stdout);
        assert!(!done.stderr.contains("correct horse"), "{}", done.stderr);
        let kept = home.run(&["record", "show", "--lines", "--format", "json"]).stdout;
        assert!(!kept.contains("correct horse"), "{kept}");
    }
}

#[test]
fn a_secret_that_leaves_in_a_header_is_a_placeholder_to_the_component() {
    let home = Home::new();
    let component = testdata().join("components/file-tool.wasm");
    let text = format!(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata: {{name: tool}}
spec:
  components:
  - name: tool
    image: file:{}
    localResources:
      environment: {{secretFrom: [{{name: mail}}]}}
",
        component.display()
    );
    let manifest = home.write("workload.yaml", &text);
    let manifest = manifest.to_str().expect("text");
    let secret = "mail.API_TOKEN=env:TOKEN";
    for isolate in ["--isolate=never", "--isolate"] {
        let run = |more: &[&str]| {
            let mut command = home.command(&["run", manifest, isolate, "--secret", secret]);
            let script = home.write("script", "env API_TOKEN\n");
            let script = std::fs::File::open(script).expect("a file");
            Done::of(command.args(more).env("TOKEN", "correct horse").stdin(script))
        };
        let plain = run(&[]);
        let wanted = (0, "env API_TOKEN: correct horse\n");
        assert_eq!((plain.exit, plain.stdout.as_str()), wanted, "{}", plain.stderr);
        let flag = "mail.API_TOKEN=authorization@https://api.example.com";
        let bound = run(&["--secret-header", flag]);
        assert_eq!(bound.exit, 0, "{}", bound.stderr);
        assert!(bound.stdout.starts_with("env API_TOKEN: ambit-secret-"), "{}", bound.stdout);
        for wrong in ["mail", "mail.other=a@b.example", "mail.API_TOKEN=a b@c.example"] {
            let refused = run(&["--secret-header", wrong]);
            assert_eq!(refused.exit, 2, "{wrong}: {}", refused.stderr);
            assert!(!refused.stderr.contains("correct horse"), "{}", refused.stderr);
        }
    }
}

#[test]
fn metrics_are_served_and_a_tail_follows() {
    let home = Home::new();
    let serving = home.serve(&["components/http-handler.wasm", "--metrics", "127.0.0.1:0"]);
    let mut tail = home.command(&["record", "tail", "--all"]);
    let _ = serving.get("http-handler.localhost", "/one");
    let mut tail = tail.stdout(Stdio::piped()).spawn().expect("the command runs");
    let lines = BufReader::new(tail.stdout.take().expect("piped")).lines();
    let _ = serving.get("http-handler.localhost", "/two");
    let said = serving.said();
    let metrics = said.lines().find_map(|line| line.strip_prefix("metrics at http://127.0.0.1:"));
    let port = metrics.and_then(|rest| rest.split('/').next()?.parse().ok()).expect("a port");
    let text = get(port, "localhost", "/metrics");
    let line = "ambit_effects_ended_total{workload=\"default/http-handler.wasm\",\
                component=\"http-handler.wasm\",verb=\"serve requests\",result=\"ok\"} 2";
    assert!(text.contains(line), "{text}");
    serving.signal("TERM");
    let (exit, _) = serving.end();
    assert_eq!(exit, 0);
    let followed: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(tail.wait().expect("it ends").success());
    let followed = followed.join("\n");
    for path in ["/one", "/two", "effects under way"] {
        assert!(followed.contains(path), "{path} isn't in\n{followed}");
    }
}

#[test]
fn a_worker_is_not_started_by_hand() {
    let home = Home::new();
    let done = home.run(&["isolated-worker"]);
    assert_eq!(done.exit, 2);
    assert!(done.stderr.contains("error[isolate-failed]"), "{}", done.stderr);
}
