//! The shipped packs: their own tests, their coverage in the binary, and the hazards of Rego.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "helpers of tests read files and may fail loudly"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ambit_engine::policy::{
    Action, Origin, Pack, PackFile, Parameters, PolicyLimits, PolicySet, Profile, embedded,
};

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies")
}

fn shipped() -> Vec<Pack> {
    embedded(&PolicyLimits::default()).expect("the shipped packs load")
}

fn files(pack: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(policies().join(pack))
        .expect("the pack's folder")
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rego"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(entry.path()).expect("a policy"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_tests_of_every_pack_pass() {
    for pack in shipped() {
        let name = pack.name().to_owned();
        let set = PolicySet::prepare(vec![pack], &Parameters::new(), PolicyLimits::default())
            .expect("a prepared pack");
        let tests: Vec<(String, String)> =
            files(&name).into_iter().filter(|(name, _)| name.ends_with("_test.rego")).collect();
        let outcomes = set.run_tests(&tests).expect("tests that load");
        assert!(outcomes.len() > 10, "{name} has {} tests", outcomes.len());
        let failed: Vec<_> = outcomes.iter().filter(|o| o.failure.is_some()).collect();
        assert!(failed.is_empty(), "{name}: {failed:#?}");
    }
}

#[test]
fn the_binary_holds_the_folders() {
    let folders: BTreeSet<String> = std::fs::read_dir(policies())
        .expect("the folder of packs")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let packs: BTreeSet<String> = shipped().iter().map(|pack| pack.name().to_owned()).collect();
    assert_eq!(folders, packs);
    for pack in shipped() {
        let mut given: Vec<PackFile> = files(pack.name())
            .into_iter()
            .filter(|(name, _)| !name.ends_with("_test.rego"))
            .map(|(name, text)| PackFile {
                name: format!("{}/{name}", pack.name()),
                text: text.into_bytes(),
            })
            .collect();
        given.push(PackFile {
            name: format!("{}/pack.yaml", pack.name()),
            text: std::fs::read(policies().join(pack.name()).join("pack.yaml")).expect("pack.yaml"),
        });
        // As somebody else's pack it goes through the checks that a shipped one is spared.
        let read = Pack::read(pack.name(), &given, Origin::Given, &PolicyLimits::default());
        let read = read.expect("the folder loads");
        assert_eq!(read.digest(), pack.digest(), "{}", pack.name());
        assert_eq!(read.entrypoints(), pack.entrypoints(), "{}", pack.name());
    }
}

#[test]
fn every_rule_has_an_action_under_both_profiles() {
    for pack in shipped() {
        for rule in pack.rules() {
            for profile in [Profile::Baseline, Profile::Strict] {
                assert!(pack.action(&rule.id, profile).is_some(), "{} {profile:?}", rule.full());
            }
            assert!(!rule.title.is_empty() && !rule.description.is_empty(), "{}", rule.full());
            let strict = pack.action(&rule.id, Profile::Strict);
            let baseline = pack.action(&rule.id, Profile::Baseline);
            assert!(strict <= baseline, "strict softens {}", rule.full());
        }
    }
}

#[test]
fn baseline_has_the_rules_and_actions_that_the_design_lists() {
    let table: [(Action, &[&str]); 3] = [
        (
            Action::Deny,
            &[
                "image/digest-match",
                "sign/bad",
                "sign/policy",
                "net/metadata",
                "net/special",
                "net/any-host-closure",
                "fs/host-root",
                "fs/sensitive-write",
                "env/secret-literal",
                "cap/code-import",
                "grant/invalid",
                "run/ephemeral",
                "ceiling/capabilities",
                "ceiling/grants",
                "image/registry",
                "sign/identity",
                "attest/builder",
                "attest/age",
                "net/none",
                "net/host-allowlist",
                "cap/forbidden",
                "cap/growth",
                "meta/namespace",
                "link/untrusted-provider",
            ],
        ),
        (
            Action::Warn,
            &[
                "image/digest-pin",
                "image/claims",
                "sign/policy-warn",
                "sign/required",
                "sign/tlog",
                "attest/provenance",
                "attest/sbom",
                "net/wildcard",
                "net/private",
                "fs/writable-scope",
                "cap/unknown-interface",
                "cap/signer-change",
                "grant/dead",
                "grant/missing",
                "run/limits",
                "meta/owner",
            ],
        ),
        (Action::Audit, &["grant/over-approx"]),
    ];
    let packs = shipped();
    let baseline = packs.iter().find(|pack| pack.name() == "baseline").expect("the pack");
    let mut known = BTreeMap::new();
    for (action, rules) in table {
        for rule in rules {
            assert_eq!(baseline.action(rule, Profile::Baseline), Some(action), "{rule}");
            assert_eq!(baseline.action(rule, Profile::Strict), Some(Action::Deny), "{rule}");
            known.insert((*rule).to_owned(), ());
        }
    }
    for rule in baseline.rules() {
        assert!(known.contains_key(&rule.id), "{} is not in the table", rule.id);
    }
}

fn given(text: &str) -> Result<Pack, ambit_engine::policy::PackError> {
    let files = [PackFile { name: "x.rego".to_owned(), text: text.as_bytes().to_vec() }];
    Pack::read("x", &files, Origin::Given, &PolicyLimits::default())
}

fn evaluate(text: &str) -> Result<Vec<String>, ambit_engine::policy::EvaluationError> {
    let pack = given(text).expect("a pack that loads");
    let set = PolicySet::prepare(vec![pack], &Parameters::new(), PolicyLimits::default())
        .expect("a prepared pack");
    Ok(set.evaluate("{}")?.into_iter().map(|finding| finding.message).collect())
}

#[test]
fn recursion_is_refused_when_a_pack_is_loaded() {
    for (text, circle) in [
        ("package x\nf(a) := f(a)\ndeny contains \"m\" if f(1)", "f -> f"),
        ("package x\nf(a) := g(a)\ng(a) := f(a)\ndeny contains \"m\" if f(1)", "f -> g -> f"),
        ("package x\nf(a) := r\nr := f(1)\ndeny contains \"m\" if r", "f -> r -> f"),
        ("package x\nf(a) := data.x.f(a)\ndeny contains \"m\" if f(1)", "f -> f"),
        ("package x\nf(a) := count(data.x)\ndeny contains \"m\" if f(1)", "f"),
        ("package x\nimport data.x as me\nf(a) := me.f(a)\ndeny contains \"m\" if f(1)", "f -> f"),
    ] {
        let error = given(text).expect_err(text);
        assert_eq!(error.code(), "pack-recursion", "{text}");
        assert!(error.to_string().contains(circle), "{error}");
    }
}

#[test]
fn what_looks_like_recursion_and_is_none_loads() {
    for text in [
        "package x\nf(a) := a.deny\ndeny contains \"m\" if f({\"deny\": true})",
        "package x\nf(a) := data.params.x.most\ndeny contains \"m\" if f(1)",
        "package x\nf(a) := a\ng(a) := f(a)\ndeny contains \"m\" if g(1)",
    ] {
        assert!(given(text).is_ok(), "{text}: {:?}", given(text).err());
    }
}

#[test]
fn hazards_end_in_an_error_and_leave_the_process_alive() {
    for (text, code) in [
        (
            "package x\ndeny contains \"m\" if count(numbers.range(1, 200000000)) > 0",
            "policy-rule-error",
        ),
        (
            "package x\ndeny contains \"m\" if sprintf(\"%900000000d\", [1]) == \"\"",
            "policy-rule-error",
        ),
        ("package x\ndeny contains \"m\" if bits.lsh(1, 4000000000) > 0", "policy-rule-error"),
        (
            "package x\ndeny contains \"m\" if count(net.cidr_expand(\"10.0.0.0/8\")) > 0",
            "policy-rule-error",
        ),
        ("package x\ndeny contains \"m\" if time.now_ns() > 0", "policy-rule-error"),
        (
            "package x\ndeny contains \"m\" if http.send({\"method\": \"get\", \"url\": \"http://h\"}).x",
            "policy-rule-error",
        ),
        ("package x\ndeny contains \"m\" if strings.count(\"abc\", \"\") > 0", "policy-panic"),
        ("package x\ndeny contains \"m\" if 1 / 0 > 0", "policy-rule-error"),
        ("package x\ndeny contains 7 if true", "policy-finding-shape"),
        ("package x\ndeny := {\"a\": {\"b\": 1}}", "policy-finding-shape"),
        ("package x\ndeny := \"m\" if input.nothing", "policy-undefined"),
        (
            "package x\nr := numbers.range(1, 3000)\ndeny contains \"m\" if { some a in r; some b in r; some c in r; a + b + c < 0 }",
            "policy-timeout",
        ),
    ] {
        match evaluate(text) {
            Err(error) => assert_eq!(error.code(), code, "{text}: {error}"),
            Ok(found) => panic!("{text}: {found:?}"),
        }
    }
}

#[test]
fn findings_are_strings_or_objects() {
    let mut found = evaluate(
        "package x\ndeny contains \"plain\"\nwarn_soft contains {\"msg\": \"object\"}\nviolation := {\"k\": {\"msg\": \"map\"}}",
    )
    .expect("findings");
    found.sort();
    assert_eq!(found, ["map", "object", "plain"]);
}

#[test]
fn unknown_and_wrong_parameters_are_refused() {
    let params = |name: &str, value: serde_json::Value| -> Parameters {
        [("baseline".to_owned(), [(name.to_owned(), value)].into())].into()
    };
    let prepare = |parameters: &Parameters| {
        PolicySet::prepare(shipped(), parameters, PolicyLimits::default())
    };
    assert!(prepare(&params("registries", serde_json::json!(["ghcr.io/acme"]))).is_ok());
    for parameters in [
        params("registry", serde_json::json!([])),
        params("registries", serde_json::json!("ghcr.io")),
        [("basline".to_owned(), BTreeMap::new())].into(),
    ] {
        assert_eq!(prepare(&parameters).expect_err("refused").code(), "pack-parameter");
    }
}

#[test]
fn packs_without_a_rule_or_with_a_typo_are_refused() {
    assert_eq!(
        given("package x\ndney contains \"m\"").expect_err("refused").code(),
        "pack-no-rules"
    );
    assert_eq!(given("package x\ndeny contains {").expect_err("refused").code(), "pack-syntax");
    let metadata = "package x\n# METADATA\n# title: t\n# custom: {id: a/b, severity: huge}\ndeny contains \"m\"";
    assert_eq!(given(metadata).expect_err("refused").code(), "pack-metadata");
}

#[test]
fn limits_are_what_the_reference_says() {
    let limits = PolicyLimits::default();
    assert_eq!(limits.max_time, Duration::from_millis(200));
    assert_eq!(limits.max_findings, 4_096);
}
