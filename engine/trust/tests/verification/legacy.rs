//! Layers of cosign's older tags, minted.

use ambit_testing::mint::{Key, Layer, World};
use ambit_trust::candidate::{Candidate, Content};
use ambit_trust::policy::{KeyHash, LogRule, TimestampRule};
use ambit_trust::verify::{LogEvidence, Statement};
use serde_json::{Value, json};

use crate::common::{
    Rules as _, annotations_of, attestation_layer, by_keys, by_spki, digest, keyless, layer, run,
    signature_layer, world,
};
use crate::table::{Table, signature};

fn payload(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value = json!({
        "critical": {
            "identity": { "docker-reference": "registry.example/app" },
            "image": { "docker-manifest-digest": digest() },
            "type": "cosign container image signature",
        },
        "optional": null,
    });
    change(&mut value);
    value.to_string().into_bytes()
}

#[test]
fn a_signature_layer_is_verified_as_the_bundle_that_it_would_be() {
    let world = world().intermediate(ambit_testing::mint::Validity::around(crate::common::now()));
    let root = world.trusted_root();
    let candidate = signature_layer(signature(&world).annotation("env", "prod").legacy_signature());
    let verified = run(&candidate, &keyless(), &root).expect("a good layer");
    let signed = verified.get();
    assert_eq!(annotations_of(signed)["env"], "prod");
    assert_eq!(signed.log.as_ref().map(|log| log.evidence), Some(LogEvidence::Promise));
    assert_eq!(signed.times.len(), 1);

    let mut table = Table::new(&world, keyless());
    let minted = |change: fn(&mut Layer)| {
        let mut minted = signature(&world).legacy_signature();
        change(&mut minted);
        signature_layer(minted)
    };
    table.is("twin", &minted(|_| {}), "ok");
    table.is("without the chain", &minted(|layer| layer.chain = None), "ok");
    table.is("without the log", &minted(|layer| layer.bundle = None), "signature-tlog-missing");
    table.under(
        "a proof asked for",
        &minted(|_| {}),
        &keyless().log(LogRule::Proof),
        "signature-tlog-missing",
    );
    table.under(
        "a timestamp asked for",
        &minted(|_| {}),
        &keyless().timestamp(TimestampRule::Required),
        "signature-timestamp-missing",
    );
    table.is("no certificate", &minted(|layer| layer.certificate = None), "signature-other-key");
    table.is(
        "two certificates",
        &minted(|layer| {
            let pem = layer.certificate.clone().unwrap_or_default();
            layer.certificate = Some(pem.repeat(2));
        }),
        "signature-format",
    );
    table.is(
        "a signature that isn't base64",
        &minted(|layer| layer.signature = "?".to_owned()),
        "signature-format",
    );
    table.is(
        "another signature",
        &minted(|layer| layer.signature = "Z2FyYmFnZQ==".to_owned()),
        "signature-invalid",
    );
    table.is(
        "a log entry that can't be read",
        &minted(|layer| layer.bundle = Some("{}".to_owned())),
        "signature-format",
    );
    table.is(
        "a key twice in the log entry",
        &minted(|layer| {
            let text = layer.bundle.clone().unwrap_or_default();
            layer.bundle = Some(text.replacen('{', "{\"Payload\":{},", 1));
        }),
        "signature-format",
    );
    // A genuine entry of another signature (CVE-2022-36056).
    let other = signature(&world).legacy_signature();
    let mut swapped = signature(&world).legacy_signature();
    swapped.bundle = other.bundle;
    table.is("another's entry", &signature_layer(swapped), "signature-tlog-mismatch");
    let foreign = signature(&world).foreign_log().legacy_signature();
    table.is("another log", &signature_layer(foreign), "signature-tlog-missing");
    table.finish();
}

#[test]
fn a_payload_names_the_manifest_in_exactly_one_way() {
    let world = world();
    let mut table = Table::new(&world, keyless());
    let of = |bytes: &[u8]| signature_layer(world.mint().payload(bytes).legacy_signature());
    let changed = |change: fn(&mut Value)| of(&payload(change));
    table.is("twin", &changed(|_| {}), "ok");
    table.is(
        "another manifest",
        &changed(|value| {
            value["critical"]["image"]["docker-manifest-digest"] =
                format!("sha256:{}", "0".repeat(64)).into();
        }),
        "signature-subject",
    );
    table.is(
        "another type",
        &changed(|value| value["critical"]["type"] = "atomic container signature".into()),
        "signature-format",
    );
    table.is(
        "a capital",
        &changed(|value| {
            let critical = value["critical"].take();
            *value = json!({ "Critical": critical });
        }),
        "signature-format",
    );
    table.is(
        "a capital beside it",
        &changed(|value| {
            let image = json!({ "docker-manifest-digest": format!("sha256:{}", "0".repeat(64)) });
            value["critical"]["Image"] = image;
        }),
        "signature-format",
    );
    table.is(
        "no digest",
        &changed(|value| value["critical"]["image"] = json!({})),
        "signature-format",
    );
    table.is("a list", &of(b"[]"), "signature-format");
    let text = String::from_utf8(payload(|_| {})).expect("text");
    let twice = text.replacen(
        "{\"docker-manifest-digest\"",
        "{\"docker-manifest-digest\":\"sha256:0\",\"docker-manifest-digest\"",
        1,
    );
    assert_ne!(text, twice);
    table.is("a digest twice", &of(twice.as_bytes()), "signature-format");
    table.finish();
}

#[test]
fn keys_sign_layers_too() {
    let world = world();
    let (key, stranger, large) = (Key::p256(), Key::p256(), Key::p384());
    let keyed = by_keys(&[&key]);
    let bare = keyed.clone().log(LogRule::Unasked);
    let mut table = Table::new(&world, keyed);
    let logged = |key| signature_layer(signature(&world).key(key).legacy_signature());
    let unlogged = |key| signature_layer(signature(&world).key(key).no_log().legacy_signature());
    table.is("logged", &logged(&key), "ok");
    table.is("not logged", &unlogged(&key), "signature-tlog-missing");
    table.under("not logged, none asked for", &unlogged(&key), &bare, "ok");
    table.under("another's key", &unlogged(&stranger), &bare, "signature-other-key");
    let other = by_spki(large.spki(), KeyHash::Sha384);
    table.under("P-384", &unlogged(&large), &other.clone().log(LogRule::Unasked), "ok");
    let mut swapped = signature(&world).key(&key).legacy_signature();
    swapped.bundle = signature(&world).key(&key).annotation("a", "b").legacy_signature().bundle;
    table.is("another's entry", &signature_layer(swapped), "signature-tlog-mismatch");
    table.finish();
}

#[test]
fn an_attestation_layer_is_an_envelope() {
    let world = world();
    let key = Key::p256();
    let scan = |world: &'_ World| -> Layer {
        signature(world).predicate("https://example.com/scan", json!({})).legacy_attestation()
    };
    let verified = run(&attestation_layer(scan(&world)), &keyless(), &world.trusted_root());
    let verified = verified.expect("a good layer");
    assert!(matches!(
        &verified.get().statement,
        Statement::Attestation { predicate_type, .. } if predicate_type == "https://example.com/scan"
    ));
    let mut table = Table::new(&world, keyless());
    let mut swapped = scan(&world);
    swapped.bundle = scan(&world).bundle;
    table.is("another's entry", &attestation_layer(swapped), "signature-tlog-mismatch");
    let mut broken = scan(&world);
    broken.payload.truncate(20);
    table.is("cut", &attestation_layer(broken), "signature-format");
    let as_signature = Candidate {
        place: "tag".to_owned(),
        content: Content::LegacySignature(layer(scan(&world))),
    };
    table.is("an envelope in the place of a payload", &as_signature, "signature-format");
    let unlogged = signature(&world).key(&key).no_log().legacy_attestation();
    let bare = by_keys(&[&key]).log(LogRule::Unasked);
    table.under("a key, no log", &attestation_layer(unlogged), &bare, "ok");
    table.finish();
}
