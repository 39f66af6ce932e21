//! How registries are called: from configuration and options to a client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ambit_trust::registry::credentials::HelperFolders;
use ambit_trust::registry::{Client, Loopback, Mirror, Options, OptionsError, RealmPair};

pub use ambit_trust::registry::credentials::Credentials;

use crate::{Configuration, Failure, Files};

/// The largest file of credentials or certificates.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Whether reads may go to mirrors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mirrors {
    /// They may.
    Used,
    /// They may not: what is written has to be read from where it is written to.
    Unused,
}

/// What a front end says beside the configuration.
#[derive(Clone, Debug)]
pub struct RegistryOptions<'a> {
    /// Mirrors, `HOST=HOST[:PORT][/PREFIX]`; they count before those of the configuration.
    pub mirrors: &'a [String],
    /// Registries, `HOST[:PORT]`, that may be called over plain http and at inside addresses.
    pub insecure: &'a [String],
    /// Whether reads may go to mirrors.
    pub use_mirrors: Mirrors,
    /// Whether registries on this machine may be called because a reference spells so.
    pub loopback: Loopback,
    /// The time for one call, its retries included.
    pub call_timeout: Duration,
}

fn invalid(error: &OptionsError) -> Failure {
    Failure::new(error.code(), error.to_string(), Some(error.help().to_owned()))
}

/// Sets up the client for registries. Nothing is called yet.
///
/// # Errors
///
/// [`Failure`] for an option that can't be read.
pub fn client(
    given: &RegistryOptions<'_>,
    configuration: &Configuration,
    credentials: Credentials,
    files: &mut Files,
) -> Result<Client, Failure> {
    let config = &configuration.config;
    let mut options = Options {
        loopback: given.loopback,
        call_timeout: given.call_timeout,
        credentials: Arc::new(credentials),
        ..Options::default()
    };
    if given.use_mirrors == Mirrors::Used {
        // The first mirror for a registry counts.
        for mirror in given.mirrors {
            options.mirrors.push(mirror.parse::<Mirror>().map_err(|error| invalid(&error))?);
        }
        for (of, mirror) in &config.mirrors {
            let pair = format!("{of}={mirror}");
            options.mirrors.push(pair.parse::<Mirror>().map_err(|error| invalid(&error))?);
        }
    }
    for host in given.insecure.iter().chain(&config.insecure_registries) {
        options.insecure.push(host.parse().map_err(|error| invalid(&error))?);
    }
    for (registry, realm) in &config.token_hosts {
        let pair = format!("{registry}={realm}");
        options.realms.push(pair.parse::<RealmPair>().map_err(|error| invalid(&error))?);
    }
    for path in &config.registry_certificates {
        let path = configuration.base().join(path);
        options.certificates.push(files.read(&path, MAX_FILE_BYTES)?);
    }
    Client::new(options).map_err(|error| invalid(&error))
}

/// Reads credentials in Docker's form. A file that is not there is none; one that can't be read is
/// an error, since a private image would look absent. Helpers are looked for in `helpers`.
///
/// # Errors
///
/// [`Failure`] for a file that is there and can't be read.
pub fn docker_files(
    paths: &[PathBuf],
    helpers: Vec<PathBuf>,
    files: &mut Files,
) -> Result<Credentials, Failure> {
    let mut credentials = Credentials::default();
    for path in paths {
        if !path.is_file() {
            files.absent(path);
            continue;
        }
        credentials = with_docker_file(credentials, path, files)?;
    }
    Ok(credentials.with_helpers(Arc::new(HelperFolders::new(helpers))))
}

fn with_docker_file(
    credentials: Credentials,
    path: &Path,
    files: &mut Files,
) -> Result<Credentials, Failure> {
    let bytes = files.read(path, MAX_FILE_BYTES)?;
    credentials.with_docker_config(&path.display().to_string(), &bytes).map_err(|error| {
        Failure::new(error.code(), error.to_string(), Some(error.help().to_owned()))
    })
}
