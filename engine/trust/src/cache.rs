//! A cache on disk for what digests name, and a store that reads through it.
//!
//! Content is kept under its digest and hashed again when it is read, so that a damaged or changed
//! file is as good as none. Several processes may use one folder; one that is killed leaves nothing
//! that another would take for content. Within a process, what several tasks ask for at the same
//! time is fetched once.
//!
//! What a tag or a list of referrers said is kept too, but only for running offline: online, each is
//! asked again.

mod folder;
mod stored;

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OnceCell;

use self::folder::Folder;
pub use self::stored::CachedStore;
use crate::error::FetchError;

/// Content with its media type, which is empty for blobs.
#[derive(Debug)]
struct Kept {
    media_type: String,
    bytes: Vec<u8>,
}

/// One fetch that several tasks may wait for.
type Flight = OnceCell<Result<Arc<Kept>, FetchError>>;

/// A cache folder.
#[derive(Debug)]
pub struct Cache {
    folder: Arc<Folder>,
    flights: Mutex<HashMap<String, Weak<Flight>>>,
    problem: Arc<Mutex<Option<FetchError>>>,
}

impl Cache {
    /// Opens the cache in `dir`, which is made if it is missing, for at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// [`FetchError::Io`] if the folder can't be made or read.
    pub fn open(dir: &Path, max_bytes: u64) -> Result<Self, FetchError> {
        Ok(Self {
            folder: Arc::new(Folder::open(dir, max_bytes)?),
            flights: Mutex::default(),
            problem: Arc::default(),
        })
    }

    /// Takes the last thing that went wrong with the folder while something was fetched anyway: a
    /// cache that can't be written is slow, and no reason to stop.
    #[must_use]
    pub fn take_problem(&self) -> Option<FetchError> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Runs `fetch` unless another task does so for the same key, and hands out its result.
    ///
    /// Errors reach those who were waiting and are not kept. If the task that fetches is dropped,
    /// one of the others starts over.
    async fn once(
        &self,
        key: String,
        fetch: impl Future<Output = Result<Kept, FetchError>>,
    ) -> Result<Arc<Kept>, FetchError> {
        let flight = {
            let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
            match flights.get(&key).and_then(Weak::upgrade) {
                Some(flight) => flight,
                None => {
                    flights.retain(|_, flight| flight.strong_count() > 0);
                    let flight = Arc::new(Flight::new());
                    flights.insert(key, Arc::downgrade(&flight));
                    flight
                }
            }
        };
        flight.get_or_init(|| async { fetch.await.map(Arc::new) }).await.clone()
    }
}
