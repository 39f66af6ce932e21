//! From pushing to the decision, over registries on loopback and layouts on disk.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail loudly"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use ambit_engine::reference::{ImageSource, Reference};
use ambit_testing::registry::{Action, Auth, Fault, Options, Registry};

const NOW: &str = "2026-12-01T00:00:00Z";

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").canonicalize().expect("testdata")
}

/// A folder in which the command runs, with its cache in it and nothing from outside.
struct Desk {
    dir: tempfile::TempDir,
}

struct Run {
    exit: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn all(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.exit, self.stdout, self.stderr)
    }

    fn exits(self, code: i32) -> Self {
        assert_eq!(self.exit, code, "{}", self.all());
        self
    }

    fn says(self, words: &str) -> Self {
        assert!(self.all().contains(words), "`{words}` in {}", self.all());
        self
    }
}

impl Desk {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ambit"));
        command
            .env_clear()
            .env("COLUMNS", "100")
            .env("HOME", self.dir.path())
            .current_dir(self.dir.path())
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let output = self.command(arguments).output().expect("the command runs");
        Run {
            exit: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    fn trust(&self, name: &str, key: &str) {
        let pem = std::fs::read_to_string(self.path(key)).expect("a public key");
        let pem: String = pem.lines().map(|line| format!("        {line}\n")).collect();
        self.write(
            name,
            &format!(
                "apiVersion: ambit.dev/v1alpha1
kind: TrustPolicy
metadata: {{name: release}}
spec:
  images: [{{glob: \"**\"}}]
  authorities:
  - name: release-key
    signatureFormat: any
    key:
      data: |
{pem}    ctlog: {{require: none}}
"
            ),
        );
    }

    fn workload(&self, name: &str, image: &str) {
        self.write(
            name,
            &format!(
                "# what the test runs
apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata:
  name: tools
  labels: {{owner: somebody}}
spec:
  components:
  - name: ping
    image: {image}   # stays here
    localResources:
      allowedHosts: [\"https://api.example.com\"]
"
            ),
        );
    }
}

fn component(name: &str) -> String {
    testdata().join("components").join(name).display().to_string()
}

/// Pushes, signs, attests, verifies, pins and checks at one place, in both formats of signature.
fn round_trip(desk: &Desk, image: &str, format: &[&str]) {
    let tagged = format!("{image}:1.0");
    desk.run(&["keygen", "--no-password", "--output", "ours"]).exits(0);
    desk.run(&["keygen", "--no-password", "--output", "other"]).exits(0);
    desk.trust("trust.yaml", "ours.pub");
    desk.trust("other.yaml", "other.pub");
    desk.run(&["push", &component("http-client.wasm"), &tagged]).exits(0);
    desk.workload("workload.yaml", &tagged);
    desk.workload("tag.yaml", &tagged);
    let check =
        |file: &str, trust: &str| desk.run(&["check", "--now", NOW, file, "--trust", trust]);

    check("workload.yaml", "trust.yaml").exits(1).says("deny[sign-policy]");

    let sign = [&["sign", "--now", NOW, "--key", "ours.key", &tagged][..], format].concat();
    desk.run(&sign).exits(0);
    desk.write("bom.json", "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.6\"}");
    let attest = ["attest", "--now", NOW, "--key", "ours.key", &tagged];
    let bom = ["--type", "cyclonedx", "--predicate", "bom.json"];
    desk.run(&[&attest[..], &bom, format].concat()).exits(0);
    desk.run(&[&attest[..], &["--capabilities"], format].concat()).exits(0);
    let decision = ["--decision", "--trust", "trust.yaml"];
    desk.run(&[&attest[..], &decision, format].concat()).exits(0);

    let verify = |more: &[&str]| desk.run(&[&["verify", "--now", NOW, &tagged], more].concat());
    verify(&["--trust", "trust.yaml"]).exits(0);
    verify(&["--key", "ours.pub", "--insecure-ignore-tlog"]).exits(0);
    verify(&["--key", "ours.pub"]).exits(1).says("signature-tlog-missing");
    verify(&["--key", "other.pub", "--insecure-ignore-tlog"]).exits(1).says("signature-other-key");
    verify(&["--key", "ours.pub", "--insecure-ignore-tlog", "--type", "cyclonedx"]).exits(0);
    verify(&["--key", "ours.pub", "--insecure-ignore-tlog", "--type", "spdx"])
        .exits(1)
        .says("signature-predicate-type");

    let local = image.starts_with("layout:");
    if local {
        // The bytes of a layout are at hand, so there is nothing to pin.
        desk.run(&["pin", "--check", "workload.yaml"]).exits(0);
    } else {
        pin(desk);
    }

    let allowed = check("workload.yaml", "trust.yaml").exits(0);
    assert!(!allowed.stdout.contains("attest-sbom"), "{}", allowed.all());
    check("workload.yaml", "other.yaml")
        .exits(1)
        .says("deny[sign-policy]")
        .says("signature-other-key")
        .says("= help: ");

    // The tag moves to other bytes: the pin holds, and the tag is judged by what it names now.
    desk.run(&["push", &component("http-handler.wasm"), &tagged]).exits(0);
    if !local {
        check("workload.yaml", "trust.yaml").exits(0);
    }
    check("tag.yaml", "trust.yaml").exits(1).says("deny[sign-policy]");
}

/// Writes the digest into `workload.yaml`, and nothing else.
fn pin(desk: &Desk) {
    desk.run(&["pin", "--check", "workload.yaml"]).exits(1).says("names no digest");
    desk.run(&["pin", "workload.yaml"]).exits(0);
    desk.run(&["pin", "--check", "workload.yaml"]).exits(0);
    let before = std::fs::read_to_string(desk.path("tag.yaml")).unwrap();
    let after = std::fs::read_to_string(desk.path("workload.yaml")).unwrap();
    let changed: Vec<(&str, &str)> =
        before.lines().zip(after.lines()).filter(|(old, new)| old != new).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert!(changed[0].1.contains(":1.0@sha256:"), "{changed:?}");
    assert!(changed[0].1.ends_with("   # stays here"), "{changed:?}");
}

#[test]
fn round_trip_over_a_registry_with_the_referrers_api() {
    let registry = Registry::start_blocking(Options::default());
    round_trip(&Desk::new(), &format!("{}/team/ping", registry.host()), &[]);
}

#[test]
fn round_trip_over_a_registry_without_the_referrers_api() {
    let registry = Registry::start_blocking(Options::old());
    round_trip(&Desk::new(), &format!("{}/team/ping", registry.host()), &[]);
}

#[test]
fn round_trip_with_the_formats_of_cosign_1_and_2() {
    let registry = Registry::start_blocking(Options::old());
    round_trip(&Desk::new(), &format!("{}/team/ping", registry.host()), &["--legacy"]);
}

#[test]
fn round_trip_over_a_layout() {
    round_trip(&Desk::new(), "layout:store", &[]);
}

#[test]
fn round_trip_over_a_layout_in_the_older_formats() {
    round_trip(&Desk::new(), "layout:store", &["--legacy"]);
}

#[test]
#[ignore = "needs a registry at AMBIT_TEST_REGISTRY"]
fn round_trip_over_a_registry_that_runs_already() {
    let address = std::env::var("AMBIT_TEST_REGISTRY").expect("AMBIT_TEST_REGISTRY=HOST:PORT");
    round_trip(&Desk::new(), &format!("{address}/ambit/bundle"), &[]);
    round_trip(&Desk::new(), &format!("{address}/ambit/legacy"), &["--legacy"]);
}

/// The images of a document that name no digest.
fn unpinned(text: &str) -> Vec<Reference> {
    let limits = ambit_engine::document::DocumentLimits::default();
    let format = ambit_engine::document::Format::Yaml;
    let found = ambit_engine::workload::read(text.as_bytes(), format, None, &limits).unwrap();
    let components = found.workloads.iter().flat_map(|workload| &workload.components);
    components
        .filter_map(|component| match &component.image.source {
            ImageSource::Oci(reference) if reference.digest().is_none() => Some(reference.clone()),
            ImageSource::Oci(_)
            | ImageSource::File(_)
            | ImageSource::Layout { .. }
            | ImageSource::Artifact(_)
            | ImageSource::Invalid(_) => None,
        })
        .collect()
}

#[test]
fn pin_changes_only_the_images_of_real_documents() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let mut names: Vec<String> = std::fs::read_dir(testdata().join("workloads/wild"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 8);
    let mut mirrors = std::collections::BTreeSet::new();
    for name in &names {
        let text = std::fs::read_to_string(testdata().join("workloads/wild").join(name)).unwrap();
        for reference in unpinned(&text) {
            let repository = reference.repository();
            let prefix = repository.registry().replace([':', '.'], "-");
            mirrors.insert(format!("{}={}/{prefix}", repository.registry(), registry.host()));
            let tag = reference.tag().unwrap_or("latest");
            let copy = format!("{}/{prefix}/{}:{tag}", registry.host(), repository.path());
            desk.run(&["push", &component("hello.wasm"), &copy, "--created", NOW]).exits(0);
        }
        desk.write(name, &text);
    }
    let mirrors: Vec<&str> = mirrors.iter().flat_map(|pair| ["--mirror", pair]).collect();
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    desk.run(&[&["pin"], &files[..], &mirrors[..]].concat()).exits(0);
    desk.run(&[&["pin", "--check"], &files[..]].concat())
        .exits(0)
        .says("every image names a digest");
    let mut changes = String::new();
    for name in &names {
        let old = std::fs::read_to_string(testdata().join("workloads/wild").join(name)).unwrap();
        let new = std::fs::read_to_string(desk.path(name)).unwrap();
        assert_eq!(old.lines().count(), new.lines().count(), "{name}");
        changes.push_str(&format!("== {name}\n"));
        for (old, new) in old.lines().zip(new.lines()).filter(|(old, new)| old != new) {
            changes.push_str(&format!("- {}\n+ {}\n", old.trim(), new.trim()));
        }
    }
    insta::assert_snapshot!("pin_wild", changes);
}

#[test]
fn pin_refuses_what_it_cannot_edit_in_place_and_writes_nothing() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let image = format!("{}/team/ping:1.0", registry.host());
    desk.run(&["push", &component("hello.wasm"), &image]).exits(0);
    for (written, fine) in [
        (image.clone(), true),
        (format!("'{image}'"), true),
        (format!("\"{image}\""), true),
        (format!("\"{}\"", image.replace('/', "\\/")), false),
        (format!(">-\n      {image}\n"), false),
        ("Team/Ping:1.0".to_owned(), false),
    ] {
        desk.workload("w.yaml", &written);
        let before = std::fs::read_to_string(desk.path("w.yaml")).unwrap();
        let run = desk.run(&["pin", "w.yaml"]);
        let after = std::fs::read_to_string(desk.path("w.yaml")).unwrap();
        if fine {
            let run = run.exits(0);
            assert!(after.contains("@sha256:"), "{}", run.all());
        } else {
            let code = if written.contains("Ping") { "reference-invalid" } else { "pin-place" };
            run.exits(2).says(&format!("error[{code}]"));
            assert_eq!(before, after);
        }
    }
    desk.workload("gone.yaml", &format!("{}/team/gone:1.0", registry.host()));
    desk.workload("w.yaml", &image);
    let before = std::fs::read_to_string(desk.path("w.yaml")).unwrap();
    desk.run(&["pin", "w.yaml", "gone.yaml"]).exits(2).says("error[registry-not-found]");
    assert_eq!(before, std::fs::read_to_string(desk.path("w.yaml")).unwrap());
}

/// Pushes a signed component and writes a trust policy and a workload that asks for it.
fn signed(desk: &Desk, image: &str) {
    desk.run(&["keygen", "--no-password", "--output", "ours"]).exits(0);
    desk.trust("trust.yaml", "ours.pub");
    desk.run(&["push", &component("http-client.wasm"), image]).exits(0);
    desk.run(&["sign", "--now", NOW, "--key", "ours.key", image]).exits(0);
    desk.workload("workload.yaml", image);
}

#[test]
fn outage_is_no_answer_and_never_unsigned() {
    for (path, status, code) in [
        ("/v2/team/ping/referrers/*", 429, "too many requests"),
        ("/v2/team/ping/referrers/*", 403, "was refused"),
        ("/v2/team/ping/referrers/*", 500, "is unavailable"),
        ("/v2/team/ping/manifests/*.sig", 500, "is unavailable"),
        ("/v2/team/ping/manifests/*.att", 403, "was refused"),
    ] {
        let registry = Registry::start_blocking(Options::default());
        let desk = Desk::new();
        let image = format!("{}/team/ping:1.0", registry.host());
        // Nothing is signed, and the registry doesn't say so.
        desk.run(&["keygen", "--no-password", "--output", "ours"]).exits(0);
        desk.trust("trust.yaml", "ours.pub");
        desk.run(&["push", &component("http-client.wasm"), &image]).exits(0);
        desk.workload("workload.yaml", &image);
        registry.fault(Fault::each("GET", path, Action::status(status)));
        let check = ["check", "--now", NOW, "workload.yaml", "--trust", "trust.yaml"];
        let run = desk.run(&check).exits(2).says("error[evidence-unknown]").says(code);
        assert!(!run.stdout.contains("[sign-required]"), "{}", run.all());
        assert!(!run.stdout.contains("deny[sign-policy]"), "{}", run.all());
        desk.run(&["verify", "--now", NOW, &image, "--trust", "trust.yaml"]).exits(2);
        // The failure is not remembered.
        registry.clear_faults();
        desk.run(&check).exits(1).says("deny[sign-policy]");
    }
}

#[test]
fn component_that_cannot_be_fetched_is_unavailable_with_the_reason() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let image = format!("{}/team/ping:1.0", registry.host());
    signed(&desk, &image);
    registry.fault(Fault::each("GET", "/v2/team/ping/manifests/1.0", Action::status(500)));
    desk.run(&["check", "--now", NOW, "workload.yaml"])
        .exits(2)
        .says("error[component-unavailable]")
        .says("[registry-unavailable]");
    desk.run(&["reach", "workload.yaml"]).exits(0).says("[registry-unavailable]");
    desk.run(&["inspect", &image]).exits(2).says("error[registry-unavailable]");
}

#[test]
fn offline_reads_what_was_fetched_and_no_tag() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let image = format!("{}/team/ping:1.0", registry.host());
    signed(&desk, &image);
    let check = ["check", "--now", NOW, "workload.yaml", "--trust", "trust.yaml"];
    desk.run(&["pin", "workload.yaml"]).exits(0);
    let online = desk.run(&check).exits(0);
    drop(registry);
    let offline = desk.run(&[&check[..], &["--offline"]].concat()).exits(0);
    assert_eq!(online.stdout, offline.stdout);
    desk.workload("workload.yaml", &image);
    desk.run(&[&check[..], &["--offline"]].concat()).exits(2).says("[registry-offline]");
}

#[test]
fn publishers_list_of_imports_is_compared_with_the_binary() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let host = registry.host();
    let image = format!("{host}/team/ping:1.0");
    desk.run(&["push", &component("socket-client.wasm"), &image]).exits(0);
    let honest = desk.run(&["check", "--now", NOW, &image]).exits(0);
    assert!(!honest.stdout.contains("image-claims"), "{}", honest.all());
    // The same bytes with a configuration that names no sockets.
    let tag = registry.manifest("team/ping", "1.0").expect("a manifest");
    let mut manifest: serde_json::Value = serde_json::from_slice(&tag).unwrap();
    let config = manifest["config"]["digest"].as_str().unwrap().to_owned();
    let config = registry.blob("team/ping", &config).expect("a configuration");
    let mut config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    config["component"]["imports"] = serde_json::json!(["wasi:cli/environment@0.2.12"]);
    let bytes = serde_json::to_vec(&config).unwrap();
    manifest["config"]["digest"] = registry.put_blob("team/ping", &bytes).into();
    manifest["config"]["size"] = bytes.len().into();
    let bytes = serde_json::to_vec(&manifest).unwrap();
    registry.put_manifest("team/ping", "1.0", "application/vnd.oci.image.manifest.v1+json", &bytes);
    desk.run(&["check", "--now", NOW, &image])
        .exits(0)
        .says("warn[image-claims]")
        .says("`wasi:sockets/tcp@0.2.12`");
}

#[test]
fn secrets_are_shown_nowhere() {
    const PASSWORD: &str = "planted-registry-password";
    const KEY_PASSWORD: &str = "planted-key-password";
    let options = Options {
        auth: Auth::Basic { user: "dana".to_owned(), password: PASSWORD.to_owned() },
        ..Options::default()
    };
    let registry = Registry::start_blocking(options);
    let desk = Desk::new();
    let host = registry.host();
    let image = format!("{host}/team/ping:1.0");
    let token = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        format!("dana:{PASSWORD}"),
    );
    std::fs::create_dir(desk.path(".docker")).unwrap();
    let config = serde_json::json!({ "auths": { (host.clone()): { "auth": token } } });
    desk.write(".docker/config.json", &config.to_string());
    let run = |arguments: &[&str]| {
        let mut command = desk.command(arguments);
        let output = command.env("COSIGN_PASSWORD", KEY_PASSWORD).output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).expect("text"))
    };
    let mut shown = String::new();
    let mut step = |arguments: &[&str], exit: i32| {
        let (code, text) = run(arguments);
        assert_eq!(code, Some(exit), "{arguments:?}: {text}");
        shown.push_str(&text);
    };
    step(&["keygen", "--output", "ours"], 0);
    desk.trust("trust.yaml", "ours.pub");
    desk.workload("workload.yaml", &image);
    step(&["push", &component("http-client.wasm"), &image], 0);
    step(&["sign", "--key", "ours.key", &image], 0);
    step(&["verify", &image, "--trust", "trust.yaml", "--format", "json"], 0);
    step(&["check", "workload.yaml", "--trust", "trust.yaml", "--format", "json"], 0);
    step(&["check", "--show-config"], 0);
    desk.write("wrong", "planted-wrong-password\n");
    step(&["sign", "--key", "ours.key", "--password-file", "wrong", &image], 2);
    for status in [401, 403, 429, 500] {
        registry.clear_faults();
        let fault = Action::Answer {
            status,
            headers: vec![("WWW-Authenticate".to_owned(), format!("Basic realm=\"{PASSWORD}\""))],
            // A registry that gives back what it was sent.
            body: format!("you sent {token} and {PASSWORD}").into_bytes(),
        };
        registry.fault(Fault::each("GET", "/v2/team/*", fault));
        step(&["verify", &image, "--trust", "trust.yaml"], 2);
        step(&["check", "workload.yaml", "--format", "json"], 2);
        step(&["inspect", &image], 2);
    }
    desk.write(
        ".docker/config.json",
        &format!("{{\"auths\": {{\"{host}\": {{\"auth\": \"{token}\"}}}}"),
    );
    step(&["inspect", &image], 2);
    let private = std::fs::read_to_string(desk.path("ours.key")).unwrap();
    let body: Vec<&str> = private.lines().filter(|line| !line.starts_with("-----")).collect();
    for secret in [PASSWORD, KEY_PASSWORD, "planted-wrong-password", &token, body[0]] {
        assert!(!shown.contains(secret), "`{secret}` is shown in {shown}");
    }
    assert!(shown.len() > 1000);
}

const SIGSTORE_NOW: &str = "2026-12-01T00:00:00Z";

#[test]
fn container_signature_of_cosign_3_verifies_with_its_flags_only() {
    let desk = Desk::new();
    let bundle = testdata()
        .join("sigstore/conformance/extra/cosign-v3-oci-signature.sigstore.json")
        .display()
        .to_string();
    let identity = "https://github.com/kubewarden/kubewarden-controller/.github/workflows/release.yml@refs/tags/v1.34.0";
    let issuer = "https://token.actions.githubusercontent.com";
    let digest = "sha256:c811d58de79c92f03214e63aa339484e488d694ae8a6283b5f3f17a9faf50172";
    let verify = |digest: &str, identity: &str, issuer: &str| {
        desk.run(&[
            "verify",
            "--now",
            SIGSTORE_NOW,
            "--bundle",
            &bundle,
            "--digest",
            digest,
            "--certificate-identity",
            identity,
            "--certificate-oidc-issuer",
            issuer,
        ])
    };
    verify(digest, identity, issuer).exits(0).says("verified").says(identity);
    verify(digest, &identity[..identity.len() - 2], issuer).exits(1).says("signature-identity");
    verify(digest, identity, "https://accounts.google.com").exits(1).says("signature-issuer");
    verify(&digest.replace("c8", "c9"), identity, issuer).exits(1).says("signature-subject");
}

#[test]
fn samples_of_cosign_2_verify_in_both_formats_by_key() {
    let desk = Desk::new();
    let layout = format!("layout:{}", testdata().join("layouts/cosign").display());
    let key = testdata().join("layouts/cosign.pub").display().to_string();
    desk.run(&["keygen", "--no-password", "--output", "other"]).exits(0);
    let image = format!("{layout}:demo");
    let verify = |key: &str, more: &[&str]| {
        desk.run(&[&["verify", "--now", NOW, &image, "--key", key][..], more].concat())
    };
    let run = verify(&key, &["--insecure-ignore-tlog", "--format", "json"]).exits(0);
    let document: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let schema = testdata().join("../docs/reference/schemas/verify-v1.schema.json");
    let schema: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let evidence = document["images"][0]["policies"][0]["authorities"][0]["evidence"].as_array();
    let mut formats: Vec<&str> =
        evidence.unwrap().iter().map(|found| found["format"].as_str().unwrap()).collect();
    formats.sort_unstable();
    assert_eq!(formats, ["bundle", "legacy-signature"]);
    verify(&key, &[]).exits(1).says("signature-tlog-missing");
    verify("other.pub", &["--insecure-ignore-tlog"]).exits(1).says("signature-other-key");
}

#[test]
fn samples_by_certificate_verify_under_their_root_only() {
    let desk = Desk::new();
    let samples = testdata().join("sigstore/samples/keyless");
    let root = samples.join("trusted_root.json").display().to_string();
    let manifest = testdata().join("sigstore/samples/component-manifest.json");
    let manifest = manifest.display().to_string();
    let identity = "https://github.com/example/app/.github/workflows/release.yml@refs/heads/main";
    let issuer = "https://token.actions.githubusercontent.com";
    for (name, more) in [
        ("dsse-rekor", &[][..]),
        ("msg-rekor", &[]),
        ("dsse-rekor-tsa", &["--use-signed-timestamps"]),
        ("dsse-tsa", &["--insecure-ignore-tlog", "--use-signed-timestamps"]),
    ] {
        let bundle = samples.join(format!("{name}.sigstore.json")).display().to_string();
        let signer = ["--certificate-identity", identity, "--certificate-oidc-issuer", issuer];
        let about = ["verify", "--now", SIGSTORE_NOW, "--bundle", &bundle, "--artifact", &manifest];
        let with_root = [&about[..], &signer, more, &["--trusted-root", &root]].concat();
        desk.run(&with_root).exits(0).says("verified");
        // The public-good root knows none of these authorities.
        desk.run(&[&about[..], &signer, more].concat()).exits(1);
    }
}

#[test]
fn what_is_written_is_not_made_of_what_a_mirror_says() {
    let registry = Registry::start_blocking(Options::old());
    let copy = Registry::start_blocking(Options::old());
    let desk = Desk::new();
    let image = format!("{}/team/ping:1.0", registry.host());
    signed(&desk, &image);
    // The mirror has the image and none of its signatures.
    let mirrored = format!("{}/team/ping:1.0", copy.host());
    let push = ["push", &component("http-client.wasm"), "--created", NOW];
    desk.run(&[&push[..], &[&mirrored]].concat()).exits(0);
    let mirror = format!("{}={}", registry.host(), copy.host());
    desk.run(&["keygen", "--no-password", "--output", "second"]).exits(0);
    let sign = ["sign", "--now", NOW, "--key", "second.key", &image, "--mirror", &mirror];
    desk.run(&sign).exits(0);
    for key in ["ours.pub", "second.pub"] {
        desk.run(&["verify", "--now", NOW, &image, "--key", key, "--insecure-ignore-tlog"])
            .exits(0);
    }
}
