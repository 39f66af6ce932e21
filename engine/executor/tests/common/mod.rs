//! What the tests of this crate share.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file uses a part, and helpers of tests may fail loudly"
)]

use std::path::Path;
use std::sync::Arc;

use ambit_engine::admitted::Admitted;
use ambit_executor::egress::Closed;
use ambit_executor::files::Folders;
use ambit_executor::record::Memory;
use ambit_executor::services::{Backing, Values};
use ambit_executor::stdio::{Captured, Stdio};
use ambit_executor::workload::{Code, Source, Workload};
use ambit_executor::{
    Allocation, ExecutorError, Host, HostOptions, Limits, PrivateNetwork, Program, Scope, Setup,
};

/// A component that is ready to run, with what it was given.
#[derive(Debug)]
pub struct Run {
    pub workload: Workload,
    pub stdio: Stdio,
    pub output: Captured,
    pub record: Memory,
}

impl Run {
    pub fn program(&self) -> &Program {
        self.workload.programs().first().expect("a component")
    }

    pub fn printed(&self) -> String {
        String::from_utf8(self.output.out()).expect("text")
    }
}

pub fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/components").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn hello() -> Vec<u8> {
    sample("hello.wasm")
}

pub fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn setup(record: &Memory) -> Setup {
    Setup {
        limits: Limits::default(),
        recorder: Arc::new(record.clone()),
        egress: Arc::new(Closed::default()),
        loopback: Vec::new(),
        private_network: PrivateNetwork::Closed,
        values: Arc::new(Values::default()),
        secrets: Vec::new(),
        services: Backing::default(),
        state_dir: None,
    }
}

pub fn host() -> Host {
    let options = HostOptions { allocation: Allocation::OnDemand, limits: Limits::default() };
    Host::new(&options).expect("the engine starts")
}

/// Admits a component without a manifest and loads it.
pub fn bare(name: &str, bytes: &[u8]) -> Run {
    try_bare(name, bytes, bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// Admits some bytes and loads others.
pub fn try_bare(name: &str, admitted: &[u8], bytes: &[u8]) -> Result<Run, ExecutorError> {
    let reviewed = ambit_testing::admit::bare(name, admitted);
    let admitted = reviewed.admitted.unwrap_or_else(|error| panic!("{error}"));
    load(&admitted, &[bytes], |_| {})
}

/// Admits a workload by its manifest and loads it.
pub fn manifest(text: &str, components: &[(&str, &[u8])], adjust: impl FnOnce(&mut Setup)) -> Run {
    try_manifest(text, components, adjust).unwrap_or_else(|error| panic!("{error}"))
}

pub fn try_manifest(
    text: &str,
    components: &[(&str, &[u8])],
    adjust: impl FnOnce(&mut Setup),
) -> Result<Run, ExecutorError> {
    let reviewed = ambit_testing::admit::manifest(text, components);
    let findings = reviewed.findings;
    let admitted =
        reviewed.admitted.unwrap_or_else(|error| panic!("{error}\n{}", findings.join("\n")));
    let bytes: Vec<&[u8]> = admitted
        .components()
        .iter()
        .map(|component| {
            let found = components.iter().find(|(name, _)| *name == component.name());
            found.expect("bytes for each component").1
        })
        .collect();
    load(&admitted, &bytes, adjust)
}

/// Loads an admitted workload.
pub fn load(
    admitted: &Admitted,
    bytes: &[&[u8]],
    adjust: impl FnOnce(&mut Setup),
) -> Result<Run, ExecutorError> {
    let record = Memory::default();
    let mut setup = setup(&record);
    adjust(&mut setup);
    let temporary = std::env::temp_dir();
    let source = Source {
        admitted,
        bytes,
        temporary: &temporary,
        code: Code::Compile,
        progress: &|_, _| {},
        arguments: &[],
    };
    let workload = Workload::load(&host(), &source, &setup)?;
    let (stdio, output) = Stdio::captured("");
    Ok(Run { workload, stdio, output, record })
}

/// A manifest with one component, `NAME`, and these lines below it (indented by four).
pub fn one(name: &str, resources: &str, rest: &str) -> String {
    format!(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata: {{name: {name}, namespace: team}}
spec:
{rest}
  components:
  - name: {name}
    image: registry.example/{name}@sha256:{}
    localResources:
{resources}
",
        "0".repeat(64)
    )
}

/// Loads one component of an admitted workload by itself, without folders.
pub fn program(
    admitted: &Admitted,
    name: &str,
    bytes: &[u8],
    setup: &Setup,
) -> Result<Program, ExecutorError> {
    let component = admitted.components().iter().find(|c| c.name() == name);
    let component = component.unwrap_or_else(|| panic!("no component `{name}`"));
    let scope = Scope::open(admitted, component, setup, Folders::default(), Vec::new())?;
    Program::load(&host(), &scope, bytes, &[])
}
