//! Keys.
#![expect(clippy::expect_used, reason = "a test that can't make a key has nothing to test")]

use std::fmt;

use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PublicKeyData as _,
    SigningKey as _,
};

use super::encode::{base64, pem, sha256};

/// A key pair that lives as long as the test.
pub struct Key {
    pub(super) pair: KeyPair,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("hint", &self.hint()).finish_non_exhaustive()
    }
}

impl Key {
    /// Makes an ECDSA key over P-256, which signs SHA-256.
    #[must_use]
    pub fn p256() -> Self {
        Self { pair: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key") }
    }

    /// Makes an ECDSA key over P-384, which signs SHA-384.
    #[must_use]
    pub fn p384() -> Self {
        Self { pair: KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).expect("a key") }
    }

    /// Makes an Ed25519 key.
    #[must_use]
    pub fn ed25519() -> Self {
        Self { pair: KeyPair::generate_for(&PKCS_ED25519).expect("a key") }
    }

    /// Returns the SubjectPublicKeyInfo, DER.
    #[must_use]
    pub fn spki(&self) -> Vec<u8> {
        self.pair.subject_public_key_info()
    }

    /// Returns the public key in PEM, as `cosign.pub` has it.
    #[must_use]
    pub fn public_pem(&self) -> String {
        pem("PUBLIC KEY", &self.spki())
    }

    /// Returns the private key in PEM (PKCS #8), for tests of signing.
    #[must_use]
    pub fn private_pem(&self) -> String {
        self.pair.serialize_pem()
    }

    /// Returns the SHA-256 of the SubjectPublicKeyInfo: the identifier of a log.
    #[must_use]
    pub fn id(&self) -> [u8; 32] {
        sha256(&self.spki())
    }

    /// Returns what cosign writes as `publicKey.hint`.
    #[must_use]
    pub fn hint(&self) -> String {
        base64(&self.id())
    }

    /// Signs bytes; ECDSA signatures are ASN.1.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).expect("a signature")
    }

    pub(super) fn details(&self) -> &'static str {
        let algorithm = self.pair.algorithm();
        if algorithm == &PKCS_ECDSA_P256_SHA256 {
            "PKIX_ECDSA_P256_SHA_256"
        } else if algorithm == &PKCS_ECDSA_P384_SHA384 {
            "PKIX_ECDSA_P384_SHA_384"
        } else {
            "PKIX_ED25519"
        }
    }
}
