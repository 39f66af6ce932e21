//! A bounded cache in which each question is asked once at a time.
//!
//! Whoever asks waits for the one answer that is on its way, as long as it likes: the work goes on
//! in a task of its own, so that a question that came too early finds its answer when it is asked
//! again. What failed isn't kept.

use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::future::Cache;

/// How long an answer holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keep {
    /// As long as there is room: it says what a digest names.
    Forever,
    /// This long.
    For(Duration),
}

/// An answer with how long it holds and what it weighs.
#[derive(Clone, Debug)]
pub struct Made<V> {
    /// The answer.
    pub value: V,
    /// How long it holds.
    pub keep: Keep,
    /// About how many bytes it takes.
    pub weight: u32,
}

struct Until;

impl<K, V> Expiry<K, Made<V>> for Until {
    fn expire_after_create(&self, _: &K, made: &Made<V>, _: Instant) -> Option<Duration> {
        match made.keep {
            Keep::Forever => None,
            Keep::For(time) => Some(time),
        }
    }
}

/// How often a layer was asked.
#[derive(Debug, Default)]
pub struct Counts {
    /// Questions.
    pub asked: AtomicU64,
    /// Questions for which work was begun; the others found an answer, or one on its way.
    pub begun: AtomicU64,
}

/// A cache with one question at a time for each key. Clones share everything.
#[derive(Clone)]
pub struct Layer<K, V> {
    cache: Cache<K, Made<V>>,
    counts: Arc<Counts>,
}

impl<K, V> Layer<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Makes a layer of at most `max_weight`, in the unit of [`Made::weight`].
    #[must_use]
    pub fn new(max_weight: u64) -> Self {
        let cache = Cache::builder()
            .max_capacity(max_weight)
            .weigher(|_: &K, made: &Made<V>| made.weight)
            .expire_after(Until)
            .build();
        Self { cache, counts: Arc::default() }
    }

    /// Returns the answer to `key`, and asks by `work` where there is none yet.
    ///
    /// # Errors
    ///
    /// What `work` fails with; [`Lost`] if it was lost on its way, as when it panicked.
    pub async fn get<E, F>(&self, key: K, work: F) -> Result<V, Lost<E>>
    where
        E: Clone + Send + Sync + 'static,
        F: Future<Output = Result<Made<V>, E>> + Send + 'static,
    {
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        if let Some(made) = self.cache.get(&key).await {
            return Ok(made.value);
        }
        let (cache, counts) = (self.cache.clone(), Arc::clone(&self.counts));
        let task = tokio::spawn(async move {
            let work = async {
                counts.begun.fetch_add(1, Ordering::Relaxed);
                work.await
            };
            cache.try_get_with(key, work).await
        });
        match task.await {
            Ok(Ok(made)) => Ok(made.value),
            Ok(Err(error)) => Err(Lost::Failed((*error).clone())),
            Err(_) => Err(Lost::Gone),
        }
    }

    /// Returns how often it was asked.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns about how many bytes it holds.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.cache.weighted_size()
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lost<E> {
    /// The work failed.
    Failed(E),
    /// The work ended without a result.
    Gone,
}

#[cfg(test)]
mod tests;
