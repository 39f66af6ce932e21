//! Links between components of one workload: each in a store of its own.
//!
//! An import that a sibling serves is defined by calls into the sibling's own store, with its own
//! grants, bounds, environment and folders. Values are copied across; handles never are, since a
//! handle would hand on what its owner was granted.
//!
//! # Invariants
//!
//! - A provider's instance belongs to one instance of its caller, is made at the first call, and
//!   ends with it.
//! - A provider has no more wall time than its caller has left.
//! - After a trap or a bound the provider's store is dropped, and the caller's call traps.

mod types;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ambit_engine::admitted::PlannedImport;
use ambit_engine::catalogue::Verb;
use ambit_engine::interface::InterfaceName;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, Instance, Linker, Val};
use wasmtime::{Store, StoreContextMut};

use crate::error::ExecutorError;
use crate::instance::{of_engine, reason, within};
use crate::limits::Trip;
use crate::program::Program;
use crate::record::{Effect, Outcome, Ruling};
use crate::state::State;
use crate::stdio::Stdio;

pub(crate) use types::{describe, foreign, shallow, short, weight};

/// How many components may stand in each other's calls.
const MAX_DEPTH: usize = 8;

/// A program whose exports serve another component's imports.
#[derive(Clone, Debug)]
pub(crate) struct Provider(Program);

impl Provider {
    pub(crate) fn new(program: &Program) -> Self {
        Self(program.clone())
    }

    fn name(&self) -> &str {
        &self.0.scope().who().component
    }
}

/// The siblings that one instance has called so far.
pub(crate) struct Siblings {
    stdio: Stdio,
    depth: usize,
    running: BTreeMap<String, Running>,
}

/// A provider's instance.
struct Running {
    store: Store<State>,
    instance: Instance,
}

impl Siblings {
    pub(crate) fn new(stdio: &Stdio) -> Self {
        Self { stdio: stdio.clone(), depth: 0, running: BTreeMap::new() }
    }
}

/// How a component ended that another one had called.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.shown())]
pub(crate) struct Ended {
    component: String,
    trip: Option<Trip>,
    reason: String,
}

impl Ended {
    fn shown(&self) -> String {
        let Self { component, reason, .. } = self;
        match self.trip {
            Some(trip) => format!("sibling `{component}` was stopped: {trip}"),
            None => format!("sibling `{component}` trapped: {reason}"),
        }
    }

    /// Says how the component ended, as if it had been started by itself.
    pub(crate) fn error(&self) -> ExecutorError {
        let component = self.component.clone();
        match self.trip {
            Some(trip) => ExecutorError::Tripped { component, trip },
            None => ExecutorError::Trapped { component, reason: self.reason.clone() },
        }
    }

    fn new(provider: &Provider, trip: Option<Trip>, error: &wasmtime::Error) -> Self {
        // The component that ended first is the one to name, however many stand between.
        if let Some(inner) = error.downcast_ref::<Self>() {
            return inner.clone();
        }
        Self { component: provider.name().to_owned(), trip, reason: reason(error) }
    }
}

/// What one linked function needs at each call.
#[derive(Clone)]
struct Linked {
    provider: Provider,
    /// The interface on its version track.
    interface: Arc<str>,
    /// The subject of the effect: which component, interface and function.
    subject: Arc<str>,
    function: Arc<str>,
    export: ComponentExportIndex,
}

fn refused(code: &'static str, message: String, help: &str) -> ExecutorError {
    ExecutorError::Setup { code, message, help: help.to_owned() }
}

/// Defines one interface by calls into the component that exports it.
///
/// # Errors
///
/// [`ExecutorError::Setup`] with code `link-resource` if a handle would cross, `link-type` if the
/// two sides disagree about a function or a type is nested too deeply.
pub(crate) fn add(
    linker: &mut Linker<State>,
    caller: &str,
    import: &PlannedImport,
    compiled: &Component,
    provider: &Provider,
) -> Result<(), ExecutorError> {
    let engine = provider.0.host().engine().clone();
    let name = provider.name().to_owned();
    let mismatch = |message: String| {
        refused(
            "link-type",
            message,
            "build both components against the same version of the interface",
        )
    };
    let broken = |error: wasmtime::Error| mismatch(format!("`{caller}` and `{name}`: {error:#}"));

    let wanted = compiled.component_type();
    let wanted = wanted.imports(&engine).find(|(found, _)| *found == import.name);
    let Some((_, ComponentItem::ComponentInstance(wanted))) = wanted.map(|(n, e)| (n, e.ty)) else {
        return Err(mismatch(format!("`{}` of `{caller}` is no interface", import.name)));
    };
    let exporting = provider.0.component();
    let offered = exporting.component_type();
    let offered = offered.exports(&engine).find_map(|(name, export)| {
        let on_track = InterfaceName::parse(name).is_some_and(|n| n.on_track() == import.track);
        if let (true, ComponentItem::ComponentInstance(instance)) = (on_track, export.ty) {
            Some((name.to_owned(), instance))
        } else {
            None
        }
    });
    let Some((export, offered)) = offered else {
        return Err(mismatch(format!("`{name}` doesn't export `{}`", import.track)));
    };
    let at = exporting.get_export_index(None, export.as_str());

    let mut instance = linker.instance(&import.name).map_err(broken)?;
    let mut items: Vec<_> = wanted.exports(&engine).collect();
    // A function says more about what would cross than the name of a resource, so it comes first.
    items.sort_by_key(|(_, item)| matches!(item.ty, ComponentItem::Resource(_)));
    for (function, item) in items {
        let crossing = |what: String| {
            let track = &import.track;
            let message = format!(
                "`{track}#{function}`, which `{caller}` imports from `{name}`, has {what}, and no handle crosses between components"
            );
            refused(
                "link-resource",
                message,
                "pass values instead, or compose the two components into one",
            )
        };
        let wanted = match item.ty {
            ComponentItem::ComponentFunc(wanted) => wanted,
            ComponentItem::Resource(_) => return Err(crossing("a resource".to_owned())),
            ComponentItem::Type(_) => continue,
            ComponentItem::CoreFunc(_)
            | ComponentItem::Module(_)
            | ComponentItem::Component(_)
            | ComponentItem::ComponentInstance(_) => {
                return Err(mismatch(format!("`{function}` of `{}` is no function", import.name)));
            }
        };
        let all = || wanted.params().map(|(_, ty)| ty).chain(wanted.results());
        if let Some(what) = all().find_map(|ty| foreign(&ty)) {
            return Err(crossing(format!("a type with {what}")));
        }
        if !all().all(|ty| shallow(&ty)) {
            let message = format!("a type of `{}#{function}` is nested too deeply", import.track);
            return Err(mismatch(message));
        }
        let found = offered.exports(&engine).find(|(name, _)| *name == function).map(|(_, e)| e.ty);
        let Some(ComponentItem::ComponentFunc(offers)) = found else {
            return Err(mismatch(format!(
                "`{caller}` imports function `{function}` of `{}`, which `{name}` doesn't export",
                import.track
            )));
        };
        if let Some(difference) = types::difference(&wanted, &offers) {
            return Err(mismatch(format!(
                "`{}#{function}` differs between `{caller}` and `{name}`: {difference}",
                import.track
            )));
        }
        let index = at.as_ref().and_then(|at| exporting.get_export_index(Some(at), function));
        let Some(index) = index else {
            return Err(mismatch(format!("`{name}` doesn't export `{export}#{function}`")));
        };
        let linked = Linked {
            provider: provider.clone(),
            interface: import.track.as_str().into(),
            subject: format!("component `{name}` {}#{function}", import.track).into(),
            function: function.into(),
            export: index,
        };
        instance
            .func_new_async(function, move |store, _, params, results| {
                let linked = linked.clone();
                Box::new(async move { call(store, &linked, params, results).await })
            })
            .map_err(broken)?;
    }
    Ok(())
}

/// One call across: on the caller's record, in the provider's store.
async fn call(
    mut store: StoreContextMut<'_, State>,
    linked: &Linked,
    params: &[Val],
    results: &mut [Val],
) -> wasmtime::Result<()> {
    let caller = store.data_mut();
    let scope = Arc::clone(&caller.scope);
    let depth = caller.siblings.depth.saturating_add(1);
    let ruling = if depth > MAX_DEPTH {
        Ruling::Denied {
            code: "link-depth",
            reason: format!("more than {MAX_DEPTH} components stand in each other's calls").into(),
            help: "shorten the chain of components".into(),
        }
    } else {
        Ruling::Allowed(None)
    };
    let effect = Effect {
        who: scope.who(),
        instance: caller.instance.number,
        verb: Verb::UseHostService,
        interface: &linked.interface,
        function: &linked.function,
        subject: linked.subject.as_ref().into(),
        ruling,
    };
    let recorder = Arc::clone(&scope.setup().recorder);
    let since = Instant::now();
    let ticket =
        recorder.begin(&effect).map_err(|_| wasmtime::Error::msg("the record can't be written"))?;
    if depth > MAX_DEPTH {
        return Err(wasmtime::Error::msg(format!(
            "more than {MAX_DEPTH} components stand in each other's calls"
        )));
    }
    let parent = format!("parent `{}` instance {}", scope.who().component, caller.instance.number);
    let end = |result: &'static str, bytes_in: u64, detail: String| {
        let bytes_out = weight(params);
        let duration = since.elapsed();
        recorder
            .end(ticket, Outcome { result: result.into(), bytes_out, bytes_in, duration, detail });
    };
    // A call that is dropped half-way, since its caller's time is over, has to end as well.
    let ended = Unfinished::new(end, &parent);

    let outcome = run(caller, linked, depth, params, results).await;
    match outcome {
        Ok(number) => {
            let of = linked.provider.name();
            ended.finish("ok", weight(results), format!("instance {number} of `{of}`, {parent}"));
            Ok(())
        }
        Err(error) => {
            let code = error.trip.map_or("run-trapped", Trip::code);
            ended.finish(code, 0, format!("{}, {parent}", error.shown()));
            Err(wasmtime::Error::new(error))
        }
    }
}

/// Ends an effect once: with its outcome, or as cut off.
struct Unfinished<'a, F: FnOnce(&'static str, u64, String)> {
    end: Option<F>,
    parent: &'a str,
}

impl<'a, F: FnOnce(&'static str, u64, String)> Unfinished<'a, F> {
    fn new(end: F, parent: &'a str) -> Self {
        Self { end: Some(end), parent }
    }

    fn finish(mut self, result: &'static str, bytes_in: u64, detail: String) {
        if let Some(end) = self.end.take() {
            end(result, bytes_in, detail);
        }
    }
}

impl<F: FnOnce(&'static str, u64, String)> Drop for Unfinished<'_, F> {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end("call-cut-off", 0, self.parent.to_owned());
        }
    }
}

/// Calls into the provider's store, and keeps the store only if the call ended well.
async fn run(
    caller: &mut State,
    linked: &Linked,
    depth: usize,
    params: &[Val],
    results: &mut [Val],
) -> Result<u64, Ended> {
    let provider = &linked.provider;
    let deadline = caller.instance.deadline;
    let left = deadline.saturating_duration_since(Instant::now());
    let kept = caller.siblings.running.remove(provider.name());
    let (mut store, instance) = match kept {
        Some(Running { store, instance }) => (store, Some(instance)),
        None => {
            let number = provider.0.scope().next_instance();
            let mut store = provider.0.store(&caller.siblings.stdio, number, left);
            store.data_mut().siblings.depth = depth;
            (store, None)
        }
    };
    let (number, ends, trip, cpu) = {
        let own = &store.data().instance;
        (own.number, own.deadline.min(deadline), own.trip.clone(), own.cpu.clone())
    };
    let wall = provider.0.scope().limits().wall.min(left);
    let call = async {
        let instance = match instance {
            Some(instance) => instance,
            None => provider.0.pre().instantiate_async(&mut store).await?,
        };
        let function = instance
            .get_func(&mut store, linked.export)
            .ok_or_else(|| wasmtime::Error::msg("the export isn't there"))?;
        function.call_async(&mut store, params, results).await?;
        Ok(instance)
    };
    match within(ends, (&trip, &cpu), wall, call).await {
        Ok(instance) => {
            let running = Running { store, instance };
            caller.siblings.running.insert(provider.name().to_owned(), running);
            Ok(number)
        }
        Err(error) => {
            let limits = provider.0.scope().limits();
            let trip = trip.get().or_else(|| of_engine(limits, &error));
            Err(Ended::new(provider, trip, &error))
        }
    }
}
