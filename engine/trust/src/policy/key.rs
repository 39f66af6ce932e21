//! Public keys in PEM.

use ambit_engine::digest::Digest;
use sigstore_crypto::{KeyAlgorithm, VerificationKey, validate_raw_public_key};
use sigstore_types::{DerPublicKey, HashAlgorithm, SignatureBytes};

use super::{KeyHash, PublicKey};

/// The most keys of one authority.
pub(super) const MAX_KEYS: usize = 16;

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

/// Why a text holds no public keys that can be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It holds no PEM block of a public key.
    #[error("there is no `PUBLIC KEY` block")]
    None,
    /// It holds something beside public keys.
    #[error("there is more than public keys, from `{0}` on")]
    Other(String),
    /// It holds a private key.
    #[error("this is a private key")]
    Private,
    /// A block is not what it says.
    #[error("the key can't be read: {0}")]
    Form(String),
    /// The key has another algorithm or size than those that are verified.
    #[error("keys of this kind can't be verified: {0}")]
    Algorithm(String),
    /// The hash doesn't go with the key.
    #[error("{algorithm} keys don't sign over {hash}")]
    Hash {
        /// The key's algorithm.
        algorithm: &'static str,
        /// The hash.
        hash: &'static str,
    },
    /// There are too many keys.
    #[error("more than {MAX_KEYS} keys")]
    TooMany,
}

impl KeyError {
    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::None | Self::Other(_) | Self::Form(_) => {
                "give the public key in PEM (`-----BEGIN PUBLIC KEY-----`), as `cosign public-key` prints it"
            }
            Self::Private => {
                "replace the key, which is no secret any more, and give the public one: `cosign public-key`"
            }
            Self::Algorithm(_) => "use ECDSA P-256 or P-384, RSA of 2048 to 8192 bits, or Ed25519",
            Self::Hash { .. } => {
                "P-256 and P-384 go with sha256 and sha384, RSA with sha512 too; Ed25519 has a hash of its own"
            }
            Self::TooMany => "split the authority",
        }
    }
}

/// Which hash a policy names for its keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HashChoice {
    /// None: SHA-256, as cosign has it, and for Ed25519 its own.
    Unnamed,
    /// This one.
    Named(KeyHash),
}

impl KeyHash {
    /// Returns the name in policies.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Reads the name in policies.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha384, Self::Sha512].into_iter().find(|hash| hash.as_str() == text)
    }

    fn algorithm(self) -> HashAlgorithm {
        match self {
            Self::Sha256 => HashAlgorithm::Sha2256,
            Self::Sha384 => HashAlgorithm::Sha2384,
            Self::Sha512 => HashAlgorithm::Sha2512,
        }
    }
}

impl PublicKey {
    /// Returns the SHA-256 of the SubjectPublicKeyInfo.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Digest::of(&self.spki)
    }

    /// Whether `signature` is one of this key over `message`: ECDSA as an ASN.1 sequence, RSA as
    /// PKCS #1 1.5, or Ed25519.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = DerPublicKey::new(self.spki.clone());
        let Ok(algorithm) = KeyAlgorithm::from_spki(&key) else { return false };
        let Ok(scheme) = algorithm.resolve_signing_scheme(self.hash.algorithm()) else {
            return false;
        };
        let signature = SignatureBytes::new(signature.to_vec());
        sigstore_crypto::verify_signature(&key, message, &signature, scheme).is_ok()
    }
}

/// Reads one or more public keys in PEM; a key that is there twice counts once.
///
/// # Errors
///
/// [`KeyError`]: each block must be a key that can be verified with the hash.
pub fn public_keys(pem: &str, hash: HashChoice) -> Result<Vec<PublicKey>, KeyError> {
    if pem.contains("PRIVATE KEY-----") {
        return Err(KeyError::Private);
    }
    let mut keys: Vec<PublicKey> = Vec::new();
    let mut rest = pem.trim();
    while !rest.is_empty() {
        if !rest.starts_with(BEGIN) {
            return Err(match keys.is_empty() {
                true if !rest.contains(BEGIN) => KeyError::None,
                _ => KeyError::Other(
                    rest.lines().next().unwrap_or_default().chars().take(40).collect(),
                ),
            });
        }
        let end = rest.find(END).map(|at| at.saturating_add(END.len()));
        let end = end.ok_or_else(|| KeyError::Form("the block has no end".to_owned()))?;
        let (block, tail) = rest.split_at_checked(end).ok_or(KeyError::None)?;
        let key = public_key(block, hash)?;
        if !keys.contains(&key) {
            keys.push(key);
        }
        if keys.len() > MAX_KEYS {
            return Err(KeyError::TooMany);
        }
        rest = tail.trim_start();
    }
    if keys.is_empty() { Err(KeyError::None) } else { Ok(keys) }
}

fn public_key(block: &str, hash: HashChoice) -> Result<PublicKey, KeyError> {
    let der = DerPublicKey::from_pem(block).map_err(|error| KeyError::Form(error.to_string()))?;
    let unfit = |error: sigstore_crypto::Error| KeyError::Algorithm(error.to_string());
    let algorithm = KeyAlgorithm::from_spki(&der).map_err(unfit)?;
    let name = match algorithm {
        KeyAlgorithm::EcdsaP256 => "P-256",
        KeyAlgorithm::EcdsaP384 => "P-384",
        KeyAlgorithm::Rsa => "RSA",
        KeyAlgorithm::Ed25519 => "Ed25519",
        KeyAlgorithm::MlDsa44 | KeyAlgorithm::MlDsa65 | KeyAlgorithm::MlDsa87 => {
            return Err(KeyError::Algorithm("ML-DSA".to_owned()));
        }
        // The enumeration is somebody else's and grows.
        other => return Err(KeyError::Algorithm(format!("{other:?}"))),
    };
    let wanted = match hash {
        HashChoice::Unnamed => KeyHash::Sha256,
        HashChoice::Named(hash) => {
            // A hash that changes nothing would look like a restriction.
            if algorithm == KeyAlgorithm::Ed25519 {
                return Err(KeyError::Hash { algorithm: name, hash: hash.as_str() });
            }
            hash
        }
    };
    let scheme = algorithm
        .resolve_signing_scheme(wanted.algorithm())
        .map_err(|_| KeyError::Hash { algorithm: name, hash: wanted.as_str() })?;
    let key = VerificationKey::from_spki_with_scheme(&der, scheme).map_err(unfit)?;
    validate_raw_public_key(scheme, key.as_bytes()).map_err(unfit)?;
    Ok(PublicKey { spki: der.as_bytes().to_vec(), hash: wanted })
}
