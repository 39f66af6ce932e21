//! P-256 signing keys: making them, reading and writing them, signing with them.
//!
//! The file forms are PKCS#8 and SEC 1 in PEM, and the encrypted form that cosign writes. Nothing
//! here prints a secret, and what held one is overwritten when it goes.

mod encrypted;
mod pem;

use std::fmt;

use ambit_engine::digest::Digest;
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

pub use self::encrypted::EncryptedKey;

/// The largest key file, in bytes.
pub const MAX_KEY_BYTES: usize = 64 << 10;

/// Why a key can't be read, written or used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text holds no private key in a form that is read here.
    #[error("no private key: {0}")]
    Form(String),
    /// The key is of another kind.
    #[error("the key is no ECDSA key on the curve P-256")]
    Unsupported,
    /// The password is wrong, or the file is damaged: the two can't be told apart.
    #[error("the password is wrong, or the key file is damaged")]
    Password,
    /// The file asks for more work to derive its key than is done.
    #[error("the key file asks for scrypt with N {n}, r {r}, p {p}, which is over the limit")]
    Parameters {
        /// The cost.
        n: u64,
        /// The block size.
        r: u64,
        /// The parallelism.
        p: u64,
    },
    /// The cryptographic library refused.
    #[error("the key can't be used")]
    Refused,
}

impl KeyError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Form(_) => "key-invalid",
            Self::Unsupported => "key-unsupported",
            Self::Password => "key-password",
            Self::Parameters { .. } => "key-parameters",
            Self::Refused => "key-failed",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Form(_) => {
                "give a PEM file: PKCS#8, SEC 1, or the `cosign.key` of `cosign generate-key-pair`"
            }
            Self::Unsupported => "make a P-256 key, for instance with `cosign generate-key-pair`",
            Self::Password => "check the password, which cosign takes from `COSIGN_PASSWORD`",
            Self::Parameters { .. } => "encrypt the key again with cosign's own parameters",
            Self::Refused => "make another key",
        }
    }
}

/// A key as a file holds it.
#[derive(Debug)]
pub enum KeyFile {
    /// Ready for use.
    Plain(SigningKey),
    /// Under a password.
    Encrypted(EncryptedKey),
}

impl KeyFile {
    /// Reads a PEM file.
    ///
    /// # Errors
    ///
    /// [`KeyError::Form`] or [`KeyError::Unsupported`].
    pub fn parse(text: &[u8]) -> Result<Self, KeyError> {
        if text.len() > MAX_KEY_BYTES {
            return Err(KeyError::Form("the file is too large for a key".to_owned()));
        }
        for block in pem::blocks(text)? {
            match block.label.as_str() {
                "PRIVATE KEY" | "EC PRIVATE KEY" => {
                    return SigningKey::from_der(&block.bytes).map(Self::Plain);
                }
                "ENCRYPTED SIGSTORE PRIVATE KEY" | "ENCRYPTED COSIGN PRIVATE KEY" => {
                    return EncryptedKey::parse(&block.bytes).map(Self::Encrypted);
                }
                // OpenSSL writes the curve in a block of its own before a SEC 1 key.
                "EC PARAMETERS" => {}
                other => {
                    let other: String = other.chars().take(60).collect();
                    return Err(KeyError::Form(format!("the file holds a `{other}`")));
                }
            }
        }
        Err(KeyError::Form("the file holds no PEM block".to_owned()))
    }
}

/// A P-256 key that signs.
///
/// # Examples
/// ```
/// # use ambit_trust::keys::{KeyFile, SigningKey};
/// let key = SigningKey::generate()?;
/// let KeyFile::Plain(again) = KeyFile::parse(key.to_pkcs8_pem()?.as_bytes())? else {
///     unreachable!("it was written without a password");
/// };
/// assert_eq!(again.public_pem(), key.public_pem());
/// # Ok::<(), ambit_trust::keys::KeyError>(())
/// ```
pub struct SigningKey {
    pair: EcdsaKeyPair,
    spki: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Makes a new key.
    ///
    /// # Errors
    ///
    /// [`KeyError::Refused`] if the system gives no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING);
        Self::of(pair.map_err(|_| KeyError::Refused)?)
    }

    /// Reads a key in PKCS#8 or SEC 1 form.
    ///
    /// # Errors
    ///
    /// [`KeyError::Unsupported`] if it is no P-256 key.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, der);
        Self::of(pair.map_err(|_| KeyError::Unsupported)?)
    }

    fn of(pair: EcdsaKeyPair) -> Result<Self, KeyError> {
        let spki = pair.public_key().as_der().map_err(|_| KeyError::Refused)?.as_ref().to_vec();
        Ok(Self { pair, spki })
    }

    /// Returns the public key as a SubjectPublicKeyInfo, DER.
    #[must_use]
    pub fn public_spki(&self) -> &[u8] {
        &self.spki
    }

    /// Returns the public key, PEM.
    #[must_use]
    pub fn public_pem(&self) -> String {
        pem::write("PUBLIC KEY", &self.spki).to_string()
    }

    /// Returns the SHA-256 of the public key's SubjectPublicKeyInfo.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Digest::of(&self.spki)
    }

    /// Returns the fingerprint as bundles name a key in `publicKey.hint`.
    #[must_use]
    pub fn hint(&self) -> String {
        STANDARD.encode(self.fingerprint().as_bytes())
    }

    /// Returns the private key as PKCS#8, PEM, unprotected.
    ///
    /// # Errors
    ///
    /// [`KeyError::Refused`].
    pub fn to_pkcs8_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        let der = self.pair.to_pkcs8v1().map_err(|_| KeyError::Refused)?;
        Ok(pem::write("PRIVATE KEY", der.as_ref()))
    }

    /// Returns the private key in SEC 1 form, PEM, unprotected.
    ///
    /// # Errors
    ///
    /// [`KeyError::Refused`].
    pub fn to_sec1_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        let der = self.pair.private_key().as_der().map_err(|_| KeyError::Refused)?;
        Ok(pem::write("EC PRIVATE KEY", der.as_ref()))
    }

    /// Returns the private key as cosign writes it, under a password. The password may be empty,
    /// and then protects nothing.
    ///
    /// # Errors
    ///
    /// [`KeyError::Refused`].
    pub fn to_encrypted_pem(&self, password: &[u8]) -> Result<String, KeyError> {
        let der = self.pair.to_pkcs8v1().map_err(|_| KeyError::Refused)?;
        let body = encrypted::seal(der.as_ref(), password)?;
        Ok(pem::write("ENCRYPTED SIGSTORE PRIVATE KEY", &body).to_string())
    }

    /// Signs `message`: ECDSA over its SHA-256, as an ASN.1 sequence.
    ///
    /// # Errors
    ///
    /// [`KeyError::Refused`].
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        Ok(signature.map_err(|_| KeyError::Refused)?.as_ref().to_vec())
    }
}

#[cfg(test)]
mod tests;
