use super::super::{Breadth, HostPattern, LintContext, breadth, lints};
use super::{ambit, spin, wasmcloud};

fn codes(pattern: &HostPattern, has_secret: bool) -> Vec<&'static str> {
    let found = lints(pattern, &LintContext { has_secret });
    for lint in &found {
        assert!(!lint.message().is_empty() && lint.help().is_some());
    }
    found.iter().map(super::super::HostLint::code).collect()
}

/// Each row raises its code; the row below it is the near miss that doesn't.
#[test]
fn each_code_has_a_case_and_a_near_miss() {
    assert_eq!(codes(&wasmcloud("*"), false), ["host-any"]);
    assert!(codes(&wasmcloud("*.example.com"), false).is_empty());
    assert_eq!(codes(&wasmcloud("*.com"), false), ["host-public-suffix"]);
    assert_eq!(codes(&wasmcloud("*.co.uk"), false), ["host-public-suffix"]);
    assert!(codes(&wasmcloud("*.example.co.uk"), false).is_empty());
    for text in ["*.amazonaws.com", "*.eu-west-1.amazonaws.com", "*.windows.net", "*.github.io"] {
        assert_eq!(codes(&wasmcloud(text), false), ["host-shared-suffix"], "{text}");
    }
    assert!(codes(&wasmcloud("sts.amazonaws.com"), false).is_empty());
    assert!(codes(&wasmcloud("*.me.github.io"), false).is_empty());
    assert_eq!(codes(&wasmcloud("h.example"), true), ["host-cleartext-secret"]);
    assert_eq!(codes(&ambit("http://h.example"), true), ["host-cleartext-secret"]);
    assert!(codes(&wasmcloud("h.example"), false).is_empty());
    assert!(codes(&wasmcloud("https://h.example"), true).is_empty());
    for text in ["https://h.example:443", "h.example:443", "http://*.h.example:80"] {
        assert_eq!(codes(&wasmcloud(text), false), ["host-default-port"], "{text}");
    }
    assert!(codes(&wasmcloud("https://h.example:8443"), false).is_empty());
    assert!(codes(&ambit("https://h.example:443"), false).is_empty());
    for text in ["169.254.169.254", "[::1]:80", "[fd00:ec2::254]", "0.0.0.0", "localhost"] {
        assert_eq!(codes(&wasmcloud(text), false)[0], "host-special-range", "{text}");
    }
    assert_eq!(codes(&ambit("metadata.google.internal"), false), ["host-special-range"]);
    assert_eq!(codes(&ambit("10.0.0.1"), false), ["host-private-range"]);
    assert_eq!(codes(&ambit("10.0.0.0/8"), false), ["host-private-range"]);
    assert!(codes(&ambit("8.8.8.8"), false).is_empty());
    let all = codes(&ambit("0.0.0.0/0"), false);
    assert_eq!(all, ["host-special-range", "host-private-range"]);
    assert_eq!(codes(&ambit("h.example:*"), false), ["host-all-ports"]);
    assert_eq!(codes(&wasmcloud("https://a:b@h.example"), false), ["host-userinfo"]);
    assert!(codes(&ambit("!*"), true).is_empty());
}

#[test]
fn no_remark_repeats_a_credential() {
    let pattern = wasmcloud("http://user:hunter2@h.example:80");
    for lint in lints(&pattern, &LintContext { has_secret: true }) {
        let text = format!("{} {:?}", lint.message(), lint.help());
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn sinks_that_a_stranger_can_own_are_unbounded() {
    for pattern in [
        wasmcloud("*"),
        wasmcloud("*.com"),
        wasmcloud("*.s3.amazonaws.com"),
        ambit("**.vercel.app"),
        ambit("8.8.8.0/24"),
        spin("*://*:*"),
    ] {
        assert_eq!(breadth(&pattern), Breadth::Unbounded, "{pattern}");
    }
    for pattern in [wasmcloud("*.example.com"), ambit("8.8.8.8/32"), ambit("host.internal:1")] {
        assert_eq!(breadth(&pattern), Breadth::Bounded, "{pattern}");
    }
}
