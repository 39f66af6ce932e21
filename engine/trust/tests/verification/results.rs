//! What comes of a verification.

use ambit_engine::digest::Digest;
use ambit_testing::mint::{COSIGN_SIGN, IDENTITY, ISSUER, Key};
use ambit_trust::policy::LogRule;
use ambit_trust::verify::{Artifact, LogEvidence, SignedBy, Statement, TimeSource, blob};
use serde_json::json;

use crate::common::{
    MANIFEST, Rules as _, annotations_of, bundle, by_keys, code_of, identity_of, keyless, now,
    roots, run, set, without, world,
};
use crate::table::signature;

#[test]
fn what_is_verified_is_what_was_signed() {
    let world = world();
    let root = world.trusted_root();
    let candidate = bundle(&signature(&world).annotation("env", "prod").tree(5, 3).bundle());
    let verified = run(&candidate, &keyless(), &root).unwrap();
    let signed = verified.get();
    assert_eq!(identity_of(signed), IDENTITY);
    assert_eq!(annotations_of(signed)["env"], "prod");
    assert_eq!(signed.evidence, candidate.evidence_digest());
    let log = signed.log.as_ref().unwrap();
    assert_eq!((log.index, log.evidence), (3, LogEvidence::Proof));
    let times: Vec<_> = signed.times.iter().map(|time| (time.time, time.source)).collect();
    assert_eq!(times, [(world.signing_time(), TimeSource::Log)]);

    let predicate = json!({ "scan": ["clean"] });
    let candidate = bundle(
        &signature(&world).predicate("https://example.com/scan", predicate.clone()).bundle(),
    );
    let verified = run(&candidate, &keyless(), &root).unwrap();
    match &verified.get().statement {
        Statement::Attestation { predicate_type, statement } => {
            assert_eq!(predicate_type, "https://example.com/scan");
            assert_eq!(statement["predicate"], predicate);
        }
        Statement::Signature { .. } => panic!("an attestation is no signature"),
    }

    let key = Key::p256();
    let candidate = bundle(&signature(&world).key(&key).no_log().bundle());
    let verified = run(&candidate, &by_keys(&[&key]).log(LogRule::Unasked), &root).unwrap();
    let signed = verified.get();
    assert_eq!(signed.signer, SignedBy::Key { fingerprint: Digest::of(&key.spki()) });
    assert!(signed.times.is_empty() && signed.log.is_none());
}

#[test]
fn a_refusal_says_what_the_candidate_claims() {
    let world = world();
    let candidate = bundle(&signature(&world).uri("https://ci.example/\u{7f}x").bundle());
    let reject = run(&candidate, &keyless(), &world.trusted_root()).unwrap_err();
    assert_eq!(reject.claimed.identity.as_deref(), Some("https://ci.example/\u{fffd}x"));
    assert_eq!(reject.claimed.issuer.as_deref(), Some(ISSUER));
    assert_eq!(reject.claimed.predicate_type.as_deref(), Some(COSIGN_SIGN));
    insta::assert_snapshot!(
        reject.message,
        @"it is signed by `https://ci.example/�x`, and `https://github.com/example/app/.github/workflows/release.yml@refs/heads/main` may sign"
    );
}

#[test]
fn a_file_is_verified_by_bytes_or_digest_and_not_relabelled() {
    let world = world();
    let roots = roots(&world.trusted_root());
    let run = |bundle: &serde_json::Value, artifact: Artifact<'_>| {
        let bytes = bundle.to_string().into_bytes();
        let result = blob(&bytes, artifact, &keyless(), &roots, now());
        code_of(&result.map_err(|reject| reject.code))
    };
    let good = signature(&world).bundle();
    let message = world.mint().message(MANIFEST).bundle();
    for bundle in [&good, &message] {
        assert_eq!(run(bundle, Artifact::Bytes(MANIFEST)), "ok");
        assert_eq!(run(bundle, Artifact::Digest(Digest::of(MANIFEST))), "ok");
        assert_eq!(run(bundle, Artifact::Bytes(b"another")), "signature-subject");
        assert_eq!(run(bundle, Artifact::Digest(Digest::of(b"another"))), "signature-subject");
    }
    assert_eq!(run(&good, Artifact::Sha512([0; 64])), "signature-subject");
    let cut = without(good, "/verificationMaterial/tlogEntries/0", "inclusionProof");
    for version in ["0.1", "0.2"] {
        let label = format!("application/vnd.dev.sigstore.bundle+json;version={version}");
        let relabelled = set(cut.clone(), "/mediaType", label);
        assert_eq!(run(&relabelled, Artifact::Bytes(MANIFEST)), "signature-downgrade");
    }
}
