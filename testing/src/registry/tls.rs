//! A listener that speaks TLS with a certificate of an authority made for it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

/// The names that the certificate is for.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "registry.test"];

pub(super) struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

/// Returns a listener, and its authority as PEM.
pub(super) fn listener(tcp: TcpListener) -> (TlsListener, String) {
    let key = || KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = key();
    let root = authority.self_signed(&authority_key).expect("an authority");
    let issuer = Issuer::new(authority, authority_key);
    let leaf_key = key();
    let names = NAMES.map(str::to_owned).to_vec();
    let leaf = CertificateParams::new(names)
        .and_then(|leaf| leaf.signed_by(&leaf_key, &issuer))
        .expect("a certificate");
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    (TlsListener { tcp, acceptor }, root.pem())
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.tcp).await;
            // A client that doesn't trust the certificate goes away; the next may.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
