//! Keys, with and without a log, and the forms that an authority accepts.

use ambit_testing::mint::{Key, Mint};
use ambit_trust::policy::{Formats, KeyHash, LogRule, Signer, StaticAction, TimestampRule};

use crate::common::{
    MANIFEST, Rules as _, bundle, by_keys, by_spki, digest, keyless, set, signature_layer, world,
};
use crate::table::{Table, signature};

#[test]
fn keys_with_and_without_a_log() {
    let world = world();
    let (key, second, stranger) = (Key::p256(), Key::p256(), Key::p256());
    let keyed = by_keys(&[&second, &key]);
    let bare = keyed.clone().log(LogRule::Unasked);
    let mut table = Table::new(&world, keyed.clone());
    let logged = || signature(&world).key(&key);
    let unlogged = || signature(&world).key(&key).no_log();
    let minted = |mint: Mint<'_>| bundle(&mint.bundle());
    table.is("logged", &minted(logged()), "ok");
    table.under(
        "logged, proof asked for",
        &minted(logged()),
        &keyed.clone().log(LogRule::Proof),
        "ok",
    );
    table.is("not logged", &minted(unlogged()), "signature-tlog-missing");
    table.under("not logged, none asked for", &minted(unlogged()), &bare, "ok");
    table.under("an unknown log, none asked for", &minted(logged().foreign_log()), &bare, "ok");
    table.is("an unknown log", &minted(logged().foreign_log()), "signature-tlog-missing");
    let elsewhere =
        || world.mint().key(&key).no_log().subject(&format!("sha256:{}", "0".repeat(64)));
    table.under("copied from another image", &minted(elsewhere()), &bare, "signature-subject");
    let broken = set(unlogged().bundle(), "/dsseEnvelope/signatures/0/sig", "Z2FyYmFnZQ==");
    table.under("broken", &bundle(&broken), &bare, "signature-invalid");
    table.is("broken, and no log", &bundle(&broken), "signature-invalid");
    table.under(
        "another's key",
        &minted(signature(&world).key(&stranger).no_log()),
        &bare,
        "signature-other-key",
    );
    let hinted = || signature(&world).key(&stranger).hint(&key.hint()).no_log();
    table.under("another's key under our hint", &minted(hinted()), &bare, "signature-invalid");
    table.under("no hint", &minted(unlogged().hint("")), &bare, "ok");
    table.under("another's hint", &minted(unlogged().hint(&stranger.hint())), &bare, "ok");
    table.under(
        "a timestamp asked for",
        &minted(unlogged()),
        &bare.clone().timestamp(TimestampRule::Required),
        "signature-timestamp-missing",
    );
    table.under(
        "a message",
        &minted(world.mint().key(&key).no_log().message(MANIFEST)),
        &bare,
        "ok",
    );
    table.under(
        "another message",
        &minted(world.mint().key(&key).no_log().message(b"x")),
        &bare,
        "signature-subject",
    );
    table.under(
        "a logged message",
        &minted(world.mint().key(&key).message(MANIFEST)),
        &keyed,
        "ok",
    );

    let second = logged().second_log().bundle();
    table.is("the second log, no timestamp", &bundle(&second), "signature-timestamp-missing");
    table.under("the second log, none asked for", &bundle(&second), &bare, "ok");

    table.under(
        "a certificate for a key",
        &minted(signature(&world)),
        &keyed,
        "signature-other-key",
    );
    table.under("a key for a certificate", &minted(logged()), &keyless(), "signature-other-key");
    table.under("no keys", &minted(logged()), &by_keys(&[]), "signature-other-key");
    table.finish();
}

#[test]
fn keys_sign_with_the_hash_that_the_authority_says() {
    let world = world();
    let (small, large, edwards) = (Key::p256(), Key::p384(), Key::ed25519());
    let of = |key: &Key, hash| by_spki(key.spki(), hash).log(LogRule::Unasked);
    let unlogged = |key| bundle(&world.mint().subject(&digest()).key(key).no_log().bundle());
    let logged = |key| bundle(&world.mint().subject(&digest()).key(key).bundle());
    let mut table = Table::new(&world, keyless());
    table.under("P-256", &unlogged(&small), &of(&small, KeyHash::Sha256), "ok");
    table.under(
        "P-256, SHA-384",
        &unlogged(&small),
        &of(&small, KeyHash::Sha384),
        "signature-key-algorithm",
    );
    table.under(
        "P-256, SHA-512",
        &unlogged(&small),
        &of(&small, KeyHash::Sha512),
        "signature-key-algorithm",
    );
    table.under("P-384", &unlogged(&large), &of(&large, KeyHash::Sha384), "ok");
    table.under(
        "P-384, logged",
        &logged(&large),
        &of(&large, KeyHash::Sha384).log(LogRule::Proof),
        "ok",
    );
    table.under(
        "P-384, SHA-256",
        &unlogged(&large),
        &of(&large, KeyHash::Sha256),
        "signature-key-algorithm",
    );
    table.under("Ed25519", &unlogged(&edwards), &of(&edwards, KeyHash::Sha512), "ok");
    let message = bundle(&world.mint().key(&edwards).no_log().message(MANIFEST).bundle());
    table.under(
        "Ed25519 over a digest",
        &message,
        &of(&edwards, KeyHash::Sha256),
        "signature-key-algorithm",
    );
    let nonsense = by_spki(b"nonsense".to_vec(), KeyHash::Sha256).log(LogRule::Unasked);
    table.under("no key at all", &unlogged(&small), &nonsense, "signature-key-algorithm");
    table.finish();
}

#[test]
fn only_the_authoritys_formats_count() {
    let world = world();
    let mut table = Table::new(&world, keyless());
    let formats = |formats| keyless().change(|authority| authority.formats = formats);
    let new = bundle(&signature(&world).bundle());
    let old = signature_layer(signature(&world).legacy_signature());
    for (name, accepted, of_new, of_old) in [
        ("any", Formats::Any, "ok", "ok"),
        ("bundles", Formats::Bundle, "ok", "signature-format-not-accepted"),
        ("legacy", Formats::Legacy, "signature-format-not-accepted", "ok"),
    ] {
        table.under(name, &new, &formats(accepted), of_new);
        table.under(name, &old, &formats(accepted), of_old);
    }
    let none = keyless().change(|authority| {
        authority.signer = Signer::Static { action: StaticAction::Pass };
    });
    table.under("static", &new, &none, "signature-format-not-accepted");
    let elsewhere = keyless().change(|authority| {
        if let Signer::Certificate { root, .. } = &mut authority.signer {
            *root = "other".to_owned();
        }
    });
    table.under("a root that isn't there", &new, &elsewhere, "signature-chain");
    table.finish();
}
