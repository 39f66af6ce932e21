//! Evidence that tries to be taken for more than it is, to steer who reads about it, or to cost
//! more than it is worth.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail loudly"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use ambit_engine::digest::Digest;
use ambit_testing::registry::{Action, Fault, Options, Registry};
use serde_json::{Value, json};

const NOW: &str = "2026-12-01T00:00:00Z";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

struct Desk(tempfile::TempDir);

struct Run {
    exit: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.exit, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    fn says(self, words: &str) -> Self {
        let all = format!("{}{}", self.stdout, self.stderr);
        assert!(all.contains(words), "`{words}` in {all}");
        self
    }

    fn does_not_say(self, words: &str) -> Self {
        let all = format!("{}{}", self.stdout, self.stderr);
        assert!(!all.contains(words), "`{words}` in {all}");
        self
    }
}

impl Desk {
    /// A folder with two keys, and a component in `layout:store:1.0`.
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a folder"));
        desk.run(&["keygen", "--no-password", "--output", "ours"]).exits(0);
        desk.run(&["keygen", "--no-password", "--output", "other"]).exits(0);
        desk.push("layout:store:1.0");
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_ambit"))
            .env_clear()
            .env("COLUMNS", "100")
            .env("HOME", self.0.path())
            .current_dir(self.0.path())
            .args(arguments)
            .output()
            .expect("the command runs");
        Run {
            exit: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    fn push(&self, image: &str) {
        let bytes = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../testdata/components/http-client.wasm")
            .display()
            .to_string();
        self.run(&["push", &bytes, image, "--created", NOW]).exits(0);
    }

    fn sign(&self, image: &str, more: &[&str]) {
        self.sign_by("ours.key", image, more);
    }

    fn sign_by(&self, key: &str, image: &str, more: &[&str]) {
        let sign = ["sign", "--now", NOW, "--key", key, image];
        self.run(&[&sign[..], more].concat()).exits(0);
    }

    fn check(&self, file: &str, more: &[&str]) -> Run {
        self.run(&[&["check", "--now", NOW, file][..], more].concat())
    }

    fn verify(&self, image: &str, trust: &str) -> Run {
        self.run(&["verify", "--now", NOW, image, "--trust", trust])
    }

    /// A policy for every image, that asks for a key's signature.
    fn policy(&self, name: &str, key: &str, spec: &str) -> String {
        let pem = self.read(key);
        let pem: String = pem.lines().map(|line| format!("        {line}\n")).collect();
        format!(
            "apiVersion: ambit.dev/v1alpha1
kind: TrustPolicy
metadata: {{name: {name}}}
spec:
  images: [{{glob: \"**\"}}]
{spec}  authorities:
  - name: key
    signatureFormat: any
    key:
      data: |
{pem}    ctlog: {{require: none}}
"
        )
    }

    fn workload(&self, name: &str, images: &[&str]) {
        let components: String = images
            .iter()
            .enumerate()
            .map(|(number, image)| format!("  - {{name: c{number}, image: {image}}}\n"))
            .collect();
        self.write(
            name,
            &format!(
                "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata: {{name: tools}}
spec:
  components:
{components}"
            ),
        );
    }

    /// Puts a blob into the layout `store`.
    fn blob(&self, bytes: &[u8]) -> String {
        let digest = Digest::of(bytes).to_string();
        let path = self.path("store/blobs/sha256").join(&digest["sha256:".len()..]);
        std::fs::write(path, bytes).expect("a blob");
        digest
    }

    fn index(&self) -> Value {
        serde_json::from_str(&self.read("store/index.json")).expect("an index")
    }

    fn list(&self, digest: &str, size: usize) {
        let mut index = self.index();
        index["manifests"].as_array_mut().unwrap().push(json!({
            "mediaType": MANIFEST, "digest": digest, "size": size
        }));
        self.write("store/index.json", &index.to_string());
    }
}

#[test]
fn line_end_in_the_name_of_a_layout_leads_around_no_policy() {
    let desk = Desk::new();
    desk.write("trust.yaml", &desk.policy("release", "ours.pub", ""));
    std::fs::rename(desk.path("store"), desk.path("sto\nre")).unwrap();
    desk.workload("workload.yaml", &["\"layout:sto\\nre:1.0\""]);
    desk.check("workload.yaml", &["--trust", "trust.yaml"]).exits(1).says("deny[sign-policy]");
    desk.verify("layout:sto\nre:1.0", "trust.yaml").exits(1).says("sign-required");
}

#[test]
fn policy_that_only_warns_calls_nothing_verified() {
    let desk = Desk::new();
    desk.write("warn.yaml", &desk.policy("later", "ours.pub", "  mode: warn\n"));
    desk.verify("layout:store:1.0", "warn.yaml").exits(1).says("not verified");
    desk.check("layout:store:1.0", &["--trust", "warn.yaml"])
        .exits(0)
        .says("warn[sign-policy-warn]");
    desk.sign("layout:store:1.0", &[]);
    desk.verify("layout:store:1.0", "warn.yaml").exits(0);
}

#[test]
fn every_policy_has_its_say_and_those_that_warn_only_warn() {
    let desk = Desk::new();
    desk.sign("layout:store:1.0", &[]);
    let ours = |spec: &str| desk.policy("ours", "ours.pub", spec);
    let other = |spec: &str| desk.policy("other", "other.pub", spec);
    let warn = "  mode: warn\n";
    for (first, second, exit, word) in [
        (ours(""), other(warn), 0, "warn[sign-policy-warn]"),
        (ours(warn), other(""), 1, "deny[sign-policy]"),
        (ours(""), other(""), 1, "deny[sign-policy]"),
    ] {
        desk.write("trust.yaml", &format!("{first}---\n{second}"));
        desk.check("layout:store:1.0", &["--trust", "trust.yaml"]).exits(exit).says(word);
        desk.verify("layout:store:1.0", "trust.yaml").exits(exit);
    }
}

#[test]
fn whom_only_a_trial_names_is_trusted_with_no_fact_beside_an_enforced_policy() {
    let desk = Desk::new();
    desk.sign("layout:store:1.0", &[]);
    desk.write("bom.json", "{\"bomFormat\": \"CycloneDX\"}");
    let bom = ["--type", "cyclonedx", "--predicate", "bom.json", "--now", NOW];
    let attest = ["attest", "layout:store:1.0", "--key", "other.key"];
    desk.run(&[&attest[..], &bom].concat()).exits(0);
    let ours = desk.policy("ours", "ours.pub", "");
    for (spec, said) in [("  mode: warn\n", true), ("  require: {authorities: any}\n", false)] {
        let other = desk.policy("other", "other.pub", spec);
        desk.write("trust.yaml", &format!("{ours}---\n{other}"));
        let run = desk.check("layout:store:1.0", &["--trust", "trust.yaml"]);
        if said {
            run.exits(0).says("warn[attest-sbom]");
        } else {
            // Enforced, the second policy misses a signature, and its signer's list counts.
            run.exits(1).does_not_say("warn[attest-sbom]");
        }
    }
}

#[test]
fn one_key_in_two_formats_is_one_signer() {
    let desk = Desk::new();
    let first = desk.policy("two", "ours.pub", "  require: {threshold: 2}\n");
    let second = desk.policy("two", "other.pub", "");
    let second = second.split_once("authorities:\n").unwrap().1.replace("name: key", "name: more");
    desk.write("trust.yaml", &format!("{first}{second}"));
    desk.sign("layout:store:1.0", &[]);
    desk.sign("layout:store:1.0", &["--legacy"]);
    desk.sign("layout:store:1.0", &["-a", "again=yes"]);
    desk.verify("layout:store:1.0", "trust.yaml").exits(1).says("1 of 2 distinct signers");
    desk.check("layout:store:1.0", &["--trust", "trust.yaml"]).exits(1).says("deny[sign-policy]");
    desk.sign_by("other.key", "layout:store:1.0", &[]);
    desk.verify("layout:store:1.0", "trust.yaml").exits(0);
}

#[test]
fn attestation_out_of_time_is_no_fact() {
    let desk = Desk::new();
    desk.write("bom.json", "{\"bomFormat\": \"CycloneDX\"}");
    let attest = ["attest", "--now", NOW, "--key", "ours.key", "layout:store:1.0"];
    let bom = ["--predicate", "bom.json", "--type", "cyclonedx"];
    desk.run(&[&attest[..], &bom].concat()).exits(0);
    let policy = desk.policy("release", "ours.pub", "");
    desk.write("trust.yaml", &policy);
    let check = || desk.check("layout:store:1.0", &["--trust", "trust.yaml"]).exits(1);
    check().does_not_say("attest-sbom");
    // Nothing says when it was made, so it may be of any time.
    for bound in ["maxAge: 24h", "notBefore: 2026-01-01T00:00:00Z"] {
        desk.write("trust.yaml", &format!("{policy}    {bound}\n"));
        check().says("attest-sbom");
    }
}

#[test]
fn decision_is_attested_about_the_image_and_no_file_of_its_name() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    desk.write("trust.yaml", &desk.policy("release", "ours.pub", ""));
    let image = format!("{}/team/app", registry.host());
    desk.push(&format!("{image}:1.0"));
    let manifest = registry.manifest("team/app", "1.0").expect("a manifest");
    let pinned = format!("{image}@{}", Digest::of(&manifest));
    std::fs::create_dir_all(desk.path(&pinned).parent().unwrap()).unwrap();
    let wasm =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/components/http-client.wasm");
    std::fs::copy(wasm, desk.path(&pinned)).unwrap();
    let attest = ["attest", "--now", NOW, "--key", "ours.key", "--decision", &pinned];
    // The image isn't signed, which is what the policy asks for.
    desk.run(&[&attest[..], &["--trust", "trust.yaml"]].concat()).exits(1);
}

#[test]
fn local_bytes_are_reported_as_not_checked() {
    let desk = Desk::new();
    desk.write("trust.yaml", &desk.policy("release", "ours.pub", ""));
    desk.workload("workload.yaml", &["layout:store:1.0"]);
    desk.check("workload.yaml", &["--trust", "trust.yaml"]).exits(1);
    let wasm = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata/components/http-client.wasm")
        .display()
        .to_string();
    let local = ["--trust", "trust.yaml", "--component", &format!("c0={wasm}")];
    desk.check("workload.yaml", &local).says("evidence-not-checked").says("sign-policy");
    let strict = [&local[..], &["--profile", "strict"]].concat();
    desk.check("workload.yaml", &strict).exits(2).says("error[evidence-not-checked]");
}

#[test]
fn offline_never_asks_for_a_trust_root() {
    let desk = Desk::new();
    desk.write("trust.yaml", &desk.policy("release", "ours.pub", ""));
    for command in ["verify", "check"] {
        let arguments = [command, "layout:store:1.0", "--trust", "trust.yaml"];
        let network = ["--offline", "--update-trust-root"];
        desk.run(&[&arguments[..], &network].concat()).exits(2).says("--update-trust-root");
    }
}

/// A referrer whose bundle is larger than is read.
fn large_referrer(desk: &Desk) {
    let subject = desk.index()["manifests"][0].clone();
    let large = vec![b' '; 11 << 20];
    let layer = desk.blob(&large);
    let config = desk.blob(b"{}");
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": BUNDLE,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
        "layers": [{"mediaType": BUNDLE, "digest": layer, "size": large.len()}],
        "subject": {
            "mediaType": MANIFEST, "digest": subject["digest"], "size": subject["size"]
        }
    })
    .to_string();
    desk.list(&desk.blob(manifest.as_bytes()), manifest.len());
}

#[test]
fn referrer_over_a_limit_neither_blocks_nor_helps() {
    let desk = Desk::new();
    desk.write("trust.yaml", &desk.policy("release", "ours.pub", ""));
    large_referrer(&desk);
    // What isn't read might be the signature.
    desk.check("layout:store:1.0", &["--trust", "trust.yaml"])
        .exits(2)
        .says("error[evidence-unknown]");
    desk.verify("layout:store:1.0", "trust.yaml").exits(2);
    desk.sign("layout:store:1.0", &[]);
    desk.check("layout:store:1.0", &["--trust", "trust.yaml"]).exits(0);
    desk.verify("layout:store:1.0", "trust.yaml").exits(0);
    // Nobody is satisfied where no policy is for the image.
    desk.check("layout:store:1.0", &[]).exits(2).says("error[evidence-unknown]");
}

#[test]
fn layout_is_searched_for_referrers_up_to_a_limit() {
    let desk = Desk::new();
    desk.write("trust.yaml", &desk.policy("release", "ours.pub", ""));
    desk.sign("layout:store:1.0", &[]);
    let size = 4 << 20;
    let mut text = vec![b' '; size];
    // The same manifest many times is read once.
    let digest = desk.blob(&text);
    let mut index = desk.index();
    let entries = index["manifests"].as_array_mut().unwrap();
    entries.extend((0..20).map(|_| json!({"mediaType": MANIFEST, "digest": digest, "size": size})));
    desk.write("store/index.json", &index.to_string());
    desk.verify("layout:store:1.0", "trust.yaml").exits(0);
    for number in 0..16_u8 {
        text[0] = b'a' + number;
        desk.list(&desk.blob(&text), size);
    }
    desk.check("layout:store:1.0", &["--trust", "trust.yaml"]).exits(2).says("is over the limit");
}

#[test]
fn text_of_a_publisher_steers_no_terminal() {
    let desk = Desk::new();
    let read = |digest: &Value| {
        let name = digest.as_str().unwrap()["sha256:".len()..].to_owned();
        serde_json::from_str::<Value>(&desk.read(&format!("store/blobs/sha256/{name}"))).unwrap()
    };
    let mut index = desk.index();
    let mut manifest = read(&index["manifests"][0]["digest"]);
    let mut config = read(&manifest["config"]["digest"]);
    config["component"]["imports"] = json!(["x\r\n\n::error::y\nallowed\u{1b}[2J\u{202e}z"]);
    let config = config.to_string();
    manifest["config"]["digest"] = desk.blob(config.as_bytes()).into();
    manifest["config"]["size"] = config.len().into();
    let manifest = manifest.to_string();
    index["manifests"][0]["digest"] = desk.blob(manifest.as_bytes()).into();
    index["manifests"][0]["size"] = manifest.len().into();
    desk.write("store/index.json", &index.to_string());
    for format in ["human", "github", "markdown", "junit"] {
        let run =
            desk.check("layout:store:1.0", &["--format", format]).exits(0).says("image-claims");
        for text in ["\u{1b}", "\u{202e}", "\r", "\n::error::y", "\nallowed"] {
            let run = format!("{}{}", run.stdout, run.stderr);
            assert!(!run.contains(text), "{format}: {text:?} in {run:?}");
        }
    }
}

#[test]
fn tag_is_asked_for_once_and_two_runs_are_equal() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    desk.write("trust.yaml", &desk.policy("release", "ours.pub", ""));
    let image = format!("{}/team/app:1.0", registry.host());
    desk.push(&image);
    desk.sign(&image, &[]);
    desk.sign(&image, &["--legacy"]);
    desk.workload("a.yaml", &[&image, &image]);
    desk.workload("b.yaml", &[&image]);
    let check = || {
        registry.clear_log();
        let more = ["b.yaml", "--trust", "trust.yaml", "--format", "json"];
        let run = desk.check("a.yaml", &more).exits(0);
        assert_eq!(registry.count("GET", "/v2/team/app/manifests/1.0"), 1);
        assert_eq!(registry.count("HEAD", "/v2/team/app/manifests/1.0"), 0);
        run.stdout
    };
    assert_eq!(check(), check());
    registry.clear_log();
    desk.verify(&image, "trust.yaml").exits(0);
    assert_eq!(registry.count("GET", "/v2/team/app/manifests/1.0"), 1);
    // What is pinned and what nobody asks about needs no registry.
    registry.clear_log();
    desk.run(&["pin", "--check", "a.yaml"]).exits(1);
    assert!(registry.log().is_empty());
}

#[test]
fn outage_of_many_referrers_is_told_in_few_words() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let image = format!("{}/team/app:1.0", registry.host());
    desk.push(&image);
    let manifest = registry.manifest("team/app", "1.0").expect("a manifest");
    let subject = Digest::of(&manifest).to_string();
    let descriptors = (0..60_u8)
        .map(|number| {
            let digest = Digest::of(&[number]).to_string();
            json!({"mediaType": MANIFEST, "artifactType": BUNDLE, "digest": digest, "size": 500})
        })
        .collect();
    registry.plant_referrers(&subject, descriptors);
    let run = desk.check(&image, &[]).exits(2).says("evidence-unknown").says("and 56 more");
    assert!(run.stdout.len() < 4096, "{}", run.stdout);
}

#[test]
fn outage_of_a_further_source_is_no_answer() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let source = format!("    source: [{{oci: {}/sigs/app}}]\n", registry.host());
    let policy = format!("{}{source}", desk.policy("release", "ours.pub", ""));
    desk.write("trust.yaml", &policy);
    desk.verify("layout:store:1.0", "trust.yaml").exits(1);
    let down = Action::status(403);
    registry.fault(Fault::each("GET", "/v2/sigs/app/*", down));
    desk.verify("layout:store:1.0", "trust.yaml").exits(2);
    desk.check("layout:store:1.0", &["--trust", "trust.yaml"])
        .exits(2)
        .says("error[evidence-unknown]")
        .does_not_say("sign-required]");
}

#[test]
fn pin_keeps_every_byte_that_is_no_image() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let image = format!("{}/team/app:1.0", registry.host());
    desk.push(&image);
    let manifest = registry.manifest("team/app", "1.0").expect("a manifest");
    let digest = format!("@{}", Digest::of(&manifest));
    desk.workload("w.yaml", &[&image]);
    let plain = desk.read("w.yaml");
    let flow = format!(
        "{{apiVersion: runtime.wasmcloud.dev/v1alpha1, kind: Workload, metadata: {{name: x}}, \
         spec: {{components: [{{name: é, image: {image}}}]}}}}"
    );
    let anchored =
        plain.replace(&image, &format!("&i {image}")) + "  - {name: b, image: *i} # and again\n";
    let listed = format!("{{apiVersion: v1, kind: List, items: [{flow}]}}");
    for (name, text, count) in [
        ("crlf.yaml", plain.replace('\n', "\r\n"), 1),
        ("bom.yaml", format!("\u{feff}{plain}"), 1),
        ("flow.yaml", flow, 1),
        ("anchor.yaml", anchored, 1),
        ("list.yaml", listed, 1),
        ("several.yaml", format!("# {image}\n{plain}---\n{plain}...\n"), 2),
        ("open.yaml", plain.trim_end().to_owned(), 1),
    ] {
        desk.write(name, &text);
        desk.run(&["pin", name]).exits(0);
        let after = desk.read(name);
        assert_eq!(after.matches(&digest).count(), count, "{name}: {after}");
        assert_eq!(after.replace(&digest, ""), text, "{name}");
        desk.run(&["pin", "--check", name]).exits(0);
    }
}

#[test]
fn pin_leaves_a_file_alone_that_is_read_only() {
    let registry = Registry::start_blocking(Options::default());
    let desk = Desk::new();
    let image = format!("{}/team/app:1.0", registry.host());
    desk.push(&image);
    desk.workload("w.yaml", &[&image]);
    let before = desk.read("w.yaml");
    let mut permissions = std::fs::metadata(desk.path("w.yaml")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(desk.path("w.yaml"), permissions).unwrap();
    desk.run(&["pin", "w.yaml"]).exits(2).says("error[file-not-written]").says("read-only");
    assert_eq!(desk.read("w.yaml"), before);
}

#[cfg(unix)]
#[test]
fn private_key_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new();
    let mode = std::fs::metadata(desk.path("ours.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    desk.run(&["keygen", "--no-password", "--output", "ours"]).exits(2).says("key-exists");
}
