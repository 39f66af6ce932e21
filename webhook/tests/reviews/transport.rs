//! What comes over the wire, wrong in every way that costs nothing to try.

use std::time::Duration;

use ambit_webhook::server::Bounds;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::api_server::NAME;
use super::testdata;
use super::world::{Images, Issuer, Webhook, World};

fn recorded(file: &str) -> String {
    std::fs::read_to_string(testdata("admission").join(file)).unwrap()
}

async fn webhook() -> (Webhook, World, Issuer) {
    let (world, issuer) = (World::start(Images::Missing).await, Issuer::new());
    let folder = tempfile::tempdir().unwrap();
    let settings = world.settings(folder.path(), "");
    (Webhook::start(&settings, &issuer).await, world, issuer)
}

#[tokio::test]
async fn what_is_no_review_gets_a_status_that_says_why() {
    let (webhook, _world, _issuer) = webhook().await;
    let body = recorded("010-workload-delete.validate.json");
    let json = "application/json";
    for (method, path, kind, body, expected) in [
        ("POST", "/validate", json, body.as_str(), 200),
        ("POST", "/validate?timeout=3s", "application/json; charset=utf-8", &body, 200),
        ("POST", "/validate/", json, &body, 404),
        ("POST", "/", json, &body, 404),
        ("POST", "/validate%2f", json, &body, 404),
        ("GET", "/validate", json, "", 405),
        ("PUT", "/mutate", json, &body, 405),
        ("POST", "/validate", "application/yaml", &body, 415),
        ("POST", "/validate", "", &body, 415),
        ("POST", "/validate", json, "", 400),
        ("POST", "/validate", json, "{", 400),
        ("POST", "/validate", json, "null", 400),
        ("POST", "/validate", json, &"[".repeat(100_000), 400),
        ("POST", "/validate", json, "\u{feff}{}", 400),
    ] {
        let request = Request::builder().method(method).uri(path).header("host", NAME);
        let request = request.header("content-type", kind);
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let response = webhook.api.send(request).await;
        let shown = format!("{method} {path} {kind} {body:.20}");
        assert_eq!(response.status(), expected, "{shown}");
        assert!(!response.body().is_empty(), "{shown}");
    }
    assert!(webhook.stop().await);
}

#[tokio::test]
async fn bodies_over_the_limit_are_refused_and_bodies_below_it_read() {
    let (webhook, _world, _issuer) = webhook().await;
    let mut review: Value =
        serde_json::from_str(&recorded("010-workload-delete.validate.json")).unwrap();
    review["request"]["oldObject"]["metadata"]["annotations"] = json!({"x": "y".repeat(8_000_000)});
    assert!(webhook.api.review("/validate", &review).await.allowed);
    let response = webhook.api.post("/validate", vec![b' '; (8 << 20) + 1]).await;
    assert_eq!(response.status(), 413);
    assert!(webhook.stop().await);
}

#[tokio::test]
async fn lengths_that_lie_and_bodies_without_an_end_are_bounded() {
    let (webhook, _world, _issuer) = webhook().await;
    let head = "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    for (rest, expected) in [
        ("content-length: 99999999999\r\n\r\n".to_owned(), "HTTP/1.1 413"),
        ("content-length: -1\r\n\r\n".to_owned(), "HTTP/1.1 400"),
        ("transfer-encoding: chunked\r\n\r\nzz\r\n".to_owned(), "HTTP/1.1 400"),
        (format!("x: {}\r\n\r\n", "y".repeat(1 << 20)), "HTTP/1.1 431"),
    ] {
        let mut stream = webhook.api.connect().await;
        // It may hang up before everything is sent.
        let _ = stream.write_all(format!("{head}{rest}").as_bytes()).await;
        let _ = stream.flush().await;
        let mut answer = vec![0; expected.len()];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), expected);
    }
    let mut stream = webhook.api.connect().await;
    stream.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    for _ in 0..9 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    assert!(webhook.stop().await);
}

#[tokio::test]
async fn a_certificate_is_for_its_name_and_rotates_without_a_lost_review() {
    let (webhook, _world, issuer) = webhook().await;
    assert!(webhook.api.connect_as("other.example").await.is_err());
    let review: Value =
        serde_json::from_str(&recorded("010-workload-delete.validate.json")).unwrap();
    let certificate = |stream: &tokio_rustls::client::TlsStream<tokio::net::TcpStream>| {
        stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
    };
    let mut open = webhook.api.connect().await;
    for version in ["second", "third"] {
        let before = certificate(&webhook.api.connect().await);
        let issued = issuer.issue(version);
        assert_eq!(certificate(&webhook.api.connect().await), before);
        webhook.certificates.turn();
        assert_eq!(certificate(&webhook.api.connect().await), issued);
        assert!(webhook.api.review("/validate", &review).await.allowed);
    }
    // What was open before is still served.
    open.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    open.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 404");
    drop(open);
    assert!(webhook.stop().await);
}

#[tokio::test]
async fn connections_over_the_limit_are_closed_and_silent_ones_cost_one_slot_each() {
    let (world, issuer) = (World::start(Images::Missing).await, Issuer::new());
    let folder = tempfile::tempdir().unwrap();
    let settings = world.settings(folder.path(), "");
    let first = Webhook::start(&settings, &issuer).await;
    let service = std::sync::Arc::clone(&first.service);
    assert!(first.stop().await);
    let webhook = Webhook::serve(service, &issuer, Bounds { connections: 2 }).await;
    let held = (webhook.api.connect().await, webhook.api.connect().await);
    assert!(webhook.api.connect_as(NAME).await.is_err());
    drop(held);
    // The slots are free once their tasks have seen that the connections are gone.
    let free = async {
        while webhook.api.connect_as(NAME).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), free).await.unwrap();
    assert!(webhook.stop().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_before_a_stop_is_answered() {
    let (webhook, world, _issuer) = webhook().await;
    world.registry.fault(ambit_testing::registry::Fault::each(
        "GET",
        "*",
        ambit_testing::registry::Action::Hold,
    ));
    let review: Value =
        serde_json::from_str(&recorded("001-workload-create.validate.json")).unwrap();
    let api = webhook.api.clone();
    let asked = tokio::spawn(async move { api.review("/validate?timeout=30s", &review).await });
    while world.registry.held() == 0 {
        tokio::task::yield_now().await;
    }
    webhook.ask_to_stop();
    while webhook.api.connect_as(NAME).await.is_ok() {
        tokio::task::yield_now().await;
    }
    world.registry.clear_faults();
    world.registry.release();
    let answer = asked.await.unwrap();
    assert_eq!(answer.codes(), ["component-unavailable"]);
    assert!(webhook.stop().await);
}
