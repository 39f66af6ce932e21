//! What is signed, byte for byte, and that it verifies.

use sigstore_crypto::{SigningScheme, verify_signature};
use sigstore_types::{DerPublicKey, SignatureBytes};

use super::*;

fn subject() -> Digest {
    "sha256:e5cb98f46db448e0c4f4b766bb5a8c673ca0e158f4e484473369d77a3b2bb813".parse().unwrap()
}

fn annotations() -> BTreeMap<String, String> {
    BTreeMap::from([("team".to_owned(), "payments".to_owned())])
}

/// Returns the payload of an envelope, after its signature is verified.
fn payload(key: &SigningKey, envelope: &Value) -> String {
    let text = |value: &Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
    let payload = text(&envelope["payload"]);
    let signed = pre_authentication(envelope["payloadType"].as_str().unwrap(), &payload);
    let signature = SignatureBytes::new(text(&envelope["signatures"][0]["sig"]));
    let public = DerPublicKey::new(key.public_spki().to_vec());
    verify_signature(&public, &signed, &signature, SigningScheme::EcdsaP256Sha256).unwrap();
    String::from_utf8(payload).unwrap()
}

#[test]
fn signature_is_a_statement_with_annotations_in_its_subject() {
    let key = SigningKey::generate().unwrap();
    let bundle = signature_bundle(&key, &subject(), &annotations()).unwrap();
    let json: Value = serde_json::from_slice(&bundle).unwrap();
    assert_eq!(json["verificationMaterial"]["publicKey"]["hint"], key.hint());
    insta::assert_snapshot!(payload(&key, &json["dsseEnvelope"]), @r#"{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"e5cb98f46db448e0c4f4b766bb5a8c673ca0e158f4e484473369d77a3b2bb813"},"annotations":{"team":"payments"}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}"#);
}

#[test]
fn bundle_is_read_by_the_library_that_verifies_bundles() {
    let key = SigningKey::generate().unwrap();
    let predicate = serde_json::json!({"imports": ["wasi:http/types@0.2.0"]});
    let bundle = attestation_bundle(&key, &subject(), CAPABILITIES, &predicate).unwrap();
    let bundle = std::str::from_utf8(&bundle).unwrap();
    let read = sigstore_types::Bundle::from_json(bundle).unwrap();
    assert_eq!(read.media_type().as_str(), media::BUNDLE_V03);
    assert!(read.signing_certificate().is_none());
    let json: Value = serde_json::from_str(bundle).unwrap();
    let statement: Value = serde_json::from_str(&payload(&key, &json["dsseEnvelope"])).unwrap();
    assert_eq!(statement["predicateType"], CAPABILITIES);
    assert_eq!(statement["predicate"], predicate);
}

#[test]
fn legacy_signature_is_over_the_payload() {
    let key = SigningKey::generate().unwrap();
    let signed =
        legacy_signature(&key, "127.0.0.1:15000/demo/wash", &subject(), &annotations()).unwrap();
    // The payload that cosign 2.6.5 signed for the same reference, digest and annotation.
    let cosign = include_bytes!(
        "../../../../testdata/layouts/cosign/blobs/sha256/cc398c75b32e324098231c2c6324fb1c3727adfdd554511686579a9b82cd1229"
    );
    assert_eq!(signed.payload, cosign);
    let signature = SignatureBytes::new(STANDARD.decode(&signed.signature).unwrap());
    let public = DerPublicKey::new(key.public_spki().to_vec());
    let scheme = SigningScheme::EcdsaP256Sha256;
    verify_signature(&public, &signed.payload, &signature, scheme).unwrap();
    let bare = legacy_signature(&key, "h.io/a", &subject(), &BTreeMap::new()).unwrap();
    assert!(bare.payload.ends_with(br#""optional":null}"#));
}

#[test]
fn legacy_attestation_is_an_envelope() {
    let key = SigningKey::generate().unwrap();
    let predicate = serde_json::json!({});
    let envelope =
        legacy_attestation(&key, "h.io/a", &subject(), "https://in-toto.io/Link/v1", &predicate);
    let json: Value = serde_json::from_slice(&envelope.unwrap()).unwrap();
    assert_eq!(json["signatures"][0]["keyid"], "");
    insta::assert_snapshot!(payload(&key, &json), @r#"{"_type":"https://in-toto.io/Statement/v0.1","subject":[{"name":"h.io/a","digest":{"sha256":"e5cb98f46db448e0c4f4b766bb5a8c673ca0e158f4e484473369d77a3b2bb813"}}],"predicateType":"https://in-toto.io/Link/v1","predicate":{}}"#);
}

#[test]
fn bundle_of_cosign_has_the_same_fields() {
    let cosign = include_bytes!(
        "../../../../testdata/layouts/cosign/blobs/sha256/e39210f288f6bbae125842171de621dd20561886da91aad8cc10efff9de938e4"
    );
    let key = SigningKey::generate().unwrap();
    let ours = signature_bundle(&key, &subject(), &BTreeMap::new()).unwrap();
    assert_eq!(
        shape(&serde_json::from_slice(cosign).unwrap()),
        shape(&serde_json::from_slice(&ours).unwrap())
    );
}

/// The paths of a JSON value.
fn shape(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let mut paths: Vec<String> = fields
                .iter()
                .flat_map(|(key, value)| {
                    shape(value).into_iter().map(move |p| format!("/{key}{p}"))
                })
                .collect();
            paths.sort();
            paths
        }
        Value::Array(items) => items.iter().flat_map(shape).map(|p| format!("/*{p}")).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![String::new()],
    }
}

#[test]
fn summary_has_the_fields_of_the_specification() {
    let resource = |uri: &str| Resource { uri: uri.to_owned(), digest: subject() };
    let summary = VerificationSummary {
        verifier: "https://ambit.dev/check".to_owned(),
        time: "2026-11-30T23:00:00Z".parse().unwrap(),
        resource_uri: "oci://h.io/app@sha256:e5cb".to_owned(),
        policy: resource("file:ambit.yaml"),
        inputs: vec![resource("oci://h.io/app@sha256:7d2f")],
        result: SummaryResult::Failed,
        levels: Vec::new(),
    };
    insta::assert_json_snapshot!(summary.predicate(), @r#"
    {
      "verifier": {
        "id": "https://ambit.dev/check"
      },
      "timeVerified": "2026-11-30T23:00:00Z",
      "resourceUri": "oci://h.io/app@sha256:e5cb",
      "policy": {
        "uri": "file:ambit.yaml",
        "digest": {
          "sha256": "e5cb98f46db448e0c4f4b766bb5a8c673ca0e158f4e484473369d77a3b2bb813"
        }
      },
      "inputAttestations": [
        {
          "uri": "oci://h.io/app@sha256:7d2f",
          "digest": {
            "sha256": "e5cb98f46db448e0c4f4b766bb5a8c673ca0e158f4e484473369d77a3b2bb813"
          }
        }
      ],
      "verificationResult": "FAILED",
      "verifiedLevels": [],
      "slsaVersion": "1.0"
    }
    "#);
}
