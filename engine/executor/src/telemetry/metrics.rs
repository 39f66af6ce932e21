//! Metrics in the text form of OpenMetrics.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::record::{Effect, Outcome, RecordError, Recorder, Ruling, Ticket};

/// The media type of the OpenMetrics text form, version 1.0.0.
const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The longest label. Names of workloads are the operator's, but are not bounded elsewhere.
const MAX_LABEL: usize = 200;

/// The most connections at once.
const MAX_CONNECTIONS: usize = 16;

/// Upper bounds of the durations that are told apart, in seconds.
const SECONDS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Kind {
    workload: String,
    component: String,
    verb: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Ended {
    workload: String,
    component: String,
    verb: String,
    result: String,
}

/// Counts effects by workload, component, verb and how they ended.
#[derive(Clone, Debug)]
pub struct Metrics {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    registry: Registry,
    begun: Family<Kind, Counter>,
    denied: Family<Ended, Counter>,
    ended: Family<Ended, Counter>,
    open: Family<Kind, Gauge>,
    seconds: Family<Kind, Histogram, fn() -> Histogram>,
    sent: Family<Kind, Counter>,
    received: Family<Kind, Counter>,
    failures: Counter,
    waiting: Mutex<HashMap<u64, Kind>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Makes a set of metrics, all at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("ambit");
        let begun = Family::<Kind, Counter>::default();
        let denied = Family::<Ended, Counter>::default();
        let ended = Family::<Ended, Counter>::default();
        let open = Family::<Kind, Gauge>::default();
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let seconds = Family::<Kind, Histogram, fn() -> Histogram>::new_with_constructor(histogram);
        let sent = Family::<Kind, Counter>::default();
        let received = Family::<Kind, Counter>::default();
        let failures = Counter::default();
        registry.register("effects_begun", "Effects that were allowed", begun.clone());
        registry.register("effects_denied", "Effects that were denied, by code", denied.clone());
        registry.register("effects_ended", "Effects that ended, by result", ended.clone());
        registry.register("effects_open", "Effects under way", open.clone());
        registry.register("effect_seconds", "How long effects took", seconds.clone());
        registry.register("bytes_out", "Bytes that went out of components", sent.clone());
        registry.register("bytes_in", "Bytes that came into components", received.clone());
        let text = "Effects that didn't happen since the record couldn't be written";
        registry.register("record_failures", text, failures.clone());
        let shared = Shared {
            registry,
            begun,
            denied,
            ended,
            open,
            seconds,
            sent,
            received,
            failures,
            waiting: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns a recorder that counts what goes to `inner`.
    #[must_use]
    pub fn recorder(&self, inner: Arc<dyn Recorder>) -> Arc<dyn Recorder> {
        Arc::new(Counting { shared: Arc::clone(&self.shared), inner })
    }

    /// Returns the metrics in the text form of OpenMetrics 1.0.0.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string doesn't fail.
        let _ = encode(&mut text, &self.shared.registry);
        text
    }

    /// Serves [`text`](Self::text) at `/metrics` until the runtime ends, and returns the address.
    ///
    /// # Errors
    ///
    /// If the address can't be listened on.
    pub async fn serve(&self, address: SocketAddr) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let metrics = self.clone();
        tokio::spawn(async move { metrics.accept(&listener).await });
        Ok(address)
    }

    async fn accept(&self, listener: &TcpListener) {
        let places = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                // No descriptors are left, as a rule; they come back.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let metrics = self.clone();
            tokio::spawn(async move {
                let _place = place;
                let answer = service_fn(move |request| {
                    std::future::ready(Ok::<_, std::convert::Infallible>(metrics.answer(&request)))
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(Duration::from_secs(10))
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), answer);
                // A scraper that goes away early is no concern.
                let _ = tokio::time::timeout(Duration::from_secs(30), connection).await;
            });
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, text) = match (request.method(), request.uri().path()) {
            (&http::Method::GET | &http::Method::HEAD, "/metrics") => (StatusCode::OK, self.text()),
            (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
            _ => (StatusCode::NOT_FOUND, "metrics are at /metrics\n".to_owned()),
        };
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        let media = if status == StatusCode::OK { MEDIA_TYPE } else { "text/plain" };
        response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(media));
        response
    }
}

/// Counts, and passes on.
struct Counting {
    shared: Arc<Shared>,
    inner: Arc<dyn Recorder>,
}

fn label(text: &str) -> String {
    text.chars().take(MAX_LABEL).collect()
}

impl Kind {
    fn ended(&self, result: &str) -> Ended {
        Ended {
            workload: self.workload.clone(),
            component: self.component.clone(),
            verb: self.verb.clone(),
            result: label(result),
        }
    }
}

impl Recorder for Counting {
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        let shared = &self.shared;
        let ticket = self.inner.begin(effect).inspect_err(|_| {
            shared.failures.inc();
        })?;
        let kind = Kind {
            workload: label(&effect.who.workload),
            component: label(&effect.who.component),
            verb: effect.verb.as_str().to_owned(),
        };
        match &effect.ruling {
            Ruling::Allowed(_) => {
                shared.begun.get_or_create(&kind).inc();
                shared.open.get_or_create(&kind).inc();
                if let Ok(mut waiting) = shared.waiting.lock() {
                    waiting.insert(ticket.0, kind);
                }
            }
            Ruling::Denied { code, .. } => {
                shared.denied.get_or_create(&kind.ended(code)).inc();
            }
        }
        Ok(ticket)
    }

    fn end(&self, ticket: Ticket, outcome: Outcome) {
        let shared = &self.shared;
        let kind = shared.waiting.lock().ok().and_then(|mut waiting| waiting.remove(&ticket.0));
        if let Some(kind) = kind {
            shared.open.get_or_create(&kind).dec();
            shared.seconds.get_or_create(&kind).observe(outcome.duration.as_secs_f64());
            shared.sent.get_or_create(&kind).inc_by(outcome.bytes_out);
            shared.received.get_or_create(&kind).inc_by(outcome.bytes_in);
            shared.ended.get_or_create(&kind.ended(&outcome.result)).inc();
        }
        self.inner.end(ticket, outcome);
    }
}
