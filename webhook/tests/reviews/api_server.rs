//! What an API server does with an answer.
//!
//! It accepts what a recorded Kubernetes 1.36 accepted, and panics over what that one refused or
//! dropped without a word: see `testdata/admission/README.md`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use ambit_webhook::wire::MAX_BODY_BYTES;
use base64::Engine as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The name by which an API server knows the webhook.
pub(crate) const NAME: &str = "ambit-webhook.ambit-system.svc";

/// A client as an API server is one.
#[derive(Clone)]
pub(crate) struct ApiServer {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Arc<ClientConfig>,
}

/// What an API server makes of an answer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) allowed: bool,
    /// The status of a denial.
    pub(crate) status: Value,
    pub(crate) warnings: Vec<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// The object after the patch; `None` without one.
    pub(crate) patched: Option<Value>,
}

impl Answered {
    /// The codes of a denial, in order.
    pub(crate) fn codes(&self) -> Vec<String> {
        let causes = self.status["details"]["causes"].as_array().cloned().unwrap_or_default();
        let mut codes: Vec<String> =
            causes.iter().map(|cause| cause["reason"].as_str().unwrap().to_owned()).collect();
        codes.sort();
        codes.dedup();
        codes
    }

    /// The answer in a line.
    pub(crate) fn line(&self) -> String {
        let warned = match self.warnings.len() {
            0 => String::new(),
            count => format!(" warnings={count}"),
        };
        let pinned =
            self.annotations.get("pinned").map(|pinned| pinned.split(',').count()).unwrap_or(0);
        let pinned = if pinned == 0 { String::new() } else { format!(" pinned={pinned}") };
        match (self.allowed, self.annotations.get("skipped")) {
            (true, Some(reason)) => format!("skip ({reason}){warned}"),
            (true, None) => format!("allow{warned}{pinned}"),
            (false, _) => {
                format!("deny {} {}{warned}", self.status["code"], self.codes().join(","))
            }
        }
    }
}

impl ApiServer {
    /// Knows an authority, given in PEM.
    pub(crate) fn new(address: SocketAddr, authority: &CertificateDer<'static>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { address, tls: Arc::new(config) }
    }

    /// Opens a connection under a name.
    pub(crate) async fn connect_as(&self, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        self.connect_as(NAME).await.unwrap()
    }

    /// Sends a request over a connection of its own and returns the answer.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        let io = TokioIo::new(self.connect().await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        let connection = tokio::spawn(connection);
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        drop(sender);
        let _ = connection.await;
        Response::from_parts(head, body)
    }

    /// Posts a body as an API server does.
    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Response<Bytes> {
        let request = Request::post(path)
            .header("host", NAME)
            .header("user-agent", "kube-apiserver-admission")
            .header("accept", "application/json, */*")
            .header("accept-encoding", "gzip")
            .header("content-type", "application/json");
        self.send(request.body(Full::new(body.into())).unwrap()).await
    }

    /// Posts a review and takes the answer as an API server takes it.
    ///
    /// # Panics
    ///
    /// If an API server would fail the request over it, or drop part of it.
    pub(crate) async fn review(&self, path: &str, review: &Value) -> Answered {
        let body = serde_json::to_vec(review).unwrap();
        assert!(body.len() < MAX_BODY_BYTES);
        let response = self.post(path, body).await;
        let status = response.status();
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(response.body()));
        assert_eq!(response.headers()["content-type"], "application/json");
        let answer: Value = serde_json::from_slice(response.body()).unwrap();
        taken(path, review, &answer)
    }
}

fn taken(path: &str, review: &Value, answer: &Value) -> Answered {
    assert_eq!(answer["apiVersion"], review["apiVersion"]);
    assert_eq!(answer["kind"], "AdmissionReview");
    let response = &answer["response"];
    assert_eq!(response["uid"], review["request"]["uid"]);
    let allowed = response["allowed"].as_bool().unwrap();
    let status = response.get("status").cloned().unwrap_or_default();
    if allowed {
        assert!(status.is_null(), "{status}");
    } else {
        assert!((400..500).contains(&status["code"].as_u64().unwrap()), "{status}");
        for key in ["reason", "message"] {
            assert!(!status[key].as_str().unwrap().is_empty(), "{status}");
        }
        assert!(!status["details"]["causes"].as_array().unwrap().is_empty(), "{status}");
        let retry = status["details"].get("retryAfterSeconds").is_some();
        assert_eq!(retry, status["code"] == 429, "{status}");
    }
    let warnings: Vec<String> = response
        .get("warnings")
        .map(|list| serde_json::from_value(list.clone()).unwrap())
        .unwrap_or_default();
    let told: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
    assert!(told <= 4096, "{told} characters of warnings are cut");
    for warning in &warnings {
        assert!(!warning.is_empty() && warning.chars().count() <= 120, "{warning:?}");
        assert!(!warning.chars().any(char::is_control), "{warning:?}");
    }
    let mut distinct = warnings.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), warnings.len(), "{warnings:?}");
    let annotations: BTreeMap<String, String> = response
        .get("auditAnnotations")
        .map(|map| serde_json::from_value(map.clone()).unwrap())
        .unwrap_or_default();
    for key in annotations.keys() {
        assert!(!key.contains('/') && !key.is_empty(), "{key}");
    }
    let patched = match (response.get("patch"), response.get("patchType")) {
        (None, None) => None,
        (Some(patch), Some(kind)) => {
            assert_eq!(kind, "JSONPatch");
            assert!(allowed && path.starts_with("/mutate"), "a patch that isn't taken");
            Some(patched(&review["request"]["object"], patch))
        }
        other => panic!("half a patch: {other:?}"),
    };
    Answered { allowed, status, warnings, annotations, patched }
}

/// Applies a patch, operation by operation. An API server adds what isn't there to be replaced.
fn patched(object: &Value, patch: &Value) -> Value {
    let patch = base64::engine::general_purpose::STANDARD.decode(patch.as_str().unwrap()).unwrap();
    let operations: Vec<Value> = serde_json::from_slice(&patch).unwrap();
    assert!(!operations.is_empty());
    for operation in &operations {
        assert_eq!(operation["op"], "replace");
        let path = operation["path"].as_str().unwrap();
        let before = object.pointer(path).and_then(Value::as_str).expect("a text to replace");
        let after = operation["value"].as_str().unwrap();
        assert!(after.starts_with(&format!("{before}@sha256:")), "{before} -> {after}");
    }
    let mut object = object.clone();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    json_patch::patch(&mut object, &patch).unwrap();
    object
}
