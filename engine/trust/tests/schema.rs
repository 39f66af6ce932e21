//! The published JSON Schema of trust policy files accepts and refuses what the reader does.
#![expect(clippy::expect_used, reason = "helpers of tests read files and may fail loudly")]

use std::path::{Path, PathBuf};

use ambit_engine::document::{self, DocumentLimits, Format, Node};
use ambit_trust::policy::{Claim, ReadOptions, read};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema() -> Value {
    let path = root().join("docs/reference/schemas/trust-policy-v1alpha1.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the schema")).expect("JSON")
}

fn files(folder: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(root().join("testdata/trust/policies").join(folder));
    let mut files: Vec<(String, String)> = entries
        .expect("a folder")
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(entry.path()).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

fn documents(text: &str) -> Vec<Value> {
    document::parse(text.as_bytes(), Format::Auto, &DocumentLimits::default())
        .expect("documents")
        .iter()
        .map(|document| document.root().to_json())
        .collect()
}

/// Returns where every key of the documents starts.
fn keys(node: &Node, found: &mut Vec<usize>) {
    for entry in node.as_mapping().into_iter().flatten() {
        found.push(entry.key_span().start_byte());
        if !["labels", "annotations"].contains(&entry.key()) {
            keys(entry.value(), found);
        }
    }
    for item in node.as_sequence().unwrap_or_default() {
        keys(item, found);
    }
}

#[test]
fn published_schema_accepts_what_is_read_and_no_other_key() {
    let schema = schema();
    jsonschema::meta::validate(&schema).expect("a valid schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (name, text) in files("good") {
        let errors: Vec<String> = documents(&text)
            .iter()
            .flat_map(|document| validator.iter_errors(document))
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let parsed = document::parse(text.as_bytes(), Format::Auto, &DocumentLimits::default());
        let mut places = Vec::new();
        for document in &parsed.expect("documents") {
            keys(document.root(), &mut places);
        }
        for place in places {
            if text[..place].ends_with("labels: {") || text[..place].ends_with("annotations: {") {
                continue;
            }
            let mut broken = text.clone();
            let quote = usize::from(text.as_bytes().get(place) == Some(&b'"'));
            broken.insert(place + quote, 'x');
            let refused = documents(&broken).iter().any(|document| !validator.is_valid(document));
            assert!(refused, "{name}: a wrong key at byte {place} is accepted");
        }
    }
}

#[test]
fn published_schema_names_every_claim() {
    let schema = schema();
    let claims = schema.pointer("/$defs/Identity/properties/claims/properties").expect("claims");
    let named: Vec<&String> = claims.as_object().expect("an object").keys().collect();
    let mut wanted: Vec<&str> = Claim::ALL.iter().map(|claim| claim.key()).collect();
    wanted.sort_unstable();
    let mut named: Vec<&str> = named.into_iter().map(String::as_str).collect();
    named.sort_unstable();
    assert_eq!(named, wanted);
}

#[test]
fn published_schema_refuses_what_can_be_refused_without_reading_values() {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    for name in [
        "no-authorities.yaml",
        "keyless-nobody.yaml",
        "identity-halves.yaml",
        "signer.yaml",
        "values.yaml",
        "rego.yaml",
        "kinds.yaml",
    ] {
        let path = root().join("testdata/trust/policies/bad").join(name);
        let text = std::fs::read_to_string(path).expect("a case");
        let accepted = documents(&text).iter().all(|document| validator.is_valid(document));
        assert!(!accepted, "{name}");
    }
}

#[test]
fn examples_of_the_reference_page_are_read() {
    let page = std::fs::read_to_string(root().join("docs/reference/trust-policy.md"));
    let page = page.expect("the page");
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    let mut examples = 0;
    for block in page.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        if !text.starts_with("apiVersion: ") {
            continue;
        }
        let file = read("page.yaml", text.as_bytes(), &ReadOptions::default());
        assert!(file.is_ok(), "{file:?}\n{text}");
        for document in documents(text) {
            let ours = document.get("apiVersion").and_then(Value::as_str);
            assert!(ours != Some("ambit.dev/v1alpha1") || validator.is_valid(&document), "{text}");
        }
        examples += 1;
    }
    assert!(examples >= 3, "{examples}");
}
