//! Which component of a workload serves which import of another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Bytes, EffectiveMount};
use crate::interface::InterfaceName;
use crate::workload::{Target, Workload};

/// Packages that the host links for every component, so that a sibling never serves them.
const HOST_PACKAGES: [&str; 7] = ["cli", "clocks", "random", "io", "filesystem", "sockets", "http"];

/// One link.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LinkEdge {
    /// Index of the component that imports.
    pub from: usize,
    /// Index of the component that exports.
    pub to: usize,
    /// The interface.
    pub interface: String,
}

/// Why components can't be linked in one way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LinkProblem {
    /// Several siblings export what one imports.
    Ambiguous {
        /// Index of the component that imports.
        from: usize,
        /// The interface.
        interface: String,
        /// Indexes of the exporters.
        candidates: Vec<usize>,
    },
    /// Components import one another in a circle.
    Cycle(Vec<usize>),
}

/// The links of one workload.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Links {
    /// The links, by importer.
    pub edges: Vec<LinkEdge>,
    /// Why some are not there.
    pub problems: Vec<LinkProblem>,
    /// For each component, those whose exports it imports.
    imports: Vec<BTreeSet<usize>>,
    /// For each component, those next to it along a link, either way.
    neighbours: Vec<BTreeSet<usize>>,
    /// For each component, everything that it imports, directly or not.
    closures: Vec<BTreeSet<usize>>,
}

/// Tells whether the host itself links an interface for every component.
pub(super) fn host_links(name: &InterfaceName) -> bool {
    name.namespace() == "wasi" && HOST_PACKAGES.contains(&name.package())
}

impl Links {
    pub(super) fn of(workload: &Workload, bytes: &[Bytes<'_>]) -> Self {
        let count = workload.components.len();
        let mut links = Self {
            imports: vec![BTreeSet::new(); count],
            neighbours: vec![BTreeSet::new(); count],
            ..Self::default()
        };
        let component =
            |index: usize| bytes.get(index).and_then(|b| b.analysis()).map(|a| a.component);
        let mut exporters: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for index in 0..count {
            let exports = component(index).into_iter().flat_map(|component| &component.exports);
            for name in exports.filter_map(|export| export.interface.as_ref()) {
                exporters.entry(name.on_track()).or_default().insert(index);
            }
        }
        for from in 0..count {
            let imports = component(from).into_iter().flat_map(|component| &component.imports);
            for name in imports.filter_map(|import| import.interface.as_ref()) {
                let interface = name.on_track();
                let Some(found) = exporters.get(&interface).filter(|_| !host_links(name)) else {
                    continue;
                };
                let candidates: Vec<usize> =
                    found.iter().copied().filter(|index| *index != from).collect();
                match candidates.as_slice() {
                    [] => {}
                    [to] => links.edges.push(LinkEdge { from, to: *to, interface }),
                    _ => {
                        links.problems.push(LinkProblem::Ambiguous { from, interface, candidates });
                    }
                }
            }
        }
        links.edges.sort();
        links.edges.dedup();
        for edge in &links.edges {
            join(&mut links.imports, edge.from, edge.to);
            join(&mut links.neighbours, edge.from, edge.to);
            join(&mut links.neighbours, edge.to, edge.from);
        }
        links.closures = (0..count).map(|index| follow(&links.imports, index)).collect();
        links.find_cycles();
        links
    }

    fn find_cycles(&mut self) {
        let reaches = |from: usize, to: usize| {
            self.closures.get(from).is_some_and(|closure| closure.contains(&to))
        };
        let mut seen = BTreeSet::new();
        let mut cycles = Vec::new();
        for (index, closure) in self.closures.iter().enumerate() {
            if !closure.contains(&index) || seen.contains(&index) {
                continue;
            }
            let members: Vec<usize> =
                closure.iter().copied().filter(|member| reaches(*member, index)).collect();
            seen.extend(members.iter().copied());
            cycles.push(LinkProblem::Cycle(members));
        }
        self.problems.extend(cycles);
    }

    /// Returns a component with everything that it imports, directly or not.
    #[must_use]
    pub fn closure(&self, index: usize) -> BTreeSet<usize> {
        let mut found = self.closures.get(index).cloned().unwrap_or_default();
        found.insert(index);
        found
    }

    /// Returns every component that data can flow to or from along links, the component included:
    /// arguments go one way and results the other.
    #[must_use]
    pub fn connected(&self, index: usize) -> BTreeSet<usize> {
        let mut found = follow(&self.neighbours, index);
        found.insert(index);
        found
    }

    /// Returns, for each component that data can flow to, the one before it on a shortest way from
    /// `from`.
    pub(super) fn ways(&self, from: usize) -> Ways {
        let mut before: BTreeMap<usize, usize> = BTreeMap::new();
        let mut work = VecDeque::from([from]);
        while let Some(at) = work.pop_front() {
            for next in self.neighbours.get(at).into_iter().flatten() {
                if *next != from && !before.contains_key(next) {
                    before.insert(*next, at);
                    work.push_back(*next);
                }
            }
        }
        Ways { from, before }
    }

    /// Returns the sibling that serves an interface of a component.
    pub(super) fn provider(&self, from: usize, interface: &str) -> Option<usize> {
        self.edges
            .iter()
            .find(|edge| edge.from == from && edge.interface == interface)
            .map(|edge| edge.to)
    }

    /// Returns the folders that each component sees.
    ///
    /// Under target `wasmcloud` one store holds a component with everything it imports, and every
    /// member of that closure sees the folders of all; elsewhere each sees its own.
    pub(super) fn effective_mounts(
        &self,
        workload: &Workload,
        target: Target,
    ) -> Vec<Vec<EffectiveMount>> {
        let count = workload.components.len();
        let own = |index: usize| {
            workload.components.get(index).map_or(0, |component| component.mounts.len())
        };
        let mut owners: Vec<BTreeSet<usize>> =
            (0..count).map(|index| BTreeSet::from([index])).collect();
        if target == Target::WasmCloud {
            for store in (0..count).map(|index| self.closure(index)) {
                for member in &store {
                    if let Some(owners) = owners.get_mut(*member) {
                        owners.extend(&store);
                    }
                }
            }
        }
        let of = |(index, owners): (usize, BTreeSet<usize>)| {
            // Its own folders first.
            let others = owners.into_iter().filter(|owner| *owner != index);
            let mut mounts = Vec::new();
            for owner in std::iter::once(index).chain(others) {
                let inherited = owner != index;
                mounts.extend((0..own(owner)).map(|mount| EffectiveMount {
                    owner,
                    mount,
                    inherited,
                }));
            }
            mounts
        };
        owners.into_iter().enumerate().map(of).collect()
    }
}

/// Shortest ways from one component to others.
pub(super) struct Ways {
    from: usize,
    before: BTreeMap<usize, usize>,
}

impl Ways {
    /// Returns the components on the way to `to`, both ends included.
    pub(super) fn to(&self, to: usize) -> Vec<usize> {
        let mut route = vec![to];
        let mut at = to;
        while at != self.from
            && let Some(previous) = self.before.get(&at)
        {
            at = *previous;
            route.push(at);
        }
        route.reverse();
        route
    }
}

fn join(next: &mut [BTreeSet<usize>], at: usize, to: usize) {
    if let Some(next) = next.get_mut(at) {
        next.insert(to);
    }
}

/// Returns what can be got to from `start`; `start` itself only if a way leads back to it.
fn follow(next: &[BTreeSet<usize>], start: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut work = vec![start];
    while let Some(at) = work.pop() {
        let nexts = next.get(at).into_iter().flatten().copied();
        work.extend(nexts.filter(|to| found.insert(*to)));
    }
    found
}
