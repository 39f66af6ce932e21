//! What Prometheus reads (OpenMetrics text).

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::supply::Supplies;

/// What a review was, and what came of it.
#[derive(Clone, Debug, Eq, EncodeLabelSet, Hash, PartialEq)]
pub struct ReviewLabels {
    /// `validate` or `mutate`.
    pub hook: &'static str,
    /// The kind; `other` for one that carries no code, since whoever may make kinds names them.
    pub kind: &'static str,
    /// `allow`, `deny`, `error`, `skip` or `invalid`.
    pub verdict: &'static str,
    /// `enforce`, `warn` or `audit`.
    pub mode: &'static str,
}

/// A rule that denied or warned.
#[derive(Clone, Debug, Eq, EncodeLabelSet, Hash, PartialEq)]
pub struct RuleLabels {
    /// Pack and rule.
    pub rule: String,
    /// `deny` or `warn`.
    pub action: &'static str,
}

/// A layer of the cache.
#[derive(Clone, Debug, Eq, EncodeLabelSet, Hash, PartialEq)]
struct LayerLabels {
    layer: &'static str,
}

/// Which half of the webhook.
#[derive(Clone, Debug, Eq, EncodeLabelSet, Hash, PartialEq)]
pub struct HookLabels {
    /// `validate` or `mutate`.
    pub hook: &'static str,
}

/// Why something was turned away before it was a review.
#[derive(Clone, Debug, Eq, EncodeLabelSet, Hash, PartialEq)]
pub struct RejectLabels {
    /// The reason, one of a few words.
    pub reason: &'static str,
}

/// The metrics of this process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Reviews by what they were and what came of them.
    pub reviews: Family<ReviewLabels, Counter>,
    /// Findings by rule.
    pub rules: Family<RuleLabels, Counter>,
    /// Seconds from the head of a request to the answer.
    pub seconds: Family<HookLabels, Histogram>,
    /// Requests that were turned away before they were a review.
    pub rejected: Family<RejectLabels, Counter>,
    /// Reviews that ran out of time.
    pub late: Counter,
    /// Reviews that are being answered.
    pub active: Gauge,
    /// Open connections.
    pub connections: Gauge,
    asked: Family<LayerLabels, Counter<u64, AtomicU64>>,
    begun: Family<LayerLabels, Counter<u64, AtomicU64>>,
    weight: Family<LayerLabels, Gauge<i64, AtomicI64>>,
    /// How many configurations there were.
    pub generation: Gauge,
    /// 1 while what is in the files now can't be used.
    pub stale: Gauge,
    /// When the serving certificate expires, in seconds since 1970.
    pub certificate: Gauge,
    /// How many serving certificates there were.
    pub certificates: Gauge,
    /// Lines of the log that were lost.
    pub lost: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        // 0.25 ms to 33 s.
        let seconds = || Histogram::new(exponential_buckets(0.000_25, 2.0, 18));
        let mut made = Self {
            registry: Registry::with_prefix("ambit"),
            reviews: Family::default(),
            rules: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            rejected: Family::default(),
            late: Counter::default(),
            active: Gauge::default(),
            connections: Gauge::default(),
            asked: Family::default(),
            begun: Family::default(),
            weight: Family::default(),
            generation: Gauge::default(),
            stale: Gauge::default(),
            certificate: Gauge::default(),
            certificates: Gauge::default(),
            lost: Gauge::default(),
        };
        let all = &mut made.registry;
        all.register("reviews", "Reviews, by hook, kind, verdict and mode", made.reviews.clone());
        all.register("findings", "Findings, by rule and action", made.rules.clone());
        all.register("review_seconds", "Seconds from a review to its answer", made.seconds.clone());
        all.register(
            "rejected",
            "Requests that were turned away, by reason",
            made.rejected.clone(),
        );
        all.register(
            "deadline_misses",
            "Reviews in which an answer wasn't there in time",
            made.late.clone(),
        );
        all.register("reviews_active", "Reviews that are being answered", made.active.clone());
        all.register("connections", "Open connections", made.connections.clone());
        all.register("cache_asked", "Questions to a layer of the cache", made.asked.clone());
        all.register(
            "cache_begun",
            "Questions for which registries were asked",
            made.begun.clone(),
        );
        all.register(
            "cache_bytes",
            "What a layer of the cache weighs, by estimate",
            made.weight.clone(),
        );
        all.register(
            "configuration_generation",
            "How many configurations there were",
            made.generation.clone(),
        );
        all.register(
            "configuration_stale",
            "1 while the files hold what can't be used",
            made.stale.clone(),
        );
        all.register(
            "certificate_expiry_seconds",
            "When the serving certificate expires, in seconds since 1970",
            made.certificate.clone(),
        );
        all.register(
            "certificate_generation",
            "How many serving certificates there were",
            made.certificates.clone(),
        );
        all.register("log_lines_lost", "Lines of the log that found no room", made.lost.clone());
        made
    }
}

impl Metrics {
    /// Writes everything as text.
    #[must_use]
    pub fn text(&self, supplies: &Supplies) -> String {
        for (layer, counts, weight) in supplies.counts() {
            let labels = LayerLabels { layer };
            let set = |family: &Family<LayerLabels, Counter<u64, AtomicU64>>, now: u64| {
                let counter = family.get_or_create(&labels);
                counter.inner().store(now, Ordering::Relaxed);
            };
            set(&self.asked, counts.asked.load(Ordering::Relaxed));
            set(&self.begun, counts.begun.load(Ordering::Relaxed));
            let weight = i64::try_from(weight).unwrap_or(i64::MAX);
            self.weight.get_or_create(&labels).set(weight);
        }
        let mut text = String::new();
        // Writing to a String has no errors.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
