//! A host list as a whole.

use super::host::HostPattern;
use super::target::Target;

/// The host list of one component, in the order of its source. An empty list denies everything.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostGrants(Vec<HostPattern>);

/// What a host list says about one target; `entry` counts from 0 in the list's order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostDecision {
    /// An entry gives it and none takes it away.
    Allowed {
        /// The first entry that gives it.
        entry: usize,
    },
    /// A `!` entry takes it away, whatever else gives it.
    DeniedByEntry {
        /// The first such entry.
        entry: usize,
    },
    /// No entry gives it.
    NotGranted,
}

impl HostGrants {
    /// A list of these entries.
    pub fn new(entries: Vec<HostPattern>) -> Self {
        Self(entries)
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[HostPattern] {
        &self.0
    }

    /// Judges one target by name; the caller still has to judge every address it resolves to.
    pub fn decide(&self, target: &Target) -> HostDecision {
        let find = |deny: bool| {
            self.0.iter().position(|entry| entry.is_deny() == deny && entry.matches(target))
        };
        match (find(true), find(false)) {
            (Some(entry), _) => HostDecision::DeniedByEntry { entry },
            (None, Some(entry)) => HostDecision::Allowed { entry },
            (None, None) => HostDecision::NotGranted,
        }
    }

    /// The first entry of `other` that may let through a target which this list doesn't: what a
    /// ceiling names when a grant goes over it. `None` means that `other` is within this list.
    pub fn first_not_covered<'a>(&self, other: &'a Self) -> Option<&'a HostPattern> {
        let denied_too = |deny: &HostPattern| {
            other.0.iter().any(|theirs| theirs.is_deny() && theirs.covers(deny))
        };
        let covered = |grant: &HostPattern| {
            self.0.iter().any(|own| !own.is_deny() && own.covers(grant))
                && self
                    .0
                    .iter()
                    .filter(|own| own.is_deny())
                    .all(|deny| !deny.host().may_meet(grant.host()) || denied_too(deny))
        };
        other.0.iter().find(|grant| !grant.is_deny() && !covered(grant))
    }
}

impl FromIterator<HostPattern> for HostGrants {
    fn from_iter<I: IntoIterator<Item = HostPattern>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}
