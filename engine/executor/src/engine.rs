//! The WebAssembly engine: which features, which allocator, and the clock of its interruptions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Strategy, WasmFeatures,
};

use crate::error::ExecutorError;
use crate::limits::Limits;

/// The oldest wasmtime that this version may be built with; `docs/security.md` says why, and a test
/// compares it with the lock file.
pub const MINIMUM_WASMTIME: &str = "48.0.8";

/// How often running code is interrupted to look at its CPU time.
pub const TICK: Duration = Duration::from_millis(10);

/// The most memory that a pooled instance can have, in bytes of one memory.
const MAX_POOLED_MEMORY: usize = 4 * 1024 * 1024 * 1024;

/// What the engine may compile and run: WASI 0.2 on the stable core. The same set as
/// `ambit_engine::component` judges by.
///
/// The cargo features `gc` and `threads` are built in and their proposals off, since a build
/// without them can be aborted by a guest (`docs/security.md`).
const OFF: WasmFeatures = WasmFeatures::GC
    .union(WasmFeatures::FUNCTION_REFERENCES)
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::LEGACY_EXCEPTIONS)
    .union(WasmFeatures::THREADS)
    .union(WasmFeatures::SHARED_EVERYTHING_THREADS)
    .union(WasmFeatures::STACK_SWITCHING)
    .union(WasmFeatures::WIDE_ARITHMETIC)
    .union(WasmFeatures::CUSTOM_PAGE_SIZES)
    .union(WasmFeatures::MEMORY_CONTROL)
    .union(WasmFeatures::CUSTOM_DESCRIPTORS)
    .union(WasmFeatures::COMPACT_IMPORTS)
    .union(WasmFeatures::CM_VALUES)
    .union(WasmFeatures::CM_NESTED_NAMES)
    .union(WasmFeatures::CM_ASYNC)
    .union(WasmFeatures::CM_ASYNC_STACKFUL)
    .union(WasmFeatures::CM_MORE_ASYNC_BUILTINS)
    .union(WasmFeatures::CM_THREADING)
    .union(WasmFeatures::CM_ERROR_CONTEXT)
    .union(WasmFeatures::CM_FIXED_LENGTH_LISTS)
    .union(WasmFeatures::CM_GC)
    .union(WasmFeatures::CM_MAP)
    .union(WasmFeatures::CM64)
    .union(WasmFeatures::CM_IMPLEMENTS)
    .union(WasmFeatures::CM_CANON_NAMES);

/// How the engine is set up.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// The bounds, of which the engine needs those of compilation and memory.
    pub limits: Limits,
    /// Which allocator.
    pub allocation: Allocation,
}

/// Where instances get their memory from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Allocation {
    /// A pool if the machine gives the address space for one, else on demand.
    #[default]
    Probe,
    /// A pool; an error if the machine doesn't give the address space.
    Pooling,
    /// On demand.
    OnDemand,
}

/// The engine, with the thread that interrupts what runs in it. Clones share both; the thread ends
/// with the last.
#[derive(Clone)]
pub struct Host {
    engine: Engine,
    pooled: bool,
    _ticker: Arc<Ticker>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("pooled", &self.pooled).finish_non_exhaustive()
    }
}

impl Host {
    /// Starts the engine.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Engine`] if wasmtime can't start on this machine, or if a pool was asked
    /// for and the machine doesn't give the address space.
    pub fn new(options: &HostOptions) -> Result<Self, ExecutorError> {
        let (engine, pooled) = match options.allocation {
            Allocation::OnDemand => (build(&options.limits, false)?, false),
            Allocation::Pooling => (build(&options.limits, true)?, true),
            Allocation::Probe => match build(&options.limits, true) {
                Ok(engine) => (engine, true),
                Err(_) => (build(&options.limits, false)?, false),
            },
        };
        let ticker = Arc::new(Ticker::start(engine.clone())?);
        Ok(Self { engine, pooled, _ticker: ticker })
    }

    /// Tells whether instances come from a pool.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// Returns wasmtime's engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

fn build(limits: &Limits, pooling: bool) -> Result<Engine, ExecutorError> {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .wasm_component_model(true)
        .wasm_features(OFF, false)
        .concurrency_support(false)
        .epoch_interruption(true)
        .max_wasm_stack(512 * 1024)
        .async_stack_size(1024 * 1024)
        .memory_init_cow(true);
    if pooling {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let instances = count(limits.concurrency.saturating_mul(4).clamp(64, 1_000));
        let each = count(limits.instances);
        let memory = usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX);
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(instances)
            .total_core_instances(instances.saturating_mul(8))
            .total_memories(instances.saturating_mul(2))
            .total_tables(instances.saturating_mul(8))
            .total_stacks(instances)
            .max_core_instances_per_component(each)
            .max_memories_per_component(each)
            .max_tables_per_component(each)
            .max_memory_size(memory.min(MAX_POOLED_MEMORY));
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    Engine::new(&config).map_err(|error| ExecutorError::Engine { reason: format!("{error:#}") })
}

/// The thread that moves the engine's epoch on.
struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ticker {
    fn start(engine: Engine) -> Result<Self, ExecutorError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("ambit-ticker".to_owned())
            .spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    std::thread::sleep(TICK);
                    engine.increment_epoch();
                }
            })
            .map_err(|error| ExecutorError::Engine { reason: error.to_string() })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread holds nothing that could panic.
            let _ = thread.join();
        }
    }
}
