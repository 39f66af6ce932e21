//! Any text as a host pattern in each dialect, and any URL after its last space as a call: printing
//! gives the text back, the canonical form keeps its meaning, and conversions hold what they promise.
#![no_main]

use ambit_engine::grant::{self, ConversionVerdict, Dialect, HostPattern, LintContext, Target};
use libfuzzer_sys::fuzz_target;

const DIALECTS: [Dialect; 3] = [Dialect::WasmCloud, Dialect::Spin, Dialect::Ambit];

fuzz_target!(|input: &str| {
    let (text, url) = input.rsplit_once(' ').unwrap_or((input, ""));
    let call = call(url);
    for dialect in DIALECTS {
        let Ok(pattern) = HostPattern::parse(text, dialect) else { continue };
        assert_eq!(pattern.to_string(), text);
        assert!(pattern.covers(&pattern));
        let before = call.as_ref().is_some_and(|call| pattern.matches(call));
        if pattern.canonical_is_exact() {
            let read = HostPattern::parse(&pattern.canonical(), Dialect::Ambit).expect("canonical");
            assert!(read.same_meaning(&pattern));
            assert_eq!(read.canonical(), pattern.canonical());
            assert_eq!(call.as_ref().is_some_and(|call| read.matches(call)), before);
        }
        for to in DIALECTS {
            let converted = grant::convert(&pattern, to);
            let read: Result<Vec<_>, _> =
                converted.texts.iter().map(|text| HostPattern::parse(text, to)).collect();
            let read = read.expect("a converted text");
            let after = call.as_ref().is_some_and(|call| read.iter().any(|p| p.matches(call)));
            match converted.verdict {
                ConversionVerdict::Inexpressible => assert!(read.is_empty()),
                // The loopback's name opens a port only together with the operator's flag.
                _ if !converted.loopback_ports.is_empty() => {}
                ConversionVerdict::Exact => assert_eq!(after, before, "{converted:?}"),
                ConversionVerdict::Narrowed => assert!(before || !after, "{converted:?}"),
                ConversionVerdict::Widened => assert!(!read.is_empty()),
            }
        }
        let _ = grant::lints(&pattern, &LintContext { has_secret: true });
        let _ = (pattern.describe(), pattern.text_for_report());
        let _ = (grant::breadth(&pattern), grant::address_classes(&pattern));
    }
    let _ = grant::crd_accepts(text);
    if let Ok(path) = grant::HostPath::parse(text) {
        let _ = path.sensitivity();
    }
});

fn call(url: &str) -> Option<Target> {
    Target::http_url(url).ok().or_else(|| {
        let (protocol, rest) = url.split_once("://")?;
        let (host, port) = rest.rsplit_once(':')?;
        Target::socket(protocol, host, port.parse().ok()?).ok()
    })
}
