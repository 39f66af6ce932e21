//! Whose evidence counts: trust policies from files, or from cosign's flags, with their roots.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ambit_engine::digest::Digest;
use ambit_trust::gather::Terms;
use ambit_trust::policy::{
    self, Claim, Flags, PUBLIC_GOOD_ROOT, PolicyError, ReadOptions, RootDefinition, RootSource,
    TrustPolicy,
};
use ambit_trust::verify::{RootError, Roots, TrustRoot};
use jiff::Timestamp;

use crate::args::{CosignFlags, Trust};
use crate::commands::artifact::annotation;
use crate::configuration::Configuration;
use crate::output::{Failure, Output};
use crate::render::snippet::{Head, Message, render};
use crate::source::read_file;

/// The largest trust policy or trust root file, in bytes.
const MAX_FILE_BYTES: usize = 4 << 20;

/// Policies and roots, at a time.
pub(crate) struct Trusted {
    pub(crate) policies: Vec<TrustPolicy>,
    pub(crate) roots: Roots,
    pub(crate) now: Timestamp,
    /// What authors may not have meant: code, message, help.
    warnings: Vec<(String, String, String)>,
}

fn root_failure(error: &RootError) -> Failure {
    Failure::new(error.code(), error.to_string(), Some(error.help().to_owned()))
}

impl Trusted {
    /// Reads what flags and configuration name.
    pub(crate) fn read(
        arguments: &Trust,
        configuration: &mut Configuration,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let mut trusted = Self {
            policies: Vec::new(),
            roots: roots(arguments, configuration)?,
            now,
            warnings: Vec::new(),
        };
        let configured = configuration.config.trust.clone();
        let configured = configured.iter().map(|path| configuration.base().join(path));
        let files: Vec<PathBuf> = configured.chain(arguments.trust.iter().cloned()).collect();
        for path in files {
            trusted.file(&path, configuration)?;
        }
        Ok(trusted)
    }

    fn file(&mut self, path: &Path, configuration: &mut Configuration) -> Result<(), Failure> {
        let name = path.display().to_string();
        let bytes = read_file(path, MAX_FILE_BYTES)?;
        configuration.digests.insert(name.clone(), Digest::of(&bytes).to_string());
        let known: BTreeSet<String> =
            self.roots.iter().map(|root| root.name().to_owned()).collect();
        let options = ReadOptions { roots: known, ..ReadOptions::default() };
        let file = policy::read(&name, &bytes, &options)
            .map_err(|error| policy_failure(&name, &bytes, &error))?;
        let base = path.parent().unwrap_or(Path::new(""));
        for root in &file.roots {
            self.root(root, base, configuration)?;
        }
        for policy in file.policies {
            if let Some(other) = self.policies.iter().find(|other| other.name == policy.name) {
                return Err(Failure::new(
                    "trust-policy-field",
                    format!(
                        "{}: `{}` is the name of the policy at {} too",
                        policy.origin, policy.name, other.origin
                    ),
                    Some("give it another name".to_owned()),
                ));
            }
            self.policies.push(policy);
        }
        self.warnings.extend(file.warnings.into_iter().map(|warning| {
            let place = warning.span.start();
            let message = format!("{name}:{place}: {}", warning.message);
            (warning.code.as_str().to_owned(), message, warning.help)
        }));
        Ok(())
    }

    fn root(
        &mut self,
        root: &RootDefinition,
        base: &Path,
        configuration: &mut Configuration,
    ) -> Result<(), Failure> {
        let made = match &root.source {
            RootSource::File(path) => {
                let path = base.join(path);
                let bytes = read_file(&path, MAX_FILE_BYTES)?;
                let digest = Digest::of(&bytes).to_string();
                configuration.digests.insert(path.display().to_string(), digest);
                TrustRoot::from_json(&root.name, &bytes)
            }
            RootSource::Json(text) => TrustRoot::from_json(&root.name, text.as_bytes()),
            RootSource::Certificates { roots, intermediates } => {
                match self.roots.get(PUBLIC_GOOD_ROOT) {
                    Some(good) => good.with_certificates(&root.name, roots, intermediates),
                    None => TrustRoot::from_certificates(&root.name, roots, intermediates),
                }
            }
        };
        let made = made.map_err(|error| {
            let mut failure = root_failure(&error);
            failure.message = format!("{}: {}", root.origin, failure.message);
            failure
        })?;
        self.roots.insert(made);
        Ok(())
    }

    /// Replaces the policies by the one that cosign's flags ask for.
    pub(crate) fn flags(
        &mut self,
        given: &GivenFlags,
        configuration: &mut Configuration,
    ) -> Result<(), Failure> {
        let flags = &given.flags;
        let made = flags
            .policy()
            .map_err(|error| Failure::new(error.code(), error.to_string(), Some(error.help())))?;
        match (&made.root, &given.chain, self.roots.get(PUBLIC_GOOD_ROOT)) {
            (Some(root), Some(chain), Some(good)) => {
                let made = good.with_chain(&root.name, chain);
                self.roots.insert(made.map_err(|error| root_failure(&error))?);
            }
            (Some(root), _, _) => self.root(root, Path::new(""), configuration)?,
            (None, _, _) => {}
        }
        self.policies = vec![made.policy];
        self.warnings.extend(made.warnings.into_iter().map(|(code, message)| {
            (code.as_str().to_owned(), message, "name it exactly".to_owned())
        }));
        Ok(())
    }

    /// Prints what authors may not have meant.
    pub(crate) fn warn(&self, output: &Output) {
        for (code, message, help) in &self.warnings {
            output.warning(code, message, help);
        }
    }

    /// The terms of verification.
    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms { policies: &self.policies, roots: &self.roots, now: self.now }
    }
}

/// The built-in roots, with the public-good one replaced where a file or an update is asked for.
fn roots(arguments: &Trust, configuration: &mut Configuration) -> Result<Roots, Failure> {
    let mut roots = Roots::builtin().map_err(|error| root_failure(&error))?;
    if let Some(path) = &arguments.trusted_root {
        if arguments.update_trust_root {
            return Err(Failure::new(
                "usage-trust-root",
                "`--trusted-root` and `--update-trust-root` can't be given together",
                Some("keep one of the two".to_owned()),
            ));
        }
        let bytes = read_file(path, MAX_FILE_BYTES)?;
        let name = path.display().to_string();
        configuration.digests.insert(name, Digest::of(&bytes).to_string());
        let root = TrustRoot::from_json(PUBLIC_GOOD_ROOT, &bytes);
        roots.insert(root.map_err(|error| root_failure(&error))?);
    }
    if arguments.update_trust_root {
        let bytes = super::update::public_good()?;
        let digest = Digest::of(&bytes).to_string();
        configuration.digests.insert("trust root public-good".to_owned(), digest);
        let root = TrustRoot::from_json(PUBLIC_GOOD_ROOT, &bytes);
        roots.insert(root.map_err(|error| root_failure(&error))?);
    }
    Ok(roots)
}

/// Every mistake of a policy file with its line.
fn policy_failure(name: &str, bytes: &[u8], error: &PolicyError) -> Failure {
    let mut message = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        message = format!("{message}: {source}");
    }
    let mut failure = Failure::new(error.code(), message, error.help());
    if let (PolicyError::Fields { problems, .. }, Ok(text)) = (error, std::str::from_utf8(bytes)) {
        let shown: Vec<String> = problems
            .iter()
            .map(|problem| {
                render(
                    &Message {
                        head: Head::Error,
                        code: problem.code.as_str(),
                        message: &problem.message,
                        rule: None,
                        help: problem.help.as_deref().unwrap_or_default(),
                        source: Some((name, text, problem.span)),
                        file: name,
                    },
                    false,
                )
            })
            .collect();
        failure.snippet = Some(shown.join("\n"));
    }
    failure
}

/// Cosign's flags, with the files that they name read.
pub(crate) struct GivenFlags {
    flags: Flags,
    /// `--certificate-chain`: from the signer's issuer to the root.
    chain: Option<String>,
}

/// Reads the files that cosign's flags name. `None` if there is no such flag.
pub(crate) fn flags(arguments: &CosignFlags, trust: &Trust) -> Result<Option<GivenFlags>, Failure> {
    let mut flags = Flags::default();
    let text = |path: &Path| -> Result<String, Failure> {
        String::from_utf8(read_file(path, MAX_FILE_BYTES)?).map_err(|_| {
            let message = format!("{} is no text", path.display());
            Failure::new("trust-flags", message, Some("give a PEM file".to_owned()))
        })
    };
    flags.key_pem = match &arguments.key {
        Some(key) => Some(public_key(key)?),
        None => None,
    };
    flags.certificate_identity.clone_from(&arguments.certificate_identity);
    flags.certificate_identity_regexp.clone_from(&arguments.certificate_identity_regexp);
    flags.certificate_oidc_issuer.clone_from(&arguments.certificate_oidc_issuer);
    flags.certificate_oidc_issuer_regexp.clone_from(&arguments.certificate_oidc_issuer_regexp);
    let claims = [
        (Claim::GithubWorkflowTrigger, &arguments.certificate_github_workflow_trigger),
        (Claim::GithubWorkflowSha, &arguments.certificate_github_workflow_sha),
        (Claim::GithubWorkflowName, &arguments.certificate_github_workflow_name),
        (Claim::GithubWorkflowRepository, &arguments.certificate_github_workflow_repository),
        (Claim::GithubWorkflowRef, &arguments.certificate_github_workflow_ref),
    ];
    for (claim, value) in claims {
        if let Some(value) = value {
            flags.claims.insert(claim, value.clone());
        }
    }
    let chain = match &arguments.certificate_chain {
        Some(path) => Some(text(path)?),
        None => None,
    };
    flags.ca_roots = match &arguments.ca_roots {
        Some(path) => Some(text(path)?),
        None => chain.clone(),
    };
    flags.ca_intermediates = match &arguments.ca_intermediates {
        Some(path) => Some(text(path)?),
        None => None,
    };
    flags.insecure_ignore_tlog = arguments.insecure_ignore_tlog;
    flags.insecure_ignore_sct = arguments.insecure_ignore_sct;
    flags.use_signed_timestamps = arguments.use_signed_timestamps;
    for pair in &arguments.annotations {
        let (key, value) = annotation(pair)?;
        flags.annotations.insert(key, value);
    }
    flags.types.extend(arguments.predicate_type.clone());
    flags.max_age.clone_from(&arguments.max_age);
    if flags == Flags::default() {
        return Ok(None);
    }
    if trust.trusted_root.is_some() && flags.ca_roots.is_none() {
        flags.trusted_root = Some(PUBLIC_GOOD_ROOT.to_owned());
    }
    Ok(Some(GivenFlags { flags, chain }))
}

/// Reads a public key: a file, or `env://VARIABLE`.
fn public_key(key: &str) -> Result<String, Failure> {
    if let Some(variable) = key.strip_prefix("env://") {
        return std::env::var(variable).map_err(|_| {
            let message = format!("`--key {key}`: the variable is not set");
            Failure::new("trust-flags", message, Some(format!("set `{variable}`")))
        });
    }
    if let Some((scheme, _)) = key.split_once("://") {
        return Err(Failure::new(
            "trust-flags",
            format!("`--key {key}`: keys of `{scheme}` can't be read"),
            Some("export the public key and name the PEM file".to_owned()),
        ));
    }
    let bytes = read_file(Path::new(key), MAX_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(|_| {
        let message = format!("`--key {key}` is no text");
        Failure::new("trust-flags", message, Some("give a PEM file".to_owned()))
    })
}
