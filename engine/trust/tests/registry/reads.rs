//! Manifests and blobs: what comes is hashed, bounded, and is what it says.

use std::time::Duration;

use ambit_engine::digest::Digest;
use ambit_testing::registry::{Action, Fault, Nth, Options, Registry};
use ambit_trust::error::FetchError;
use ambit_trust::oci::{Descriptor, ManifestName, media};
use ambit_trust::registry;
use ambit_trust::store::Store as _;

use crate::support::{PATH, code, manifest, options, put, store, store_with, tag};

const MANIFESTS: &str = "/v2/team/app/manifests/*";
const BLOBS: &str = "/v2/team/app/blobs/*";

#[tokio::test]
async fn tag_is_resolved_by_exactly_one_request() {
    let registry = Registry::start(Options::default()).await;
    let digest = put(&registry, "1");
    let lie = Digest::of(b"another").to_string();
    registry.fault(Fault::each("*", MANIFESTS, Action::header("docker-content-digest", &lie)));
    let found = store(&registry).manifest(&tag("1")).await.expect("a manifest");
    assert_eq!(found.digest, digest);
    assert_eq!(found.media_type, media::MANIFEST);
    assert_eq!(found.bytes, manifest("1"));
    let log = registry.log();
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!((log[0].method.as_str(), log[0].path.as_str()), ("GET", "/v2/team/app/manifests/1"));
    assert!(log[0].header("accept").is_some_and(|text| text.contains(media::INDEX)));
    assert_eq!(log[0].header("authorization"), None);
}

#[tokio::test]
async fn bytes_that_change_between_two_reads_are_noticed() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    let other = Action::body(media::MANIFEST, &manifest("evil"));
    registry.fault(Fault::nth("GET", MANIFESTS, Nth::Only(2), other));
    let store = store(&registry);
    let first = store.manifest(&tag("1")).await.expect("a manifest");
    let error = store.manifest(&ManifestName::Digest(first.digest)).await.expect_err("other bytes");
    let FetchError::DigestMismatch { expected, found, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*expected, first.digest.to_string());
    assert_eq!(*found, Digest::of(&manifest("evil")).to_string());
    assert!(store.manifest(&ManifestName::Digest(first.digest)).await.is_ok());
}

#[tokio::test]
async fn manifest_is_what_header_and_body_agree_on() {
    let registry = Registry::start(Options::default()).await;
    let store = store(&registry);
    let both = br#"{"layers": [], "manifests": []}"#;
    let untyped = br#"{"schemaVersion": 2, "layers": []}"#;
    let typed = manifest("x");
    let doubled = br#"{"layers": [], "layers": []}"#;
    for (name, media_type, body, accepted) in [
        ("typed", media::MANIFEST, &typed[..], true),
        ("parameters", "application/vnd.oci.image.manifest.v1+json; charset=utf-8", &typed, true),
        ("no header", "", &typed, true),
        ("header alone", media::DOCKER_MANIFEST, untyped, true),
        ("nothing says", "", untyped, false),
        ("two types", media::INDEX, &typed, false),
        ("docker and oci", media::DOCKER_MANIFEST, &typed, false),
        ("a page", "text/html", &typed, false),
        ("plain json", "application/json", untyped, false),
        ("both kinds", media::MANIFEST, both, false),
        ("both kinds as index", media::INDEX, both, false),
        ("index of layers", media::INDEX, untyped, false),
        ("key twice", media::MANIFEST, doubled, false),
        ("list", media::MANIFEST, b"[]", false),
        ("two values", media::MANIFEST, b"{}{}", false),
        ("nothing", media::MANIFEST, b"", false),
        ("no json", media::MANIFEST, b"<html>", false),
        ("number as type", media::MANIFEST, br#"{"mediaType": 1}"#, false),
    ] {
        registry.clear_faults();
        registry.fault(Fault::each("GET", MANIFESTS, Action::body(media_type, body)));
        let result = store.manifest(&tag("1")).await;
        match result {
            Ok(found) => assert!(accepted, "{name}: {found:?}"),
            Err(error) => {
                assert!(!accepted, "{name}: {error}");
                assert_eq!(error.code(), "registry-protocol", "{name}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn each_fault_has_its_code() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    let store = store(&registry);
    for (action, expected) in [
        (Action::status(401), "registry-auth"),
        (Action::status(403), "registry-auth"),
        (Action::status(404), "registry-not-found"),
        (Action::status(429), "registry-rate-limited"),
        (Action::status(500), "registry-unavailable"),
        (Action::status(502), "registry-unavailable"),
        (Action::status(503), "registry-unavailable"),
        (Action::status(504), "registry-unavailable"),
        (Action::status(304), "registry-protocol"),
        (Action::status(307), "registry-protocol"),
        (Action::status(418), "registry-protocol"),
        (Action::Endless, "registry-limit"),
        (Action::Announce(1 << 40), "registry-limit"),
        (Action::Cut, "registry-unavailable"),
        (Action::header("content-encoding", "gzip"), "registry-protocol"),
        (Action::header("content-type", "text/html"), "registry-protocol"),
    ] {
        registry.clear_faults();
        registry.fault(Fault::each("GET", MANIFESTS, action.clone()));
        assert_eq!(code(store.manifest(&tag("1")).await), expected, "{action:?}");
        // An answer resets what the breaker counts.
        registry.clear_faults();
        assert!(store.manifest(&tag("1")).await.is_ok());
    }
}

#[tokio::test]
async fn registry_that_is_not_there_is_unavailable() {
    let gone = Registry::start(Options::default()).await.host();
    let client = registry::Client::new(options()).expect("options");
    let store = client.repository(&crate::support::repository(&gone));
    // The listener goes with its runtime task; until then a call may still be answered.
    for _ in 0..100 {
        if store.manifest(&tag("1")).await.is_err_and(|e| e.code() == "registry-unavailable") {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("a registry that was stopped still answers");
}

#[tokio::test]
async fn name_that_does_not_resolve_is_unavailable() {
    let client = registry::Client::new(options()).expect("options");
    let store = client.repository(&crate::support::repository("nowhere.example"));
    assert_eq!(code(store.manifest(&tag("1")).await), "registry-unavailable");
}

#[tokio::test]
async fn slow_drip_ends_with_the_time_of_the_call() {
    let registry = Registry::start(Options::default()).await;
    registry.fault(Fault::each("GET", MANIFESTS, Action::Drip));
    let options = registry::Options { call_timeout: Duration::from_millis(150), ..options() };
    let error = store_with(&registry, options).manifest(&tag("1")).await.expect_err("no end");
    assert_eq!(error.code(), "registry-timeout");
    assert!(error.to_string().contains("took longer than 150 ms"), "{error}");
}

#[tokio::test]
async fn blob_has_the_size_and_digest_of_its_descriptor() {
    let registry = Registry::start(Options::default()).await;
    let store = store(&registry);
    let bytes = b"some bytes".repeat(1000);
    registry.put_blob(PATH, &bytes);
    let blob = Descriptor::of("application/wasm", &bytes);
    assert_eq!(store.blob(&blob, 1 << 20).await.expect("a blob"), bytes);

    registry.clear_log();
    assert_eq!(code(store.blob(&blob, 9_999).await), "registry-limit");
    assert_eq!(registry.log().len(), 0, "nothing is asked for what is too large");

    let absent = Descriptor::of("application/wasm", b"absent");
    assert_eq!(code(store.blob(&absent, 1 << 20).await), "registry-not-found");
    let short = Descriptor { size: 9_999, ..blob.clone() };
    assert_eq!(code(store.blob(&short, 1 << 20).await), "registry-protocol");
    let long = Descriptor { size: 10_001, ..blob.clone() };
    assert_eq!(code(store.blob(&long, 1 << 20).await), "registry-protocol");

    let mut flipped = bytes.clone();
    flipped[0] ^= 1;
    for (action, expected) in [
        (Action::body("application/octet-stream", &flipped), "registry-digest-mismatch"),
        (Action::body("application/octet-stream", &bytes[1..]), "registry-digest-mismatch"),
        (Action::Endless, "registry-protocol"),
        (Action::Announce(u64::MAX / 2), "registry-protocol"),
        (Action::header("content-encoding", "gzip"), "registry-protocol"),
    ] {
        registry.clear_faults();
        registry.fault(Fault::each("GET", BLOBS, action.clone()));
        assert_eq!(code(store.blob(&blob, 1 << 20).await), expected, "{action:?}");
    }
}

#[tokio::test]
async fn empty_blob_is_read() {
    let registry = Registry::start(Options::default()).await;
    registry.put_blob(PATH, b"");
    let blob = Descriptor::of("application/octet-stream", b"");
    assert_eq!(store(&registry).blob(&blob, 0).await, Ok(Vec::new()));
}

#[tokio::test]
async fn text_of_an_error_is_short_and_plain() {
    let registry = Registry::start(Options::default()).await;
    let body = format!("\u{1b}[31mdenied\r\n{}", "x".repeat(10_000)).into_bytes();
    let action = Action::Answer { status: 403, headers: Vec::new(), body };
    registry.fault(Fault::each("GET", MANIFESTS, action));
    let text = store(&registry).manifest(&tag("1")).await.expect_err("refused").to_string();
    assert!(text.contains("status 403: [31mdenied xxx"), "{text}");
    assert!(text.len() < 400 && !text.chars().any(char::is_control), "{text}");
}

#[tokio::test]
async fn mirror_is_read_instead_and_checked() {
    let origin = Registry::start(Options::default()).await;
    let mirror = Registry::start(Options::default()).await;
    let digest = Digest::of(&manifest("1"));
    mirror.put_manifest("hub/team/app", "1", media::MANIFEST, &manifest("1"));
    let rule = format!("{}={}/hub", origin.host(), mirror.host());
    let options = registry::Options {
        mirrors: vec![rule.parse().expect("a mirror")],
        ..crate::support::with_login(&origin, "user", "password")
    };
    let store = store_with(&origin, options);
    assert_eq!(store.name(), format!("{}/team/app", origin.host()));
    assert_eq!(store.manifest(&tag("1")).await.expect("a manifest").digest, digest);
    assert_eq!(origin.log().len(), 0);

    let evil = Action::body(media::MANIFEST, &manifest("evil"));
    mirror.fault(Fault::each("GET", "*", evil));
    let name = ManifestName::Digest(digest);
    assert_eq!(code(store.manifest(&name).await), "registry-digest-mismatch");

    mirror.clear_faults();
    mirror.fault(Fault::each(
        "GET",
        "*",
        Action::status_with(401, "www-authenticate", "Basic realm=x"),
    ));
    assert_eq!(code(store.manifest(&tag("1")).await), "registry-auth");
    assert!(mirror.log().iter().all(|logged| logged.header("authorization").is_none()));

    store.push_blob("application/wasm", b"pushed").await.expect("a push");
    assert!(origin.blob(PATH, &Digest::of(b"pushed").to_string()).is_some());
}

#[test]
fn registry_runs_beside_tests_that_are_not_asynchronous() {
    let registry = Registry::start_blocking(Options::default());
    let digest = put(&registry, "1");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let name = tag("1");
    let found = runtime.expect("a runtime").block_on(store(&registry).manifest(&name));
    assert_eq!(found.map(|manifest| manifest.digest), Ok(digest));
}
