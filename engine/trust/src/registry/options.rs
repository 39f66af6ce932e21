//! How registries are called; plain values that a front end fills in.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ambit_engine::grant::RangePolicy;
use ambit_engine::reference::Reference;

use super::address::{HostPort, Resolver, SystemResolver};
use super::breaker::{BreakerOptions, RetryOptions};
use super::credentials::Credentials;
use super::time::{SystemTimer, Timer};

/// How registries are called.
#[derive(Clone)]
pub struct Options {
    /// Passwords and tokens, and where more are to be had.
    pub credentials: Arc<Credentials>,
    /// Certificate authorities beside the system's, PEM.
    pub certificates: Vec<Vec<u8>>,
    /// Hosts that are called over plain http, and may be on inside networks or this machine.
    pub insecure: Vec<HostPort>,
    /// Hosts that may be on inside networks or this machine, and are called over https.
    pub private: Vec<HostPort>,
    /// Whether registries on this machine may be called, over plain http, if the reference spells
    /// so: `localhost`, `127.0.0.1`, `[::1]`.
    pub loopback: Loopback,
    /// Where reads go instead. The first for a registry counts. A mirror may be on an inside
    /// network; one on plain http is also named in `insecure`.
    pub mirrors: Vec<Mirror>,
    /// Token servers that get a registry's credentials, beside those on the registry's own host.
    /// That of Docker Hub is known.
    pub realms: Vec<RealmPair>,
    /// The time for one call, its retries included.
    pub call_timeout: Duration,
    /// Calls to one registry at a time.
    pub concurrency: usize,
    /// How often a read is tried.
    pub retries: RetryOptions,
    /// When a registry that doesn't answer is left alone.
    pub breaker: BreakerOptions,
    /// Which addresses may be called.
    pub range: RangePolicy,
    /// Looks names up.
    pub resolver: Arc<dyn Resolver>,
    /// Clock and pauses.
    pub timer: Arc<dyn Timer>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            credentials: Arc::new(Credentials::default()),
            certificates: Vec::new(),
            insecure: Vec::new(),
            private: Vec::new(),
            loopback: Loopback::Refused,
            mirrors: Vec::new(),
            realms: Vec::new(),
            call_timeout: Duration::from_secs(10),
            concurrency: 8,
            retries: RetryOptions::default(),
            breaker: BreakerOptions::default(),
            range: RangePolicy::default(),
            resolver: Arc::new(SystemResolver),
            timer: Arc::new(SystemTimer::default()),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("insecure", &self.insecure)
            .field("private", &self.private)
            .field("loopback", &self.loopback)
            .field("mirrors", &self.mirrors)
            .field("realms", &self.realms)
            .field("call_timeout", &self.call_timeout)
            .field("concurrency", &self.concurrency)
            .field("retries", &self.retries)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

/// Whether registries on this machine may be called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Loopback {
    /// They may, over plain http.
    Allowed,
    /// They may not.
    Refused,
}

/// A registry that holds copies of another's repositories, `HOST=HOST[:PORT][/PREFIX]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mirror {
    pub(super) of: String,
    pub(super) registry: String,
    pub(super) prefix: String,
}

impl FromStr for Mirror {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || OptionsError::Mirror { text: text.chars().take(200).collect() };
        let (of, mirror) = text.split_once('=').ok_or_else(invalid)?;
        let (host, prefix) = mirror.split_once('/').unwrap_or((mirror, ""));
        let of_host: HostPort = of.parse().map_err(|_| invalid())?;
        let host: HostPort = host.parse().map_err(|_| invalid())?;
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty() {
            // The grammar of references decides what a path may be.
            format!("mirror.example/{prefix}")
                .parse::<Reference>()
                .map_err(|_| invalid())
                .and_then(|read| {
                    let whole = read.repository().path() == prefix;
                    if whole { Ok(()) } else { Err(invalid()) }
                })?;
        }
        let of = match of_host.to_string().as_str() {
            "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
            other => other.to_owned(),
        };
        Ok(Self { of, registry: host.to_string(), prefix: prefix.to_owned() })
    }
}

/// A token server that gets a registry's credentials, `REGISTRY=REALM`, each `HOST[:PORT]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RealmPair {
    pub(super) registry: HostPort,
    pub(super) realm: HostPort,
}

impl FromStr for RealmPair {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || OptionsError::Realm { text: text.chars().take(200).collect() };
        let (registry, realm) = text.split_once('=').ok_or_else(invalid)?;
        let registry = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        let read = |text: &str| text.parse::<HostPort>().map_err(|_| invalid());
        Ok(Self { registry: read(registry)?, realm: read(realm)? })
    }
}

/// Why options can't be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A host is none.
    #[error("`{text}` is no host with an optional port")]
    Host {
        /// The text.
        text: String,
    },
    /// A mirror is none.
    #[error("`{text}` is no mirror")]
    Mirror {
        /// The text.
        text: String,
    },
    /// A pair of registry and token server is none.
    #[error("`{text}` is no pair of registry and token server")]
    Realm {
        /// The text.
        text: String,
    },
    /// A certificate can't be read.
    #[error("certificate authority {number} can't be read: {reason}")]
    Certificate {
        /// Which of the given ones, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The HTTP client can't be set up.
    #[error("registries can't be called from here: {reason}")]
    Client {
        /// What is missing.
        reason: String,
    },
}

impl OptionsError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "registry-options"
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Host { .. } => "write `registry.example` or `registry.example:5000`",
            Self::Mirror { .. } => "write `docker.io=mirror.example:5000/prefix`",
            Self::Realm { .. } => "write `registry.example=auth.example`",
            Self::Certificate { .. } => "give the certificate authority as PEM",
            Self::Client { .. } => "install the system's certificate authorities",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_read_with_port_and_prefix() {
        let mirror: Mirror = "docker.io=127.0.0.1:5000/hub/x".parse().unwrap();
        assert_eq!((mirror.of.as_str(), mirror.registry.as_str()), ("docker.io", "127.0.0.1:5000"));
        assert_eq!(mirror.prefix, "hub/x");
        for bad in ["", "a", "=b", "a=", "a=b/C", "a=b/x:1", "a=b/../c", "a=http://b", "a=b/x@y"] {
            assert!(bad.parse::<Mirror>().is_err(), "{bad}");
        }
    }
}
