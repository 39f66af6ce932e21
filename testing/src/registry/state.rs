//! What the registry holds.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Fault, Logged};

#[derive(Default)]
pub(super) struct State {
    blobs: BTreeMap<(String, String), Vec<u8>>,
    manifests: Vec<Stored>,
    tags: BTreeMap<(String, String), String>,
    pub(super) uploads: BTreeMap<String, Vec<u8>>,
    pub(super) planted: BTreeMap<String, Vec<Value>>,
    pub(super) faults: Vec<Fault>,
    pub(super) log: Vec<Logged>,
    pub(super) tokens: u64,
    pub(super) oldest_token: u64,
    pub(super) held: usize,
    pub(super) counter: u64,
}

pub(super) struct Stored {
    repository: String,
    digest: String,
    pub(super) media_type: String,
    pub(super) bytes: Vec<u8>,
}

pub(super) fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Why a manifest isn't taken: the code of the specification.
pub(super) type Refusal = &'static str;

impl State {
    pub(super) fn put_blob(&mut self, repository: &str, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        self.blobs.insert((repository.to_owned(), digest.clone()), bytes.to_vec());
        digest
    }

    pub(super) fn blob(&self, repository: &str, digest: &str) -> Option<&[u8]> {
        self.blobs.get(&(repository.to_owned(), digest.to_owned())).map(Vec::as_slice)
    }

    pub(super) fn put_manifest(
        &mut self,
        repository: &str,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> String {
        let digest = digest(bytes);
        if !name.contains(':') {
            self.tags.insert((repository.to_owned(), name.to_owned()), digest.clone());
        }
        if self.manifest(repository, &digest).is_none() {
            self.manifests.push(Stored {
                repository: repository.to_owned(),
                digest: digest.clone(),
                media_type: media_type.to_owned(),
                bytes: bytes.to_vec(),
            });
        }
        digest
    }

    pub(super) fn manifest(&self, repository: &str, name: &str) -> Option<&Stored> {
        let tagged = self.tags.get(&(repository.to_owned(), name.to_owned()));
        let digest = tagged.map_or(name, String::as_str);
        self.manifests.iter().find(|own| own.repository == repository && own.digest == digest)
    }

    /// Checks what docker-registry checks, and returns the digest of the subject.
    pub(super) fn check(
        &self,
        repository: &str,
        name: &str,
        bytes: &[u8],
    ) -> Result<Option<String>, Refusal> {
        if name.contains(':') && name != digest(bytes) {
            return Err("DIGEST_INVALID");
        }
        let manifest: Value = serde_json::from_slice(bytes).map_err(|_| "MANIFEST_INVALID")?;
        let layers = manifest["layers"].as_array().into_iter().flatten();
        for blob in layers.chain(manifest.get("config")) {
            let digest = blob["digest"].as_str().ok_or("MANIFEST_INVALID")?;
            self.blob(repository, digest).ok_or("MANIFEST_BLOB_UNKNOWN")?;
        }
        for child in manifest["manifests"].as_array().into_iter().flatten() {
            let digest = child["digest"].as_str().ok_or("MANIFEST_INVALID")?;
            self.manifest(repository, digest).ok_or("MANIFEST_BLOB_UNKNOWN")?;
        }
        Ok(manifest["subject"]["digest"].as_str().map(str::to_owned))
    }

    /// Returns the descriptors of what names `subject`, oldest first, then the planted ones.
    pub(super) fn referrers(&self, repository: &str, subject: &str) -> Vec<Value> {
        let mut found = Vec::new();
        for stored in self.manifests.iter().filter(|own| own.repository == repository) {
            let manifest: Value = serde_json::from_slice(&stored.bytes).unwrap_or_default();
            if manifest["subject"]["digest"] != subject {
                continue;
            }
            let artifact_type = manifest
                .get("artifactType")
                .or_else(|| manifest.get("config").and_then(|config| config.get("mediaType")));
            let mut descriptor = json!({
                "mediaType": stored.media_type,
                "digest": stored.digest,
                "size": stored.bytes.len(),
            });
            for (key, value) in
                [("artifactType", artifact_type), ("annotations", manifest.get("annotations"))]
            {
                if let Some(value) = value {
                    descriptor[key] = value.clone();
                }
            }
            found.push(descriptor);
        }
        found.extend(self.planted.get(subject).into_iter().flatten().cloned());
        found
    }
}
