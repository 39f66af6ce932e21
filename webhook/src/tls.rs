//! The serving certificate, from a folder that somebody else keeps up to date.
//!
//! A handshake takes the newest certificate; connections that are open stay.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ambit_setup::{Failure, Files};
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use x509_cert::der::Decode as _;

use crate::kept::{Kept, Turn};

/// The largest file of certificates or keys.
const MAX_FILE_BYTES: usize = 1 << 20;

/// The names of the files, as in Secrets of type `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// What to do about a serving certificate.
const SECRET: &str =
    "mount a Secret of type `kubernetes.io/tls` whose certificate goes with its key";

/// What to do about authorities of clients.
const AUTHORITIES: &str = "give a PEM file with at least one certificate of an authority";

/// A certificate with what is said about it.
#[derive(Debug)]
pub struct Loaded {
    key: Arc<CertifiedKey>,
    /// When it expires.
    pub expires: Timestamp,
}

/// The certificate that counts now.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
    /// What was read of it.
    pub kept: Kept<Loaded>,
}

impl Certificates {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, kept: Kept::default() }
    }

    /// Looks whether something changed, and reads it if so.
    pub fn turn(&self) -> Turn<Loaded> {
        self.kept.turn(|files| read(&self.folder, files))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.kept.current().map(|loaded| Arc::clone(&loaded.key))
    }
}

fn unusable(path: &Path, reason: &str, help: &str) -> Failure {
    let message = format!("{}: {reason}", path.display());
    Failure::new("webhook-certificate", message, Some(help.to_owned()))
}

/// Reads the whole chain and its key. They have to go together: a rotation that is half done is
/// looked at again.
fn read(folder: &Path, files: &mut Files) -> Result<Loaded, Failure> {
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    let pem = files.read(&certificate, MAX_FILE_BYTES)?;
    let key_pem = files.read(&key, MAX_FILE_BYTES)?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(&certificate, &error.to_string(), SECRET))?;
    let Some(leaf) = chain.first() else {
        return Err(unusable(&certificate, "there is no certificate in it", SECRET));
    };
    let expires = expiry(leaf)
        .ok_or_else(|| unusable(&certificate, "its first certificate can't be read", SECRET))?;
    let private = PrivateKeyDer::from_pem_slice(&key_pem)
        .map_err(|_| unusable(&key, "there is no private key in it", SECRET))?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let made = CertifiedKey::from_der(chain, private, &provider)
        .map_err(|error| unusable(&certificate, &error.to_string(), SECRET))?;
    Ok(Loaded { key: Arc::new(made), expires })
}

fn expiry(leaf: &CertificateDer<'_>) -> Option<Timestamp> {
    let read = x509_cert::Certificate::from_der(leaf.as_ref()).ok()?;
    let end = read.tbs_certificate.validity.not_after.to_unix_duration().as_secs();
    Timestamp::from_second(i64::try_from(end).ok()?).ok()
}

/// Makes the configuration of the listener. With `client_ca` only clients with a certificate of one
/// of its authorities are listened to.
///
/// # Errors
///
/// [`Failure`] if the authorities can't be read.
pub fn server_config(
    certificates: Arc<Certificates>,
    client_ca: Option<&Path>,
) -> Result<ServerConfig, Failure> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::of(&error, "webhook-certificate", None))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let pem = ambit_setup::read_file(path, MAX_FILE_BYTES)?;
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate =
                    certificate.map_err(|error| unusable(path, &error.to_string(), AUTHORITIES))?;
                roots
                    .add(certificate)
                    .map_err(|error| unusable(path, &error.to_string(), AUTHORITIES))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| unusable(path, &error.to_string(), AUTHORITIES))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests;
