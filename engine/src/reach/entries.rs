//! From one component's capabilities and grants to the entries of its reach.

use std::collections::BTreeSet;

use super::{Bytes, ComponentReach, EffectiveMount, Entry, Links, Via};
use crate::capability::{CapabilitySet, ImportCapability};
use crate::catalogue::{Catalogue, Verb};
use crate::workload::{Target, Workload};

pub(super) struct Context<'a> {
    pub(super) workload: &'a Workload,
    pub(super) bytes: &'a [Bytes<'a>],
    pub(super) target: Target,
    pub(super) catalogue: &'a Catalogue,
    pub(super) links: &'a Links,
}

/// What a component can ask for: what its bytes say, or everything that its grants would serve.
pub(super) struct Asks<'a> {
    pub(super) set: Option<&'a CapabilitySet>,
}

impl<'a> Asks<'a> {
    /// Whether some class of `classes` is declared; without bytes it may be.
    pub(super) fn any(&self, classes: &[&str]) -> bool {
        self.set.is_none_or(|set| classes.iter().any(|class| set.declared.contains(*class)))
    }

    pub(super) fn imports(&self, classes: &[&str]) -> Vec<String> {
        let bears = |import: &&ImportCapability| {
            classes.iter().any(|class| import.declared.contains(*class))
        };
        let imports = self.set.map_or(&[][..], |set| &set.imports);
        imports.iter().filter(bears).map(|import| import.name.clone()).collect()
    }

    /// The via of an entry that a line gives.
    pub(super) fn granted(&self) -> Via {
        if self.set.is_some() { Via::Grant } else { Via::GrantOnly }
    }
}

/// The first of `classes` that is declared; the first of all without bytes.
pub(super) fn class<'c>(asks: &Asks<'_>, classes: &[&'c str]) -> &'c str {
    let declared = classes
        .iter()
        .find(|class| asks.set.is_none_or(|set| set.declared.contains(**class)))
        .or(classes.first());
    declared.copied().unwrap_or("unknown")
}

impl<'a> Context<'a> {
    pub(super) fn component(&self, index: usize, mounts: Vec<EffectiveMount>) -> ComponentReach {
        let Some(spec) = self.workload.components.get(index) else {
            return ComponentReach {
                name: String::new(),
                absent: Some("the component is not in the document".to_owned()),
                entries: Vec::new(),
                dead: Vec::new(),
                missing: Vec::new(),
                mounts,
            };
        };
        let bytes = self.bytes.get(index).copied().unwrap_or(Bytes::Absent("not read"));
        let (analysis, absent) = match bytes {
            Bytes::Present(analysis) => (Some(analysis), None),
            Bytes::Absent(reason) => (None, Some(reason.to_owned())),
        };
        let asks = Asks { set: analysis.map(|analysis| analysis.capabilities) };
        let mut reach = ComponentReach {
            name: spec.name.clone(),
            absent,
            entries: Vec::new(),
            dead: Vec::new(),
            missing: Vec::new(),
            mounts,
        };
        self.hosts(spec, &asks, &mut reach);
        self.lookups(spec, &asks, &mut reach);
        self.sockets(spec, &asks, &mut reach);
        self.loopback(spec, &asks, &mut reach);
        self.folders(spec, &asks, &mut reach);
        self.environment(spec, &asks, &mut reach);
        match analysis {
            Some(analysis) => self.imports(index, spec, analysis, &mut reach),
            None => self.interfaces_without_bytes(spec, &mut reach),
        }
        self.exports(analysis, &mut reach);
        let order = |entry: &Entry| Verb::ALL.iter().position(|verb| *verb == entry.verb);
        reach.entries.sort_by_key(order);
        let mut seen = BTreeSet::new();
        reach.entries.retain(|entry| {
            let grant = entry.grant.as_ref().map(|grant| grant.place.pointer.clone());
            seen.insert((entry.verb, entry.subject.clone(), entry.via.to_string(), grant))
        });
        reach
    }
}
