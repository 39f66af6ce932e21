//! Memory, tables and instances of one store, counted together.

use wasmtime::ResourceLimiter;

use crate::limits::{Limits, Trip, TripCell};

/// Bytes that one table element is counted as: a pointer on a 64-bit machine.
const ELEMENT_BYTES: u64 = 8;

/// Counts what an instance allocates. The bound holds for the sum of all memories and tables, not
/// for each.
#[derive(Debug)]
pub(crate) struct Meter {
    memory_bytes: u64,
    instances: usize,
    used: u64,
    trip: TripCell,
}

impl Meter {
    pub(crate) fn new(limits: &Limits, trip: TripCell) -> Self {
        Self { memory_bytes: limits.memory_bytes, instances: limits.instances, used: 0, trip }
    }

    fn grow(
        &mut self,
        current: u64,
        desired: u64,
        maximum: Option<usize>,
        unit: u64,
    ) -> wasmtime::Result<bool> {
        // What it may not have by its own declaration is refused to it, and takes nothing.
        if maximum.is_some_and(|maximum| desired > bytes(maximum).saturating_mul(unit)) {
            return Ok(false);
        }
        let more = desired.saturating_sub(current);
        let used = self.used.saturating_add(more);
        if used > self.memory_bytes {
            self.trip.set(Trip::Memory(self.memory_bytes));
            // A trap, since a guest that only sees its growth refused tends to end without a word.
            return Err(wasmtime::Error::msg("over the limit of memory"));
        }
        self.used = used;
        Ok(true)
    }
}

fn bytes(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grow(bytes(current), bytes(desired), maximum, 1)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let size = |elements| bytes(elements).saturating_mul(ELEMENT_BYTES);
        self.grow(size(current), size(desired), maximum, ELEMENT_BYTES)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        // A growth that the machine refuses gives nothing, and the guest is told; what was counted
        // for it stays counted, which errs on the safe side.
        let _ = error;
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}
