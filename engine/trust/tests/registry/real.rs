//! The same against a registry of somebody else: Debian's docker-registry 2.8.2 at
//! `AMBIT_TEST_REGISTRY`, as `127.0.0.1:5000`.

use ambit_engine::digest::Digest;
use ambit_testing::registry::{Options, Registry};
use ambit_trust::oci::{ManifestName, SubjectIndexed, media};
use ambit_trust::registry::{self, Client, Loopback, RegistryStore};
use ambit_trust::store::Store as _;
use serde_json::json;

use crate::push::round_trip;
use crate::support::{manifest, repository, tag};

fn store(host: &str) -> RegistryStore {
    let options = registry::Options { loopback: Loopback::Allowed, ..registry::Options::default() };
    Client::new(options).expect("options").repository(&repository(host))
}

fn real() -> RegistryStore {
    store(&std::env::var("AMBIT_TEST_REGISTRY").expect("the registry's host and port"))
}

#[tokio::test]
#[ignore = "needs docker-registry"]
async fn round_trip_works_with_docker_registry() {
    assert_eq!(round_trip(&real(), "round-trip").await, SubjectIndexed::ByNobody);
}

/// What the registry of the tests stands for must answer as that does.
#[tokio::test]
#[ignore = "needs docker-registry"]
async fn old_test_registry_answers_as_docker_registry() {
    let own = Registry::start(Options::old()).await;
    assert_eq!(answers(&store(&own.host())).await, answers(&real()).await);
}

async fn answers(store: &RegistryStore) -> Vec<String> {
    let mut answers = Vec::new();
    let absent = Digest::of(b"absent");
    let mut note = |what: &str, answer: Result<String, ambit_trust::error::FetchError>| {
        let text = match answer {
            Ok(text) => text,
            Err(error) => {
                // The code of the registry's own error, not its words.
                let text = error.to_string();
                let codes = ["MANIFEST_BLOB_UNKNOWN", "DIGEST_INVALID", "MANIFEST_INVALID"];
                let said = codes.into_iter().find(|code| text.contains(code)).unwrap_or_default();
                format!("{} {said}", error.code())
            }
        };
        answers.push(format!("{what}: {text}"));
    };
    let shown = |manifest: ambit_trust::oci::RawManifest| manifest.media_type;
    let missing = tag("never-pushed");
    note("absent tag", store.manifest(&missing).await.map(shown));
    note("absent digest", store.manifest(&ManifestName::Digest(absent)).await.map(shown));
    let none = store.referrers(&absent).await.map(|found| format!("{found:?}"));
    note("no referrers", none);
    let layer = json!({"mediaType": "application/wasm", "digest": absent.to_string(), "size": 6});
    let config = store.push_blob(media::EMPTY, b"{}").await.expect("a configuration");
    let body = json!({
        "schemaVersion": 2, "mediaType": media::MANIFEST, "config": config, "layers": [layer],
    });
    let push = async |name: &str, media_type: &str, body: &[u8]| {
        let pushed = store.push_manifest(&tag(name), media_type, body).await;
        pushed.map(|indexed| format!("{indexed:?}"))
    };
    note("layer missing", push("a", media::MANIFEST, body.to_string().as_bytes()).await);
    let child = json!({"mediaType": media::MANIFEST, "digest": absent.to_string(), "size": 6});
    let index =
        json!({"schemaVersion": 2, "mediaType": media::INDEX, "manifests": [child]}).to_string();
    note("child missing", push("b", media::INDEX, index.as_bytes()).await);
    note("whole", push("c", media::MANIFEST, &manifest("c")).await);
    let back = store.manifest(&tag("c")).await.expect("what was pushed");
    assert_eq!(back.bytes, manifest("c"));
    note("read back", Ok(back.media_type));
    answers
}
