//! Bodies that are counted, bounded, and told about when they end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::Sleep;
use wasmtime_wasi_http::Error;

use super::Body;

/// Counts bytes that went by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count(Arc<AtomicU64>);

impl Count {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) -> u64 {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes)
    }
}

/// When a body has to have moved on, and to have ended.
#[derive(Debug)]
pub(super) struct Timer {
    sleep: Pin<Box<Sleep>>,
    between: Duration,
    end: Instant,
}

impl Timer {
    pub(super) fn new(between: Duration, end: Instant) -> Self {
        // A pause of nothing would end a body before its first byte.
        let between = between.max(Duration::from_millis(1));
        let first = Instant::now().checked_add(between).map_or(end, |first| first.min(end));
        Self { sleep: Box::pin(tokio::time::sleep_until(first.into())), between, end }
    }

    fn moved(&mut self) {
        let next = Instant::now().checked_add(self.between).map_or(self.end, |n| n.min(self.end));
        self.sleep.as_mut().reset(next.into());
    }
}

/// A body with a bound, and what happens when it ends.
pub(crate) struct Bounded<G: Ended> {
    inner: Body,
    count: Count,
    limit: u64,
    over: fn() -> Error,
    timer: Option<Timer>,
    guard: Option<G>,
}

impl<G: Ended + Send + Unpin + 'static> Bounded<G> {
    pub(crate) fn new(
        inner: Body,
        count: Count,
        limit: u64,
        over: fn() -> Error,
        guard: G,
    ) -> Self {
        Self { inner, count, limit, over, timer: None, guard: Some(guard) }
    }

    pub(super) fn with_timer(mut self, timer: Timer) -> Self {
        self.timer = Some(timer);
        self
    }

    pub(crate) fn boxed(self) -> Body {
        self.boxed_unsync()
    }

    fn end(&mut self, how: End) {
        if let Some(guard) = self.guard.take() {
            guard.ended(how);
        }
    }
}

/// How a body ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// It is complete.
    Whole,
    /// It was over its bound.
    TooLarge,
    /// It took too long.
    Timeout,
    /// The other side broke off.
    Broken,
    /// Nobody wanted the rest.
    Dropped,
}

/// Is told once when a body ends.
pub(crate) trait Ended {
    fn ended(self, how: End);
}

/// Tells nobody.
impl Ended for () {
    fn ended(self, _how: End) {}
}

impl<G: Ended + Send + Unpin + 'static> http_body::Body for Bounded<G> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.guard.is_none() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(None) => {
                self.end(End::Whole);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                if self.count.add(length) > self.limit {
                    self.end(End::TooLarge);
                    return Poll::Ready(Some(Err((self.over)())));
                }
                if let Some(timer) = &mut self.timer {
                    timer.moved();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                let over =
                    matches!(error, Error::HttpResponseBodySize(_) | Error::HttpRequestBodySize(_));
                self.end(if over {
                    End::TooLarge
                } else if matches!(error, Error::HttpResponseTimeout) {
                    End::Timeout
                } else {
                    End::Broken
                });
                Poll::Ready(Some(Err(error)))
            }
            Poll::Pending => {
                let Some(timer) = &mut self.timer else { return Poll::Pending };
                std::task::ready!(timer.sleep.as_mut().poll(cx));
                self.end(End::Timeout);
                Poll::Ready(Some(Err(Error::HttpResponseTimeout)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.guard.is_none() || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<G: Ended> Drop for Bounded<G> {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            let whole = self.inner.is_end_stream();
            guard.ended(if whole { End::Whole } else { End::Dropped });
        }
    }
}
