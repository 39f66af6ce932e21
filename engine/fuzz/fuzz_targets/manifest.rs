//! Any bytes as a workload document: read, bounded, turned into reach, and never a panic.
#![no_main]

use std::sync::LazyLock;

use ambit_engine::catalogue::Catalogue;
use ambit_engine::document::{DocumentLimits, Format};
use ambit_engine::reach::{Bytes, Reach};
use ambit_engine::report::{self, ReachSource};
use ambit_engine::workload::{self, Target};
use libfuzzer_sys::fuzz_target;

static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::builtin().expect("the built-in catalogue"));

fuzz_target!(|bytes: &[u8]| {
    for target in [Target::WasmCloud, Target::Spin, Target::Ambit] {
        let read = workload::read(bytes, Format::Auto, Some(target), &DocumentLimits::default());
        let Ok(documents) = read else { return };
        for workload in &documents.workloads {
            let absent = vec![Bytes::Absent("fuzz"); workload.components.len()];
            let reach = Reach::of(workload, &absent, target, &CATALOGUE);
            let digests = vec![None; workload.components.len()];
            let source = ReachSource {
                file: "fuzz",
                workload,
                reach: &reach,
                digests: &digests,
                under_ambit: &[],
            };
            let _ = report::reach(&[source], &[]);
        }
    }
});
