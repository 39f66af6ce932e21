//! HTTP/1.1 between the two processes, over socket pairs that are made as they are needed.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Mutex;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use crate::egress::Body;

/// The most connections that are kept.
const MAX_IDLE: usize = 256;

/// Sends one end of a new socket pair to the other process.
type Connect = dyn Fn(OwnedFd) -> io::Result<()> + Send + Sync;

/// The connections to the other process.
pub(super) struct Pool {
    idle: Mutex<Vec<SendRequest<Body>>>,
    connect: Box<Connect>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(connect: Box<Connect>) -> Self {
        Self { idle: Mutex::default(), connect }
    }

    /// Sends a request and waits for the head of its response.
    ///
    /// # Errors
    ///
    /// If the other process is gone, or broke the protocol.
    pub(super) async fn send(&self, request: Request<Body>) -> io::Result<Response<Incoming>> {
        let mut sender = match self.take() {
            Some(sender) => sender,
            None => self.open().await?,
        };
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        // It is taken again once the response has been read to its end.
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < MAX_IDLE
        {
            idle.push(sender);
        }
        Ok(response)
    }

    fn take(&self) -> Option<SendRequest<Body>> {
        let mut idle = self.idle.lock().ok()?;
        idle.retain(|sender| !sender.is_closed());
        let at = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.swap_remove(at))
    }

    async fn open(&self) -> io::Result<SendRequest<Body>> {
        let (own, other) = StdStream::pair()?;
        own.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        (self.connect)(other.into())?;
        let own = UnixStream::from_std(own)?;
        let (sender, connection) = handshake(TokioIo::new(own)).await.map_err(io::Error::other)?;
        // How it ends is seen by whoever uses it.
        tokio::spawn(connection);
        Ok(sender)
    }
}
