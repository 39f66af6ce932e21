use super::super::{
    Dialect, HostDecision, HostGrants, HostPattern, HostPatternError as E, LookupPattern,
    LoopbackPort, Name, crd_accepts,
};
use super::{ambit, check, socket, spin, url, wasmcloud};

fn refused(text: &str, dialect: Dialect) -> E {
    let error = HostPattern::parse(text, dialect).expect_err(text);
    assert_eq!(error.code(), "host-pattern");
    assert!(error.help().is_some());
    error
}

/// The rows of the table that compares the custom resource's pattern with the runtime's parser.
#[test]
fn wasmcloud_rows_mean_what_the_runtime_means() {
    let metadata = "http://169.254.169.254/";
    check(&wasmcloud("*"), &[metadata, "https://a:1/", "http://[::1]/"]);
    check(&wasmcloud("h"), &["http://h/", "https://H:9/", "-https://a.h/"]);
    check(&wasmcloud("h:8443"), &["https://h:8443/", "http://h:8443/", "-https://h/"]);
    check(&wasmcloud("h:443"), &["https://h:443/", "http://h:443/", "-https://h/"]);
    check(&wasmcloud("https://h"), &["https://h/", "https://h:8443/", "-http://h/"]);
    check(&wasmcloud("https://h/"), &["https://h/", "-http://h/"]);
    check(&wasmcloud("https://h:443"), &["https://h/", "https://h:8443/", "-http://h/"]);
    check(&wasmcloud("https://h:80"), &["https://h:80/", "-https://h/", "-http://h/"]);
    check(&wasmcloud("*.h"), &["http://a.h:7/", "https://a.b.h/", "-https://h/"]);
    check(&wasmcloud("https://*.h:443"), &["https://a.h:443/", "-https://a.h/"]);
    check(&wasmcloud("*.com"), &["https://a.com/", "-https://a.org/"]);
    check(&wasmcloud("*.10.0.0.1"), &["-http://10.0.0.1/"]);
    check(&wasmcloud("[::1]:80"), &["http://[::1]:80/", "-http://[::1]/", "-http://[::1]:81/"]);
    check(&wasmcloud("my_svc.ns"), &["http://my_svc.ns/"]);
    check(&wasmcloud("h."), &["http://h/", "http://h./"]);
    check(&wasmcloud("https://2130706433"), &["https://127.0.0.1/"]);
    let userinfo = wasmcloud("https://user:pw@h");
    check(&userinfo, &["https://h/"]);
    assert!(userinfo.has_userinfo());
    assert_eq!(userinfo.text_for_report(), "https://***@h");
    assert_eq!(userinfo.to_string(), "https://user:pw@h");
}

#[test]
fn wasmcloud_refuses_what_the_runtime_refuses() {
    let refused = |text| refused(text, Dialect::WasmCloud);
    assert!(matches!(refused("h:99999"), E::Port { .. }));
    assert!(matches!(refused("10.0.0.0/8"), E::Cidr { .. }));
    for text in ["*:443", "a-*.h", "**.h", "*foo", "https://*"] {
        assert!(matches!(refused(text), E::Wildcard { .. }), "{text}");
    }
    for text in ["h/v1", "h/", "https://h/v1", "https://h?q", "https://h#f"] {
        assert!(matches!(refused(text), E::Path), "{text}");
    }
    assert!(matches!(refused("!h"), E::Deny));
    assert!(matches!(refused("user@h"), E::Userinfo));
    assert!(matches!(refused("::1"), E::Address { .. }));
    assert!(matches!(refused(""), E::Empty));
    for text in ["h:", "h:0", "https://h:", "h:+80"] {
        assert!(matches!(refused(text), E::Port { .. }), "{text}");
    }
}

#[test]
fn custom_resource_pattern_differs_from_the_runtime() {
    for text in ["*", "h", "h:8443", "https://h:443", "*.h", "https://*.h:443", "*.10.0.0.1"] {
        assert!(crd_accepts(text), "{text}");
    }
    for text in ["h:99999", "https://2130706433", "https://h/", "10.0.0.1:5432"] {
        assert!(crd_accepts(text), "{text}");
    }
    for text in ["[::1]:80", "h.", "my_svc.ns", "https://user:pw@h", "10.0.0.0/8", "*:443"] {
        assert!(!crd_accepts(text), "{text}");
    }
    for text in ["a-*.h", "**.h", "h/v1", "h/", "", "-h", "h:123456", "://h", "https://h//"] {
        assert!(!crd_accepts(text), "{text}");
    }
}

#[test]
fn wasmcloud_sockets_follow_addresses_and_ignore_the_scheme() {
    assert!(wasmcloud("10.0.0.1").matches(&socket("tcp", "10.0.0.1", 5432)));
    assert!(wasmcloud("https://10.0.0.1:8080").matches(&socket("udp", "10.0.0.1", 8080)));
    assert!(!wasmcloud("https://10.0.0.1:8080").matches(&socket("tcp", "10.0.0.1", 8081)));
    assert!(wasmcloud("*").matches(&socket("tcp", "192.0.2.1", 1)));
    assert!(!wasmcloud("*.h").matches(&socket("tcp", "a.h", 1)));
    assert!(!wasmcloud("h").matches(&socket("tcp", "h", 1)));
}

#[test]
fn only_the_reserved_name_reaches_the_loopback() {
    let target = url("http://host.internal:2375/");
    let other = url("http://host.wasmcloud.internal:2375/");
    for pattern in [wasmcloud("host.wasmcloud.internal:2375"), ambit("host.internal:2375")] {
        assert!(pattern.matches(&target) && pattern.matches(&other), "{pattern}");
    }
    for pattern in [wasmcloud("*"), ambit("*:*"), wasmcloud("*.wasmcloud.internal")] {
        assert!(!pattern.matches(&target) && !pattern.matches(&other), "{pattern}");
    }
    let tcp = ambit("host.internal:5432/tcp");
    assert!(tcp.matches(&socket("tcp", "host.internal", 5432)));
    assert!(!tcp.matches(&socket("udp", "host.internal", 5432)));
    for text in ["host.internal", "host.internal:*", "host.internal:1-2", "http://host.internal"] {
        assert!(matches!(refused(text, Dialect::Ambit), E::HostInternalPort), "{text}");
    }
}

#[test]
fn spin_rows_mean_what_spin_means() {
    check(&spin("https://h"), &["https://h/", "https://h:443/", "-https://h:444/", "-http://h/"]);
    check(&spin("*://*:*"), &["http://a:7/", "https://b/"]);
    check(&spin("*://h:80"), &["http://h/", "http://h:80/", "https://h:80/", "-https://h/"]);
    check(&spin("http://h:8000..8002"), &["http://h:8001/", "-http://h:8002/", "-http://h:7999/"]);
    check(&spin("https://*.h"), &["https://a.b.h/", "-https://h/"]);
    check(&spin("HTTPS://h:443"), &["-https://h/"]);
    check(&spin("http://0x7f.1/"), &["http://127.0.0.1/"]);
    check(&spin("https://bücher.example"), &["https://xn--bcher-kva.example/"]);
    check(&spin("http://10.0.0.0/8:*"), &["http://10.9.9.9:1/", "-http://11.0.0.1/"]);
    check(&spin("http://self"), &["-http://self/"]);
    check(&spin("http://backend.spin.internal"), &["http://backend.spin.internal/"]);
    let ports = [("postgres", 5432), ("mysql", 3306), ("redis", 6379), ("mqtt", 1883)];
    for (scheme, port) in ports {
        let pattern = spin(&format!("{scheme}://db"));
        assert!(pattern.matches(&socket(scheme, "db", port)), "{scheme}");
        assert!(!pattern.matches(&socket(scheme, "db", 1)), "{scheme}");
    }
    assert!(spin("*://10.0.0.1:53").matches(&socket("udp", "10.0.0.1", 53)));
}

#[test]
fn spin_refusals_say_why() {
    let refused = |text| refused(text, Dialect::Spin);
    assert!(matches!(refused("*"), E::BareWildcard));
    assert_eq!(refused("*").help(), Some("write `*://*:*` if every host is meant"));
    assert!(matches!(refused("example.com"), E::MissingScheme));
    assert!(matches!(refused("https://{{ host }}"), E::Template));
    assert!(matches!(refused("tcp://h"), E::NoDefaultPort { .. }));
    assert!(matches!(refused("*://h"), E::NoDefaultPort { .. }));
    assert!(matches!(refused("http://h/path"), E::Path));
    assert!(matches!(refused("http://h:{80,81}"), E::Port { .. }));
    assert!(matches!(refused("http://h:9..9"), E::PortRange { .. }));
    assert!(matches!(refused("h2c+x://h:1"), E::Scheme { .. }));
    assert!(matches!(refused("https://a@b"), E::Userinfo));
    assert!(matches!(refused("https://**.h"), E::Wildcard { .. }));
}

#[test]
fn ambit_reads_the_strict_way() {
    check(&ambit("h"), &["https://h/", "http://h/", "-https://h:80/", "-http://h:8080/"]);
    check(&ambit("*"), &["https://a/", "http://b:80/", "-https://a:8443/"]);
    check(&ambit("https://h:443"), &["https://h/", "https://h:443/", "-https://h:8443/"]);
    check(&ambit("HTTPS://H./"), &["https://h/", "-http://h/"]);
    check(&ambit("h:80-443"), &["https://h/", "http://h/", "http://h:100/", "-http://h:444/"]);
    check(&ambit("**.h:*"), &["https://h:1/", "https://a.b.h/", "-https://ah/"]);
    check(&ambit("[fd00::]/8:*"), &["http://[fd12::1]/", "-http://[fe80::1]/"]);
    check(&ambit("10.0.0.7/8"), &["http://10.1.2.3/"]);
    check(&ambit("[::ffff:10.0.0.1]"), &["http://10.0.0.1/", "http://[::ffff:a00:1]/"]);
    assert!(ambit("tcp://db.example:5432").matches(&socket("tcp", "db.example", 5432)));
    assert!(!ambit("db.example:5432").matches(&socket("tcp", "db.example", 5432)));
    assert!(ambit("10.0.0.1:5432").matches(&socket("tcp", "10.0.0.1", 5432)));
    assert!(!ambit("10.0.0.1").matches(&socket("tcp", "10.0.0.1", 443)));
}

#[test]
fn ambit_refuses_what_could_be_read_two_ways() {
    let refused = |text| refused(text, Dialect::Ambit);
    for text in ["2130706433", "127.1", "0x7f.1", "0177.0.0.1", "0", "*.10.0.0.1", "**.1"] {
        let error = refused(text);
        let numeric = matches!(error, E::Host { source: super::super::NameError::Numeric, .. });
        assert!(numeric, "{text}: {error}");
    }
    assert!(matches!(refused("https://a@b"), E::Userinfo));
    assert!(matches!(refused("h:443-80"), E::PortRange { .. }));
    assert!(matches!(refused("ssh://h"), E::NoDefaultPort { .. }));
    assert!(matches!(refused("https://h/p"), E::Path));
    assert!(matches!(refused("a.*.h"), E::Wildcard { .. }));
    assert!(matches!(refused("!!h"), E::Deny));
    assert!(matches!(refused("10.0.0.0/33"), E::Cidr { .. }));
    assert!(matches!(refused("::1"), E::Address { .. }));
    assert!(matches!(refused("[fe80::1%eth0]"), E::Address { .. }));
    assert!(matches!(refused("h.."), E::Host { .. }));
    assert!(matches!(refused(&"a".repeat(2000)), E::TooLong { .. }));
}

#[test]
fn deny_wins_and_takes_every_port() {
    let grants: HostGrants =
        ["*:*", "!evil.example", "!10.0.0.0/8:22"].map(ambit).into_iter().collect();
    assert_eq!(grants.decide(&url("https://a.example/")), HostDecision::Allowed { entry: 0 });
    let denied = HostDecision::DeniedByEntry { entry: 1 };
    assert_eq!(grants.decide(&url("https://evil.example/")), denied);
    assert_eq!(grants.decide(&url("https://EVIL.example.:8443/")), denied);
    let ssh = socket("tcp", "10.0.0.1", 22);
    assert_eq!(grants.decide(&ssh), HostDecision::DeniedByEntry { entry: 2 });
    let nothing = HostGrants::default();
    assert_eq!(nothing.decide(&url("https://a/")), HostDecision::NotGranted);
}

#[test]
fn ceiling_names_the_entry_that_goes_over_it() {
    let list = |entries: &[&str]| -> HostGrants { entries.iter().map(|e| ambit(e)).collect() };
    let ceiling = list(&["https://**.example.com", "!https://secret.example.com"]);
    let over =
        |entries: &[&str]| ceiling.first_not_covered(&list(entries)).map(ToString::to_string);
    assert_eq!(over(&["https://a.example.com", "https://example.com:443"]), None);
    assert_eq!(over(&["https://a.example.com", "a.example.com"]).as_deref(), Some("a.example.com"));
    assert_eq!(over(&["https://*.example.com"]).as_deref(), Some("https://*.example.com"));
    assert_eq!(over(&["https://*.example.com", "!secret.example.com"]), None);
    let wasmcloud: HostGrants = [wasmcloud("https://a.example.com")].into_iter().collect();
    assert!(ceiling.first_not_covered(&wasmcloud).is_some(), "any port is over the default port");
}

#[test]
fn reports_print_the_ports_meant() {
    let meant = |pattern: HostPattern| pattern.ports_meant();
    assert_eq!(meant(wasmcloud("h")), "any port");
    assert_eq!(meant(wasmcloud("h:443")), "443, only when the URL spells it");
    assert_eq!(meant(wasmcloud("h:8443")), "8443");
    assert_eq!(meant(ambit("h")), "443 (https), 80 (http)");
    assert_eq!(meant(ambit("https://h")), "443");
    let words = wasmcloud("api.example.com").describe();
    assert_eq!(words, "api.example.com over any scheme, any port");
    let words = wasmcloud("https://10.0.0.1:8080").describe();
    assert_eq!(words, "10.0.0.1 (private) over https, port 8080; raw sockets too");
    assert_eq!(ambit("!*.h").describe(), "not any name below h over any scheme, any port");
}

#[test]
fn lookup_wider_than_hosts_is_seen() {
    let lookup = |text: &str| LookupPattern::parse(text).expect(text);
    let hosts: HostGrants = [wasmcloud("*.example.com")].into_iter().collect();
    assert!(lookup("a.example.com").is_within(&hosts));
    assert!(lookup("*.B.example.com.").is_within(&hosts));
    assert!(!lookup("example.com").is_within(&hosts));
    assert!(!lookup("*").is_within(&hosts));
    assert_eq!(lookup("::1").to_string(), "::1");
    for text in ["", "*foo", "https://h", "h:53", "h/p"] {
        assert!(LookupPattern::parse(text).is_err(), "{text}");
    }
}

#[test]
fn loopback_ports_are_single_numbers() {
    let read = |text: &str| LoopbackPort::parse(text).map(|port| port.to_string()).ok();
    assert_eq!(read("5432").as_deref(), Some("5432/tcp"));
    assert_eq!(read("5432/tcp").as_deref(), Some("5432/tcp"));
    assert_eq!(read("53/UDP").as_deref(), Some("53/udp"));
    for text in ["0", "65536", "", "1-2", "*", "80/sctp", "80/", "+80"] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn names_compare_by_whole_labels() {
    let name = |text: &str| Name::parse(text).expect(text);
    assert!(name("a.b.c").is_below(&name("b.c")));
    assert!(!name("ab.c").is_below(&name("b.c")));
    assert!(!name("b.c").is_below(&name("b.c")));
}
