//! The CPU time of an instance: that of the thread, while the instance's calls are polled.
//!
//! Time in which a call waits, or in which the machine does something else, is nobody's. A call into
//! another component's instance is that instance's time and not its caller's.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

thread_local! {
    /// What calls within the one that is being polled have taken, in nanoseconds.
    static WITHIN: Cell<u64> = const { Cell::new(0) };
}

/// The CPU time of this thread so far, in nanoseconds.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let rest = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// What one instance has taken so far. Clones are of the same instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu(Arc<Spent>);

#[derive(Debug, Default)]
struct Spent {
    /// By polls that are over, in nanoseconds.
    before: AtomicU64,
    /// The thread's time when the present poll began.
    began: AtomicU64,
}

impl Cpu {
    /// Returns the time so far. Called from within a poll, on its thread.
    pub(crate) fn spent(&self) -> Duration {
        let began = self.0.began.load(Ordering::Relaxed);
        let poll = thread_time().saturating_sub(began).saturating_sub(WITHIN.get());
        Duration::from_nanos(self.0.before.load(Ordering::Relaxed).saturating_add(poll))
    }

    /// Returns a future that counts what its polls take.
    pub(crate) fn measure<F: Future>(&self, call: F) -> impl Future<Output = F::Output> {
        Measured { cpu: self.clone(), call: Box::pin(call) }
    }
}

struct Measured<F> {
    cpu: Cpu,
    call: Pin<Box<F>>,
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let began = thread_time();
        self.cpu.0.began.store(began, Ordering::Relaxed);
        let around = WITHIN.replace(0);
        let answer = self.call.as_mut().poll(cx);
        let whole = thread_time().saturating_sub(began);
        let own = whole.saturating_sub(WITHIN.replace(around.saturating_add(whole)));
        self.cpu.0.before.fetch_add(own, Ordering::Relaxed);
        answer
    }
}
