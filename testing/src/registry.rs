//! A registry on loopback, with the referrers API, and with faults on request.
//!
//! It keeps everything in memory and speaks what the distribution specification 1.1 asks for. What
//! Debian's docker-registry 2.8.2 does it does in the same way: unknown blobs, indexes with
//! missing children, absolute locations, 404 in plain text where there is no referrers API.
//! A [`Fault`] replaces or bends single answers, and a log says what was asked.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "this serves tests, which may fail loudly"
)]

mod auth;
mod fault;
mod serve;
mod state;
mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

pub use self::auth::{Anonymous, Auth, Bearer, Realm};
pub use self::fault::{Action, Fault, Nth};
use self::state::State;

/// What a registry is like.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether it has the referrers API.
    pub referrers: ReferrersApi,
    /// Whether it says `OCI-Subject` after a push of a manifest with a subject.
    pub subject: SubjectHeader,
    /// Who may do what.
    pub auth: Auth,
    /// Referrers on one page.
    pub page_size: usize,
    /// Whether it speaks TLS.
    pub transport: Transport,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            referrers: ReferrersApi::Served,
            subject: SubjectHeader::Sent,
            auth: Auth::Open,
            page_size: 100,
            transport: Transport::Plain,
        }
    }
}

impl Options {
    /// A registry as docker-registry 2.8.2 is: no referrers API, no `OCI-Subject`.
    #[must_use]
    pub fn old() -> Self {
        Self {
            referrers: ReferrersApi::Missing,
            subject: SubjectHeader::Missing,
            ..Self::default()
        }
    }
}

/// Whether there is a referrers API.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReferrersApi {
    /// There is.
    Served,
    /// There is none: 404 in plain text.
    Missing,
}

/// Whether `OCI-Subject` is said after a push.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SubjectHeader {
    /// It is.
    Sent,
    /// It isn't.
    Missing,
}

/// How the registry is spoken to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// Plain http.
    Plain,
    /// https, with a certificate for `127.0.0.1`, `localhost` and `registry.test`.
    Tls,
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers with lower-case names, in order.
    pub headers: Vec<(String, String)>,
    /// The body's length in bytes.
    pub length: usize,
}

impl Logged {
    /// Returns the first header of this name, which is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// A registry that runs until it is dropped.
pub struct Registry {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    options: Options,
    certificate_authority: String,
    state: Mutex<State>,
    held: Semaphore,
}

impl Registry {
    /// Starts a registry in the runtime that calls.
    ///
    /// # Panics
    ///
    /// If loopback has no free port.
    pub async fn start(options: Options) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("a bound port");
        let (secure, certificate_authority) = match options.transport {
            Transport::Plain => (Err(listener), String::new()),
            Transport::Tls => {
                let (secure, authority) = tls::listener(listener);
                (Ok(secure), authority)
            }
        };
        let shared = Arc::new(Shared {
            options,
            certificate_authority,
            state: Mutex::new(State::default()),
            held: Semaphore::new(0),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let router = serve::router(Arc::clone(&shared));
        tokio::spawn(async move {
            let serve = async {
                match secure {
                    Ok(secure) => axum::serve(secure, router).await,
                    Err(plain) => axum::serve(plain, router).await,
                }
            };
            tokio::select! {
                _ = serve => {}
                _ = stopped => {}
            }
        });
        Self { address, shared, stop: Some(stop), thread: None }
    }

    /// Starts a registry on a thread of its own, for tests that aren't asynchronous.
    ///
    /// # Panics
    ///
    /// If loopback has no free port, or there is no thread to be had.
    #[must_use]
    pub fn start_blocking(options: Options) -> Self {
        let (give, take) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let registry = Self::start(options).await;
                give.send((registry.address, Arc::clone(&registry.shared))).expect("a starter");
                // An error means that the owner is gone, which is a stop too.
                let _ = stopped.await;
            });
        });
        let (address, shared) = take.recv().expect("a started registry");
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns `127.0.0.1:PORT`.
    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns the URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.shared.scheme(), self.address)
    }

    /// Returns the certificate authority as PEM; it is empty over plain http.
    #[must_use]
    pub fn certificate_authority(&self) -> &str {
        &self.shared.certificate_authority
    }

    fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        self.shared.state(with)
    }

    /// Makes single answers go wrong.
    pub fn fault(&self, fault: Fault) {
        self.state(|state| state.faults.push(fault));
    }

    /// Takes all faults back.
    pub fn clear_faults(&self) {
        self.state(|state| state.faults.clear());
    }

    /// Returns what was asked so far.
    #[must_use]
    pub fn log(&self) -> Vec<Logged> {
        self.state(|state| state.log.clone())
    }

    /// Returns how many requests came whose method and path (with query) start like this.
    #[must_use]
    pub fn count(&self, method: &str, path: &str) -> usize {
        let fits = |logged: &&Logged| logged.method == method && logged.path.starts_with(path);
        self.state(|state| state.log.iter().filter(fits).count())
    }

    /// Forgets what was asked so far.
    pub fn clear_log(&self) {
        self.state(|state| state.log.clear());
    }

    /// Returns how many requests are held by [`Action::Hold`] now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.state(|state| state.held)
    }

    /// Lets all held requests go on, and those to come.
    pub fn release(&self) {
        self.shared.held.add_permits(10_000);
    }

    /// Makes every token that was given so far invalid.
    pub fn revoke_tokens(&self) {
        self.state(|state| state.oldest_token = state.tokens);
    }

    /// Stores a blob and returns its digest.
    pub fn put_blob(&self, repository: &str, bytes: &[u8]) -> String {
        self.state(|state| state.put_blob(repository, bytes))
    }

    /// Stores a manifest, whatever it says, and returns its digest. A tag with `:` is a digest and
    /// no tag.
    pub fn put_manifest(
        &self,
        repository: &str,
        tag: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> String {
        self.state(|state| state.put_manifest(repository, tag, media_type, bytes))
    }

    /// Adds descriptors to the referrers of a subject, whatever they say.
    pub fn plant_referrers(&self, subject: &str, descriptors: Vec<Value>) {
        self.state(|state| {
            state.planted.entry(subject.to_owned()).or_default().extend(descriptors);
        });
    }

    /// Returns a blob, if it is there.
    #[must_use]
    pub fn blob(&self, repository: &str, digest: &str) -> Option<Vec<u8>> {
        self.state(|state| state.blob(repository, digest).map(<[u8]>::to_vec))
    }

    /// Returns the bytes of a manifest by tag or digest, if it is there.
    #[must_use]
    pub fn manifest(&self, repository: &str, name: &str) -> Option<Vec<u8>> {
        self.state(|state| state.manifest(repository, name).map(|stored| stored.bytes.clone()))
    }
}

impl Shared {
    fn scheme(&self) -> &'static str {
        match self.options.transport {
            Transport::Plain => "http",
            Transport::Tls => "https",
        }
    }

    fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.state.lock().expect("no handler panicked"))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
