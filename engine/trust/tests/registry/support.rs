//! A clock that never waits, names without a network, and a store in one line.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ambit_engine::digest::Digest;
use ambit_engine::reference::{Reference, Repository};
use ambit_testing::registry::Registry;
use ambit_trust::error::FetchError;
use ambit_trust::oci::{ManifestName, media};
use ambit_trust::registry::credentials::Credentials;
use ambit_trust::registry::{Client, Lookup, Loopback, Options, RegistryStore, Resolver, Timer};
use jiff::Timestamp;

pub(crate) const PATH: &str = "team/app";

/// A clock that moves when somebody waits, or when the test says so.
pub(crate) struct FakeTimer {
    elapsed: Mutex<Duration>,
    slept: Mutex<Vec<Duration>>,
}

impl FakeTimer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { elapsed: Mutex::default(), slept: Mutex::default() })
    }

    pub(crate) fn advance(&self, by: Duration) {
        *self.elapsed.lock().expect("a clock") += by;
    }

    pub(crate) fn slept(&self) -> Vec<Duration> {
        self.slept.lock().expect("a clock").clone()
    }
}

impl Timer for FakeTimer {
    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().expect("a clock")
    }

    fn now(&self) -> Timestamp {
        "2026-01-02T03:04:05Z".parse().expect("a time")
    }

    fn sleep(&self, pause: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.slept.lock().expect("a clock").push(pause);
        self.advance(pause);
        Box::pin(std::future::ready(()))
    }

    fn chance(&self) -> u32 {
        999
    }
}

/// Names and their addresses; no other name exists.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, Vec<IpAddr>>);

impl Names {
    pub(crate) fn of(names: &[(&str, &[&str])]) -> Arc<Self> {
        let read = |list: &[&str]| list.iter().map(|ip| ip.parse().expect("an address")).collect();
        Arc::new(Self(names.iter().map(|(name, list)| ((*name).to_owned(), read(list))).collect()))
    }
}

impl Resolver for Names {
    fn resolve(&self, host: String) -> Lookup {
        let found = self.0.get(&host).cloned();
        let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "no such name");
        Box::pin(async move { found.ok_or_else(missing) })
    }
}

/// Options for registries on loopback, as the command line has them.
pub(crate) fn options() -> Options {
    Options {
        loopback: Loopback::Allowed,
        timer: FakeTimer::new(),
        resolver: Names::of(&[]),
        ..Options::default()
    }
}

/// The same with a user's password for a registry.
pub(crate) fn with_login(registry: &Registry, user: &str, password: &str) -> Options {
    Options { credentials: login(&registry.host(), user, password), ..options() }
}

pub(crate) fn login(host: &str, user: &str, password: &str) -> Arc<Credentials> {
    let config =
        serde_json::json!({"auths": {host: {"username": user, "password": password}}}).to_string();
    let credentials = Credentials::default().with_docker_config("config.json", config.as_bytes());
    Arc::new(credentials.expect("a configuration"))
}

pub(crate) fn repository(host: &str) -> Repository {
    format!("{host}/{PATH}").parse::<Reference>().expect("a reference").into_repository()
}

pub(crate) fn store_with(registry: &Registry, options: Options) -> RegistryStore {
    Client::new(options).expect("options").repository(&repository(&registry.host()))
}

pub(crate) fn store(registry: &Registry) -> RegistryStore {
    store_with(registry, options())
}

pub(crate) fn tag(text: &str) -> ManifestName {
    ManifestName::Tag(text.to_owned())
}

/// A small manifest that differs by `marker`.
pub(crate) fn manifest(marker: &str) -> Vec<u8> {
    serde_json::json!({
        "schemaVersion": 2,
        "mediaType": media::MANIFEST,
        "config": {"mediaType": media::EMPTY, "digest": Digest::of(b"{}").to_string(), "size": 2},
        "layers": [],
        "annotations": {"marker": marker},
    })
    .to_string()
    .into_bytes()
}

pub(crate) fn put(registry: &Registry, tag: &str) -> Digest {
    registry.put_manifest(PATH, tag, media::MANIFEST, &manifest(tag)).parse().expect("a digest")
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, FetchError>) -> &'static str {
    match result {
        Ok(answer) => panic!("expected an error, found {answer:?}"),
        Err(error) => error.code(),
    }
}
