use super::super::{CanonicalHost, Target, TargetError as E};
use super::{socket, url};

#[test]
fn case_and_one_trailing_dot_do_not_count() {
    assert_eq!(url("https://API.Example.COM./x"), url("https://api.example.com"));
    assert_eq!(url("HTTP://a/?@:"), url("http://a"));
    assert_ne!(url("https://a:443/"), url("https://a/"));
}

#[test]
fn a_later_at_sign_belongs_to_the_path() {
    assert_eq!(url("https://a/x@b").to_string(), "https://a:443");
    let error = Target::http_url("https://api.allowed.test@evil.test/");
    assert_eq!(error, Err(E::Userinfo));
}

#[test]
fn numeric_names_are_refused() {
    for host in ["2130706433", "127.1", "0x7f.1", "0177.0.0.1", "0", "0x7f000001", "1.2.3.4.5"] {
        assert!(matches!(Target::http("http", host), Err(E::Host { .. })), "{host}");
        assert!(Target::socket("tcp", host, 1).is_err(), "{host}");
    }
    assert_eq!(url("http://127.0.0.1./"), url("http://127.0.0.1/"));
}

#[test]
fn ports_out_of_range_are_refused() {
    for authority in ["h:", "h:0", "h:65536", "h:x", "[::1]:", "h:+1"] {
        assert!(matches!(Target::http("http", authority), Err(E::Port { .. })), "{authority}");
    }
    assert!(matches!(Target::socket("tcp", "h", 0), Err(E::Port { .. })));
}

#[test]
fn malformed_hosts_are_refused() {
    for authority in ["", ":80", "a..b", ".a", "a b", "[::1", "[fe80::1%1]", "[1.2.3.4]", "a\\b"] {
        let error = Target::http("http", authority).expect_err(authority);
        assert_eq!(error.code(), "host-target");
        assert!(error.help().is_some());
    }
    assert!(matches!(Target::http("ftp", "h"), Err(E::Scheme { .. })));
    assert!(matches!(Target::socket("https", "h", 1), Err(E::Scheme { .. })));
    assert_eq!(Target::http_url("h"), Err(E::NoHost));
}

#[test]
fn mapped_addresses_are_ipv4() {
    let mapped = socket("tcp", "::ffff:10.0.0.1", 1);
    assert_eq!(mapped, socket("TCP", "10.0.0.1", 1));
    assert_eq!(url("http://[::FFFF:a00:1]/").host().to_string(), "10.0.0.1");
    assert_eq!(url("http://host.internal:1/").host(), &CanonicalHost::HostInternal);
}
