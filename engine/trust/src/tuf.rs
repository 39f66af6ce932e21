//! The public-good trust root by TUF (The Update Framework, <https://theupdateframework.io>).
//!
//! Nothing here runs unless somebody asks for an update: a decision rests on the roots in the build
//! or in files. Trust begins at the TUF root that is in this build, whatever a cache holds.

use std::path::Path;
use std::time::Duration;

use sigstore_trust_root::{TrustedRoot, TufConfig};

/// The time for the whole update.
const TIME: Duration = Duration::from_secs(60);

/// Why an update gave no root.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The repository couldn't be reached, or its metadata isn't signed as it has to be.
    #[error("the trust root can't be updated: {0}")]
    Failed(String),
    /// It took too long.
    #[error("the update of the trust root took longer than {} s", TIME.as_secs())]
    Timeout,
}

impl UpdateError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failed(_) | Self::Timeout => "trust-root-update",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        "leave `--update-trust-root` out to use the root of this build, or name a `trusted_root.json`"
    }
}

/// Fetches the public-good instance's `trusted_root.json`. Metadata is kept in `cache`, so that an
/// older state than one that was seen is refused; without it every update starts from this build.
///
/// # Errors
///
/// [`UpdateError`].
pub async fn public_good(cache: Option<&Path>) -> Result<Vec<u8>, UpdateError> {
    let config = match cache {
        Some(dir) => TufConfig::production().with_cache_dir(dir.to_path_buf()),
        None => TufConfig::production().without_cache(),
    };
    update(config, TIME).await
}

async fn update(config: TufConfig, time: Duration) -> Result<Vec<u8>, UpdateError> {
    let failed = |text: String| UpdateError::Failed(text.chars().take(300).collect());
    let root = tokio::time::timeout(time, TrustedRoot::from_tuf(config))
        .await
        .map_err(|_| UpdateError::Timeout)?
        .map_err(|error| failed(error.to_string()))?;
    serde_json::to_vec(&root).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use sigstore_trust_root::TufBootstrap;

    use super::*;

    #[tokio::test]
    async fn repository_that_is_none_gives_no_root() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // Whoever connects is hung up on.
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(stream);
            }
        });
        let bootstrap = TufBootstrap::trusted(b"{}");
        let config = TufConfig::custom(format!("http://{address}"), bootstrap).without_cache();
        let error = update(config, TIME).await.unwrap_err();
        assert_eq!(error.code(), "trust-root-update");
        server.abort();
    }
}
