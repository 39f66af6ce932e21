//! One interface to a repository, wherever it is: in a registry, in a layout on disk, in the cache.

use std::future::Future;
use std::pin::Pin;

use ambit_engine::digest::Digest;

use crate::error::FetchError;
use crate::oci::{Descriptor, ManifestName, RawManifest, SubjectIndexed};

/// A boxed future, so that a store can stand behind `dyn`.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, FetchError>> + Send + 'a>>;

/// The manifests that name a subject.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Referrers {
    /// Their descriptors, without duplicates, in the order of the store; at most
    /// [`crate::oci::MAX_REFERRERS`].
    pub descriptors: Vec<Descriptor>,
    /// Whether there are more than were taken.
    pub truncated: bool,
}

/// One repository.
///
/// Every answer by digest is checked against the digest; every size is bounded before it is read.
pub trait Store: Send + Sync {
    /// Returns the repository's name, for messages: `registry.example/team/app`, `layout:dir`.
    fn name(&self) -> String;

    /// Reads a manifest or index. A tag is resolved by hashing the bytes of exactly one answer.
    ///
    /// # Errors
    ///
    /// [`FetchError`]; [`FetchError::NotFound`] only where the store says that there is none.
    fn manifest<'a>(&'a self, name: &'a ManifestName) -> Answer<'a, RawManifest>;

    /// Reads a blob of exactly the described size and digest, of at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// [`FetchError`]; [`FetchError::Limit`] before anything over `max_bytes` is read.
    fn blob<'a>(&'a self, blob: &'a Descriptor, max_bytes: usize) -> Answer<'a, Vec<u8>>;

    /// Lists the manifests that name `subject`, by the referrers API or the fallback tag.
    ///
    /// # Errors
    ///
    /// [`FetchError`]; that there are none is an answer and no error.
    fn referrers<'a>(&'a self, subject: &'a Digest) -> Answer<'a, Referrers>;

    /// Stores a blob, unless it is there already.
    ///
    /// # Errors
    ///
    /// [`FetchError`].
    fn push_blob<'a>(&'a self, media_type: &'a str, bytes: &'a [u8]) -> Answer<'a, Descriptor>;

    /// Stores a manifest under a tag or its digest.
    ///
    /// # Errors
    ///
    /// [`FetchError`]; [`FetchError::DigestMismatch`] if `name` is another digest.
    fn push_manifest<'a>(
        &'a self,
        name: &'a ManifestName,
        media_type: &'a str,
        bytes: &'a [u8],
    ) -> Answer<'a, SubjectIndexed>;
}
