//! The published JSON Schema is that of the types. `UPDATE_DOCS=1 cargo test` writes it anew.
use std::path::Path;

#[test]
fn published_schema_is_generated_from_the_types() {
    let schema = ambit_trust::policy::verify_schema();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference/schemas/verify-v1.schema.json");
    let text = format!("{schema:#}\n");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).expect("a schema");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == text, "it differs; run `UPDATE_DOCS=1 cargo test -p ambit-trust`");
    jsonschema::meta::validate(&schema).expect("a valid schema");
}
