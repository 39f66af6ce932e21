//! The second start of a component that is admitted: from nothing but its bytes and the admission to
//! the first answer, compiled code in the cache. `benches/serve` has the peer's.
//! usage: cargo bench -p ambit-executor --bench second_start -- FILE...
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement that can't be made says so and ends"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ambit_engine::admitted::Admitted;
use ambit_executor::aot::Cache;
use ambit_executor::egress::Closed;
use ambit_executor::record::{Options, Writer};
use ambit_executor::serve::Handler;
use ambit_executor::services::{Backing, Values};
use ambit_executor::stdio::Stdio;
use ambit_executor::workload::{Code, Entry, Source, Workload};
use ambit_executor::{Host, HostOptions, Limits, PrivateNetwork, Setup};
use http_body_util::{BodyExt as _, Empty};

const ROUNDS: usize = 7;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if files.is_empty() {
        println!("no file is named; engine/executor/benches/guests/build makes some");
    }
    for file in files {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&file);
        let bytes = std::fs::read(&path).expect("a component");
        let reviewed = ambit_testing::admit::bare("guest", &bytes);
        let admitted = reviewed.admitted.expect("it is allowed");
        let dir = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        // The first start compiles; the others are what is measured.
        let _ = runtime.block_on(start(&admitted, &bytes, dir.path()));
        let least = (0..ROUNDS)
            .map(|_| runtime.block_on(start(&admitted, &bytes, dir.path())))
            .fold(f64::MAX, f64::min);
        println!("second start of {file}, admitted: {least:.1} ms");
    }
}

/// Returns the milliseconds until the first answer.
async fn start(admitted: &Admitted, bytes: &[u8], dir: &Path) -> f64 {
    let since = Instant::now();
    let host = Host::new(&HostOptions::default()).expect("the engine starts");
    let cache = Cache::open(&dir.join("cache")).expect("a folder");
    let record = Writer::create(&dir.join("record"), Options::default()).expect("a folder");
    let setup = Setup {
        limits: Limits::default(),
        recorder: Arc::new(record),
        egress: Arc::new(Closed::default()),
        loopback: Vec::new(),
        private_network: PrivateNetwork::Closed,
        values: Arc::new(Values::default()),
        secrets: Vec::new(),
        services: Backing::default(),
        state_dir: None,
    };
    let source = Source {
        admitted,
        bytes: &[bytes],
        temporary: dir,
        code: Code::Cached(&cache),
        progress: &|_, _| {},
        arguments: &[],
    };
    let workload = Workload::load(&host, &source, &setup).expect("it loads");
    let Entry::Handler(program) = workload.entry().expect("it can be started") else { return 0.0 };
    let handler = Handler::new(program, Stdio::default()).expect("a handler");
    let body = Empty::<bytes::Bytes>::new();
    let body = body.map_err(|never| -> wasmtime_wasi_http::Error { match never {} });
    let request = http::Request::get("/").header("host", "guest.localhost");
    let request = request.body(body.boxed_unsync()).expect("a request");
    let answer = handler.handle(request).await;
    assert_eq!(answer.status().as_u16(), 200);
    answer.into_body().collect().await.expect("an answer");
    since.elapsed().as_secs_f64() * 1000.0
}
