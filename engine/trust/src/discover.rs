//! Finds the signatures and attestations of a digest, without believing any of them.
//!
//! Two places are read and merged: referrers (cosign 3) and the tags `sha256-<hex>.sig` and `.att`
//! (cosign 1 and 2). A tag that isn't there is an answer; every other trouble is returned beside
//! what was found, so that an outage never reads as "unsigned".

use std::collections::{BTreeMap, BTreeSet};

use ambit_engine::digest::Digest;

use crate::candidate::{Candidate, Content, LegacyLayer};
use crate::error::FetchError;
use crate::layout::fallback_tag;
use crate::manifest::{self, Image, Parsed};
use crate::oci::{
    Descriptor, MAX_EVIDENCE_BYTES, MAX_MANIFEST_BYTES, MAX_REFERRERS, ManifestName, RawManifest,
    media,
};
use crate::overlap::{Job, overlapped};
use crate::store::{Referrers, Store};

/// Annotations of the layers of legacy manifests (cosign's `SIGNATURE_SPEC.md`).
pub mod annotation {
    /// The signature over the layer, base64.
    pub const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
    /// The certificate, PEM.
    pub const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
    /// The certificate's chain, PEM.
    pub const CHAIN: &str = "dev.sigstore.cosign/chain";
    /// The log entry with its promise, JSON.
    pub const BUNDLE: &str = "dev.sigstore.cosign/bundle";
    /// The RFC 3161 timestamp, JSON.
    pub const TIMESTAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";
}

/// How much is looked at for one subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DiscoverLimits {
    /// The most referrers, over all sources.
    pub max_referrers: usize,
    /// The most layers of one tag.
    pub max_layers: usize,
    /// The most bytes of one signature or attestation.
    pub max_blob_bytes: usize,
    /// The most bytes of all that is read.
    pub max_total_bytes: u64,
    /// How many reads there are at once.
    pub at_once: usize,
}

impl Default for DiscoverLimits {
    fn default() -> Self {
        Self {
            max_referrers: MAX_REFERRERS,
            max_layers: 64,
            max_blob_bytes: MAX_EVIDENCE_BYTES,
            max_total_bytes: 64 << 20,
            at_once: 8,
        }
    }
}

/// A repository that may hold signatures.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The repository.
    pub store: &'a dyn Store,
    /// What stands before `sha256-` in its tags.
    pub tag_prefix: &'a str,
}

impl<'a> Source<'a> {
    /// Names a repository whose tags have no prefix.
    #[must_use]
    pub fn new(store: &'a dyn Store) -> Self {
        Self { store, tag_prefix: "" }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Discovery {
    /// The candidates: source by source, and of each the referrers, the `.sig` tag, the `.att` tag,
    /// each in the order of the store. The same evidence is there once.
    pub candidates: Vec<Candidate>,
    /// What could not be read. With any of these, more may be there than was found.
    pub problems: Vec<FetchError>,
    /// Whether there is more than was looked at.
    pub truncated: bool,
}

/// Finds the candidates about `subject` in the repository of the image.
pub async fn discover(store: &dyn Store, subject: &Digest, limits: &DiscoverLimits) -> Discovery {
    discover_in(&[Source::new(store)], subject, limits).await
}

/// Finds the candidates about `subject` in several repositories.
pub async fn discover_in(
    sources: &[Source<'_>],
    subject: &Digest,
    limits: &DiscoverLimits,
) -> Discovery {
    let mut search = Search {
        limits,
        left: limits.max_total_bytes,
        out_of_budget: false,
        found: Discovery::default(),
    };
    let listings = search.list(sources, subject).await;
    let mut wanted = Vec::new();
    for listing in listings {
        search.referrers(&listing, &mut wanted).await;
        search.tag(&listing, Kind::Signature, &mut wanted);
        search.tag(&listing, Kind::Attestation, &mut wanted);
    }
    search.fetch(wanted).await;
    search.found
}

/// The two legacy tags.
#[derive(Clone, Copy)]
enum Kind {
    Signature,
    Attestation,
}

impl Kind {
    fn suffix(self) -> &'static str {
        match self {
            Self::Signature => "sig",
            Self::Attestation => "att",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Signature => media::SIMPLE_SIGNING,
            Self::Attestation => media::DSSE,
        }
    }
}

/// What one source says is there.
struct Listing<'a> {
    source: Source<'a>,
    referrers: Vec<Descriptor>,
    signatures: Option<(String, RawManifest)>,
    attestations: Option<(String, RawManifest)>,
}

enum Listed {
    Referrers(Result<Referrers, FetchError>),
    Tag(String, Result<RawManifest, FetchError>),
}

/// A candidate before its blob is read.
enum Wanted<'a> {
    Blob { store: &'a dyn Store, place: String, blob: Descriptor, form: Form },
    Known(Candidate),
}

enum Form {
    Bundle,
    Legacy(Kind, BTreeMap<String, String>),
}

struct Search<'l> {
    limits: &'l DiscoverLimits,
    left: u64,
    out_of_budget: bool,
    found: Discovery,
}

impl Search<'_> {
    /// Asks every source for its referrers and its two tags.
    async fn list<'a>(&mut self, sources: &[Source<'a>], subject: &Digest) -> Vec<Listing<'a>> {
        let mut jobs: Vec<Job<'_, Listed>> = Vec::new();
        for source in sources {
            let store = source.store;
            jobs.push(Box::pin(async move { Listed::Referrers(store.referrers(subject).await) }));
            for kind in [Kind::Signature, Kind::Attestation] {
                let stem = fallback_tag(subject);
                let tag = format!("{}{stem}.{}", source.tag_prefix, kind.suffix());
                jobs.push(Box::pin(async move {
                    let answer = store.manifest(&ManifestName::Tag(tag.clone())).await;
                    Listed::Tag(tag, answer)
                }));
            }
        }
        let mut answers = overlapped(jobs, self.limits.at_once).await.into_iter();
        let mut seen: BTreeSet<Digest> = BTreeSet::new();
        let mut listings = Vec::new();
        for source in sources {
            let mut listing = Listing {
                source: *source,
                referrers: Vec::new(),
                signatures: None,
                attestations: None,
            };
            if let Some(Listed::Referrers(answer)) = answers.next() {
                match answer {
                    Ok(referrers) => {
                        self.found.truncated |= referrers.truncated;
                        for descriptor in referrers.descriptors {
                            if seen.contains(&descriptor.digest) {
                                continue;
                            }
                            if seen.len() >= self.limits.max_referrers {
                                self.found.truncated = true;
                                break;
                            }
                            seen.insert(descriptor.digest);
                            listing.referrers.push(descriptor);
                        }
                    }
                    Err(error) => self.found.problems.push(error),
                }
            }
            for slot in [&mut listing.signatures, &mut listing.attestations] {
                if let Some(Listed::Tag(tag, answer)) = answers.next() {
                    match answer {
                        Ok(raw) => *slot = Some((tag, raw)),
                        Err(FetchError::NotFound { .. }) => {}
                        Err(error) => self.found.problems.push(error),
                    }
                }
            }
            listings.push(listing);
        }
        listings
    }

    /// Takes `bytes` from the budget, or says once that it is used up.
    fn afford(&mut self, bytes: u64) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.found.truncated = true;
                if !self.out_of_budget {
                    self.out_of_budget = true;
                    self.found.problems.push(FetchError::Limit {
                        what: "signatures and attestations (bytes in all)".to_owned(),
                        limit: self.limits.max_total_bytes,
                    });
                }
                false
            }
        }
    }

    /// Reads the manifests of referrers, and judges each by what it says itself: descriptors in
    /// fallback indexes are known to name wrong types.
    async fn referrers<'a>(&mut self, listing: &Listing<'a>, wanted: &mut Vec<Wanted<'a>>) {
        let store = listing.source.store;
        let mut jobs: Vec<Job<'_, Result<RawManifest, FetchError>>> = Vec::new();
        let mut descriptors = Vec::new();
        for descriptor in &listing.referrers {
            let is_manifest =
                matches!(descriptor.media_type.as_str(), "" | media::MANIFEST | media::INDEX);
            if !is_manifest {
                continue;
            }
            let limit = u64::try_from(MAX_MANIFEST_BYTES).unwrap_or(u64::MAX);
            if descriptor.size > limit {
                let what = format!("{}@{} (bytes)", store.name(), descriptor.digest);
                self.found.problems.push(FetchError::Limit { what, limit });
                continue;
            }
            if !self.afford(descriptor.size) {
                break;
            }
            descriptors.push(descriptor);
            jobs.push(Box::pin(async move {
                store.manifest(&ManifestName::Digest(descriptor.digest)).await
            }));
        }
        let answers = overlapped(jobs, self.limits.at_once).await;
        for (descriptor, answer) in descriptors.into_iter().zip(answers) {
            let place = descriptor.digest.to_string();
            let what = format!("{}@{place}", store.name());
            let raw = match answer {
                Ok(raw) if u64::try_from(raw.bytes.len()).ok() == Some(descriptor.size) => raw,
                Ok(raw) => {
                    let reason =
                        format!("it has {} bytes, not {}", raw.bytes.len(), descriptor.size);
                    self.found.problems.push(FetchError::Protocol { what, reason });
                    continue;
                }
                Err(error) => {
                    self.found.problems.push(error);
                    continue;
                }
            };
            match manifest::parse(&raw, &what) {
                Ok(Parsed::Image(image)) => {
                    if let Some(one) = bundle(store, place, &image) {
                        wanted.push(one);
                    }
                }
                // An index is no signature, whatever it calls itself.
                Ok(Parsed::Index(_)) => {}
                Err(error) => {
                    if descriptor.artifact_type.as_deref().is_some_and(is_bundle_type) {
                        wanted.push(unreadable(place, error.to_string()));
                    }
                }
            }
        }
    }

    /// Takes the layers of a legacy tag.
    fn tag<'a>(&mut self, listing: &Listing<'a>, kind: Kind, wanted: &mut Vec<Wanted<'a>>) {
        let store = listing.source.store;
        let tagged = match kind {
            Kind::Signature => &listing.signatures,
            Kind::Attestation => &listing.attestations,
        };
        let Some((tag, raw)) = tagged else { return };
        let what = format!("{}:{tag}", store.name());
        if !self.afford(u64::try_from(raw.bytes.len()).unwrap_or(u64::MAX)) {
            return;
        }
        let image = match manifest::parse(raw, &what) {
            Ok(Parsed::Image(image)) => image,
            Ok(Parsed::Index(_)) => {
                return wanted.push(unreadable(tag.clone(), "the tag names an index".to_owned()));
            }
            Err(error) => return wanted.push(unreadable(tag.clone(), error.to_string())),
        };
        self.found.truncated |= image.layers.len() > self.limits.max_layers;
        for (number, layer) in image.layers.into_iter().take(self.limits.max_layers).enumerate() {
            let place = format!("{tag} layer {}", number.saturating_add(1));
            if layer.media_type == kind.media_type() {
                let form = Form::Legacy(kind, layer.annotations.clone());
                wanted.push(Wanted::Blob { store, place, blob: layer, form });
            } else {
                let reason = format!("the layer is of type `{}`", shown(&layer.media_type));
                wanted.push(unreadable(place, reason));
            }
        }
    }

    /// Reads the blobs and puts the candidates together.
    async fn fetch(&mut self, wanted: Vec<Wanted<'_>>) {
        let max_bytes = self.limits.max_blob_bytes;
        let mut jobs: Vec<Job<'_, Result<Candidate, FetchError>>> = Vec::new();
        for one in wanted {
            match one {
                Wanted::Known(candidate) => jobs.push(Box::pin(async move { Ok(candidate) })),
                Wanted::Blob { store, place, blob, form } => {
                    // One that is too large for itself must not use up what the others may take.
                    let fits = usize::try_from(blob.size).is_ok_and(|size| size <= max_bytes);
                    if fits && !self.afford(blob.size) {
                        continue;
                    }
                    jobs.push(Box::pin(async move {
                        let bytes = store.blob(&blob, max_bytes).await?;
                        Ok(Candidate { place, content: form.content(bytes) })
                    }));
                }
            }
        }
        let mut seen: BTreeSet<Digest> = BTreeSet::new();
        for answer in overlapped(jobs, self.limits.at_once).await {
            match answer {
                Ok(candidate) => {
                    let known = !matches!(candidate.content, Content::Unreadable(_))
                        && !seen.insert(candidate.evidence_digest());
                    if !known {
                        self.found.candidates.push(candidate);
                    }
                }
                Err(error) => self.found.problems.push(error),
            }
        }
    }
}

impl Form {
    fn content(self, payload: Vec<u8>) -> Content {
        match self {
            Self::Bundle => Content::Bundle(payload),
            Self::Legacy(kind, mut annotations) => {
                let layer = LegacyLayer {
                    payload,
                    signature: annotations.remove(annotation::SIGNATURE).unwrap_or_default(),
                    certificate: annotations.remove(annotation::CERTIFICATE),
                    chain: annotations.remove(annotation::CHAIN),
                    bundle: annotations.remove(annotation::BUNDLE),
                    timestamp: annotations.remove(annotation::TIMESTAMP),
                };
                match kind {
                    Kind::Signature => Content::LegacySignature(layer),
                    Kind::Attestation => Content::LegacyAttestation(layer),
                }
            }
        }
    }
}

/// Tells whether a manifest presents itself as a bundle, and what is to be read of it.
fn bundle<'a>(store: &'a dyn Store, place: String, image: &Image) -> Option<Wanted<'a>> {
    let layer = image.layers.first();
    let says_so = image.artifact_type.as_deref().is_some_and(is_bundle_type)
        || is_bundle_type(&image.config.media_type)
        || layer.is_some_and(|layer| is_bundle_type(&layer.media_type));
    if !says_so {
        return None;
    }
    Some(match image.layers.as_slice() {
        [layer] if is_bundle_type(&layer.media_type) => {
            Wanted::Blob { store, place, blob: layer.clone(), form: Form::Bundle }
        }
        [layer] => unreadable(
            place,
            format!(
                "it is said to be a bundle, with a layer of type `{}`",
                shown(&layer.media_type)
            ),
        ),
        layers => unreadable(
            place,
            format!("it is said to be a bundle, with {} layers and not one", layers.len()),
        ),
    })
}

/// Tells whether a media type is one of sigstore's bundle, of any version: which versions count is
/// for verification to say.
fn is_bundle_type(media_type: &str) -> bool {
    media_type
        .strip_prefix("application/vnd.dev.sigstore.bundle")
        .is_some_and(|rest| rest.starts_with(".v") || rest.starts_with("+json"))
}

fn unreadable<'a>(place: String, reason: String) -> Wanted<'a> {
    Wanted::Known(Candidate { place, content: Content::Unreadable(reason) })
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}
