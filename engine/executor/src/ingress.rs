//! HTTP on this machine's loopback: one address, workloads by name.
//!
//! A request is routed by its `Host`, which has to be `NAME.localhost` or a name that the manifest
//! gives. Any other name is answered with 421: a page of somebody else's that a browser was led to
//! resolve to 127.0.0.1 must not get at a workload.

mod route;

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};

pub use route::{Answers, CrossSite, Route, Routes, label};

/// Connections at once.
const MAX_CONNECTIONS: usize = 1_000;

/// The time for the head of a request, and for the pause before it.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// The most bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;

/// The most headers of a request.
const MAX_HEADERS: usize = 100;

/// A listener with its routes.
#[derive(Debug)]
pub struct Ingress {
    address: SocketAddr,
    routes: Arc<RwLock<Arc<Routes>>>,
    stop: watch::Sender<bool>,
    alive: mpsc::Receiver<()>,
}

impl Ingress {
    /// Listens, and serves from now on.
    ///
    /// # Errors
    ///
    /// If the address can't be listened on.
    pub async fn start(address: SocketAddr, routes: Routes) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let routes = Arc::new(RwLock::new(Arc::new(routes)));
        let (stop, stopped) = watch::channel(false);
        let (living, alive) = mpsc::channel(1);
        let accept = accept(listener, Arc::clone(&routes), stopped, living);
        tokio::spawn(accept);
        Ok(Self { address, routes, stop, alive })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts other routes into place. Requests that are under way end where they began.
    pub fn replace(&self, routes: Routes) {
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(routes);
    }

    /// Stops listening, and waits until requests that are under way have ended. Tells whether all
    /// did within `grace`; the rest is cut off.
    pub async fn stop(mut self, grace: Duration) -> bool {
        // Nobody may be listening any more, which is what is wanted.
        let _ = self.stop.send(true);
        tokio::time::timeout(grace, self.alive.recv()).await.is_ok()
    }
}

async fn accept(
    listener: TcpListener,
    routes: Arc<RwLock<Arc<Routes>>>,
    mut stopped: watch::Receiver<bool>,
    living: mpsc::Sender<()>,
) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            _ = stopped.changed() => return,
        };
        let Ok(place) = place else { return };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    // The machine is out of descriptors, or the client left; either passes.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
            _ = stopped.changed() => return,
        };
        let connection = serve(stream, Arc::clone(&routes), stopped.clone());
        let living = living.clone();
        tokio::spawn(async move {
            connection.await;
            drop((place, living));
        });
    }
}

async fn serve(
    stream: TcpStream,
    routes: Arc<RwLock<Arc<Routes>>>,
    mut stopped: watch::Receiver<bool>,
) {
    // Small answers go at once; that it can't be asked for costs only time.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let routes = Arc::clone(&routes.read().unwrap_or_else(PoisonError::into_inner));
        async move { Ok::<_, std::convert::Infallible>(routes.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // A connection that breaks concerns only its client, who knows.
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
