//! From flags, configuration and environment to the options of registries.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ambit_setup::{Files, Mirrors, RegistryOptions};
use ambit_trust::cache::Cache;
use ambit_trust::registry::{Client, Loopback};

use crate::args::Registry;
use crate::configuration::Configuration;
use crate::output::Failure;

/// The time for one call. A person waits for a large component on a slow line, where a webhook
/// would have given up.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes that the cache holds.
const MAX_CACHE_BYTES: u64 = 2 << 30;

/// Sets up the client for registries, with the credentials of Docker, Podman and their like from
/// where they keep them.
pub(super) fn client(
    flags: &Registry,
    configuration: &Configuration,
    use_mirrors: Mirrors,
) -> Result<Client, Failure> {
    let options = RegistryOptions {
        mirrors: &flags.mirror,
        insecure: &flags.insecure_registry,
        use_mirrors,
        loopback: Loopback::Allowed,
        call_timeout: CALL_TIMEOUT,
    };
    let helpers = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect())
        .unwrap_or_default();
    let files = &mut Files::default();
    let credentials = ambit_setup::docker_files(&credential_files(), helpers, files)?;
    Ok(ambit_setup::client(&options, configuration, credentials, files)?)
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
