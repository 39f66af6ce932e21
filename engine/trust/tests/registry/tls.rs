//! Registries over https: certificate authorities, names, and that nothing leads back to http.

use ambit_testing::registry::{Action, Auth, Bearer, Fault, Options, Registry, Transport};
use ambit_trust::oci::{Descriptor, SubjectIndexed};
use ambit_trust::registry::{self, Client, Loopback, RegistryStore};
use ambit_trust::store::Store as _;

use crate::push::round_trip;
use crate::support::{Names, code, login, options, repository, tag};

async fn start() -> Registry {
    let auth = Auth::Bearer(Bearer::default());
    Registry::start(Options { transport: Transport::Tls, auth, ..Options::default() }).await
}

/// The registry by name, as an operator opens an inside one.
fn named(registry: &Registry) -> String {
    let host = registry.host();
    host.replace("127.0.0.1", "registry.test")
}

fn private(registry: &Registry) -> registry::Options {
    let host = named(registry);
    registry::Options {
        loopback: Loopback::Refused,
        private: vec![host.parse().expect("a host")],
        certificates: vec![registry.certificate_authority().as_bytes().to_vec()],
        resolver: Names::of(&[("registry.test", &["127.0.0.1"]), ("other.test", &["127.0.0.1"])]),
        credentials: login(&host, "user", "password"),
        ..options()
    }
}

fn store(registry: &Registry, options: registry::Options) -> RegistryStore {
    Client::new(options).expect("options").repository(&repository(&named(registry)))
}

#[tokio::test]
async fn authority_of_the_operator_is_trusted() {
    let registry = start().await;
    let indexed = round_trip(&store(&registry, private(&registry)), "1").await;
    assert_eq!(indexed, SubjectIndexed::ByStore);
}

#[tokio::test]
async fn unknown_authority_and_other_names_are_not_trusted() {
    let registry = start().await;
    let unknown = registry::Options { certificates: Vec::new(), ..private(&registry) };
    let error = store(&registry, unknown).manifest(&tag("1")).await.expect_err("no trust");
    assert_eq!(error.code(), "registry-unavailable");
    assert!(error.to_string().contains("certificate"), "{error}");

    let other = named(&registry).replace("registry.test", "other.test");
    let options =
        registry::Options { private: vec![other.parse().expect("a host")], ..private(&registry) };
    let store = Client::new(options).expect("options").repository(&repository(&other));
    assert_eq!(code(store.manifest(&tag("1")).await), "registry-unavailable");
    assert_eq!(registry.log().len(), 0);
}

#[tokio::test]
async fn certificate_that_is_none_is_said_at_once() {
    for pem in
        ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]
    {
        let options =
            registry::Options { certificates: vec![pem.as_bytes().to_vec()], ..options() };
        let error = Client::new(options).expect_err("no certificate");
        assert_eq!(error.code(), "registry-options", "{pem}");
    }
}

#[tokio::test]
async fn nothing_leads_from_https_to_http() {
    let registry = start().await;
    let plain = Registry::start(Options::default()).await;
    let options = registry::Options {
        insecure: vec![plain.host().parse().expect("a host")],
        loopback: Loopback::Allowed,
        ..private(&registry)
    };
    let store = store(&registry, options);
    let blob = Descriptor::of("application/wasm", b"x");
    let downgraded = format!("http://{}/v2/x", named(&registry));
    for to in [plain.url("/v2/x"), downgraded] {
        registry.clear_faults();
        registry.fault(Fault::each("GET", "/v2/*", Action::redirect(&to)));
        assert_eq!(code(store.blob(&blob, 10).await), "registry-address", "redirect to {to}");

        registry.clear_faults();
        registry.fault(Fault::each("POST", "/v2/*", Action::status_with(202, "location", &to)));
        let push = store.push_blob("application/wasm", b"x").await;
        assert_eq!(code(push), "registry-address", "upload to {to}");

        registry.clear_faults();
        let challenge = format!("Bearer realm=\"{to}\"");
        let action = Action::status_with(401, "www-authenticate", &challenge);
        registry.fault(Fault::each("GET", "/v2/*", action));
        assert_eq!(code(store.blob(&blob, 10).await), "registry-address", "realm {to}");
    }
    assert_eq!(plain.log().len(), 0);
}
