//! What one instance has open.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::record::{Outcome, Recorder, Ticket};
use crate::scope::Scope;
use crate::state::Instance;

/// What one instance has open, by the number of the handle in its table.
pub(crate) struct Files {
    pub(super) open: HashMap<u32, Open>,
    /// Entries of the listings that are open, by the number of their handle.
    pub(super) listings: HashMap<u32, usize>,
    pub(super) slots: Slots,
    pub(super) written: Written,
    recorder: Arc<dyn Recorder>,
}

/// One descriptor.
pub(super) struct Open {
    /// Which folder of the component it is beneath.
    pub(super) folder: usize,
    /// Its path as the component sees it.
    pub(super) path: String,
    pub(super) held: Arc<Held>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

impl Files {
    pub(crate) fn new(scope: &Arc<Scope>, _instance: &Instance) -> Self {
        Self {
            open: HashMap::new(),
            listings: HashMap::new(),
            slots: Slots { used: Arc::default(), limit: scope.limits().descriptors },
            written: Written {
                left: Arc::new(AtomicU64::new(scope.limits().written_bytes)),
                limit: scope.limits().written_bytes,
            },
            recorder: Arc::clone(&scope.setup().recorder),
        }
    }

    /// Makes what a descriptor and its streams share.
    pub(super) fn held(&self, slot: Slot, ticket: Option<Ticket>) -> Arc<Held> {
        Arc::new(Held {
            read: AtomicU64::new(0),
            wrote: AtomicU64::new(0),
            ticket,
            since: Instant::now(),
            recorder: Arc::clone(&self.recorder),
            _slot: slot,
        })
    }

    /// Entries of all listings that are open.
    pub(super) fn listed(&self) -> usize {
        self.listings.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// What a descriptor and its streams share. A stream keeps the file open after its descriptor is
/// closed, so the file is closed, and the outcome of its opening written, with the last of them.
pub(super) struct Held {
    pub(super) read: AtomicU64,
    pub(super) wrote: AtomicU64,
    ticket: Option<Ticket>,
    since: Instant,
    recorder: Arc<dyn Recorder>,
    _slot: Slot,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let outcome = Outcome {
                result: "ok".into(),
                bytes_out: self.wrote.load(Ordering::Relaxed),
                bytes_in: self.read.load(Ordering::Relaxed),
                duration: self.since.elapsed(),
                detail: String::new(),
            };
            self.recorder.end(ticket, outcome);
        }
    }
}

/// Files and folders that an instance may have open at once.
pub(super) struct Slots {
    used: Arc<AtomicUsize>,
    pub(super) limit: usize,
}

impl Slots {
    /// Takes a place; `None` if all are taken.
    pub(super) fn take(&self) -> Option<Slot> {
        let take = |used: usize| (used < self.limit).then(|| used.saturating_add(1));
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(Slot(Arc::clone(&self.used)))
    }
}

/// A place that is taken.
pub(super) struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes that an instance may still write.
#[derive(Clone, Debug)]
pub(super) struct Written {
    left: Arc<AtomicU64>,
    pub(super) limit: u64,
}

impl Written {
    /// Takes bytes away; `false` if there are not as many.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}
