//! A registry with images, a configuration, and a webhook between them and an API server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ambit_testing::registry::{Options, Registry};
use ambit_trust::attach::{attach_bundle, push_component};
use ambit_trust::keys::SigningKey;
use ambit_trust::oci::ManifestName;
use ambit_trust::registry::{Client, Loopback, Options as ClientOptions};
use ambit_trust::resolve::Claims;
use ambit_trust::sign::{COSIGN_SIGN, signature_bundle};
use ambit_trust::stores::Stores;
use ambit_webhook::kept::Turn;
use ambit_webhook::log::Log;
use ambit_webhook::server::{Bounds, reviews};
use ambit_webhook::service::Service;
use ambit_webhook::settings::{Settings, Sources};
use ambit_webhook::tls::{Certificates, server_config};
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::api_server::{ApiServer, NAME};
use super::testdata;

/// What the recorded reviews name, as `REPOSITORY:TAG COMPONENT` below the prefix of the registry.
const IMAGES: [&str; 19] = [
    "ghcr/example/checkout-api:any http-client",
    "ghcr/example/proxy:any http-handler",
    "ghcr/example/checkout-svc:2.0.1 hello",
    "ghcr/example/spin-app:1.0.0 http-handler",
    "ghcr/example/spin-app:1.0.1 http-handler",
    "ghcr/example/spin-app:2.0.0 http-handler",
    "ghcr/example/audit:1.4.0 http-client",
    "ghcr/example/audit:1.5.0 http-client",
    "ghcr/example/audit:1.6.0 http-client",
    "ghcr/example/migrate:1.0.0 hello",
    "ghcr/example/data:1 file-reader",
    "ghcr/example/x:1 http-handler",
    "ghcr/example/x:2 http-handler",
    "ghcr/example/a:1 http-handler",
    "ghcr/wasmcloud/components/http-hello-world-rust:0.1.0 http-handler",
    "ghcr/wasmcloud/components/http-hello-world-rust:0.2.0 http-handler",
    "ghcr/wasmcloud/components/http-hello-world-rust:latest http-handler",
    "hub/evil/x:latest http-rogue",
    "hub/library/busybox:1.36 hello",
];

/// Which images there are, and who signed them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Images {
    Signed,
    Unsigned,
    Missing,
}

impl Images {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Unsigned => "unsigned",
            Self::Missing => "missing",
        }
    }
}

/// A registry, and what vouches for what is in it.
pub(crate) struct World {
    pub(crate) registry: Registry,
    key: SigningKey,
    digests: BTreeMap<String, String>,
}

impl World {
    pub(crate) async fn start(images: Images) -> Self {
        Self::with(Options::default(), images).await
    }

    pub(crate) async fn with(options: Options, images: Images) -> Self {
        let mut world = Self {
            registry: Registry::start(options).await,
            key: SigningKey::generate().unwrap(),
            digests: BTreeMap::new(),
        };
        if images != Images::Missing {
            for line in IMAGES {
                let (name, component) = line.split_once(' ').unwrap();
                let path = testdata(&format!("components/{component}.wasm"));
                world.push(name, &std::fs::read(path).unwrap(), images).await;
            }
        }
        world.registry.clear_log();
        world
    }

    /// Pushes a component, and signs it where it is to be signed.
    pub(crate) async fn push(&mut self, name: &str, bytes: &[u8], images: Images) -> String {
        let now: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        let options = ClientOptions { loopback: Loopback::Allowed, ..ClientOptions::default() };
        let stores = Stores::online(Client::new(options).unwrap(), None);
        let reference = format!("{}/{name}", self.registry.host()).parse().unwrap();
        let origin = stores.reference(&reference).unwrap();
        let ManifestName::Tag(tag) = &origin.name else { panic!("{name} has no tag") };
        let store = origin.store.as_ref();
        let (claims, none) = (Claims::default(), BTreeMap::new());
        let digest = push_component(store, tag, bytes, &claims, &none, now).await.unwrap();
        if images == Images::Signed {
            let subject = store.manifest(&ManifestName::Digest(digest)).await.unwrap();
            let bundle = signature_bundle(&self.key, &digest, &none).unwrap();
            attach_bundle(store, &subject, &bundle, COSIGN_SIGN, now).await.unwrap();
        }
        self.digests.insert(name.to_owned(), digest.to_string());
        digest.to_string()
    }

    /// The digest of an image that was pushed.
    pub(crate) fn digest(&self, name: &str) -> Option<&str> {
        self.digests.get(name).map(String::as_str)
    }

    /// Puts digests that exist in the place of the one that was recorded.
    pub(crate) fn localised(&self, text: &str) -> String {
        const RECORDED: &str =
            "sha256:1f50c09439d2fa2ebdd8fb581c632f887433f692a374d5e31888dcbd1e8250bd";
        let mut text = text.to_owned();
        for name in ["checkout-api", "proxy"] {
            if let Some(digest) = self.digest(&format!("ghcr/example/{name}:any")) {
                text = text.replace(&format!("{name}@{RECORDED}"), &format!("{name}@{digest}"));
            }
        }
        text
    }

    /// Reads a configuration: registries lead to this one, `extra` is added.
    pub(crate) fn settings(&self, folder: &Path, extra: &str) -> Arc<Settings> {
        let settings = Arc::new(Settings::new(self.sources(folder, extra)));
        match settings.turn() {
            Turn::New(_) => settings,
            other @ (Turn::Same | Turn::Bad(_)) => panic!("{other:?}"),
        }
    }

    /// Writes a configuration.
    pub(crate) fn sources(&self, folder: &Path, extra: &str) -> Sources {
        let host = self.registry.host();
        let config = format!(
            "mirrors: {{ghcr.io: \"{host}/ghcr\", docker.io: \"{host}/hub\"}}\n\
             insecureRegistries: [\"{host}\"]\n\
             trust: [release.yaml]\n{extra}"
        );
        let key = self.key.public_pem().replace('\n', "\n          ");
        let trust = format!(
            "apiVersion: ambit.dev/v1alpha1
kind: TrustPolicy
metadata: {{name: release}}
spec:
  images: [{{glob: \"**\"}}]
  authorities:
  - name: release-key
    signatureFormat: any
    key:
      data: |
          {key}
    ctlog: {{require: none}}
"
        );
        std::fs::write(folder.join("ambit.yaml"), config).unwrap();
        std::fs::write(folder.join("release.yaml"), trust).unwrap();
        Sources { config: Some(folder.join("ambit.yaml")), ..Sources::default() }
    }
}

/// An authority and a folder with what it issued.
pub(crate) struct Issuer {
    authority: CertifiedIssuer<'static, KeyPair>,
    pub(crate) folder: TempDir,
}

impl Issuer {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let issuer = Self { authority, folder: tempfile::tempdir().unwrap() };
        issuer.issue("first");
        issuer
    }

    pub(crate) fn authority(&self) -> CertificateDer<'static> {
        self.authority.der().clone().into_owned()
    }

    /// Issues a certificate as a mounted Secret shows it: a new folder, and a link that leads there.
    pub(crate) fn issue(&self, version: &str) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        let own = params.signed_by(&key, &self.authority).unwrap();
        let root = self.folder.path();
        std::fs::create_dir(root.join(version)).unwrap();
        std::fs::write(root.join(version).join("tls.crt"), own.pem()).unwrap();
        std::fs::write(root.join(version).join("tls.key"), key.serialize_pem()).unwrap();
        std::os::unix::fs::symlink(version, root.join("..next")).unwrap();
        std::fs::rename(root.join("..next"), root.join("..data")).unwrap();
        for name in ["tls.crt", "tls.key"] {
            if !root.join(name).exists() {
                let target = Path::new("..data").join(name);
                std::os::unix::fs::symlink(target, root.join(name)).unwrap();
            }
        }
        own.der().clone()
    }
}

/// A webhook that serves.
pub(crate) struct Webhook {
    pub(crate) service: Arc<Service>,
    pub(crate) api: ApiServer,
    pub(crate) certificates: Arc<Certificates>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<bool>,
}

impl Webhook {
    /// Starts one with empty caches.
    pub(crate) async fn start(settings: &Arc<Settings>, issuer: &Issuer) -> Self {
        let (log, _writer) = Log::to(std::io::sink());
        let service = Service::new(Arc::clone(settings), log, 64);
        Self::serve(Arc::new(service), issuer, Bounds { connections: 64 }).await
    }

    pub(crate) async fn serve(service: Arc<Service>, issuer: &Issuer, bounds: Bounds) -> Self {
        let certificates = Arc::new(Certificates::new(issuer.folder.path().to_owned()));
        assert!(matches!(certificates.turn(), Turn::New(_)));
        let config = server_config(Arc::clone(&certificates), None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = ApiServer::new(listener.local_addr().unwrap(), &issuer.authority());
        let (stop, stopping) = watch::channel(false);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let own = Arc::clone(&service);
        let serving = tokio::spawn(reviews(listener, acceptor, own, bounds, stopping));
        Self { service, api, certificates, stop, serving }
    }

    /// Asks it to stop, and returns whether everything accepted was answered.
    pub(crate) async fn stop(self) -> bool {
        self.stop.send_replace(true);
        self.serving.await.unwrap()
    }

    /// Asks it to stop, and returns at once.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.send_replace(true);
    }
}
