//! `wasi:keyvalue`: buckets that the workload names, kept by the host.

use std::sync::Arc;

use ambit_engine::admitted::GrantSource;
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource, ResourceType};

use super::DEFAULT_BUCKET;
use super::effect::{Begun, Call, Traffic, begin, quoted};
use super::storage::{MAX_BATCH, Problem};
use crate::record::Ruling;
use crate::scope::Scope;
use crate::state::State;

pub(super) const STORE: &str = "wasi:keyvalue/store@0.2.0-draft";
pub(super) const ATOMICS: &str = "wasi:keyvalue/atomics@0.2.0-draft";
pub(super) const BATCH: &str = "wasi:keyvalue/batch@0.2.0-draft";

/// A bucket that a component has open. That it is there says that it is granted.
struct Bucket {
    name: String,
}

/// What the interfaces can answer beside a value.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum Error {
    #[component(name = "no-such-store")]
    NoSuchStore,
    #[component(name = "access-denied")]
    AccessDenied,
    #[component(name = "other")]
    Other(String),
}

/// One page of keys.
#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct KeyResponse {
    #[component(name = "keys")]
    keys: Vec<String>,
    #[component(name = "cursor")]
    cursor: Option<u64>,
}

type Pairs = Vec<(String, Vec<u8>)>;
type Found = Vec<Option<(String, Vec<u8>)>>;
type Answer<T> = Result<T, Error>;

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Other(problem.to_string())
    }
}

pub(super) fn link_store(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.resource("bucket", ResourceType::host::<Bucket>(), |mut store, rep| {
        store.data_mut().table.delete(Resource::<Bucket>::new_own(rep))?;
        Ok(())
    })?;
    linker.func_wrap("open", |mut store, (name,): (String,)| {
        open(store.data_mut(), &name).map(|opened| (opened,))
    })?;
    linker.func_wrap(
        "[method]bucket.get",
        |store, (bucket, key): (Resource<Bucket>, String)| {
            let called = Called::new(&store, &bucket)?;
            Ok((called.get(&key),))
        },
    )?;
    linker.func_wrap(
        "[method]bucket.set",
        |store, (bucket, key, value): (Resource<Bucket>, String, Vec<u8>)| {
            let called = Called::new(&store, &bucket)?;
            Ok((called.set(&key, value),))
        },
    )?;
    linker.func_wrap(
        "[method]bucket.delete",
        |store, (bucket, key): (Resource<Bucket>, String)| {
            let called = Called::new(&store, &bucket)?;
            Ok((called.delete(&key),))
        },
    )?;
    linker.func_wrap(
        "[method]bucket.exists",
        |store, (bucket, key): (Resource<Bucket>, String)| {
            let called = Called::new(&store, &bucket)?;
            Ok((called.exists(&key),))
        },
    )?;
    linker.func_wrap(
        "[method]bucket.list-keys",
        |store, (bucket, cursor): (Resource<Bucket>, Option<u64>)| {
            let called = Called::new(&store, &bucket)?;
            Ok((called.list(cursor),))
        },
    )
}

pub(super) fn link_atomics(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap("increment", |store, (bucket, key, delta): (Resource<Bucket>, String, u64)| {
        let called = Called::new(&store, &bucket)?;
        Ok((called.increment(&key, delta),))
    })
}

pub(super) fn link_batch(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap("get-many", |store, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
        let called = Called::new(&store, &bucket)?;
        Ok((called.get_many(keys),))
    })?;
    linker.func_wrap("set-many", |store, (bucket, pairs): (Resource<Bucket>, Pairs)| {
        let called = Called::new(&store, &bucket)?;
        Ok((called.set_many(pairs),))
    })?;
    linker.func_wrap("delete-many", |store, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
        let called = Called::new(&store, &bucket)?;
        Ok((called.delete_many(&keys),))
    })
}

fn unrecorded() -> Error {
    Error::Other("the host can't record the call".to_owned())
}

fn open(state: &mut State, name: &str) -> wasmtime::Result<Answer<Resource<Bucket>>> {
    let scope = Arc::clone(&state.scope);
    let buckets = &scope.services().buckets;
    // Guests open the only bucket of a host by an empty name as well.
    let name = if name.is_empty() { DEFAULT_BUCKET } else { name };
    let subject = format!("bucket {}", quoted(name));
    let granted = buckets.granted.get(name);
    let ruling = match granted {
        Some(line) => Ruling::Allowed(Some(line)),
        None => Ruling::Denied {
            code: "bucket-not-granted",
            reason: format!("{subject} isn't granted").into(),
            help: missing(name, &buckets.at).into(),
        },
    };
    let call = Call { interface: STORE, function: "open", subject, ruling };
    let Ok(call) = begin(state, call) else {
        return Ok(Err(unrecorded()));
    };
    if granted.is_none() {
        return Ok(Err(Error::AccessDenied));
    }
    let opened = state.table.push(Bucket { name: name.to_owned() });
    call.end(if opened.is_ok() { "ok" } else { "limit-handles" }, Traffic::default());
    Ok(opened.map_err(|_| Error::Other("too many buckets are open".to_owned())))
}

fn missing(name: &str, at: &GrantSource) -> String {
    format!(
        "add {} to `buckets` of the `wasi:keyvalue` entry in `hostInterfaces` ({}:{})",
        quoted(name),
        at.file,
        at.line
    )
}

/// A call on an open bucket.
struct Called<'a> {
    state: &'a State,
    scope: Arc<Scope>,
    bucket: &'a str,
}

/// How the storage answered, and what went over.
struct Done<T>(Result<T, Problem>, Traffic);

impl<'a> Called<'a> {
    /// # Errors
    ///
    /// A trap, if the handle isn't one that the host gave out.
    fn new(
        store: &'a StoreContextMut<'_, State>,
        bucket: &Resource<Bucket>,
    ) -> wasmtime::Result<Self> {
        let state = store.data();
        let bucket = state.table.get(bucket)?;
        Ok(Self { state, scope: Arc::clone(&state.scope), bucket: &bucket.name })
    }

    fn begin(&self, interface: &'static str, function: &'static str, what: &str) -> Answer<Begun> {
        let line = self.scope.services().buckets.granted.get(self.bucket);
        let call = Call {
            interface,
            function,
            subject: format!("bucket {} {what}", quoted(self.bucket)),
            ruling: Ruling::Allowed(line),
        };
        begin(self.state, call).map_err(|_| unrecorded())
    }

    fn run<T>(
        &self,
        (interface, function): (&'static str, &'static str),
        what: &str,
        act: impl FnOnce(&super::Storage, &str) -> Done<T>,
    ) -> Answer<T> {
        let call = self.begin(interface, function, what)?;
        let Done(result, traffic) = act(&self.scope.services().storage, self.bucket);
        call.end(result.as_ref().err().map_or("ok", Problem::code), traffic);
        Ok(result?)
    }

    fn get(&self, key: &str) -> Answer<Option<Vec<u8>>> {
        self.run((STORE, "get"), &on(key), |storage, bucket| {
            let value = storage.get(bucket, key);
            let back = value.as_ref().ok().and_then(Option::as_ref).map_or(0, Vec::len);
            Done(value, Traffic { out: 0, back })
        })
    }

    fn set(&self, key: &str, value: Vec<u8>) -> Answer<()> {
        self.run((STORE, "set"), &on(key), |storage, bucket| {
            let out = value.len();
            Done(storage.set(bucket, key, value), Traffic { out, back: 0 })
        })
    }

    fn delete(&self, key: &str) -> Answer<()> {
        self.run((STORE, "delete"), &on(key), |storage, bucket| {
            Done(storage.delete(bucket, key), Traffic::default())
        })
    }

    fn exists(&self, key: &str) -> Answer<bool> {
        self.run((STORE, "exists"), &on(key), |storage, bucket| {
            Done(storage.exists(bucket, key), Traffic::default())
        })
    }

    fn list(&self, cursor: Option<u64>) -> Answer<KeyResponse> {
        self.run((STORE, "list-keys"), "keys", |storage, bucket| {
            let page = storage.keys(bucket, cursor.unwrap_or(0));
            let keys = page.as_ref().map(|(keys, _)| keys.as_slice()).unwrap_or_default();
            let back = keys.iter().fold(0_usize, |sum, key| sum.saturating_add(key.len()));
            Done(page.map(|(keys, cursor)| KeyResponse { keys, cursor }), Traffic { out: 0, back })
        })
    }

    fn increment(&self, key: &str, delta: u64) -> Answer<u64> {
        self.run((ATOMICS, "increment"), &on(key), |storage, bucket| {
            Done(storage.increment(bucket, key, delta), Traffic { out: 8, back: 8 })
        })
    }

    fn get_many(&self, keys: Vec<String>) -> Answer<Found> {
        let most = self.scope.limits().copy_bytes;
        self.run((BATCH, "get-many"), &several(keys.len()), |storage, bucket| {
            let mut found = Vec::new();
            let mut back = 0_usize;
            let mut answer = bounded(keys.len());
            for key in keys {
                if answer.is_err() {
                    break;
                }
                match storage.get(bucket, &key) {
                    Ok(value) => {
                        let bytes = value.as_ref().map_or(0, Vec::len);
                        back = back.saturating_add(bytes);
                        found.push(value.map(|value| (key, value)));
                    }
                    Err(problem) => answer = Err(problem),
                }
                // Many names of one large value would make the host copy it as many times.
                if back > most {
                    answer = Err(Problem::Batch);
                }
            }
            Done(answer.map(|()| found), Traffic { out: 0, back })
        })
    }

    fn set_many(&self, pairs: Pairs) -> Answer<()> {
        self.run((BATCH, "set-many"), &several(pairs.len()), |storage, bucket| {
            let mut answer = bounded(pairs.len());
            let mut out = 0_usize;
            for (key, value) in pairs {
                if answer.is_err() {
                    break;
                }
                out = out.saturating_add(value.len());
                answer = storage.set(bucket, &key, value);
            }
            Done(answer, Traffic { out, back: 0 })
        })
    }

    fn delete_many(&self, keys: &[String]) -> Answer<()> {
        self.run((BATCH, "delete-many"), &several(keys.len()), |storage, bucket| {
            let answer = bounded(keys.len())
                .and_then(|()| keys.iter().try_for_each(|key| storage.delete(bucket, key)));
            Done(answer, Traffic::default())
        })
    }
}

fn on(key: &str) -> String {
    format!("key {}", quoted(key))
}

fn several(count: usize) -> String {
    format!("{count} keys")
}

fn bounded(count: usize) -> Result<(), Problem> {
    if count > MAX_BATCH { Err(Problem::Batch) } else { Ok(()) }
}
