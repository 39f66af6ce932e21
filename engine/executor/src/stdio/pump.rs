//! A thread that writes to a stream of the process, with a bounded queue in front of it.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most bytes that wait.
const CAPACITY: usize = 64 * 1024;

/// The queue and its thread. The thread ends with the last handle.
#[derive(Debug)]
pub(crate) struct Pump {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Bytes came, or nobody will bring any.
    work: Condvar,
    /// Bytes left, or the reader is gone.
    room: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    /// Bytes that the thread has taken and not yet written.
    writing: usize,
    closed: bool,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is whole after any panic: no step of it can be half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pump {
    /// Starts the thread. If the machine gives none, the stream is closed from the start.
    pub(crate) fn start(name: &str, to: impl Write + Send + 'static) -> Arc<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let started = std::thread::Builder::new()
            .name(format!("ambit-{name}"))
            .spawn(move || run(&theirs, to));
        if started.is_err() {
            shared.lock().closed = true;
        }
        Arc::new(Self { shared })
    }

    /// Returns how many bytes there is room for; `None` if the reader is gone.
    pub(crate) fn room(&self) -> Option<usize> {
        let queue = self.shared.lock();
        (!queue.closed).then(|| CAPACITY.saturating_sub(queue.bytes.len()))
    }

    /// Puts bytes into the queue. The caller has asked for room.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut queue = self.shared.lock();
        if !queue.closed {
            queue.bytes.extend_from_slice(bytes);
            self.shared.work.notify_one();
        }
    }

    /// Tells whether everything has been written.
    pub(crate) fn is_empty(&self) -> bool {
        let queue = self.shared.lock();
        queue.closed || (queue.bytes.is_empty() && queue.writing == 0)
    }

    /// Waits until `done`, asked again whenever bytes have left.
    pub(crate) async fn until(&self, done: impl Fn(&Self) -> bool) {
        loop {
            // Registered before the question, so that no change between the two is missed.
            let notified = self.shared.room.notified();
            if done(self) {
                return;
            }
            notified.await;
        }
    }

    /// Waits until everything has been written, or the reader is gone.
    pub(crate) async fn drained(&self) {
        self.until(Self::is_empty).await;
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.work.notify_one();
    }
}

fn run(shared: &Shared, mut to: impl Write) {
    let mut bytes = Vec::new();
    loop {
        {
            let mut queue = shared.lock();
            queue.writing = 0;
            shared.room.notify_waiters();
            while queue.bytes.is_empty() && !queue.ended {
                queue = shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            if queue.bytes.is_empty() {
                return;
            }
            bytes.clear();
            std::mem::swap(&mut bytes, &mut queue.bytes);
            queue.writing = bytes.len();
        }
        shared.room.notify_waiters();
        if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
            shared.lock().closed = true;
            shared.room.notify_waiters();
            return;
        }
    }
}
