//! From the way in which a document or a person names an image to the repository that holds it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ambit_engine::digest::Digest;
use ambit_engine::reference::{Reference, Repository};

use crate::cache::{Cache, CachedStore};
use crate::error::FetchError;
use crate::layout::Layout;
use crate::oci::ManifestName;
use crate::registry::Client;
use crate::store::Store;

/// The tag that a reference without tag and digest means.
const DEFAULT_TAG: &str = "latest";

/// Registries and layouts, with the cache before the registries.
#[derive(Clone)]
pub struct Stores {
    client: Option<Client>,
    cache: Option<Arc<Cache>>,
}

/// An image in its repository.
#[derive(Clone)]
pub struct Origin {
    /// The repository.
    pub store: Arc<dyn Store>,
    /// The image in it.
    pub name: ManifestName,
    /// Where the repository is, as trust policies match it.
    pub place: Place,
}

/// Where a repository is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// In a registry.
    Registry(Repository),
    /// In a layout, by its name `layout:DIR`.
    Layout(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(repository) => fmt::Display::fmt(repository, f),
            Self::Layout(name) => f.write_str(name),
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.place, self.name)
    }
}

impl Stores {
    /// Fetches with `client`. What names its content by digest is kept in `cache`, if there is one.
    #[must_use]
    pub fn online(client: Client, cache: Option<Arc<Cache>>) -> Self {
        Self { client: Some(client), cache }
    }

    /// Fetches nothing: only the cache and layouts are read.
    #[must_use]
    pub fn offline(cache: Option<Arc<Cache>>) -> Self {
        Self { client: None, cache }
    }

    /// Returns a repository of a registry.
    ///
    /// # Errors
    ///
    /// [`FetchError::Offline`] if nothing is fetched and there is no cache either.
    pub fn repository(&self, repository: &Repository) -> Result<Arc<dyn Store>, FetchError> {
        let remote: Option<Arc<dyn Store>> = match &self.client {
            Some(client) => Some(Arc::new(client.repository(repository))),
            None => None,
        };
        match (&self.cache, remote) {
            (None, Some(remote)) => Ok(remote),
            (None, None) => Err(FetchError::Offline { what: repository.to_string() }),
            (Some(cache), Some(remote)) => {
                Ok(Arc::new(CachedStore::online(remote, Arc::clone(cache))))
            }
            (Some(cache), None) => {
                Ok(Arc::new(CachedStore::offline(&repository.to_string(), Arc::clone(cache))))
            }
        }
    }

    /// Returns the image that a reference names; without tag and digest it is the tag `latest`.
    ///
    /// # Errors
    ///
    /// As [`Stores::repository`].
    pub fn reference(&self, reference: &Reference) -> Result<Origin, FetchError> {
        let name = match (reference.digest(), reference.tag()) {
            (Some(digest), _) => ManifestName::Digest(*digest),
            (None, tag) => ManifestName::Tag(tag.unwrap_or(DEFAULT_TAG).to_owned()),
        };
        Ok(Origin {
            store: self.repository(reference.repository())?,
            name,
            place: Place::Registry(reference.repository().clone()),
        })
    }

    /// Returns the image that is named in a layout; without tag and digest it is the only one.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if the folder is no layout, or holds no or several images.
    pub async fn layout(
        &self,
        dir: &Path,
        tag: Option<&str>,
        digest: Option<Digest>,
    ) -> Result<Origin, FetchError> {
        let layout = Layout::open(dir)?;
        let name = match (digest, tag) {
            (Some(digest), _) => ManifestName::Digest(digest),
            (None, Some(tag)) => ManifestName::Tag(tag.to_owned()),
            (None, None) => layout.sole().await?,
        };
        let place = Place::Layout(format!("layout:{}", dir.display()));
        Ok(Origin { store: Arc::new(layout), name, place })
    }

    /// Returns a place in a layout to write to; the layout is made if it is missing.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if the folder is there and no layout, or can't be made.
    pub fn new_in_layout(&self, dir: &Path, tag: &str) -> Result<Origin, FetchError> {
        Ok(Origin {
            store: Arc::new(Layout::create(dir)?),
            name: ManifestName::Tag(tag.to_owned()),
            place: Place::Layout(format!("layout:{}", dir.display())),
        })
    }
}
