//! Signed timestamps: whole seconds, which the library reads too, and fractions, which it doesn't.

use ambit_testing::mint::{Flaw, Key, Mint, Purpose, Sct, Validity, World};
use ambit_trust::policy::{Authority, LogRule, SctRule, TimestampRule};
use ambit_trust::verify::{Artifact, LogEvidence, TimeSource, VerifiedTime, blob};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::common::{
    MANIFEST, Rules as _, attestation_layer, bundle, by_keys, code_of, flipped, keyless, now,
    roots, run, set, signature_layer, world,
};
use crate::table::{Table, signature};

const TOKEN: &str =
    "/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp";

/// Nobody logs, and a timestamp says when.
fn stamped(authority: Authority) -> Authority {
    authority.log(LogRule::Unasked).timestamp(TimestampRule::Required)
}

/// The log and a timestamp say when.
fn both(authority: Authority) -> Authority {
    authority.log(LogRule::Proof).timestamp(TimestampRule::Required)
}

/// The time of signing in whole seconds, and with a fraction.
fn times(world: &World) -> [Timestamp; 2] {
    let whole = world.signing_time();
    [whole, after(whole, 250)]
}

fn after(time: Timestamp, milliseconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_millis(milliseconds)).unwrap()
}

fn by_authority(time: Timestamp) -> VerifiedTime {
    VerifiedTime { time, source: TimeSource::TimestampAuthority }
}

fn by_log(time: Timestamp) -> VerifiedTime {
    VerifiedTime { time, source: TimeSource::Log }
}

type Change = for<'w> fn(Mint<'w>) -> Mint<'w>;

/// The ways in which a signature is logged or not, with the rules that ask for as much.
fn ways() -> [(&'static str, Change, Authority); 3] {
    [
        ("no log", |mint| mint.no_log(), stamped(keyless())),
        ("a log with times", |mint| mint, both(keyless())),
        ("a log without times", |mint| mint.second_log().tree(7, 4), both(keyless())),
    ]
}

#[test]
fn a_timestamp_counts_to_its_fraction() {
    let world = world();
    let root = world.trusted_root();
    let [whole, fraction] = times(&world);
    let finest = whole.checked_add(SignedDuration::from_nanos(1)).unwrap();
    for time in [whole, fraction, finest] {
        for (name, way, authority) in ways() {
            let minted = way(signature(&world).stamped(time));
            let verified = run(&bundle(&minted.bundle()), &authority, &root)
                .unwrap_or_else(|reject| panic!("{name} at {time}: {reject}"));
            let logged = (name == "a log with times").then(|| by_log(whole));
            let mut expected: Vec<_> = logged.into_iter().chain([by_authority(time)]).collect();
            expected.sort_unstable();
            if time == whole && name == "a log with times" {
                assert_eq!(verified.get().times.len(), 2, "{name} at {time}");
            }
            assert_eq!(verified.get().times, expected, "{name} at {time}");
            let log = verified.get().log.as_ref().map(|entry| entry.evidence);
            let expected = (name != "no log").then_some(LogEvidence::Proof);
            assert_eq!(log, expected, "{name} at {time}");
        }
    }
}

#[test]
fn each_of_several_timestamps_counts() {
    let world = world();
    let root = world.trusted_root();
    let [whole, fraction] = times(&world);
    for (name, way, authority) in ways() {
        let mint = || way(signature(&world).stamped(fraction).stamped(whole));
        let verified = run(&bundle(&mint().bundle()), &authority, &root).expect(name);
        let by_authorities = verified
            .get()
            .times
            .iter()
            .filter(|time| time.source == TimeSource::TimestampAuthority)
            .map(|time| time.time);
        assert_eq!(by_authorities.collect::<Vec<_>>(), [whole, fraction], "{name}");
        let mut table = Table::new(&world, authority);
        for time in [whole, fraction] {
            let wrong = mint().flawed_stamp(time, Flaw::OtherSignature).bundle();
            table.is(name, &bundle(&wrong), "signature-time");
        }
        table.finish();
    }
}

#[test]
fn a_message_or_a_key_can_be_stamped() {
    let world = world();
    let root = world.trusted_root();
    let key = Key::p256();
    for time in times(&world) {
        let message = world.mint().message(MANIFEST).no_log().stamped(time);
        let bytes = message.bytes();
        let roots = roots(&root);
        let artifact = Artifact::Bytes(MANIFEST);
        let found = blob(&bytes, artifact, &stamped(keyless()), &roots, now());
        assert_eq!(found.expect("a message").get().times, [by_authority(time)]);
        let minted = signature(&world).key(&key).no_log().stamped(time).bundle();
        let found = run(&bundle(&minted), &stamped(by_keys(&[&key])), &root).expect("a key");
        assert_eq!(found.get().times, [by_authority(time)]);
        let logged = signature(&world).key(&key).stamped(time).bundle();
        let found = run(&bundle(&logged), &both(by_keys(&[&key])), &root).expect("a logged key");
        assert_eq!(found.get().times.len(), 2);
        let second = signature(&world).key(&key).second_log().stamped(time).bundle();
        let found = run(&bundle(&second), &both(by_keys(&[&key])), &root).expect("a second log");
        assert_eq!(found.get().times, [by_authority(time)]);
        let mut table = Table::new(&world, stamped(by_keys(&[&key])));
        for flaw in [Flaw::OtherSignature, Flaw::OtherAuthority, Flaw::Changed] {
            let minted = signature(&world).key(&key).no_log().flawed_stamp(time, flaw);
            table.is("a key", &bundle(&minted.bundle()), "signature-time");
        }
        table.finish();
    }
}

#[test]
fn a_layer_of_a_tag_can_be_stamped() {
    let world = world();
    for time in times(&world) {
        let mut table = Table::new(&world, stamped(keyless()));
        for (flaw, expected) in [(Flaw::None, "ok"), (Flaw::OtherSignature, "signature-time")] {
            let mint = || signature(&world).no_log().flawed_stamp(time, flaw);
            table.is("signature", &signature_layer(mint().legacy_signature()), expected).is(
                "attestation",
                &attestation_layer(mint().legacy_attestation()),
                expected,
            );
        }
        table.finish();
    }
}

#[test]
fn a_timestamp_with_something_wrong_in_it_counts_nowhere() {
    let world = world();
    let flaws = [
        Flaw::OtherSignature,
        Flaw::OtherAuthority,
        Flaw::MessageDigest,
        Flaw::NoContentType,
        Flaw::OtherContentType,
        Flaw::OtherCertificate,
        Flaw::Changed,
        Flaw::TwoSigners,
        Flaw::CriticalExtension,
        Flaw::Refused,
        Flaw::Trailing,
    ];
    for (name, way, authority) in ways() {
        let mut table = Table::new(&world, authority);
        for time in times(&world) {
            table.is(name, &bundle(&way(signature(&world).stamped(time)).bundle()), "ok");
            for flaw in flaws {
                let minted = way(signature(&world).flawed_stamp(time, flaw)).bundle();
                let name = format!("{name}, {flaw:?} at {time}");
                table.is(&name, &bundle(&minted), "signature-time");
            }
            let flipped = flipped(way(signature(&world).stamped(time)).bundle(), TOKEN);
            table.is(name, &bundle(&flipped), "signature-time");
        }
        table.finish();
    }
}

#[test]
fn a_time_is_written_in_one_form() {
    let world = world();
    for (name, way, authority) in ways() {
        let mut table = Table::new(&world, authority);
        for (text, expected) in [
            ("20261130235900Z", "ok"),
            ("20261130235900.1Z", "ok"),
            ("20261130235900.01Z", "ok"),
            ("20261130235900.10Z", "signature-time"),
            ("20261130235900.0Z", "signature-time"),
            ("20261130235900.Z", "signature-time"),
            ("20261130235900,1Z", "signature-time"),
            ("20261130235900.1", "signature-time"),
            ("20261130235900", "signature-time"),
            ("20261130235900.1+0000", "signature-time"),
            ("20261130235900.1234567891Z", "signature-time"),
            ("202611302359Z", "signature-time"),
            ("2611302359.5Z", "signature-time"),
            ("20261130235860.1Z", "signature-time"),
            ("", "signature-time"),
        ] {
            let minted = way(signature(&world).stamped_as(text)).bundle();
            table.is(&format!("{name}: {text}"), &bundle(&minted), expected);
        }
        table.finish();
    }
}

#[test]
fn an_authority_counts_by_its_certificates_and_dates() {
    let at = world().signing_time();
    let wide = Validity::around(at);
    let hour = SignedDuration::from_hours(1);
    let past = Validity { from: wide.from, to: at.checked_sub(hour).unwrap() };
    let later = Validity { from: at.checked_add(hour).unwrap(), to: wide.to };
    for (name, root, own, purpose, expected) in [
        ("right", wide, wide, Purpose::Timestamps, "ok"),
        ("expired", wide, past, Purpose::Timestamps, "signature-time"),
        ("not yet valid", wide, later, Purpose::Timestamps, "signature-time"),
        ("expired root", past, wide, Purpose::Timestamps, "signature-time"),
        ("for code", wide, wide, Purpose::Code, "signature-time"),
        ("for code too", wide, wide, Purpose::More, "signature-time"),
        ("not critical", wide, wide, Purpose::NotCritical, "signature-time"),
    ] {
        let world = world().stamper(root, own, purpose);
        for (way, log, authority) in ways() {
            let mut table = Table::new(&world, authority);
            for time in times(&world) {
                let minted = log(signature(&world).stamped(time)).bundle();
                table.is(&format!("{name}, {way} at {time}"), &bundle(&minted), expected);
            }
            table.finish();
        }
    }
}

#[test]
fn an_authority_counts_in_its_own_window_only() {
    let world = world();
    let window = "/timestampAuthorities/0/validFor";
    let ended = json!({ "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z" });
    // Another authority, whose window holds the time, lends nobody its window.
    let other = crate::common::world().trusted_root()["timestampAuthorities"][0].clone();
    let mut lent = set(world.trusted_root(), window, ended.clone());
    lent["timestampAuthorities"].as_array_mut().expect("a list").push(other.clone());
    let mut second = world.trusted_root();
    second["timestampAuthorities"].as_array_mut().expect("a list").insert(0, other.clone());
    let above = "/timestampAuthorities/0/certChain/certificates/1";
    let stranger = other.pointer("/certChain/certificates/1").unwrap().clone();
    for (name, root, expected) in [
        ("another above", set(world.trusted_root(), above, stranger), "signature-time"),
        ("ended", set(world.trusted_root(), window, ended), "signature-time"),
        ("lent", lent, "signature-time"),
        ("one of two", second, "ok"),
        ("another", set(world.trusted_root(), "/timestampAuthorities/0", other), "signature-time"),
        ("none", set(world.trusted_root(), "/timestampAuthorities", json!([])), "signature-time"),
    ] {
        for (way, log, authority) in ways() {
            let mut table = Table::new(&world, authority);
            table.root = root.clone();
            for time in times(&world) {
                let minted = log(signature(&world).stamped(time)).bundle();
                table.is(&format!("{name}, {way} at {time}"), &bundle(&minted), expected);
            }
            table.finish();
        }
    }
}

#[test]
fn a_window_ends_within_a_second() {
    let world = world();
    let at = world.signing_time();
    let window = |end: Timestamp| {
        let range = json!({ "start": "2020-01-01T00:00:00Z", "end": end.to_string() });
        set(world.trusted_root(), "/timestampAuthorities/0/validFor", range)
    };
    let mut table = Table::new(&world, stamped(keyless()));
    let candidate = |milliseconds| {
        bundle(&signature(&world).no_log().stamped(after(at, milliseconds)).bundle())
    };
    table.root = window(at);
    table.is("at the end", &candidate(0), "ok").is("after", &candidate(1), "signature-time");
    table.root = window(after(at, 500));
    table.is("at the end", &candidate(500), "ok").is("after", &candidate(501), "signature-time");
    // As with every authority, its window has to hold the log's time too.
    let key = Key::p256();
    let later = json!({ "start": after(at, 1000).to_string() });
    table.root = set(world.trusted_root(), "/timestampAuthorities/0/validFor", later);
    for milliseconds in [2000, 2250] {
        let time = after(at, milliseconds);
        let alone = bundle(&signature(&world).no_log().stamped(time).bundle());
        let logged = bundle(&signature(&world).stamped(time).bundle());
        table.is("alone", &alone, "ok").is("with the log", &logged, "signature-time");
        let logged = bundle(&signature(&world).key(&key).stamped(time).bundle());
        table.under("a key", &logged, &both(by_keys(&[&key])), "signature-time");
    }
    table.finish();
}

#[test]
fn certificates_are_valid_at_the_time_of_the_timestamp() {
    let world = world();
    let at = world.signing_time();
    let minutes = |count: i64| at.checked_add(SignedDuration::from_mins(count)).unwrap();
    for (way, log, authority) in ways() {
        let mut table = Table::new(&world, authority);
        for milliseconds in [0, 250] {
            let time = after(at, milliseconds);
            for (name, validity, expected) in [
                ("valid", Validity { from: minutes(-1), to: minutes(1) }, "ok"),
                ("expired", Validity { from: minutes(-5), to: minutes(-1) }, "signature-time"),
                ("begins later", Validity { from: minutes(1), to: minutes(5) }, "signature-time"),
            ] {
                let minted = log(signature(&world).valid(validity).stamped(time)).bundle();
                table.is(&format!("{name}, {way} at {time}"), &bundle(&minted), expected);
            }
            // The log took it in time, and the timestamp came too late.
            let late = after(time, 30_000);
            let short = Validity { from: minutes(-1), to: after(at, 20_000) };
            let minted = log(signature(&world).valid(short).stamped(late)).bundle();
            table.is(&format!("late, {way} at {late}"), &bundle(&minted), "signature-time");
        }
        let ends = Validity { from: minutes(-1), to: at };
        let last = log(signature(&world).valid(ends).stamped(at)).bundle();
        let over = log(signature(&world).valid(ends).stamped(after(at, 1))).bundle();
        table
            .is(&format!("last, {way}"), &bundle(&last), "ok")
            .is(&format!("over, {way}"), &bundle(&over), "signature-time")
            .finish();
    }
}

#[test]
fn authorities_are_valid_at_the_time_of_the_timestamp() {
    let at = world().signing_time();
    let wide = Validity::around(at);
    let ends = Validity { from: wide.from, to: at };
    let before =
        Validity { from: wide.from, to: at.checked_sub(SignedDuration::from_secs(1)).unwrap() };
    for (name, world, whole, fraction) in [
        ("wide", World::with_root(now(), wide), "ok", "ok"),
        ("root ends", World::with_root(now(), ends), "ok", "signature-chain"),
        ("root ended", World::with_root(now(), before), "signature-chain", "signature-chain"),
        ("between ends", World::at(now()).intermediate(ends), "ok", "signature-chain"),
        (
            "between ended",
            World::at(now()).intermediate(before),
            "signature-chain",
            "signature-chain",
        ),
    ] {
        for (way, log, authority) in ways() {
            let mut table = Table::new(&world, authority);
            for (milliseconds, expected) in [(0, whole), (250, fraction)] {
                let minted = log(signature(&world).stamped(after(at, milliseconds))).bundle();
                table.is(&format!("{name}, {way}"), &bundle(&minted), expected);
            }
            table.finish();
        }
    }
    // And the window that the trust root gives an authority.
    let world = world();
    let range = json!({ "start": "2020-01-01T00:00:00Z", "end": at.to_string() });
    for (way, log, authority) in ways() {
        let mut table = Table::new(&world, authority);
        table.root = set(world.trusted_root(), "/certificateAuthorities/0/validFor", range.clone());
        for (milliseconds, expected) in [(0, "ok"), (250, "signature-chain")] {
            let minted = log(signature(&world).stamped(after(at, milliseconds))).bundle();
            table.is(&format!("window, {way}"), &bundle(&minted), expected);
        }
        table.finish();
    }
}

#[test]
fn everything_else_is_verified_beside_a_timestamp() {
    let world = world();
    let foreign: Value = crate::common::world().trusted_root()["certificateAuthorities"].clone();
    let foreign = set(world.trusted_root(), "/certificateAuthorities", foreign);
    for time in times(&world) {
        for (way, log, authority) in ways() {
            let name = |what: &str| format!("{what}, {way} at {time}");
            let mint = || log(signature(&world).stamped(time));
            let mut table = Table::new(&world, authority.clone());
            for sct in [Sct::Missing, Sct::OtherLog, Sct::Wrong] {
                let minted = mint().sct(sct).bundle();
                table.is(&name("SCT"), &bundle(&minted), "signature-sct");
                let lax = authority.clone().sct(SctRule::Ignored);
                table.under(&name("SCT ignored"), &bundle(&minted), &lax, "ok");
            }
            let payload = flipped(mint().bundle(), "/dsseEnvelope/payload");
            let found = run(&bundle(&payload), &authority, &table.root);
            assert!(found.is_err(), "{}", name("payload"));
            let elsewhere = log(world.mint().subject("sha256:00").stamped(time));
            table.is(&name("subject"), &bundle(&elsewhere.bundle()), "signature-subject");
            let stranger = mint().uri("https://example.com").bundle();
            table.is(&name("identity"), &bundle(&stranger), "signature-identity");
            let issuer = mint().issuer("https://example.com").bundle();
            table.is(&name("issuer"), &bundle(&issuer), "signature-issuer");
            if way != "no log" {
                let proof = "/verificationMaterial/tlogEntries/0/canonicalizedBody";
                let other = log(signature(&world).annotation("a", "b").stamped(time)).bundle();
                let body = other.pointer(proof).unwrap().clone();
                let swapped = set(mint().bundle(), proof, body);
                let found = run(&bundle(&swapped), &authority, &table.root);
                assert!(found.is_err(), "{}", name("entry"));
                let entries = "/verificationMaterial/tlogEntries";
                let all = other.pointer(entries).unwrap().clone();
                let swapped = bundle(&set(mint().bundle(), entries, all));
                table.is(&name("entries"), &swapped, "signature-tlog-mismatch");
            }
            table.root = foreign.clone();
            table.is(&name("another authority"), &bundle(&mint().bundle()), "signature-chain");
            table.finish();
        }
    }
}

#[test]
fn a_timestamp_from_the_future_counts_nowhere() {
    let world = world();
    let soon = after(now(), 1);
    let wide = Validity::around(now());
    for (way, log, authority) in ways() {
        let mut table = Table::new(&world, authority);
        for (time, expected) in [(now(), "ok"), (soon, "signature-time")] {
            let minted = log(signature(&world).valid(wide).stamped(time)).bundle();
            table.is(&format!("{way} at {time}"), &bundle(&minted), expected);
        }
        table.finish();
    }
}

#[test]
fn the_message_names_what_is_wrong() {
    let world = world();
    let root = roots(&world.trusted_root());
    let [_, time] = times(&world);
    for (flaw, expected) in [
        (Flaw::OtherSignature, "it is over another signature"),
        (Flaw::OtherAuthority, "its signature is not one of its authority"),
        (Flaw::MessageDigest, "its content is not what is signed"),
        (Flaw::OtherCertificate, "another signing certificate is signed along"),
        (Flaw::CriticalExtension, "it has a critical extension"),
    ] {
        let bytes = world.mint().message(MANIFEST).no_log().flawed_stamp(time, flaw).bytes();
        let artifact = Artifact::Bytes(MANIFEST);
        let reject = blob(&bytes, artifact, &stamped(keyless()), &root, now()).unwrap_err();
        assert_eq!(reject.message, format!("a signed timestamp doesn't count: {expected}"));
        assert_eq!(code_of::<()>(&Err(reject.code)), "signature-time");
    }
}
