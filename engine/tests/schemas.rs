//! The published JSON Schemas are those of the types. `UPDATE_DOCS=1 cargo test` writes them anew.
#![expect(clippy::disallowed_methods, reason = "the test reads and writes published files")]

use std::path::Path;

use ambit_engine::{input, report};

#[test]
fn published_schemas_are_generated_from_the_types() {
    for (name, schema) in [
        ("input-v1", input::schema()),
        ("inspect-v1", report::inspect_schema()),
        ("reach-v1", report::reach_schema()),
        ("decision-v1", report::decision_schema()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs/reference/schemas")
            .join(format!("{name}.schema.json"));
        let text = format!("{schema:#}\n");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(&path, &text).expect("a schema");
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == text, "{name} differs; run `UPDATE_DOCS=1 cargo test --test schemas`");
        jsonschema::meta::validate(&schema).expect("a valid schema");
    }
}
