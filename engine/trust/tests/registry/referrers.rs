//! Referrers: the API with its pages, the fallback tag, and that trouble is never "none".

use std::time::Duration;

use ambit_engine::digest::Digest;
use ambit_testing::registry::{Action, Fault, Nth, Options, Registry};
use ambit_trust::oci::{Descriptor, MAX_REFERRERS, media};
use ambit_trust::registry;
use ambit_trust::store::{Referrers, Store as _};
use serde_json::{Value, json};

use crate::support::{PATH, code, options, store, store_with};

const REFERRERS: &str = "/v2/team/app/referrers/*";
const TAGS: &str = "/v2/team/app/manifests/*";

fn subject() -> Digest {
    Digest::of(b"subject")
}

fn descriptor(marker: &str) -> Value {
    json!({
        "mediaType": media::MANIFEST,
        "digest": Digest::of(marker.as_bytes()).to_string(),
        "size": 100,
        "artifactType": "application/x",
        "annotations": {"marker": marker},
    })
}

fn markers(found: &Referrers) -> Vec<String> {
    found.descriptors.iter().map(|own| own.annotations["marker"].clone()).collect()
}

fn index(manifests: &Value) -> Vec<u8> {
    json!({"schemaVersion": 2, "mediaType": media::INDEX, "manifests": manifests})
        .to_string()
        .into_bytes()
}

fn fallback_tag() -> String {
    subject().to_string().replace(':', "-")
}

#[tokio::test]
async fn pages_are_followed_in_order_without_duplicates_and_foreign_entries() {
    let registry = Registry::start(Options { page_size: 2, ..Options::default() }).await;
    let foreign = json!({
        "mediaType": "application/wasm", "digest": Digest::of(b"f").to_string(), "size": 1
    });
    let long = json!({
        "mediaType": media::MANIFEST, "digest": format!("sha512:{}", "0".repeat(128)), "size": 1
    });
    let mut nothing = descriptor("d");
    nothing["annotations"]["marker"] = json!("d");
    nothing["artifactType"] = Value::Null;
    registry.plant_referrers(
        &subject().to_string(),
        vec![
            descriptor("b"),
            descriptor("a"),
            foreign,
            descriptor("b"),
            long,
            descriptor("c"),
            nothing,
        ],
    );
    let found = store(&registry).referrers(&subject()).await.expect("referrers");
    assert_eq!(markers(&found), ["b", "a", "c", "d"]);
    assert!(!found.truncated);
    assert_eq!(registry.count("GET", "/v2/team/app/referrers/"), 4);
    assert_eq!(registry.log().len(), 4, "the fallback tag isn't asked where there is the API");
}

#[tokio::test]
async fn what_was_pushed_is_listed() {
    let registry = Registry::start(Options::default()).await;
    let body = json!({
        "schemaVersion": 2, "mediaType": media::MANIFEST, "artifactType": media::BUNDLE_V03,
        "config": {"mediaType": media::EMPTY, "digest": Digest::of(b"{}").to_string(), "size": 2},
        "layers": [],
        "subject": {"mediaType": media::MANIFEST, "digest": subject().to_string(), "size": 7},
    });
    let body = body.to_string().into_bytes();
    registry.put_manifest(PATH, "x", media::MANIFEST, &body);
    let found = store(&registry).referrers(&subject()).await.expect("referrers");
    let mut expected = Descriptor::of(media::MANIFEST, &body);
    expected.artifact_type = Some(media::BUNDLE_V03.to_owned());
    assert_eq!(found, Referrers { descriptors: vec![expected], truncated: false });
    let none = store(&registry).referrers(&Digest::of(b"other")).await.expect("an answer");
    assert_eq!(none, Referrers::default());
}

#[tokio::test]
async fn thousands_of_referrers_are_cut_and_it_is_said() {
    let registry = Registry::start(Options { page_size: 50, ..Options::default() }).await;
    let many = (0..5000).map(|number| descriptor(&number.to_string())).collect();
    registry.plant_referrers(&subject().to_string(), many);
    let found = store(&registry).referrers(&subject()).await.expect("referrers");
    assert_eq!((found.descriptors.len(), found.truncated), (MAX_REFERRERS, true));
    assert_eq!(registry.log().len(), 2);
}

#[tokio::test]
async fn exactly_the_limit_is_whole() {
    let registry = Registry::start(Options::default()).await;
    let many = (0..MAX_REFERRERS).map(|number| descriptor(&number.to_string())).collect();
    registry.plant_referrers(&subject().to_string(), many);
    let found = store(&registry).referrers(&subject()).await.expect("referrers");
    assert_eq!((found.descriptors.len(), found.truncated), (MAX_REFERRERS, false));
}

#[tokio::test]
async fn endless_pages_end_and_it_is_said() {
    let registry = Registry::start(Options { page_size: 1, ..Options::default() }).await;
    let many = vec![descriptor("same"); 1000];
    registry.plant_referrers(&subject().to_string(), many);
    let found = store(&registry).referrers(&subject()).await.expect("referrers");
    assert_eq!((found.descriptors.len(), found.truncated), (1, true));
    assert_eq!(registry.log().len(), 16);
}

#[tokio::test]
async fn next_page_stays_in_the_list() {
    let registry = Registry::start(Options::default()).await;
    let other = Registry::start(Options::default()).await;
    registry.plant_referrers(&subject().to_string(), vec![descriptor("a")]);
    let options =
        registry::Options { insecure: vec![other.host().parse().expect("a host")], ..options() };
    let store = store_with(&registry, options);
    let own = format!("/v2/team/app/referrers/{}", subject());
    for (link, expected) in [
        (other.url(&own), "registry-protocol"),
        ("/v2/team/other/referrers/x".to_owned(), "registry-protocol"),
        ("/v2/team/app/referrers/../manifests/x".to_owned(), "registry-protocol"),
        (own.clone(), "registry-protocol"),
        ("https://169.254.169.254/".to_owned(), "registry-address"),
        ("http://elsewhere.example/".to_owned(), "registry-address"),
    ] {
        registry.clear_faults();
        let action = Action::header("link", &format!("<{link}>; rel=\"next\""));
        registry.fault(Fault::each("GET", REFERRERS, action));
        assert_eq!(code(store.referrers(&subject()).await), expected, "{link}");
    }
    assert_eq!(other.log().len(), 0);
}

#[tokio::test]
async fn missing_api_means_the_fallback_tag() {
    let registry = Registry::start(Options::old()).await;
    let store = store(&registry);
    assert_eq!(store.referrers(&subject()).await, Ok(Referrers::default()));
    assert_eq!(registry.count("GET", &format!("/v2/team/app/manifests/{}", fallback_tag())), 1);
    let body = index(&json!([descriptor("b"), descriptor("a"), descriptor("b")]));
    registry.put_manifest(PATH, &fallback_tag(), media::INDEX, &body);
    let found = store.referrers(&subject()).await.expect("referrers");
    assert_eq!(markers(&found), ["b", "a"]);
}

#[tokio::test]
async fn trouble_is_never_none() {
    let registry = Registry::start(Options::default()).await;
    let subject = subject();
    for (status, expected) in [
        (401, "registry-auth"),
        (403, "registry-auth"),
        (400, "registry-protocol"),
        (405, "registry-protocol"),
        (410, "registry-protocol"),
        (429, "registry-rate-limited"),
        (500, "registry-unavailable"),
        (503, "registry-unavailable"),
    ] {
        registry.clear_faults();
        registry.clear_log();
        registry.fault(Fault::each("GET", REFERRERS, Action::status(status)));
        let store = store(&registry);
        assert_eq!(code(store.referrers(&subject).await), expected, "{status}");
        assert_eq!(registry.count("GET", "/v2/team/app/manifests/"), 0, "{status}");

        // The same for the fallback tag.
        registry.clear_faults();
        registry.fault(Fault::each("GET", REFERRERS, Action::status(404)));
        registry.fault(Fault::each("GET", TAGS, Action::status(status)));
        assert_eq!(code(store.referrers(&subject).await), expected, "{status} on the tag");
    }
    registry.clear_faults();
    registry.fault(Fault::each("GET", REFERRERS, Action::Cut));
    assert_eq!(code(store(&registry).referrers(&subject).await), "registry-unavailable");
    registry.clear_faults();
    registry.fault(Fault::each("GET", REFERRERS, Action::Drip));
    let quick = registry::Options { call_timeout: Duration::from_millis(150), ..options() };
    let slow = store_with(&registry, quick);
    assert_eq!(code(slow.referrers(&subject).await), "registry-timeout");
}

#[tokio::test]
async fn list_that_cannot_be_read_is_an_error() {
    let registry = Registry::start(Options::default()).await;
    let store = store(&registry);
    let image = crate::support::manifest("x");
    let broken = |key: &str, value: Value| {
        let mut broken = descriptor("a");
        broken[key] = value;
        index(&json!([broken]))
    };
    for (name, media_type, body) in [
        ("a page", "text/html", b"<html>".to_vec()),
        ("an image", media::MANIFEST, image),
        ("no list", media::INDEX, index(&json!({}))),
        ("no object", media::INDEX, index(&json!(["x"]))),
        ("no digest", media::INDEX, broken("digest", Value::Null)),
        ("odd digest", media::INDEX, broken("digest", json!("sha256:00"))),
        ("negative size", media::INDEX, broken("size", json!(-1))),
        ("no size", media::INDEX, broken("size", Value::Null)),
        ("odd annotations", media::INDEX, broken("annotations", json!({"a": 1}))),
        ("no json", media::INDEX, b"{".to_vec()),
    ] {
        registry.clear_faults();
        registry.fault(Fault::each("GET", REFERRERS, Action::body(media_type, &body)));
        assert_eq!(code(store.referrers(&subject()).await), "registry-protocol", "{name}");
    }
    registry.clear_faults();
    registry.fault(Fault::each("GET", REFERRERS, Action::Endless));
    assert_eq!(code(store.referrers(&subject()).await), "registry-limit");
    registry.clear_faults();
    let empty = Action::body(media::INDEX, &index(&Value::Null));
    registry.fault(Fault::each("GET", REFERRERS, empty));
    assert_eq!(store.referrers(&subject()).await, Ok(Referrers::default()));
}

#[tokio::test]
async fn page_that_is_gone_is_an_error() {
    let registry = Registry::start(Options { page_size: 1, ..Options::default() }).await;
    registry.plant_referrers(&subject().to_string(), vec![descriptor("a"), descriptor("b")]);
    registry.fault(Fault::nth("GET", REFERRERS, Nth::From(2), Action::status(404)));
    assert_eq!(code(store(&registry).referrers(&subject()).await), "registry-protocol");
}

#[tokio::test]
async fn index_in_the_list_is_kept_as_what_it_is() {
    let registry = Registry::start(Options::default()).await;
    let mut nested = descriptor("a");
    nested["mediaType"] = json!(media::INDEX);
    registry.plant_referrers(&subject().to_string(), vec![nested]);
    let found = store(&registry).referrers(&subject()).await.expect("referrers");
    assert_eq!(found.descriptors[0].media_type, media::INDEX);
}
