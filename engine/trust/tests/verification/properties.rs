//! Whatever is done to a bundle, it never says more than it did.

use std::sync::LazyLock;

use ambit_testing::mint::{Key, Layer, World};
use ambit_trust::candidate::Candidate;
use ambit_trust::policy::{Authority, LogRule};
use ambit_trust::verify::{Roots, Signed, TrustRoot, inspect, verify};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::Value;

use crate::common::{
    Rules as _, bundle, bundle_bytes, by_identity, by_keys, now, pattern, roots, set,
    signature_layer, subject, world,
};
use crate::table::signature;

struct Fixture {
    roots: Roots,
    bytes: Vec<u8>,
    keyed: Vec<u8>,
    layer: Layer,
    stamped: Value,
    anyone: Authority,
    stampers: Authority,
    holder: Authority,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let world: World = world();
    let key = Key::p256();
    Fixture {
        roots: roots(&world.trusted_root()),
        bytes: signature(&world).tree(5, 2).bytes(),
        keyed: signature(&world).key(&key).no_log().bytes(),
        layer: signature(&world).legacy_signature(),
        stamped: signature(&world).no_log().stamped_as("20261130235900.25Z").bundle(),
        anyone: by_identity(pattern("(?s).*"), pattern("(?s).*")),
        stampers: by_identity(pattern("(?s).*"), pattern("(?s).*")).log(LogRule::Unasked),
        holder: by_keys(&[&key]).log(LogRule::Unasked),
    }
});

fn signed(candidate: &Candidate, authority: &Authority) -> Option<Signed> {
    let result = verify(candidate, &subject(), authority, &FIXTURE.roots, now());
    result.ok().map(|verified| verified.get().clone())
}

fn says_no_more(original: &Candidate, mutated: &Candidate, authority: &Authority) {
    let before = signed(original, authority).expect("the original is good");
    if let Some(after) = signed(mutated, authority) {
        assert_eq!(after.signer, before.signer);
        assert_eq!(after.statement, before.statement);
        assert_eq!(after.times, before.times);
    }
}

fn mutated(bytes: &[u8], edits: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, value) in edits {
        let at = at.index(bytes.len());
        bytes[at] ^= value;
    }
    bytes
}

fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_changed_bundle_never_verifies_as_something_else(edits in edits()) {
        let fixture = &*FIXTURE;
        let changed = bundle_bytes(mutated(&fixture.bytes, &edits));
        says_no_more(&bundle_bytes(fixture.bytes.clone()), &changed, &fixture.anyone);
        let _ = inspect(&changed, &subject(), &fixture.roots, now());
    }

    #[test]
    fn a_changed_bundle_of_a_key_never_verifies_as_something_else(edits in edits()) {
        let fixture = &*FIXTURE;
        let changed = bundle_bytes(mutated(&fixture.keyed, &edits));
        says_no_more(&bundle_bytes(fixture.keyed.clone()), &changed, &fixture.holder);
    }

    #[test]
    fn a_changed_layer_never_verifies_as_something_else(edits in edits(), part in 0..5) {
        let fixture = &*FIXTURE;
        let mut layer = fixture.layer.clone();
        let text = |text: &str| String::from_utf8_lossy(&mutated(text.as_bytes(), &edits)).into_owned();
        match part {
            0 => layer.payload = mutated(&layer.payload, &edits),
            1 => layer.signature = text(&layer.signature),
            2 => layer.certificate = layer.certificate.as_deref().map(text),
            3 => layer.chain = layer.chain.as_deref().map(text),
            _ => layer.bundle = layer.bundle.as_deref().map(text),
        }
        let original = signature_layer(fixture.layer.clone());
        says_no_more(&original, &signature_layer(layer), &fixture.anyone);
    }

    #[test]
    fn no_bytes_break_the_readers(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let layer = Layer {
            payload: bytes.clone(),
            signature: text.clone(),
            certificate: Some(text.clone()),
            chain: Some(text.clone()),
            bundle: Some(text.clone()),
            timestamp: None,
        };
        prop_assert!(signed(&signature_layer(layer), &FIXTURE.anyone).is_none());
        prop_assert!(TrustRoot::from_json("x", &bytes).is_err());
        prop_assert!(TrustRoot::from_certificates("x", &text, &text).is_err());
        prop_assert!(signed(&bundle_bytes(bytes), &FIXTURE.anyone).is_none());
    }

    #[test]
    fn no_token_of_any_bytes_counts(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        nested in prop::collection::vec(prop::sample::select(vec![0x30_u8, 0x31, 0xa0, 0x02, 0x04, 0x06, 0x18, 0x80, 0x81, 0x00, 0x01, 0x05, 0x7f]), 0..80),
    ) {
        for token in [bytes, nested] {
            let data = serde_json::json!({
                "rfc3161Timestamps": [{ "signedTimestamp": STANDARD.encode(&token) }],
            });
            let mut bundle = FIXTURE.stamped.clone();
            bundle["verificationMaterial"]["timestampVerificationData"] = data;
            let bytes = bundle.to_string().into_bytes();
            prop_assert!(signed(&bundle_bytes(bytes), &FIXTURE.stampers).is_none());
        }
    }

    #[test]
    fn a_changed_token_says_no_more(edits in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4)) {
        let token = "/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp";
        let text = FIXTURE.stamped.pointer(token).and_then(Value::as_str).expect("a token");
        let bytes = mutated(&STANDARD.decode(text).expect("base64"), &edits);
        let changed = set(FIXTURE.stamped.clone(), token, STANDARD.encode(bytes));
        says_no_more(&bundle(&FIXTURE.stamped), &bundle(&changed), &FIXTURE.stampers);
    }

    #[test]
    fn statements_of_any_json_are_read_or_refused(
        text in r#"\{("(_type|subject|predicateType|digest|sha256)":("[a-f0-9]{0,8}"|\[\]|\{\}|1|null),?){0,5}\}"#
    ) {
        let world = world();
        let candidate = bundle_bytes(world.mint().payload(text.as_bytes()).bytes());
        prop_assert!(signed(&candidate, &FIXTURE.anyone).is_none());
    }
}
