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

impl ReachPath {
    /// What a path weighs besides its texts.
    const WEIGHT: usize = 256;
}

fn private(entry: &&Entry) -> bool {
    matches!(entry.verb, Verb::ReadFolder | Verb::ReadSecrets) && !entry.key.is_empty()
}

fn outside(entry: &&Entry) -> bool {
    matches!(entry.verb, Verb::ReachHosts | Verb::OpenSockets | Verb::UseModel)
}

/// Bytes of text over all paths; a workload that people wrote stays far below.
const MAX_PATH_BYTES: usize = 2 << 20;

/// Finds a path for each pair of a component that reads and one that sends.
///
/// Where there are more than can be listed, the last path says so and counts as one that can end
/// anywhere, so that a rule judges it as the worst.
pub(super) fn find(
    workload: &Workload,
    components: &[ComponentReach],
    links: &Links,
) -> Vec<ReachPath> {
    // Without bytes there is only what might be; a path is a statement about what is.
    let present = |component: &&ComponentReach| component.absent.is_none();
    let ends: Vec<(Vec<&Entry>, Vec<&Entry>)> = components
        .iter()
        .map(|component| {
            let entries = || Some(component).filter(present).into_iter().flat_map(|c| &c.entries);
            (entries().filter(private).collect(), entries().filter(outside).collect())
        })
        .collect();
    let texts = |entries: &[&Entry], text: fn(&Entry) -> &String| {
        let mut texts: Vec<String> = entries.iter().map(|entry| text(entry).clone()).collect();
        texts.sort();
        texts.dedup();
        texts
    };
    let mut paths = Vec::new();
    let mut bytes = 0_usize;
    for (source, (reads, _)) in ends.iter().enumerate().filter(|(_, (reads, _))| !reads.is_empty())
    {
        let sources = texts(reads, |entry| &entry.subject);
        let ways = links.ways(source);
        for sink in links.connected(source) {
            let Some((_, sends)) = ends.get(sink).filter(|(_, sends)| !sends.is_empty()) else {
                continue;
            };
            let hops = ways.to(sink).into_iter().filter_map(|index| components.get(index));
            let path = ReachPath {
                along: if source == sink { Along::One } else { Along::Links },
                hops: hops.map(|component| component.name.clone()).collect(),
                reads: sources.clone(),
                sends: texts(sends, |entry| &entry.key),
                unbounded: sends.iter().any(|entry| entry.unbounded),
                secret_only: reads.iter().all(|entry| entry.verb == Verb::ReadSecrets),
                place: workload.components.get(sink).map(|c| c.place.clone()).unwrap_or_default(),
            };
            let text = path.hops.iter().chain(&path.reads).chain(&path.sends);
            let weight = text.fold(ReachPath::WEIGHT, |sum, text| sum.saturating_add(text.len()));
            bytes = bytes.saturating_add(weight);
            if bytes > MAX_PATH_BYTES {
                paths.push(ReachPath {
                    reads: vec!["more than can be listed".to_owned()],
                    sends: vec!["*".to_owned()],
                    unbounded: true,
                    secret_only: false,
                    ..path
                });
                return paths;
            }
            paths.push(path);
        }
    }
    paths
}
