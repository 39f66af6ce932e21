//! What a signature has to be about.

use ambit_engine::digest::Digest;
use sigstore_types::{ArtifactDigest, HashAlgorithm, Sha256Hash};

/// A file that a bundle is about, or as much as is known of it.
#[derive(Clone, Copy, Debug)]
pub enum Artifact<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// Its SHA-256.
    Digest(Digest),
    /// Its SHA-512, as npm names packages.
    Sha512([u8; 64]),
}

/// What a signature has to be about, with the digests that are known of it.
#[derive(Clone, Debug)]
pub(super) struct Target<'a> {
    pub(super) bytes: Option<&'a [u8]>,
    sha256: Option<[u8; 32]>,
    sha384: Option<Vec<u8>>,
    sha512: Option<Vec<u8>>,
}

impl<'a> Target<'a> {
    /// Something of which only the SHA-256 is known.
    pub(super) fn digest(digest: Digest) -> Target<'static> {
        Target { bytes: None, sha256: Some(*digest.as_bytes()), sha384: None, sha512: None }
    }

    /// Something whose bytes are there.
    pub(super) fn bytes(bytes: &'a [u8]) -> Self {
        Self {
            bytes: Some(bytes),
            sha256: Some(*Digest::of(bytes).as_bytes()),
            sha384: Some(sigstore_crypto::sha384(bytes).as_bytes().to_vec()),
            sha512: Some(sigstore_crypto::sha512(bytes).as_bytes().to_vec()),
        }
    }

    /// A file.
    pub(super) fn artifact(artifact: Artifact<'a>) -> Self {
        match artifact {
            Artifact::Bytes(bytes) => Self::bytes(bytes),
            Artifact::Digest(digest) => Target::digest(digest),
            Artifact::Sha512(hash) => {
                Self { bytes: None, sha256: None, sha384: None, sha512: Some(hash.to_vec()) }
            }
        }
    }

    /// Returns the digest by `algorithm`, if it is known.
    pub(super) fn hash(&self, algorithm: HashAlgorithm) -> Option<&[u8]> {
        match algorithm {
            HashAlgorithm::Sha2256 => self.sha256.as_ref().map(<[u8; 32]>::as_slice),
            HashAlgorithm::Sha2384 => self.sha384.as_deref(),
            HashAlgorithm::Sha2512 => self.sha512.as_deref(),
            _ => None,
        }
    }

    /// Tells whether the algorithm's digest, in lower-case hexadecimal, is `text`.
    pub(super) fn is(&self, algorithm: HashAlgorithm, text: &str) -> bool {
        self.hash(algorithm).is_some_and(|hash| hex(hash) == text)
    }

    /// Returns the form that the library takes.
    pub(super) fn input(&self) -> Option<sigstore_types::Artifact<'a>> {
        if let Some(bytes) = self.bytes {
            return Some(sigstore_types::Artifact::from_blob(bytes));
        }
        if let Some(hash) = self.sha256 {
            return Some(sigstore_types::Artifact::from_digest(Sha256Hash::new(hash)));
        }
        let hash = self.sha512.as_deref()?;
        let digest = ArtifactDigest::new(HashAlgorithm::Sha2512, hash).ok()?;
        Some(sigstore_types::Artifact::from_digest(digest))
    }

    /// Names the target in a message.
    pub(super) fn name(&self) -> String {
        match (&self.sha256, &self.sha512) {
            (Some(hash), _) => format!("sha256:{}", hex(hash)),
            (None, Some(hash)) => format!("sha512:{}", hex(hash)),
            (None, None) => "nothing".to_owned(),
        }
    }
}

/// Writes `bytes` in lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
