//! Trust roots: what is read, what is refused, and what their dates do.

use ambit_engine::digest::Digest;
use ambit_testing::mint::{Key, Validity, World};
use ambit_trust::candidate::Candidate;
use ambit_trust::policy::{LogRule, TimestampRule};
use ambit_trust::verify::{
    Artifact, Reject, RootError, Roots, Subject, TrustRoot, blob, inspect, verify,
};
use serde_json::{Value, json};

use crate::common::{
    Rules as _, bundle, bundle_bytes, by_identity, code_of, exact, identity_of, keyless, now, read,
    read_json, set, subject, world,
};
use crate::table::signature;

const BEACON: &str = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main";
const KUBEWARDEN: &str = "https://github.com/kubewarden/kubewarden-controller/.github/workflows/release.yml@refs/tags/v1.34.0";
const GITHUB: &str = "https://token.actions.githubusercontent.com";

fn code<T>(result: Result<T, Reject>) -> &'static str {
    code_of(&result.map_err(|reject| reject.code))
}

fn only(root: TrustRoot) -> Roots {
    let mut roots = Roots::none();
    roots.insert(root);
    roots
}

#[test]
fn the_roots_of_this_build_are_the_published_ones() {
    let roots = Roots::builtin().expect("the built-in roots");
    let names: Vec<&str> = roots.iter().map(TrustRoot::name).collect();
    assert_eq!(names, ["github", "public-good"]);
    let public = roots.get("public-good").expect("it is there");
    assert_eq!(public.digest(), Digest::of(&read("roots/trusted_root.json")));
    assert_eq!(
        public.as_of().map(|time| time.to_string()).as_deref(),
        Some("2025-09-23T00:00:00Z")
    );
    assert!(public.has_logs() && public.has_certificate_logs());
    let github = roots.get("github").expect("it is there");
    assert_eq!(github.digest(), Digest::of(&read("roots/trusted_root_github.json")));
    assert!(!github.has_logs() && !github.has_certificate_logs());
}

#[test]
fn what_is_no_root_is_refused() {
    let good = world().trusted_root();
    let error = |bytes: &[u8]| TrustRoot::from_json("r", bytes).expect_err("no root").code();
    let of = |value: &Value| error(value.to_string().as_bytes());
    assert_eq!(error(b"{"), "trust-root-invalid");
    assert_eq!(of(&set(good.clone(), "/mediaType", "text/plain")), "trust-root-invalid");
    let at = "/certificateAuthorities/0/certChain/certificates";
    assert_eq!(of(&set(good.clone(), at, json!([]))), "trust-root-invalid");
    assert_eq!(of(&set(good.clone(), &format!("{at}/0/rawBytes"), "AAAA")), "trust-root-invalid");
    let many = vec![good["tlogs"][0].clone(); 65];
    assert_eq!(of(&set(good.clone(), "/tlogs", many)), "trust-root-limit");
    let twice = vec![good["tlogs"][0].clone(); 2];
    assert_eq!(of(&set(good.clone(), "/tlogs", twice)), "trust-root-invalid");
    let backwards = json!({ "start": "2021-01-01T00:00:00Z", "end": "2020-01-01T00:00:00Z" });
    assert_eq!(
        of(&set(good.clone(), "/tlogs/0/publicKey/validFor", backwards)),
        "trust-root-invalid"
    );
    assert_eq!(error(&vec![b' '; (1 << 20) + 1]), "trust-root-limit");
    let text = good.to_string().replacen('{', "{\"tlogs\":[],", 1);
    assert_eq!(error(text.as_bytes()), "trust-root-invalid");
}

#[test]
fn private_authorities_stand_with_the_logs_of_another_root() {
    let validity = Validity::around(now());
    let world = World::at(now()).intermediate(validity);
    let mut logs = world.trusted_root();
    logs["certificateAuthorities"] = json!([]);
    let base = TrustRoot::from_json("logs", logs.to_string().as_bytes()).expect("a root");
    let made = |roots: &str, intermediates: &str| {
        base.with_certificates("test", roots, intermediates).map(only)
    };
    let check = |roots: &Roots, candidate: &Candidate| {
        code(verify(candidate, &subject(), &keyless(), roots, now()))
    };
    let roots = made(&world.root_pem(), &world.intermediate_pem()).expect("a root");
    let good = signature(&world).bundle();
    assert_eq!(check(&roots, &bundle(&good)), "ok");
    // The comparison with the log is the same whatever the root is made of (CVE-2026-22703).
    let other = signature(&world).annotation("a", "b").bundle();
    let entries = other["verificationMaterial"]["tlogEntries"].clone();
    let swapped = set(good.clone(), "/verificationMaterial/tlogEntries", entries);
    assert_eq!(check(&roots, &bundle(&swapped)), "signature-tlog-mismatch");
    // Without the intermediate the leaf leads nowhere; an older layer brings it along.
    let alone = made(&world.root_pem(), "").expect("a root");
    assert_eq!(check(&alone, &bundle(&good)), "signature-chain");
    let layer = crate::common::signature_layer(signature(&world).legacy_signature());
    assert_eq!(check(&alone, &layer), "ok");

    let chain = format!("{}{}", world.intermediate_pem(), world.root_pem());
    let chained = base.with_chain("test", &chain).map(only).expect("a root");
    assert_eq!(check(&chained, &bundle(&good)), "ok");
    let backwards = format!("{}{}", world.root_pem(), world.intermediate_pem());
    assert!(matches!(
        base.with_chain("test", &backwards),
        Err(RootError::Unrooted { position: 1, .. })
    ));
    assert_eq!(base.with_chain("test", "").expect_err("no chain").code(), "trust-root-invalid");

    let stranger = World::at(now()).intermediate(validity);
    assert_eq!(
        made(&world.root_pem(), &stranger.intermediate_pem()).expect_err("unrooted"),
        RootError::Unrooted { name: "test".to_owned(), position: 1 }
    );
    assert_eq!(made("", "").expect_err("no root").code(), "trust-root-invalid");
    let bare = TrustRoot::from_certificates("test", &world.root_pem(), &world.intermediate_pem());
    let bare = only(bare.expect("a root"));
    assert_eq!(check(&bare, &bundle(&good)), "signature-tlog-missing");
}

/// Verifies a bundle of the second log, which a timestamp authority dates.
fn second_log(root: &Value) -> &'static str {
    let roots = crate::common::roots(root);
    let artifact = read("conformance/a.txt");
    let bundle = read("conformance/bundle-verify/rekor2-happy-path/bundle.sigstore.json");
    let authority = by_identity(exact(BEACON), exact(GITHUB))
        .log(LogRule::Proof)
        .timestamp(TimestampRule::Required);
    code(blob(&bundle, Artifact::Bytes(&artifact), &authority, &roots, now()))
}

fn second_root() -> Value {
    read_json("conformance/bundle-verify/rekor2-happy-path/trusted_root.json")
}

fn until(end: &str) -> Value {
    json!({ "start": "2025-01-01T00:00:00Z", "end": end })
}

#[test]
fn a_retired_key_of_the_second_log_counts_only_for_its_time() {
    let root = second_root();
    assert_eq!(second_log(&root), "ok");
    let ended = |end: &str| set(root.clone(), "/tlogs/1/publicKey/validFor", until(end));
    assert_eq!(second_log(&ended("2026-11-30T00:00:00Z")), "ok");
    assert_eq!(second_log(&ended("2025-01-02T00:00:00Z")), "signature-tlog-invalid");
}

#[test]
fn a_timestamp_counts_only_within_the_window_of_its_authority() {
    let root = second_root();
    let path = "/timestampAuthorities/0/validFor";
    assert_eq!(second_log(&set(root.clone(), path, until("2026-11-30T00:00:00Z"))), "ok");
    let ended = set(root.clone(), path, until("2025-01-02T00:00:00Z"));
    assert_eq!(second_log(&ended), "signature-time");
    // Another authority's open window doesn't stand in for it.
    let stranger = read_json("roots/trusted_root.json")["timestampAuthorities"][0].clone();
    let mut two = ended;
    two["timestampAuthorities"].as_array_mut().expect("a list").push(stranger);
    assert_eq!(second_log(&two), "signature-time");
    assert_eq!(second_log(&set(root, "/timestampAuthorities", json!([]))), "signature-time");
}

#[test]
fn a_candidate_is_inspected_without_an_authority() {
    let roots = Roots::builtin().expect("the built-in roots");
    let bytes = read("conformance/extra/cosign-v3-oci-signature.sigstore.json");
    let digest = "sha256:c811d58de79c92f03214e63aa339484e488d694ae8a6283b5f3f17a9faf50172";
    let about = Subject { digest: digest.parse().expect("a digest") };
    let found = inspect(&bundle_bytes(bytes), &about, &roots, now()).expect("authentic");
    assert_eq!((found.root.as_str(), identity_of(found.signed.get())), ("public-good", KUBEWARDEN));

    let bytes = read("conformance/extra/github-private-attestation.sigstore.json");
    let digest = "sha256:76f1fe8593bf227cca2c089e3c16dc95014a8d3e89c5dd220530469ca043c428";
    let about = Subject { digest: digest.parse().expect("a digest") };
    let found = inspect(&bundle_bytes(bytes), &about, &roots, now()).expect("authentic");
    assert_eq!(found.root, "github");

    let world = world();
    let ours = crate::common::roots(&world.trusted_root());
    let good = bundle(&signature(&world).bundle());
    assert_eq!(inspect(&good, &subject(), &ours, now()).expect("authentic").root, "test");
    assert_eq!(code(inspect(&good, &subject(), &roots, now())), "signature-tlog-missing");
    assert_eq!(code(inspect(&good, &subject(), &Roots::none(), now())), "signature-chain");
    let other = Subject { digest: Digest::of(b"") };
    assert_eq!(code(inspect(&good, &other, &ours, now())), "signature-subject");
    let key = Key::p256();
    let keyed = bundle(&signature(&world).key(&key).bundle());
    let reject = inspect(&keyed, &subject(), &ours, now()).expect_err("a key is nobody");
    assert_eq!(reject.code.as_str(), "signature-other-key");
    assert_eq!(reject.claimed.key_hint, Some(key.hint()));
}

#[test]
fn roots_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Roots>();
}
