//! `ambit.reach/v1`: what each component of the workloads can reach.

use schemars::JsonSchema;
use serde::Serialize;

use super::Location;
use crate::reach::{Reach, Via};
use crate::workload::{Place, Skipped, Workload};

/// What the workloads can reach.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ReachDocument {
    /// `ambit.reach/v1`.
    pub schema: String,
    /// The target, if all workloads were read for one; `mixed` otherwise.
    pub target: String,
    /// The workloads, in order.
    pub workloads: Vec<WorkloadView>,
    /// Documents that are no workloads.
    pub skipped: Vec<SkippedView>,
}

/// One workload.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct WorkloadView {
    /// The kind.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The file that holds it.
    pub file: String,
    /// The target whose semantics were used.
    pub target: String,
    /// Its components.
    pub components: Vec<ComponentView>,
    /// Ways from something private to something outside.
    pub paths: Vec<PathView>,
    /// What is wrong with the document.
    pub problems: Vec<ProblemView>,
    /// What would differ if `ambit` ran it, one line each; empty under target `ambit`.
    pub under_ambit: Vec<String>,
}

/// One component.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ComponentView {
    /// Its name.
    pub name: String,
    /// The reference that names its bytes.
    pub image: String,
    /// The digest of its bytes, if they were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// `present` or `absent`.
    pub bytes: String,
    /// Why they are absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it can reach.
    pub reach: Vec<EntryView>,
    /// Grants that nothing can use.
    pub dead_grants: Vec<NoteView>,
    /// Imports that will be refused.
    pub missing_grants: Vec<NoteView>,
}

/// One thing that a component can reach.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct EntryView {
    /// The verb.
    pub verb: String,
    /// The capability class.
    pub capability: String,
    /// What is touched.
    pub subject: String,
    /// `grant`, `link:NAME`, `target-default` or `grant-only`.
    pub via: String,
    /// The line that gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantView>,
    /// The imports that prove it.
    pub imports: Vec<String>,
    /// What should be known besides; may be empty.
    pub note: String,
}

/// The line that gives something.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct GrantView {
    /// The grant as written.
    pub text: String,
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
}

/// A grant without use, or a use without grant.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct NoteView {
    /// What kind of grant.
    pub kind: String,
    /// The grant, or the import.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// Where.
    pub location: Location,
}

/// A way from something private to something outside.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct PathView {
    /// `self`, `links` or `session`.
    pub along: String,
    /// Components from source to sink.
    pub hops: Vec<String>,
    /// What the source reads.
    pub reads: Vec<String>,
    /// Where the sink can send.
    pub sends: Vec<String>,
    /// Whether where it can send can't be listed.
    pub unbounded: bool,
}

/// Something wrong with the document.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ProblemView {
    /// A stable code.
    pub code: String,
    /// `invalid` or `lint`.
    pub level: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Where.
    pub location: Location,
}

/// A document that is no workload.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct SkippedView {
    /// Its version and kind.
    pub kind: String,
    /// Why it was skipped.
    pub reason: String,
    /// Where.
    pub location: Location,
}

/// One workload with its reach.
#[derive(Clone, Copy, Debug)]
pub struct ReachSource<'a> {
    /// The file.
    pub file: &'a str,
    /// The workload.
    pub workload: &'a Workload,
    /// What its components can reach.
    pub reach: &'a Reach,
    /// Digests of the components' bytes, in order; empty where they are absent.
    pub digests: &'a [Option<String>],
    /// What would differ if `ambit` ran it.
    pub under_ambit: &'a [String],
}

/// Builds the document.
#[must_use]
pub fn reach(sources: &[ReachSource<'_>], skipped: &[(String, Skipped)]) -> ReachDocument {
    let mut targets: Vec<&str> =
        sources.iter().map(|source| source.reach.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    ReachDocument {
        schema: "ambit.reach/v1".to_owned(),
        target: match targets.as_slice() {
            [one] => (*one).to_owned(),
            _ => "mixed".to_owned(),
        },
        workloads: sources.iter().map(workload).collect(),
        skipped: skipped
            .iter()
            .map(|(file, skipped)| SkippedView {
                kind: skipped.kind.clone(),
                reason: skipped.reason.to_owned(),
                location: Location::of(file, &skipped.place),
            })
            .collect(),
    }
}

fn workload(source: &ReachSource<'_>) -> WorkloadView {
    let workload = source.workload;
    let file = source.file;
    let specs = workload.components.iter().zip(&source.reach.components).enumerate();
    let notes = |notes: &[crate::reach::GrantNote]| {
        notes
            .iter()
            .map(|note| NoteView {
                kind: note.kind.to_owned(),
                subject: note.subject.clone(),
                reason: note.reason.clone(),
                location: Location::of(file, &note.place),
            })
            .collect::<Vec<_>>()
    };
    WorkloadView {
        kind: workload.kind.clone(),
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
        file: file.to_owned(),
        target: source.reach.target.as_str().to_owned(),
        components: specs
            .map(|(index, (spec, reached))| ComponentView {
                name: spec.name.clone(),
                image: spec.image.text.clone(),
                digest: source.digests.get(index).cloned().flatten(),
                bytes: if reached.absent.is_some() { "absent" } else { "present" }.to_owned(),
                reason: reached.absent.clone(),
                reach: reached
                    .entries
                    .iter()
                    .map(|entry| EntryView {
                        verb: entry.verb.as_str().to_owned(),
                        capability: entry.capability.clone(),
                        subject: entry.subject.clone(),
                        via: Via::to_string(&entry.via),
                        grant: entry.grant.as_ref().map(|grant| GrantView {
                            text: grant.text.clone(),
                            file: file.to_owned(),
                            line: Place::line(&grant.place),
                        }),
                        imports: entry.imports.clone(),
                        note: entry.note.clone(),
                    })
                    .collect(),
                dead_grants: notes(&reached.dead),
                missing_grants: notes(&reached.missing),
            })
            .collect(),
        paths: source
            .reach
            .paths
            .iter()
            .map(|path| PathView {
                along: path.along.as_str().to_owned(),
                hops: path.hops.clone(),
                reads: path.reads.clone(),
                sends: path.sends.clone(),
                unbounded: path.unbounded,
            })
            .collect(),
        problems: workload
            .problems
            .iter()
            .map(|problem| ProblemView {
                code: problem.code.to_owned(),
                level: match problem.level {
                    crate::workload::Level::Invalid => "invalid",
                    crate::workload::Level::Lint => "lint",
                }
                .to_owned(),
                message: problem.message.clone(),
                help: problem.help.clone(),
                location: Location::of(file, &problem.place),
            })
            .collect(),
        under_ambit: source.under_ambit.to_vec(),
    }
}
