//! Pushing to registries with and without the referrers API.

use ambit_engine::digest::Digest;
use ambit_testing::registry::{Action, Auth, Bearer, Fault, Options, Registry};
use ambit_trust::oci::{Descriptor, ManifestName, SubjectIndexed, media};
use ambit_trust::store::Store;
use serde_json::json;

use crate::support::{PATH, code, store, store_with, tag, with_login};

/// Pushes an image and a referrer of it, reads both back, and says who keeps the list.
pub(crate) async fn round_trip(store: &dyn Store, name: &str) -> SubjectIndexed {
    let layer = store.push_blob("application/wasm", b"\0asm").await.expect("a layer");
    let config = store.push_blob(media::EMPTY, b"{}").await.expect("a configuration");
    let image = json!({
        "schemaVersion": 2, "mediaType": media::MANIFEST, "config": config, "layers": [layer],
    });
    let image = image.to_string().into_bytes();
    let pushed = store.push_manifest(&tag(name), media::MANIFEST, &image).await;
    assert_eq!(pushed, Ok(SubjectIndexed::ByStore), "what has no subject needs no list");
    let subject = Descriptor::of(media::MANIFEST, &image);
    let referrer = json!({
        "schemaVersion": 2, "mediaType": media::MANIFEST, "artifactType": media::BUNDLE_V03,
        "config": config, "layers": [], "subject": subject,
    });
    let referrer = referrer.to_string().into_bytes();
    let by_digest = ManifestName::Digest(Digest::of(&referrer));
    let indexed =
        store.push_manifest(&by_digest, media::MANIFEST, &referrer).await.expect("a referrer");

    let found = store.manifest(&tag(name)).await.expect("the image");
    assert_eq!((found.digest, &found.bytes), (subject.digest, &image));
    assert_eq!(store.blob(&layer, 100).await.expect("the layer"), b"\0asm");
    assert_eq!(store.manifest(&by_digest).await.expect("the referrer").bytes, referrer);
    if indexed == SubjectIndexed::ByNobody {
        let mut entry = Descriptor::of(media::MANIFEST, &referrer);
        entry.artifact_type = Some(media::BUNDLE_V03.to_owned());
        let index = json!({"schemaVersion": 2, "mediaType": media::INDEX, "manifests": [entry]});
        let name = tag(&subject.digest.to_string().replace(':', "-"));
        let index = index.to_string().into_bytes();
        store.push_manifest(&name, media::INDEX, &index).await.expect("the fallback index");
    }
    let listed = store.referrers(&subject.digest).await.expect("referrers");
    let digests: Vec<Digest> = listed.descriptors.iter().map(|own| own.digest).collect();
    assert_eq!((digests, listed.truncated), (vec![Digest::of(&referrer)], false));
    indexed
}

#[tokio::test]
async fn round_trip_works_with_and_without_the_referrers_api() {
    let new = Registry::start(Options::default()).await;
    assert_eq!(round_trip(&store(&new), "1").await, SubjectIndexed::ByStore);
    let old = Registry::start(Options::old()).await;
    assert_eq!(round_trip(&store(&old), "1").await, SubjectIndexed::ByNobody);
}

#[tokio::test]
async fn round_trip_works_with_passwords_and_tokens() {
    for auth in [
        Auth::Basic { user: "user".to_owned(), password: "password".to_owned() },
        Auth::Bearer(Bearer::default()),
    ] {
        let registry = Registry::start(Options { auth, ..Options::default() }).await;
        let store = store_with(&registry, with_login(&registry, "user", "password"));
        assert_eq!(round_trip(&store, "1").await, SubjectIndexed::ByStore);
    }
}

#[tokio::test]
async fn blob_that_is_there_is_not_sent_again() {
    let registry = Registry::start(Options::default()).await;
    registry.put_blob(PATH, b"bytes");
    let pushed = store(&registry).push_blob("application/wasm", b"bytes").await;
    assert_eq!(pushed, Ok(Descriptor::of("application/wasm", b"bytes")));
    let methods: Vec<String> = registry.log().into_iter().map(|logged| logged.method).collect();
    assert_eq!(methods, ["HEAD"]);
}

#[tokio::test]
async fn manifest_is_checked_before_it_is_sent() {
    let registry = Registry::start(Options::default()).await;
    let store = store(&registry);
    let other = ManifestName::Digest(Digest::of(b"other"));
    let push = async |name: &ManifestName, bytes: &[u8]| {
        code(store.push_manifest(name, media::MANIFEST, bytes).await)
    };
    assert_eq!(push(&other, b"{}").await, "registry-digest-mismatch");
    assert_eq!(push(&tag("1"), b"no json").await, "registry-protocol");
    assert_eq!(push(&tag("1"), br#"{"subject": {"digest": 1}}"#).await, "registry-protocol");
    assert_eq!(push(&tag("1"), &vec![b' '; (4 << 20) + 1]).await, "registry-limit");
    assert_eq!(registry.log().len(), 0);
    let missing = json!({"layers": [{"digest": Digest::of(b"absent").to_string()}]}).to_string();
    assert_eq!(push(&tag("1"), missing.as_bytes()).await, "registry-protocol");
    let child = json!({"manifests": [{"digest": Digest::of(b"absent").to_string()}]}).to_string();
    assert_eq!(push(&tag("1"), child.as_bytes()).await, "registry-protocol");
}

#[tokio::test]
async fn header_about_another_subject_counts_for_nothing() {
    let registry = Registry::start(Options::default()).await;
    let other = Digest::of(b"other").to_string();
    registry.fault(Fault::each("PUT", "/v2/*", Action::header("oci-subject", &other)));
    let manifest = json!({"layers": [], "subject": {"digest": Digest::of(b"s").to_string()}});
    let pushed = store(&registry)
        .push_manifest(&tag("1"), media::MANIFEST, manifest.to_string().as_bytes())
        .await;
    assert_eq!(pushed, Ok(SubjectIndexed::ByNobody));
}

#[tokio::test]
async fn pushes_are_not_repeated_and_not_redirected() {
    let registry = Registry::start(Options::default()).await;
    let store = store(&registry);
    for (method, action, expected) in [
        ("POST", Action::status(503), "registry-unavailable"),
        ("POST", Action::redirect("/elsewhere"), "registry-protocol"),
        ("POST", Action::status(202), "registry-protocol"),
        ("PUT", Action::status(503), "registry-unavailable"),
        ("PUT", Action::status(429), "registry-rate-limited"),
    ] {
        registry.clear_faults();
        registry.clear_log();
        registry.fault(Fault::each(method, "/v2/*", action));
        assert_eq!(code(store.push_blob("application/wasm", b"x").await), expected, "{method}");
        assert_eq!(registry.count(method, "/v2/"), 1, "{method}");
    }
}

#[tokio::test]
async fn upload_location_may_be_relative() {
    let registry = Registry::start(Options::default()).await;
    let to = "/v2/team/app/blobs/uploads/upload-1?_state=a%2Fb";
    registry.fault(Fault::each("POST", "/v2/*", Action::header("location", to)));
    store(&registry).push_blob("application/wasm", b"x").await.expect("a push");
    let log = registry.log();
    let put = log.iter().find(|logged| logged.method == "PUT").expect("an upload");
    let digest = Digest::of(b"x").to_string().replace(':', "%3A");
    assert_eq!(put.path, format!("{to}&digest={digest}"));
}

#[tokio::test]
async fn blob_that_is_elsewhere_is_there() {
    let registry = Registry::start(Options::default()).await;
    registry.fault(Fault::each("HEAD", "/v2/*", Action::redirect("https://10.0.0.1/x")));
    store(&registry).push_blob("application/wasm", b"x").await.expect("a push");
    assert_eq!(registry.log().len(), 1);
}
