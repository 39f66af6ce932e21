//! Content digests as OCI writes them: `sha256:` and 64 lower-case hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest of some bytes, written `sha256:…` as in the OCI image specification 1.1,
/// section "Digests" (<https://github.com/opencontainers/image-spec/blob/v1.1.0/descriptor.md#digests>).
///
/// Parsing is strict: the algorithm is `sha256`, the digits are lower case and exactly 64, so that
/// equal digests are equal text.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the 32 bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first twelve hexadecimal digits, for a line where the whole would not fit.
    #[must_use]
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate("sha256:".len().saturating_add(12));
        text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a digest.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DigestError {
    /// Only SHA-256 names content here.
    #[error("digest algorithm `{0}` is not supported")]
    Algorithm(String),
    /// The hexadecimal part is not 64 lower-case digits.
    #[error("expected 64 lower-case hexadecimal digits after `sha256:`, found `{0}`")]
    Digits(String),
    /// There is no `:` between algorithm and digits.
    #[error("expected `sha256:` and 64 hexadecimal digits, found `{0}`")]
    Form(String),
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shown = || text.chars().take(100).collect::<String>();
        let (algorithm, digits) = text.split_once(':').ok_or_else(|| DigestError::Form(shown()))?;
        if algorithm != "sha256" {
            return Err(DigestError::Algorithm(algorithm.chars().take(40).collect()));
        }
        let invalid = || DigestError::Digits(digits.chars().take(80).collect());
        if digits.len() != 64 {
            return Err(invalid());
        }
        let mut bytes = [0_u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *byte = pair.iter().try_fold(0_u8, |value, digit| {
                let digit = match digit {
                    b'0'..=b'9' => digit.wrapping_sub(b'0'),
                    b'a'..=b'f' => digit.wrapping_sub(b'a').wrapping_add(10),
                    _ => return Err(invalid()),
                };
                Ok(value << 4 | digit)
            })?;
        }
        Ok(Self(bytes))
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_prints_as_it_was_parsed() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.short(), "sha256:ba7816bf8f01");
    }

    #[test]
    fn other_spellings_of_a_digest_are_refused() {
        let good = Digest::of(b"abc").to_string();
        for bad in [
            good.to_uppercase(),
            good.replace("sha256", "sha512"),
            good.replacen("ba", "BA", 1),
            good[..good.len() - 1].to_owned(),
            format!("{good}0"),
            format!("{good} "),
            "sha256".to_owned(),
            String::new(),
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad} was accepted");
        }
    }
}
