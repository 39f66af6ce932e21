//! Rego policies: packs, their rules, and a bounded evaluation.
//!
//! Everything of the Rego engine stays behind this module: no type of it is public. Policies see
//! the input document and their own parameters, and nothing else: no clock, no network, no
//! environment, no randomness. Recursion is refused when a pack is loaded, builtins that could
//! allocate without bound are replaced by capped ones, and evaluation runs on its own thread with a
//! large stack, a timer, and panics caught. Whatever goes wrong is an [`EvaluationError`], never an
//! empty result.

mod builtins;
mod callgraph;
mod evaluate;
mod metadata;
mod module;
mod nesting;
mod pack;
mod sprintf;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use evaluate::{EvaluationError, PolicySet, RawFinding, TestOutcome};
pub use metadata::RuleInfo;
pub use module::{check_module, evaluate_module};
pub use pack::{Origin, Pack, PackError, PackFile, Parameter, embedded};

/// What a finding of a rule leads to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Action {
    /// The subject is denied.
    Deny,
    /// Somebody is told.
    Warn,
    /// It is on record.
    Audit,
    /// The rule isn't asked.
    Off,
}

impl Action {
    /// Returns the stable word for this action.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Audit => "audit",
            Self::Off => "off",
        }
    }

    /// Reads the word of a pack's profile (`deny`) or of a configuration (`enforce`).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "deny" | "enforce" => Some(Self::Deny),
            "warn" => Some(Self::Warn),
            "audit" => Some(Self::Audit),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which actions the rules of the shipped packs have.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Profile {
    /// What nobody should run denies; what somebody should know warns.
    #[default]
    Baseline,
    /// Both deny.
    Strict,
}

impl Profile {
    /// Returns the stable word for this profile.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Strict => "strict",
        }
    }

    /// Reads the word of a profile.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "baseline" => Some(Self::Baseline),
            "strict" => Some(Self::Strict),
            _ => None,
        }
    }
}

/// Parameters by pack, then by name.
pub type Parameters = BTreeMap<String, BTreeMap<String, serde_json::Value>>;

/// Bounds on evaluation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PolicyLimits {
    /// Time for the rules of one head (`deny`, `warn`, …) of one pack. Default 200 ms.
    pub max_time: Duration,
    /// Findings over all rules. Default 4 096.
    pub max_findings: usize,
    /// Bytes of one policy file. Default 1 MiB.
    pub max_file_bytes: usize,
    /// Files of one pack. Default 256.
    pub max_files: usize,
}

impl Default for PolicyLimits {
    fn default() -> Self {
        Self {
            max_time: Duration::from_millis(200),
            max_findings: 4_096,
            max_file_bytes: 1 << 20,
            max_files: 256,
        }
    }
}
