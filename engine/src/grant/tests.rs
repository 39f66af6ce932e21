mod addresses;
mod conversions;
mod folders;
mod patterns;
mod properties;
mod remarks;
mod targets;

use super::{Dialect, HostPattern, Target};

fn wasmcloud(text: &str) -> HostPattern {
    HostPattern::parse(text, Dialect::WasmCloud).expect(text)
}

fn spin(text: &str) -> HostPattern {
    HostPattern::parse(text, Dialect::Spin).expect(text)
}

fn ambit(text: &str) -> HostPattern {
    HostPattern::parse(text, Dialect::Ambit).expect(text)
}

fn url(text: &str) -> Target {
    Target::http_url(text).expect(text)
}

fn socket(protocol: &str, host: &str, port: u16) -> Target {
    Target::socket(protocol, host, port).expect(host)
}

/// Asserts which of the URLs an entry matches; a leading `-` means that it doesn't.
fn check(pattern: &HostPattern, cases: &[&str]) {
    for case in cases {
        let (wanted, target) = case.strip_prefix('-').map_or((true, *case), |rest| (false, rest));
        assert_eq!(pattern.matches(&url(target)), wanted, "`{pattern}` and `{target}`");
    }
}
