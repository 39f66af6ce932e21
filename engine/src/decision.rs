//! Findings and the decision that they lead to.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::policy::Action;
use crate::workload::Place;

/// What a decision says.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    /// Nothing denies, and everything was judged.
    Allow,
    /// Something denies.
    Deny,
    /// There is no answer; it is never an allow.
    Error,
}

impl Verdict {
    /// Returns the stable word for this verdict.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Error => "error",
        }
    }
}

/// One rule's statement about one subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The code, `image-digest-pin`.
    pub code: String,
    /// Pack and rule, `baseline/image/digest-pin`.
    pub rule: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// What it leads to.
    pub action: Action,
    /// The component or workload.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
    /// Where.
    pub place: Place,
    /// Whether it says that the rule had no evidence to look at.
    pub unjudged: bool,
}

/// Why there is no answer about a part of the subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DecisionError {
    /// A stable kebab-case code.
    pub code: String,
    /// The component or workload; empty for the whole.
    pub subject: String,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
    /// Where.
    pub place: Place,
}

/// A pack that took part.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PackUse {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest over its files.
    pub digest: Digest,
    /// Rules that are off until a parameter is set.
    pub not_configured: Vec<String>,
}

/// The decision about one subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The workload's kind; `Component` for a bare one.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The target whose semantics were used.
    pub target: String,
    /// Findings: those that deny, then those that warn, then those for the record.
    pub findings: Vec<Finding>,
    /// Why there is no answer; empty unless the verdict is an error.
    pub errors: Vec<DecisionError>,
    /// Digests of what was judged: component name to digest of its bytes.
    pub inputs: BTreeMap<String, String>,
    /// The packs that took part.
    pub packs: Vec<PackUse>,
    /// SHA-256 of Input v1 without `mode`, `request`, `now` and `source`.
    pub decision_id: Digest,
    /// Where the workload stands in its file.
    pub place: Place,
}

impl Decision {
    /// Returns the findings that lead to `action`.
    pub fn with_action(&self, action: Action) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.action == action)
    }
}

/// Returns the verdict over several: an error over a denial over an allowance.
#[must_use]
pub fn overall(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().max().unwrap_or(Verdict::Error)
}
