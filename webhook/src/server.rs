//! Listeners: HTTPS for the API server, plain HTTP for probes and Prometheus.
//!
//! # Invariants
//!
//! - Nothing is read beyond its limit, and nobody is waited for beyond a time.
//! - The number of connections is bounded; what is over it is closed at once.
//! - After a stop is asked for, what was accepted is answered.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::kept::Turn;
use crate::log::{Event, told};
use crate::metrics::RejectLabels;
use crate::service::{Arrival, Hook, Service};
use crate::tls::Certificates;
use crate::wire::MAX_BODY_BYTES;

/// The time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The time for the head of a request; a connection that is idle for longer is closed.
const HEAD: Duration = Duration::from_secs(90);

/// The time for the body of a request; an API server sends it at once.
const BODY: Duration = Duration::from_secs(10);

/// The time for what was accepted when a stop was asked for: the longest review and a little.
const DRAIN: Duration = Duration::from_secs(35);

/// The most connections to the port of probes and metrics.
const MAX_PROBES: usize = 64;

/// How a listener behaves.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most connections.
    pub connections: usize,
}

/// Whether it still runs; a change says that it has to end.
pub type Stop = watch::Receiver<bool>;

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Serves reviews until a stop is asked for, and ends when what was accepted is answered, with true,
/// or after 35 seconds.
pub async fn reviews(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    service: Arc<Service>,
    bounds: Bounds,
    mut stop: Stop,
) -> bool {
    let slots = Arc::new(Semaphore::new(bounds.connections));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors: those that are open have to end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            service.metrics.rejected.get_or_create(&RejectLabels { reason: "connections" }).inc();
            continue;
        };
        let (acceptor, service) = (acceptor.clone(), Arc::clone(&service));
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            let _slot = slot;
            let _ = stream.set_nodelay(true);
            let shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
            let Ok(Ok(stream)) = shaken else {
                let labels = RejectLabels { reason: "handshake" };
                service.metrics.rejected.get_or_create(&labels).inc();
                return;
            };
            service.metrics.connections.inc();
            connection(stream, &service, watcher).await;
            service.metrics.connections.dec();
        });
    }
    drop(listener);
    tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_ok()
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    service: &Arc<Service>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let own = Arc::clone(service);
    let answer = service_fn(move |request| {
        let service = Arc::clone(&own);
        async move { Ok::<_, Infallible>(handle(request, &service).await) }
    });
    let connection = http1().serve_connection(TokioIo::new(stream), answer);
    // What a client does to its connection is its own affair.
    let _ = watcher.watch(connection).await;
}

fn http1() -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(64 << 10);
    builder
}

async fn handle(request: Request<Incoming>, service: &Arc<Service>) -> Response<Full<Bytes>> {
    // The API server's clock runs while the body is on its way.
    let arrival = Arrival::now();
    let rejected = |reason: &'static str, status: StatusCode, message: &'static str| {
        service.metrics.rejected.get_or_create(&RejectLabels { reason }).inc();
        text(status, message)
    };
    let hook = match request.uri().path() {
        "/validate" => Hook::Validate,
        "/mutate" => Hook::Mutate,
        _ => {
            let message = "there is /validate and /mutate\n";
            return rejected("path", StatusCode::NOT_FOUND, message);
        }
    };
    if request.method() != Method::POST {
        let message = "a review is posted\n";
        let mut response = rejected("method", StatusCode::METHOD_NOT_ALLOWED, message);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let json = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let json = json.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if !json.eq_ignore_ascii_case("application/json") {
        let message = "a review is application/json\n";
        return rejected("type", StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    let too_large = "a review is at most 8 MiB\n";
    let max = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX);
    if request.body().size_hint().lower() > max {
        return rejected("size", StatusCode::PAYLOAD_TOO_LARGE, too_large);
    }
    let timeout = request.uri().query().and_then(timeout).map(str::to_owned);
    // A body that doesn't say how long it is may be as long as any.
    let announced = request.body().size_hint().upper().unwrap_or(max);
    let Ok(Some(room)) = tokio::time::timeout(BODY, service.room(announced)).await else {
        let message = "too many reviews at once; try again\n";
        return rejected("memory", StatusCode::SERVICE_UNAVAILABLE, message);
    };
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES);
    let body = match tokio::time::timeout(BODY, body.collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return rejected("size", StatusCode::PAYLOAD_TOO_LARGE, too_large);
        }
        Ok(Err(_)) => return rejected("body", StatusCode::BAD_REQUEST, "the body broke off\n"),
        Err(_) => {
            return rejected("slow", StatusCode::REQUEST_TIMEOUT, "the body took too long\n");
        }
    };
    // In a task of its own: who hangs up leaves a line in the log like anybody else.
    let own = Arc::clone(service);
    let task = tokio::spawn(async move {
        let reply = own.answer(hook, timeout.as_deref(), &body, arrival).await;
        drop((body, room));
        reply
    });
    let Ok(reply) = task.await else {
        let message = "answering ended without a result\n";
        return rejected("stopped", StatusCode::INTERNAL_SERVER_ERROR, message);
    };
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = text(status, reply.body);
    if status == StatusCode::OK {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
    }
    response
}

/// Returns `timeout` of a query.
fn timeout(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("timeout="))
}

/// What probes ask about.
#[derive(Clone, Debug)]
pub struct Health {
    /// What answers reviews.
    pub service: Arc<Service>,
    /// The serving certificate.
    pub certificates: Arc<Certificates>,
    /// Whether a stop was asked for.
    pub stopping: Stop,
}

impl Health {
    /// Tells whether reviews can be answered, and what speaks against it or is out of order.
    #[must_use]
    pub fn ready(&self) -> (bool, Vec<String>) {
        let mut ready = true;
        let mut lines = Vec::new();
        if *self.stopping.borrow() {
            ready = false;
            lines.push("it is stopping".to_owned());
        }
        let settings = &self.service.settings;
        if settings.kept.current().is_none() {
            ready = false;
            lines.push("there is no configuration".to_owned());
        }
        if let Some(problem) = settings.kept.problem() {
            lines.push(format!("configuration: {}", told(&problem)));
        }
        match self.certificates.kept.current().map(|loaded| loaded.expires) {
            None => {
                ready = false;
                lines.push("there is no serving certificate".to_owned());
            }
            Some(expires) if expires <= Timestamp::now() => {
                lines.push(format!("the serving certificate expired at {expires}"));
            }
            Some(_) => {}
        }
        if let Some(problem) = self.certificates.kept.problem() {
            lines.push(format!("certificate: {}", told(&problem)));
        }
        (ready, lines)
    }

    fn metrics(&self) -> String {
        let metrics = &self.service.metrics;
        let settings = &self.service.settings;
        let set = |gauge: &prometheus_client::metrics::gauge::Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&metrics.generation, settings.kept.count());
        metrics.stale.set(i64::from(settings.kept.problem().is_some()));
        metrics.certificate.set(
            self.certificates
                .kept
                .current()
                .map(|loaded| loaded.expires)
                .map_or(0, Timestamp::as_second),
        );
        set(&metrics.certificates, self.certificates.kept.count());
        set(&metrics.lost, self.service.log.lost());
        metrics.text(&self.service.supplies)
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "it is only read\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match request.uri().path() {
            "/healthz" => text(StatusCode::OK, "ok\n"),
            "/readyz" => {
                let (ready, mut lines) = self.ready();
                let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                lines.insert(0, if ready { "ready" } else { "not ready" }.to_owned());
                text(status, format!("{}\n", lines.join("\n")))
            }
            "/metrics" => {
                let mut response = text(StatusCode::OK, self.metrics());
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                response
            }
            _ => text(StatusCode::NOT_FOUND, "there is /healthz, /readyz and /metrics\n"),
        }
    }
}

/// Serves probes and metrics until the process ends.
pub async fn probes(listener: TcpListener, health: Health) {
    let slots = Arc::new(Semaphore::new(MAX_PROBES));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else { continue };
        let health = health.clone();
        tokio::spawn(async move {
            let _slot = slot;
            let answer = service_fn(move |request| {
                let response = health.answer(&request);
                async move { Ok::<_, Infallible>(response) }
            });
            let _ = http1().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// Looks every `pause` whether configuration or certificate changed, until the process ends.
pub async fn watch_files(service: Arc<Service>, certificates: Arc<Certificates>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let (own, certs) = (Arc::clone(&service), Arc::clone(&certificates));
        // A panic in there leaves the old ones in place, and the next look tries again.
        let _ = tokio::task::spawn_blocking(move || turn(&own, &certs)).await;
    }
}

/// Looks once whether configuration or certificate changed, and says so in the log.
pub fn turn(service: &Service, certificates: &Certificates) {
    match service.settings.turn() {
        Turn::Same => {}
        Turn::New(generation) => {
            let message = format!("configuration {}", generation.digest);
            service.log.line(&Event::now("configuration", "info", message));
            for (code, message, _) in &generation.trusted.warnings {
                let message = format!("{message} [{code}]");
                service.log.line(&Event::now("configuration-warning", "info", message));
            }
        }
        Turn::Bad(failure) => {
            let message = told(&failure);
            service.log.line(&Event::now("configuration-refused", "error", message));
        }
    }
    match certificates.turn() {
        Turn::Same => {}
        Turn::New(loaded) => {
            let message = format!("serving certificate until {}", loaded.expires);
            service.log.line(&Event::now("certificate", "info", message));
        }
        Turn::Bad(failure) => {
            service.log.line(&Event::now("certificate-refused", "error", told(&failure)));
        }
    }
}

/// Binds an address.
///
/// # Errors
///
/// [`std::io::Error`] if it is taken, or isn't this machine's.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}
