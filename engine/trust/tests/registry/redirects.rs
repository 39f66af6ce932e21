//! Redirects: followed by hand, judged each time, and without credentials.

use ambit_testing::registry::{Action, Auth, Fault, Options, Registry};
use ambit_trust::oci::Descriptor;
use ambit_trust::registry;
use ambit_trust::store::Store as _;

use crate::support::{Names, PATH, code, options, store, store_with, with_login};

const BLOBS: &str = "/v2/team/app/blobs/*";
const BYTES: &[u8] = b"some bytes";

fn blob() -> Descriptor {
    Descriptor::of("application/wasm", BYTES)
}

fn basic() -> Options {
    let auth = Auth::Basic { user: "user".to_owned(), password: "password".to_owned() };
    Options { auth, ..Options::default() }
}

#[tokio::test]
async fn credentials_never_follow_to_another_host() {
    let home = Registry::start(basic()).await;
    let other = Registry::start(Options::default()).await;
    other.put_blob(PATH, BYTES);
    let to = other.url(&format!("/v2/team/app/blobs/{}", blob().digest));
    home.fault(Fault::each("GET", BLOBS, Action::redirect(&to)));
    let options = registry::Options {
        insecure: vec![other.host().parse().expect("a host")],
        ..with_login(&home, "user", "password")
    };
    let store = store_with(&home, options);
    // The first call learns that a password is asked for, so the second sends it at once.
    assert_eq!(code(store.manifest(&crate::support::tag("1")).await), "registry-not-found");
    assert_eq!(store.blob(&blob(), 100).await.expect("a blob"), BYTES);
    let sent = home.log().into_iter().filter(|logged| logged.path.contains("/blobs/"));
    assert!(sent.clone().count() == 1 && sent.clone().all(|l| l.header("authorization").is_some()));
    let log = other.log();
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].header("authorization"), None);

    // Back at home by way of the other host nothing is sent either.
    let back = home.url("/v2/team/app/blobs/back");
    other.fault(Fault::each("GET", "*", Action::redirect(&back)));
    home.clear_faults();
    home.fault(Fault::each("GET", "/v2/team/app/blobs/sha256*", Action::redirect(&to)));
    assert_eq!(code(store.blob(&blob(), 100).await), "registry-auth");
    let log = home.log();
    let last = log.last().expect("a request");
    assert_eq!(
        (last.path.as_str(), last.header("authorization")),
        ("/v2/team/app/blobs/back", None)
    );
}

#[tokio::test]
async fn redirect_on_the_same_host_keeps_credentials() {
    let home = Registry::start(basic()).await;
    home.put_blob("other", BYTES);
    let to = format!("/v2/other/blobs/{}", blob().digest);
    home.fault(Fault::each("GET", BLOBS, Action::redirect(&to)));
    let store = store_with(&home, with_login(&home, "user", "password"));
    assert!(store.manifest(&crate::support::tag("1")).await.is_err());
    assert_eq!(store.blob(&blob(), 100).await.expect("a blob"), BYTES);
}

#[tokio::test]
async fn redirects_end() {
    let home = Registry::start(Options::default()).await;
    home.fault(Fault::each("GET", BLOBS, Action::redirect("x")));
    assert_eq!(code(store(&home).blob(&blob(), 100).await), "registry-protocol");
    assert_eq!(home.log().len(), 6);
}

#[tokio::test]
async fn host_after_a_redirect_may_not_ask_for_a_login() {
    let home = Registry::start(Options::default()).await;
    let other = Registry::start(basic()).await;
    home.fault(Fault::each("GET", BLOBS, Action::redirect(&other.url("/v2/a/blobs/x"))));
    let options = registry::Options {
        insecure: vec![other.host().parse().expect("a host")],
        credentials: crate::support::login(&other.host(), "user", "password"),
        ..options()
    };
    assert_eq!(code(store_with(&home, options).blob(&blob(), 100).await), "registry-auth");
    assert_eq!(other.log().len(), 1);
}

#[tokio::test]
async fn redirects_lead_nowhere_inside() {
    let home = Registry::start(Options::default()).await;
    let other = Registry::start(Options::default()).await;
    let port = other.host().rsplit(':').next().expect("a port").to_owned();
    let options = registry::Options {
        resolver: Names::of(&[
            ("metadata.example", &["169.254.169.254"]),
            ("inside.example", &["93.184.216.34", "10.0.0.1"]),
            ("rebound.example", &["127.0.0.1"]),
            ("mapped.example", &["::ffff:169.254.169.254"]),
        ]),
        ..options()
    };
    let store = store_with(&home, options);
    for to in [
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "https://169.254.169.254/".to_owned(),
        "https://[::ffff:169.254.169.254]/".to_owned(),
        "https://[fd00:ec2::254]/".to_owned(),
        "https://2852039166/".to_owned(),
        "https://0xa9fea9fe/".to_owned(),
        "https://0251.0376.0251.0376/".to_owned(),
        "https://169.254.43518/".to_owned(),
        "https://10.0.0.1/".to_owned(),
        "https://[fe80::1]/".to_owned(),
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("//0.0.0.0:{port}/"),
        "https://metadata.google.internal/".to_owned(),
        "https://metadata.example/".to_owned(),
        "https://inside.example/".to_owned(),
        "https://rebound.example/".to_owned(),
        "https://mapped.example/".to_owned(),
        "https://user:secret@registry.example/".to_owned(),
        "http://plain.example/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "https:\\\\169.254.169.254/".to_owned(),
    ] {
        home.clear_faults();
        home.fault(Fault::each("GET", BLOBS, Action::redirect(&to)));
        assert_eq!(code(store.blob(&blob(), 100).await), "registry-address", "{to}");
    }
    assert_eq!(other.log().len(), 0);
}
