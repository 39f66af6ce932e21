//! Capabilities met with grants: what each component of a workload can really touch, and why.
//!
//! Reach is within capabilities whenever the bytes are at hand. Under target `ambit` it is within
//! grants too; under the others an entry that no grant line gives says so
//! ([`Via::TargetDefault`], [`Via::Link`]), since that is the truth there. Without bytes the
//! entries are upper bounds from the grants alone ([`Via::GrantOnly`]).

mod entries;
mod links;
mod local;
mod network;
mod paths;
mod served;
mod services;

use std::collections::BTreeSet;

pub use links::{LinkEdge, LinkProblem, Links};
pub use paths::{Along, ReachPath};
pub(crate) use services::gives;

use crate::capability::CapabilitySet;
use crate::catalogue::{Catalogue, Verb};
use crate::component::Component;
use crate::workload::{Place, Target, Workload};

/// A component's bytes, read.
#[derive(Clone, Copy, Debug)]
pub struct Analysis<'a> {
    /// What the binary imports and exports.
    pub component: &'a Component,
    /// What that lets it do.
    pub capabilities: &'a CapabilitySet,
}

/// Whether a component's bytes were read.
#[derive(Clone, Copy, Debug)]
pub enum Bytes<'a> {
    /// They were.
    Present(Analysis<'a>),
    /// They weren't; the reason is what a report prints.
    Absent(&'a str),
}

impl<'a> Bytes<'a> {
    /// Returns the analysis, if there is one.
    #[must_use]
    pub fn analysis(self) -> Option<Analysis<'a>> {
        match self {
            Self::Present(analysis) => Some(analysis),
            Self::Absent(_) => None,
        }
    }
}

/// How a component gets to something.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Via {
    /// A line of the document gives it.
    Grant,
    /// A link to this component brings it in.
    Link(String),
    /// The target gives it to everybody.
    TargetDefault,
    /// A line of the document would give it, if the component asks for it.
    GrantOnly,
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Grant => f.write_str("grant"),
            Self::Link(name) => write!(f, "link:{name}"),
            Self::TargetDefault => f.write_str("target-default"),
            Self::GrantOnly => f.write_str("grant-only"),
        }
    }
}

/// A line of the document that gives something.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrantLine {
    /// The grant as written.
    pub text: String,
    /// Where it stands.
    pub place: Place,
}

/// One thing that a component can reach.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The verb.
    pub verb: Verb,
    /// The capability class.
    pub capability: String,
    /// What is touched, in words.
    pub subject: String,
    /// What is touched, as `--by` groups it: a host pattern, a folder, a secret's name.
    pub key: String,
    /// How it gets there.
    pub via: Via,
    /// The grant, where a line gives it.
    pub grant: Option<GrantLine>,
    /// The imports that prove the capability.
    pub imports: Vec<String>,
    /// What a reader should know besides; may be empty.
    pub note: String,
    /// Whether what is touched can't be listed: any host, any address.
    pub unbounded: bool,
    /// Whether it holds every host.
    pub any_host: bool,
}

/// A grant that nothing can use, or an import that nothing grants.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrantNote {
    /// `hosts`, `lookups`, `loopback`, `folders`, `environment`, `interfaces`.
    pub kind: &'static str,
    /// The grant as written, or the import.
    pub subject: String,
    /// Why it is dead or missing.
    pub reason: String,
    /// Where the grant stands, or the component.
    pub place: Place,
}

/// A folder that a component sees, its own or one that links bring in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EffectiveMount {
    /// Index of the component that mounts it.
    pub owner: usize,
    /// Index into that component's mounts.
    pub mount: usize,
    /// Whether it comes along a link.
    pub inherited: bool,
}

/// What one component can reach.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComponentReach {
    /// Its name in the document.
    pub name: String,
    /// Whether its bytes were read; the reason if not.
    pub absent: Option<String>,
    /// What it can reach, by verb in the order of a report, then as the document has it.
    pub entries: Vec<Entry>,
    /// Grants that nothing in it can use.
    pub dead: Vec<GrantNote>,
    /// Imports that will be refused.
    pub missing: Vec<GrantNote>,
    /// Folders that it sees.
    pub mounts: Vec<EffectiveMount>,
}

/// What the components of one workload can reach.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reach {
    /// The target whose semantics were used.
    pub target: Target,
    /// One entry for each component, in the order of the document.
    pub components: Vec<ComponentReach>,
    /// Who serves whose imports.
    pub links: Links,
    /// Ways from something private to something outside.
    pub paths: Vec<ReachPath>,
    /// Host interfaces that no component imports or exports, by index; only if all bytes are there.
    pub unused_interfaces: BTreeSet<usize>,
}

impl Reach {
    /// Computes what the components of `workload` can reach under `target`.
    ///
    /// `bytes` has one entry for each component, in the same order; a missing one counts as
    /// absent.
    #[must_use]
    pub fn of(
        workload: &Workload,
        bytes: &[Bytes<'_>],
        target: Target,
        catalogue: &Catalogue,
    ) -> Self {
        let links = Links::of(workload, bytes);
        let mounts = links.effective_mounts(workload, target);
        let context = entries::Context { workload, bytes, target, catalogue, links: &links };
        let components: Vec<ComponentReach> = workload
            .components
            .iter()
            .zip(mounts)
            .enumerate()
            .map(|(index, (_, mounts))| context.component(index, mounts))
            .collect();
        let paths = paths::find(workload, &components, &links);
        let unused_interfaces = services::unused(workload, bytes);
        Self { target, components, links, paths, unused_interfaces }
    }

    /// Returns the entries of all components under one verb, with the component's index.
    pub fn by_verb(&self, verb: Verb) -> impl Iterator<Item = (usize, &Entry)> {
        self.components.iter().enumerate().flat_map(move |(index, component)| {
            component.entries.iter().filter(move |e| e.verb == verb).map(move |e| (index, e))
        })
    }
}

/// Says what `ours` gives differently from `theirs`, one line for each thing; both are of the same
/// workload under different targets.
#[must_use]
pub fn differences(theirs: &Reach, ours: &Reach) -> Vec<String> {
    let mut lines = Vec::new();
    for (their, our) in theirs.components.iter().zip(&ours.components) {
        let has = |entries: &[Entry], entry: &Entry| {
            entries.iter().any(|other| other.verb == entry.verb && other.subject == entry.subject)
        };
        for entry in &their.entries {
            if has(&our.entries, entry) {
                continue;
            }
            let same_line = our.entries.iter().find(|other| {
                other.verb == entry.verb
                    && other.grant.is_some()
                    && other.grant.as_ref().map(|g| &g.place.pointer)
                        == entry.grant.as_ref().map(|g| &g.place.pointer)
            });
            lines.push(match same_line {
                Some(other) => format!(
                    "`{}` could {} {}, not {}",
                    their.name,
                    entry.verb.as_str(),
                    other.subject,
                    entry.subject
                ),
                None => {
                    format!("`{}` could not {} {}", their.name, entry.verb.as_str(), entry.subject)
                }
            });
        }
        for entry in our.entries.iter().filter(|entry| !has(&their.entries, entry)) {
            let same_line = entry.grant.as_ref().is_some_and(|grant| {
                their.entries.iter().any(|other| {
                    other.verb == entry.verb
                        && other
                            .grant
                            .as_ref()
                            .is_some_and(|g| g.place.pointer == grant.place.pointer)
                })
            });
            if !same_line {
                lines.push(format!(
                    "`{}` could also {} {}",
                    our.name,
                    entry.verb.as_str(),
                    entry.subject
                ));
            }
        }
    }
    lines
}
