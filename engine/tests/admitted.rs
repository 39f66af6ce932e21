//! Allowing decisions, and what they admit.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests may fail loudly")]

use ambit_engine::admitted::{Admitted, Link, NotAdmitted};
use ambit_engine::decision::Verdict;
use ambit_testing::admit::{Reviewed, bare, manifest};

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("text that assembles")
}

fn importing(name: &str) -> Vec<u8> {
    component(&format!("(component (import \"{name}\" (instance)))"))
}

fn workload(resources: &str, interfaces: &str) -> String {
    format!(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata: {{name: demo, namespace: team}}
spec:
  hostInterfaces: [{interfaces}]
  components:
  - name: one
    image: registry.example/one@sha256:{}
    localResources: {{{resources}}}
",
        "0".repeat(64)
    )
}

fn admitted(reviewed: Reviewed) -> Admitted {
    let findings = reviewed.findings;
    reviewed.admitted.unwrap_or_else(|error| panic!("{error}: {findings:#?}"))
}

fn link(admitted: &Admitted, track: &str) -> Option<Link> {
    let component = admitted.components().first().expect("a component");
    component.plan().imports().iter().find(|i| i.track == track).map(|i| i.link)
}

fn refusal(reviewed: Reviewed) -> (String, String) {
    match reviewed.admitted {
        Err(NotAdmitted::Imports(refusals)) => {
            let first = refusals.first().expect("a refusal");
            (first.code.to_owned(), first.to_string())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_denied_workload_admits_nothing() {
    let text = workload("volumeMounts: [{name: root, mountPath: /data}]", "")
        .replace("  components:", "  volumes: [{name: root, hostPath: {path: /}}]\n  components:");
    let reviewed = manifest(&text, &[("one", &importing("wasi:filesystem/preopens@0.2.0"))]);
    match reviewed.admitted {
        Err(NotAdmitted::Decision(Verdict::Deny)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_component_is_admitted_with_the_digest_of_its_bytes() {
    let bytes = importing("wasi:io/error@0.2.0");
    let admitted = admitted(bare("one", &bytes));
    let component = admitted.components().first().expect("a component");
    assert_eq!(*component.digest(), ambit_engine::digest::Digest::of(&bytes));
    assert_eq!(link(&admitted, "wasi:io/error@0.2"), Some(Link::Granted));
}

#[test]
fn versions_of_one_track_have_one_plan() {
    for version in ["0.2.0", "0.2.6", "0.2.12"] {
        let name = format!("wasi:http/outgoing-handler@{version}");
        let admitted = admitted(bare("one", &importing(&name)));
        assert_eq!(link(&admitted, "wasi:http/outgoing-handler@0.2"), Some(Link::Inert), "{name}");
    }
    let (code, _) =
        refusal(bare("one", &importing("wasi:http/outgoing-handler@0.2.0-rc-2023-11-10")));
    assert_eq!(code, "interface-not-served");
}

#[test]
fn an_interface_that_nobody_knows_is_refused_by_name() {
    let (code, message) = refusal(bare("one", &importing("acme:db/query@1.0.0")));
    assert_eq!(code, "interface-unknown");
    assert!(message.contains("`acme:db/query@1.0.0`"), "{message}");
}

#[test]
fn what_is_not_granted_is_inert_where_a_component_can_start_without_it() {
    let inert = [
        "wasi:filesystem/preopens@0.2.0",
        "wasi:filesystem/types@0.2.0",
        "wasi:http/outgoing-handler@0.2.0",
        "wasi:sockets/tcp@0.2.0",
        "wasi:sockets/ip-name-lookup@0.2.0",
    ];
    for name in inert {
        let admitted = admitted(bare("one", &importing(name)));
        let track = name.trim_end_matches(".0");
        assert_eq!(link(&admitted, track), Some(Link::Inert), "{name}");
    }
}

#[test]
fn a_host_in_the_manifest_turns_inert_into_granted() {
    let text = workload("allowedHosts: [\"https://api.example.com\"]", "");
    let bytes = importing("wasi:http/outgoing-handler@0.2.0");
    let admitted = admitted(manifest(&text, &[("one", &bytes)]));
    assert_eq!(link(&admitted, "wasi:http/outgoing-handler@0.2"), Some(Link::Granted));
    let component = admitted.components().first().expect("a component");
    let line = component.host_lines().first().expect("a line");
    assert_eq!(
        (line.text.as_str(), line.file.as_str()),
        ("https://api.example.com", "workload.yaml")
    );
    assert!(line.line > 0);
}

#[test]
fn a_host_service_is_linked_only_where_the_manifest_names_it() {
    let bytes = importing("wasi:keyvalue/store@0.2.0-draft");
    let (code, _) = refusal(manifest(&workload("", ""), &[("one", &bytes)]));
    assert_eq!(code, "interface-not-granted");
    let named = "{namespace: wasi, package: keyvalue, version: 0.2.0-draft, interfaces: [store]}";
    let admitted = admitted(manifest(&workload("", named), &[("one", &bytes)]));
    assert_eq!(link(&admitted, "wasi:keyvalue/store@0.2.0-draft"), Some(Link::Granted));
}

#[test]
fn a_world_level_function_is_refused() {
    let bytes = component("(component (import \"do-it\" (func)))");
    let (code, _) = refusal(bare("one", &bytes));
    assert_eq!(code, "import-kind");
}

#[test]
fn wasi_0_3_is_refused_by_its_own_code() {
    let (code, _) = refusal(bare("one", &importing("wasi:clocks/monotonic-clock@0.3.0")));
    assert_eq!(code, "executor-wasi-p3");
}

#[test]
fn values_of_the_manifest_are_kept_and_never_shown() {
    let text =
        workload("environment: {config: {TOKEN: s3cr3t-value}}, config: {k: s3cr3t-value}", "");
    let bytes = importing("wasi:cli/environment@0.2.0");
    let reviewed = manifest(&text, &[("one", &bytes)]);
    // Whether the shipped packs let a literal secret pass is theirs to say.
    assert!(!format!("{reviewed:?}").contains("s3cr3t-value"));
    let text = text.replace("TOKEN", "GREETING");
    let admitted = admitted(manifest(&text, &[("one", &bytes)]));
    assert!(!format!("{admitted:?}").contains("s3cr3t-value"));
    let component = admitted.components().first().expect("a component");
    match component.environment().first().map(|v| &v.value) {
        Some(ambit_engine::admitted::ValueSource::Literal(value)) => {
            assert_eq!(value.reveal(), "s3cr3t-value");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_version_of_a_served_interface_is_refused_by_name() {
    let (code, message) = refusal(bare("one", &importing("wasi:keyvalue/store@0.2.0-draft2")));
    assert_eq!(code, "interface-not-served");
    assert!(message.contains("0.2.0-draft"), "{message}");
}

#[test]
fn a_child_process_gets_what_was_admitted() {
    let text = workload(
        "allowedHosts: [\"https://api.example.com:8443\", \"!*.evil.example\"], allowedIpNameLookups: [api.example.com], environment: {config: {GREETING: s3cr3t-value}, secretFrom: [{name: db}]}, config: {k: v}",
        "{namespace: wasi, package: config, version: 0.2.0-rc.1, interfaces: [store], config: {a: b}}",
    )
    .replace("localResources: {", "localResources: {volumeMounts: [{name: scratch, mountPath: /tmp}, {name: data, mountPath: /data, readOnly: true}], ")
    .replace("  components:", "  volumes: [{name: scratch, ephemeral: {}}, {name: data, hostPath: {path: /srv/data}}]\n  components:");
    let bytes = component(
        "(component (import \"wasi:cli/environment@0.2.0\" (instance)) (import \"wasi:config/store@0.2.0-rc.1\" (instance)))",
    );
    let admitted = admitted(manifest(&text, &[("one", &bytes)]));
    let sent = admitted.to_child();
    let received = Admitted::from_parent(&sent).expect("it reads back");
    assert_eq!(received.to_child(), sent);
    // Places of interfaces stay behind; nothing that decides does.
    assert_eq!(format!("{:#?}", received.components()), format!("{:#?}", admitted.components()));
    assert!(String::from_utf8_lossy(&sent).contains("s3cr3t-value"));
    for cut in [0, 1, sent.len() / 2, sent.len() - 1] {
        assert!(Admitted::from_parent(&sent[..cut]).is_err(), "{cut}");
    }
}
