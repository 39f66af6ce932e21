//! What one instance has open.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::record::{Outcome, Recorder, Ticket};
use crate::scope::Scope;
use crate::state::Instance;

/// What one instance has open, by the number of the handle in its table.
pub(crate) struct Files {
    pub(super) open: HashMap<u32, Open>,
    pub(super) written: Written,
    recorder: Arc<dyn Recorder>,
}

/// One descriptor.
pub(super) struct Open {
    /// Which folder of the component it is beneath.
    pub(super) folder: usize,
    /// Its path as the component sees it.
    pub(super) path: String,
    pub(super) ticket: Option<Ticket>,
    pub(super) since: Instant,
    pub(super) read: Arc<AtomicU64>,
    pub(super) wrote: Arc<AtomicU64>,
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
            written: Written {
                left: Arc::new(AtomicU64::new(scope.limits().written_bytes)),
                limit: scope.limits().written_bytes,
            },
            recorder: Arc::clone(&scope.setup().recorder),
        }
    }

    /// Forgets a descriptor, and writes the outcome of its opening.
    pub(super) fn close(&mut self, number: u32) {
        if let Some(open) = self.open.remove(&number) {
            end(&*self.recorder, open);
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for (_, open) in self.open.drain() {
            end(&*self.recorder, open);
        }
    }
}

fn end(recorder: &dyn Recorder, open: Open) {
    if let Some(ticket) = open.ticket {
        let outcome = Outcome {
            result: "ok".into(),
            bytes_out: open.wrote.load(Ordering::Relaxed),
            bytes_in: open.read.load(Ordering::Relaxed),
            duration: open.since.elapsed(),
            detail: String::new(),
        };
        recorder.end(ticket, outcome);
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
