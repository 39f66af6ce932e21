//! Trust policy files: no panic, no hang, and every refusal has a place and a code.
#![no_main]

use ambit_trust::policy::{PolicyError, ReadOptions, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match read("trust.yaml", bytes, &ReadOptions::default()) {
        Ok(file) => assert!(file.policies.iter().all(|policy| !policy.images.is_empty())),
        Err(error) => {
            assert!(!error.code().is_empty());
            if let PolicyError::Fields { problems, .. } = error {
                assert!(!problems.is_empty());
            }
        }
    }
});
