//! What fuzzing found stays found: every input in `testdata/fuzz` goes through its parser again.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "helpers of tests read files and may fail loudly"
)]

use std::path::Path;

use ambit_engine::component::Component;
use ambit_engine::document::{DocumentLimits, Format};
use ambit_engine::grant::{Dialect, HostPattern};
use ambit_engine::limits::Limits;
use ambit_engine::policy::{Origin, Pack, PackFile, PolicyLimits};
use ambit_engine::reference::{PinnedReference, Reference};
use ambit_engine::workload;

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/fuzz").join(target);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| std::fs::read(entry.path()).expect("an input")).collect()
}

#[test]
fn inputs_that_broke_a_parser_break_it_no_more() {
    let mut count = 0;
    for bytes in inputs("component") {
        let _ = Component::read(&bytes, &Limits::default());
        count += 1;
    }
    for bytes in inputs("manifest") {
        let _ = workload::read(&bytes, Format::Auto, None, &DocumentLimits::default());
        count += 1;
    }
    for bytes in inputs("host_pattern") {
        let text = String::from_utf8_lossy(&bytes);
        for dialect in [Dialect::WasmCloud, Dialect::Spin, Dialect::Ambit] {
            if let Ok(pattern) = HostPattern::parse(&text, dialect) {
                assert_eq!(pattern.to_string(), text);
            }
        }
        count += 1;
    }
    for bytes in inputs("reference") {
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(reference) = text.parse::<Reference>() {
            assert_eq!(reference.to_string(), text);
            if let Ok(pinned) = PinnedReference::try_from(reference) {
                assert!(pinned.to_string().parse::<Reference>().is_ok(), "{pinned}");
            }
        }
        count += 1;
    }
    for bytes in inputs("settings") {
        // The first byte says what the rest is; so far only Rego was found.
        let text = bytes.get(1..).unwrap_or_default().to_vec();
        let files = [PackFile { name: "x.rego".to_owned(), text }];
        assert!(Pack::read("x", &files, Origin::Given, &PolicyLimits::default()).is_err());
        count += 1;
    }
    assert!(count > 0);
}
