//! Signatures in, signers or codes out: the conformance suite's cases, what cosign and npm wrote,
//! and minted pairs that differ in one thing.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests read files and may fail loudly"
)]

#[path = "verification/common.rs"]
mod common;
#[path = "verification/conformance.rs"]
mod conformance;
#[path = "verification/keys.rs"]
mod keys;
#[path = "verification/legacy.rs"]
mod legacy;
#[path = "verification/limits.rs"]
mod limits;
#[path = "verification/mutants.rs"]
mod mutants;
#[path = "verification/properties.rs"]
mod properties;
#[path = "verification/results.rs"]
mod results;
#[path = "verification/roots.rs"]
mod roots;
#[path = "verification/samples.rs"]
mod samples;
#[path = "verification/table.rs"]
mod table;
#[path = "verification/timestamps.rs"]
mod timestamps;
