//! From a vetted address to a connection that speaks HTTP/1.1.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ambit_engine::grant::{CanonicalHost, Target};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Body, EgressError};

/// The most headers of one response.
const MAX_HEADERS: usize = 128;

/// The time between two attempts at different addresses.
const NEXT_ADDRESS: Duration = Duration::from_secs(3);

/// Connects to the first address that answers.
pub(super) async fn connect(
    target: &Target,
    addresses: &[SocketAddr],
    tls: &Arc<rustls::ClientConfig>,
    header_bytes: usize,
) -> Result<(SendRequest<Body>, SocketAddr), EgressError> {
    let mut last = EgressError::Connect { reason: "there is no address".to_owned() };
    for (index, address) in addresses.iter().enumerate() {
        let attempt = TcpStream::connect(address);
        // The last address has the whole of what is left.
        let more = index.saturating_add(1) < addresses.len();
        let connected = if more {
            match tokio::time::timeout(NEXT_ADDRESS, attempt).await {
                Ok(connected) => connected,
                Err(_) => continue,
            }
        } else {
            attempt.await
        };
        let stream = match connected {
            Ok(stream) => stream,
            Err(error) => {
                last = EgressError::Connect { reason: error.kind().to_string() };
                continue;
            }
        };
        // Small requests go at once; that it can't be asked for costs only time.
        let _ = stream.set_nodelay(true);
        let sender = if target.scheme().as_str() == "https" {
            let name = server_name(target)?;
            let stream = TlsConnector::from(Arc::clone(tls))
                .connect(name, stream)
                .await
                .map_err(|error| EgressError::Tls { reason: error.to_string() })?;
            handshake(stream, header_bytes).await?
        } else {
            handshake(stream, header_bytes).await?
        };
        return Ok((sender, *address));
    }
    Err(last)
}

fn server_name(target: &Target) -> Result<ServerName<'static>, EgressError> {
    match target.host() {
        CanonicalHost::Name(name) => ServerName::try_from(name.as_str().to_owned())
            .map_err(|error| EgressError::Tls { reason: error.to_string() }),
        CanonicalHost::Ip(address) => Ok(ServerName::IpAddress((*address).into())),
        CanonicalHost::HostInternal => ServerName::try_from("localhost")
            .map_err(|error| EgressError::Tls { reason: error.to_string() }),
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    header_bytes: usize,
) -> Result<SendRequest<Body>, EgressError> {
    let (sender, connection) = Builder::new()
        .max_headers(MAX_HEADERS)
        .max_buf_size(header_bytes.max(8192))
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| EgressError::Connect { reason: error.to_string() })?;
    // The task ends when the sender and the response's body are gone, and the body has a time
    // limit. What went wrong is told to whoever holds those.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}
