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
    if let Ok(component) = Component::read_with(bytes, &Limits::default(), options) {
        let set = CapabilitySet::of(&component, &CATALOGUE);
        assert!(set.linked.is_subset(&set.declared));
        assert!(component.imports.is_empty() || !set.declared.is_empty());
        let _ = report::inspect("fuzz", &component, &set);
    }
});
