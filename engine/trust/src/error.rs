//! Why something could not be fetched or stored.

use std::time::Duration;

/// Why a registry, a layout or the cache gave no answer.
///
/// Nothing here means "there is no signature": that is an answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The registry or layout has no such thing.
    #[error("`{what}` is not there")]
    NotFound {
        /// The reference, manifest or blob.
        what: String,
    },
    /// The registry wants other credentials, or none that may be sent would do.
    #[error("`{what}` was refused: {reason}")]
    Auth {
        /// The reference, or the registry.
        what: String,
        /// What the registry or the credential rules said; never a credential.
        reason: String,
    },
    /// The registry asks for fewer calls.
    #[error("`{registry}` answers that there were too many requests")]
    RateLimited {
        /// The registry.
        registry: String,
        /// How long it asks to wait, if it says so.
        retry_after: Option<Duration>,
    },
    /// The registry could not be reached, or answered with a server error, or is left alone after
    /// several such answers.
    #[error("`{registry}` is unavailable: {reason}")]
    Unavailable {
        /// The registry.
        registry: String,
        /// What happened.
        reason: String,
    },
    /// The time for one call ran out.
    #[error("`{what}` took longer than {} ms", after.as_millis())]
    Timeout {
        /// The call.
        what: String,
        /// The time that it had.
        after: Duration,
    },
    /// Something is larger or more than is read.
    #[error("`{what}` is over the limit of {limit}")]
    Limit {
        /// What is too large, with its unit.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The answer is not what the specification asks for.
    #[error("`{what}`: {reason}")]
    Protocol {
        /// The reference, manifest or blob.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes are not those that the digest names.
    #[error("`{what}` has digest {found}, not {expected}")]
    DigestMismatch {
        /// The reference, manifest or blob.
        what: String,
        /// The digest that was asked for.
        expected: String,
        /// The digest of the bytes.
        found: String,
    },
    /// The name or address may not be called.
    #[error("`{host}` may not be called: {reason}")]
    Address {
        /// The host as named.
        host: String,
        /// The kind of place it leads to.
        reason: String,
    },
    /// Only the cache and layouts are read, and it is in neither.
    #[error("`{what}` is not in the cache, and nothing is fetched offline")]
    Offline {
        /// The reference, manifest or blob.
        what: String,
    },
    /// The artifact is no wasm component or module.
    #[error("`{what}` is no wasm artifact: {reason}")]
    NotWasm {
        /// The reference or manifest.
        what: String,
        /// What it is instead.
        reason: String,
    },
    /// An index doesn't say which one of its manifests is meant.
    #[error("`{what}` doesn't name one wasm manifest: {reason}")]
    IndexAmbiguous {
        /// The reference or index.
        what: String,
        /// What it names.
        reason: String,
    },
    /// A folder is no image layout, or a damaged one.
    #[error("{path}: {reason}")]
    Layout {
        /// The file or folder.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Others kept changing a tag while it was being extended.
    #[error("`{what}` was changed by somebody else each of {attempts} times")]
    Conflict {
        /// The tag.
        what: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// A file could not be read or written.
    #[error("{path}: {reason}")]
    Io {
        /// The path.
        path: String,
        /// What the operating system says.
        reason: String,
    },
}

impl FetchError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "registry-not-found",
            Self::Auth { .. } => "registry-auth",
            Self::RateLimited { .. } => "registry-rate-limited",
            Self::Unavailable { .. } => "registry-unavailable",
            Self::Timeout { .. } => "registry-timeout",
            Self::Limit { .. } => "registry-limit",
            Self::Protocol { .. } => "registry-protocol",
            Self::DigestMismatch { .. } => "registry-digest-mismatch",
            Self::Address { .. } => "registry-address",
            Self::Offline { .. } => "registry-offline",
            Self::NotWasm { .. } => "reference-not-wasm",
            Self::IndexAmbiguous { .. } => "reference-index-ambiguous",
            Self::Layout { .. } => "layout-invalid",
            Self::Conflict { .. } => "registry-conflict",
            Self::Io { .. } => "storage-failed",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "check the reference; a private repository may answer so too",
            Self::Auth { .. } => "log in to the registry with `docker login` or `oras login`",
            Self::RateLimited { .. } => {
                "wait, log in for a higher limit, or read from a mirror with `--mirror`"
            }
            Self::Unavailable { .. } | Self::Timeout { .. } => {
                "try again; `--mirror` reads from another registry"
            }
            Self::Limit { .. } => "nothing of this kind is that large; look at what was pushed",
            Self::Protocol { .. } => "look at what was pushed, and at the registry's health",
            Self::DigestMismatch { .. } => {
                "the registry or something before it changed the bytes: trust nothing from there"
            }
            Self::Address { .. } => {
                "name a public registry; `insecureRegistries` in `ambit.yaml` opens loopback or plain http"
            }
            Self::Offline { .. } => {
                "run once without `--offline`, or give the file by `--component`"
            }
            Self::NotWasm { .. } => {
                "name an artifact in the CNCF wasm layout, as `wash oci push` makes it"
            }
            Self::IndexAmbiguous { .. } => "name the manifest by its own digest",
            Self::Layout { .. } => "give the folder of an OCI image layout, or write it again",
            Self::Conflict { .. } => "try again when nobody else attaches to the same component",
            Self::Io { .. } => "check the path, its permissions and the free space",
        }
    }
}
