//! Which registries may be called at all.

use ambit_testing::registry::{Action, Fault, Options, Registry};
use ambit_trust::oci::Descriptor;
use ambit_trust::registry::{self, Client, Loopback};
use ambit_trust::store::Store as _;

use crate::support::{Names, code, options, put, repository, store, store_with, tag};

fn webhook() -> registry::Options {
    registry::Options { loopback: Loopback::Refused, ..options() }
}

#[tokio::test]
async fn loopback_is_for_the_command_line_or_by_the_operator() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    assert!(store(&registry).manifest(&tag("1")).await.is_ok());
    assert_eq!(
        code(store_with(&registry, webhook()).manifest(&tag("1")).await),
        "registry-address"
    );
    let opened =
        registry::Options { insecure: vec![registry.host().parse().expect("a host")], ..webhook() };
    assert!(store_with(&registry, opened).manifest(&tag("1")).await.is_ok());
    assert_eq!(registry.log().len(), 2);
}

#[tokio::test]
async fn references_lead_to_no_special_address() {
    let registry = Registry::start(Options::default()).await;
    let port = registry.host().rsplit(':').next().expect("a port").to_owned();
    let options = registry::Options {
        resolver: Names::of(&[
            ("metadata.example", &["169.254.169.254"]),
            ("alibaba.example", &["100.100.100.200"]),
            ("inside.example", &["93.184.216.34", "10.0.0.1"]),
            ("rebound.example", &["127.0.0.1"]),
            ("six.example", &["fd00::1"]),
            ("nat64.example", &["64:ff9b::a9fe:a9fe"]),
        ]),
        ..options()
    };
    let client = Client::new(options).expect("options");
    for host in [
        "169.254.169.254",
        "169.254.169.254:80",
        "100.100.100.200",
        "10.0.0.1:5000",
        "192.168.1.1",
        "[fe80::1]:5000",
        "[::ffff:169.254.169.254]:80",
        &format!("2130706433:{port}"),
        &format!("0x7f000001:{port}"),
        &format!("0177.0.0.1:{port}"),
        &format!("127.1:{port}"),
        &format!("0.0.0.0:{port}"),
        "metadata.google.internal",
        "metadata.example",
        "alibaba.example",
        "inside.example",
        "rebound.example",
        &format!("rebound.example:{port}"),
        "six.example",
        "nat64.example",
    ] {
        let store = client.repository(&repository(host));
        assert_eq!(code(store.manifest(&tag("1")).await), "registry-address", "{host}");
        let blob = Descriptor::of("application/wasm", b"x");
        assert_eq!(code(store.blob(&blob, 10).await), "registry-address", "{host}");
        let push = store.push_blob("application/wasm", b"x").await;
        assert_eq!(code(push), "registry-address", "{host}");
    }
    assert_eq!(registry.log().len(), 0);
}

#[tokio::test]
async fn operator_opens_a_name_but_never_metadata() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    let port = registry.host().rsplit(':').next().expect("a port").to_owned();
    let named = |name: &str| format!("{name}:{port}");
    let options = registry::Options {
        resolver: Names::of(&[
            ("build.example", &["127.0.0.1"]),
            ("metadata.example", &["127.0.0.1", "169.254.169.254"]),
        ]),
        insecure: vec![
            named("build.example").parse().expect("a host"),
            named("metadata.example").parse().expect("a host"),
            "169.254.169.254".parse().expect("a host"),
        ],
        ..webhook()
    };
    let client = Client::new(options).expect("options");
    let read = async |host: &str| client.repository(&repository(host)).manifest(&tag("1")).await;
    assert!(read(&named("build.example")).await.is_ok());
    assert_eq!(code(read(&named("metadata.example")).await), "registry-address");
    assert_eq!(code(read("169.254.169.254").await), "registry-address");
}

#[tokio::test]
async fn token_realms_lead_nowhere_inside() {
    let registry = Registry::start(Options::default()).await;
    let other = Registry::start(Options::default()).await;
    let options = registry::Options {
        resolver: Names::of(&[("metadata.example", &["169.254.169.254"])]),
        ..options()
    };
    let store = store_with(&registry, options);
    for realm in [
        "http://169.254.169.254/token".to_owned(),
        "https://169.254.169.254/token".to_owned(),
        "https://metadata.example/token".to_owned(),
        "https://2852039166/token".to_owned(),
        "https://user:password@auth.example/token".to_owned(),
        other.url("/token"),
    ] {
        registry.clear_faults();
        let challenge = format!("Bearer realm=\"{realm}\",service=\"x\"");
        let action = Action::status_with(401, "www-authenticate", &challenge);
        registry.fault(Fault::each("GET", "/v2/*", action));
        assert_eq!(code(store.manifest(&tag("1")).await), "registry-address", "{realm}");
    }
    assert_eq!(other.log().len(), 0);
}

#[tokio::test]
async fn uploads_go_on_at_the_registry_only() {
    let registry = Registry::start(Options::default()).await;
    let other = Registry::start(Options::default()).await;
    let options =
        registry::Options { insecure: vec![other.host().parse().expect("a host")], ..options() };
    let store = store_with(&registry, options);
    for location in [
        "http://169.254.169.254/upload".to_owned(),
        "https://169.254.169.254/upload".to_owned(),
        "https://2852039166/upload".to_owned(),
        "//10.0.0.1/upload".to_owned(),
        "https://elsewhere.example/upload".to_owned(),
        other.url("/v2/team/app/blobs/uploads/x"),
    ] {
        registry.clear_faults();
        let action = Action::status_with(202, "location", &location);
        registry.fault(Fault::each("POST", "/v2/*", action));
        let push = store.push_blob("application/wasm", b"x").await;
        assert_eq!(code(push), "registry-address", "{location}");
    }
    assert_eq!(other.log().len(), 0);
}
