//! Streams of files, with their bytes counted and bounded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use wasmtime_wasi_io::async_trait;
use wasmtime_wasi_io::poll::Pollable;
use wasmtime_wasi_io::streams::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, StreamError, StreamResult,
};

use super::handle::{Held, Written};
use crate::limits::{Trip, TripCell};

/// An output stream to a file.
pub(super) struct Writer {
    pub(super) inner: DynOutputStream,
    pub(super) written: Written,
    pub(super) held: Arc<Held>,
    pub(super) trip: TripCell,
}

impl Writer {
    fn spend(&self, bytes: usize) -> StreamResult<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if !self.written.take(bytes) {
            self.trip.set(Trip::Written(self.written.limit));
            return Err(StreamError::trap("over the limit of bytes written to folders"));
        }
        self.held.wrote.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

#[async_trait]
impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.spend(bytes.len())?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    fn write_zeroes(&mut self, count: usize) -> StreamResult<()> {
        self.spend(count)?;
        self.inner.write_zeroes(count)
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

/// An input stream from a file.
pub(super) struct Reader {
    pub(super) inner: DynInputStream,
    pub(super) held: Arc<Held>,
}

#[async_trait]
impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let bytes = self.inner.read(size)?;
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.held.read.fetch_add(count, Ordering::Relaxed);
        Ok(bytes)
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}
