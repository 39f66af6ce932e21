//! Bundles and older signatures, verified under the built-in roots: no panic, no hang, and nothing
//! that was damaged is authentic.
#![no_main]

use std::sync::OnceLock;

use ambit_engine::digest::Digest;
use ambit_trust::candidate::{Candidate, Content, LegacyLayer};
use ambit_trust::verify::{Roots, Subject, inspect};
use libfuzzer_sys::fuzz_target;

static ROOTS: OnceLock<Roots> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let roots = ROOTS.get_or_init(|| Roots::builtin().expect("the roots of this build"));
    let content = match kind {
        b'{' => Content::Bundle(bytes.to_vec()),
        other => {
            // The parts of an older signature, one a line.
            let text = String::from_utf8_lossy(rest).into_owned();
            let mut parts = text.split('\n').map(str::to_owned);
            let mut part = || parts.next().filter(|part| !part.is_empty());
            let layer = LegacyLayer {
                payload: part().unwrap_or_default().into_bytes(),
                signature: part().unwrap_or_default(),
                certificate: part().map(|text| text.replace('|', "\n")),
                chain: part().map(|text| text.replace('|', "\n")),
                bundle: part(),
                timestamp: part(),
            };
            if other % 2 == 0 {
                Content::LegacySignature(layer)
            } else {
                Content::LegacyAttestation(layer)
            }
        }
    };
    let candidate = Candidate { place: "fuzz".to_owned(), content };
    let now = "2026-12-01T00:00:00Z".parse().expect("a time");
    // Nobody can have signed anything about the digest of these bytes.
    let subject = Subject { digest: Digest::of(bytes) };
    assert!(inspect(&candidate, &subject, roots, now).is_err());
});
