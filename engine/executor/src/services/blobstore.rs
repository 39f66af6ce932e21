//! `wasi:blobstore`: containers that the workload names, kept by the host.
//!
//! A value that is being written is the component's until it is finished, and then it is stored in one
//! step. The host keeps no times, so every time is 0.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource, ResourceType};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi_io::async_trait;
use wasmtime_wasi_io::poll::Pollable;
use wasmtime_wasi_io::streams::{
    DynInputStream, DynOutputStream, OutputStream, StreamError, StreamResult,
};

use super::DEFAULT_BUCKET;
use super::effect::{Begun, Call, Traffic, begin, quoted};
use super::storage::{MAX_BATCH, MAX_BYTES, MAX_VALUE, Problem};
use crate::record::Ruling;
use crate::state::State;

pub(super) const TYPES: &str = "wasi:blobstore/types@0.2.0-draft";
pub(super) const CONTAINER: &str = "wasi:blobstore/container@0.2.0-draft";
pub(super) const BLOBSTORE: &str = "wasi:blobstore/blobstore@0.2.0-draft";

/// The most bytes that one write takes.
const PERMIT: usize = 64 * 1024;

/// Where one value is to be stored at most; a component has no use for more.
const MAX_PLACES: usize = 16;

type Answer<T> = Result<T, String>;
type Own = Resource<Container>;

/// What the values of one instance may still take of the host's memory.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<AtomicUsize>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(MAX_BYTES)))
    }
}

impl Room {
    fn take(&self, bytes: usize) -> Option<Held> {
        let order = Ordering::Relaxed;
        self.0.fetch_update(order, order, |left| left.checked_sub(bytes)).ok()?;
        Some(Held { room: self.clone(), bytes })
    }
}

/// A part of the room, given back when it goes.
#[derive(Debug)]
struct Held {
    room: Room,
    bytes: usize,
}

impl Held {
    fn grow(&mut self, bytes: usize) -> bool {
        let order = Ordering::Relaxed;
        let grown = self.room.0.fetch_update(order, order, |left| left.checked_sub(bytes)).is_ok();
        if grown {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        grown
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// A value that is being written.
struct OutgoingValue {
    body: Arc<Mutex<Body>>,
    is_taken: bool,
    /// Container and object, where it is stored once it is finished.
    places: Vec<(String, String)>,
}

struct Body {
    bytes: Vec<u8>,
    held: Held,
    is_over: bool,
}

/// A value that is being read.
struct IncomingValue {
    bytes: Bytes,
    _held: Held,
}

/// A container that a component has open. That it is there says that it is granted.
struct Container {
    name: String,
}

/// The names of a container's objects, read page by page.
struct ObjectNames {
    container: String,
    cursor: Option<u64>,
}

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct ContainerMetadata {
    #[component(name = "name")]
    name: String,
    #[component(name = "created-at")]
    created_at: u64,
}

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct ObjectMetadata {
    #[component(name = "name")]
    name: String,
    #[component(name = "container")]
    container: String,
    #[component(name = "created-at")]
    created_at: u64,
    #[component(name = "size")]
    size: u64,
}

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct ObjectId {
    #[component(name = "container")]
    container: String,
    #[component(name = "object")]
    object: String,
}

/// The stream into a value. Over its bound it fails and takes nothing more.
struct Writer(Arc<Mutex<Body>>);

impl Writer {
    fn body(&self) -> std::sync::MutexGuard<'_, Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut body = self.body();
        if bytes.len() > PERMIT {
            return Err(StreamError::trap("more was written than `check-write` allowed"));
        }
        let over = body.bytes.len().saturating_add(bytes.len()) > MAX_VALUE;
        if body.is_over || over || !body.held.grow(bytes.len()) {
            body.is_over = true;
            return Err(StreamError::LastOperationFailed(wasmtime::Error::msg(
                "the value is full",
            )));
        }
        body.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        if self.body().is_over { Err(StreamError::Closed) } else { Ok(PERMIT) }
    }
}

#[async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}

pub(super) fn link_types(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.resource(
        "outgoing-value",
        ResourceType::host::<OutgoingValue>(),
        |mut store, rep| {
            store.data_mut().table.delete(Resource::<OutgoingValue>::new_own(rep))?;
            Ok(())
        },
    )?;
    linker.resource(
        "incoming-value",
        ResourceType::host::<IncomingValue>(),
        |mut store, rep| {
            store.data_mut().table.delete(Resource::<IncomingValue>::new_own(rep))?;
            Ok(())
        },
    )?;
    linker.func_wrap("[static]outgoing-value.new-outgoing-value", |mut store, (): ()| {
        let state: &mut State = store.data_mut();
        let held = state.served.room.take(0).ok_or_else(|| wasmtime::Error::msg("no room"))?;
        let body = Body { bytes: Vec::new(), held, is_over: false };
        let body = Arc::new(Mutex::new(body));
        let value = OutgoingValue { body, is_taken: false, places: Vec::new() };
        Ok((state.table.push(value)?,))
    })?;
    linker.func_wrap(
        "[method]outgoing-value.outgoing-value-write-body",
        |mut store, (value,): (Resource<OutgoingValue>,)| {
            let state: &mut State = store.data_mut();
            let value = state.table.get_mut(&value)?;
            if std::mem::replace(&mut value.is_taken, true) {
                return Ok((Err(()),));
            }
            let stream: DynOutputStream = Box::new(Writer(Arc::clone(&value.body)));
            Ok((Ok(state.table.push(stream)?),))
        },
    )?;
    linker.func_wrap(
        "[static]outgoing-value.finish",
        |mut store, (value,): (Resource<OutgoingValue>,)| {
            let state: &mut State = store.data_mut();
            let value = state.table.delete(value)?;
            Ok((finish(state, &value),))
        },
    )?;
    linker.func_wrap(
        "[static]incoming-value.incoming-value-consume-sync",
        |mut store, (value,): (Resource<IncomingValue>,)| {
            let value = store.data_mut().table.delete(value)?;
            Ok((Answer::Ok(value.bytes.to_vec()),))
        },
    )?;
    linker.func_wrap(
        "[static]incoming-value.incoming-value-consume-async",
        |mut store, (value,): (Resource<IncomingValue>,)| {
            let state: &mut State = store.data_mut();
            let value = state.table.delete(value)?;
            let stream: DynInputStream = Box::new(MemoryInputPipe::new(value.bytes.clone()));
            Ok((Answer::Ok(state.table.push(stream)?),))
        },
    )?;
    linker.func_wrap(
        "[method]incoming-value.size",
        |store, (value,): (Resource<IncomingValue>,)| {
            let value = store.data().table.get(&value)?;
            Ok((u64::try_from(value.bytes.len()).unwrap_or(u64::MAX),))
        },
    )
}

pub(super) fn link_container(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.resource("container", ResourceType::host::<Container>(), |mut store, rep| {
        store.data_mut().table.delete(Resource::<Container>::new_own(rep))?;
        Ok(())
    })?;
    linker.resource(
        "stream-object-names",
        ResourceType::host::<ObjectNames>(),
        |mut store, rep| {
            store.data_mut().table.delete(Resource::<ObjectNames>::new_own(rep))?;
            Ok(())
        },
    )?;
    linker.func_wrap("[method]container.name", |store, (container,): (Own,)| {
        Ok((Answer::Ok(store.data().table.get(&container)?.name.clone()),))
    })?;
    linker.func_wrap("[method]container.info", |store, (container,): (Own,)| {
        let name = store.data().table.get(&container)?.name.clone();
        Ok((Answer::Ok(ContainerMetadata { name, created_at: 0 }),))
    })?;
    linker.func_wrap(
        "[method]container.get-data",
        |mut store, (container, name, start, end): (Own, String, u64, u64)| {
            let state: &mut State = store.data_mut();
            let container = state.table.get(&container)?.name.clone();
            match get_data(state, (&container, &name), start, end) {
                Ok(value) => Ok((Ok(state.table.push(value)?),)),
                Err(error) => Ok((Err(error),)),
            }
        },
    )?;
    linker.func_wrap(
        "[method]container.write-data",
        |mut store, (container, name, value): (Own, String, Resource<OutgoingValue>)| {
            let state: &mut State = store.data_mut();
            let container = state.table.get(&container)?.name.clone();
            let value = state.table.get_mut(&value)?;
            if value.places.len() >= MAX_PLACES {
                return Ok((Err("a value is stored in too many places".to_owned()),));
            }
            value.places.push((container, name));
            Ok((Answer::Ok(()),))
        },
    )?;
    linker.func_wrap("[method]container.list-objects", |mut store, (container,): (Own,)| {
        let state: &mut State = store.data_mut();
        let container = state.table.get(&container)?.name.clone();
        let names = ObjectNames { container, cursor: Some(0) };
        Ok((Answer::Ok(state.table.push(names)?),))
    })?;
    linker.func_wrap(
        "[method]container.delete-object",
        |store, (container, name): (Own, String)| {
            let state: &State = store.data();
            let container = &state.table.get(&container)?.name;
            Ok((delete(state, container, &[name]),))
        },
    )?;
    linker.func_wrap(
        "[method]container.delete-objects",
        |store, (container, names): (Own, Vec<String>)| {
            let state: &State = store.data();
            let container = &state.table.get(&container)?.name;
            if names.len() > MAX_BATCH {
                return Ok((Err(Problem::Batch.to_string()),));
            }
            Ok((delete(state, container, &names),))
        },
    )?;
    linker.func_wrap(
        "[method]container.has-object",
        |store, (container, name): (Own, String)| {
            let state: &State = store.data();
            let container = &state.table.get(&container)?.name;
            let size = size(state, "has-object", (container, &name));
            Ok((size.map(|size| size.is_some()),))
        },
    )?;
    linker.func_wrap(
        "[method]container.object-info",
        |store, (container, name): (Own, String)| {
            let state: &State = store.data();
            let container = state.table.get(&container)?.name.clone();
            let size = size(state, "object-info", (&container, &name));
            let info = size.and_then(|size| size.ok_or_else(|| missing(&name)));
            let info = info.map(|size| ObjectMetadata { name, container, created_at: 0, size });
            Ok((info,))
        },
    )?;
    linker.func_wrap("[method]container.clear", |store, (container,): (Own,)| {
        let state: &State = store.data();
        let container = &state.table.get(&container)?.name;
        Ok((clear(state, "clear", container),))
    })?;
    linker.func_wrap(
        "[method]stream-object-names.read-stream-object-names",
        |mut store, (names, len): (Resource<ObjectNames>, u64)| {
            Ok((next_names(store.data_mut(), &names, len)?,))
        },
    )?;
    linker.func_wrap(
        "[method]stream-object-names.skip-stream-object-names",
        |mut store, (names, len): (Resource<ObjectNames>, u64)| {
            let read = next_names(store.data_mut(), &names, len)?;
            let skipped =
                read.map(|(names, ended)| (u64::try_from(names.len()).unwrap_or(u64::MAX), ended));
            Ok((skipped,))
        },
    )
}

pub(super) fn link_blobstore(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    for name in ["create-container", "get-container"] {
        linker.func_wrap(name, move |mut store, (container,): (String,)| {
            let state: &mut State = store.data_mut();
            match open(state, name, &container) {
                Ok(container) => Ok((Ok(state.table.push(container)?),)),
                Err(error) => Ok((Err(error),)),
            }
        })?;
    }
    linker.func_wrap("delete-container", |store, (container,): (String,)| {
        let state: &State = store.data();
        // A container that is granted is always there; it is emptied.
        let opened = open(state, "delete-container", &container);
        Ok((opened.and_then(|opened| clear(state, "delete-container", &opened.name)),))
    })?;
    linker.func_wrap("container-exists", |store, (container,): (String,)| {
        let state: &State = store.data();
        let name = named(&container);
        Ok((Answer::Ok(state.scope.services().containers.granted.contains_key(name)),))
    })?;
    linker.func_wrap("copy-object", |store, (from, to): (ObjectId, ObjectId)| {
        Ok((copy(store.data(), "copy-object", &from, &to),))
    })?;
    linker.func_wrap("move-object", |store, (from, to): (ObjectId, ObjectId)| {
        let state: &State = store.data();
        let moved = copy(state, "move-object", &from, &to);
        let same = from.container == to.container && from.object == to.object;
        let moved = moved.and_then(|()| {
            if same { Ok(()) } else { delete(state, named(&from.container), &[from.object]) }
        });
        Ok((moved,))
    })
}

fn named(container: &str) -> &str {
    if container.is_empty() { DEFAULT_BUCKET } else { container }
}

fn missing(object: &str) -> String {
    format!("there is no object {}", quoted(object))
}

/// Puts a call on record.
fn recorded(
    state: &State,
    interface: &'static str,
    function: &'static str,
    (container, what): (&str, &str),
) -> Answer<Begun> {
    let line = state.scope.services().containers.granted.get(container);
    let call = Call {
        interface,
        function,
        subject: format!("container {} {what}", quoted(container)),
        ruling: Ruling::Allowed(line),
    };
    begin(state, call).map_err(|_| "the host can't record the call".to_owned())
}

fn ended<T>(call: Begun, result: Result<T, Problem>, traffic: Traffic) -> Answer<T> {
    call.end(result.as_ref().err().map_or("ok", Problem::code), traffic);
    result.map_err(|problem| problem.to_string())
}

/// Opens a container that is granted; another one is denied, and that is on record.
fn open(state: &State, function: &'static str, container: &str) -> Answer<Container> {
    let containers = &state.scope.services().containers;
    let name = named(container);
    if containers.granted.contains_key(name) {
        recorded(state, BLOBSTORE, function, (name, "itself"))?.end("ok", Traffic::default());
        return Ok(Container { name: name.to_owned() });
    }
    let subject = format!("container {}", quoted(name));
    let reason = format!("{subject} isn't granted");
    let help = format!(
        "add {} to `containers` of the `wasi:blobstore` entry in `hostInterfaces` ({}:{})",
        quoted(name),
        containers.at.file,
        containers.at.line
    );
    let ruling = Ruling::Denied {
        code: "container-not-granted",
        reason: reason.as_str().into(),
        help: help.into(),
    };
    // A denied call is one line, and doesn't happen.
    let _ = begin(state, Call { interface: BLOBSTORE, function, subject, ruling });
    Err(reason)
}

fn finish(state: &State, value: &OutgoingValue) -> Answer<()> {
    let body = value.body.lock().unwrap_or_else(PoisonError::into_inner);
    if body.is_over {
        return Err(Problem::Value.to_string());
    }
    let storage = &state.scope.services().blobs;
    for (container, object) in &value.places {
        let what = format!("object {}", quoted(object));
        let call = recorded(state, CONTAINER, "write-data", (container, &what))?;
        let stored = storage.set(container, object, body.bytes.clone());
        ended(call, stored, Traffic { out: body.bytes.len(), back: 0 })?;
    }
    Ok(())
}

fn get_data(
    state: &State,
    (container, object): (&str, &str),
    start: u64,
    end: u64,
) -> Answer<IncomingValue> {
    let what = format!("object {}", quoted(object));
    let call = recorded(state, CONTAINER, "get-data", (container, &what))?;
    let found = state.scope.services().blobs.get(container, object);
    let back = found.as_ref().ok().and_then(Option::as_ref).map_or(0, Vec::len);
    let found = ended(call, found, Traffic { out: 0, back })?;
    let bytes = Bytes::from(found.ok_or_else(|| missing(object))?);
    // Both offsets count, so the last one is a byte of the part.
    let first = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
    let last = usize::try_from(end).unwrap_or(usize::MAX).saturating_add(1).min(bytes.len());
    let part = bytes.slice(first..last.max(first));
    let held = state.served.room.take(bytes.len()).ok_or("too many values are open")?;
    Ok(IncomingValue { bytes: part, _held: held })
}

fn size(
    state: &State,
    function: &'static str,
    (container, object): (&str, &str),
) -> Answer<Option<u64>> {
    let what = format!("object {}", quoted(object));
    let call = recorded(state, CONTAINER, function, (container, &what))?;
    let size = state.scope.services().blobs.size(container, object);
    ended(call, size, Traffic::default())
}

fn delete(state: &State, container: &str, objects: &[String]) -> Answer<()> {
    for object in objects {
        let what = format!("object {}", quoted(object));
        let call = recorded(state, CONTAINER, "delete-object", (container, &what))?;
        let deleted = state.scope.services().blobs.delete(container, object);
        ended(call, deleted, Traffic::default())?;
    }
    Ok(())
}

fn clear(state: &State, function: &'static str, container: &str) -> Answer<()> {
    let call = recorded(state, CONTAINER, function, (container, "all objects"))?;
    let blobs = &state.scope.services().blobs;
    let mut emptied = Ok(());
    loop {
        let page = match blobs.keys(container, 0) {
            Ok((page, _)) => page,
            Err(problem) => {
                emptied = Err(problem);
                break;
            }
        };
        if page.is_empty() || emptied.is_err() {
            break;
        }
        emptied = page.iter().try_for_each(|object| blobs.delete(container, object));
    }
    ended(call, emptied, Traffic::default())
}

fn copy(state: &State, function: &'static str, from: &ObjectId, to: &ObjectId) -> Answer<()> {
    let source = open(state, function, &from.container)?;
    let target = open(state, function, &to.container)?;
    let what = format!("object {}", quoted(&to.object));
    let call = recorded(state, BLOBSTORE, function, (&target.name, &what))?;
    let blobs = &state.scope.services().blobs;
    let copied = match blobs.get(&source.name, &from.object) {
        Ok(Some(bytes)) => blobs.set(&target.name, &to.object, bytes).map(|()| true),
        Ok(None) => Ok(false),
        Err(problem) => Err(problem),
    };
    let there = ended(call, copied, Traffic::default())?;
    if there { Ok(()) } else { Err(missing(&from.object)) }
}

type Page = Answer<(Vec<String>, bool)>;

fn next_names(
    state: &mut State,
    names: &Resource<ObjectNames>,
    len: u64,
) -> wasmtime::Result<Page> {
    let (container, cursor) = {
        let names = state.table.get(names)?;
        (names.container.clone(), names.cursor)
    };
    let Some(cursor) = cursor else { return Ok(Ok((Vec::new(), true))) };
    let call = match recorded(state, CONTAINER, "list-objects", (&container, "names")) {
        Ok(call) => call,
        Err(error) => return Ok(Err(error)),
    };
    let page = state.scope.services().blobs.keys(&container, cursor);
    let (mut page, next) = match ended(call, page, Traffic::default()) {
        Ok(page) => page,
        Err(error) => return Ok(Err(error)),
    };
    let whole = page.len();
    page.truncate(usize::try_from(len).unwrap_or(usize::MAX));
    let read = cursor.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
    let next = if page.len() < whole { Some(read) } else { next };
    state.table.get_mut(names)?.cursor = next;
    Ok(Ok((page, next.is_none())))
}
