//! What reviews are answered by: configuration, catalogue, packs, trust and registries, as one
//! generation that is replaced whole.
//!
//! # Invariants
//!
//! - A review is answered by one generation from its start to its end.
//! - A generation that can't be read never replaces one that could; without a first one everything
//!   is refused.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use ambit_engine::digest::Digest;
use ambit_engine::policy::PolicySet;
use ambit_setup::{
    Configuration, Failure, Files, Given, Mirrors, PublicGood, RegistryOptions, Trusted, client,
    docker_files,
};
use ambit_trust::registry::Loopback;
use ambit_trust::stores::Stores;

use crate::kept::{Kept, Turn};

/// The time for one call to a registry, retries included. A review doesn't wait that long; the work
/// goes on, so that the next finds its answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(25);

/// Labels and annotations by which a workload has a class, whatever the configuration says.
const CLASS_LABELS: [&str; 2] = ["ambit.dev/class", "mcp.ai/function-type"];

/// Where an operator keeps things.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The configuration; without one the defaults count.
    pub config: Option<PathBuf>,
    /// Files of credentials in Docker's form.
    pub docker_configs: Vec<PathBuf>,
    /// A `trusted_root.json` in place of the built-in public-good root.
    pub trusted_root: Option<PathBuf>,
}

/// All that a decision is made by.
pub struct Generation {
    /// Configuration, catalogue and limits.
    pub configuration: Configuration,
    /// Trust policies and roots.
    pub trusted: Trusted,
    /// The packs.
    pub policies: PolicySet,
    /// The registries.
    pub stores: Stores,
    /// Names of labels and annotations that a decision may rest on.
    pub names: BTreeSet<String>,
    /// The digest over configuration, catalogue, packs and trust: the paths and contents of their
    /// files.
    pub digest: String,
    /// The digest over what an analysis rests on beside the bytes.
    pub(crate) analysis_key: Digest,
    /// The digest over what evidence rests on beside what is found.
    pub(crate) trust_key: Digest,
    /// The digest over which registries are asked in which way. Who asks isn't in it: what a digest
    /// names is the same for everybody.
    pub(crate) registry_key: Digest,
}

impl std::fmt::Debug for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generation").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl Generation {
    /// Reads everything. `files` remembers what was looked at, also where it fails.
    ///
    /// # Errors
    ///
    /// [`Failure`] for the first file that can't be used.
    pub fn read(sources: &Sources, files: &mut Files) -> Result<Self, Failure> {
        let mut configuration = Configuration::read(sources.config.clone(), &[], files)?;
        // The names of files are left out: what counts is in them.
        let own = sources.config.as_ref().map(|path| path.display().to_string());
        let catalogue: Vec<&String> = configuration
            .digests
            .iter()
            .filter(|(name, _)| Some(*name) != own.as_ref())
            .map(|(_, digest)| digest)
            .collect();
        let analysis_key = key(&format!("{catalogue:?} {:?}", configuration.limits));
        let before: BTreeSet<String> = configuration.digests.keys().cloned().collect();
        let given =
            Given { files: &[], public_good: sources.trusted_root.clone().map(PublicGood::File) };
        let trusted = Trusted::read(&given, &mut configuration, files)?;
        let trust: Vec<_> =
            configuration.digests.iter().filter(|(name, _)| !before.contains(*name)).collect();
        let trust_key = key(&format!("{trust:?}"));
        let policies = configuration.policies(&[], files)?;
        let options = RegistryOptions {
            mirrors: &[],
            insecure: &[],
            use_mirrors: Mirrors::Used,
            loopback: Loopback::Refused,
            call_timeout: CALL_TIMEOUT,
        };
        // A helper is a program, and none is run here.
        let credentials = docker_files(&sources.docker_configs, Vec::new(), files)?;
        let client = client(&options, &configuration, credentials, files)?;
        let config = &configuration.config;
        let registry_key = key(&format!(
            "{:?} {:?} {:?} {:?}",
            config.mirrors,
            config.insecure_registries,
            config.token_hosts,
            config.registry_certificates
        ));
        let names = names(&configuration);
        let digest = Digest::of(format!("{:?}", configuration.digests).as_bytes()).to_string();
        Ok(Self {
            configuration,
            trusted,
            policies,
            stores: Stores::online(client, None),
            names,
            digest,
            analysis_key,
            trust_key,
            registry_key,
        })
    }
}

fn key(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// Returns the labels and annotations that ceilings, classes and the engine look at.
fn names(configuration: &Configuration) -> BTreeSet<String> {
    let config = &configuration.config;
    let ceilings = config.ceilings.iter().map(|ceiling| &ceiling.matches);
    let classes = config.classes.iter().map(|class| &class.matches);
    let mut names: BTreeSet<String> =
        ceilings.chain(classes).flat_map(|matches| matches.labels.keys().cloned()).collect();
    names.extend(CLASS_LABELS.map(str::to_owned));
    // The compatibility shims decide by it whether a pod is wasm at all.
    names.insert("module.wasm.image/variant".to_owned());
    names
}

/// The generation that counts now.
#[derive(Debug)]
pub struct Settings {
    sources: Sources,
    /// What was read of them.
    pub kept: Kept<Generation>,
}

impl Settings {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        Self { sources, kept: Kept::default() }
    }

    /// Looks whether something changed, and reads it if so. It reads files, and takes its time.
    pub fn turn(&self) -> Turn<Generation> {
        self.kept.turn(|files| Generation::read(&self.sources, files))
    }
}
