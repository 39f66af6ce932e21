//! Where passwords and tokens come from: Docker's configuration, its credential helpers, and the
//! pull secrets of Kubernetes.
//!
//! Nothing is read from disk or the environment here: the caller passes bytes in, and says in which
//! folders helpers are. What is found for a registry is sent to that registry only; the rules for
//! that are in the client.

mod config;
mod helper;

use std::fmt;
use std::sync::Arc;

use ambit_engine::reference::Repository;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use self::config::{Config, Key};
pub use self::helper::{HelperAnswer, HelperFolders, HelperFuture, Helpers};
use super::secret::Secret;
use crate::error::FetchError;

/// The largest configuration that is read, in bytes.
pub const MAX_CONFIG_BYTES: usize = 1 << 20;

/// What a registry or its token server is given. It never shows what it holds.
#[derive(Clone)]
pub enum Credential {
    /// A user name and a password.
    Password {
        /// The user name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token with which the token server gives others (`identitytoken`).
    Identity {
        /// The token.
        token: Secret,
    },
}

impl Credential {
    /// Tells whether `text` repeats the secret, plain or as a header carries it.
    pub(super) fn is_repeated_in(&self, text: &str) -> bool {
        let repeats = |secret: &str| !secret.is_empty() && text.contains(secret);
        match self {
            Self::Password { user, password } => {
                repeats(password.reveal()) || repeats(basic(user, password).reveal())
            }
            Self::Identity { token } => repeats(token.reveal()),
        }
    }
}

/// Returns user and password as RFC 7617 has them, without the scheme.
pub(super) fn basic(user: &str, password: &Secret) -> Secret {
    let plain = Zeroizing::new(format!("{user}:{}", password.reveal()));
    Secret::new(STANDARD.encode(plain.as_bytes()))
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(<hidden>)")
    }
}

/// The form of a Kubernetes pull secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PullSecret {
    /// `kubernetes.io/dockerconfigjson`, key `.dockerconfigjson`.
    DockerConfigJson,
    /// `kubernetes.io/dockercfg`, key `.dockercfg`.
    DockerCfg,
}

/// Credentials by registry. The first configuration that has one for a repository counts.
#[derive(Clone)]
pub struct Credentials {
    layers: Vec<Config>,
    helpers: Arc<dyn Helpers>,
}

impl Default for Credentials {
    fn default() -> Self {
        Self { layers: Vec::new(), helpers: Arc::new(HelperFolders::default()) }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("layers", &self.layers.len()).finish_non_exhaustive()
    }
}

/// Why a configuration can't be read. It never repeats what the configuration holds.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The text is too long.
    #[error("{origin}: {found} bytes are over the limit of {limit}")]
    TooLarge {
        /// The file or object.
        origin: String,
        /// Its size.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// It isn't the JSON that it should be.
    #[error("{origin}:{line}:{column}: the configuration can't be read")]
    Json {
        /// The file or object.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// An `auth` isn't `user:password` in base64.
    #[error("{origin}: `auth` of `{registry}` is no `user:password` in base64")]
    Auth {
        /// The file or object.
        origin: String,
        /// The registry's key.
        registry: String,
    },
    /// A helper's name could lead somewhere else.
    #[error(
        "{origin}: a credential helper's name has other characters than letters, digits, `-` and `_`"
    )]
    HelperName {
        /// The file or object.
        origin: String,
    },
}

impl CredentialsError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "credentials-invalid"
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        "write it again with `docker login`, or `kubectl create secret docker-registry`"
    }
}

impl Credentials {
    /// Adds the content of a `config.json` of Docker, Podman or ORAS.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`], which names `origin`.
    pub fn with_docker_config(
        mut self,
        origin: &str,
        bytes: &[u8],
    ) -> Result<Self, CredentialsError> {
        self.layers.push(Config::docker(origin, bytes)?);
        Ok(self)
    }

    /// Adds a pull secret of Kubernetes. Helpers that it names are not run: it was written by
    /// somebody else than who runs this.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`], which names `origin`.
    pub fn with_pull_secret(
        mut self,
        origin: &str,
        form: PullSecret,
        bytes: &[u8],
    ) -> Result<Self, CredentialsError> {
        self.layers.push(Config::pull_secret(origin, form, bytes)?);
        Ok(self)
    }

    /// Says what runs credential helpers. By default none is run.
    #[must_use]
    pub fn with_helpers(mut self, helpers: Arc<dyn Helpers>) -> Self {
        self.helpers = helpers;
        self
    }

    /// Returns what there is for a repository.
    ///
    /// # Errors
    ///
    /// [`FetchError::Auth`] if a helper is named and gives no answer.
    pub async fn find(&self, repository: &Repository) -> Result<Option<Credential>, FetchError> {
        self.find_in(repository.registry(), repository.path()).await
    }

    pub(super) async fn find_in(
        &self,
        registry: &str,
        path: &str,
    ) -> Result<Option<Credential>, FetchError> {
        let wanted = Key::of_repository(registry, path);
        for layer in &self.layers {
            // A credential for a folder of the registry is closer than a helper for the whole of
            // it, and helpers are closer than what stands in the file, as Docker has it.
            if let Some(found) = layer.below_host(&wanted) {
                return Ok(Some(found.clone()));
            }
            if let Some(name) = layer.helper(&wanted) {
                match self.ask(name, registry).await? {
                    HelperAnswer::Found(credential) => return Ok(Some(credential)),
                    HelperAnswer::Nothing => {}
                }
            }
            if let Some(found) = layer.for_host(&wanted) {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    /// Tells whether `text` repeats a secret of any configuration; helpers aren't asked for that.
    pub(super) fn is_repeated_in(&self, text: &str) -> bool {
        let all = self.layers.iter().flat_map(Config::credentials);
        all.into_iter().any(|credential| credential.is_repeated_in(text))
    }

    async fn ask(&self, name: &str, registry: &str) -> Result<HelperAnswer, FetchError> {
        let server = if registry == "docker.io" { "https://index.docker.io/v1/" } else { registry };
        self.helpers.get(name, server).await.map_err(|reason| FetchError::Auth {
            what: registry.to_owned(),
            reason: format!("`docker-credential-{name}`: {reason}"),
        })
    }
}

#[cfg(test)]
mod tests;
