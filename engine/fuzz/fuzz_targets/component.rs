//! Any bytes as a component: read, classified, described, and never a panic.
#![no_main]

use std::sync::LazyLock;

use ambit_engine::capability::CapabilitySet;
use ambit_engine::catalogue::Catalogue;
use ambit_engine::component::{CodeCheck, Component, HintScan, ReadOptions};
use ambit_engine::limits::Limits;
use ambit_engine::report;
use libfuzzer_sys::fuzz_target;

static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::builtin().expect("the built-in catalogue"));

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions { code: CodeCheck::Skip, hints: HintScan::Collect };
    let limits = Limits::default();
    let Ok(component) = Component::read_with(bytes, &limits, options) else { return };
    let set = CapabilitySet::of(&component, &CATALOGUE);
    assert!(set.linked.is_subset(&set.declared));
    assert!(set.imports.iter().all(|import| import.linked.is_subset(&import.declared)));
    assert!(component.imports.is_empty() || !set.declared.is_empty());
    let _ = report::inspect("fuzz", &component, &set);

    // The linker's maps are hashed with fresh keys for each read; none of that may show.
    assert_eq!(Component::read_with(bytes, &limits, options).as_ref(), Ok(&component));

    // A linker that gives up takes more to be linked, never less.
    let mut tight = limits;
    (tight.max_link_steps, tight.max_instances) = (usize::from(bytes[bytes.len() - 1]), 8);
    let options = ReadOptions { code: CodeCheck::Validate, hints: HintScan::Skip };
    if let Ok(rough) = Component::read_with(bytes, &tight, options) {
        for (rough, exact) in rough.imports.iter().zip(&component.imports) {
            for (rough, exact) in rough.functions.iter().zip(&exact.functions) {
                assert!(rough.linked || !exact.linked, "`{}` was lost", exact.name);
            }
        }
    }
});
