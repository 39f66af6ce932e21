use proptest::prelude::*;

use super::super::{
    ConversionVerdict, Dialect, FolderMode, GuestPath, HostGrants, HostPath, HostPattern,
    LintContext, LookupPattern, LoopbackPort, Target, breadth, classify, convert, crd_accepts,
    lints,
};

fn dialect() -> impl Strategy<Value = Dialect> {
    prop_oneof![Just(Dialect::WasmCloud), Just(Dialect::Spin), Just(Dialect::Ambit)]
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["h", "a.h", "b.a.h", "ah", "example.com", "A.H", "host.internal"])
}

fn address() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["10.0.0.1", "10.1.2.3", "8.8.8.8", "[::1]", "[fd00::1]"])
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => name().prop_map(str::to_owned),
        2 => name().prop_map(|name| format!("*.{name}")),
        1 => name().prop_map(|name| format!("**.{name}")),
        2 => address().prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "*", "self", "10.0.0.0/8", "0.0.0.0/0", "[fd00::]/8", "host.wasmcloud.internal",
            "127.1", "h.", "x.spin.internal", "a@h", "my_svc",
        ]).prop_map(str::to_owned),
    ]
}

fn port() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        ":*",
        ":443",
        ":80",
        ":8443",
        ":79-444",
        ":80..444",
        ":default",
        ":8443-8444",
        ":5432",
        ":1-65535",
        "/",
        ":22/",
    ])
}

fn pattern_text() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec![
        "",
        "",
        "https://",
        "http://",
        "*://",
        "tcp://",
        "udp://",
        "postgres://",
        "HTTPS://",
    ]);
    let deny = prop::sample::select(vec!["", "", "", "!"]);
    (deny, scheme, host(), port())
        .prop_map(|(deny, scheme, host, port)| format!("{deny}{scheme}{host}{port}"))
}

fn pattern() -> impl Strategy<Value = HostPattern> {
    (pattern_text(), dialect())
        .prop_filter_map("refused", |(text, dialect)| HostPattern::parse(&text, dialect).ok())
}

fn target() -> impl Strategy<Value = Target> {
    let port = prop::sample::select(vec![0u16, 22, 80, 443, 5432, 8443, 8444]);
    let host = prop_oneof![name().prop_map(str::to_owned), address().prop_map(str::to_owned)];
    let scheme = prop::sample::select(vec!["http", "https", "tcp", "udp", "postgres", "nats"]);
    (scheme, host, port).prop_filter_map("refused", |(scheme, host, port)| match scheme {
        "http" | "https" if port == 0 => Target::http(scheme, &host).ok(),
        "http" | "https" => Target::http(scheme, &format!("{host}:{port}")).ok(),
        _ => Target::socket(scheme, &host, port).ok(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn print_gives_back_the_bytes(pattern in pattern()) {
        let again = HostPattern::parse(&pattern.to_string(), pattern.dialect());
        prop_assert_eq!(again.as_ref(), Ok(&pattern));
    }

    #[test]
    fn canonical_form_means_the_same(pattern in pattern(), target in target()) {
        if pattern.canonical_is_exact() {
            let read = HostPattern::parse(&pattern.canonical(), Dialect::Ambit);
            prop_assert!(read.is_ok());
            if let Ok(read) = read {
                prop_assert_eq!(read.matches(&target), pattern.matches(&target));
                prop_assert!(read.covers(&pattern) && pattern.covers(&read));
                prop_assert_eq!(read.canonical(), pattern.canonical());
            }
        } else {
            prop_assert_ne!(pattern.dialect(), Dialect::Ambit, "{}", pattern);
        }
    }

    #[test]
    fn covering_implies_matching(wide in pattern(), narrow in pattern(), target in target()) {
        if wide.covers(&narrow) && narrow.matches(&target) {
            prop_assert!(wide.matches(&target), "`{wide}` covers `{narrow}`, not {target}");
        }
    }

    #[test]
    fn covering_is_reflexive(pattern in pattern()) {
        prop_assert!(pattern.covers(&pattern));
    }

    #[test]
    fn ceiling_implies_decision(
        ceiling in prop::collection::vec(pattern(), 0..4),
        grants in prop::collection::vec(pattern(), 0..4),
        target in target(),
    ) {
        let (ceiling, grants) = (HostGrants::new(ceiling), HostGrants::new(grants));
        let allowed = |list: &HostGrants| {
            matches!(list.decide(&target), super::super::HostDecision::Allowed { .. })
        };
        if ceiling.first_not_covered(&grants).is_none() && allowed(&grants) {
            prop_assert!(allowed(&ceiling));
        }
    }

    #[test]
    fn conversions_keep_their_word(pattern in pattern(), to in dialect(), target in target()) {
        let conversion = convert(&pattern, to);
        let loopback = !conversion.loopback_ports.is_empty();
        let texts: Result<Vec<_>, _> =
            conversion.texts.iter().map(|text| HostPattern::parse(text, to)).collect();
        prop_assert!(texts.is_ok(), "{pattern}: {conversion:?}");
        let after = texts.iter().flatten().any(|text| text.matches(&target));
        let before = pattern.matches(&target);
        match conversion.verdict {
            ConversionVerdict::Exact if !loopback => prop_assert_eq!(before, after, "{:?}", conversion),
            ConversionVerdict::Narrowed => prop_assert!(before || !after, "{conversion:?}"),
            ConversionVerdict::Inexpressible => prop_assert!(texts.iter().flatten().next().is_none()),
            ConversionVerdict::Exact | ConversionVerdict::Widened => {}
        }
    }

    #[test]
    fn case_and_trailing_dot_do_not_count(pattern in pattern(), name in name()) {
        for scheme in ["http", "https"] {
            let plain = Target::http(scheme, name);
            let loud = Target::http(scheme, &format!("{}.", name.to_uppercase()));
            prop_assert_eq!(&plain, &loud);
            if let (Ok(plain), Ok(loud)) = (plain, loud) {
                prop_assert_eq!(pattern.matches(&plain), pattern.matches(&loud));
            }
        }
    }

    #[test]
    fn no_parser_panics(text in any::<String>(), odd in "[*!@:/\\[\\].0-9a-zA-Z~{}%-]{0,40}") {
        for text in [&text, &odd] {
            for dialect in [Dialect::WasmCloud, Dialect::Spin, Dialect::Ambit] {
                if let Ok(pattern) = HostPattern::parse(text, dialect) {
                    prop_assert_eq!(&pattern.to_string(), text);
                    let _ = (pattern.canonical(), pattern.describe(), pattern.text_for_report());
                    let _ = (lints(&pattern, &LintContext { has_secret: true }), breadth(&pattern));
                    for to in [Dialect::WasmCloud, Dialect::Spin, Dialect::Ambit] {
                        let _ = convert(&pattern, to);
                    }
                }
            }
            let _ = (crd_accepts(text), LookupPattern::parse(text), LoopbackPort::parse(text));
            let _ = (Target::http_url(text), Target::http("http", text));
            let _ = (Target::socket("tcp", text, 1), text.parse::<FolderMode>());
            let _ = GuestPath::parse(text);
            if let Ok(path) = HostPath::parse(text) {
                prop_assert_eq!(&path.to_string(), text);
                let again = HostPath::parse(path.as_str()).map(|p| p.as_str().to_owned());
                prop_assert_eq!(again.as_deref(), Ok(path.as_str()));
                let _ = path.sensitivity();
            }
        }
    }

    #[test]
    fn any_address_has_a_class(v4 in any::<u32>(), v6 in any::<u128>()) {
        let v4 = std::net::Ipv4Addr::from(v4);
        prop_assert_eq!(classify(v4.into()), classify(v4.to_ipv6_mapped().into()));
        let _ = classify(std::net::Ipv6Addr::from(v6).into());
    }
}
