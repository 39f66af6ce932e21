//! Which component of a workload serves which import of another.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bytes, EffectiveMount};
use crate::catalogue::Catalogue;
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
    count: usize,
}

/// Tells whether the host itself links an interface for every component.
pub(super) fn host_links(name: &InterfaceName) -> bool {
    name.namespace() == "wasi" && HOST_PACKAGES.contains(&name.package())
}

fn same(import: &InterfaceName, export: &InterfaceName) -> bool {
    import.unversioned() == export.unversioned() && import.track() == export.track()
}

impl Links {
    pub(super) fn of(workload: &Workload, bytes: &[Bytes<'_>], _catalogue: &Catalogue) -> Self {
        let mut links = Self { count: workload.components.len(), ..Self::default() };
        let component =
            |index: usize| bytes.get(index).and_then(|b| b.analysis()).map(|a| a.component);
        for from in 0..links.count {
            let imports = component(from).into_iter().flat_map(|component| &component.imports);
            for name in imports.filter_map(|import| import.interface.as_ref()) {
                if host_links(name) {
                    continue;
                }
                let exports = |index: &usize| {
                    *index != from
                        && component(*index).is_some_and(|component| {
                            let names =
                                component.exports.iter().filter_map(|e| e.interface.as_ref());
                            names.into_iter().any(|export| same(name, export))
                        })
                };
                let candidates: Vec<usize> = (0..links.count).filter(exports).collect();
                match candidates.as_slice() {
                    [] => {}
                    [to] => {
                        links.edges.push(LinkEdge { from, to: *to, interface: name.on_track() });
                    }
                    _ => links.problems.push(LinkProblem::Ambiguous {
                        from,
                        interface: name.on_track(),
                        candidates,
                    }),
                }
            }
        }
        links.edges.sort();
        links.edges.dedup();
        links.find_cycles();
        links
    }

    fn find_cycles(&mut self) {
        let mut seen = BTreeSet::new();
        for index in 0..self.count {
            let closure = self.strict_closure(index);
            if closure.contains(&index) {
                let members: BTreeSet<usize> = closure
                    .into_iter()
                    .filter(|member| self.strict_closure(*member).contains(&index))
                    .collect();
                if seen.insert(members.clone()) {
                    self.problems.push(LinkProblem::Cycle(members.into_iter().collect()));
                }
            }
        }
    }

    fn strict_closure(&self, index: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut work = vec![index];
        while let Some(at) = work.pop() {
            let next = self.edges.iter().filter(|edge| edge.from == at).map(|edge| edge.to);
            work.extend(next.filter(|to| found.insert(*to)));
        }
        found
    }

    /// Returns a component with everything that it imports, directly or not.
    #[must_use]
    pub fn closure(&self, index: usize) -> BTreeSet<usize> {
        let mut found = self.strict_closure(index);
        found.insert(index);
        found
    }

    /// Returns every component that data can flow to or from along links, the component included:
    /// arguments go one way and results the other.
    #[must_use]
    pub fn connected(&self, index: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([index]);
        let mut work = vec![index];
        while let Some(at) = work.pop() {
            for edge in &self.edges {
                let next = match (edge.from == at, edge.to == at) {
                    (true, _) => edge.to,
                    (false, true) => edge.from,
                    (false, false) => continue,
                };
                if found.insert(next) {
                    work.push(next);
                }
            }
        }
        found
    }

    /// Returns the components from one to another along links, both included.
    pub(super) fn route(&self, from: usize, to: usize) -> Vec<usize> {
        let mut before: BTreeMap<usize, usize> = BTreeMap::new();
        let mut work = std::collections::VecDeque::from([from]);
        while let Some(at) = work.pop_front() {
            if at == to {
                break;
            }
            for edge in &self.edges {
                let next = match (edge.from == at, edge.to == at) {
                    (true, _) => edge.to,
                    (false, true) => edge.from,
                    (false, false) => continue,
                };
                if next != from && !before.contains_key(&next) {
                    before.insert(next, at);
                    work.push_back(next);
                }
            }
        }
        let mut route = vec![to];
        let mut at = to;
        while at != from
            && let Some(previous) = before.get(&at)
        {
            at = *previous;
            route.push(at);
        }
        route.reverse();
        route
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
        let own = |index: usize| {
            workload.components.get(index).map_or(0, |component| component.mounts.len())
        };
        (0..self.count)
            .map(|index| {
                let mut owners = BTreeSet::from([index]);
                if target == Target::WasmCloud {
                    for store in 0..self.count {
                        let closure = self.closure(store);
                        if closure.contains(&index) {
                            owners.extend(closure);
                        }
                    }
                }
                // Its own folders first.
                let mut mounts = Vec::new();
                let others = owners.into_iter().filter(|owner| *owner != index);
                for owner in std::iter::once(index).chain(others) {
                    for mount in 0..own(owner) {
                        mounts.push(EffectiveMount { owner, mount, inherited: owner != index });
                    }
                }
                mounts
            })
            .collect()
    }
}
