//! Cosign's flags as a trust policy.
//!
//! The names are cosign's, and so is what they ask for, with two differences: an expression has to
//! cover the whole name, and a flag that would have no effect is an error.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::duration::parse_duration;
use super::key::{HashChoice, public_keys};
use super::predicate::predicate_types;
use super::read::{Cover, matcher};
use super::{
    AttestationRule, Authority, BUILTIN_ROOTS, Claim, Formats, GITHUB_ROOT, Identity, ImagePattern,
    LogRule, Matcher, Mode, PUBLIC_GOOD_ROOT, Require, RootDefinition, RootSource, SctRule, Signer,
    TimestampRule, TrustPolicy, problem::WarningCode,
};

/// What was given on the command line. Files are read by whoever fills this in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Flags {
    /// `--key`: public keys in PEM.
    pub key_pem: Option<String>,
    /// `--signature-digest-algorithm`.
    pub key_hash: HashChoice,
    /// `--certificate-identity`.
    pub certificate_identity: Option<String>,
    /// `--certificate-identity-regexp`.
    pub certificate_identity_regexp: Option<String>,
    /// `--certificate-oidc-issuer`.
    pub certificate_oidc_issuer: Option<String>,
    /// `--certificate-oidc-issuer-regexp`.
    pub certificate_oidc_issuer_regexp: Option<String>,
    /// `--certificate-github-workflow-…`, and other claims.
    pub claims: BTreeMap<Claim, String>,
    /// `--trusted-root`: the name of a trust root.
    pub trusted_root: Option<String>,
    /// `--ca-roots`: certificates in PEM.
    pub ca_roots: Option<String>,
    /// `--ca-intermediates`: certificates in PEM.
    pub ca_intermediates: Option<String>,
    /// `--insecure-ignore-tlog`.
    pub insecure_ignore_tlog: bool,
    /// `--insecure-ignore-sct`.
    pub insecure_ignore_sct: bool,
    /// `--use-signed-timestamps`.
    pub use_signed_timestamps: bool,
    /// `--annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `--type`: predicate types, each of which is asked for.
    pub types: Vec<String>,
    /// `--max-age`.
    pub max_age: Option<String>,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            key_pem: None,
            key_hash: HashChoice::Unnamed,
            certificate_identity: None,
            certificate_identity_regexp: None,
            certificate_oidc_issuer: None,
            certificate_oidc_issuer_regexp: None,
            claims: BTreeMap::new(),
            trusted_root: None,
            ca_roots: None,
            ca_intermediates: None,
            insecure_ignore_tlog: false,
            insecure_ignore_sct: false,
            use_signed_timestamps: false,
            annotations: BTreeMap::new(),
            types: Vec::new(),
            max_age: None,
        }
    }
}

/// A policy that flags make.
#[derive(Clone, Debug)]
pub struct FlagPolicy {
    /// The policy, for every image.
    pub policy: TrustPolicy,
    /// The trust root that `--ca-roots` makes.
    pub root: Option<RootDefinition>,
    /// Flags that work and that their author may not have meant, each with a code.
    pub warnings: Vec<(WarningCode, String)>,
}

/// Why flags make no policy.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlagError {
    /// Nothing says whose signatures count.
    #[error("nothing says whose signatures count")]
    NoSigner,
    /// A flag asks for another one.
    #[error("`{flag}` is missing beside `{beside}`")]
    Missing {
        /// The flag to add.
        flag: &'static str,
        /// The flag that asks for it.
        beside: &'static str,
    },
    /// Two flags can't be given together.
    #[error("`{first}` and `{second}` can't be given together")]
    Conflict {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A flag would change nothing.
    #[error("`{flag}` has no effect {why}")]
    NoEffect {
        /// The flag.
        flag: &'static str,
        /// Why.
        why: &'static str,
    },
    /// A value can't be used.
    #[error("`{flag}`: {message}")]
    Value {
        /// The flag.
        flag: &'static str,
        /// What is wrong with its value.
        message: String,
        /// What to do.
        help: String,
    },
    /// Nothing could say when a signature was made.
    #[error("nothing would say when a signature was made, which `{flag}` asks for")]
    NoTime {
        /// The flag.
        flag: &'static str,
    },
}

impl FlagError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSigner
            | Self::Missing { .. }
            | Self::Conflict { .. }
            | Self::NoEffect { .. }
            | Self::Value { .. }
            | Self::NoTime { .. } => "trust-flags",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::NoSigner => {
                "add `--key FILE`, or `--certificate-identity` with `--certificate-oidc-issuer`"
                    .to_owned()
            }
            Self::Missing { flag, .. } => format!("add `{flag}`"),
            Self::Conflict { .. } => "keep one of the two".to_owned(),
            Self::NoEffect { flag, .. } => format!("leave `{flag}` out"),
            Self::Value { help, .. } => help.clone(),
            Self::NoTime { .. } => {
                "add `--use-signed-timestamps`, or leave `--insecure-ignore-tlog` out".to_owned()
            }
        }
    }
}

const KEY: &str = "--key";
const IDENTITY: &str = "--certificate-identity";
const IDENTITY_REGEXP: &str = "--certificate-identity-regexp";
const ISSUER: &str = "--certificate-oidc-issuer";
const ISSUER_REGEXP: &str = "--certificate-oidc-issuer-regexp";
const CLAIMS: &str = "--certificate-github-workflow-*";
const ROOT: &str = "--trusted-root";
const CA_ROOTS: &str = "--ca-roots";
const CA_INTERMEDIATES: &str = "--ca-intermediates";
const IGNORE_SCT: &str = "--insecure-ignore-sct";
const HASH: &str = "--signature-digest-algorithm";
const ANNOTATIONS: &str = "--annotations";
const TYPE: &str = "--type";
const MAX_AGE: &str = "--max-age";

/// The name of the root that `--ca-roots` makes; no document can define one with a slash.
const FLAG_ROOT: &str = "flags/ca-roots";

impl Flags {
    /// Returns the policy that the flags ask for, in mode `enforce`.
    ///
    /// # Errors
    ///
    /// [`FlagError`], which names the flag to add, change or leave out.
    pub fn policy(&self) -> Result<FlagPolicy, FlagError> {
        let root = self.root()?;
        let root_name = match (&root, &self.trusted_root) {
            (Some(root), _) => root.name.clone(),
            (None, Some(name)) => name.clone(),
            (None, None) => PUBLIC_GOOD_ROOT.to_owned(),
        };
        let private = root_name == GITHUB_ROOT;
        let mut warnings = Vec::new();
        let signer = self.signer(root_name, &mut warnings)?;
        let log = if self.insecure_ignore_tlog || private {
            LogRule::Unasked
        } else {
            LogRule::ProofOrPromise
        };
        let timestamp = if self.use_signed_timestamps || private {
            TimestampRule::Required
        } else {
            TimestampRule::Optional
        };
        if log == LogRule::Unasked && timestamp == TimestampRule::Optional {
            if matches!(signer, Signer::Certificate { .. }) {
                return Err(FlagError::NoTime { flag: self.identity_flag() });
            }
            if self.max_age.is_some() {
                return Err(FlagError::NoTime { flag: MAX_AGE });
            }
        }
        let attestations = self.attestations()?;
        if !attestations.is_empty() && !self.annotations.is_empty() {
            let why = "beside `--type`, since attestations carry none";
            return Err(FlagError::NoEffect { flag: ANNOTATIONS, why });
        }
        let max_age = match &self.max_age {
            None => None,
            Some(text) => Some(parse_duration(text).map_err(|error| FlagError::Value {
                flag: MAX_AGE,
                message: error.to_string(),
                help: error.help().to_owned(),
            })?),
        };
        let name = match &signer {
            Signer::Key { .. } => "key",
            Signer::Certificate { .. } => "certificate",
            Signer::Static { .. } => "static",
        };
        let every = ImagePattern::parse("**").map_err(|error| FlagError::Value {
            flag: KEY,
            message: error.to_string(),
            help: error.help().to_owned(),
        })?;
        let authority = Authority {
            name: name.to_owned(),
            formats: Formats::Any,
            signer,
            log,
            timestamp,
            annotations: self.annotations.clone(),
            max_age,
            not_before: None,
            attestations,
            sources: Vec::new(),
        };
        let origin = if name == "key" { KEY } else { self.identity_flag() };
        let policy = TrustPolicy {
            name: "flags".to_owned(),
            origin: origin.to_owned(),
            images: vec![every],
            mode: Mode::Enforce,
            pins: Vec::new(),
            require: Require::Any,
            authorities: vec![authority],
            rego: None,
        };
        Ok(FlagPolicy { policy, root, warnings })
    }

    fn identity_flag(&self) -> &'static str {
        if self.certificate_identity_regexp.is_some() { IDENTITY_REGEXP } else { IDENTITY }
    }

    fn root(&self) -> Result<Option<RootDefinition>, FlagError> {
        let pem = |flag: &'static str, text: &str| {
            if text.contains("-----BEGIN CERTIFICATE-----") && !text.contains("PRIVATE KEY-----") {
                return Ok(text.to_owned());
            }
            Err(FlagError::Value {
                flag,
                message: "the file holds no certificates, or more than that".to_owned(),
                help: "give certificates in PEM, `-----BEGIN CERTIFICATE-----`".to_owned(),
            })
        };
        match (&self.ca_roots, &self.ca_intermediates) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(FlagError::Missing { flag: CA_ROOTS, beside: CA_INTERMEDIATES }),
            (Some(_), _) if self.trusted_root.is_some() => {
                Err(FlagError::Conflict { first: ROOT, second: CA_ROOTS })
            }
            (Some(roots), intermediates) => {
                let roots = pem(CA_ROOTS, roots)?;
                let intermediates = match intermediates {
                    Some(text) => pem(CA_INTERMEDIATES, text)?,
                    None => String::new(),
                };
                Ok(Some(RootDefinition {
                    name: FLAG_ROOT.to_owned(),
                    origin: CA_ROOTS.to_owned(),
                    source: RootSource::Certificates { roots, intermediates },
                }))
            }
        }
    }

    /// Returns the first flag that is about certificates, if one is given.
    fn certificate_flag(&self) -> Option<&'static str> {
        [
            (self.certificate_identity.is_some(), IDENTITY),
            (self.certificate_identity_regexp.is_some(), IDENTITY_REGEXP),
            (self.certificate_oidc_issuer.is_some(), ISSUER),
            (self.certificate_oidc_issuer_regexp.is_some(), ISSUER_REGEXP),
        ]
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
    }

    fn signer(
        &self,
        root: String,
        warnings: &mut Vec<(WarningCode, String)>,
    ) -> Result<Signer, FlagError> {
        let certificate = self.certificate_flag();
        if let Some(pem) = &self.key_pem {
            if let Some(second) = certificate {
                return Err(FlagError::Conflict { first: KEY, second });
            }
            let why = "beside `--key`, since a key has no certificate";
            for (given, flag) in [
                (!self.claims.is_empty(), CLAIMS),
                (self.ca_roots.is_some(), CA_ROOTS),
                (self.insecure_ignore_sct, IGNORE_SCT),
            ] {
                if given {
                    return Err(FlagError::NoEffect { flag, why });
                }
            }
            let keys = public_keys(pem, self.key_hash).map_err(|error| FlagError::Value {
                flag: KEY,
                message: error.to_string(),
                help: error.help().to_owned(),
            })?;
            return Ok(Signer::Key { keys, root });
        }
        let Some(given) = certificate else { return Err(FlagError::NoSigner) };
        if self.key_hash != HashChoice::Unnamed {
            let why = "without `--key`";
            return Err(FlagError::NoEffect { flag: HASH, why });
        }
        let subject = name(
            (IDENTITY, &self.certificate_identity),
            (IDENTITY_REGEXP, &self.certificate_identity_regexp),
            given,
            warnings,
        )?;
        let issuer = name(
            (ISSUER, &self.certificate_oidc_issuer),
            (ISSUER_REGEXP, &self.certificate_oidc_issuer_regexp),
            given,
            warnings,
        )?;
        let ignored = self.insecure_ignore_sct || root == GITHUB_ROOT;
        let sct = if ignored { SctRule::Ignored } else { SctRule::Required };
        let identities = vec![Identity { issuer, subject, claims: self.claims.clone() }];
        Ok(Signer::Certificate { root, identities, sct })
    }

    fn attestations(&self) -> Result<Vec<AttestationRule>, FlagError> {
        let mut rules: Vec<AttestationRule> = Vec::new();
        for text in &self.types {
            let predicate_types = predicate_types(text).map_err(|error| FlagError::Value {
                flag: TYPE,
                message: error.to_string(),
                help: error.help(),
            })?;
            if rules.iter().any(|rule| rule.predicate_types == predicate_types) {
                let why = "a second time with the same type";
                return Err(FlagError::NoEffect { flag: TYPE, why });
            }
            rules.push(AttestationRule { name: text.clone(), predicate_types, rego: None });
        }
        Ok(rules)
    }

    /// Tells whether the name of the trust root has to be looked up among those that are defined.
    #[must_use]
    pub fn asks_for_root(&self) -> Option<&str> {
        self.trusted_root.as_deref().filter(|name| !BUILTIN_ROOTS.contains(name))
    }
}

fn name(
    (exact_flag, exact): (&'static str, &Option<String>),
    (regexp_flag, regexp): (&'static str, &Option<String>),
    beside: &'static str,
    warnings: &mut Vec<(WarningCode, String)>,
) -> Result<Matcher, FlagError> {
    let value = |flag: &'static str, message: String| FlagError::Value {
        flag,
        message,
        help: "write the name, or an expression that covers all of it".to_owned(),
    };
    match (exact, regexp) {
        (Some(_), Some(_)) => Err(FlagError::Conflict { first: exact_flag, second: regexp_flag }),
        (None, None) => Err(FlagError::Missing { flag: exact_flag, beside }),
        (Some(text), None) if text.trim().is_empty() => {
            Err(value(exact_flag, "the name is empty".to_owned()))
        }
        (Some(text), None) => Ok(Matcher::Exact(text.clone())),
        (None, Some(text)) => {
            let matcher = matcher(text, Cover::Full)
                .map_err(|error| value(regexp_flag, error.to_string()))?;
            if matcher.matches("") {
                let message = format!("`{regexp_flag}` matches every name");
                warnings.push((WarningCode::Any, message));
            }
            Ok(matcher)
        }
    }
}
