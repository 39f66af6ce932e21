//! A store that reads through the cache.

use std::fmt;
use std::sync::{Arc, PoisonError};

use ambit_engine::digest::Digest;
use serde::{Deserialize, Serialize};

use super::folder::Kind;
use super::{Cache, Kept};
use crate::disk::blocking;
use crate::error::FetchError;
use crate::layout::is_evidence_tag;
use crate::oci::{
    Descriptor, MAX_MANIFEST_BYTES, MAX_REFERRERS, ManifestName, RawManifest, SubjectIndexed,
};
use crate::store::{Answer, Referrers, Store};

/// A store whose content comes from the cache where it is there.
///
/// Online, tags and referrers are asked of the store behind it each time. Offline, the tags that
/// hold signatures, and the referrers, are those that were last seen; no other tag has an answer,
/// since it may have moved.
pub struct CachedStore {
    inner: Option<Arc<dyn Store>>,
    cache: Arc<Cache>,
    name: String,
}

impl fmt::Debug for CachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedStore")
            .field("name", &self.name)
            .field("online", &self.inner.is_some())
            .finish_non_exhaustive()
    }
}

/// What a store said to a question that isn't by digest.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// The digest of a tag.
    Digest(String),
    /// That there is no such tag.
    Nothing,
    /// Referrers.
    Referrers { descriptors: Vec<Descriptor>, truncated: bool },
}

impl CachedStore {
    /// Reads from `inner` what the cache lacks.
    #[must_use]
    pub fn online(inner: Arc<dyn Store>, cache: Arc<Cache>) -> Self {
        let name = inner.name();
        Self { inner: Some(inner), cache, name }
    }

    /// Reads only what the cache has of the repository that a [`Store::name`] named so.
    #[must_use]
    pub fn offline(name: &str, cache: Arc<Cache>) -> Self {
        Self { inner: None, cache, name: name.to_owned() }
    }

    /// Reads from the folder. Online, trouble with it is noted and counts as absence.
    async fn get(
        &self,
        kind: Kind,
        name: Digest,
        max_bytes: usize,
    ) -> Result<Option<Kept>, FetchError> {
        let folder = Arc::clone(&self.cache.folder);
        let got = blocking(move || folder.get(kind, &name, max_bytes)).await;
        match got {
            Err(error) if self.inner.is_some() => {
                self.note(error);
                Ok(None)
            }
            other => other,
        }
    }

    /// Writes to the folder, and hands back what was written.
    async fn put(&self, kind: Kind, name: Digest, kept: Kept) -> Result<Kept, FetchError> {
        let folder = Arc::clone(&self.cache.folder);
        let problem = Arc::clone(&self.cache.problem);
        blocking(move || {
            if let Err(error) = folder.put(kind, &name, &kept) {
                *problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            Ok(kept)
        })
        .await
    }

    fn note(&self, error: FetchError) {
        *self.cache.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn question(&self, kind: &str, what: &str) -> Digest {
        let mut bytes = Vec::new();
        for part in [kind, &self.name, what] {
            bytes.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Digest::of(&bytes)
    }

    async fn record(&self, question: Digest, said: &Said) -> Result<(), FetchError> {
        let bytes = serde_json::to_vec(said).unwrap_or_default();
        self.put(Kind::Said, question, Kept { media_type: String::new(), bytes }).await.map(|_| ())
    }

    async fn recorded(&self, question: Digest) -> Result<Option<Said>, FetchError> {
        let kept = self.get(Kind::Said, question, MAX_MANIFEST_BYTES).await?;
        Ok(kept.and_then(|kept| serde_json::from_slice(&kept.bytes).ok()))
    }

    fn offline_error(&self, what: &dyn fmt::Display) -> FetchError {
        FetchError::Offline { what: format!("{} {what}", self.name) }
    }

    async fn by_digest(&self, digest: Digest) -> Result<RawManifest, FetchError> {
        let key = format!("manifest {} {digest}", self.name);
        let kept = self.cache.once(key, async {
            if let Some(kept) = self.get(Kind::Manifest, digest, MAX_MANIFEST_BYTES).await? {
                return Ok(kept);
            }
            let inner = self.inner.as_ref().ok_or_else(|| self.offline_error(&digest))?;
            let raw = inner.manifest(&ManifestName::Digest(digest)).await?;
            let kept = Kept { media_type: raw.media_type, bytes: raw.bytes };
            self.put(Kind::Manifest, digest, kept).await
        });
        let kept = kept.await?;
        Ok(RawManifest { digest, media_type: kept.media_type.clone(), bytes: kept.bytes.clone() })
    }

    async fn by_tag(&self, tag: &str) -> Result<RawManifest, FetchError> {
        let question = self.question("tag", tag);
        let evidence = is_evidence_tag(tag);
        let Some(inner) = &self.inner else {
            return match self.recorded(question).await? {
                Some(Said::Digest(digest)) if evidence => match digest.parse() {
                    Ok(digest) => self.by_digest(digest).await,
                    Err(_) => Err(self.offline_error(&tag)),
                },
                Some(Said::Nothing) if evidence => {
                    Err(FetchError::NotFound { what: format!("{}:{tag}", self.name) })
                }
                Some(_) | None => Err(self.offline_error(&tag)),
            };
        };
        match inner.manifest(&ManifestName::Tag(tag.to_owned())).await {
            Ok(raw) => {
                let RawManifest { digest, media_type, bytes } = raw;
                let kept = self.put(Kind::Manifest, digest, Kept { media_type, bytes }).await?;
                if evidence {
                    self.record(question, &Said::Digest(digest.to_string())).await?;
                }
                Ok(RawManifest { digest, media_type: kept.media_type, bytes: kept.bytes })
            }
            Err(error @ FetchError::NotFound { .. }) if evidence => {
                self.record(question, &Said::Nothing).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn read_blob(&self, blob: &Descriptor, max_bytes: usize) -> Result<Vec<u8>, FetchError> {
        let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
        if blob.size > limit {
            return Err(FetchError::Limit { what: format!("{} (bytes)", blob.digest), limit });
        }
        // The size is part of the key: who names a wrong one must not spoil it for the others.
        let key = format!("blob {} {} {}", self.name, blob.digest, blob.size);
        let kept = self.cache.once(key, async {
            let wanted = usize::try_from(blob.size).unwrap_or(usize::MAX);
            if let Some(kept) = self.get(Kind::Blob, blob.digest, wanted).await? {
                return Ok(kept);
            }
            let inner = self.inner.as_ref().ok_or_else(|| self.offline_error(&blob.digest))?;
            let bytes = inner.blob(blob, wanted).await?;
            self.put(Kind::Blob, blob.digest, Kept { media_type: String::new(), bytes }).await
        });
        let kept = kept.await?;
        if u64::try_from(kept.bytes.len()).ok() != Some(blob.size) {
            return Err(FetchError::Protocol {
                what: format!("{}@{}", self.name, blob.digest),
                reason: format!("it has {} bytes, not {}", kept.bytes.len(), blob.size),
            });
        }
        Ok(kept.bytes.clone())
    }

    async fn list_referrers(&self, subject: &Digest) -> Result<Referrers, FetchError> {
        let question = self.question("referrers", &subject.to_string());
        let Some(inner) = &self.inner else {
            return match self.recorded(question).await? {
                Some(Said::Referrers { mut descriptors, truncated }) => {
                    let more = descriptors.len() > MAX_REFERRERS;
                    descriptors.truncate(MAX_REFERRERS);
                    Ok(Referrers { descriptors, truncated: truncated || more })
                }
                Some(Said::Digest(_) | Said::Nothing) | None => Err(self.offline_error(subject)),
            };
        };
        let referrers = inner.referrers(subject).await?;
        let said = Said::Referrers {
            descriptors: referrers.descriptors.clone(),
            truncated: referrers.truncated,
        };
        self.record(question, &said).await?;
        Ok(referrers)
    }
}

impl Store for CachedStore {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn manifest<'a>(&'a self, name: &'a ManifestName) -> Answer<'a, RawManifest> {
        Box::pin(async move {
            match name {
                ManifestName::Digest(digest) => self.by_digest(*digest).await,
                ManifestName::Tag(tag) => self.by_tag(tag).await,
            }
        })
    }

    fn blob<'a>(&'a self, blob: &'a Descriptor, max_bytes: usize) -> Answer<'a, Vec<u8>> {
        Box::pin(self.read_blob(blob, max_bytes))
    }

    fn referrers<'a>(&'a self, subject: &'a Digest) -> Answer<'a, Referrers> {
        Box::pin(self.list_referrers(subject))
    }

    fn push_blob<'a>(&'a self, media_type: &'a str, bytes: &'a [u8]) -> Answer<'a, Descriptor> {
        match &self.inner {
            Some(inner) => inner.push_blob(media_type, bytes),
            None => {
                let error = self.offline_error(&"(to push a blob)");
                Box::pin(async move { Err(error) })
            }
        }
    }

    fn push_manifest<'a>(
        &'a self,
        name: &'a ManifestName,
        media_type: &'a str,
        bytes: &'a [u8],
    ) -> Answer<'a, SubjectIndexed> {
        match &self.inner {
            Some(inner) => inner.push_manifest(name, media_type, bytes),
            None => {
                let error = self.offline_error(&name);
                Box::pin(async move { Err(error) })
            }
        }
    }
}
