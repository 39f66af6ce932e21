//! Whose evidence counts: trust policies from files, with the roots that they name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ambit_engine::digest::Digest;
use ambit_trust::gather::Terms;
use ambit_trust::policy::{
    self, PUBLIC_GOOD_ROOT, PolicyError, ReadOptions, RootDefinition, RootSource, TrustPolicy,
};
use ambit_trust::verify::{RootError, Roots, TrustRoot};
use jiff::Timestamp;

use crate::{Configuration, Failure, Files, Spot};

/// The largest trust policy or trust root file, in bytes.
const MAX_FILE_BYTES: usize = 4 << 20;

/// What is given in place of the built-in public-good root.
#[derive(Clone, Debug)]
pub enum PublicGood {
    /// A `trusted_root.json`.
    File(PathBuf),
    /// One that was fetched.
    Fetched(Vec<u8>),
}

/// What a front end gives beside the configuration.
#[derive(Clone, Debug, Default)]
pub struct Given<'a> {
    /// Trust policy files, after those of the configuration.
    pub files: &'a [PathBuf],
    /// In place of the built-in public-good root.
    pub public_good: Option<PublicGood>,
}

/// Policies and roots.
#[derive(Debug)]
pub struct Trusted {
    /// The policies; names are distinct.
    pub policies: Vec<TrustPolicy>,
    /// The roots that they name.
    pub roots: Roots,
    /// What authors may not have meant: code, message, help.
    pub warnings: Vec<(String, String, String)>,
}

fn root_failure(error: &RootError) -> Failure {
    Failure::new(error.code(), error.to_string(), Some(error.help().to_owned()))
}

impl Trusted {
    /// Reads what configuration and front end name. Digests of all files go into the configuration.
    ///
    /// # Errors
    ///
    /// [`Failure`] for the first file that can't be read, with each of its mistakes.
    pub fn read(
        given: &Given<'_>,
        configuration: &mut Configuration,
        files: &mut Files,
    ) -> Result<Self, Failure> {
        let mut trusted = Self {
            policies: Vec::new(),
            roots: roots(given, configuration, files)?,
            warnings: Vec::new(),
        };
        let configured = configuration.config.trust.clone();
        let configured = configured.iter().map(|path| configuration.base().join(path));
        let paths: Vec<PathBuf> = configured.chain(given.files.iter().cloned()).collect();
        for path in paths {
            trusted.file(&path, configuration, files)?;
        }
        Ok(trusted)
    }

    fn file(
        &mut self,
        path: &Path,
        configuration: &mut Configuration,
        files: &mut Files,
    ) -> Result<(), Failure> {
        let name = path.display().to_string();
        let bytes = files.read(path, MAX_FILE_BYTES)?;
        configuration.digests.insert(name.clone(), Digest::of(&bytes).to_string());
        let known: BTreeSet<String> =
            self.roots.iter().map(|root| root.name().to_owned()).collect();
        let options = ReadOptions { roots: known, ..ReadOptions::default() };
        let file = policy::read(&name, &bytes, &options)
            .map_err(|error| policy_failure(&name, &bytes, &error))?;
        let base = path.parent().unwrap_or(Path::new(""));
        for root in &file.roots {
            self.root(root, base, configuration, files)?;
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

    /// Adds a root, whose files count from `base`.
    ///
    /// # Errors
    ///
    /// [`Failure`] if a file can't be read, or if there is no root in it.
    pub fn root(
        &mut self,
        root: &RootDefinition,
        base: &Path,
        configuration: &mut Configuration,
        files: &mut Files,
    ) -> Result<(), Failure> {
        let made = match &root.source {
            RootSource::File(path) => {
                let path = base.join(path);
                let bytes = files.read(&path, MAX_FILE_BYTES)?;
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

    /// Adds the public-good root with other certificates: from a signer's issuer to the root.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the certificates are no chain.
    pub fn chained(&mut self, name: &str, chain: &str) -> Result<(), Failure> {
        let made = match self.roots.get(PUBLIC_GOOD_ROOT) {
            Some(good) => good.with_chain(name, chain),
            None => Err(RootError::Invalid {
                name: name.to_owned(),
                reason: format!("there is no root `{PUBLIC_GOOD_ROOT}` whose logs it could use"),
            }),
        };
        self.roots.insert(made.map_err(|error| root_failure(&error))?);
        Ok(())
    }

    /// The terms of verification at a time.
    #[must_use]
    pub fn terms(&self, now: Timestamp) -> Terms<'_> {
        Terms { policies: &self.policies, roots: &self.roots, now }
    }
}

/// The built-in roots, with the public-good one replaced where another is given.
fn roots(
    given: &Given<'_>,
    configuration: &mut Configuration,
    files: &mut Files,
) -> Result<Roots, Failure> {
    let mut roots = Roots::builtin().map_err(|error| root_failure(&error))?;
    let (name, bytes) = match &given.public_good {
        None => return Ok(roots),
        Some(PublicGood::File(path)) => {
            (path.display().to_string(), files.read(path, MAX_FILE_BYTES)?)
        }
        Some(PublicGood::Fetched(bytes)) => ("trust root public-good".to_owned(), bytes.clone()),
    };
    configuration.digests.insert(name, Digest::of(&bytes).to_string());
    let root = TrustRoot::from_json(PUBLIC_GOOD_ROOT, &bytes);
    roots.insert(root.map_err(|error| root_failure(&error))?);
    Ok(roots)
}

/// Every mistake of a policy file with its place.
fn policy_failure(name: &str, bytes: &[u8], error: &PolicyError) -> Failure {
    let mut failure = Failure::of(error, error.code(), error.help());
    if let (PolicyError::Fields { problems, .. }, Ok(text)) = (error, std::str::from_utf8(bytes)) {
        failure.spots = problems
            .iter()
            .map(|problem| Spot {
                code: problem.code.as_str().to_owned(),
                message: problem.message.clone(),
                help: problem.help.clone().unwrap_or_default(),
                file: name.to_owned(),
                text: text.to_owned(),
                span: problem.span,
            })
            .collect();
    }
    failure
}
