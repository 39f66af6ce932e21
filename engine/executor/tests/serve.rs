//! Components that answer HTTP, behind the ingress.
#![expect(clippy::expect_used, reason = "helpers of tests may fail loudly")]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use ambit_executor::ingress::{CrossSite, Ingress, Route, Routes};
use ambit_executor::serve::Handler;
use common::{Run, bare, sample};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn ingress(run: &Run, name: &str) -> Ingress {
    let handler = Handler::new(run.program(), run.stdio.clone()).expect("a handler");
    let mut routes = Routes::default();
    let route = Route { handler, cross_site: CrossSite::Refused };
    routes.add(name, &["hello.example".to_owned()], &route).expect("a free name");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    Ingress::start(any, routes).await.expect("a port")
}

/// Sends raw bytes, and returns all that comes back until the server closes.
async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(60), read).await.expect("an end").expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(host: &str) -> String {
    format!("GET /a/path?secret=1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

#[tokio::test]
async fn a_handler_answers_under_its_name_and_is_on_record_without_the_query() {
    let run = bare("hello", &sample("http-handler.wasm"));
    let ingress = ingress(&run, "hello").await;
    let answer = raw(ingress.address(), &get("hello.localhost:8200")).await;
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(answer.contains("hello from the handler"), "{answer}");
    assert!(ingress.stop(Duration::from_secs(10)).await);
    let effects = run.record.effects();
    let effect = effects.first().expect("an effect");
    assert_eq!(effect.subject, "GET hello.localhost:8200/a/path");
    assert_eq!((effect.result.as_deref(), effect.detail.as_str()), (Some("ok"), "200"));
}

#[tokio::test]
async fn a_request_is_routed_by_exactly_one_name_of_this_machine() {
    let run = bare("hello", &sample("http-handler.wasm"));
    let ingress = ingress(&run, "hello").await;
    let to = ingress.address();
    for (request, expected) in [
        (get("evil.test"), "421"),
        (get("HELLO.localhost.:8200"), "200"),
        (get("hello.example"), "200"),
        (get("other.localhost"), "404"),
        (get("localhost"), "421"),
        (get("127.0.0.1:8200"), "421"),
        ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nHost: hello.localhost\r\nHost: hello.localhost\r\nConnection: close\r\n\r\n".to_owned(), "400"),
        ("GET http://other.localhost/ HTTP/1.1\r\nHost: hello.localhost\r\nConnection: close\r\n\r\n".to_owned(), "400"),
        ("GET http://hello.localhost/ HTTP/1.1\r\nHost: hello.localhost\r\nConnection: close\r\n\r\n".to_owned(), "200"),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nHost: hello.localhost\r\nSec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n".to_owned(), "403"),
        ("GET / HTTP/1.1\r\nHost: hello.localhost\r\nOrigin: https://evil.test\r\nConnection: close\r\n\r\n".to_owned(), "403"),
        ("GET / HTTP/1.1\r\nHost: hello.localhost\r\nOrigin: http://hello.localhost\r\nConnection: close\r\n\r\n".to_owned(), "200"),
    ] {
        let answer = raw(to, &request).await;
        assert_eq!(status(&answer), expected, "{request}\n{answer}");
    }
}

#[tokio::test]
async fn a_request_over_its_bound_is_refused_before_the_component_starts() {
    let run = bare("hello", &sample("http-handler.wasm"));
    let ingress = ingress(&run, "hello").await;
    let large = "POST / HTTP/1.1\r\nHost: hello.localhost\r\nContent-Length: 99999999999\r\nConnection: close\r\n\r\n";
    let answer = raw(ingress.address(), large).await;
    assert_eq!(status(&answer), "413", "{answer}");
    let mut many = "GET / HTTP/1.1\r\nHost: hello.localhost\r\nConnection: close\r\n".to_owned();
    for index in 0..70_000 {
        many.push_str(&format!("x-{index}: y\r\n"));
    }
    many.push_str("\r\n");
    let answer = raw_until_closed(ingress.address(), &many).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// As [`raw`], for requests that the server doesn't read to their end.
async fn raw_until_closed(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let _sent = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let _end = tokio::time::timeout(Duration::from_secs(60), read).await.expect("an end");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    let run = bare("hello", &sample("http-handler.wasm"));
    let ingress = ingress(&run, "hello").await;
    let to = ingress.address();
    let requests =
        (0..64).map(|_| tokio::spawn(async move { raw(to, &get("hello.localhost")).await }));
    for request in requests.collect::<Vec<_>>() {
        let answer = request.await.expect("an answer");
        assert_eq!(status(&answer), "200", "{answer}");
    }
    assert_eq!(run.record.effects().len(), 64);
}
