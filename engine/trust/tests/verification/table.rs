//! Pairs that differ in one thing.

use ambit_testing::mint::{Mint, World};
use ambit_trust::candidate::Candidate;
use ambit_trust::policy::Authority;
use serde_json::Value;

use crate::common::{code, digest};

/// Pairs under one root and one authority unless they say otherwise.
pub(crate) struct Table {
    pub(crate) root: Value,
    authority: Authority,
    wrong: Vec<String>,
}

impl Table {
    pub(crate) fn new(world: &World, authority: Authority) -> Self {
        Self { root: world.trusted_root(), authority, wrong: Vec::new() }
    }

    pub(crate) fn is(&mut self, name: &str, candidate: &Candidate, expected: &str) -> &mut Self {
        let authority = self.authority.clone();
        self.under(name, candidate, &authority, expected)
    }

    pub(crate) fn under(
        &mut self,
        name: &str,
        candidate: &Candidate,
        authority: &Authority,
        expected: &str,
    ) -> &mut Self {
        let found = code(candidate, authority, &self.root);
        if found != expected {
            self.wrong.push(format!("{name}: {found}, not {expected}"));
        }
        self
    }

    pub(crate) fn finish(&mut self) {
        assert_eq!(self.wrong, Vec::<String>::new());
    }
}

pub(crate) fn signature(world: &World) -> Mint<'_> {
    world.mint().subject(&digest())
}
