use super::super::{Conversion, ConversionVerdict as V, Dialect, HostPattern, convert};
use super::{ambit, spin, wasmcloud};

fn texts(conversion: &Conversion) -> String {
    conversion.texts.join(" ")
}

fn expect(pattern: &HostPattern, to: Dialect, wanted: &str, verdict: V) {
    let conversion = convert(pattern, to);
    assert_eq!(texts(&conversion), wanted, "`{pattern}`: {:?}", conversion.reason);
    assert_eq!(conversion.verdict, verdict, "`{pattern}`: {:?}", conversion.reason);
    assert_eq!(conversion.texts.is_empty(), verdict == V::Inexpressible, "`{pattern}`");
    assert_eq!(conversion.reason.is_none(), verdict == V::Exact, "`{pattern}`");
}

#[test]
fn own_dialect_keeps_the_bytes() {
    expect(&ambit("HTTPS://A.b./"), Dialect::Ambit, "HTTPS://A.b./", V::Exact);
}

#[test]
fn ambit_to_wasmcloud_follows_the_table() {
    let to = Dialect::WasmCloud;
    expect(&ambit("h:*"), to, "h", V::Exact);
    expect(&ambit("*:*"), to, "*", V::Exact);
    expect(&ambit("https://h:default"), to, "https://h", V::Widened);
    expect(&ambit("https://h:443"), to, "https://h", V::Widened);
    expect(&ambit("h"), to, "https://h http://h", V::Widened);
    expect(&ambit("https://h:8443"), to, "https://h:8443", V::Exact);
    expect(&ambit("h:8443"), to, "h:8443", V::Exact);
    expect(&ambit("h:1-3"), to, "h:1 h:2 h:3", V::Exact);
    expect(&ambit("h:1-17"), to, "", V::Inexpressible);
    expect(&ambit("10.0.0.0/8"), to, "", V::Inexpressible);
    expect(&ambit("!h"), to, "", V::Inexpressible);
    expect(&ambit("**.h:*"), to, "*.h h", V::Exact);
    expect(&ambit("[::1]:80"), to, "", V::Inexpressible);
    expect(&ambit("tcp://10.0.0.1:5432"), to, "10.0.0.1:5432", V::Widened);
    expect(&ambit("tcp://h:5432"), to, "", V::Inexpressible);
    expect(&ambit("self"), to, "", V::Inexpressible);
    expect(&ambit("my_svc:*"), to, "", V::Inexpressible);
}

#[test]
fn loopback_is_a_pair_of_keys() {
    let conversion = convert(&ambit("host.internal:5432/tcp"), Dialect::WasmCloud);
    assert_eq!(texts(&conversion), "host.wasmcloud.internal:5432");
    let ports: Vec<String> = conversion.loopback_ports.iter().map(ToString::to_string).collect();
    assert_eq!(ports, ["5432/tcp"]);
    assert_eq!(conversion.verdict, V::Exact);
}

#[test]
fn wasmcloud_to_ambit_says_what_it_loses() {
    let to = Dialect::Ambit;
    expect(&wasmcloud("*"), to, "*:*", V::Exact);
    expect(&wasmcloud("h"), to, "h:*", V::Exact);
    expect(&wasmcloud("https://h:443"), to, "https://h:*", V::Exact);
    expect(&wasmcloud("h:443"), to, "h:443", V::Widened);
    expect(&wasmcloud("h:8443"), to, "h:8443", V::Exact);
    expect(&wasmcloud("*.10.0.0.1"), to, "", V::Inexpressible);
    expect(&wasmcloud("nats://h"), to, "", V::Inexpressible);
    expect(
        &wasmcloud("https://10.0.0.1:8080"),
        to,
        "https://10.0.0.1:8080 tcp://10.0.0.1:8080 udp://10.0.0.1:8080",
        V::Exact,
    );
}

#[test]
fn spin_converts_both_ways() {
    expect(&spin("https://h"), Dialect::Ambit, "https://h", V::Exact);
    expect(&spin("http://h:80..90"), Dialect::Ambit, "http://h:80-89", V::Exact);
    expect(&spin("*://h:*"), Dialect::Ambit, "h:*", V::Narrowed);
    expect(&spin("*://*:*"), Dialect::Ambit, "*:*", V::Exact);
    expect(&ambit("h"), Dialect::Spin, "https://h http://h", V::Exact);
    expect(
        &ambit("h:8000-8999"),
        Dialect::Spin,
        "https://h:8000..9000 http://h:8000..9000",
        V::Exact,
    );
    expect(
        &ambit("https://h:1-65535"),
        Dialect::Spin,
        "https://h:1..65535 https://h:65535",
        V::Exact,
    );
    expect(&ambit("*:*"), Dialect::Spin, "*://*:*", V::Exact);
    expect(&ambit("host.internal:1"), Dialect::Spin, "", V::Inexpressible);
    expect(&wasmcloud("h"), Dialect::Spin, "https://h:* http://h:*", V::Exact);
    expect(&spin("https://h"), Dialect::WasmCloud, "https://h", V::Widened);
    expect(&spin("postgres://10.0.0.1"), Dialect::WasmCloud, "10.0.0.1:5432", V::Widened);
}
