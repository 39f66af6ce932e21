//! `wasi:config/store`: the configuration that the document gives this component, and no other's.

use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower};

use super::effect::{Begun, Call, Traffic, begin, quoted};
use crate::record::Ruling;
use crate::state::State;

pub(super) const STORE: &str = "wasi:config/store@0.2.0-rc.1";

/// What the interface can answer beside a value.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum Error {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

fn recorded(state: &State, function: &'static str, subject: String) -> Result<Begun, Error> {
    let call = Call { interface: STORE, function, subject, ruling: Ruling::Allowed(None) };
    begin(state, call).map_err(|_| Error::Io("the host can't record the call".to_owned()))
}

type Got = Result<Option<String>, Error>;
type All = Result<Vec<(String, String)>, Error>;

pub(super) fn link(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap("get", |store, (key,): (String,)| Ok((get(store.data(), &key),)))?;
    linker.func_wrap("get-all", |store, (): ()| Ok((get_all(store.data()),)))
}

fn get(state: &State, key: &str) -> Got {
    let call = recorded(state, "get", format!("configuration key {}", quoted(key)))?;
    let value = state.scope.services().config.get(key).cloned();
    let back = value.as_ref().map_or(0, String::len);
    call.end("ok", Traffic { out: 0, back });
    Ok(value)
}

fn get_all(state: &State) -> All {
    let call = recorded(state, "get-all", "configuration, all keys".to_owned())?;
    let config = &state.scope.services().config;
    let all: Vec<_> = config.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let back = all.iter().fold(0_usize, |sum, (_, value)| sum.saturating_add(value.len()));
    call.end("ok", Traffic { out: 0, back });
    Ok(all)
}
