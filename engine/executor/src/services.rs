//! Host services beyond the base: configuration, key-value and blob stores, logs, and the values that
//! manifests refer to.
//!
//! A service is linked where the plan grants it. What a component may touch in it comes from the
//! workload's `hostInterfaces`: the buckets that an entry names, or bucket `default` alone where it
//! names none. Each call is one effect; a key's name is on record, a value never is.
//!
//! Left out on purpose: watching of keys, and stores beyond this machine.

mod blobstore;
mod config;
mod effect;
mod flags;
mod keyvalue;
mod logs;
mod storage;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use ambit_engine::admitted::{Admitted, AdmittedComponent, GrantSource, PlannedImport};
use ambit_engine::interface::InterfaceName;
use wasmtime::component::Linker;

use crate::error::ExecutorError;
use crate::linker::Linked;
use crate::scope::Setup;
use crate::state::State;

pub use flags::{ConfigMapFlag, FlagError, SecretFlag, SecretSource, entries};
pub use logs::{Level, LogLine, LogSink, MemoryLogs, NoLogs};
pub use storage::Backing;
pub use values::{Values, ValuesBuilder};

pub(crate) use logs::Served;
use storage::Storage;

/// The bucket of an entry that names none.
const DEFAULT_BUCKET: &str = "default";

/// The services of one component, opened once at start.
pub(crate) struct Services {
    config: BTreeMap<String, String>,
    buckets: Buckets,
    storage: Arc<Storage>,
    containers: Buckets,
    blobs: Arc<Storage>,
    logs: Arc<dyn LogSink>,
}

impl Services {
    /// Opens what the component's plan grants.
    pub(crate) fn open(
        admitted: &Admitted,
        component: &AdmittedComponent,
        setup: &Setup,
    ) -> Result<Self, ExecutorError> {
        let plan = component.plan();
        let config = if plan.grants("wasi:config/store@0.2.0-rc.1") {
            setup.values.resolve(component.config())?.into_iter().collect()
        } else {
            BTreeMap::new()
        };
        let keeps = plan.grants(keyvalue::STORE)
            || plan.grants(keyvalue::ATOMICS)
            || plan.grants(keyvalue::BATCH);
        let storage = if keeps {
            let workload = format!("{}/{}", admitted.namespace(), admitted.name());
            setup.services.storage("keyvalue", &workload, setup.state_dir.as_deref())?
        } else {
            Arc::default()
        };
        let blobs = if plan.grants(blobstore::BLOBSTORE) {
            let workload = format!("{}/{}", admitted.namespace(), admitted.name());
            setup.services.storage("blobstore", &workload, setup.state_dir.as_deref())?
        } else {
            Arc::default()
        };
        let buckets =
            Buckets::of(admitted, component, ("keyvalue", keyvalue::STORE, &["buckets", "bucket"]));
        let containers = Buckets::of(
            admitted,
            component,
            ("blobstore", blobstore::BLOBSTORE, &["containers", "container", "buckets", "bucket"]),
        );
        let logs = Arc::clone(setup.services.logs());
        Ok(Self { config, buckets, storage, containers, blobs, logs })
    }
}

/// The buckets or containers that a component may open, with the line that gives each.
struct Buckets {
    granted: BTreeMap<String, GrantSource>,
    /// Where another bucket would be granted.
    at: GrantSource,
}

impl Buckets {
    fn of(
        admitted: &Admitted,
        component: &AdmittedComponent,
        (package, track, keys): (&str, &str, &[&str]),
    ) -> Self {
        let interface = track.split('@').next().unwrap_or(track);
        let mut granted = BTreeMap::new();
        let mut at = GrantSource { file: admitted.file().to_owned(), ..GrantSource::default() };
        for entry in admitted.interfaces() {
            let ours = entry.namespace == "wasi" && entry.package == package;
            // A version that is no semantic version means any, as the plan reads it too.
            let versioned = InterfaceName::parse(&format!("{interface}@{}", entry.version));
            let other = versioned.is_some_and(|name| name.on_track() != track);
            let scoped =
                entry.scope.is_empty() || entry.scope.iter().any(|name| name == component.name());
            if !ours || other || !scoped {
                continue;
            }
            let lists = keys.iter().filter_map(|key| entry.config.get(*key));
            let mut names: Vec<&str> = lists
                .flat_map(|list| list.split(','))
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .collect();
            if names.is_empty() {
                names.push(DEFAULT_BUCKET);
            }
            let source = |text: &str| GrantSource {
                text: text.to_owned(),
                file: admitted.file().to_owned(),
                line: entry.place.line(),
                pointer: entry.place.pointer.clone(),
            };
            for name in names {
                granted
                    .entry(name.to_owned())
                    .or_insert_with(|| source(&format!("{package} {name}")));
            }
            at = source(&format!("wasi:{package}"));
        }
        Self { granted, at }
    }
}

/// Links `wasi:config`, `wasi:keyvalue`, `wasi:blobstore` and `wasi:logging`.
pub(crate) fn link(linker: &mut Linker<State>, import: &PlannedImport) -> wasmtime::Result<Linked> {
    let mut instance = match import.track.as_str() {
        config::STORE
        | keyvalue::STORE
        | keyvalue::ATOMICS
        | keyvalue::BATCH
        | blobstore::TYPES
        | blobstore::CONTAINER
        | blobstore::BLOBSTORE
        | logs::LOGGING
        | logs::LOGGING_DRAFT => linker.instance(&import.name)?,
        _ => return Ok(Linked::NotMine),
    };
    match import.track.as_str() {
        config::STORE => config::link(&mut instance)?,
        keyvalue::STORE => keyvalue::link_store(&mut instance)?,
        keyvalue::ATOMICS => keyvalue::link_atomics(&mut instance)?,
        keyvalue::BATCH => keyvalue::link_batch(&mut instance)?,
        blobstore::TYPES => blobstore::link_types(&mut instance)?,
        blobstore::CONTAINER => blobstore::link_container(&mut instance)?,
        blobstore::BLOBSTORE => blobstore::link_blobstore(&mut instance)?,
        logs::LOGGING => logs::link(&mut instance, logs::LOGGING)?,
        logs::LOGGING_DRAFT => logs::link(&mut instance, logs::LOGGING_DRAFT)?,
        _ => return Ok(Linked::NotMine),
    }
    Ok(Linked::Yes)
}
