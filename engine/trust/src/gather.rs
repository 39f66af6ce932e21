//! From an image to its bytes and to the evidence about it: fetch, discover, verify, evaluate.
//!
//! The order matters: the name is resolved once, and everything after names digests, so that what
//! is verified is what is judged and what runs.

mod facts;

use std::sync::Arc;

use ambit_engine::digest::Digest;
use ambit_engine::evidence::{self, Supply};
use ambit_engine::reference::Reference;
use jiff::Timestamp;

use crate::discover::{DiscoverLimits, Discovery, Source, discover_in};
use crate::error::FetchError;
use crate::policy::{PolicyOutcome, SignatureSource, TrustPolicy};
use crate::resolve::{OlderTypes, Resolved, component_bytes, resolve};
use crate::store::Store;
use crate::stores::{Origin, Place, Stores};
use crate::verify::Roots;

/// A component with the manifest that names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// What the name stood for.
    pub resolved: Resolved,
    /// The component's bytes, as the layer's digest names them.
    pub bytes: Vec<u8>,
}

/// Whose evidence counts, and when.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The trust policies, of which those that cover the image count.
    pub policies: &'a [TrustPolicy],
    /// The trust roots that they name.
    pub roots: &'a Roots,
    /// The time of the decision.
    pub now: Timestamp,
}

/// What was found about an image.
#[derive(Clone, Debug)]
pub struct Report {
    /// What each trust policy that covers the image says.
    pub outcomes: Vec<PolicyOutcome>,
    /// What was found, with what could not be read.
    pub discovery: Discovery,
    /// The same as facts for a decision.
    pub evidence: evidence::Evidence,
}

/// Resolves an image and reads its component, of at most `max_bytes`.
///
/// # Errors
///
/// [`FetchError`].
pub async fn component(origin: &Origin, max_bytes: usize) -> Result<Fetched, FetchError> {
    let resolved = resolve(origin.store.as_ref(), &origin.name, OlderTypes::Accepted).await?;
    let bytes = component_bytes(origin.store.as_ref(), &resolved, max_bytes).await?;
    Ok(Fetched { resolved, bytes })
}

impl Fetched {
    /// Returns where the bytes came from, for a decision that looks at no evidence.
    #[must_use]
    pub fn supply(&self) -> Supply {
        self.resolved.supply()
    }
}

impl Resolved {
    /// Returns where the component comes from, for a decision that looks at no evidence.
    #[must_use]
    pub fn supply(&self) -> Supply {
        let claims = self.claims.as_ref();
        Supply {
            manifest: Some(self.manifest.digest),
            index: self.index.as_ref().map(|index| index.digest),
            claims: claims.map(|claims| evidence::Claims {
                imports: claims.imports.clone(),
                exports: claims.exports.clone(),
            }),
            evidence: evidence::Evidence::NotChecked,
        }
    }
}

/// Finds and verifies the evidence about an image.
///
/// That a source gives no answer is part of the result and never reads as "unsigned".
pub async fn evidence(
    stores: &Stores,
    origin: &Origin,
    subject: &About,
    terms: Terms<'_>,
) -> Report {
    let covering: Vec<&TrustPolicy> =
        terms.policies.iter().filter(|policy| covers(policy, origin)).collect();
    let mut problems = Vec::new();
    let others = other_sources(stores, &covering, &mut problems);
    let mut sources = vec![Source::new(origin.store.as_ref())];
    sources.extend(
        others
            .iter()
            .map(|(store, prefix)| Source { store: store.as_ref(), tag_prefix: prefix.as_str() }),
    );
    let limits = DiscoverLimits::default();
    let mut discovery = Discovery::default();
    for digest in &subject.digests {
        let found = discover_in(&sources, digest, &limits).await;
        discovery.candidates.extend(found.candidates);
        discovery.problems.extend(found.problems);
        discovery.truncated |= found.truncated;
    }
    discovery.problems.extend(problems);
    facts::report(&covering, discovery, subject, terms)
}

/// Tells whether a policy is for an image. A layout has no repository: patterns are held against
/// `layout:DIR` as it stands.
#[must_use]
pub fn covers(policy: &TrustPolicy, origin: &Origin) -> bool {
    policy.images.iter().any(|pattern| match &origin.place {
        Place::Registry(repository) => pattern.matches(repository),
        Place::Layout(name) => pattern.regex.is_match(name),
    })
}

/// Opens the repositories that authorities name beside the image's own.
fn other_sources(
    stores: &Stores,
    covering: &[&TrustPolicy],
    problems: &mut Vec<FetchError>,
) -> Vec<(Arc<dyn Store>, String)> {
    let mut seen: Vec<&SignatureSource> = Vec::new();
    let mut others = Vec::new();
    let authorities = covering.iter().flat_map(|policy| &policy.authorities);
    for source in authorities.flat_map(|authority| &authority.sources) {
        if seen.contains(&source) {
            continue;
        }
        seen.push(source);
        let repository = source.repository.parse::<Reference>();
        let opened = repository
            .map_err(|error| FetchError::Protocol {
                what: source.repository.clone(),
                reason: error.to_string(),
            })
            .and_then(|reference| stores.repository(reference.repository()));
        match opened {
            Ok(store) => others.push((store, source.tag_prefix.clone())),
            Err(error) => problems.push(error),
        }
    }
    others
}

/// What evidence has to be about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct About {
    /// The digests that count: of the manifest, and of the index if the name led to one.
    pub digests: Vec<Digest>,
    /// The digest of the component's bytes, if there are any.
    pub layer: Option<Digest>,
}

impl About {
    /// Returns what evidence about a component has to be about.
    #[must_use]
    pub fn component(resolved: &Resolved) -> Self {
        Self { digests: resolved.subjects(), layer: Some(resolved.layer.digest) }
    }
}
