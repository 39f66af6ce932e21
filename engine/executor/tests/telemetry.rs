//! Metrics and traces say what the record says.
#![expect(
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail loudly"
)]

mod common;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use ambit_executor::record::Recorder;
use ambit_executor::telemetry::{Metrics, Traces};
use ambit_executor::{Setup, run_command};

/// Loads a component behind a recorder.
fn hello(wrap: &dyn Fn(Arc<dyn Recorder>) -> Arc<dyn Recorder>) -> common::Run {
    let bytes = common::hello();
    let reviewed = ambit_testing::admit::bare("hello", &bytes);
    let admitted = reviewed.admitted.expect("it is allowed");
    let adjust = |setup: &mut Setup| setup.recorder = wrap(Arc::clone(&setup.recorder));
    common::load(&admitted, &[&bytes], adjust).expect("it loads")
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a listener");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("a reader");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_happened() {
    let metrics = Metrics::new();
    let run = hello(&|inner| metrics.recorder(inner));
    run_command(run.program(), &run.stdio).await.expect("it runs");

    let address = metrics.serve("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
    let text = tokio::task::spawn_blocking(move || get(address, "/metrics")).await.expect("an end");
    let labels = "workload=\"default/hello\",component=\"hello\",verb=\"none\"";
    for line in [
        format!("ambit_effects_begun_total{{{labels}}} 1"),
        format!("ambit_effects_open{{{labels}}} 0"),
        format!("ambit_effect_seconds_count{{{labels}}} 1"),
        format!("ambit_effects_ended_total{{{labels},result=\"ok\"}} 1"),
        "ambit_record_failures_total 0".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} isn't in\n{text}");
    }
    let other = tokio::task::spawn_blocking(move || get(address, "/")).await.expect("an end");
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
}

/// A collector that takes one request and says what was in it.
fn collector() -> (SocketAddr, std::thread::JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let taken = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("an exporter");
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        loop {
            let read = stream.read(&mut part).expect("a request");
            assert!(read > 0, "it ended early");
            bytes.extend_from_slice(&part[..read]);
            let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.expect("a length").trim().parse().expect("a number");
            if bytes.len() == end + 4 + length {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    .expect("a reader");
                return (head, bytes.split_off(end + 4));
            }
        }
    });
    (address, taken)
}

#[test]
fn traces_reach_a_collector() {
    let (address, taken) = collector();
    let traces = Traces::start(&format!("http://{address}")).expect("an exporter");
    let run = hello(&|inner| traces.recorder(inner));
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(run_command(run.program(), &run.stdio))
        .expect("it runs");
    traces.finish();
    let (head, body) = taken.join().expect("a request");
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    for text in ["wasi:cli/run@0.2#run", "default/hello", "ambit.result"] {
        let found = body.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(found, "`{text}` isn't in the request");
    }
}

#[test]
fn an_address_that_is_no_collector_is_refused() {
    for address in ["", "localhost:4318", "ftp://x", "http://"] {
        assert!(Traces::start(address).is_err(), "{address}");
    }
}
