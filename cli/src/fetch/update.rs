//! The public-good trust root by TUF (The Update Framework), when it is asked for.

use ambit_trust::tuf;

use super::options::default_cache;
use crate::output::Failure;

/// Fetches the root, starting from the TUF root that is in this build. Metadata is kept in the
/// user's cache, so that a rollback is noticed.
pub(super) fn public_good() -> Result<Vec<u8>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("runtime-failed", error.to_string(), None))?;
    let folder = default_cache().map(|dir| dir.join("tuf"));
    runtime.block_on(tuf::public_good(folder.as_deref())).map_err(|error| {
        Failure::new(error.code(), error.to_string(), Some(error.help().to_owned()))
    })
}
