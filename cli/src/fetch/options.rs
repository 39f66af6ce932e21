//! From flags, configuration and environment to the options of registries.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ambit_trust::cache::Cache;
use ambit_trust::registry::credentials::{Credentials, HelperFolders};
use ambit_trust::registry::{Client, Loopback, Mirror, Options, OptionsError, RealmPair};

use crate::args::Registry;
use crate::configuration::Configuration;
use crate::output::Failure;
use crate::source::read_file;

/// The time for one call. A person waits for a large component on a slow line, where a webhook
/// would have given up.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes that the cache holds.
const MAX_CACHE_BYTES: u64 = 2 << 30;

/// The largest file of credentials or certificates.
const MAX_FILE_BYTES: usize = 1 << 20;

fn invalid(error: &OptionsError) -> Failure {
    Failure::new(error.code(), error.to_string(), Some(error.help().to_owned()))
}

/// Whether reads may go to mirrors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mirrors {
    Used,
    Unused,
}

/// Sets up the client for registries.
pub(super) fn client(
    flags: &Registry,
    configuration: &Configuration,
    mirrors: Mirrors,
) -> Result<Client, Failure> {
    let config = &configuration.config;
    let mut options =
        Options { loopback: Loopback::Allowed, call_timeout: CALL_TIMEOUT, ..Options::default() };
    // Flags come first, since the first mirror for a registry counts.
    for mirror in &flags.mirror {
        options.mirrors.push(mirror.parse::<Mirror>().map_err(|error| invalid(&error))?);
    }
    for (of, mirror) in &config.mirrors {
        let pair = format!("{of}={mirror}");
        options.mirrors.push(pair.parse::<Mirror>().map_err(|error| invalid(&error))?);
    }
    if mirrors == Mirrors::Unused {
        options.mirrors.clear();
    }
    for host in flags.insecure_registry.iter().chain(&config.insecure_registries) {
        options.insecure.push(host.parse().map_err(|error| invalid(&error))?);
    }
    for (registry, realm) in &config.token_hosts {
        let pair = format!("{registry}={realm}");
        options.realms.push(pair.parse::<RealmPair>().map_err(|error| invalid(&error))?);
    }
    for path in &config.registry_certificates {
        let path = configuration.base().join(path);
        options.certificates.push(read_file(&path, MAX_FILE_BYTES)?);
    }
    options.credentials = Arc::new(credentials()?);
    Client::new(options).map_err(|error| invalid(&error))
}

/// Reads the credentials of Docker, Podman and their like, where they keep them. A file that is
/// not there is none; one that can't be read is an error, since a private image would look absent.
fn credentials() -> Result<Credentials, Failure> {
    let mut credentials = Credentials::default();
    for path in credential_files() {
        if !path.is_file() {
            continue;
        }
        let bytes = read_file(&path, MAX_FILE_BYTES)?;
        credentials = credentials.with_docker_config(&path.display().to_string(), &bytes).map_err(
            |error| Failure::new(error.code(), error.to_string(), Some(error.help().to_owned())),
        )?;
    }
    let folders = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect())
        .unwrap_or_default();
    Ok(credentials.with_helpers(Arc::new(HelperFolders::new(folders))))
}

fn credential_files() -> Vec<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = from("HOME");
    let docker = from("DOCKER_CONFIG").or_else(|| home.as_ref().map(|home| home.join(".docker")));
    let files = [
        from("REGISTRY_AUTH_FILE"),
        docker.map(|dir| dir.join("config.json")),
        from("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json")),
        home.map(|home| home.join(".config/containers/auth.json")),
    ];
    files.into_iter().flatten().collect()
}

/// Opens the cache. The one that is named has to work; without the user's own folder, as in a
/// container whose home can't be written, there is none.
pub(super) fn cache(flags: &Registry) -> Result<Option<Arc<Cache>>, Failure> {
    if let Some(dir) = &flags.cache_dir {
        return Ok(Some(Arc::new(Cache::open(dir, MAX_CACHE_BYTES)?)));
    }
    let cache = default_cache().and_then(|dir| Cache::open(&dir, MAX_CACHE_BYTES).ok());
    Ok(cache.map(Arc::new))
}

/// The user's cache folder (XDG Base Directory Specification 0.8).
pub(crate) fn default_cache() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|dir| dir.join("ambit"))
}
