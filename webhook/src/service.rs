//! From the bytes of a request to the bytes of its answer, without a socket.

use std::sync::Arc;
use std::time::Duration;

use ambit_engine::config::{AdmissionMode, IMAGE_KINDS};
use ambit_engine::decision::{Decision, Verdict};
use ambit_engine::policy::Action;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::answer;
use crate::log::{Event, Log};
use crate::metrics::{HookLabels, Metrics, ReviewLabels, RuleLabels};
use crate::mutate::mutate;
use crate::review::{Outcome, object_digest, validate};
use crate::settings::{Generation, Settings};
use crate::supply::{Budget, Supplies};
use crate::wire::{self, Answer, Request, Review, WireError, decode, encode};

/// The time for a review where the API server names none (`timeoutSeconds` is 10 by default).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time that a review has (`timeoutSeconds` is at most 30).
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// The time that is left for the way back, at most. An API server rounds what it has up to a second.
const MARGIN: Duration = Duration::from_secs(1);

/// The most that the bodies of all reviews that are read or answered may take, in bytes.
const MAX_BODIES_BYTES: usize = 256 << 20;

/// The most characters that are told of what is no review.
const MAX_TOLD: usize = 1024;

/// The mode of what is answered without a configuration, in metrics.
const NO_MODE: &str = "none";

/// Which half of the webhook is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hook {
    /// The object is judged.
    Validate,
    /// Tags in it become digests.
    Mutate,
}

impl Hook {
    /// Returns the stable word for this half.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Mutate => "mutate",
        }
    }
}

/// When a review came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// From when its time counts.
    pub started: Instant,
    /// The time of what is decided.
    pub now: Timestamp,
}

impl Arrival {
    /// Something that arrives now.
    #[must_use]
    pub fn now() -> Self {
        Self { started: Instant::now(), now: Timestamp::now() }
    }
}

/// What is sent back over HTTP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reply {
    /// The HTTP status: 200 for each answer to a review, denials included.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// What answers reviews.
pub struct Service {
    /// What they are answered by.
    pub settings: Arc<Settings>,
    /// What is known of images.
    pub supplies: Supplies,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Where each review leaves a line.
    pub log: Log,
    /// How many reviews are answered at once.
    slots: Semaphore,
    /// How many bytes of bodies there is room for.
    bodies: Arc<Semaphore>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// One line for each review.
#[derive(Debug, Serialize)]
struct Line<'a> {
    time: String,
    event: &'static str,
    hook: &'static str,
    uid: &'a str,
    operation: &'static str,
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
    user: &'a str,
    dry_run: bool,
    object: Option<String>,
    allowed: bool,
    verdict: &'static str,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    codes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digests: Option<&'a std::collections::BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pinned: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    configuration: &'a str,
    microseconds: u64,
}

impl Service {
    /// Makes a service that answers at most `at_once` reviews at a time.
    #[must_use]
    pub fn new(settings: Arc<Settings>, log: Log, at_once: usize) -> Self {
        Self {
            settings,
            supplies: Supplies::default(),
            metrics: Arc::default(),
            log,
            slots: Semaphore::new(at_once),
            bodies: Arc::new(Semaphore::new(MAX_BODIES_BYTES)),
        }
    }

    /// Waits until there is room for a body of so many bytes, which is free again once what is
    /// returned is dropped. `None` for one that is larger than all the room.
    pub async fn room(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        if usize::try_from(bytes).ok()? > MAX_BODIES_BYTES {
            return None;
        }
        Arc::clone(&self.bodies).acquire_many_owned(bytes).await.ok()
    }

    /// Answers a body. `timeout` is the query's, `3s`.
    pub async fn answer(
        &self,
        hook: Hook,
        timeout: Option<&str>,
        body: &[u8],
        Arrival { started, now }: Arrival,
    ) -> Reply {
        let generation = self.settings.kept.current();
        let mode = generation.as_ref().map(|known| known.configuration.config.webhook.mode);
        let Review { version, request } = match decode(body) {
            Ok(review) => review,
            Err(error) => return self.invalid(hook, &error, mode),
        };
        let request = Arc::new(request);
        let budget = budget(timeout, started, now);
        self.metrics.active.inc();
        let mut outcome = self.outcome(hook, &request, generation.as_ref(), budget).await;
        self.metrics.active.dec();
        let configuration =
            generation.as_ref().map(|known| known.digest.clone()).unwrap_or_default();
        if mode == Some(AdmissionMode::Audit) {
            answer::watched(&mut outcome.answer);
        }
        let mode = mode.map_or(NO_MODE, AdmissionMode::as_str);
        let spent = started.elapsed();
        self.metrics
            .seconds
            .get_or_create(&HookLabels { hook: hook.as_str() })
            .observe(spent.as_secs_f64());
        self.record(hook, &request, &outcome, (&configuration, mode), (now, spent));
        reply(version, &request.uid, &outcome.answer)
    }

    /// Answers what is no review, as far as it can be answered.
    fn invalid(&self, hook: Hook, error: &WireError, mode: Option<AdmissionMode>) -> Reply {
        self.count(hook, "other", "invalid", mode.map_or(NO_MODE, AdmissionMode::as_str));
        let text = answer::clean(&error.message, MAX_TOLD);
        let uid = error.answerable.as_ref().map_or("no uid", |(_, uid)| uid);
        let message = format!("{uid}: {text} [{}]", error.code());
        self.log.line(&Event::now("review-refused", "error", message));
        let Some((version, uid)) = &error.answerable else {
            return Reply { status: 400, body: format!("{text}\n").into_bytes() };
        };
        let mut answer = answer::malformed(error);
        if mode == Some(AdmissionMode::Audit) {
            answer::watched(&mut answer);
        }
        reply(*version, uid, &answer)
    }

    async fn outcome(
        &self,
        hook: Hook,
        request: &Arc<Request>,
        generation: Option<&Arc<Generation>>,
        budget: Budget,
    ) -> Outcome {
        let none = Outcome::without_decision;
        let Some(generation) = generation else {
            let message = "the webhook has no configuration that it can use yet";
            return none(answer::later(request, "webhook-not-ready", message, 5));
        };
        // Whoever waits in a queue misses the deadline, and takes the next down too.
        let Ok(_slot) = self.slots.try_acquire() else {
            let message = "the webhook answers as many reviews as it can";
            return none(answer::later(request, "webhook-overload", message, 1));
        };
        let work = async {
            match hook {
                Hook::Validate => {
                    validate(Arc::clone(request), generation, &self.supplies, budget).await
                }
                Hook::Mutate => {
                    mutate(Arc::clone(request), generation, &self.supplies, budget).await
                }
            }
        };
        // What asks registries ends at the deadline by itself; this is for what computes.
        tokio::time::timeout_at(budget.last, work).await.unwrap_or_else(|_| {
            let message = "judging the object took longer than the API server waits";
            let answer = answer::later(request, "review-timeout", message, 1);
            Outcome { late: true, ..none(answer) }
        })
    }

    fn count(&self, hook: Hook, kind: &str, verdict: &'static str, mode: &'static str) {
        let labels = ReviewLabels { hook: hook.as_str(), kind: known_kind(kind), verdict, mode };
        self.metrics.reviews.get_or_create(&labels).inc();
    }

    fn record(
        &self,
        hook: Hook,
        request: &Request,
        outcome: &Outcome,
        (configuration, mode): (&str, &'static str),
        (now, spent): (Timestamp, Duration),
    ) {
        let answer = &outcome.answer;
        let decision = outcome.decision.as_ref();
        let verdict = match (decision, &answer.denied) {
            (Some(decision), _) => decision.verdict.as_str(),
            (None, Some(_)) => Verdict::Error.as_str(),
            (None, None) if answer.annotations.contains_key("verdict") => Verdict::Error.as_str(),
            (None, None) if answer.annotations.contains_key("skipped") => "skip",
            (None, None) => Verdict::Allow.as_str(),
        };
        self.count(hook, &request.kind.kind, verdict, mode);
        if outcome.late {
            self.metrics.late.inc();
        }
        let mut codes = Vec::new();
        if let Some(decision) = decision {
            self.count_rules(decision);
            codes.extend(decision.errors.iter().map(|error| error.code.as_str()));
            codes.extend(decision.with_action(Action::Deny).map(|f| f.code.as_str()));
        } else if let Some(word) = answer.annotations.get("codes") {
            codes.push(word);
        }
        codes.sort_unstable();
        codes.dedup();
        self.log.line(&Line {
            time: now.to_string(),
            event: "review",
            hook: hook.as_str(),
            uid: &request.uid,
            operation: request.operation.as_str(),
            kind: &request.kind.kind,
            subresource: &request.sub_resource,
            namespace: &request.namespace,
            name: &request.name,
            user: &request.user_info.username,
            dry_run: request.dry_run.unwrap_or_default(),
            object: object_digest(request).map(|digest| digest.to_string()),
            allowed: answer.denied.is_none(),
            verdict,
            mode,
            skipped: answer.annotations.get("skipped").map(String::as_str),
            codes,
            decision: decision.map(|decision| decision.decision_id.to_string()),
            digests: decision.map(|decision| &decision.inputs),
            pinned: answer.patch.iter().map(|replace| replace.value.as_str()).collect(),
            message: answer
                .denied
                .as_ref()
                .map(|status| &status.message)
                .or_else(|| answer.annotations.get(answer::MESSAGE))
                .map(String::as_str),
            configuration,
            microseconds: u64::try_from(spent.as_micros()).unwrap_or(u64::MAX),
        });
    }

    fn count_rules(&self, decision: &Decision) {
        for (action, word) in [(Action::Deny, "deny"), (Action::Warn, "warn")] {
            for finding in decision.with_action(action) {
                let labels = RuleLabels { rule: finding.rule.clone(), action: word };
                self.metrics.rules.get_or_create(&labels).inc();
            }
        }
    }
}

fn reply(version: wire::Version, uid: &str, answer: &Answer) -> Reply {
    match encode(version, uid, answer) {
        Ok(body) => Reply { status: 200, body },
        Err(error) => Reply { status: 500, body: format!("{error}\n").into_bytes() },
    }
}

/// Returns the time that a review has: what the API server names, less a margin.
fn budget(timeout: Option<&str>, started: Instant, now: Timestamp) -> Budget {
    let given = timeout.and_then(duration).unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
    let margin = MARGIN.min(half(given));
    let whole = given.saturating_sub(margin);
    let deadline = started.checked_add(whole).unwrap_or(started);
    let last = deadline.checked_add(half(margin)).unwrap_or(deadline);
    Budget { deadline, last, whole, now }
}

fn half(time: Duration) -> Duration {
    time.checked_div(2).unwrap_or_default()
}

/// Reads a duration as Go writes it, as far as an API server uses it: `10s`, `1500ms`, `1m30s`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at_checked(digits)?;
        let number: u64 = number.parse().ok()?;
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(unit_end)?;
        let part = match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            _ => return None,
        };
        total = total.checked_add(part)?;
        rest = next;
    }
    (!total.is_zero()).then_some(total)
}

/// Kinds that are counted by their own name; whoever may make kinds names the others.
fn known_kind(kind: &str) -> &'static str {
    IMAGE_KINDS.into_iter().find(|known| *known == kind).unwrap_or("other")
}

#[cfg(test)]
mod tests;
