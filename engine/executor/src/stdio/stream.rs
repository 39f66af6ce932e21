//! One output stream of an instance.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi_io::async_trait;
use wasmtime_wasi_io::poll::Pollable;
use wasmtime_wasi_io::streams::{OutputStream, StreamError, StreamResult};

use super::lines::{LineSink, Splitter, Stream};
use super::pump::Pump;
use crate::limits::{Limits, Trip, TripCell};
use crate::scope::Scope;

/// How many writes an instance may make for each line that it may write. A C program writes a line
/// in few calls, and one that calls without end writes nothing.
const WRITES_PER_LINE: u64 = 64;

/// The most bytes that one write takes.
const PERMIT: usize = 64 * 1024;

/// What both outputs of an instance may still write.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    bytes: Arc<AtomicU64>,
    lines: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
    trip: TripCell,
}

impl Budget {
    pub(super) fn new(limits: &Limits, trip: TripCell) -> Self {
        let of = |count: u64| Arc::new(AtomicU64::new(count));
        Self {
            bytes: of(limits.output_bytes),
            lines: of(limits.log_lines),
            writes: of(limits.log_lines.saturating_mul(WRITES_PER_LINE)),
            trip,
        }
    }

    fn spend(&self, bytes: &[u8]) -> StreamResult<()> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
        let ends = u64::try_from(ends).unwrap_or(u64::MAX);
        let take = |from: &AtomicU64, amount: u64| {
            from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount))
                .is_ok()
        };
        if take(&self.bytes, length) && take(&self.lines, ends) && take(&self.writes, 1) {
            return Ok(());
        }
        self.trip.set(Trip::Output);
        Err(StreamError::trap("over the limit of output"))
    }
}

/// Where a stream leads.
#[derive(Clone)]
pub(super) enum Destination {
    Nowhere,
    Pump(Arc<Pump>),
    Memory(Arc<Mutex<Vec<u8>>>),
    Lines { sink: Arc<dyn LineSink>, scope: Arc<Scope>, stream: Stream },
}

impl Destination {
    pub(super) fn lines(sink: &Arc<dyn LineSink>, scope: &Arc<Scope>, stream: Stream) -> Self {
        Self::Lines { sink: Arc::clone(sink), scope: Arc::clone(scope), stream }
    }
}

/// What a component takes its output streams from. All that it takes share one splitter, so that a
/// line may be written through several.
pub(super) struct Output {
    to: Destination,
    budget: Budget,
    terminal: bool,
    lines: Arc<Mutex<Tail>>,
}

impl Output {
    pub(super) fn new(to: Destination, budget: Budget, terminal: bool) -> Self {
        let lines = Arc::new(Mutex::new(Tail { splitter: Splitter::default(), to: to.clone() }));
        Self { to, budget, terminal, lines }
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        self.terminal
    }
}

impl StdoutStream for Output {
    /// Only WASI 0.3 asks for this form, which isn't linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    /// The default would wrap the other form in the stream that queues without a bound.
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(Writer {
            to: self.to.clone(),
            budget: self.budget.clone(),
            lines: Arc::clone(&self.lines),
            flushing: false,
            permit: 0,
        })
    }
}

/// A line that isn't complete yet; it is given when the instance ends.
struct Tail {
    splitter: Splitter,
    to: Destination,
}

impl Tail {
    fn take(&mut self, bytes: &[u8]) {
        if let Destination::Lines { sink, scope, stream } = &self.to {
            self.splitter.take(bytes, |line| sink.line(super::who(scope), *stream, line));
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        if let Destination::Lines { sink, scope, stream } = &self.to {
            self.splitter.end(|line| sink.line(super::who(scope), *stream, line));
        }
    }
}

struct Writer {
    to: Destination,
    budget: Budget,
    lines: Arc<Mutex<Tail>>,
    /// Whether a flush has to end before the next write.
    flushing: bool,
    /// Bytes that the last question allowed and that aren't written yet.
    permit: usize,
}

#[async_trait]
impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.permit = self
            .permit
            .checked_sub(bytes.len())
            .ok_or_else(|| StreamError::trap("more was written than `check-write` allowed"))?;
        self.budget.spend(&bytes)?;
        match &self.to {
            Destination::Nowhere => {}
            Destination::Pump(pump) => pump.push(&bytes),
            Destination::Memory(kept) => {
                if let Ok(mut kept) = kept.lock() {
                    kept.extend_from_slice(&bytes);
                }
            }
            Destination::Lines { .. } => {
                if let Ok(mut lines) = self.lines.lock() {
                    lines.take(&bytes);
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.budget.spend(&[])?;
        self.flushing = true;
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.permit = match &self.to {
            Destination::Nowhere | Destination::Memory(_) | Destination::Lines { .. } => PERMIT,
            Destination::Pump(pump) => {
                let room = pump.room().ok_or(StreamError::Closed)?;
                if self.flushing && !pump.is_empty() {
                    return Ok(0);
                }
                self.flushing = false;
                room.min(PERMIT)
            }
        };
        Ok(self.permit)
    }
}

#[async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        if let Destination::Pump(pump) = &self.to {
            let flushing = self.flushing;
            pump.until(|pump| {
                pump.room().is_none_or(|room| room > 0) && (!flushing || pump.is_empty())
            })
            .await;
        }
    }
}
