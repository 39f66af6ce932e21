//! From names to addresses.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use super::BoxFuture;

/// The most addresses of one name that are looked at.
pub(super) const MAX_ADDRESSES: usize = 32;

/// Look-ups that run at once. Each may hold a thread for as long as the system's resolver waits.
const LOOKUPS: usize = 32;

/// Resolves names. Each request asks once, and dials nothing but what this answer holds.
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a canonical name.
    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>>;
}

/// Resolves as the system does.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    slots: Arc<tokio::sync::Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { slots: Arc::new(tokio::sync::Semaphore::new(LOOKUPS)) }
    }
}

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        let slots = Arc::clone(&self.slots);
        Box::pin(async move {
            let slot = slots.acquire_owned().await.map_err(io::Error::other)?;
            // The slot goes with the look-up, which goes on when the caller stops waiting.
            let lookup = tokio::spawn(async move {
                let found = tokio::net::lookup_host((name.as_str(), 0)).await;
                let found: io::Result<Vec<IpAddr>> = found
                    .map(|found| found.take(MAX_ADDRESSES).map(|address| address.ip()).collect());
                drop(slot);
                found
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
