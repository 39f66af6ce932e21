//! For each check a pair of minted candidates that differ in one thing: one passes, one doesn't.

use std::collections::BTreeMap;

use ambit_testing::mint::{IDENTITY, ISSUER, Key, Mint, Name, Sct, Validity, World};
use ambit_trust::candidate::{Candidate, Content};
use ambit_trust::policy::{Claim, Identity, LogRule, SctRule, TimestampRule};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::common::{
    MANIFEST, Rules as _, bundle, by_identity, by_keys, digest, edit, exact, flipped, keyless, now,
    pattern, set, without, world,
};

use crate::table::{Table, signature};

const ENTRY: &str = "/verificationMaterial/tlogEntries/0";

fn at(path: &str) -> String {
    format!("{ENTRY}{path}")
}

#[test]
fn a_bundle_is_what_it_says() {
    let world = world();
    let good = signature(&world).bundle();
    let mut table = Table::new(&world, keyless());
    table.is("twin", &bundle(&good), "ok");

    // Relabelled, with the proof cut out, it would stand on the log's promise alone.
    let old = "application/vnd.dev.sigstore.bundle+json;version=0.1";
    let cut = without(good.clone(), ENTRY, "inclusionProof");
    table.is("relabelled", &bundle(&set(good.clone(), "/mediaType", old)), "signature-downgrade");
    table.is(
        "relabelled and cut",
        &bundle(&set(cut.clone(), "/mediaType", old)),
        "signature-downgrade",
    );
    table.is(
        "without a label",
        &bundle(&without(good.clone(), "", "mediaType")),
        "signature-downgrade",
    );
    table.is("cut", &bundle(&cut), "signature-tlog-missing");
    let unknown = set(good.clone(), "/mediaType", "application/vnd.dev.sigstore.bundle.v0.9+json");
    table.is("unknown label", &bundle(&unknown), "signature-format");

    let two = edit(good.clone(), "/dsseEnvelope/signatures", |list| {
        let list = list.as_array_mut().unwrap();
        list.push(list[0].clone());
    });
    table.is("two signatures", &bundle(&two), "signature-format");
    let text = good.to_string().replacen('{', "{\"mediaType\":\"x\",", 1);
    table.is("a key twice", &crate::common::bundle_bytes(text.into_bytes()), "signature-format");
    let bare = good["dsseEnvelope"].clone();
    table.is("a bare envelope", &bundle(&bare), "signature-format");
    let unreadable = Candidate {
        place: "referrer".to_owned(),
        content: Content::Unreadable("the layer is no bundle".to_owned()),
    };
    table.is("unreadable", &unreadable, "signature-format");
    table.finish();
}

#[test]
fn a_signature_is_of_its_key_over_its_payload() {
    let world = world();
    let good = signature(&world).bundle();
    let mut table = Table::new(&world, keyless());
    table.is("twin", &bundle(&good), "ok");
    let sig = "/dsseEnvelope/signatures/0/sig";
    table.is(
        "flipped signature",
        &bundle(&set(good.clone(), sig, "Z2FyYmFnZQ==")),
        "signature-invalid",
    );
    let other = signature(&world).annotation("a", "b").bundle();
    let payload = other["dsseEnvelope"]["payload"].clone();
    table.is(
        "another payload",
        &bundle(&set(good.clone(), "/dsseEnvelope/payload", payload)),
        "signature-invalid",
    );
    let leaf = "/verificationMaterial/certificate/rawBytes";
    let certificate = other["verificationMaterial"]["certificate"]["rawBytes"].clone();
    table.is("another certificate", &bundle(&set(good, leaf, certificate)), "signature-invalid");

    let message = world.mint().message(MANIFEST).bundle();
    table.is("message", &bundle(&message), "ok");
    let broken = set(message.clone(), "/messageSignature/signature", "Z2FyYmFnZQ==");
    table.is("message, broken", &bundle(&broken), "signature-invalid");
    let elsewhere = world.mint().message(b"another").bundle();
    table.is("message, another manifest", &bundle(&elsewhere), "signature-subject");
    let bare = without(message, "/messageSignature", "messageDigest");
    table.is("message without a digest", &bundle(&bare), "ok");
    table.is("leaf of P-384", &bundle(&signature(&world).leaf_key(Key::p384()).bundle()), "ok");
    let large = world.mint().leaf_key(Key::p384()).message(MANIFEST).bundle();
    table.is("SHA-256 by P-384", &bundle(&large), "signature-invalid");
    table.finish();
}

#[test]
fn a_statement_is_about_the_subject() {
    let world = world();
    let mut table = Table::new(&world, keyless());
    let other = format!("sha256:{}", "0".repeat(64));
    let bytes = |text: &str| bundle(&world.mint().payload(text.as_bytes()).bundle());
    let hex = digest()["sha256:".len()..].to_owned();
    table.is("twin", &bundle(&signature(&world).bundle()), "ok");
    table.is("another", &bundle(&world.mint().subject(&other).bundle()), "signature-subject");
    table.is(
        "v0.1",
        &bundle(&signature(&world).statement_type("https://in-toto.io/Statement/v0.1").bundle()),
        "ok",
    );
    table.is(
        "v2",
        &bundle(&signature(&world).statement_type("https://in-toto.io/Statement/v2").bundle()),
        "signature-format",
    );
    let sha512 = format!("sha512:{}", "0".repeat(128));
    table.is("SHA-512 only", &bundle(&world.mint().subject(&sha512).bundle()), "signature-subject");
    let upper = format!("sha256:{}", hex.to_uppercase());
    table.is("upper case", &bundle(&world.mint().subject(&upper).bundle()), "signature-subject");
    table.is("no subject", &bundle(&world.mint().bundle()), "signature-format");
    table.is(
        "payload type",
        &bundle(&signature(&world).payload_type("text/plain").bundle()),
        "signature-format",
    );

    let many =
        (0..300).fold(world.mint(), |mint, n: u32| mint.subject(&format!("sha256:{n:064x}")));
    table.is("ours is the 301st", &bundle(&many.subject(&digest()).bundle()), "ok");

    let statement = |subject: &str| {
        format!(
            r#"{{"_type":"https://in-toto.io/Statement/v1","subject":{subject},"predicateType":"t"}}"#
        )
    };
    let ours = format!(r#"[{{"digest":{{"sha256":"{hex}"}}}}]"#);
    table.is("spelled out", &bytes(&statement(&ours)), "ok");
    let twice = format!(r#"[{{"digest":{{"sha256":"{}","sha256":"{hex}"}}}}]"#, "0".repeat(64));
    table.is("a digest twice", &bytes(&statement(&twice)), "signature-format");
    let predicates = statement(&ours)
        .replace(r#""predicateType":"t""#, r#""predicateType":"t","predicateType":"t""#);
    table.is("a predicate type twice", &bytes(&predicates), "signature-format");
    table.is(
        "no predicate type",
        &bytes(&statement(&ours).replace(r#""predicateType":"t""#, r#""x":"t""#)),
        "signature-format",
    );
    table.is(
        "a subject without a digest",
        &bytes(&statement(r#"[{"name":"x"}]"#)),
        "signature-format",
    );
    table.is("not JSON", &bytes("{"), "signature-format");
    table.finish();
}

#[test]
fn one_name_one_issuer_and_the_claims() {
    let world = world();
    let mut table = Table::new(&world, keyless());
    let minted = |mint: Mint<'_>| bundle(&mint.bundle());
    let names = |names: Vec<Name>| bundle(&signature(&world).names(names).bundle());
    let uri = Name::Uri(IDENTITY.to_owned());
    table.is("twin", &minted(signature(&world)), "ok");
    table.is(
        "another name",
        &minted(signature(&world).uri("https://ci.example/other")),
        "signature-identity",
    );
    table.is(
        "longer name",
        &minted(signature(&world).uri(&format!("{IDENTITY}-evil"))),
        "signature-identity",
    );
    table.is(
        "another case",
        &minted(signature(&world).uri(&IDENTITY.to_uppercase())),
        "signature-identity",
    );
    table.is(
        "two names",
        &names(vec![uri.clone(), Name::Email("a@example.com".into())]),
        "signature-identity",
    );
    table.is("one name twice", &names(vec![uri.clone(), uri.clone()]), "signature-identity");
    table.is(
        "a host beside it",
        &names(vec![Name::Dns("example.com".into()), uri]),
        "signature-identity",
    );
    table.is("no name", &names(Vec::new()), "signature-identity");
    table.is(
        "OtherName only",
        &names(vec![Name::Other(IDENTITY.to_owned())]),
        "signature-identity",
    );
    table.is("a host only", &names(vec![Name::Dns("example.com".into())]), "signature-identity");
    table.is(
        "another issuer",
        &minted(signature(&world).issuer("https://issuer.example")),
        "signature-issuer",
    );
    table.is("no issuer", &minted(signature(&world).no_issuer()), "signature-issuer");

    let mail = by_identity(exact("a@example.com"), exact(ISSUER));
    table.under("e-mail", &minted(signature(&world).email("a@example.com")), &mail, "ok");
    let nobody = keyless().identities(Vec::new());
    table.under("nobody", &minted(signature(&world)), &nobody, "signature-identity");

    let whole = by_identity(pattern("https://github.com/acme/app"), exact(ISSUER));
    for (uri, expected) in [
        ("https://github.com/acme/app", "ok"),
        ("https://evil.example/?u=https://github.com/acme/app", "signature-identity"),
        ("https://github.com/acme/app-evil/x", "signature-identity"),
    ] {
        table.under(uri, &minted(signature(&world).uri(uri)), &whole, expected);
    }

    let claims = BTreeMap::from([
        (Claim::RunnerEnvironment, "github-hosted".to_owned()),
        (Claim::GithubWorkflowRepository, "acme/app".to_owned()),
    ]);
    let claiming = keyless().identities(vec![Identity {
        issuer: exact(ISSUER),
        subject: exact(IDENTITY),
        claims,
    }]);
    let hosted = || signature(&world).claim(11, "github-hosted");
    table.under("claims", &minted(hosted().claim(5, "acme/app")), &claiming, "ok");
    table.under("a claim missing", &minted(hosted()), &claiming, "signature-claim");
    table.under(
        "a claim differs",
        &minted(hosted().claim(5, "acme/other")),
        &claiming,
        "signature-claim",
    );
    table.under(
        "a claim twice",
        &minted(hosted().claim(5, "acme/app").claim(11, "x")),
        &claiming,
        "signature-format",
    );
    table.finish();
}

#[test]
fn the_chain_holds_at_the_time_of_signing() {
    let hour = SignedDuration::from_hours(1);
    let second = SignedDuration::from_secs(1);
    let wide = Validity::around(now());
    let signed = World::at(now()).signing_time();
    let until = |to| Validity { from: wide.from, to };
    for (name, root, intermediate, expected) in [
        ("both hold", wide, Some(wide), "ok"),
        ("the root alone", wide, None, "ok"),
        ("the root ended", until(signed - hour), None, "signature-chain"),
        ("the root ended just before", until(signed - second), None, "signature-chain"),
        ("the root ends just then", until(signed), None, "ok"),
        ("the root above ended", until(signed - hour), Some(wide), "signature-chain"),
        ("the intermediate ended", wide, Some(until(signed - second)), "signature-chain"),
        (
            "the intermediate begins later",
            wide,
            Some(Validity { from: signed + second, to: wide.to }),
            "signature-chain",
        ),
    ] {
        let mut world = World::with_root(now(), root);
        if let Some(validity) = intermediate {
            world = world.intermediate(validity);
        }
        Table::new(&world, keyless())
            .is(name, &bundle(&signature(&world).bundle()), expected)
            .finish();
    }

    let world = world();
    let mut table = Table::new(&world, keyless());
    let other = World::at(now());
    table.is(
        "an authority that isn't ours",
        &bundle(&other.mint().subject(&digest()).bundle()),
        "signature-tlog-missing",
    );
    let mut mixed = world.trusted_root();
    mixed["certificateAuthorities"] = other.trusted_root()["certificateAuthorities"].clone();
    table.root = mixed;
    table.is(
        "the log is ours and the authority isn't",
        &bundle(&signature(&world).bundle()),
        "signature-chain",
    );
    table.root = set(
        world.trusted_root(),
        "/certificateAuthorities/0/validFor",
        json!({ "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z" }),
    );
    table.is(
        "an authority that is no longer used",
        &bundle(&signature(&world).bundle()),
        "signature-chain",
    );
    table.finish();
}

#[test]
fn each_of_several_times_has_to_fit() {
    let second = SignedDuration::from_secs(1);
    let minute = SignedDuration::from_secs(60);
    let wide = Validity::around(now());
    let at = World::at(now()).signing_time();
    let twice = |world: &World, time| bundle(&signature(world).logged_again(time).bundle());
    let world = world();
    let mut table = Table::new(&world, keyless());
    table.is("two times", &twice(&world, at + second * 30), "ok");
    table.is("one before the certificate", &twice(&world, at - minute), "signature-time");
    table.is("one to come", &twice(&world, now() + minute), "signature-time");
    let until =
        |end: jiff::Timestamp| json!({ "start": "2020-01-01T00:00:00Z", "end": end.to_string() });
    let window = "/certificateAuthorities/0/validFor";
    table.root = set(world.trusted_root(), window, until(at + second));
    table.is(
        "the authority was in use at one",
        &twice(&world, at + second * 30),
        "signature-chain",
    );
    table.is("the authority was in use at both", &twice(&world, at + second), "ok");
    table.finish();

    let ended = World::with_root(now(), Validity { from: wide.from, to: at + second });
    let mut table = Table::new(&ended, keyless());
    table.is("its certificate held at one", &twice(&ended, at + second * 30), "signature-chain");
    table.is("its certificate held at both", &twice(&ended, at + second), "ok");
    table.finish();
}

#[test]
fn the_certificate_log_has_the_certificate() {
    let world = world();
    let mut table = Table::new(&world, keyless());
    let lax = keyless().sct(SctRule::Ignored);
    for (sct, expected) in [
        (Sct::Good, "ok"),
        (Sct::Missing, "signature-sct"),
        (Sct::OtherLog, "signature-sct"),
        (Sct::Wrong, "signature-sct"),
    ] {
        let candidate = bundle(&signature(&world).sct(sct).bundle());
        table.is(&format!("{sct:?}"), &candidate, expected);
        table.under(&format!("{sct:?}, not asked for"), &candidate, &lax, "ok");
    }
    table.root["ctlogs"] = json!([]);
    table.is("no certificate logs", &bundle(&signature(&world).bundle()), "signature-sct");
    table.finish();
}

#[test]
fn the_log_entry_is_about_this_signature() {
    let world = world();
    let key = Key::p256();
    let entries = |value: &Value| value["verificationMaterial"]["tlogEntries"].clone();
    let swapped = |to: &Value, from: &Value| {
        bundle(&set(to.clone(), "/verificationMaterial/tlogEntries", entries(from)))
    };
    let mut table = Table::new(&world, keyless());
    let (one, two) = (signature(&world).bundle(), signature(&world).annotation("a", "b").bundle());
    table.is("twin", &bundle(&one), "ok");
    table.is("another's entry", &swapped(&one, &two), "signature-tlog-mismatch");
    let again = signature(&world).bundle();
    table.is(
        "the same statement by another certificate",
        &swapped(&one, &again),
        "signature-tlog-mismatch",
    );
    let message = world.mint().message(MANIFEST).bundle();
    table.is("an entry of another kind", &swapped(&one, &message), "signature-format");
    let other = world.mint().message(b"another").bundle();
    table.is("another message's entry", &swapped(&message, &other), "signature-tlog-mismatch");
    let more = edit(one.clone(), "/verificationMaterial/tlogEntries", |list| {
        list.as_array_mut()
            .unwrap()
            .push(entries(&signature(&world).tree(3, 1).bundle())[0].clone());
    });
    table.is("another's entry beside its own", &bundle(&more), "signature-tlog-mismatch");

    let keyed = by_keys(&[&key]);
    let (one, two) = (
        signature(&world).key(&key).bundle(),
        signature(&world).key(&key).annotation("a", "b").bundle(),
    );
    table.under("key: twin", &bundle(&one), &keyed, "ok");
    table.under("key: another's entry", &swapped(&one, &two), &keyed, "signature-tlog-mismatch");
    let stranger = Key::p256();
    let foreign = signature(&world).key(&stranger).bundle();
    table.under(
        "key: another key's entry",
        &swapped(&one, &foreign),
        &keyed,
        "signature-tlog-mismatch",
    );
    let unasked = by_keys(&[&key]).log(LogRule::Unasked);
    table.under(
        "key: none asked for, and another's is there",
        &swapped(&one, &two),
        &unasked,
        "signature-tlog-mismatch",
    );
    table.finish();
}

#[test]
fn the_log_vouches_for_the_entry() {
    let world = world();
    let good = signature(&world).tree(7, 4).bundle();
    let mut table = Table::new(&world, keyless());
    table.is("twin", &bundle(&good), "ok");
    table.is("one leaf", &bundle(&signature(&world).bundle()), "ok");
    table.is("last of a tree", &bundle(&signature(&world).tree(6, 5).bundle()), "ok");
    let flip = |path: &str| bundle(&flipped(good.clone(), &at(path)));
    table.is("promise", &flip("/inclusionPromise/signedEntryTimestamp"), "signature-tlog-invalid");
    table.is("path", &flip("/inclusionProof/hashes/0"), "signature-tlog-invalid");
    table.is("root", &flip("/inclusionProof/rootHash"), "signature-tlog-invalid");
    table.is("body", &flip("/canonicalizedBody"), "signature-tlog-invalid");
    table.is(
        "index in the proof",
        &bundle(&set(good.clone(), &at("/inclusionProof/logIndex"), "3")),
        "signature-tlog-invalid",
    );
    table.is(
        "index in the promise",
        &bundle(&set(good.clone(), &at("/logIndex"), "9")),
        "signature-tlog-invalid",
    );
    let checkpoint = good
        .pointer(&at("/inclusionProof/checkpoint/envelope"))
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    let stamped =
        |text: String| bundle(&set(good.clone(), &at("/inclusionProof/checkpoint/envelope"), text));
    table.is(
        "checkpoint's size",
        &stamped(checkpoint.replacen("\n7\n", "\n8\n", 1)),
        "signature-tlog-invalid",
    );
    table.is(
        "checkpoint's name",
        &stamped(checkpoint.replacen("log.example\n", "log.other\n", 1)),
        "signature-tlog-invalid",
    );
    let another = World::at(now()).mint().subject(&digest()).bundle();
    let theirs =
        another.pointer(&at("/inclusionProof/checkpoint/envelope")).unwrap().as_str().unwrap();
    let (body, _) = checkpoint.split_once("\n\n").unwrap();
    let (_, signatures) = theirs.split_once("\n\n").unwrap();
    table.is(
        "checkpoint by another log",
        &stamped(format!("{body}\n\n{signatures}")),
        "signature-tlog-invalid",
    );

    table.is(
        "a log that isn't ours",
        &bundle(&signature(&world).foreign_log().bundle()),
        "signature-tlog-missing",
    );
    table.is("none", &bundle(&signature(&world).no_log().bundle()), "signature-tlog-missing");
    let mut bare = without(good.clone(), ENTRY, "inclusionPromise");
    bare = without(bare, ENTRY, "integratedTime");
    table.is("a proof without a time", &bundle(&bare), "signature-timestamp-missing");
    let neither = without(bare, ENTRY, "inclusionProof");
    table.is("neither proof nor promise", &bundle(&neither), "signature-tlog-missing");
    table.under("proof asked for", &bundle(&good), &keyless().log(LogRule::Proof), "ok");
    let unasked = keyless().log(LogRule::Unasked);
    table.under("none asked for, and it is good", &bundle(&good), &unasked, "ok");
    table.under(
        "none asked for, and it is wrong",
        &flip("/inclusionProof/hashes/0"),
        &unasked,
        "signature-tlog-invalid",
    );
    table.under(
        "none asked for, none there",
        &bundle(&signature(&world).no_log().bundle()),
        &unasked,
        "signature-tlog-missing",
    );

    let retired = json!({ "start": "2020-01-01T00:00:00Z", "end": "2026-11-30T23:58:59Z" });
    table.root = set(world.trusted_root(), "/tlogs/0/publicKey/validFor", retired);
    table.is("a log key that ended a second before", &bundle(&good), "signature-tlog-invalid");
    let just = json!({ "start": "2020-01-01T00:00:00Z", "end": "2026-11-30T23:59:00Z" });
    table.root = set(world.trusted_root(), "/tlogs/0/publicKey/validFor", just);
    table.is("a log key that ends just then", &bundle(&good), "ok");
    table.finish();
}

#[test]
fn times_are_verified_and_past() {
    let world = world();
    let mut table = Table::new(&world, keyless());
    let signed = world.signing_time();
    let minute = SignedDuration::from_secs(60);
    table.is("twin", &bundle(&signature(&world).bundle()), "ok");
    table.is("at this moment", &bundle(&signature(&world).log_time(now()).bundle()), "ok");
    table.is(
        "to come",
        &bundle(&signature(&world).log_time(now() + minute).bundle()),
        "signature-time",
    );
    table.is(
        "before the certificate",
        &bundle(&signature(&world).log_time(signed - minute).bundle()),
        "signature-time",
    );
    let old = Validity { from: signed - minute * 20, to: signed - minute * 10 };
    table.is(
        "after the certificate",
        &bundle(&signature(&world).valid(old).bundle()),
        "signature-time",
    );
    let claimed = set(
        signature(&world).bundle(),
        &at("/integratedTime"),
        (signed.as_second() - 1).to_string(),
    );
    table.is("a time that the log didn't sign", &bundle(&claimed), "signature-tlog-invalid");
    let asked = keyless().timestamp(TimestampRule::Required);
    table.under(
        "a timestamp asked for",
        &bundle(&signature(&world).bundle()),
        &asked,
        "signature-timestamp-missing",
    );
    table.is(
        "the second log without a timestamp",
        &bundle(&signature(&world).second_log().bundle()),
        "signature-timestamp-missing",
    );
    let key = Key::p256();
    let second = signature(&world).key(&key).second_log().bundle();
    table.under(
        "a key, the second log, no timestamp",
        &bundle(&second),
        &by_keys(&[&key]),
        "signature-timestamp-missing",
    );
    table.finish();
}
