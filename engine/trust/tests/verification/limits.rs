//! Bounds, each with what is just within it.

use ambit_testing::mint::World;
use ambit_trust::oci::MAX_EVIDENCE_BYTES;
use ambit_trust::verify::{MAX_LOG_ENTRIES, MAX_SUBJECT_DIGESTS, MAX_SUBJECTS, MAX_TIMESTAMPS};
use serde_json::{Map, Value, json};

use crate::common::{
    Rules as _, bundle, bundle_bytes, digest, edit, keyless, set, signature_layer, world,
};
use crate::table::{Table, signature};

const ENTRIES: &str = "/verificationMaterial/tlogEntries";

fn with_entries(good: &Value, count: usize, distinct: bool) -> Value {
    edit(good.clone(), ENTRIES, |list| {
        let entry = list[0].clone();
        let copies = (0..count).map(|n| {
            let mut entry = entry.clone();
            if distinct && n > 0 {
                entry["logIndex"] = n.to_string().into();
            }
            entry
        });
        *list = copies.collect();
    })
}

#[test]
fn counts_in_a_bundle_are_bounded() {
    let world = world();
    let good = signature(&world).bundle();
    let mut table = Table::new(&world, keyless());
    table.is("one entry", &bundle(&with_entries(&good, 1, true)), "ok");
    // Within the limit the entries are looked at, and all but the first are wrong.
    table.is(
        "at the limit",
        &bundle(&with_entries(&good, MAX_LOG_ENTRIES, true)),
        "signature-tlog-invalid",
    );
    table.is("over", &bundle(&with_entries(&good, MAX_LOG_ENTRIES + 1, true)), "signature-limit");
    table.is("one twice", &bundle(&with_entries(&good, 2, false)), "signature-format");
    let tokens = |count: usize| {
        let tokens = vec![json!({ "signedTimestamp": "AAAA" }); count];
        edit(good.clone(), "/verificationMaterial", |material| {
            material["timestampVerificationData"] = json!({ "rfc3161Timestamps": tokens });
        })
    };
    table.is("timestamps that nobody made", &bundle(&tokens(MAX_TIMESTAMPS)), "signature-time");
    table.is("too many", &bundle(&tokens(MAX_TIMESTAMPS + 1)), "signature-limit");
    let at = format!("{ENTRIES}/0/inclusionProof/hashes");
    let hashes = vec![Value::from("A".repeat(43) + "="); 65];
    table.is("a path of 65 hashes", &bundle(&set(good.clone(), &at, hashes)), "signature-limit");
    let at = format!("{ENTRIES}/0/inclusionProof/checkpoint/envelope");
    let signed = edit(good.clone(), &at, |text| {
        let note = text.as_str().expect("text").to_owned();
        let line = note.lines().last().expect("a signature").to_owned() + "\n";
        *text = format!("{note}{}", line.repeat(16)).into();
    });
    table.is("many signatures under a checkpoint", &bundle(&signed), "signature-limit");
    table.finish();
}

#[test]
fn sizes_and_nesting_are_bounded() {
    let world = world();
    let good = signature(&world).bytes();
    let mut table = Table::new(&world, keyless());
    let padded = |size: usize| {
        let mut bytes = good.clone();
        bytes.resize(size, b' ');
        bundle_bytes(bytes)
    };
    table.is("10 MiB", &padded(MAX_EVIDENCE_BYTES), "ok");
    table.is("a byte more", &padded(MAX_EVIDENCE_BYTES + 1), "signature-limit");
    let nested = |levels: usize| {
        let text = format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        bundle_bytes(text.into_bytes())
    };
    table.is("63 levels", &nested(63), "signature-format");
    table.is("65 levels", &nested(64), "signature-limit");
    table.is("a hundred thousand", &nested(100_000), "signature-limit");
    let mut minted = signature(&world).legacy_signature();
    minted.payload = vec![b' '; MAX_EVIDENCE_BYTES + 1];
    table.is("a payload", &signature_layer(minted), "signature-limit");
    let mut minted = signature(&world).legacy_signature();
    minted.chain = minted.chain.map(|chain| chain.repeat(16));
    table.is("certificates", &signature_layer(minted), "signature-limit");
    table.finish();
}

#[test]
fn subjects_and_digests_are_bounded() {
    let world = world();
    let mut table = Table::new(&world, keyless());
    let subjects = |world: &World, count: usize| {
        let others =
            (1..count).fold(world.mint(), |mint, n| mint.subject(&format!("sha256:{n:064x}")));
        bundle(&others.subject(&digest()).bundle())
    };
    table.is("1,024 subjects", &subjects(&world, MAX_SUBJECTS), "ok");
    table.is("1,025 subjects", &subjects(&world, MAX_SUBJECTS + 1), "signature-limit");
    let digests = |count: usize| {
        let mut map: Map<String, Value> =
            (1..count).map(|n| (format!("x{n}"), Value::from("00"))).collect();
        map.insert("sha256".to_owned(), digest()["sha256:".len()..].into());
        bundle(&world.mint().subject_json(json!({ "digest": map })).bundle())
    };
    table.is("32 digests", &digests(MAX_SUBJECT_DIGESTS), "ok");
    table.is("33 digests", &digests(MAX_SUBJECT_DIGESTS + 1), "signature-limit");
    let asked = keyless().change(|_| {});
    table.under("the same authority", &digests(1), &asked, "ok");
    table.finish();
}
