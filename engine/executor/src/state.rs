//! What one instance holds: its store's data.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::{HasData, ResourceTable};
use wasmtime_wasi::WasiCtx;
use wasmtime_wasi::cli::WasiCliCtxView;
use wasmtime_wasi::clocks::WasiClocksCtxView;
use wasmtime_wasi::random::WasiRandomCtx;

use crate::cpu::Cpu;
use crate::egress::{Outgoing, Uses};
use crate::files::Files;
use crate::limits::TripCell;
use crate::links::Siblings;
use crate::meter::Meter;
use crate::scope::Scope;
use crate::services::Served;
use crate::stdio::Stdio;

/// The data of one instance's store.
pub struct State {
    pub(crate) table: ResourceTable,
    pub(crate) wasi: WasiCtx,
    pub(crate) meter: Meter,
    pub(crate) files: Files,
    pub(crate) outgoing: Outgoing,
    pub(crate) siblings: Siblings,
    pub(crate) served: Served,
    pub(crate) scope: Arc<Scope>,
    pub(crate) instance: Instance,
}

/// Which instance it is, and what ends it.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// Its number, unique in one run of the component.
    pub(crate) number: u64,
    /// When it has to end.
    pub(crate) deadline: Instant,
    /// The bound that ended it.
    pub(crate) trip: TripCell,
    /// The CPU time that it has taken.
    pub(crate) cpu: Cpu,
    /// What its sockets and look-ups came to.
    pub(crate) uses: Arc<Uses>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("instance", &self.instance).finish_non_exhaustive()
    }
}

impl State {
    /// Makes the data of a new instance.
    pub(crate) fn new(scope: &Arc<Scope>, stdio: &Stdio, number: u64, deadline: Instant) -> Self {
        let limits = scope.limits();
        let instance = Instance {
            number,
            deadline,
            trip: TripCell::default(),
            cpu: Cpu::default(),
            uses: Arc::default(),
        };
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let mut builder = WasiCtx::builder();
        builder
            .envs(scope.environment())
            .args(scope.arguments())
            .max_random_size(limits.random_bytes)
            .allow_blocking_current_thread(false);
        stdio.give(&mut builder, scope, &instance);
        crate::egress::configure(&mut builder, scope, &instance);
        Self {
            table,
            wasi: builder.build(),
            meter: Meter::new(limits, instance.trip.clone()),
            files: Files::new(scope, &instance),
            outgoing: Outgoing::new(scope, &instance),
            siblings: Siblings::new(stdio),
            served: Served::new(limits),
            scope: Arc::clone(scope),
            instance,
        }
    }

    pub(crate) fn cli(&mut self) -> WasiCliCtxView<'_> {
        WasiCliCtxView { ctx: self.wasi.cli(), table: &mut self.table }
    }

    pub(crate) fn clocks(&mut self) -> WasiClocksCtxView<'_> {
        WasiClocksCtxView { ctx: self.wasi.clocks(), table: &mut self.table }
    }

    pub(crate) fn random(&mut self) -> &mut WasiRandomCtx {
        self.wasi.random()
    }
}

/// Marks the bindings of `wasi:io`, which need the table alone.
pub(crate) struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}
