use std::net::IpAddr;

use super::super::{AddressClass as C, Consent, RangePolicy, RangeRule, classify, metadata_name};
use super::{ambit, wasmcloud};

fn address(text: &str) -> IpAddr {
    text.parse().expect(text)
}

#[test]
fn addresses_have_their_class() {
    let cases = [
        ("8.8.8.8", C::Public),
        ("10.0.0.1", C::Private),
        ("172.16.0.1", C::Private),
        ("172.32.0.1", C::Public),
        ("192.168.255.255", C::Private),
        ("100.64.0.1", C::CarrierNat),
        ("100.128.0.1", C::Public),
        ("127.255.0.1", C::Loopback),
        ("169.254.1.1", C::LinkLocal),
        ("169.254.169.254", C::Metadata),
        ("169.254.170.2", C::Metadata),
        ("169.254.170.23", C::Metadata),
        ("100.100.100.200", C::Metadata),
        ("168.63.129.16", C::Metadata),
        ("168.63.129.17", C::Public),
        ("192.0.0.192", C::Metadata),
        ("192.0.0.1", C::Reserved),
        ("192.0.2.1", C::Documentation),
        ("198.19.0.1", C::Benchmarking),
        ("224.0.0.1", C::Multicast),
        ("240.0.0.1", C::Reserved),
        ("255.255.255.255", C::Broadcast),
        ("0.0.0.0", C::Unspecified),
        ("0.1.2.3", C::Unspecified),
        ("::", C::Unspecified),
        ("::1", C::Loopback),
        ("fe80::1", C::LinkLocal),
        ("fc00::1", C::UniqueLocal),
        ("fd00:ec2::254", C::Metadata),
        ("fd00:ec2::23", C::Metadata),
        ("ff02::1", C::Multicast),
        ("2001:db8::1", C::Documentation),
        ("3fff::1", C::Documentation),
        ("2001:2::1", C::Benchmarking),
        ("2606:4700::1111", C::Public),
        ("100::1", C::Reserved),
        ("4000::1", C::Reserved),
    ];
    for (text, class) in cases {
        assert_eq!(classify(address(text)), class, "{text}");
    }
}

#[test]
fn carried_addresses_are_judged() {
    let cases = [
        ("::ffff:169.254.169.254", C::Metadata),
        ("::ffff:8.8.8.8", C::Public),
        ("::127.0.0.1", C::Loopback),
        ("::ffff:0:10.0.0.1", C::Private),
        ("64:ff9b::a9fe:a9fe", C::Metadata),
        ("64:ff9b::10.0.0.1", C::Private),
        ("64:ff9b::8.8.8.8", C::Public),
        ("64:ff9b:1::a9fe:a9fe", C::Metadata),
        ("64:ff9b:1::8.8.8.8", C::Public),
        ("64:ff9b:1:a9fe:a9:fe00:808:808", C::Metadata),
        ("64:ff9b:1:a:0:1::", C::Private),
        ("64:ff9b:1:0:a9:fea9:fe00:0", C::Metadata),
        // The last four bytes read as 10.0.0.1, which consent opens; the /48 layout does not.
        ("64:ff9b:1:a9fe:a9:fe00:a00:1", C::Metadata),
        ("2002:7f00:1::1", C::Loopback),
        ("2002:a9fe:a9fe::", C::Metadata),
        ("2002:808:808::1", C::Public),
        // A Teredo client is written with its bits inverted: 127.0.0.1, then 8.8.8.8.
        ("2001:0:808:808::80ff:fffe", C::Loopback),
        ("2001:0:808:808::f7f7:f7f7", C::Public),
        ("2001:0:a00:1::f7f7:f7f7", C::Private),
    ];
    for (text, class) in cases {
        assert_eq!(classify(address(text)), class, "{text}");
    }
}

#[test]
fn special_ranges_stay_shut_whatever_consents() {
    let policy = RangePolicy::default();
    let consents = [Consent::None, Consent::Literal, Consent::Cidr, Consent::PrivateNetwork];
    for consent in consents {
        for text in ["169.254.169.254", "127.0.0.1", "::1", "fe80::1", "64:ff9b::7f00:1", "0.0.0.0"]
        {
            assert_eq!(policy.allows(address(text), consent), Err(classify(address(text))));
        }
        assert_eq!(policy.allows(address("8.8.8.8"), consent), Ok(()));
        let private = policy.allows(address("10.0.0.1"), consent);
        assert_eq!(private.is_ok(), consent != Consent::None);
    }
    let open = policy.with(C::Loopback, RangeRule::Allow);
    assert_eq!(open.allows(address("127.0.0.1"), Consent::None), Ok(()));
}

#[test]
fn literals_and_ranges_consent_and_wildcards_do_not() {
    let inside = address("10.0.0.1");
    assert_eq!(ambit("10.0.0.1:*").consent(inside), Consent::Literal);
    assert_eq!(ambit("10.0.0.0/8").consent(address("::ffff:10.0.0.1")), Consent::Cidr);
    assert_eq!(ambit("*:*").consent(inside), Consent::None);
    assert_eq!(wasmcloud("10.0.0.2").consent(inside), Consent::None);
}

#[test]
fn metadata_names_are_known() {
    for name in ["metadata.google.internal.", "METADATA", "instance-data.ec2.internal"] {
        assert!(metadata_name(name), "{name}");
    }
    assert!(!metadata_name("metadata.example.com"));
}
