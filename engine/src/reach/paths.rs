//! Ways from something private to something outside: what exfiltration needs.

use super::{ComponentReach, Entry, Links};
use crate::catalogue::Verb;
use crate::workload::{Place, Workload};

/// What joins the components of a path.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Along {
    /// One component does both.
    One,
    /// Imports that siblings serve.
    Links,
    /// One agent session.
    Session,
}

impl Along {
    /// Returns the stable word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::One => "self",
            Self::Links => "links",
            Self::Session => "session",
        }
    }
}

/// A way from something private to something outside.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReachPath {
    /// What joins the components.
    pub along: Along,
    /// Components from source to sink, both included.
    pub hops: Vec<String>,
    /// What the source reads.
    pub reads: Vec<String>,
    /// Where the sink can send.
    pub sends: Vec<String>,
    /// Whether where it can send can't be listed.
    pub unbounded: bool,
    /// Whether the source is a Secret alone, which its own host needs.
    pub secret_only: bool,
    /// Where the sink stands.
    pub place: Place,
}

fn private(entry: &&Entry) -> bool {
    matches!(entry.verb, Verb::ReadFolder | Verb::ReadSecrets) && !entry.key.is_empty()
}

fn outside(entry: &&Entry) -> bool {
    matches!(entry.verb, Verb::ReachHosts | Verb::OpenSockets | Verb::UseModel)
}

/// Finds a path for each pair of a component that reads and one that sends.
pub(super) fn find(
    workload: &Workload,
    components: &[ComponentReach],
    links: &Links,
) -> Vec<ReachPath> {
    let mut paths = Vec::new();
    for (source, reader) in components.iter().enumerate() {
        // Without bytes there is only what might be; a path is a statement about what is.
        if reader.absent.is_some() {
            continue;
        }
        let reads: Vec<&Entry> = reader.entries.iter().filter(private).collect();
        if reads.is_empty() {
            continue;
        }
        for sink in links.connected(source) {
            let Some(sender) = components.get(sink) else { continue };
            let sends: Vec<&Entry> = sender.entries.iter().filter(outside).collect();
            if sends.is_empty() || sender.absent.is_some() {
                continue;
            }
            let hops = links.route(source, sink).into_iter();
            let names = hops.filter_map(|index| components.get(index)).map(|c| c.name.clone());
            let mut targets: Vec<String> = sends.iter().map(|entry| entry.key.clone()).collect();
            targets.sort();
            targets.dedup();
            let mut sources: Vec<String> =
                reads.iter().map(|entry| entry.subject.clone()).collect();
            sources.sort();
            sources.dedup();
            paths.push(ReachPath {
                along: if source == sink { Along::One } else { Along::Links },
                hops: names.collect(),
                reads: sources,
                sends: targets,
                unbounded: sends.iter().any(|entry| entry.unbounded),
                secret_only: reads.iter().all(|entry| entry.verb == Verb::ReadSecrets),
                place: workload.components.get(sink).map(|c| c.place.clone()).unwrap_or_default(),
            });
        }
    }
    paths
}
