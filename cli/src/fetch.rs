//! Registries and layouts for the commands: options from flags and configuration, credentials from
//! where Docker and its like keep them, all fetches at once, and progress for those who watch.

mod options;
mod progress;
mod trust;
mod update;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use ambit_engine::digest::Digest;
use ambit_engine::evidence::Supply;
use ambit_engine::reference::ImageSource;
use ambit_setup::Mirrors;
use ambit_trust::cache::Cache;
use ambit_trust::error::FetchError;
use ambit_trust::gather::{self, About, Report};
use ambit_trust::stores::{Origin, Stores};

use crate::args::Registry;
use crate::configuration::Configuration;
use crate::output::{Failure, Output};

pub(crate) use options::default_cache;
pub(crate) use trust::{Trusted, flags};

/// Something to fetch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Wanted {
    /// A reference, or a place in a layout.
    pub(crate) source: ImageSource,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Found {
    /// The component's bytes.
    pub(crate) bytes: Vec<u8>,
    /// Where they came from, and what vouches for them.
    pub(crate) supply: Supply,
}

/// What came of it, or why nothing did.
pub(crate) type Answer = Result<Found, Failure>;

/// Fetches components.
pub(crate) trait Fetch {
    /// Fetches all of them, at once; the answers are in the same order.
    fn fetch(&self, wanted: &[Wanted]) -> Result<Vec<Answer>, Failure>;
}

/// How many images are fetched at once.
const AT_ONCE: usize = 8;

/// The way to registries and layouts.
pub(crate) struct Fetcher<'a> {
    runtime: tokio::runtime::Runtime,
    stores: Stores,
    cache: Option<Arc<Cache>>,
    output: Output,
    max_bytes: usize,
    progress: progress::Progress,
    /// Whose evidence counts; `None` where none is looked for.
    trusted: Option<&'a Trusted>,
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::new(error.code(), error.to_string(), Some(error.help().to_owned()))
    }
}

impl<'a> Fetcher<'a> {
    /// Sets up the way, and looks for no evidence.
    pub(crate) fn new(
        flags: &Registry,
        configuration: &Configuration,
        output: &Output,
    ) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Failure::new("runtime-failed", error.to_string(), None))?;
        let cache = options::cache(flags)?;
        let stores = if flags.offline {
            Stores::offline(cache.clone())
        } else {
            Stores::online(options::client(flags, configuration, Mirrors::Used)?, cache.clone())
        };
        Ok(Self {
            runtime,
            stores,
            cache,
            output: *output,
            max_bytes: configuration.limits.max_component_bytes,
            progress: progress::Progress::new(output, flags.no_progress),
            trusted: None,
        })
    }

    /// Sets up the way for commands that write. Mirrors are left aside: a list of signatures that
    /// was read from a copy and written to the original would lose those that the copy lacks.
    pub(crate) fn writing(
        flags: &Registry,
        configuration: &Configuration,
        output: &Output,
    ) -> Result<Self, Failure> {
        let mut fetcher = Self::new(flags, configuration, output)?;
        if !flags.offline {
            let client = options::client(flags, configuration, Mirrors::Unused)?;
            fetcher.stores = Stores::online(client, fetcher.cache.clone());
        }
        Ok(fetcher)
    }

    /// Looks for evidence too.
    #[must_use]
    pub(crate) fn gathering(mut self, trusted: &'a Trusted) -> Self {
        self.trusted = Some(trusted);
        self
    }

    /// Waits for something to be done.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        let done = self.runtime.block_on(work);
        // A cache that can't be written makes runs slow, and is no reason to have no answer.
        if let Some(problem) = self.cache.as_ref().and_then(|cache| cache.take_problem()) {
            self.output.warning(problem.code(), &problem.to_string(), problem.help());
        }
        done
    }

    /// Finds the repository and name that a reference or layout means.
    pub(crate) async fn origin(&self, source: &ImageSource) -> Result<Origin, Failure> {
        match source {
            ImageSource::Oci(reference) => Ok(self.stores.reference(reference)?),
            ImageSource::Layout { path, tag, digest } => {
                Ok(self.stores.layout(Path::new(path), tag.as_deref(), *digest).await?)
            }
            ImageSource::File(_) | ImageSource::Artifact(_) | ImageSource::Invalid(_) => {
                Err(not_a_reference(source))
            }
        }
    }

    /// Finds the place that a reference or layout means to write to. It has to have a tag.
    pub(crate) fn destination(&self, text: &str) -> Result<Origin, Failure> {
        let untagged = || {
            let help = format!("write `{text}:1.0`, or another tag");
            Failure::new("usage-reference", format!("`{text}` names no tag to write"), Some(help))
        };
        match ImageSource::parse(text) {
            ImageSource::Oci(reference) => match (reference.tag(), reference.digest()) {
                (Some(_), None) => Ok(self.stores.reference(&reference)?),
                _ => Err(untagged()),
            },
            ImageSource::Layout { path, tag: Some(tag), digest: None } => {
                Ok(self.stores.new_in_layout(Path::new(&path), &tag)?)
            }
            ImageSource::Layout { .. } => Err(untagged()),
            other @ (ImageSource::File(_) | ImageSource::Artifact(_) | ImageSource::Invalid(_)) => {
                Err(not_a_reference(&other))
            }
        }
    }

    async fn one(&self, wanted: &Wanted) -> Answer {
        let origin = self.origin(&wanted.source).await?;
        let fetched = gather::component(&origin, self.max_bytes).await?;
        let mut supply = fetched.supply();
        if let Some(trusted) = self.trusted {
            let about = About::component(&fetched.resolved);
            let report = gather::evidence(&self.stores, &origin, &about, trusted.terms()).await;
            supply.evidence = report.evidence;
        }
        Ok(Found { bytes: fetched.bytes, supply })
    }

    /// Finds and verifies the evidence about one image.
    pub(crate) async fn report(&self, origin: &Origin, about: &About, trusted: &Trusted) -> Report {
        gather::evidence(&self.stores, origin, about, trusted.terms()).await
    }

    /// Asks for the digest that each name stands for now, all at once.
    pub(crate) fn digests(
        &self,
        wanted: &[Wanted],
    ) -> Result<Vec<Result<Digest, Failure>>, Failure> {
        let jobs = wanted.iter().map(|wanted| async move {
            let origin = self.origin(&wanted.source).await?;
            Ok(origin.store.manifest(&origin.name).await?.digest)
        });
        Ok(self.wait(self.progress.all("resolving", jobs, AT_ONCE)))
    }
}

impl Fetch for Fetcher<'_> {
    fn fetch(&self, wanted: &[Wanted]) -> Result<Vec<Answer>, Failure> {
        let jobs = wanted.iter().map(|wanted| self.one(wanted));
        Ok(self.wait(self.progress.all("fetching", jobs, AT_ONCE)))
    }
}

/// Sets up the way once something has to be fetched, and not before.
pub(crate) struct Lazy<'a> {
    pub(crate) flags: &'a Registry,
    pub(crate) configuration: &'a Configuration,
    pub(crate) output: &'a Output,
    /// Whose evidence counts; `None` where none is looked for.
    pub(crate) trusted: Option<&'a Trusted>,
}

impl Fetch for Lazy<'_> {
    fn fetch(&self, wanted: &[Wanted]) -> Result<Vec<Answer>, Failure> {
        let fetcher = Fetcher::new(self.flags, self.configuration, self.output)?;
        match self.trusted {
            Some(trusted) => fetcher.gathering(trusted).fetch(wanted),
            None => fetcher.fetch(wanted),
        }
    }
}

fn not_a_reference(source: &ImageSource) -> Failure {
    match source {
        ImageSource::Invalid(error) => {
            Failure::new(error.code(), error.to_string(), Some(error.help()))
        }
        ImageSource::Oci(_)
        | ImageSource::Layout { .. }
        | ImageSource::File(_)
        | ImageSource::Artifact(_) => Failure::new(
            "usage-reference",
            "a reference or a layout is asked for",
            Some("write `registry.example/app:1.4` or `layout:DIR:1.4`".to_owned()),
        ),
    }
}
