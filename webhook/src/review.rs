//! From a review to its answer: what is it about, what is new in it, what is known of that, and what
//! follows.
//!
//! The object in the review is the only truth. An annotation that says that something was verified,
//! or what the mutating half wrote a moment ago, counts for nothing.

use std::sync::Arc;

use ambit_engine::decision::Decision;
use ambit_engine::digest::Digest;
use ambit_engine::document::{DocumentLimits, Format};
use ambit_engine::evidence::Supply;
use ambit_engine::input;
use ambit_engine::reach::{Analysis, Bytes};
use ambit_engine::reference::ImageSource;
use ambit_engine::review::{Mode, Subject, Terms, review};
use ambit_engine::workload::{Object, Surroundings, Workload, read_object};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::{self, Manner};
use crate::scope::{Carrier, Scope, scope};
use crate::settings::Generation;
use crate::supply::{Budget, Found, Missing, Supplies, evidence_late, evidence_retry};
use crate::unchanged::{equal_without, is_unchanged, same_names};
use crate::wire::{Answer, Operation, Request};

/// What came of a review.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What is answered.
    pub answer: Answer,
    /// The decision; `None` where there was nothing to decide, or nothing that could be read.
    pub decision: Option<Decision>,
    /// Whether somebody who was asked gave no answer in time.
    pub late: bool,
}

impl Outcome {
    pub(crate) fn without_decision(answer: Answer) -> Self {
        Self { answer, decision: None, late: false }
    }
}

/// A workload that has to be judged.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) workload: Workload,
}

/// What is in a request: something to judge, or an answer at once.
#[derive(Debug)]
pub(crate) enum Read {
    /// Something to judge.
    Draft(Box<Draft>),
    /// Nothing to judge, or nothing that can be.
    Answer(Box<Answer>),
}

fn answered(answer: Answer) -> Read {
    Read::Answer(Box::new(answer))
}

/// Reads what a request brings. It asks nobody.
pub(crate) fn read(request: &Request, generation: &Generation) -> Read {
    let carrier = match scope(request) {
        Scope::Out(reason) => return answered(answer::pass(reason)),
        Scope::In(carrier) => carrier,
    };
    let unreadable = |code: &str, message: &str, help: &str, field: &str| {
        answered(answer::unreadable(request, code, message, help, field))
    };
    let Some(raw) = &request.object else {
        return unreadable("review-object", "the request brings no object", "", "");
    };
    let object = match value(raw) {
        Ok(object) => object,
        Err(error) => {
            let message = format!("the object can't be read: {error}");
            return unreadable("review-object", &message, "", "");
        }
    };
    let said = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    if said("apiVersion") != request.kind.api_version() || said("kind") != request.kind.kind {
        let message = format!(
            "the object is `{} {}`, and the request is about `{} {}`",
            answer::clean(said("apiVersion"), 80),
            answer::clean(said("kind"), 80),
            request.kind.api_version(),
            request.kind.kind
        );
        return unreadable("review-object", &message, "", "");
    }
    let old = match (request.operation, &request.old_object) {
        (Operation::Update, Some(old)) => value(old).ok(),
        _ => None,
    };
    if let Some(old) = &old
        && is_unchanged(carrier, old, &object, &generation.names)
    {
        return answered(answer::pass("nothing that runs or is granted has changed"));
    }
    let namespace = Some(request.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let surroundings = Surroundings {
        target: generation.configuration.config.target,
        namespace,
        ..Surroundings::default()
    };
    let text = raw.get().as_bytes();
    match read_object(text, Format::Json, &surroundings, &DocumentLimits::default()) {
        Err(error) => unreadable(
            error.code(),
            &format!("the object can't be judged: {error}"),
            &error.help().unwrap_or_default(),
            "",
        ),
        Ok(Object::Skipped(skipped)) if skipped.is_unknown() => unreadable(
            "review-object",
            &format!("`{}` carries code in a version that isn't known here", skipped.kind),
            "let `rules` of the webhook configuration name the versions of its reference page",
            "",
        ),
        Ok(Object::Skipped(skipped)) => answered(answer::pass(skipped.reason)),
        Ok(Object::Workload(mut workload)) => {
            if carrier == Carrier::Pod
                && let Some(old) = &old
                && same_names(old, &object, &generation.names)
            {
                keep_new(&mut workload, old, &object);
            }
            Read::Draft(Box::new(Draft { workload: *workload }))
        }
    }
}

pub(crate) fn value(raw: &RawValue) -> Result<Value, serde_json::Error> {
    serde_json::from_str(raw.get())
}

/// The lists of containers of a pod.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Leaves out the containers of a pod that are as they were, if the pod around them is too: a
/// debugging container doesn't bring up again what runs already, with what a registry says today.
fn keep_new(workload: &mut Workload, old: &Value, new: &Value) {
    let spec = |object: &'_ Value| object.get("spec").and_then(Value::as_object).cloned();
    let (Some(old), Some(new)) = (spec(old), spec(new)) else { return };
    if !equal_without(&old, &new, &CONTAINERS) {
        return;
    }
    let mut known = Vec::new();
    for list in CONTAINERS {
        let items = |spec: &serde_json::Map<String, Value>| {
            spec.get(list).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let before = items(&old);
        for (index, container) in items(&new).iter().enumerate() {
            if before.contains(container) {
                known.push(format!("/spec/{list}/{index}"));
            }
        }
    }
    // Images of volumes are of the pod around.
    known.push("/spec/volumes".to_owned());
    let is_known = |pointer: &str| {
        known.iter().any(|known| {
            pointer
                .strip_prefix(known.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let new: Vec<_> =
        workload.components.iter().filter(|one| !is_known(&one.place.pointer)).cloned().collect();
    // Where all are known, something else has changed.
    if new.is_empty() {
        return;
    }
    workload.components = new;
    workload.problems.retain(|problem| !is_known(&problem.place.pointer));
}

/// Finds what is known of each component, all at once.
pub(crate) async fn supply(
    draft: &Draft,
    generation: &Arc<Generation>,
    supplies: &Supplies,
    budget: Budget,
) -> Vec<Result<Found, Missing>> {
    let sources: Vec<ImageSource> =
        draft.workload.components.iter().map(|spec| spec.image.source.clone()).collect();
    let mut tasks = Vec::new();
    for source in sources {
        let (generation, supplies) = (Arc::clone(generation), supplies.clone());
        tasks.push(tokio::spawn(async move { supplies.find(&generation, &source, budget).await }));
    }
    let mut found = Vec::new();
    for task in tasks {
        found
            .push(task.await.unwrap_or_else(|_| {
                Err(Missing::for_good("asking for it ended without a result"))
            }));
    }
    found
}

/// Decides. It asks nobody; equal arguments give equal decisions.
pub(crate) fn judge(
    draft: &Draft,
    found: &[Result<Found, Missing>],
    request: &Request,
    generation: &Generation,
    now: &str,
) -> Outcome {
    let bytes: Vec<Bytes<'_>> = found
        .iter()
        .map(|one| match one {
            Ok(found) => Bytes::Present(Analysis {
                component: &found.analysed.component,
                capabilities: &found.analysed.capabilities,
            }),
            Err(missing) => Bytes::Absent(&missing.reason),
        })
        .collect();
    let supplies: Vec<Supply> = found
        .iter()
        .map(|one| one.as_ref().map(|found| found.supply.clone()).unwrap_or_default())
        .collect();
    let config = &generation.configuration.config;
    let terms = Terms {
        mode: Mode::Admission,
        now,
        target: config.target,
        profile: generation.configuration.profile(None),
        config,
        policies: &generation.policies,
        catalogue: &generation.configuration.catalogue,
        request: input::Request {
            operation: request.operation.as_str().to_owned(),
            dry_run: request.dry_run.unwrap_or_default(),
            uid: Some(request.uid.clone()),
            user: Some(request.user_info.username.clone()),
            groups: request.user_info.groups.clone(),
            sub_resource: Some(request.sub_resource.clone()).filter(|sub| !sub.is_empty()),
        },
        previous: None,
    };
    let subject =
        Subject { workload: &draft.workload, bytes: &bytes, supplies: &supplies, file: "object" };
    let decision = review(subject, &terms).decision;
    let late = found.iter().any(|one| match one {
        Ok(found) => evidence_late(&found.supply.evidence),
        Err(missing) => missing.late,
    });
    let retry = found.iter().filter_map(|one| match one {
        Ok(found) => evidence_retry(&found.supply.evidence),
        Err(missing) => missing.retry_after_seconds,
    });
    let manner = Manner {
        mode: config.webhook.mode,
        retry_after_seconds: retry.max(),
        configuration: &generation.digest,
    };
    Outcome { answer: answer::decided(&decision, request, &manner), decision: Some(decision), late }
}

/// Answers a validating review.
///
/// Everything that asks somebody ends at the budget's deadline; what is decided then is decided on
/// what there is, and that isn't an allowance.
pub async fn validate(
    request: Arc<Request>,
    generation: &Arc<Generation>,
    supplies: &Supplies,
    budget: Budget,
) -> Outcome {
    let (asked, known) = (Arc::clone(&request), Arc::clone(generation));
    let read = tokio::task::spawn_blocking(move || read(&asked, &known)).await;
    let draft = match read {
        Ok(Read::Draft(draft)) => draft,
        Ok(Read::Answer(answer)) => return Outcome::without_decision(*answer),
        Err(_) => return Outcome::without_decision(stopped(&request)),
    };
    let found = supply(&draft, generation, supplies, budget).await;
    let (asked, known) = (Arc::clone(&request), Arc::clone(generation));
    let now = budget.now.to_string();
    let judged =
        tokio::task::spawn_blocking(move || judge(&draft, &found, &asked, &known, &now)).await;
    judged.unwrap_or_else(|_| Outcome::without_decision(stopped(&request)))
}

/// What is answered where our own work ended without a result.
pub(crate) fn stopped(request: &Request) -> Answer {
    let message = "judging the object ended without a result; its standard error says where";
    answer::unreadable(request, "review-stopped", message, "report this as a bug", "")
}

/// Returns the digest of a request's object, for the log.
pub(crate) fn object_digest(request: &Request) -> Option<Digest> {
    request.object.as_ref().map(|raw| Digest::of(raw.get().as_bytes()))
}
