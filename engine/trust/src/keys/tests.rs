//! The forms of keys, against files that other programs wrote.

use sigstore_crypto::{SigningScheme, verify_signature};
use sigstore_types::{DerPublicKey, SignatureBytes};

use super::*;

const PASSWORD: &[u8] = b"correct horse";

fn file(name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/keys");
    std::fs::read(folder.join(name)).unwrap()
}

fn plain(text: &[u8]) -> SigningKey {
    match KeyFile::parse(text) {
        Ok(KeyFile::Plain(key)) => key,
        other => panic!("{other:?}"),
    }
}

fn encrypted(text: &[u8]) -> EncryptedKey {
    match KeyFile::parse(text) {
        Ok(KeyFile::Encrypted(key)) => key,
        other => panic!("{other:?}"),
    }
}

/// An encrypted key with its JSON changed.
fn changed(change: impl Fn(&mut serde_json::Value)) -> Result<KeyFile, KeyError> {
    let block = pem::blocks(&file("encrypted-sigstore.pem")).unwrap().pop().unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(&block.bytes).unwrap();
    change(&mut json);
    KeyFile::parse(pem::write(&block.label, json.to_string().as_bytes()).as_bytes())
}

#[test]
fn every_form_holds_the_same_key() {
    let public = String::from_utf8(file("public.pem")).unwrap();
    for name in ["pkcs8.pem", "sec1.pem"] {
        assert_eq!(plain(&file(name)).public_pem(), public, "{name}");
    }
    for name in ["encrypted-cosign.pem", "encrypted-sigstore.pem"] {
        let key = encrypted(&file(name)).open(PASSWORD).unwrap();
        assert_eq!(key.public_pem(), public, "{name}");
    }
}

#[test]
fn what_is_written_can_be_read() {
    let key = SigningKey::generate().unwrap();
    let public = key.public_pem();
    assert_eq!(plain(key.to_pkcs8_pem().unwrap().as_bytes()).public_pem(), public);
    assert_eq!(plain(key.to_sec1_pem().unwrap().as_bytes()).public_pem(), public);
    let text = key.to_encrypted_pem(PASSWORD).unwrap();
    assert!(text.starts_with("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\neyJrZGYiOnsi"));
    assert_eq!(encrypted(text.as_bytes()).open(PASSWORD).unwrap().public_pem(), public);
    assert_eq!(encrypted(text.as_bytes()).open(b"other").unwrap_err(), KeyError::Password);
}

#[test]
fn signature_verifies_with_the_public_key() {
    let key = plain(&file("pkcs8.pem"));
    let signature = SignatureBytes::new(key.sign(b"message").unwrap());
    let public = DerPublicKey::new(key.public_spki().to_vec());
    let scheme = SigningScheme::EcdsaP256Sha256;
    assert!(verify_signature(&public, b"message", &signature, scheme).is_ok());
    assert!(verify_signature(&public, b"other", &signature, scheme).is_err());
    assert_eq!(key.hint(), STANDARD.encode(key.fingerprint().as_bytes()));
}

#[test]
fn parameters_are_bounded_before_any_work() {
    for (name, value) in [
        ("N", 1_u64 << 40),
        ("N", 1 << 19),
        ("N", 65_537),
        ("N", 1),
        ("N", 0),
        ("r", 0),
        ("r", u64::MAX),
        ("r", 1 << 20),
        ("p", 0),
        ("p", 5),
        ("p", u64::MAX),
    ] {
        let error = changed(|json| json["kdf"]["params"][name] = value.into()).unwrap_err();
        assert_eq!(error.code(), "key-parameters", "{name} = {value}");
    }
}

#[test]
fn damaged_keys_are_refused() {
    let mutations: [fn(&mut serde_json::Value); 7] = [
        |json| json["kdf"]["name"] = "pbkdf2".into(),
        |json| json["kdf"]["salt"] = "AAAA".into(),
        |json| json["kdf"]["salt"] = "?".into(),
        |json| json["cipher"]["name"] = "aes".into(),
        |json| json["cipher"]["nonce"] = "AAAA".into(),
        |json| json["ciphertext"] = 7.into(),
        |json| *json = "text".into(),
    ];
    for mutation in mutations {
        assert_eq!(changed(mutation).unwrap_err().code(), "key-invalid");
    }
    for ciphertext in ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        let KeyFile::Encrypted(key) =
            changed(|json| json["ciphertext"] = ciphertext.into()).unwrap()
        else {
            panic!("a plain key");
        };
        assert_eq!(key.open(PASSWORD).unwrap_err(), KeyError::Password);
    }
}

#[test]
fn what_is_no_key_is_refused_by_what_it_is() {
    let cases: [(Vec<u8>, &str); 9] = [
        (file("p384.pem"), "key-unsupported"),
        (file("public.pem"), "key-invalid"),
        (Vec::new(), "key-invalid"),
        (vec![0xff; 100], "key-invalid"),
        (vec![b'a'; MAX_KEY_BYTES + 1], "key-invalid"),
        (b"-----BEGIN PRIVATE KEY-----\nMIGH\n".to_vec(), "key-invalid"),
        (b"-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----".to_vec(), "key-invalid"),
        (b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----".to_vec(), "key-unsupported"),
        (
            b"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n-----END EC PRIVATE KEY-----"
                .to_vec(),
            "key-invalid",
        ),
    ];
    for (text, code) in cases {
        let error = KeyFile::parse(&text).unwrap_err();
        assert_eq!(error.code(), code, "{}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn nothing_secret_is_printed() {
    let key = plain(&file("pkcs8.pem"));
    assert_eq!(format!("{key:?}"), "SigningKey { .. }");
    let key = encrypted(&file("encrypted-cosign.pem"));
    assert_eq!(format!("{key:?}"), "EncryptedKey { .. }");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,400}") {
        let _ = KeyFile::parse(text.as_bytes());
        let framed = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
        let _ = KeyFile::parse(framed.as_bytes());
    }
}
