//! From images to what a decision needs, within the time of a review.
//!
//! Three layers, each keyed by what its answer rests on: a name stands for a manifest, a layer's
//! digest for what its bytes say, digests under a trust configuration for evidence. A decision isn't
//! kept. Registries are limited and left alone one by one by the client below; nothing here waits
//! for two at once.
//!
//! # Invariants
//!
//! - What a name stands for is asked once for each component, and everything after names digests.
//! - That a source gave no answer is never kept, and never reads as "unsigned" or "absent".
//! - A review that runs out of time leaves the work running, so that the next one is answered.

use std::sync::Arc;
use std::time::Duration;

use ambit_engine::capability::CapabilitySet;
use ambit_engine::component::{Component, ReadOptions};
use ambit_engine::digest::Digest;
use ambit_engine::evidence::{Evidence, Supply, Unanswered};
use ambit_engine::reference::ImageSource;
use ambit_trust::error::FetchError;
use ambit_trust::gather::{self, About};
use ambit_trust::oci::ManifestName;
use ambit_trust::resolve::{OlderTypes, Resolved, component_bytes, resolve};
use ambit_trust::stores::Origin;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::layer::{Counts, Keep, Layer, Lost, Made};
use crate::settings::Generation;

/// What the answers to names may weigh, in bytes.
const MAX_NAMES: u64 = 32 << 20;

/// What is known of components may weigh this much, in bytes, by estimate.
const MAX_COMPONENTS: u64 = 128 << 20;

/// What evidence may weigh, in bytes, by estimate.
const MAX_EVIDENCE: u64 = 32 << 20;

/// How long evidence that doesn't satisfy is taken for what it was: somebody may be signing.
const UNSATISFIED: Duration = Duration::from_secs(5);

/// A component, read and understood.
#[derive(Debug)]
pub struct Analysed {
    /// What the binary says.
    pub component: Component,
    /// What follows from it.
    pub capabilities: CapabilitySet,
}

/// What is known of one component.
#[derive(Clone, Debug)]
pub struct Found {
    /// The component.
    pub analysed: Arc<Analysed>,
    /// Where it came from, and what vouches for it.
    pub supply: Supply,
}

/// Why a component can't be had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missing {
    /// The reason, as decisions tell it.
    pub reason: String,
    /// How many seconds to wait before trying again, where that may help.
    pub retry_after_seconds: Option<u32>,
    /// Whether it is because the time ran out.
    pub late: bool,
}

impl Missing {
    /// Something that another try won't change.
    #[must_use]
    pub fn for_good(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), retry_after_seconds: None, late: false }
    }
}

impl From<FetchError> for Missing {
    fn from(error: FetchError) -> Self {
        Self {
            reason: format!("{error} [{}]", error.code()),
            retry_after_seconds: retry(&error),
            late: error.code() == LATE,
        }
    }
}

/// How many seconds to wait, where another try may help.
fn retry(error: &FetchError) -> Option<u32> {
    if let FetchError::RateLimited { retry_after, .. } = error {
        let seconds = retry_after.map_or(10, |time| time.as_secs());
        return Some(u32::try_from(seconds).unwrap_or(60).clamp(1, 60));
    }
    PASSING.contains(&error.code()).then_some(RETRY_SECONDS)
}

/// The code of a question that got no answer in time.
const LATE: &str = "registry-timeout";

/// How long to wait before another try, in seconds, where nobody says.
const RETRY_SECONDS: u32 = 5;

/// Codes of questions without an answer for which another try may help.
const PASSING: [&str; 5] = [
    "registry-conflict",
    "registry-rate-limited",
    "registry-timeout",
    "registry-unavailable",
    "storage-failed",
];

/// Tells whether evidence may be known on another try, and after how many seconds.
#[must_use]
pub fn evidence_retry(evidence: &Evidence) -> Option<u32> {
    match evidence {
        Evidence::Unknown(unanswered) => unanswered
            .iter()
            .any(|one| PASSING.contains(&one.code.as_str()))
            .then_some(RETRY_SECONDS),
        Evidence::Checked(_) | Evidence::NotChecked => None,
    }
}

/// Tells whether evidence isn't known because the time ran out.
#[must_use]
pub fn evidence_late(evidence: &Evidence) -> bool {
    matches!(evidence, Evidence::Unknown(unanswered) if unanswered.iter().any(|one| one.code == LATE))
}

/// The time that a review has.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// When nobody is waited for any more, and what there is is judged.
    pub deadline: Instant,
    /// When the answer has to be on its way.
    pub last: Instant,
    /// How long it was in all, for messages.
    pub whole: Duration,
    /// The time of the decision.
    pub now: Timestamp,
}

type NameKey = (Digest, String, String);
type EvidenceKey = (Digest, Digest, String, Vec<Digest>);

/// The way from images to components and evidence. Clones share everything.
#[derive(Clone)]
pub struct Supplies {
    names: Layer<NameKey, Arc<Resolved>>,
    components: Layer<(Digest, Digest), Result<Arc<Analysed>, Missing>>,
    evidence: Layer<EvidenceKey, Arc<Evidence>>,
}

impl Default for Supplies {
    fn default() -> Self {
        Self {
            names: Layer::new(MAX_NAMES),
            components: Layer::new(MAX_COMPONENTS),
            evidence: Layer::new(MAX_EVIDENCE),
        }
    }
}

fn weight(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Supplies {
    /// Finds what a component is and what vouches for it, within the time that there is.
    ///
    /// # Errors
    ///
    /// [`Missing`], with whether another try may help.
    pub async fn find(
        &self,
        generation: &Arc<Generation>,
        source: &ImageSource,
        budget: Budget,
    ) -> Result<Found, Missing> {
        let origin = origin(generation, source)?;
        let late =
            || FetchError::Timeout { what: ShownName(&origin).to_string(), after: budget.whole };
        let resolved = self.resolved(generation, &origin);
        let resolved = match timeout_at(budget.deadline, resolved).await {
            Ok(resolved) => resolved?,
            Err(_) => return Err(late().into()),
        };
        let (analysed, evidence) = tokio::join!(
            timeout_at(budget.deadline, self.analysed(generation, &origin, &resolved)),
            timeout_at(budget.deadline, self.vouched(generation, &origin, &resolved, budget.now)),
        );
        let analysed = analysed.unwrap_or_else(|_| Err(late().into()))?;
        let mut supply = resolved.supply();
        supply.evidence = match evidence {
            Ok(evidence) => (*evidence?).clone(),
            // The bytes are there, and are judged; what vouches for them isn't known in time.
            Err(_) => Evidence::Unknown(vec![Unanswered {
                code: late().code().to_owned(),
                message: late().to_string(),
            }]),
        };
        Ok(Found { analysed, supply })
    }

    /// Finds the digest that a reference stands for, within the time that there is.
    ///
    /// # Errors
    ///
    /// [`Missing`], with whether another try may help.
    pub async fn digest(
        &self,
        generation: &Arc<Generation>,
        source: &ImageSource,
        budget: Budget,
    ) -> Result<Digest, Missing> {
        let origin = origin(generation, source)?;
        let what = format!("{}", ShownName(&origin));
        match timeout_at(budget.deadline, self.resolved(generation, &origin)).await {
            Ok(resolved) => Ok(resolved?.named().digest),
            Err(_) => Err(FetchError::Timeout { what, after: budget.whole }.into()),
        }
    }

    async fn resolved(
        &self,
        generation: &Arc<Generation>,
        origin: &Origin,
    ) -> Result<Arc<Resolved>, Missing> {
        let keep = match origin.name {
            ManifestName::Digest(_) => Keep::Forever,
            ManifestName::Tag(_) => {
                Keep::For(seconds(generation.configuration.config.webhook.tag_seconds))
            }
        };
        let key = (generation.registry_key, origin.place.to_string(), origin.name.to_string());
        let from = origin.clone();
        let work = async move {
            let name = &from.name;
            let resolved = resolve(from.store.as_ref(), name, OlderTypes::Accepted).await?;
            let bytes = resolved.index.iter().chain([&resolved.manifest]);
            let size = bytes.map(|raw| raw.bytes.len()).fold(2048, usize::saturating_add);
            Ok::<_, FetchError>(Made { value: Arc::new(resolved), keep, weight: weight(size) })
        };
        self.names.get(key, work).await.map_err(|lost| lost_error(lost, origin))
    }

    async fn analysed(
        &self,
        generation: &Arc<Generation>,
        origin: &Origin,
        resolved: &Arc<Resolved>,
    ) -> Result<Arc<Analysed>, Missing> {
        let key = (generation.analysis_key, resolved.layer.digest);
        let (from, resolved, generation) =
            (origin.clone(), Arc::clone(resolved), Arc::clone(generation));
        let work = async move {
            let max = generation.configuration.limits.max_component_bytes;
            let bytes = component_bytes(from.store.as_ref(), &resolved, max).await?;
            let read = tokio::task::spawn_blocking(move || {
                let known = &generation.configuration;
                let analysed = analyse(&bytes, known);
                // What is kept of a binary is its types and names, never its code.
                let size = bytes.len().wrapping_shr(3).saturating_add(4096);
                Made { value: analysed, keep: Keep::Forever, weight: weight(size) }
            });
            read.await.map_err(|_| FetchError::Io {
                path: from.place.to_string(),
                reason: "reading the component ended without a result".to_owned(),
            })
        };
        self.components.get(key, work).await.map_err(|lost| lost_error(lost, origin))?
    }

    async fn vouched(
        &self,
        generation: &Arc<Generation>,
        origin: &Origin,
        resolved: &Arc<Resolved>,
        now: Timestamp,
    ) -> Result<Arc<Evidence>, Missing> {
        let about = About::component(resolved);
        let key = (
            generation.trust_key,
            generation.registry_key,
            origin.place.to_string(),
            about.digests.clone(),
        );
        let (from, generation) = (origin.clone(), Arc::clone(generation));
        let work = async move {
            let terms = generation.trusted.terms(now);
            let report = gather::evidence(&generation.stores, &from, &about, terms).await;
            let satisfied = match &report.evidence {
                Evidence::Unknown(_) => return Err(Arc::new(report.evidence)),
                Evidence::NotChecked => false,
                Evidence::Checked(checked) => checked.trust.iter().all(|policy| policy.satisfied),
            };
            let longest = seconds(generation.configuration.config.webhook.evidence_seconds);
            let keep = if satisfied { longest } else { longest.min(UNSATISFIED) };
            let size = match &report.evidence {
                Evidence::Checked(checked) => size_of_evidence(checked),
                Evidence::Unknown(_) | Evidence::NotChecked => 0,
            };
            Ok(Made {
                value: Arc::new(report.evidence),
                keep: Keep::For(keep),
                weight: weight(size.saturating_add(1024)),
            })
        };
        match self.evidence.get(key, work).await {
            Ok(evidence) | Err(Lost::Failed(evidence)) => Ok(evidence),
            Err(Lost::Gone) => Err(lost_error(Lost::Gone, origin)),
        }
    }

    /// Returns how often each layer was asked, with its name and about how many bytes it holds.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, &Counts, u64); 3] {
        [
            ("names", self.names.counts(), self.names.weight()),
            ("components", self.components.counts(), self.components.weight()),
            ("evidence", self.evidence.counts(), self.evidence.weight()),
        ]
    }
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(u64::from(count))
}

fn size_of_evidence(checked: &ambit_engine::evidence::Checked) -> usize {
    let predicates = checked.attestations.iter().filter_map(|found| found.predicate.as_ref());
    let predicates = predicates.map(|predicate| predicate.to_string().len());
    let rest = checked.signatures.len().saturating_add(checked.attestations.len());
    predicates.fold(rest.saturating_mul(1024), usize::saturating_add)
}

fn analyse(bytes: &[u8], known: &ambit_setup::Configuration) -> Result<Arc<Analysed>, Missing> {
    let component = Component::read_with(bytes, &known.limits, ReadOptions::default())
        .map_err(|error| Missing::for_good(format!("{error} [{}]", error.code())))?;
    let capabilities = CapabilitySet::of(&component, &known.catalogue);
    Ok(Arc::new(Analysed { component, capabilities }))
}

fn origin(generation: &Generation, source: &ImageSource) -> Result<Origin, Missing> {
    match source {
        ImageSource::Oci(reference) => Ok(generation.stores.reference(reference)?),
        ImageSource::File(_) | ImageSource::Layout { .. } => {
            Err(Missing::for_good("it is on a disk, and no disk of the cluster is read"))
        }
        ImageSource::Artifact(name) => {
            Err(Missing::for_good(format!("Artifact `{name}` is not in this input")))
        }
        ImageSource::Invalid(_) => Err(Missing::for_good("its image is no reference")),
    }
}

fn lost_error(lost: Lost<FetchError>, origin: &Origin) -> Missing {
    match lost {
        Lost::Failed(error) => error.into(),
        Lost::Gone => Missing {
            reason: format!("asking for `{}` ended without a result", ShownName(origin)),
            retry_after_seconds: Some(1),
            late: false,
        },
    }
}

/// An image as messages name it.
struct ShownName<'a>(&'a Origin);

impl std::fmt::Display for ShownName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.name {
            ManifestName::Tag(tag) => write!(f, "{}:{tag}", self.0.place),
            ManifestName::Digest(digest) => write!(f, "{}@{digest}", self.0.place),
        }
    }
}
