//! Workload documents in, reach and decisions out; a folder a case, and the documents of the wild.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests read files and may fail loudly"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ambit_engine::capability::CapabilitySet;
use ambit_engine::catalogue::Catalogue;
use ambit_engine::component::Component;
use ambit_engine::config::Config;
use ambit_engine::document::{self, DocumentLimits, Format, Node};
use ambit_engine::input::Request;
use ambit_engine::limits::Limits;
use ambit_engine::policy::{PolicyLimits, PolicySet, Profile, embedded};
use ambit_engine::reach::{Analysis, Bytes, LinkProblem, Reach};
use ambit_engine::report;
use ambit_engine::review::{Mode, Review, Subject, Terms, review};
use ambit_engine::workload::{self, Documents, Object, Role, Surroundings, Target};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(path)
}

fn catalogue() -> Catalogue {
    Catalogue::builtin().expect("the built-in catalogue")
}

fn component(name: &str) -> Component {
    let bytes = std::fs::read(testdata("components").join(name)).expect("a component");
    let bytes = if name.ends_with(".wat") {
        wat::parse_bytes(&bytes).expect("text that assembles").into_owned()
    } else {
        bytes
    };
    Component::read(&bytes, &Limits::default()).expect("a valid component")
}

fn documents(path: &Path, target: Option<Target>) -> Documents {
    let text = std::fs::read(path).expect("a document");
    workload::read(&text, Format::Auto, target, &DocumentLimits::default())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

struct Case {
    components: BTreeMap<String, String>,
    target: Option<Target>,
    profile: Profile,
    config: Config,
}

/// Reviews every workload of a file.
fn reviews(path: &Path, case: &Case) -> Vec<Review> {
    reviews_of(&documents(path, case.target), case)
}

fn reviews_of(found: &Documents, case: &Case) -> Vec<Review> {
    let catalogue = catalogue();
    let packs = embedded(&PolicyLimits::default()).expect("the shipped packs");
    let policies =
        PolicySet::prepare(packs, &case.config.parameters, PolicyLimits::default()).expect("packs");
    let terms = Terms {
        mode: Mode::Ci,
        now: "2026-12-01T00:00:00Z",
        target: case.target,
        profile: case.profile,
        config: &case.config,
        policies: &policies,
        catalogue: &catalogue,
        request: Request { operation: "CI".to_owned(), ..Request::default() },
        previous: None,
    };
    found
        .workloads
        .iter()
        .map(|workload| {
            let loaded: Vec<Option<(Component, CapabilitySet)>> = workload
                .components
                .iter()
                .map(|spec| {
                    let component = component(case.components.get(&spec.name)?);
                    let set = CapabilitySet::of(&component, &catalogue);
                    Some((component, set))
                })
                .collect();
            let bytes: Vec<Bytes<'_>> = loaded
                .iter()
                .map(|loaded| match loaded {
                    Some((component, capabilities)) => {
                        Bytes::Present(Analysis { component, capabilities })
                    }
                    None => Bytes::Absent("not at hand"),
                })
                .collect();
            review(
                Subject { workload, bytes: &bytes, supplies: &[], file: "workload.yaml" },
                &terms,
            )
        })
        .collect()
}

fn lines(review: &Review) -> Vec<String> {
    review
        .reach
        .components
        .iter()
        .flat_map(|component| &component.entries)
        .map(|entry| format!("{} {} {}", entry.verb.as_str(), entry.subject, entry.note))
        .collect()
}

fn strings(node: Option<&Node>) -> Vec<String> {
    node.and_then(Node::as_sequence)
        .unwrap_or_default()
        .iter()
        .map(|item| item.as_str().expect("a string").to_owned())
        .collect()
}

fn map(node: Option<&Node>) -> BTreeMap<String, String> {
    node.and_then(Node::as_mapping)
        .into_iter()
        .flatten()
        .map(|entry| (entry.key().to_owned(), entry.value().as_str().expect("a string").to_owned()))
        .collect()
}

#[test]
fn every_case_gets_its_verdict_and_its_cousin_the_other() {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(testdata("workloads/cases"))
        .expect("the folder of cases")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    assert!(folders.len() >= 16, "{folders:?}");
    let mut wrong = Vec::new();
    for folder in folders {
        let text = std::fs::read(folder.join("case.yaml")).expect("case.yaml");
        let case =
            document::parse(&text, Format::Yaml, &DocumentLimits::default()).expect("a case");
        let case = case[0].root();
        let mut config_text = String::new();
        for key in ["parameters", "enforcement"] {
            if let Some(node) = case.get(key) {
                config_text.push_str(&format!("{key}: {}\n", node.to_json()));
            }
        }
        let config = Config::read("ambit.yaml", config_text.as_bytes()).expect("a configuration");
        let profile = case.get("profile").and_then(Node::as_str);
        let mut outcomes = Vec::new();
        for which in ["workload", "cousin"] {
            let components = case.get(&format!("{which}_components")).or(case.get("components"));
            let target = case.get(&format!("{which}_target")).and_then(Node::as_str);
            let given = Case {
                components: map(components),
                target: target.map(|_| Target::Ambit),
                profile: profile.and_then(Profile::parse).unwrap_or_default(),
                config: config.clone(),
            };
            let reviews = reviews(&folder.join(format!("{which}.yaml")), &given);
            let review = reviews.last().expect("a workload");
            let expected = case.get(which).expect("an expectation");
            let name = format!("{}/{which}", folder.file_name().unwrap().to_string_lossy());
            let mut codes: BTreeSet<&str> = review
                .decision
                .findings
                .iter()
                .filter(|finding| !finding.unjudged)
                .map(|finding| finding.code.as_str())
                .collect();
            codes.extend(review.decision.errors.iter().map(|error| error.code.as_str()));
            if let Some(verdict) = expected.get("verdict").and_then(Node::as_str)
                && review.decision.verdict.as_str() != verdict
            {
                wrong.push(format!("{name}: {} with {codes:?}", review.decision.verdict.as_str()));
            }
            for code in strings(expected.get("findings")) {
                if !codes.contains(code.as_str()) {
                    wrong.push(format!("{name}: no `{code}` in {codes:?}"));
                }
            }
            for code in strings(expected.get("absent")) {
                if codes.contains(code.as_str()) {
                    wrong.push(format!("{name}: `{code}` is there"));
                }
            }
            let lines = lines(review);
            for words in strings(expected.get("reach")) {
                if !lines.iter().any(|line| line.contains(&words)) {
                    wrong.push(format!("{name}: no line with `{words}` in {lines:#?}"));
                }
            }
            for words in strings(expected.get("not_reach")) {
                if lines.iter().any(|line| line.contains(&words)) {
                    wrong.push(format!("{name}: a line with `{words}` in {lines:#?}"));
                }
            }
            if expected.get("paths").is_some() {
                let paths: Vec<String> =
                    review.reach.paths.iter().map(|path| path.hops.join(" -> ")).collect();
                let expected = strings(expected.get("paths"));
                if !expected.iter().all(|path| paths.contains(path))
                    || paths.is_empty() != expected.is_empty()
                {
                    wrong.push(format!("{name}: paths {paths:?}, not {expected:?}"));
                }
            }
            outcomes.push((review.decision.verdict, codes.len(), lines));
        }
        assert_ne!(outcomes[0], outcomes[1], "{}: nothing flips", folder.display());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn documents_of_the_wild_are_read_whole() {
    let mut names: Vec<PathBuf> = std::fs::read_dir(testdata("workloads/wild"))
        .expect("the folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 8);
    for path in names {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let case = Case {
            components: BTreeMap::new(),
            target: None,
            profile: Profile::Baseline,
            config: Config::default(),
        };
        let mut text = String::new();
        for review in reviews(&path, &case) {
            for component in &review.reach.components {
                text.push_str(&format!("{}\n", component.name));
                for entry in &component.entries {
                    let line = entry.grant.as_ref().map_or(0, |grant| grant.place.line());
                    text.push_str(&format!(
                        "  {} | {} | {} | line {line}\n",
                        entry.verb.as_str(),
                        entry.subject,
                        entry.via
                    ));
                }
            }
            for problem in &review.input.workload.problems {
                text.push_str(&format!("  problem {} {}\n", problem.code, problem.path));
            }
        }
        for skipped in documents(&path, None).skipped {
            text.push_str(&format!("skipped {} ({})\n", skipped.kind, skipped.reason));
        }
        insta::assert_snapshot!(format!("wild_{name}"), text);
    }
}

#[test]
fn equal_input_gives_equal_decisions() {
    let path = testdata("workloads/cases/11-link-closure/workload.yaml");
    let case = Case {
        components: [
            ("app".to_owned(), "wat/mail-app.wat".to_owned()),
            ("store".to_owned(), "wat/secrets-plugin.wat".to_owned()),
        ]
        .into(),
        target: None,
        profile: Profile::Baseline,
        config: Config::default(),
    };
    let canonical = || {
        let reviews = reviews(&path, &case);
        serde_json::to_string(&report::canonical(&reviews[0].decision)).unwrap()
    };
    assert_eq!(canonical(), canonical());
}

#[test]
fn literal_values_never_reach_the_input() {
    let text = "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata: {name: w}
spec:
  components:
  - name: c
    image: registry.example/a/b:1
    localResources:
      environment:
        config: {API_TOKEN: planted-value-9137}
";
    let found = workload::read(text.as_bytes(), Format::Yaml, None, &DocumentLimits::default());
    let found = found.expect("a workload");
    assert!(!format!("{found:?}").contains("planted-value-9137"));
}

/// A workload of components that share host interfaces and a folder each.
fn crowd(components: usize, interfaces: usize, mounts: bool) -> String {
    use std::fmt::Write as _;
    let mut text = String::from(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: Workload\nmetadata: {name: w}\nspec:\n",
    );
    text.push_str("  volumes: [{name: v, hostPath: {path: /srv/v}}]\n  hostInterfaces:\n");
    for n in 0..interfaces {
        let _ = writeln!(text, "  - {{namespace: acme, package: p{n}, interfaces: [i]}}");
    }
    text.push_str("  components:\n");
    for n in 0..components {
        let mount = if mounts {
            ", localResources: {volumeMounts: [{name: v, mountPath: /v}]}"
        } else {
            ""
        };
        let _ = writeln!(text, "  - {{name: c{n}, image: 'a/b:1'{mount}}}");
    }
    text
}

#[test]
fn what_components_share_is_bounded_over_a_whole_file() {
    let read = |text: &str| {
        workload::read(text.as_bytes(), Format::Yaml, None, &DocumentLimits::default())
            .map(|found| found.workloads.len())
            .map_err(|error| error.code())
    };
    assert_eq!(read(&crowd(100, 64, true)), Ok(1));
    assert_eq!(read(&crowd(400, 400, false)), Err("manifest-too-much-shared"));
    assert_eq!(read(&crowd(500, 1, true)), Err("manifest-too-much-shared"));
    assert_eq!(read(&crowd(300, 1, true)), Ok(1));
    // Each document is within the limit, and together they are not.
    let one = crowd(200, 200, false);
    assert_eq!(read(&one), Ok(1));
    assert_eq!(read(&[one.as_str(); 3].join("---\n")), Err("manifest-too-much-shared"));
}

#[test]
fn more_paths_than_can_be_listed_count_as_the_worst() {
    use std::fmt::Write as _;
    let mut text = String::from(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: Workload\nmetadata: {name: w}\nspec:\n  volumes:\n",
    );
    let long = "d".repeat(200);
    let path = vec![long.as_str(); 20].join("/");
    let mut mounts = String::new();
    for n in 0..512 {
        let _ = writeln!(text, "  - {{name: v{n}, hostPath: {{path: /srv/{n}/{path}}}}}");
        let _ = write!(mounts, "{{name: v{n}, mountPath: /m{n}}}, ");
    }
    text.push_str("  components:\n");
    for name in ["a", "b"] {
        let _ = writeln!(
            text,
            "  - {{name: {name}, image: 'x/y:1', localResources: {{allowedHosts: [h.example], volumeMounts: [{mounts}]}}}}"
        );
    }
    let found = workload::read(text.as_bytes(), Format::Yaml, None, &DocumentLimits::default());
    let mut workload = found.expect("within the limits").workloads.remove(0);
    let catalogue = catalogue();
    let component = component("dummy-everything.wasm");
    let capabilities = CapabilitySet::of(&component, &catalogue);
    let bytes =
        [Bytes::Present(Analysis { component: &component, capabilities: &capabilities }); 2];
    let reach = Reach::of(&workload, &bytes, Target::Ambit, &catalogue);
    let last = reach.paths.last().expect("a path");
    assert!(last.unbounded && last.reads == ["more than can be listed"]);
    // With half of the folders everything is listed, and the end is the one host that is granted.
    for component in &mut workload.components {
        component.mounts.truncate(200);
    }
    let reach = Reach::of(&workload, &bytes, Target::Ambit, &catalogue);
    assert_eq!(reach.paths.len(), 2);
    assert!(reach.paths.iter().all(|path| !path.unbounded && path.sends == ["h.example"]));
}

#[test]
fn links_are_found_by_interface_and_circles_are_named() {
    let part = |imports: &str, exports: &str| {
        let text = format!(
            "(component (import \"{imports}\" (instance)) (instance $x) (export \"{exports}\" (instance $x)))"
        );
        Component::read(&wat::parse_str(text).expect("text"), &Limits::default()).expect("valid")
    };
    let links = |parts: &[Component]| {
        let names: String =
            (0..parts.len()).map(|n| format!("  - {{name: c{n}, image: 'x/y:1'}}\n")).collect();
        let text = format!(
            "apiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: Workload\nmetadata: {{name: w}}\nspec:\n  components:\n{names}"
        );
        let found = workload::read(text.as_bytes(), Format::Yaml, None, &DocumentLimits::default());
        let workload = found.expect("a workload").workloads.remove(0);
        let catalogue = catalogue();
        let sets: Vec<CapabilitySet> =
            parts.iter().map(|part| CapabilitySet::of(part, &catalogue)).collect();
        let bytes: Vec<Bytes<'_>> = parts
            .iter()
            .zip(&sets)
            .map(|(component, capabilities)| Bytes::Present(Analysis { component, capabilities }))
            .collect();
        Reach::of(&workload, &bytes, Target::WasmCloud, &catalogue).links
    };
    // The version of the track doesn't matter, another track does.
    let chain = links(&[
        part("acme:b/i@1.2.0", "acme:a/i@1.0.0"),
        part("acme:c/i@1.0.0", "acme:b/i@1.0.0"),
        part("acme:d/i@2.0.0", "acme:c/i@1.9.0"),
        part("acme:z/i@1.0.0", "acme:d/i@1.0.0"),
    ]);
    assert_eq!(chain.closure(0), [0, 1, 2].into());
    assert_eq!(chain.closure(2), [2].into());
    assert_eq!(chain.connected(2), [0, 1, 2].into());
    assert_eq!(chain.connected(3), [3].into());
    assert!(chain.problems.is_empty());
    let circle = links(&[
        part("acme:b/i@1.0.0", "acme:a/i@1.0.0"),
        part("acme:a/i@1.0.0", "acme:b/i@1.0.0"),
        part("acme:a/i@1.0.0", "acme:x/i@1.0.0"),
    ]);
    assert_eq!(circle.problems, [LinkProblem::Cycle(vec![0, 1])]);
    let twice = links(&[
        part("acme:b/i@1.0.0", "acme:a/i@1.0.0"),
        part("acme:q/i@1.0.0", "acme:b/i@1.0.0"),
        part("acme:q/i@1.0.0", "acme:b/i@1.3.0"),
    ]);
    assert!(
        matches!(&twice.problems[..], [LinkProblem::Ambiguous { from: 0, candidates, .. }] if candidates == &[1, 2])
    );
}

fn sorted(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;

    match value {
        Value::Object(map) => {
            let by_key: BTreeMap<String, Value> = map.into_iter().collect();
            by_key.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => scalar,
    }
}

/// The documents of a file as an API server would send them: in one line each, keys in order.
fn as_api_objects(path: &Path) -> String {
    let text = std::fs::read(path).expect("a document");
    let parsed = document::parse(&text, Format::Auto, &DocumentLimits::default()).expect("YAML");
    let lines = parsed.iter().map(|document| sorted(document.root().to_json()).to_string());
    lines.map(|line| format!("---\n{line}\n")).collect()
}

#[test]
fn layout_of_a_document_changes_no_decision() {
    let case = Case {
        components: BTreeMap::new(),
        target: None,
        profile: Profile::Baseline,
        config: Config::default(),
    };
    let mut compared = 0_usize;
    let mut work =
        ["cases", "wild", "kubernetes", "demo"].map(|dir| testdata("workloads").join(dir)).to_vec();
    while let Some(path) = work.pop() {
        if path.is_dir() {
            work.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = std::fs::read(&path).unwrap();
        let limits = DocumentLimits::default();
        let Ok(written) = workload::read(&text, Format::Auto, None, &limits) else { continue };
        let sent = as_api_objects(&path);
        let sent = workload::read(sent.as_bytes(), Format::Yaml, None, &limits).unwrap();
        let canonical = |found: &Documents| -> Vec<String> {
            let reviews = reviews_of(found, &case);
            let views = reviews.iter().map(|review| report::canonical(&review.decision));
            views.map(|view| serde_json::to_string(&view).unwrap()).collect()
        };
        let (written, sent) = (canonical(&written), canonical(&sent));
        assert_eq!(written, sent, "{}", path.display());
        compared += written.len();
    }
    assert!(compared > 40, "{compared} workloads compared");
}

fn object(text: &str, surroundings: &Surroundings<'_>) -> workload::Workload {
    let limits = DocumentLimits::default();
    match workload::read_object(text.as_bytes(), Format::Json, surroundings, &limits)
        .expect("an object")
    {
        Object::Workload(workload) => *workload,
        Object::Skipped(skipped) => panic!("skipped: {}", skipped.reason),
    }
}

fn images(workload: &workload::Workload) -> Vec<(&str, Role, &str, &str)> {
    let components = workload.components.iter();
    components
        .map(|c| (c.name.as_str(), c.role, c.image.text.as_str(), c.image.place.pointer.as_str()))
        .collect()
}

#[test]
fn namespace_of_the_request_replaces_that_of_the_object() {
    let text = r#"{"apiVersion":"runtime.wasmcloud.dev/v1alpha1","kind":"Workload","metadata":{"name":"a"},"spec":{"components":[{"name":"c","image":"ghcr.io/e/a:1"}]}}"#;
    assert_eq!(object(text, &Surroundings::default()).namespace, "default");
    let surroundings = Surroundings { namespace: Some("payments"), ..Surroundings::default() };
    assert_eq!(object(text, &surroundings).namespace, "payments");
}

#[test]
fn artifact_from_outside_is_followed_within_its_namespace() {
    let text = r#"{"apiVersion":"runtime.wasmcloud.dev/v1alpha1","kind":"WorkloadDeployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"components":[{"name":"c","image":"artifact://audit"}]}}}}"#;
    let with = |namespace: &str| Surroundings {
        namespace: Some("payments"),
        artifacts: BTreeMap::from([(
            (namespace.to_owned(), "audit".to_owned()),
            "ghcr.io/e/audit:1".to_owned(),
        )]),
        ..Surroundings::default()
    };
    let found = object(text, &with("payments"));
    assert_eq!(found.components[0].image.text, "ghcr.io/e/audit:1");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let found = object(text, &with("other"));
    assert_eq!(found.problems[0].code, "artifact-unresolved");
}

#[test]
fn status_of_an_artifact_that_leads_elsewhere_is_judged_too() {
    let text = |url: &str| {
        format!(
            r#"{{"apiVersion":"runtime.wasmcloud.dev/v1alpha1","kind":"Artifact","metadata":{{"name":"audit"}},"spec":{{"image":"ghcr.io/e/audit:1"}},"status":{{"artifactUrl":{url}}}}}"#
        )
    };
    let own = ("audit", Role::Artifact, "ghcr.io/e/audit:1", "/spec/image");
    let surroundings = Surroundings::default();
    for same in [r#""ghcr.io/e/audit:1""#, r#""""#] {
        assert_eq!(images(&object(&text(same), &surroundings)), [own]);
    }
    let other = object(&text(r#""ghcr.io/evil/x:1""#), &surroundings);
    let elsewhere = ("audit.status", Role::Artifact, "ghcr.io/evil/x:1", "/status/artifactUrl");
    assert_eq!(images(&other), [own, elsewhere]);
    // What is no text is no image, and no component goes without one.
    assert_eq!(object(&text("7"), &surroundings).components.len(), 2);
}

#[test]
fn deployment_gets_the_image_that_an_artifact_was_resolved_to() {
    let text = "apiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: Artifact\nmetadata: {name: audit}\nspec: {image: 'ghcr.io/e/audit:1'}\nstatus: {artifactUrl: 'ghcr.io/evil/x:1'}\n---\napiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: WorkloadDeployment\nmetadata: {name: a}\nspec: {template: {spec: {components: [{name: c, image: 'artifact://audit'}]}}}\n";
    let limits = DocumentLimits::default();
    let found = workload::read(text.as_bytes(), Format::Yaml, None, &limits).unwrap();
    assert_eq!(found.workloads[1].components[0].image.text, "ghcr.io/evil/x:1");
}

fn pod(spec: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"spec":{spec}}}"#)
}

#[test]
fn application_that_a_spin_runner_is_told_to_start_is_what_is_judged() {
    for (container, place) in [
        (r#""args":["up","--listen","0.0.0.0:80","-f","ghcr.io/e/app:1"]"#, "args/4"),
        (r#""command":["/usr/bin/spin"],"args":["up","--from","ghcr.io/e/app:1"]"#, "args/2"),
        (r#""command":["spin","up","-r","ghcr.io/e/app:1"]"#, "command/3"),
    ] {
        let text = pod(&format!(
            r#"{{"containers":[{{"name":"spin","image":"ghcr.io/spinframework/spin:v3",{container}}}]}}"#
        ));
        let found = object(&text, &Surroundings::default());
        let pointer = format!("/spec/containers/0/{place}");
        let expected = ("spin", Role::Container, "ghcr.io/e/app:1", pointer.as_str());
        assert_eq!(images(&found), [expected]);
    }
    for container in [
        r#""args":["up","-f","compose.toml"]"#,
        r#""args":["up","-f","./app"]"#,
        r#""args":["up","-d"]"#,
        r#""args":["up","-f"]"#,
        r#""args":["down","-f","ghcr.io/e/app:1"]"#,
        r#""command":["docker"],"args":["up","-f","ghcr.io/e/app:1"]"#,
    ] {
        let text = pod(&format!(r#"{{"containers":[{{"name":"x","image":"x:1",{container}}}]}}"#));
        let limits = DocumentLimits::default();
        let surroundings = Surroundings::default();
        let read = workload::read_object(text.as_bytes(), Format::Json, &surroundings, &limits);
        assert!(matches!(read.unwrap(), Object::Skipped(_)), "{container}");
    }
}

#[test]
fn image_volumes_of_a_wasm_pod_are_judged_after_its_containers() {
    let text = pod(
        r#"{"runtimeClassName":"wasmtime","volumes":[{"name":"v","image":{"reference":"ghcr.io/e/v:1"}}],"containers":[{"name":"c","image":"ghcr.io/e/a:1"}]}"#,
    );
    let found = object(&text, &Surroundings::default());
    assert_eq!(
        images(&found),
        [
            ("c", Role::Container, "ghcr.io/e/a:1", "/spec/containers/0/image"),
            ("volume/v", Role::Volume, "ghcr.io/e/v:1", "/spec/volumes/0/image/reference"),
        ]
    );
}

#[test]
fn one_object_is_one_document() {
    let limits = DocumentLimits::default();
    let surroundings = Surroundings::default();
    for text in ["", "{}\n---\n{}\n"] {
        let error = workload::read_object(text.as_bytes(), Format::Yaml, &surroundings, &limits);
        let code = error.unwrap_err().code();
        assert!(["manifest-not-one-object", "document-empty"].contains(&code), "{code}");
    }
}
