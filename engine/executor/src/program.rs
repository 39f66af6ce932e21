//! A component that is compiled, linked, and ready to be instantiated.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ambit_engine::digest::Digest;
use wasmtime::component::{Component, InstancePre};
use wasmtime::{Store, UpdateDeadline};

use crate::aot;
use crate::engine::Host;
use crate::error::ExecutorError;
use crate::limits::Trip;
use crate::linker;
use crate::links::Provider;
use crate::scope::Scope;
use crate::state::State;
use crate::stdio::Stdio;

/// The first eight bytes of a component (Component Model, Binary.md: magic, version, layer).
const COMPONENT: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// How a component is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// It exports `wasi:http/incoming-handler`.
    Handler,
    /// It exports `wasi:cli/run`.
    Command,
    /// It exports something else.
    Library,
}

/// A component that is compiled, linked, and ready to be instantiated.
#[derive(Clone)]
pub struct Program {
    host: Host,
    scope: Arc<Scope>,
    component: Component,
    pre: InstancePre<State>,
    kind: Kind,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// Checks that `bytes` are a binary component with the digest that was admitted, before anything
/// else looks at them.
///
/// # Errors
///
/// [`ExecutorError::NotComponent`] and [`ExecutorError::Digest`].
pub fn verify(bytes: &[u8], admitted: &Digest) -> Result<(), ExecutorError> {
    if !bytes.starts_with(&COMPONENT) {
        let found = match bytes {
            [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => "a core module",
            [0x7f, b'E', b'L', b'F', ..] => "a precompiled component or another ELF file",
            [0, b'a', b's', b'm', ..] => "a version of WebAssembly that isn't known",
            [] => "nothing",
            _ if bytes.iter().take(64).all(u8::is_ascii) => "text",
            _ => "something else",
        };
        return Err(ExecutorError::NotComponent { found });
    }
    let found = Digest::of(bytes);
    if found != *admitted {
        return Err(ExecutorError::Digest {
            found: Box::new(found),
            admitted: Box::new(*admitted),
        });
    }
    Ok(())
}

impl Program {
    /// Verifies, compiles and links a component.
    ///
    /// # Errors
    ///
    /// As [`verify`]; [`ExecutorError::Compile`] if wasmtime refuses it;
    /// [`ExecutorError::Unlinkable`] and [`ExecutorError::Unplanned`] if plan and imports differ.
    pub fn load(
        host: &Host,
        scope: &Arc<Scope>,
        bytes: &[u8],
        siblings: &[(usize, Self)],
    ) -> Result<Self, ExecutorError> {
        verify(bytes, scope.component().digest())?;
        let name = &scope.who().component;
        let component = aot::compile(host, name, bytes, scope.limits(), &|_| {})?;
        Self::link(host, scope, component, siblings)
    }

    /// Links a compiled component. The caller vouches that it was compiled from verified bytes.
    pub(crate) fn link(
        host: &Host,
        scope: &Arc<Scope>,
        component: Component,
        siblings: &[(usize, Self)],
    ) -> Result<Self, ExecutorError> {
        let name = || scope.who().component.clone();
        let planned = scope.component().plan().imports();
        for (import, _) in component.component_type().imports(host.engine()) {
            if !planned.iter().any(|plan| plan.name == import) {
                let import = import.to_owned();
                return Err(ExecutorError::Unplanned { component: name(), import });
            }
        }
        let providers: Vec<(usize, Provider)> =
            siblings.iter().map(|(index, program)| (*index, Provider::new(program))).collect();
        let linker = linker::build(host.engine(), scope.component(), &component, &providers)?;
        let pre = linker.instantiate_pre(&component).map_err(|error| ExecutorError::Compile {
            component: name(),
            reason: format!("{error:#}"),
        })?;
        let exports = scope.component().exports();
        let has = |wanted: &str| exports.iter().any(|export| export == wanted);
        let kind = if has("wasi:http/incoming-handler@0.2") {
            Kind::Handler
        } else if has("wasi:cli/run@0.2") {
            Kind::Command
        } else {
            Kind::Library
        };
        Ok(Self { host: host.clone(), scope: Arc::clone(scope), component, pre, kind })
    }

    /// Returns how it is started.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns what its instances share.
    #[must_use]
    pub fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// Returns the engine that it was compiled for.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns wasmtime's component.
    pub(crate) fn component(&self) -> &Component {
        &self.component
    }

    /// Returns what instances are made from.
    pub(crate) fn pre(&self) -> &InstancePre<State> {
        &self.pre
    }

    /// Makes the store of the new instance `number`, with all its bounds. `wall` is bounded by the
    /// component's own limit.
    pub(crate) fn store(&self, stdio: &Stdio, number: u64, wall: Duration) -> Store<State> {
        let limits = self.scope.limits();
        let wall = wall.min(limits.wall);
        let now = Instant::now();
        let deadline = now.checked_add(wall).unwrap_or(now);
        let state = State::new(&self.scope, stdio, number, deadline);
        let (trip, spent) = (state.instance.trip.clone(), state.instance.cpu.clone());
        let mut store = Store::new(self.host.engine(), state);
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(limits.copy_bytes);
        store.set_max_component_handles(limits.handles);
        let cpu = limits.cpu;
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| {
            if spent.spent() >= cpu {
                trip.set(Trip::Cpu(cpu));
                return Err(wasmtime::Error::msg("over the limit of CPU time"));
            }
            Ok(UpdateDeadline::Yield(1))
        });
        store
    }
}
