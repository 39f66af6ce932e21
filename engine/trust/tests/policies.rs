//! Trust policy files in, what they mean or what is wrong with them out; a file a case.
#![expect(
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    reason = "helpers of tests read files and may fail loudly"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ambit_engine::digest::Digest;
use ambit_engine::document::{self, DocumentLimits, Format, Node, Span};
use ambit_trust::policy::{
    Authority, Matcher, PolicyError, ReadOptions, Signer, StaticPass, TrustFile, TrustPolicy, read,
};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/trust").join(path)
}

fn cases(folder: &str) -> Vec<(String, String)> {
    let mut cases: Vec<(String, String)> = std::fs::read_dir(testdata(folder))
        .expect("a folder of cases")
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(entry.path()).expect("a case"))
        })
        .collect();
    cases.sort();
    cases
}

fn marked(text: &str, span: Span) -> String {
    let line = document::line_text(text, span.start().line()).unwrap_or_default();
    let start = usize::try_from(span.start().column()).expect("a column") - 1;
    let end = if span.end().line() == span.start().line() {
        usize::try_from(span.end().column()).expect("a column") - 1
    } else {
        line.chars().count()
    };
    format!("  {line}\n  {}{}\n", " ".repeat(start), "^".repeat(end.saturating_sub(start).max(1)))
}

fn complaints(text: &str, error: &PolicyError) -> String {
    let PolicyError::Fields { problems, .. } = error else {
        let cause = std::error::Error::source(error).map(|s| format!(": {s}")).unwrap_or_default();
        return format!(
            "{}: {error}{cause}\n= {}\n",
            error.code(),
            error.help().unwrap_or_default()
        );
    };
    let mut out = String::new();
    for problem in problems {
        let place = problem.position();
        writeln!(out, "{} {place} {}", problem.code.as_str(), problem.message).expect("text");
        out.push_str(&marked(text, problem.span));
        writeln!(out, "  = {}", problem.help.as_deref().unwrap_or("-")).expect("text");
    }
    out
}

fn matcher(matcher: &Matcher) -> String {
    match matcher {
        Matcher::Exact(text) => format!("is `{text}`"),
        Matcher::Pattern { regex, .. } => format!("matches `{}`", regex.as_str()),
    }
}

fn authority(authority: &Authority) -> String {
    let mut out = format!("  authority {}\n", authority.name);
    let mut line = |text: String| writeln!(out, "    {text}").expect("text");
    match &authority.signer {
        Signer::Certificate { root, identities, sct } => {
            line(format!("certificate of {root}, sct {sct:?}"));
            for identity in identities {
                let (issuer, subject) = (matcher(&identity.issuer), matcher(&identity.subject));
                line(format!("issuer {issuer}, subject {subject}, claims {:?}", identity.claims));
            }
        }
        Signer::Key { keys, root } => {
            line(format!("key, root {root}"));
            for key in keys {
                line(format!("{} {:?}", Digest::of(&key.spki).short(), key.hash));
            }
        }
        Signer::Static { action } => line(format!("static {action:?}")),
    }
    line(format!(
        "formats {:?}, log {:?}, timestamp {:?}",
        authority.formats, authority.log, authority.timestamp
    ));
    if let Some(age) = authority.max_age {
        line(format!("max age {} s", age.as_secs()));
    }
    if let Some(time) = authority.not_before {
        line(format!("not before {time}"));
    }
    if !authority.annotations.is_empty() {
        line(format!("annotations {:?}", authority.annotations));
    }
    for rule in &authority.attestations {
        let rego =
            rule.rego.as_ref().map(|text| format!(", rego of {} lines", text.lines().count()));
        line(format!(
            "attestation {} {:?}{}",
            rule.name,
            rule.predicate_types,
            rego.unwrap_or_default()
        ));
    }
    for source in &authority.sources {
        line(format!("source {} prefix `{}`", source.repository, source.tag_prefix));
    }
    out
}

fn policy(policy: &TrustPolicy) -> String {
    let images: Vec<&str> = policy.images.iter().map(|image| image.regex.as_str()).collect();
    let mut out = format!(
        "policy {} ({}), mode {:?}, require {:?}\n  images {images:?}\n",
        policy.name, policy.origin, policy.mode, policy.require
    );
    for pin in &policy.pins {
        writeln!(out, "  pin {pin:?}").expect("text");
    }
    for one in &policy.authorities {
        out.push_str(&authority(one));
    }
    if let Some(text) = &policy.rego {
        writeln!(out, "  rego of {} lines", text.lines().count()).expect("text");
    }
    out
}

fn meaning(text: &str, file: &TrustFile) -> String {
    let mut out: String = file.policies.iter().map(policy).collect();
    for root in &file.roots {
        writeln!(out, "root {} ({}) {:?}", root.name, root.origin, root.source).expect("text");
    }
    for warning in &file.warnings {
        let place = warning.span.start();
        writeln!(out, "{} {place} {}", warning.code.as_str(), warning.message).expect("text");
        out.push_str(&marked(text, warning.span));
        writeln!(out, "  = {}", warning.help).expect("text");
    }
    out
}

fn outcome(name: &str, text: &str) -> Result<String, String> {
    match read(name, text.as_bytes(), &ReadOptions::default()) {
        Ok(file) => Ok(meaning(text, &file)),
        Err(error) => Err(complaints(text, &error)),
    }
}

#[test]
fn files_mean_what_is_written() {
    for folder in ["policies/good", "policies/cip"] {
        for (name, text) in cases(folder) {
            let outcome = outcome(&name, &text).unwrap_or_else(|error| panic!("{name}: {error}"));
            insta::assert_snapshot!(format!("{folder}/{name}").replace('/', "_"), outcome);
        }
    }
}

#[test]
fn every_mistake_is_shown_at_its_place() {
    for (name, text) in cases("policies/bad") {
        let outcome = outcome(&name, &text).expect_err(&name);
        insta::assert_snapshot!(format!("policies_bad_{name}"), outcome);
    }
}

/// Returns the places of all keys that are read one by one.
fn keys(node: &Node, found: &mut Vec<Span>) {
    for entry in node.as_mapping().into_iter().flatten() {
        found.push(entry.key_span());
        if !["labels", "annotations", "match", "signaturePullSecrets"].contains(&entry.key()) {
            keys(entry.value(), found);
        }
    }
    for item in node.as_sequence().unwrap_or_default() {
        keys(item, found);
    }
}

#[test]
fn one_wrong_letter_in_any_key_is_an_error_at_that_key() {
    for folder in ["policies/good", "policies/cip"] {
        for (name, text) in cases(folder) {
            let documents =
                document::parse(text.as_bytes(), Format::Auto, &DocumentLimits::default())
                    .expect("documents");
            let mut places = Vec::new();
            for document in &documents {
                for entry in document.root().as_mapping().expect("an object") {
                    match entry.key() {
                        "metadata" if folder.ends_with("good") => keys(entry.value(), &mut places),
                        "spec" => keys(entry.value(), &mut places),
                        _ => {}
                    }
                }
            }
            assert!(places.len() > 3, "{name}");
            for place in places {
                let mut broken = text.clone();
                let quote = usize::from(text.as_bytes().get(place.start_byte()) == Some(&b'"'));
                broken.insert(place.start_byte() + quote, 'x');
                let error = read(&name, broken.as_bytes(), &ReadOptions::default());
                let Err(PolicyError::Fields { problems, .. }) = error else {
                    panic!("{name}:{}: {error:?}", place.start())
                };
                let there = problems.iter().any(|problem| {
                    problem.position() == place.start() && problem.message.contains("unknown field")
                });
                assert!(there, "{name}:{}: {problems:#?}", place.start());
            }
        }
    }
}

#[test]
fn imported_policies_pass_without_signature_only_where_the_caller_says_so() {
    let text = "apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: a}
spec:
  images: [{glob: '**'}]
  authorities: [{static: {action: pass}}]
";
    let refused = read("a.yaml", text.as_bytes(), &ReadOptions::default()).expect_err("refused");
    assert_eq!(refused.code(), "trust-policy-insecure");
    let options = ReadOptions { static_pass: StaticPass::Allowed, ..ReadOptions::default() };
    assert!(read("a.yaml", text.as_bytes(), &options).is_ok());
}

#[test]
fn roots_of_other_files_can_be_referred_to() {
    let text = "apiVersion: ambit.dev/v1alpha1
kind: TrustPolicy
metadata: {name: a}
spec:
  images: [{glob: '**'}]
  authorities: [{keyless: {trustRootRef: elsewhere, identities: [{issuer: a, subject: b}]}}]
";
    assert!(read("a.yaml", text.as_bytes(), &ReadOptions::default()).is_err());
    let options = ReadOptions { roots: ["elsewhere".to_owned()].into(), ..ReadOptions::default() };
    assert!(read("a.yaml", text.as_bytes(), &options).is_ok());
}

#[test]
fn lists_are_bounded() {
    let many = |count: usize, item: &str| vec![item; count].join(", ");
    for (images, identities) in [
        (many(129, "{glob: a}"), many(1, "{issuer: a, subject: b}")),
        (many(1, "{glob: a}"), many(129, "{issuer: a, subject: b}")),
    ] {
        let text = format!(
            "apiVersion: ambit.dev/v1alpha1\nkind: TrustPolicy\nmetadata: {{name: a}}\nspec:\n  images: [{images}]\n  authorities: [{{keyless: {{identities: [{identities}]}}}}]\n"
        );
        let error = read("a.yaml", text.as_bytes(), &ReadOptions::default()).expect_err("too many");
        assert_eq!(error.code(), "trust-policy-limit", "{error}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::with_cases(256)
    })]

    #[test]
    fn damaged_files_are_read_or_refused(
        which in 0_usize..8,
        cuts in proptest::collection::vec((0_usize..4096, proptest::prelude::any::<u8>()), 1..6),
    ) {
        let files = [cases("policies/good"), cases("policies/cip")].concat();
        let (name, text) = &files[which % files.len()];
        let mut bytes = text.clone().into_bytes();
        for (place, byte) in cuts {
            let place = place % bytes.len();
            match byte % 3 {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => bytes.truncate(place.max(1)),
            }
        }
        if let Err(error) = read(name, &bytes, &ReadOptions::default()) {
            proptest::prop_assert!(!error.to_string().is_empty() && !error.code().is_empty());
            if let PolicyError::Fields { problems, .. } = error {
                proptest::prop_assert!(!problems.is_empty());
            }
        }
    }
}
