//! Copies an artifact from one store to another, with what is attached to it if asked.

use ambit_engine::digest::Digest;
use serde_json::Value;

use super::{push_referrer, tags};
use crate::error::FetchError;
use crate::layout::fallback_tag;
use crate::manifest::{self, Image, Parsed};
use crate::oci::{Descriptor, MAX_REFERRERS, ManifestName, RawManifest, SubjectIndexed};
use crate::store::Store;

/// Whether what refers to the copied manifests is copied too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WithReferrers {
    /// It is: referrers, and the tags `.sig` and `.att`.
    Yes,
    /// It isn't.
    No,
}

/// How much a copy may move.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CopyLimits {
    /// The most bytes of one blob.
    pub max_blob_bytes: usize,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self { max_blob_bytes: 64 << 20 }
    }
}

/// What was copied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Copied {
    /// The digest of the manifest or index that the name stood for.
    pub digest: Digest,
    /// How many referrers came along.
    pub referrers: usize,
    /// How many signatures and attestations of the older form came along.
    pub legacy: usize,
}

/// Copies what `name` stands for in `from` to `to`, where it gets the name `as_name`.
///
/// An index is copied with all its manifests. A tag is resolved once, and the manifests come last,
/// so that `to` never names what it lacks.
///
/// # Errors
///
/// [`FetchError`]; [`FetchError::Limit`] if there are more referrers than are looked at.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    name: &ManifestName,
    as_name: &ManifestName,
    with: WithReferrers,
    limits: &CopyLimits,
) -> Result<Copied, FetchError> {
    let raw = from.manifest(name).await?;
    let mut subjects = vec![raw.digest];
    let parsed = manifest::parse(&raw, &place(from, &raw.digest))?;
    match &parsed {
        Parsed::Image(image) => blobs(from, to, image, limits).await?,
        Parsed::Index(index) => {
            for child in &index.manifests {
                let child = from.manifest(&ManifestName::Digest(child.digest)).await?;
                let what = place(from, &child.digest);
                let Parsed::Image(image) = manifest::parse(&child, &what)? else {
                    return Err(FetchError::IndexAmbiguous {
                        what: place(from, &raw.digest),
                        reason: "it holds another index".to_owned(),
                    });
                };
                blobs(from, to, &image, limits).await?;
                let name = ManifestName::Digest(child.digest);
                to.push_manifest(&name, &child.media_type, &child.bytes).await?;
                if !subjects.contains(&child.digest) {
                    subjects.push(child.digest);
                }
            }
        }
    }
    let indexed = to.push_manifest(as_name, &raw.media_type, &raw.bytes).await?;
    // What is copied may itself be about something.
    if let (SubjectIndexed::ByNobody, Some(subject)) = (indexed, parsed.subject()) {
        tags::list_referrer(to, &subject.digest, &parsed.describe(&raw)).await?;
    }
    let mut copied = Copied { digest: raw.digest, referrers: 0, legacy: 0 };
    if with == WithReferrers::Yes {
        for subject in subjects {
            attached(from, to, &subject, limits, &mut copied).await?;
        }
    }
    Ok(copied)
}

/// Copies the configuration and the layers of a manifest.
async fn blobs(
    from: &dyn Store,
    to: &dyn Store,
    image: &Image,
    limits: &CopyLimits,
) -> Result<(), FetchError> {
    for blob in image.layers.iter().chain([&image.config]) {
        one_blob(from, to, blob, limits).await?;
    }
    Ok(())
}

async fn one_blob(
    from: &dyn Store,
    to: &dyn Store,
    blob: &Descriptor,
    limits: &CopyLimits,
) -> Result<(), FetchError> {
    let bytes = from.blob(blob, limits.max_blob_bytes).await?;
    to.push_blob(&blob.media_type, &bytes).await.map(|_| ())
}

/// Copies what is attached to one manifest.
async fn attached(
    from: &dyn Store,
    to: &dyn Store,
    subject: &Digest,
    limits: &CopyLimits,
    copied: &mut Copied,
) -> Result<(), FetchError> {
    let referrers = from.referrers(subject).await?;
    if referrers.truncated {
        return Err(FetchError::Limit {
            what: format!("{} (referrers)", place(from, subject)),
            limit: u64::try_from(MAX_REFERRERS).unwrap_or(u64::MAX),
        });
    }
    for referrer in &referrers.descriptors {
        let raw: RawManifest = from.manifest(&ManifestName::Digest(referrer.digest)).await?;
        let parsed = manifest::parse(&raw, &place(from, &raw.digest))?;
        let Parsed::Image(image) = &parsed else {
            return Err(FetchError::Protocol {
                what: place(from, &raw.digest),
                reason: "a referrer that is an index is not copied".to_owned(),
            });
        };
        blobs(from, to, image, limits).await?;
        push_referrer(to, subject, &raw, &parsed).await?;
        copied.referrers = copied.referrers.saturating_add(1);
    }
    for suffix in ["sig", "att"] {
        let tag = format!("{}.{suffix}", fallback_tag(subject));
        let raw = match from.manifest(&ManifestName::Tag(tag.clone())).await {
            Ok(raw) => raw,
            Err(FetchError::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        let what = format!("{}:{tag}", from.name());
        let Parsed::Image(image) = manifest::parse(&raw, &what)? else {
            let reason = "the tag names an index".to_owned();
            return Err(FetchError::Protocol { what, reason });
        };
        for layer in &image.layers {
            one_blob(from, to, layer, limits).await?;
        }
        // The target may hold signatures of its own, so these are added and replace nothing.
        let layers: Vec<Value> =
            image.layers.iter().map(|layer| serde_json::json!(layer)).collect();
        if !layers.is_empty() {
            tags::append_layers(to, &tag, &layers).await?;
        }
        copied.legacy = copied.legacy.saturating_add(layers.len());
    }
    Ok(())
}

fn place(store: &dyn Store, digest: &Digest) -> String {
    format!("{}@{digest}", store.name())
}
