//! What cosign 2.6.5 and sigstore's npm packages made, each with the flags that its maker names.

use ambit_engine::digest::Digest;
use ambit_trust::candidate::{Candidate, Content, LegacyLayer};
use ambit_trust::policy::{Authority, KeyHash, LogRule, TimestampRule};
use ambit_trust::verify::{Artifact, Roots, Subject, blob, verify};
use serde_json::Value;
use sigstore_types::DerPublicKey;

use crate::common::{
    Rules as _, annotations_of, bundle_bytes, by_identity, by_spki, code_of, exact, now, pattern,
    read, read_json, roots,
};

const IDENTITY: &str =
    "https://github.com/example/app/.github/workflows/release.yml@refs/heads/main";
const ISSUER: &str = "https://token.actions.githubusercontent.com";

fn manifest() -> Subject {
    let subject = Subject { digest: Digest::of(&read("samples/component-manifest.json")) };
    let named = "sha256:e5cb98f46db448e0c4f4b766bb5a8c673ca0e158f4e484473369d77a3b2bb813";
    assert_eq!(subject.digest.to_string(), named);
    subject
}

fn other() -> Subject {
    Subject { digest: Digest::of(b"another manifest") }
}

fn public_key(folder: &str) -> Vec<u8> {
    let pem = String::from_utf8(read(&format!("samples/{folder}/cosign.pub"))).expect("text");
    DerPublicKey::from_pem(&pem).expect("a key").as_bytes().to_vec()
}

fn ours() -> Roots {
    roots(&read_json("samples/keyless/trusted_root.json"))
}

fn code(candidate: &Candidate, subject: &Subject, authority: &Authority, roots: &Roots) -> String {
    let result = verify(candidate, subject, authority, roots, now());
    code_of(&result.map_err(|reject| reject.code)).to_owned()
}

fn keyed_samples() -> [(&'static str, Candidate); 2] {
    let tag = read_json("samples/cosign-key-tag/sig-manifest.json");
    let signature = &tag["layers"][0]["annotations"]["dev.cosignproject.cosign/signature"];
    let layer = LegacyLayer {
        payload: read("samples/cosign-key-tag/payload-0.json"),
        signature: signature.as_str().expect("a signature").to_owned(),
        ..LegacyLayer::default()
    };
    let bundle = bundle_bytes(read("samples/cosign-key-bundle/bundle.sigstore.json"));
    let tag = Candidate { place: "tag".to_owned(), content: Content::LegacySignature(layer) };
    [("cosign-key-tag", tag), ("cosign-key-bundle", bundle)]
}

#[test]
fn what_cosign_signs_with_a_key_is_the_keys() {
    let none = Roots::none();
    for (folder, candidate) in keyed_samples() {
        let authority = by_spki(public_key(folder), KeyHash::Sha256).log(LogRule::Unasked);
        assert_eq!(code(&candidate, &manifest(), &authority, &none), "ok", "{folder}");
        assert_eq!(code(&candidate, &other(), &authority, &none), "signature-subject", "{folder}");
        let asked = authority.clone().log(LogRule::ProofOrPromise);
        assert_eq!(code(&candidate, &manifest(), &asked, &none), "signature-tlog-missing");
        let stranger = by_spki(ambit_testing::mint::Key::p256().spki(), KeyHash::Sha256);
        let stranger = stranger.log(LogRule::Unasked);
        assert_eq!(code(&candidate, &manifest(), &stranger, &none), "signature-other-key");
        let person = by_identity(exact(IDENTITY), exact(ISSUER)).log(LogRule::Unasked);
        assert_eq!(code(&candidate, &manifest(), &person, &ours()), "signature-other-key");
    }
    let [(folder, tag), _] = keyed_samples();
    let authority = by_spki(public_key(folder), KeyHash::Sha256).log(LogRule::Unasked);
    let verified = verify(&tag, &manifest(), &authority, &none, now()).expect("verified above");
    assert_eq!(annotations_of(verified.get())["team"], "payments");
}

#[test]
fn what_npm_signs_is_the_identitys() {
    let logged = LogRule::Proof;
    for (name, log, timestamp) in [
        ("dsse-rekor-tsa", logged, TimestampRule::Required),
        ("dsse-rekor", logged, TimestampRule::Optional),
        ("dsse-tsa", LogRule::Unasked, TimestampRule::Required),
    ] {
        let candidate = bundle_bytes(read(&format!("samples/keyless/{name}.sigstore.json")));
        let rules = |authority: Authority| authority.log(log).timestamp(timestamp);
        let right = rules(by_identity(exact(IDENTITY), exact(ISSUER)));
        assert_eq!(code(&candidate, &manifest(), &right, &ours()), "ok", "{name}");
        assert_eq!(code(&candidate, &other(), &right, &ours()), "signature-subject", "{name}");
        let prefix = rules(by_identity(pattern("https://github.com/example/app"), exact(ISSUER)));
        assert_eq!(code(&candidate, &manifest(), &prefix, &ours()), "signature-identity", "{name}");
        let issuer = rules(by_identity(exact(IDENTITY), exact("https://accounts.google.com")));
        assert_eq!(code(&candidate, &manifest(), &issuer, &ours()), "signature-issuer", "{name}");
        let foreign: Value = read_json("roots/trusted_root.json");
        let refused = code(&candidate, &manifest(), &right, &roots(&foreign));
        // Without a log, the first thing that another root doesn't know is the timestamp.
        let missing = if name == "dsse-tsa" { "signature-time" } else { "signature-tlog-missing" };
        assert_eq!(refused, missing, "{name}");
    }
}

#[test]
fn an_older_bundle_counts_as_a_file_only() {
    let bytes = read("samples/keyless/msg-rekor.sigstore.json");
    let right = by_identity(exact(IDENTITY), exact(ISSUER)).log(LogRule::Proof);
    let file = |subject: Subject, authority: &Authority| {
        let artifact = Artifact::Digest(subject.digest);
        let result = blob(&bytes, artifact, authority, &ours(), now());
        code_of(&result.map_err(|reject| reject.code)).to_owned()
    };
    assert_eq!(file(manifest(), &right), "ok");
    assert_eq!(file(other(), &right), "signature-subject");
    let stranger = by_identity(exact("https://example.com"), exact(ISSUER)).log(LogRule::Proof);
    assert_eq!(file(manifest(), &stranger), "signature-identity");
    let issuer = by_identity(exact(IDENTITY), exact("https://accounts.google.com"));
    assert_eq!(file(manifest(), &issuer.log(LogRule::Proof)), "signature-issuer");
    let foreign = roots(&read_json("roots/trusted_root.json"));
    let artifact = Artifact::Digest(manifest().digest);
    let result = blob(&bytes, artifact, &right, &foreign, now());
    assert_eq!(code_of(&result.map_err(|reject| reject.code)), "signature-tlog-missing");
    let referrer = bundle_bytes(bytes.clone());
    assert_eq!(code(&referrer, &manifest(), &right, &ours()), "signature-downgrade");
}

#[test]
fn keyless_needs_a_time_whoever_signs() {
    let mut bundle = read_json("samples/keyless/dsse-tsa.sigstore.json");
    bundle["verificationMaterial"]
        .as_object_mut()
        .expect("an object")
        .remove("timestampVerificationData")
        .expect("a timestamp");
    let candidate = bundle_bytes(bundle.to_string().into_bytes());
    let authority = by_identity(exact(IDENTITY), exact(ISSUER)).log(LogRule::Unasked);
    assert_eq!(code(&candidate, &manifest(), &authority, &ours()), "signature-tlog-missing");
}
