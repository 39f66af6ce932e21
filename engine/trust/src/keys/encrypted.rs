//! cosign's encrypted key: a JSON text with the parameters of scrypt, a nonce, and a NaCl secretbox
//! around the PKCS#8 key (sigstore's `encrypted` package, after go-securesystemslib).

use std::fmt;

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crypto_secretbox::aead::Aead as _;
use crypto_secretbox::{Key, KeyInit as _, Nonce, XSalsa20Poly1305};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{KeyError, SigningKey};

/// The most memory that deriving a key may take, in bytes. cosign's own parameters take 64 MiB.
const MAX_MEMORY: u64 = 256 << 20;

/// The most rounds over that memory.
const MAX_PARALLELISM: u64 = 4;

/// The cost that new files name, which is cosign's: 2 to this power.
const LOG_N: u8 = 16;

#[derive(Deserialize, Serialize)]
struct Envelope {
    kdf: Kdf,
    cipher: Cipher,
    ciphertext: String,
}

#[derive(Deserialize, Serialize)]
struct Kdf {
    name: String,
    params: Params,
    salt: String,
}

#[derive(Deserialize, Serialize)]
struct Params {
    #[serde(rename = "N")]
    n: u64,
    r: u64,
    p: u64,
}

#[derive(Deserialize, Serialize)]
struct Cipher {
    name: String,
    nonce: String,
}

/// A key under a password.
pub struct EncryptedKey {
    params: scrypt::Params,
    salt: Vec<u8>,
    nonce: Nonce,
    ciphertext: Vec<u8>,
}

impl fmt::Debug for EncryptedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedKey").finish_non_exhaustive()
    }
}

impl EncryptedKey {
    pub(super) fn parse(json: &[u8]) -> Result<Self, KeyError> {
        let wrong = |reason: &str| KeyError::Form(format!("the encrypted key {reason}"));
        let envelope: Envelope =
            serde_json::from_slice(json).map_err(|_| wrong("is not in cosign's form"))?;
        if envelope.kdf.name != "scrypt" || envelope.cipher.name != "nacl/secretbox" {
            return Err(wrong("doesn't use scrypt and secretbox"));
        }
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| wrong("is not in base64"));
        let salt = decode(&envelope.kdf.salt)?;
        if !(8..=1024).contains(&salt.len()) {
            return Err(wrong("has a salt of an odd length"));
        }
        let nonce: [u8; 24] = decode(&envelope.cipher.nonce)?
            .try_into()
            .map_err(|_| wrong("has a nonce of another length than 24 bytes"))?;
        Ok(Self {
            params: params(&envelope.kdf.params)?,
            salt,
            nonce: nonce.into(),
            ciphertext: decode(&envelope.ciphertext)?,
        })
    }

    /// Decrypts the key. This takes about a tenth of a second and 64 MiB with cosign's parameters,
    /// so that it belongs on a thread that may block.
    ///
    /// # Errors
    ///
    /// [`KeyError::Password`] if the password is another one, or the file is damaged;
    /// [`KeyError::Unsupported`] if it holds another kind of key.
    pub fn open(&self, password: &[u8]) -> Result<SigningKey, KeyError> {
        let cipher = cipher(password, &self.salt, &self.params)?;
        let der = cipher.decrypt(&self.nonce, self.ciphertext.as_slice());
        SigningKey::from_der(&Zeroizing::new(der.map_err(|_| KeyError::Password)?))
    }
}

/// Encrypts a PKCS#8 key as cosign does.
pub(super) fn seal(der: &[u8], password: &[u8]) -> Result<Vec<u8>, KeyError> {
    let mut salt = [0_u8; 32];
    let mut nonce = [0_u8; 24];
    rand::fill(&mut salt).and_then(|()| rand::fill(&mut nonce)).map_err(|_| KeyError::Refused)?;
    let params = Params { n: 1 << LOG_N, r: 8, p: 1 };
    let cipher = cipher(password, &salt, &self::params(&params)?)?;
    let ciphertext = cipher.encrypt(&Nonce::from(nonce), der).map_err(|_| KeyError::Refused)?;
    let envelope = Envelope {
        kdf: Kdf { name: "scrypt".to_owned(), params, salt: STANDARD.encode(salt) },
        cipher: Cipher { name: "nacl/secretbox".to_owned(), nonce: STANDARD.encode(nonce) },
        ciphertext: STANDARD.encode(ciphertext),
    };
    serde_json::to_vec(&envelope).map_err(|_| KeyError::Refused)
}

fn cipher(
    password: &[u8],
    salt: &[u8],
    params: &scrypt::Params,
) -> Result<XSalsa20Poly1305, KeyError> {
    let mut key = Zeroizing::new([0_u8; 32]);
    scrypt::scrypt(password, salt, params, key.as_mut()).map_err(|_| KeyError::Refused)?;
    Ok(XSalsa20Poly1305::new(Key::from_slice(key.as_ref())))
}

/// Checks the parameters before any memory is taken for them.
fn params(said: &Params) -> Result<scrypt::Params, KeyError> {
    let Params { n, r, p } = *said;
    let refused = KeyError::Parameters { n, r, p };
    let memory = n.checked_mul(r).and_then(|blocks| blocks.checked_mul(128));
    let bounded = memory.is_some_and(|bytes| bytes <= MAX_MEMORY)
        && (1..=MAX_PARALLELISM).contains(&p)
        && n >= 2
        && n.is_power_of_two()
        && r >= 1;
    let (log_n, r, p) = (n.trailing_zeros(), u32::try_from(r), u32::try_from(p));
    match (bounded, u8::try_from(log_n), r, p) {
        (true, Ok(log_n), Ok(r), Ok(p)) => scrypt::Params::new(log_n, r, p).map_err(|_| refused),
        _ => Err(refused),
    }
}
