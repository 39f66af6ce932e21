//! A repository in memory that does as it is told, faults included.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use ambit_engine::digest::Digest;
use ambit_trust::error::FetchError;
use ambit_trust::oci::{Descriptor, ManifestName, RawManifest, SubjectIndexed, media};
use ambit_trust::store::{Answer, Referrers, Store};
use serde_json::Value;
use tokio::sync::Semaphore;

type Hook = Box<dyn FnMut(&mut State, &ManifestName) + Send>;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) manifests: BTreeMap<Digest, RawManifest>,
    pub(crate) tags: BTreeMap<String, Digest>,
    pub(crate) blobs: BTreeMap<Digest, Vec<u8>>,
    /// What is answered instead, by the text of a name or digest, or `referrers`.
    pub(crate) faults: HashMap<String, FetchError>,
    /// Each call, as text.
    pub(crate) calls: Vec<String>,
}

/// The repository.
pub(crate) struct Memory {
    pub(crate) state: Mutex<State>,
    /// Runs after a manifest is stored, as somebody else who writes.
    pub(crate) after_push: Mutex<Option<Hook>>,
    /// Whether referrers are listed.
    pub(crate) lists_referrers: bool,
    /// Whether an index may name what isn't there.
    pub(crate) checks_children: bool,
    /// Blobs wait for permits, if there is this.
    pub(crate) gate: Option<Arc<Semaphore>>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            after_push: Mutex::default(),
            lists_referrers: true,
            checks_children: false,
            gate: None,
        }
    }

    /// One like the registries that have no referrers API.
    pub(crate) fn old() -> Self {
        Self { lists_referrers: false, checks_children: true, ..Self::new() }
    }

    pub(crate) fn fault(&self, what: &str, error: FetchError) {
        self.state.lock().unwrap().faults.insert(what.to_owned(), error);
    }

    pub(crate) fn calls(&self, start: &str) -> usize {
        let state = self.state.lock().unwrap();
        state.calls.iter().filter(|call| call.starts_with(start)).count()
    }

    fn called(&self, call: String, what: &str) -> Result<(), FetchError> {
        let mut state = self.state.lock().unwrap();
        state.calls.push(call);
        state.faults.get(what).cloned().map_or(Ok(()), Err)
    }

    fn get(&self, name: &ManifestName) -> Result<RawManifest, FetchError> {
        self.called(format!("manifest {name}"), &name.to_string())?;
        let state = self.state.lock().unwrap();
        let digest = match name {
            ManifestName::Tag(tag) => state.tags.get(tag).copied(),
            ManifestName::Digest(digest) => Some(*digest),
        };
        digest
            .and_then(|digest| state.manifests.get(&digest).cloned())
            .ok_or_else(|| FetchError::NotFound { what: name.to_string() })
    }

    fn list(&self, subject: &Digest) -> Result<Referrers, FetchError> {
        self.called(format!("referrers {subject}"), "referrers")?;
        if !self.lists_referrers {
            let fallback = ManifestName::Tag(subject.to_string().replace(':', "-"));
            return match self.get(&fallback) {
                Ok(raw) => {
                    let body: Value = serde_json::from_slice(&raw.bytes).unwrap();
                    let descriptors = serde_json::from_value(body["manifests"].clone()).unwrap();
                    Ok(Referrers { descriptors, truncated: false })
                }
                Err(FetchError::NotFound { .. }) => Ok(Referrers::default()),
                Err(error) => Err(error),
            };
        }
        let state = self.state.lock().unwrap();
        let refers = |raw: &&RawManifest| {
            let body: Value = serde_json::from_slice(&raw.bytes).unwrap_or_default();
            body["subject"]["digest"] == subject.to_string()
        };
        let describe = |raw: &RawManifest| Descriptor::of(&raw.media_type, &raw.bytes);
        let descriptors = state.manifests.values().filter(refers).map(describe).collect();
        Ok(Referrers { descriptors, truncated: false })
    }

    fn put(
        &self,
        name: &ManifestName,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<SubjectIndexed, FetchError> {
        self.called(format!("push {name}"), &format!("push {name}"))?;
        let mut state = self.state.lock().unwrap();
        let body: Value = serde_json::from_slice(bytes).unwrap();
        if self.checks_children && media_type == media::INDEX {
            for child in body["manifests"].as_array().unwrap() {
                let digest: Digest = child["digest"].as_str().unwrap().parse().unwrap();
                if !state.manifests.contains_key(&digest) {
                    return Err(FetchError::Protocol {
                        what: name.to_string(),
                        reason: "MANIFEST_BLOB_UNKNOWN: blob unknown to registry".to_owned(),
                    });
                }
            }
        }
        let digest = Digest::of(bytes);
        state.manifests.insert(
            digest,
            RawManifest { digest, media_type: media_type.to_owned(), bytes: bytes.to_vec() },
        );
        if let ManifestName::Tag(tag) = name {
            state.tags.insert(tag.clone(), digest);
        }
        if let Some(hook) = self.after_push.lock().unwrap().as_mut() {
            hook(&mut state, name);
        }
        if self.lists_referrers || body.get("subject").is_none() {
            Ok(SubjectIndexed::ByStore)
        } else {
            Ok(SubjectIndexed::ByNobody)
        }
    }
}

impl Store for Memory {
    fn name(&self) -> String {
        "registry.test/app".to_owned()
    }

    fn manifest<'a>(&'a self, name: &'a ManifestName) -> Answer<'a, RawManifest> {
        Box::pin(async move { self.get(name) })
    }

    fn blob<'a>(&'a self, blob: &'a Descriptor, max_bytes: usize) -> Answer<'a, Vec<u8>> {
        Box::pin(async move {
            self.called(format!("blob {}", blob.digest), &blob.digest.to_string())?;
            if let Some(gate) = &self.gate {
                gate.acquire().await.unwrap().forget();
            }
            let limit = max_bytes as u64;
            if blob.size > limit {
                return Err(FetchError::Limit { what: blob.digest.to_string(), limit });
            }
            let state = self.state.lock().unwrap();
            let bytes = state.blobs.get(&blob.digest).cloned();
            bytes.ok_or_else(|| FetchError::NotFound { what: blob.digest.to_string() })
        })
    }

    fn referrers<'a>(&'a self, subject: &'a Digest) -> Answer<'a, Referrers> {
        Box::pin(async move { self.list(subject) })
    }

    fn push_blob<'a>(&'a self, media_type: &'a str, bytes: &'a [u8]) -> Answer<'a, Descriptor> {
        Box::pin(async move {
            let descriptor = Descriptor::of(media_type, bytes);
            self.state.lock().unwrap().blobs.insert(descriptor.digest, bytes.to_vec());
            Ok(descriptor)
        })
    }

    fn push_manifest<'a>(
        &'a self,
        name: &'a ManifestName,
        media_type: &'a str,
        bytes: &'a [u8],
    ) -> Answer<'a, SubjectIndexed> {
        Box::pin(async move { self.put(name, media_type, bytes) })
    }
}
