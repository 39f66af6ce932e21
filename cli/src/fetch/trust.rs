//! Whose evidence counts: trust policies from files, or from cosign's flags, with their roots.

use std::path::Path;

use ambit_setup::{Files, Given, PublicGood};
use ambit_trust::gather::Terms;
use ambit_trust::policy::{Claim, Flags, PUBLIC_GOOD_ROOT, TrustPolicy};
use ambit_trust::verify::Roots;
use jiff::Timestamp;

use crate::args::{CosignFlags, Trust};
use crate::commands::artifact::annotation;
use crate::configuration::Configuration;
use crate::output::{Failure, Output};
use crate::source::read_file;

/// The largest file that a flag names, in bytes.
const MAX_FILE_BYTES: usize = 4 << 20;

/// Policies and roots, at a time.
pub(crate) struct Trusted {
    given: ambit_setup::Trusted,
    pub(crate) now: Timestamp,
}

impl Trusted {
    /// Reads what flags and configuration name.
    pub(crate) fn read(
        arguments: &Trust,
        configuration: &mut Configuration,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let given = Given { files: &arguments.trust, public_good: public_good(arguments)? };
        let given = ambit_setup::Trusted::read(&given, configuration, &mut Files::default())?;
        Ok(Self { given, now })
    }

    /// The policies.
    pub(crate) fn policies(&self) -> &[TrustPolicy] {
        &self.given.policies
    }

    /// The roots that they name.
    pub(crate) fn roots(&self) -> &Roots {
        &self.given.roots
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
        match (&made.root, &given.chain) {
            (Some(root), Some(chain)) => self.given.chained(&root.name, chain)?,
            (Some(root), None) => {
                self.given.root(root, Path::new(""), configuration, &mut Files::default())?;
            }
            (None, _) => {}
        }
        self.given.policies = vec![made.policy];
        self.given.warnings.extend(made.warnings.into_iter().map(|(code, message)| {
            (code.as_str().to_owned(), message, "name it exactly".to_owned())
        }));
        Ok(())
    }

    /// Prints what authors may not have meant.
    pub(crate) fn warn(&self, output: &Output) {
        for (code, message, help) in &self.given.warnings {
            output.warning(code, message, help);
        }
    }

    /// The terms of verification.
    pub(crate) fn terms(&self) -> Terms<'_> {
        self.given.terms(self.now)
    }
}

/// What is asked for in place of the built-in public-good root.
fn public_good(arguments: &Trust) -> Result<Option<PublicGood>, Failure> {
    match (&arguments.trusted_root, arguments.update_trust_root) {
        (Some(_), true) => Err(Failure::new(
            "usage-trust-root",
            "`--trusted-root` and `--update-trust-root` can't be given together",
            Some("keep one of the two".to_owned()),
        )),
        (Some(path), false) => Ok(Some(PublicGood::File(path.clone()))),
        (None, true) => Ok(Some(PublicGood::Fetched(super::update::public_good()?))),
        (None, false) => Ok(None),
    }
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
