//! Any text as a host pattern in each dialect: printing gives it back, the canonical form keeps its
//! meaning, and conversions hold what they promise.
#![no_main]

use ambit_engine::grant::{self, ConversionVerdict, Dialect, HostPattern, LintContext};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for dialect in [Dialect::WasmCloud, Dialect::Spin, Dialect::Ambit] {
        let Ok(pattern) = HostPattern::parse(text, dialect) else { continue };
        assert_eq!(pattern.to_string(), text);
        assert!(pattern.covers(&pattern) || pattern.planes().is_empty());
        if pattern.canonical_is_exact() {
            let read = HostPattern::parse(&pattern.canonical(), Dialect::Ambit).expect("canonical");
            assert!(read.same_meaning(&pattern));
        }
        for to in [Dialect::WasmCloud, Dialect::Spin, Dialect::Ambit] {
            let converted = grant::convert(&pattern, to);
            let nothing = converted.verdict == ConversionVerdict::Inexpressible;
            assert_eq!(converted.texts.is_empty(), nothing);
            for text in &converted.texts {
                assert!(HostPattern::parse(text, to).is_ok(), "{text}");
            }
        }
        let _ = grant::lints(&pattern, &LintContext { has_secret: true });
        let _ = (pattern.describe(), grant::breadth(&pattern), grant::address_classes(&pattern));
    }
    let _ = grant::crd_accepts(text);
    let _ = grant::Target::http_url(text);
    let _ = grant::HostPath::parse(text).map(|path| path.sensitivity());
});
