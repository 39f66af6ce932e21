//! A tag becomes `tag@digest`, in the object itself, so that what was judged is what is pulled.
//!
//! # Invariants
//!
//! - The only operation is `replace`, of a text that is there and names an image; the result differs
//!   from the object in nothing else.
//! - An image that names a digest already is left as it is, so that a second call changes nothing.
//! - What can't be read or resolved isn't refused here. It stays, with a warning, and the validating
//!   half judges the object as it then is.

use std::sync::Arc;

use ambit_engine::reference::ImageSource;
use ambit_engine::workload::{Role, Workload};
use serde_json::Value;

use crate::answer;
use crate::review::{self, Outcome, Read};
use crate::settings::Generation;
use crate::supply::{Budget, Missing, Supplies};
use crate::wire::{Answer, Replace, Request};

/// An image that is named by a tag.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Tagged {
    source: ImageSource,
    /// As it is written.
    text: String,
    /// The JSON pointer of the text.
    pointer: String,
}

/// Answers a mutating review.
pub async fn mutate(
    request: Arc<Request>,
    generation: &Arc<Generation>,
    supplies: &Supplies,
    budget: Budget,
) -> Outcome {
    let pass = |reason| Outcome::without_decision(answer::pass(reason));
    let kinds = &generation.configuration.config.webhook.mutate;
    if !kinds.contains(&request.kind.kind) {
        return pass("tags of this kind are left as they are");
    }
    let (asked, known) = (Arc::clone(&request), Arc::clone(generation));
    let read = tokio::task::spawn_blocking(move || tagged(&asked, &known)).await;
    let images = match read {
        Ok(Ok(images)) => images,
        Ok(Err(reason)) => return pass(reason),
        Err(_) => return pass("reading the object ended without a result"),
    };
    let mut tasks = Vec::new();
    for image in images {
        let (generation, supplies) = (Arc::clone(generation), supplies.clone());
        tasks.push((
            image.clone(),
            tokio::spawn(async move { supplies.digest(&generation, &image.source, budget).await }),
        ));
    }
    let mut found = Answer::default();
    let mut late = false;
    for (image, task) in tasks {
        let resolved = task
            .await
            .unwrap_or_else(|_| Err(Missing::for_good("asking for it ended without a result")));
        match resolved {
            Ok(digest) => {
                let pinned = format!("{}@{digest}", image.text);
                // A name at the limit of its length has no room for a digest.
                if let ImageSource::Oci(read) = ImageSource::parse(&pinned)
                    && read.digest() == Some(&digest)
                {
                    found.patch.push(Replace::new(&image.pointer, pinned));
                }
            }
            Err(missing) => {
                late |= missing.late;
                let message = format!("`{}` keeps its tag: {}", image.text, missing.reason);
                found.warnings.push(answer::notice("image-not-resolved", &message));
            }
        }
    }
    found.warnings.truncate(answer::MAX_WARNINGS);
    if !found.patch.is_empty() {
        let pinned: Vec<&str> = found.patch.iter().map(|replace| replace.value.as_str()).collect();
        found.annotations.insert("pinned".to_owned(), answer::clean(&pinned.join(","), 2048));
    }
    Outcome { late, ..Outcome::without_decision(found) }
}

/// Finds the images that a request names by tag, or why there is nothing to do.
fn tagged(request: &Request, generation: &Generation) -> Result<Vec<Tagged>, &'static str> {
    let workload = match review::read(request, generation) {
        Read::Draft(draft) => draft.workload,
        // The validating half says so to whoever asked.
        Read::Answer(answer) if answer.denied.is_some() => return Err("it can't be read"),
        Read::Answer(_) => return Err("there is nothing to resolve"),
    };
    let object = request.object.as_ref().and_then(|raw| review::value(raw).ok());
    Ok(of_workload(&workload, &object.unwrap_or_default()))
}

fn of_workload(workload: &Workload, object: &Value) -> Vec<Tagged> {
    let mut images: Vec<Tagged> = Vec::new();
    for spec in &workload.components {
        let ImageSource::Oci(reference) = &spec.image.source else { continue };
        let pointer = &spec.image.place.pointer;
        let written = object.pointer(pointer).and_then(Value::as_str);
        // The controller writes the status of an Artifact, and through one the text is elsewhere.
        let ours = spec.image.artifact.is_none() && !is_status(spec.role, pointer);
        let known = images.iter().any(|image| image.pointer == *pointer);
        if reference.digest().is_none() && written == Some(&spec.image.text) && ours && !known {
            images.push(Tagged {
                source: spec.image.source.clone(),
                text: spec.image.text.clone(),
                pointer: pointer.clone(),
            });
        }
    }
    images
}

fn is_status(role: Role, pointer: &str) -> bool {
    role == Role::Artifact && pointer.starts_with("/status")
}
