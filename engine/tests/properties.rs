//! What holds whatever the input is.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "helpers of tests read files and may fail loudly"
)]

use std::sync::LazyLock;

use ambit_engine::capability::CapabilitySet;
use ambit_engine::catalogue::{Catalogue, Verb};
use ambit_engine::component::{CodeCheck, Component, HintScan, ReadOptions};
use ambit_engine::config::Config;
use ambit_engine::decision::Verdict;
use ambit_engine::document::{DocumentLimits, Format};
use ambit_engine::input::Request;
use ambit_engine::limits::Limits;
use ambit_engine::policy::{Parameters, PolicyLimits, PolicySet, Profile, embedded};
use ambit_engine::reach::{Analysis, Bytes, Reach, Via};
use ambit_engine::review::{Mode, Subject, Terms, review};
use ambit_engine::workload::{self, Target, Workload};
use proptest::prelude::*;

static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::builtin().expect("the built-in catalogue"));

static POLICIES: LazyLock<PolicySet> = LazyLock::new(|| {
    let packs = embedded(&PolicyLimits::default()).expect("the shipped packs");
    PolicySet::prepare(packs, &Parameters::new(), PolicyLimits::default()).expect("packs")
});

static SAMPLES: LazyLock<Vec<(Component, CapabilitySet)>> = LazyLock::new(|| {
    ["http-client", "socket-client", "dns-only", "file-writer", "env-reader", "dummy-everything"]
        .iter()
        .map(|name| {
            let path = format!("{}/../testdata/components/{name}.wasm", env!("CARGO_MANIFEST_DIR"));
            let bytes = std::fs::read(path).expect("a sample");
            let component = Component::read(&bytes, &Limits::default()).expect("a valid sample");
            let set = CapabilitySet::of(&component, &CATALOGUE);
            (component, set)
        })
        .collect()
});

fn host() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("*"),
        Just("api.example.com"),
        Just("*.example.com"),
        Just("*.com"),
        Just("*.amazonaws.com"),
        Just("10.0.0.7"),
        Just("169.254.169.254"),
        Just("127.0.0.1"),
        Just("host.wasmcloud.internal"),
        Just("203.0.113.9"),
    ];
    let scheme = prop_oneof![Just(""), Just("https://"), Just("http://")];
    let port = prop_oneof![Just(""), Just(":443"), Just(":8443")];
    (scheme, name, port).prop_map(|(scheme, name, port)| match name {
        "*" => "*".to_owned(),
        name => format!("{scheme}{name}{port}"),
    })
}

fn document(hosts: &[String], folder: Option<&str>) -> String {
    let list: String = hosts.iter().map(|host| format!("\n      - \"{host}\"")).collect();
    let list = if list.is_empty() { " []".to_owned() } else { list };
    let (volumes, mounts) = match folder {
        Some(path) => (
            format!("  volumes:\n  - name: v\n    hostPath: {{path: {path}}}\n"),
            "\n      volumeMounts: [{name: v, mountPath: /v}]",
        ),
        None => (String::new(), ""),
    };
    format!(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: Workload\nmetadata: {{name: w}}\nspec:\n{volumes}  components:\n  - name: c\n    image: registry.example/a/b:1\n    localResources:\n      allowedHosts:{list}{mounts}\n      environment: {{config: {{A: b}}}}\n"
    )
}

fn read(text: &str, target: Target) -> Workload {
    let read =
        workload::read(text.as_bytes(), Format::Yaml, Some(target), &DocumentLimits::default());
    read.expect("a workload").workloads.remove(0)
}

fn verdict(text: &str, sample: usize) -> Verdict {
    let workload = read(text, Target::WasmCloud);
    let (component, capabilities) = &SAMPLES[sample];
    let bytes = [Bytes::Present(Analysis { component, capabilities })];
    let terms = Terms {
        mode: Mode::Ci,
        now: "2026-12-01T00:00:00Z",
        target: None,
        profile: Profile::Baseline,
        config: &Config::default(),
        policies: &POLICIES,
        catalogue: &CATALOGUE,
        request: Request::default(),
        previous: None,
    };
    review(Subject { workload: &workload, bytes: &bytes, supplies: &[], file: "w.yaml" }, &terms)
        .decision
        .verdict
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn reach_is_within_capabilities_and_under_ambit_within_grants(
        hosts in proptest::collection::vec(host(), 0..4),
        folder in proptest::option::of(Just("/srv/data")),
        sample in 0_usize..6,
        target in prop_oneof![Just(Target::WasmCloud), Just(Target::Ambit)],
    ) {
        let workload = read(&document(&hosts, folder), target);
        let (component, capabilities) = &SAMPLES[sample];
        let bytes = [Bytes::Present(Analysis { component, capabilities })];
        let reach = Reach::of(&workload, &bytes, target, &CATALOGUE);
        for entry in &reach.components[0].entries {
            let offered = entry.verb == Verb::ServeRequests;
            let known = if offered { &capabilities.offered } else { &capabilities.declared };
            prop_assert!(known.contains(&entry.capability), "{entry:?}");
            if target == Target::Ambit {
                prop_assert!(entry.grant.is_some() && entry.via == Via::Grant, "{entry:?}");
            }
            if entry.grant.is_none() {
                prop_assert!(entry.via == Via::TargetDefault, "{entry:?}");
            }
        }
    }

    #[test]
    fn adding_an_allow_entry_never_turns_deny_into_allow(
        hosts in proptest::collection::vec(host(), 0..4),
        extra in host(),
        folder in proptest::option::of(prop_oneof![Just("/srv/data"), Just("/etc")]),
        sample in 0_usize..6,
    ) {
        let before = verdict(&document(&hosts, folder), sample);
        let mut more = hosts;
        more.push(extra);
        let after = verdict(&document(&more, folder), sample);
        prop_assert!(!(before == Verdict::Deny && after == Verdict::Allow));
    }

    #[test]
    fn generated_components_never_panic(seed in proptest::collection::vec(any::<u8>(), 64..2048)) {
        let mut unstructured = wasm_smith_input(&seed);
        if let Ok(component) = wasm_smith::Component::new(wasm_smith::Config::default(), &mut unstructured) {
            let bytes = component.to_bytes();
            let options = ReadOptions { code: CodeCheck::Validate, hints: HintScan::Collect };
            if let Ok(read) = Component::read_with(&bytes, &Limits::default(), options) {
                let set = CapabilitySet::of(&read, &CATALOGUE);
                prop_assert!(set.linked.is_subset(&set.declared));
                // Every import stands in the set, whatever its sort.
                prop_assert_eq!(read.imports.len(), set.imports.len());
                for import in &set.imports {
                    prop_assert!(!import.declared.is_empty());
                }
            }
        }
    }

    #[test]
    fn changed_bytes_never_panic(at in 0_usize..28_000, value in any::<u8>(), length in 0_usize..28_873) {
        let path = format!("{}/../testdata/components/hello.wasm", env!("CARGO_MANIFEST_DIR"));
        let mut bytes = std::fs::read(path).expect("a sample");
        bytes[at] = value;
        let _ = Component::read(&bytes, &Limits::default());
        bytes.truncate(length);
        let _ = Component::read(&bytes, &Limits::default());
    }
}

fn wasm_smith_input(seed: &[u8]) -> arbitrary::Unstructured<'_> {
    arbitrary::Unstructured::new(seed)
}

#[test]
fn sockets_stay_open_under_wasmcloud_whatever_the_host_list_says() {
    let (component, capabilities) = &SAMPLES[1];
    let bytes = [Bytes::Present(Analysis { component, capabilities })];
    let text = document(&[], None);
    let reach = |target| Reach::of(&read(&text, target), &bytes, target, &CATALOGUE);
    let theirs = reach(Target::WasmCloud);
    let sockets: Vec<_> = theirs.by_verb(Verb::OpenSockets).collect();
    assert_eq!(sockets.len(), 1);
    assert_eq!(sockets[0].1.subject, "any non-loopback address");
    assert_eq!(reach(Target::Ambit).by_verb(Verb::OpenSockets).count(), 0);
}
