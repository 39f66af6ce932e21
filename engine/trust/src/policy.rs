//! Trust policies: whose signatures and attestations count for which images.
//!
//! The types are what a policy means; reading the YAML, importing policy-controller's
//! `ClusterImagePolicy` and mapping cosign's flags all end here. Evaluation asks the verifier about
//! each candidate and each authority, and answers in three values.

mod duration;
mod evaluate;
mod flags;
mod key;
mod pattern;
mod predicate;
mod problem;
mod read;
mod rego;
mod view;

use std::collections::BTreeMap;
use std::time::Duration;

use ambit_engine::digest::Digest;
use jiff::Timestamp;
use regex::Regex;

pub(crate) use evaluate::in_time;

pub use duration::{DurationError, parse_duration};
pub use evaluate::{
    AuthorityOutcome, Evidence, Gap, LogView, Outcome, PolicyOutcome, Question, Reason,
    RejectedCandidate, TimeView, evaluate, matching,
};
pub use flags::{FlagError, FlagPolicy, Flags};
pub use key::{HashChoice, KeyError, public_keys};
pub use pattern::PatternError;
pub use predicate::{PredicateError, predicate_types};
pub use problem::{PolicyError, PolicyProblem, PolicyWarning, ProblemCode, WarningCode};
pub use read::{ReadOptions, StaticPass, TrustFile, read};
pub use view::{VERIFY_SCHEMA, VerifyDocument, VerifyImage, verify_schema};

/// The trust root of Sigstore's public instance.
pub const PUBLIC_GOOD_ROOT: &str = "public-good";

/// The trust root of GitHub's own instance, whose certificates are in no log and come with
/// timestamps.
pub const GITHUB_ROOT: &str = "github";

/// The trust roots that are built in.
pub const BUILTIN_ROOTS: [&str; 2] = [PUBLIC_GOOD_ROOT, GITHUB_ROOT];

/// A trust root under a name of its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RootDefinition {
    /// The name that policies refer to it by. One with a `/` stands for certificates that are
    /// written within an authority.
    pub name: String,
    /// Where it stands, `trust.yaml:3`; the flag for one made of flags.
    pub origin: String,
    /// What it is.
    pub source: RootSource,
}

/// What a trust root is made of. Nothing is loaded or parsed yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RootSource {
    /// The path of a `trusted_root.json`, relative to the file that names it.
    File(String),
    /// The text of a `trusted_root.json`.
    Json(String),
    /// Certificate authorities only, in PEM. Logs and timestamp authorities are those of
    /// [`PUBLIC_GOOD_ROOT`], as cosign has it.
    Certificates {
        /// Root certificates.
        roots: String,
        /// Intermediate certificates; may be empty.
        intermediates: String,
    },
}

/// One trust policy.
#[derive(Clone, Debug)]
pub struct TrustPolicy {
    /// Its name, for messages.
    pub name: String,
    /// Where it stands, `trust.yaml:3`; the flag for one made of flags.
    pub origin: String,
    /// The images that it is for.
    pub images: Vec<ImagePattern>,
    /// What an unsatisfied policy means.
    pub mode: Mode,
    /// Digests that content must have; any one will do, and none means that any content may come.
    pub pins: Vec<Pin>,
    /// How many authorities must be satisfied.
    pub require: Require,
    /// The authorities. With none the policy is never satisfied.
    pub authorities: Vec<Authority>,
    /// A Rego module over the verified output, after the authorities.
    pub rego: Option<String>,
}

/// What an unsatisfied policy means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// It denies.
    Enforce,
    /// It warns.
    Warn,
}

impl Mode {
    /// Returns the stable word for this mode.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
        }
    }
}

/// Images that a policy is for: a repository in full, in which `*` stands for characters within a
/// path segment and `**` for any characters.
#[derive(Clone, Debug)]
pub struct ImagePattern {
    /// The pattern as written.
    pub text: String,
    /// The same, to match `registry/repository` with, from start to end.
    pub regex: Regex,
}

/// A digest that content must have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pin {
    /// The manifest's digest, the one that references carry.
    Manifest(Digest),
    /// The digest of the component's bytes.
    Layer(Digest),
}

/// How many authorities must be satisfied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Require {
    /// At least one.
    Any,
    /// Each.
    All,
    /// At least so many distinct signers, over all authorities.
    Signers(u32),
}

/// Somebody whose signatures count, and what they must come with.
#[derive(Clone, Debug)]
pub struct Authority {
    /// Its name, for messages.
    pub name: String,
    /// Which forms of signature count.
    pub formats: Formats,
    /// Who signs.
    pub signer: Signer,
    /// What the transparency log must say.
    pub log: LogRule,
    /// What timestamp authorities must say.
    pub timestamp: TimestampRule,
    /// Annotations that a signature must carry.
    pub annotations: BTreeMap<String, String>,
    /// The most time between the verified time of signing and the decision.
    pub max_age: Option<Duration>,
    /// The earliest verified time of signing.
    pub not_before: Option<Timestamp>,
    /// Attestations that are needed. With none, a signature is needed.
    pub attestations: Vec<AttestationRule>,
    /// Repositories to look in beside the image's own, in full, each with a tag prefix.
    pub sources: Vec<SignatureSource>,
}

/// Which forms of signature count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Formats {
    /// `.sig` and `.att` tags.
    Legacy,
    /// Bundles.
    Bundle,
    /// Both.
    Any,
}

/// Who signs.
#[derive(Clone, Debug)]
pub enum Signer {
    /// A holder of a certificate from a trust root's authorities.
    Certificate {
        /// The trust root, by name.
        root: String,
        /// Who may sign; any one will do. With none, nobody may.
        identities: Vec<Identity>,
        /// Whether the certificate must be in a certificate transparency log.
        sct: SctRule,
    },
    /// A holder of one of these keys.
    Key {
        /// The keys; any one will do.
        keys: Vec<PublicKey>,
        /// The trust root whose logs and timestamp authorities count, by name.
        root: String,
    },
    /// No signature is asked for (`static: {action: pass}`), or none is accepted (`fail`).
    Static {
        /// Whether it passes.
        action: StaticAction,
    },
}

/// The action of a static authority.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StaticAction {
    /// Always satisfied.
    Pass,
    /// Never satisfied.
    Fail,
}

/// A public key with the hash that its signatures use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PublicKey {
    /// The SubjectPublicKeyInfo, DER.
    pub spki: Vec<u8>,
    /// The hash; signatures over another one are refused.
    pub hash: KeyHash,
}

/// The hash under a key's signatures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyHash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// Whether a certificate must be in a certificate transparency log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SctRule {
    /// It must.
    Required,
    /// It need not (`insecureIgnoreSCT`).
    Ignored,
}

/// Who may sign with a certificate. Issuer and subject must both match.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The OIDC issuer.
    pub issuer: Matcher,
    /// The one subject alternative name.
    pub subject: Matcher,
    /// Further claims of the certificate, compared exactly.
    pub claims: BTreeMap<Claim, String>,
}

/// How a text is compared. Case counts.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// The same text.
    Exact(String),
    /// A regular expression; what it must cover is already in it.
    Pattern {
        /// The pattern as written.
        text: String,
        /// The compiled pattern, anchored unless the policy says `search`.
        regex: Regex,
    },
}

impl Matcher {
    /// Tells whether `text` matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(wanted) => wanted == text,
            Self::Pattern { regex, .. } => regex.is_match(text),
        }
    }

    /// Returns the text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Pattern { text, .. } => text,
        }
    }
}

/// A claim of a Fulcio certificate
/// (<https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md>), under the key that policies
/// use for it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Claim {
    /// 1.3.6.1.4.1.57264.1.2, `githubWorkflowTrigger`.
    GithubWorkflowTrigger,
    /// 1.3.6.1.4.1.57264.1.3, `githubWorkflowSha`.
    GithubWorkflowSha,
    /// 1.3.6.1.4.1.57264.1.4, `githubWorkflowName`.
    GithubWorkflowName,
    /// 1.3.6.1.4.1.57264.1.5, `githubWorkflowRepository`.
    GithubWorkflowRepository,
    /// 1.3.6.1.4.1.57264.1.6, `githubWorkflowRef`.
    GithubWorkflowRef,
    /// 1.3.6.1.4.1.57264.1.9, `buildSignerURI`.
    BuildSignerUri,
    /// 1.3.6.1.4.1.57264.1.10, `buildSignerDigest`.
    BuildSignerDigest,
    /// 1.3.6.1.4.1.57264.1.11, `runnerEnvironment`.
    RunnerEnvironment,
    /// 1.3.6.1.4.1.57264.1.12, `sourceRepositoryURI`.
    SourceRepositoryUri,
    /// 1.3.6.1.4.1.57264.1.13, `sourceRepositoryDigest`.
    SourceRepositoryDigest,
    /// 1.3.6.1.4.1.57264.1.14, `sourceRepositoryRef`.
    SourceRepositoryRef,
    /// 1.3.6.1.4.1.57264.1.15, `sourceRepositoryIdentifier`.
    SourceRepositoryIdentifier,
    /// 1.3.6.1.4.1.57264.1.16, `sourceRepositoryOwnerURI`.
    SourceRepositoryOwnerUri,
    /// 1.3.6.1.4.1.57264.1.17, `sourceRepositoryOwnerIdentifier`.
    SourceRepositoryOwnerIdentifier,
    /// 1.3.6.1.4.1.57264.1.18, `buildConfigURI`.
    BuildConfigUri,
    /// 1.3.6.1.4.1.57264.1.19, `buildConfigDigest`.
    BuildConfigDigest,
    /// 1.3.6.1.4.1.57264.1.20, `buildTrigger`.
    BuildTrigger,
    /// 1.3.6.1.4.1.57264.1.21, `runInvocationURI`.
    RunInvocationUri,
    /// 1.3.6.1.4.1.57264.1.22, `sourceRepositoryVisibilityAtSigning`.
    SourceRepositoryVisibility,
    /// 1.3.6.1.4.1.57264.1.23, `deploymentEnvironment`.
    DeploymentEnvironment,
}

impl Claim {
    /// Every claim, in the order of the object identifiers.
    pub const ALL: [Self; 20] = [
        Self::GithubWorkflowTrigger,
        Self::GithubWorkflowSha,
        Self::GithubWorkflowName,
        Self::GithubWorkflowRepository,
        Self::GithubWorkflowRef,
        Self::BuildSignerUri,
        Self::BuildSignerDigest,
        Self::RunnerEnvironment,
        Self::SourceRepositoryUri,
        Self::SourceRepositoryDigest,
        Self::SourceRepositoryRef,
        Self::SourceRepositoryIdentifier,
        Self::SourceRepositoryOwnerUri,
        Self::SourceRepositoryOwnerIdentifier,
        Self::BuildConfigUri,
        Self::BuildConfigDigest,
        Self::BuildTrigger,
        Self::RunInvocationUri,
        Self::SourceRepositoryVisibility,
        Self::DeploymentEnvironment,
    ];

    /// Returns the key in policies.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::GithubWorkflowTrigger => "githubWorkflowTrigger",
            Self::GithubWorkflowSha => "githubWorkflowSha",
            Self::GithubWorkflowName => "githubWorkflowName",
            Self::GithubWorkflowRepository => "githubWorkflowRepository",
            Self::GithubWorkflowRef => "githubWorkflowRef",
            Self::BuildSignerUri => "buildSignerURI",
            Self::BuildSignerDigest => "buildSignerDigest",
            Self::RunnerEnvironment => "runnerEnvironment",
            Self::SourceRepositoryUri => "sourceRepositoryURI",
            Self::SourceRepositoryDigest => "sourceRepositoryDigest",
            Self::SourceRepositoryRef => "sourceRepositoryRef",
            Self::SourceRepositoryIdentifier => "sourceRepositoryIdentifier",
            Self::SourceRepositoryOwnerUri => "sourceRepositoryOwnerURI",
            Self::SourceRepositoryOwnerIdentifier => "sourceRepositoryOwnerIdentifier",
            Self::BuildConfigUri => "buildConfigURI",
            Self::BuildConfigDigest => "buildConfigDigest",
            Self::BuildTrigger => "buildTrigger",
            Self::RunInvocationUri => "runInvocationURI",
            Self::SourceRepositoryVisibility => "sourceRepositoryVisibilityAtSigning",
            Self::DeploymentEnvironment => "deploymentEnvironment",
        }
    }
}

/// What the transparency log must say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogRule {
    /// A verified inclusion proof.
    Proof,
    /// A verified inclusion proof or a verified promise (SET).
    ProofOrPromise,
    /// Nothing. What is there must still be consistent.
    Unasked,
}

/// What timestamp authorities must say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimestampRule {
    /// Nothing. What is there must verify.
    Optional,
    /// At least one verified timestamp.
    Required,
}

/// An attestation that is needed.
#[derive(Clone, Debug)]
pub struct AttestationRule {
    /// Its name, for messages.
    pub name: String,
    /// The predicate types, any one of them; compared exactly.
    pub predicate_types: Vec<String>,
    /// A Rego module over the attestation's statement.
    pub rego: Option<String>,
}

/// A repository to look for signatures in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SignatureSource {
    /// The repository in full.
    pub repository: String,
    /// What stands before the tag.
    pub tag_prefix: String,
}
