//! The cases of the sigstore conformance suite, and four more.

use ambit_trust::policy::{KeyHash, LogRule, SctRule, TimestampRule};
use ambit_trust::verify::{Artifact, Roots, TrustRoot, blob};
use sigstore_types::DerPublicKey;

use crate::common::{
    Rules as _, by_identity, by_spki, code_of, exact, now, pattern, read, testdata,
};

fn rows(manifest: &str) -> Vec<Vec<String>> {
    let text = String::from_utf8(read(manifest)).expect("text");
    let rows = text.lines().skip(1).filter(|line| !line.is_empty());
    rows.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn root(path: &str) -> Result<Roots, String> {
    let path = if path == "-" { "../roots/trusted_root.json" } else { path };
    let bytes = read(&format!("conformance/{path}"));
    let mut roots = Roots::none();
    roots.insert(TrustRoot::from_json("test", &bytes).map_err(|error| error.to_string())?);
    Ok(roots)
}

#[test]
fn every_case_of_the_suite_agrees_by_bytes_and_by_digest() {
    let rows = rows("conformance/manifest.tsv");
    assert_eq!(rows.len(), 70);
    let mut differences = Vec::new();
    let mut passed = 0;
    for row in &rows {
        let [case, _, _, artifact, bundle, trusted_root, key, identity, issuer, expected] =
            row.as_slice()
        else {
            panic!("{row:?}");
        };
        let artifact = read(&format!("conformance/{artifact}"));
        let bundle = read(&format!("conformance/{bundle}"));
        let authority = if key == "-" {
            Some(by_identity(exact(identity), exact(issuer)))
        } else {
            let pem = std::fs::read_to_string(testdata("conformance").join(key)).expect("a key");
            let spki = DerPublicKey::from_pem(&pem).ok();
            spki.map(|spki| by_spki(spki.as_bytes().to_vec(), KeyHash::Sha256))
        };
        let digest = ambit_engine::digest::Digest::of(&artifact);
        for artifact in [Artifact::Bytes(&artifact), Artifact::Digest(digest)] {
            let result = match (&authority, root(trusted_root)) {
                (Some(authority), Ok(roots)) => {
                    let result = blob(&bundle, artifact, authority, &roots, now());
                    code_of(&result.map_err(|reject| reject.code)).to_owned()
                }
                (None, _) => "no key".to_owned(),
                (_, Err(error)) => error,
            };
            passed += usize::from(result == "ok");
            if (result == "ok") != (expected == "pass") {
                differences.push(format!("{case}: {result}, not {expected}"));
            }
        }
    }
    assert_eq!(differences, Vec::<String>::new());
    assert_eq!(passed, 2 * 21);
}

#[test]
fn more_cases_agree() {
    let mut results = String::new();
    for row in rows("conformance/manifest-extra.tsv") {
        let [case, bundle, digest, trusted_root, identity, issuer, expected, _] = row.as_slice()
        else {
            panic!("{row:?}");
        };
        if expected == "parse-only" {
            continue;
        }
        let bundle = read(&format!("conformance/{bundle}"));
        let issuer = if issuer == "-" { pattern(".*") } else { exact(issuer) };
        let mut authority = by_identity(exact(identity), issuer);
        if case == "github-private-profile" {
            authority = authority
                .log(LogRule::Unasked)
                .sct(SctRule::Ignored)
                .timestamp(TimestampRule::Required);
        }
        let artifact = if let Some(hex) = digest.strip_prefix("sha512:") {
            let mut bytes = [0; 64];
            for (byte, at) in bytes.iter_mut().zip((0..128).step_by(2)) {
                *byte = u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
            }
            Artifact::Sha512(bytes)
        } else {
            match digest.parse() {
                Ok(digest) => Artifact::Digest(digest),
                Err(error) => panic!("{case}: {error}"),
            }
        };
        let result = blob(&bundle, artifact, &authority, &root(trusted_root).unwrap(), now());
        let code = code_of(&result.map_err(|reject| reject.code)).to_owned();
        assert_eq!(code == "ok", expected == "pass", "{case}: {code}");
        results.push_str(&format!("{case}: {code}\n"));
    }
    insta::assert_snapshot!(results, @r"
    cosign-v3-oci-signature: ok
    cosign-v3-oci-signature-wrong-tag: signature-identity
    npm-provenance-sha512: ok
    github-private-strict: signature-tlog-missing
    github-private-profile: ok
    github-private-on-public-root: signature-tlog-missing
    ");
}
