//! OCI registries over HTTP (distribution specification 1.1,
//! <https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md>).
//!
//! A [`Client`] keeps what calls share: connections, tokens, how registries answered lately. It
//! hands out one [`RegistryStore`] for each repository.
//!
//! Left out on purpose: deleting, listing, mounting across repositories, chunked uploads, and any
//! header that tells a digest. Digests are computed from the bytes that came.
//!
//! # Invariants
//!
//! - One answer to one request says what a tag is; everything else is asked by digest and checked.
//! - Nothing is read beyond its limit, and no call outlasts its time, retries included.
//! - Every host is judged before it is called, with every address that its name has: registry,
//!   redirect, token realm and upload location alike.
//! - A credential goes to the registry's own host, over https or within this machine, and to token
//!   servers on that host or that configuration names; after a redirect to another host it goes
//!   nowhere. No error repeats one.
//! - "There are no referrers" is only concluded from 404; every other trouble is an error.

mod address;
mod auth;
mod breaker;
mod challenge;
pub mod credentials;
mod exchange;
mod options;
mod push;
mod read;
mod referrers;
mod secret;
mod text;
mod time;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ambit_engine::digest::Digest;
use ambit_engine::reference::Repository;
use reqwest::Url;

use self::address::{Authority, Gate, Named, Net, Site, Vetting};
use self::breaker::{Outcome, Registry};
use self::credentials::Credentials;
use self::exchange::Exchange;
use crate::error::FetchError;
use crate::oci::{Descriptor, ManifestName, RawManifest, SubjectIndexed};
use crate::store::{Answer, Referrers, Store};

pub use self::address::{HostPort, Lookup, Resolver, SystemResolver};
pub use self::breaker::{BreakerOptions, RetryOptions};
pub use self::options::{Loopback, Mirror, Options, OptionsError, RealmPair};
pub use self::secret::Secret;
pub use self::time::{SystemTimer, Timer};

/// The most registries that are remembered. References name them, so the number has no other end.
const MAX_REGISTRIES: usize = 1024;

/// Calls registries. Clones share everything.
///
/// # Examples
///
/// ```
/// use ambit_engine::reference::Reference;
/// use ambit_trust::oci::ManifestName;
/// use ambit_trust::registry::{Client, Options};
/// use ambit_trust::store::Store as _;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let client = Client::new(Options::default())?;
/// let reference: Reference = "169.254.169.254/team/app:1".parse()?;
/// let store = client.repository(reference.repository());
/// let error = store.manifest(&ManifestName::Tag("1".to_owned())).await.unwrap_err();
/// assert_eq!(error.code(), "registry-address");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    session: Arc<Session>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Client {
    /// Makes a client. Nothing is called yet.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] if a certificate authority can't be read.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        let mut authorities = Vec::new();
        for (at, pem) in options.certificates.iter().enumerate() {
            let number = at.saturating_add(1);
            let invalid = |reason: String| OptionsError::Certificate { number, reason };
            let read = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|error| invalid(exchange::deepest(&error)))?;
            if read.is_empty() {
                return Err(invalid("there is none in it".to_owned()));
            }
            authorities.extend(read);
        }
        let gate = Arc::new(Gate {
            range: options.range.clone(),
            loopback: options.loopback,
            insecure: options.insecure.clone(),
            private: options.private.clone(),
        });
        let shared = Shared {
            gate,
            http: Net::ALL.map(|net| (net, OnceLock::new())),
            registries: Mutex::new(HashMap::new()),
            options,
            authorities,
        };
        if !shared.authorities.is_empty() {
            shared.http(Net::Public).map_err(|reason| OptionsError::Client { reason })?;
        }
        let session = Session::new(Arc::clone(&shared.options.credentials));
        Ok(Self { shared: Arc::new(shared), session: Arc::new(session) })
    }

    /// Returns a client with other credentials and no token of this one, as the pull secrets of one
    /// namespace need it. Connections, limits and what is known of registries' health are shared.
    #[must_use]
    pub fn with_credentials(&self, credentials: Arc<Credentials>) -> Self {
        let session = Arc::new(Session::new(credentials));
        Self { shared: Arc::clone(&self.shared), session }
    }

    /// Returns the store for one repository. A registry that may not be called is an error of each
    /// call to it.
    #[must_use]
    pub fn repository(&self, repository: &Repository) -> RegistryStore {
        let shared = &self.shared;
        let home = Route::to(shared, repository.registry(), repository.path(), Named::ByReference);
        let mirror =
            shared.options.mirrors.iter().find(|mirror| mirror.of == repository.registry());
        let read = match mirror {
            None => home.clone(),
            Some(mirror) if mirror.prefix.is_empty() => {
                Route::to(shared, &mirror.registry, repository.path(), Named::ByOperator)
            }
            Some(mirror) => {
                let path = format!("{}/{}", mirror.prefix, repository.path());
                Route::to(shared, &mirror.registry, &path, Named::ByOperator)
            }
        };
        RegistryStore { client: self.clone(), name: repository.to_string(), read, push: home }
    }
}

/// What belongs to one set of credentials.
struct Session {
    credentials: Arc<Credentials>,
    memory: auth::Memory,
}

impl Session {
    fn new(credentials: Arc<Credentials>) -> Self {
        Self { credentials, memory: auth::Memory::default() }
    }

    /// Tells whether `text` repeats anything secret that is known here.
    fn knows_secret_in(&self, text: &str) -> bool {
        self.credentials.is_repeated_in(text) || self.memory.is_repeated_in(text)
    }

    /// Takes out of an error what repeats a credential. Headers, hosts and types in answers are the
    /// registry's choice, so the last word is here, whichever of them an error shows.
    fn scrub(&self, mut error: FetchError) -> FetchError {
        let clean = |text: &mut String| {
            if self.knows_secret_in(text) {
                exchange::LEFT_OUT.clone_into(text);
            }
        };
        match &mut error {
            FetchError::Auth { reason, .. } | FetchError::Protocol { reason, .. } => clean(reason),
            FetchError::Unavailable { registry, reason } => {
                clean(registry);
                clean(reason);
            }
            FetchError::RateLimited { registry, .. } => clean(registry),
            FetchError::Address { host, reason } => {
                clean(host);
                clean(reason);
            }
            // These name what was asked for, and nothing of the answer.
            FetchError::NotFound { .. }
            | FetchError::NotWasm { .. }
            | FetchError::IndexAmbiguous { .. }
            | FetchError::Layout { .. }
            | FetchError::Conflict { .. }
            | FetchError::Timeout { .. }
            | FetchError::Limit { .. }
            | FetchError::DigestMismatch { .. }
            | FetchError::Offline { .. }
            | FetchError::Io { .. } => {}
        }
        error
    }
}

/// What all calls share.
struct Shared {
    options: Options,
    authorities: Vec<reqwest::Certificate>,
    gate: Arc<Gate>,
    /// One HTTP client for each kind of place, since connections are kept per client: a connection
    /// that was opened under wider rules is never found by a call under narrower ones.
    http: [(Net, OnceLock<Result<reqwest::Client, String>>); 3],
    registries: Mutex<HashMap<Authority, Arc<Registry>>>,
}

impl Shared {
    fn http(&self, net: Net) -> Result<reqwest::Client, String> {
        let slot = self.http.iter().find(|(own, _)| *own == net);
        let (_, slot) = slot.ok_or_else(|| "no client for this kind of place".to_owned())?;
        slot.get_or_init(|| self.build(net)).clone()
    }

    fn build(&self, net: Net) -> Result<reqwest::Client, String> {
        let builder = || {
            let resolver = Arc::clone(&self.options.resolver);
            let vetting = Vetting { resolver, gate: Arc::clone(&self.gate), net };
            reqwest::Client::builder()
                .user_agent(concat!("ambit/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                .no_proxy()
                .dns_resolver(vetting)
        };
        match builder().tls_certs_merge(self.authorities.clone()).build() {
            Ok(client) => Ok(client),
            // A machine without certificate authorities can still speak plain http where that is
            // allowed; over https nothing is trusted then.
            Err(_) if self.authorities.is_empty() => builder()
                .tls_certs_only(std::iter::empty())
                .build()
                .map_err(|error| exchange::deepest(&error)),
            Err(error) => Err(exchange::deepest(&error)),
        }
    }

    fn registry(&self, authority: &Authority) -> Arc<Registry> {
        let mut known = self.registries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(registry) = known.get(authority) {
            return Arc::clone(registry);
        }
        if known.len() >= MAX_REGISTRIES {
            // One that is in use or under suspicion is kept, unless all are.
            known.retain(|_, registry| Arc::strong_count(registry) > 1 || !registry.is_idle());
            if known.len() >= MAX_REGISTRIES {
                known.retain(|_, registry| Arc::strong_count(registry) > 1);
            }
        }
        let options = &self.options;
        let registry = Registry::new(options.concurrency, options.breaker, options.retries);
        let registry = Arc::new(registry);
        known.insert(authority.clone(), Arc::clone(&registry));
        registry
    }
}

impl Client {
    /// Runs one call: waits for its turn, asks the breaker, keeps the time, and tells the breaker.
    async fn call<'a, T, F>(
        &'a self,
        route: &'a Route,
        what: String,
        work: impl FnOnce(Exchange<'a>) -> F,
    ) -> Result<T, FetchError>
    where
        F: Future<Output = Result<T, FetchError>>,
    {
        let shared = self.shared.as_ref();
        let registry = shared.registry(&route.site.authority);
        let timer = shared.options.timer.as_ref();
        let limit = shared.options.call_timeout;
        let started = timer.elapsed();
        let pass = Mutex::new(None);
        let run = async {
            let unavailable = |reason: &str| FetchError::Unavailable {
                registry: route.registry.clone(),
                reason: reason.to_owned(),
            };
            let turn = Arc::clone(&registry.calls).acquire_owned().await;
            let _turn = turn.map_err(|_| unavailable("no more calls are made"))?;
            let admitted = registry.admit(timer).map_err(|_| {
                unavailable(
                    "it gave no answer several times in a row, and is left alone for a while",
                )
            })?;
            *pass.lock().unwrap_or_else(PoisonError::into_inner) = Some(admitted);
            let exchange = Exchange {
                shared,
                session: &self.session,
                route,
                registry: Arc::clone(&registry),
                what: what.clone(),
                started,
            };
            work(exchange).await
        };
        let result = tokio::time::timeout(limit, run)
            .await
            .unwrap_or_else(|_| Err(FetchError::Timeout { what: what.clone(), after: limit }));
        if let Some(pass) = pass.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let silent =
                matches!(result, Err(FetchError::Unavailable { .. } | FetchError::Timeout { .. }));
            pass.tell(if silent { Outcome::Silent } else { Outcome::Answered });
        }
        result.map_err(|error| self.session.scrub(error))
    }
}

/// The way to one repository.
#[derive(Clone, Debug)]
struct Route {
    /// The registry as it is named, for messages and for its credentials.
    registry: String,
    /// The repository's path there.
    path: String,
    site: Site,
    base: Url,
}

impl Route {
    fn to(shared: &Shared, registry: &str, path: &str, named: Named) -> Result<Self, FetchError> {
        let site = shared.gate.home(registry, named)?;
        let text = format!("{}://{}/v2/{path}/", site.scheme.as_str(), site.authority);
        let base = Url::parse(&text).map_err(|_| FetchError::Address {
            host: registry.to_owned(),
            reason: "it is no address that can be called".to_owned(),
        })?;
        Ok(Self { registry: registry.to_owned(), path: path.to_owned(), site, base })
    }

    fn url(&self, rest: &str) -> Result<Url, FetchError> {
        // `rest` starts with a word and a slash, so that a digest's colon makes no scheme of it.
        self.base.join(rest).map_err(|_| FetchError::Address {
            host: self.registry.clone(),
            reason: "it is no address that can be called".to_owned(),
        })
    }
}

/// One repository in a registry, or in the mirror that reads go to.
#[derive(Clone)]
pub struct RegistryStore {
    client: Client,
    name: String,
    read: Result<Route, FetchError>,
    push: Result<Route, FetchError>,
}

impl fmt::Debug for RegistryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegistryStore").field(&self.name).finish()
    }
}

fn route(found: &Result<Route, FetchError>) -> Result<&Route, FetchError> {
    found.as_ref().map_err(Clone::clone)
}

impl RegistryStore {
    fn what(&self, name: &ManifestName) -> String {
        match name {
            ManifestName::Tag(tag) => format!("{}:{tag}", self.name),
            ManifestName::Digest(digest) => format!("{}@{digest}", self.name),
        }
    }
}

impl Store for RegistryStore {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn manifest<'a>(&'a self, name: &'a ManifestName) -> Answer<'a, RawManifest> {
        Box::pin(async move {
            let work = |exchange| async move { read::manifest(&exchange, name).await };
            self.client.call(route(&self.read)?, self.what(name), work).await
        })
    }

    fn blob<'a>(&'a self, blob: &'a Descriptor, max_bytes: usize) -> Answer<'a, Vec<u8>> {
        Box::pin(async move {
            let what = format!("{}@{}", self.name, blob.digest);
            let size = read::bounded(blob, max_bytes, &what)?;
            let work = |exchange| async move { read::blob(&exchange, &blob.digest, size).await };
            self.client.call(route(&self.read)?, what, work).await
        })
    }

    fn referrers<'a>(&'a self, subject: &'a Digest) -> Answer<'a, Referrers> {
        Box::pin(async move {
            let what = format!("referrers of {}@{subject}", self.name);
            let work = |exchange| async move { referrers::list(&exchange, subject).await };
            self.client.call(route(&self.read)?, what, work).await
        })
    }

    fn push_blob<'a>(&'a self, media_type: &'a str, bytes: &'a [u8]) -> Answer<'a, Descriptor> {
        Box::pin(async move {
            let descriptor = Descriptor::of(media_type, bytes);
            let what = format!("{}@{}", self.name, descriptor.digest);
            let digest = descriptor.digest;
            let work = |exchange| async move { push::blob(&exchange, &digest, bytes).await };
            self.client.call(route(&self.push)?, what, work).await?;
            Ok(descriptor)
        })
    }

    fn push_manifest<'a>(
        &'a self,
        name: &'a ManifestName,
        media_type: &'a str,
        bytes: &'a [u8],
    ) -> Answer<'a, SubjectIndexed> {
        Box::pin(async move {
            let what = self.what(name);
            let subject = push::check(name, bytes, &what)?;
            let work = |exchange| async move {
                push::manifest(&exchange, name, media_type, bytes, subject.as_ref()).await
            };
            self.client.call(route(&self.push)?, what, work).await
        })
    }
}
