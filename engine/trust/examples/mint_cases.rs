//! Writes minted bundles, one JSON object a line, each with the trust root, the policy and our
//! verdict, for `.ci/differential-sigstore` to hold against another verifier.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a case that can't be made has to fail loudly"
)]

use std::collections::BTreeMap;
use std::io::Write as _;

use ambit_engine::digest::Digest;
use ambit_testing::mint::{Flaw, IDENTITY, ISSUER, Key, Mint, Name, Sct, Validity, World};
use ambit_trust::policy::{
    Authority, Formats, Identity, LogRule, Matcher, SctRule, Signer, TimestampRule,
};
use ambit_trust::verify::{Artifact, Roots, TrustRoot, blob};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const MANIFEST: &[u8] = b"{\"schemaVersion\":2}";

struct Cases {
    now: Timestamp,
    lines: Vec<Value>,
}

impl Cases {
    fn add(&mut self, name: &str, bundle: Value, root: &Value) {
        self.policed(name, bundle, root, IDENTITY, ISSUER);
    }

    fn policed(&mut self, name: &str, bundle: Value, root: &Value, identity: &str, issuer: &str) {
        let exact = |text: &str| Matcher::Exact(text.to_owned());
        let authority = Authority {
            name: "release".to_owned(),
            formats: Formats::Any,
            signer: Signer::Certificate {
                root: "test".to_owned(),
                identities: vec![Identity {
                    issuer: exact(issuer),
                    subject: exact(identity),
                    claims: BTreeMap::new(),
                }],
                sct: SctRule::Required,
            },
            log: LogRule::Proof,
            timestamp: TimestampRule::Optional,
            annotations: BTreeMap::new(),
            max_age: None,
            not_before: None,
            attestations: Vec::new(),
            sources: Vec::new(),
        };
        let mut roots = Roots::none();
        roots.insert(TrustRoot::from_json("test", root.to_string().as_bytes()).unwrap());
        let bytes = bundle.to_string().into_bytes();
        let result = blob(&bytes, Artifact::Bytes(MANIFEST), &authority, &roots, self.now);
        let verdict = match &result {
            Ok(_) => "ok".to_owned(),
            Err(reject) => reject.code.as_str().to_owned(),
        };
        let mut line = json!({
            "name": name,
            "root": root,
            "artifact": STANDARD.encode(MANIFEST),
            "identity": identity,
            "issuer": issuer,
            "ours": verdict,
        });
        line["bundle"] = bundle;
        self.lines.push(line);
    }
}

fn set(mut value: Value, pointer: &str, new: impl Into<Value>) -> Value {
    *value.pointer_mut(pointer).unwrap() = new.into();
    value
}

fn without(mut value: Value, pointer: &str, key: &str) -> Value {
    value.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    value
}

fn flipped(value: Value, pointer: &str) -> Value {
    let text = value.pointer(pointer).unwrap().as_str().unwrap();
    let mut bytes = STANDARD.decode(text).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    set(value, pointer, STANDARD.encode(bytes))
}

fn main() -> std::io::Result<()> {
    let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
    let mut cases = Cases { now, lines: Vec::new() };
    let world = World::at(now);
    signatures(&mut cases, &world);
    logs(&mut cases, &world);
    certificates(&mut cases, &world);
    authorities(&mut cases, now);
    timestamps(&mut cases, &world);
    let mut out = std::io::stdout().lock();
    for line in &cases.lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn signed(world: &World) -> Mint<'_> {
    world.mint().subject(&Digest::of(MANIFEST).to_string())
}

fn signatures(cases: &mut Cases, world: &World) {
    let root = &world.trusted_root();
    let good = signed(world).bundle();
    cases.add("statement", good.clone(), root);
    cases.add("statement with annotations", signed(world).annotation("a", "b").bundle(), root);
    let scan = signed(world).predicate("https://example.com/scan", json!({ "clean": true }));
    cases.add("attestation", scan.bundle(), root);
    cases.add("statement of P-384", signed(world).leaf_key(Key::p384()).bundle(), root);
    let message = world.mint().message(MANIFEST).bundle();
    cases.add("message", message.clone(), root);
    cases.add("message in a tree", world.mint().message(MANIFEST).tree(9, 5).bundle(), root);
    let sig = "/dsseEnvelope/signatures/0/sig";
    cases.add("garbage signature", set(good.clone(), sig, "Z2FyYmFnZQ=="), root);
    cases.add("flipped signature", flipped(good.clone(), sig), root);
    cases.add("flipped payload", flipped(good.clone(), "/dsseEnvelope/payload"), root);
    let raw = "/verificationMaterial/certificate/rawBytes";
    let other = signed(world).bundle();
    let certificate = other.pointer(raw).unwrap().clone();
    cases.add("another certificate", set(good.clone(), raw, certificate), root);
    cases.add("flipped certificate", flipped(good.clone(), raw), root);
    cases.add("flipped message", flipped(message.clone(), "/messageSignature/signature"), root);
    cases.add("another message", world.mint().message(b"another").bundle(), root);
    let digest = "/messageSignature/messageDigest/digest";
    cases.add("another message digest", flipped(message, digest), root);
    let elsewhere = world.mint().subject(&Digest::of(b"").to_string()).bundle();
    cases.add("another subject", elsewhere, root);
    let kind = "application/vnd.dev.sigstore.bundle.v0.9+json";
    cases.add("unknown version", set(good.clone(), "/mediaType", kind), root);
    cases.add("no version", without(good, "", "mediaType"), root);
}

fn logs(cases: &mut Cases, world: &World) {
    let root = &world.trusted_root();
    let entry = "/verificationMaterial/tlogEntries/0";
    let at = |path: &str| format!("{entry}{path}");
    let good = signed(world).tree(7, 4).bundle();
    for (size, index) in [(1, 0), (2, 1), (3, 2), (6, 5), (7, 4), (64, 33)] {
        let name = format!("leaf {index} of {size}");
        cases.add(&name, signed(world).tree(size, index).bundle(), root);
    }
    let flips = [
        "/inclusionPromise/signedEntryTimestamp",
        "/inclusionProof/hashes/0",
        "/inclusionProof/rootHash",
        "/canonicalizedBody",
    ];
    for path in flips {
        cases.add(&format!("flipped {path}"), flipped(good.clone(), &at(path)), root);
    }
    let sets =
        [("/inclusionProof/logIndex", "3"), ("/logIndex", "9"), ("/integratedTime", "1700000000")];
    for (path, new) in sets {
        cases.add(&format!("another {path}"), set(good.clone(), &at(path), new), root);
    }
    let other = signed(world).annotation("a", "b").bundle();
    let entries = "/verificationMaterial/tlogEntries";
    let foreign = other.pointer(entries).unwrap().clone();
    cases.add("another's entry", set(good.clone(), entries, foreign), root);
    let message = world.mint().message(MANIFEST).bundle();
    let foreign = world.mint().message(MANIFEST).bundle().pointer(entries).unwrap().clone();
    cases.add("another message's entry", set(message, entries, foreign), root);
    cases.add("unknown log", signed(world).foreign_log().bundle(), root);
    cases.add("no entry", signed(world).no_log().bundle(), root);
    cases.add("no proof", without(good.clone(), entry, "inclusionProof"), root);
    let bare = without(good.clone(), entry, "inclusionPromise");
    cases.add("no promise", without(bare, entry, "integratedTime"), root);
    let envelope = at("/inclusionProof/checkpoint/envelope");
    let note = good.pointer(&envelope).unwrap().as_str().unwrap().replacen("\n7\n", "\n8\n", 1);
    cases.add("checkpoint of another size", set(good.clone(), &envelope, note), root);
    let ended = json!({ "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z" });
    let retired = set(root.clone(), "/tlogs/0/publicKey/validFor", ended);
    cases.add("retired log", good.clone(), &retired);
    cases.add("root without logs", good, &set(root.clone(), "/tlogs", json!([])));
}

fn certificates(cases: &mut Cases, world: &World) {
    let root = &world.trusted_root();
    let minute = SignedDuration::from_secs(60);
    let at = world.signing_time();
    for (name, sct) in
        [("no SCT", Sct::Missing), ("SCT of another log", Sct::OtherLog), ("wrong SCT", Sct::Wrong)]
    {
        cases.add(name, signed(world).sct(sct).bundle(), root);
    }
    cases.add(
        "no certificate logs",
        signed(world).bundle(),
        &set(root.clone(), "/ctlogs", json!([])),
    );
    let shifted = |minutes: i32| {
        let from = at.saturating_add(minute.saturating_mul(minutes)).unwrap();
        let to = from.saturating_add(minute.saturating_mul(5)).unwrap();
        signed(world).valid(Validity { from, to }).bundle()
    };
    cases.add("certificate expired before", shifted(-20), root);
    cases.add("certificate begins later", shifted(20), root);
    let email = signed(world).email("a@example.com").bundle();
    cases.policed("e-mail", email.clone(), root, "a@example.com", ISSUER);
    cases.policed("another e-mail", email, root, "b@example.com", ISSUER);
    let good = signed(world).bundle();
    cases.policed("longer identity wanted", good.clone(), root, &format!("{IDENTITY}x"), ISSUER);
    cases.policed(
        "shorter identity wanted",
        good.clone(),
        root,
        "https://github.com/example/app",
        ISSUER,
    );
    cases.policed("another issuer wanted", good, root, IDENTITY, "https://issuer.example");
    cases.add("another issuer", signed(world).issuer("https://issuer.example").bundle(), root);
    cases.add("no issuer", signed(world).no_issuer().bundle(), root);
    let names = |names: Vec<Name>| signed(world).names(names).bundle();
    cases.add("no name", names(Vec::new()), root);
    cases.add("OtherName only", names(vec![Name::Other("me".to_owned())]), root);
    let two = vec![Name::Uri(IDENTITY.to_owned()), Name::Email("a@example.com".to_owned())];
    cases.add("two names", names(two), root);
}

fn authorities(cases: &mut Cases, now: Timestamp) {
    let wide = Validity::around(now);
    let hour = SignedDuration::from_hours(1);
    let past = Validity { from: wide.from, to: now.saturating_sub(hour).unwrap() };
    let both = World::at(now).intermediate(wide);
    cases.add("intermediate", signed(&both).bundle(), &both.trusted_root());
    let ended = World::at(now).intermediate(past);
    cases.add("intermediate expired", signed(&ended).bundle(), &ended.trusted_root());
    let ended = World::with_root(now, past);
    cases.add("root expired", signed(&ended).bundle(), &ended.trusted_root());
    let (ours, theirs) = (World::at(now), World::at(now));
    let mut mixed = ours.trusted_root();
    mixed["certificateAuthorities"] = theirs.trusted_root()["certificateAuthorities"].clone();
    cases.add("another authority", signed(&ours).bundle(), &mixed);
    let window = json!({ "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z" });
    let root = set(ours.trusted_root(), "/certificateAuthorities/0/validFor", window);
    cases.add("authority no longer used", signed(&ours).bundle(), &root);
}

fn timestamps(cases: &mut Cases, world: &World) {
    let root = &world.trusted_root();
    let at = world.signing_time();
    for milliseconds in [0, 24, 123, 500] {
        let time = at.saturating_add(SignedDuration::from_millis(milliseconds)).unwrap();
        let mint = || signed(world).stamped(time);
        cases.add(&format!("stamped at {time}"), mint().bundle(), root);
        let message = world.mint().message(MANIFEST).stamped(time).bundle();
        cases.add(&format!("message stamped at {time}"), message, root);
        let second = mint().second_log().tree(7, 4).bundle();
        cases.add(&format!("second log, stamped at {time}"), second, root);
        for flaw in [Flaw::OtherSignature, Flaw::OtherAuthority, Flaw::MessageDigest, Flaw::Changed]
        {
            let bundle = signed(world).flawed_stamp(time, flaw).bundle();
            cases.add(&format!("{flaw:?} stamped at {time}"), bundle, root);
        }
        let late = time.saturating_add(SignedDuration::from_secs(30)).unwrap();
        let validity =
            Validity { from: at, to: at.saturating_add(SignedDuration::from_secs(20)).unwrap() };
        let bundle = signed(world).valid(validity).stamped(late).bundle();
        cases.add(&format!("stamped late at {late}"), bundle, root);
        let other = set(root.clone(), "/timestampAuthorities", json!([]));
        cases.add(&format!("no authority for {time}"), mint().bundle(), &other);
    }
}
