//! From names to wasm manifests.

use ambit_engine::digest::Digest;
use ambit_trust::error::FetchError;
use ambit_trust::layout::Layout;
use ambit_trust::oci::{Descriptor, Platform, RawManifest, media};
use ambit_trust::resolve::{OlderTypes, Resolved, component_bytes, resolve};
use ambit_trust::store::Store as _;
use serde_json::json;

use super::memory::Memory;
use super::{cosign_layout, cosign_subject, describe, image, index, push, push_as, tag};

const OLD_LAYER: &str = "application/vnd.wasm.content.layer.v1+wasm";

fn layer(media_type: &str) -> Descriptor {
    Descriptor::of(media_type, b"\0asm")
}

fn wasm(number: &str) -> RawManifest {
    let more = [("annotations", json!({"n": number}))];
    image(media::WASM_CONFIG, &[layer(media::WASM_LAYER)], &more)
}

fn on(raw: &RawManifest, architecture: &str, os: &str) -> Descriptor {
    let platform = Platform { architecture: architecture.to_owned(), os: os.to_owned() };
    Descriptor { platform: Some(platform), ..describe(raw) }
}

/// Resolves `named`, beside which `others` are in the store.
async fn resolved(
    named: &RawManifest,
    others: &[&RawManifest],
    older: OlderTypes,
) -> Result<Resolved, FetchError> {
    let store = Memory::new();
    store.push_blob("", b"{}").await.unwrap();
    store.push_blob("", b"\0asm").await.unwrap();
    for other in others {
        push(&store, other).await;
    }
    push_as(&store, "x", named).await;
    resolve(&store, &tag("x"), older).await
}

async fn code(named: &RawManifest, others: &[&RawManifest]) -> &'static str {
    resolved(named, others, OlderTypes::Accepted).await.unwrap_err().code()
}

#[tokio::test]
async fn artifact_of_another_tool_resolves_with_its_claims() {
    let layout = Layout::open(&cosign_layout()).unwrap();
    let found = resolve(&layout, &tag("demo"), OlderTypes::Refused).await.unwrap();
    assert_eq!(found.manifest.digest, cosign_subject());
    assert_eq!(found.subjects(), [cosign_subject()]);
    assert!(found.index.is_none());
    let claims = found.claims.clone().unwrap();
    assert_eq!(claims.imports, ["wasi:cli/environment@0.2.0"]);
    assert_eq!(claims.exports, ["wasi:cli/run@0.2.0"]);
    assert_eq!(claims.target, None);
    let bytes = component_bytes(&layout, &found, 1 << 20).await.unwrap();
    assert_eq!(Digest::of(&bytes), found.layer.digest);
    let error = component_bytes(&layout, &found, 10).await.unwrap_err();
    assert_eq!(error.code(), "registry-limit");
}

#[tokio::test]
async fn what_is_no_wasm_artifact_says_so() {
    let two = [layer(media::WASM_LAYER), layer("text/plain")];
    for layers in [&[][..], &[layer("application/vnd.oci.image.layer.v1.tar+gzip")], &two] {
        let manifest = image(media::WASM_CONFIG, layers, &[]);
        assert_eq!(code(&manifest, &[]).await, "reference-not-wasm", "{layers:?}");
    }
}

#[tokio::test]
async fn older_types_are_a_choice() {
    let old_layer = image(media::WASM_CONFIG, &[layer(OLD_LAYER)], &[]);
    let old_config =
        image("application/vnd.module.wasm.config.v1+json", &[layer(media::WASM_LAYER)], &[]);
    for manifest in [old_layer, old_config] {
        assert!(resolved(&manifest, &[], OlderTypes::Accepted).await.is_ok());
        let refused = resolved(&manifest, &[], OlderTypes::Refused).await.unwrap_err();
        assert_eq!(refused.code(), "reference-not-wasm");
    }
}

#[tokio::test]
async fn one_wasm_child_is_taken_whatever_the_machine_is() {
    let (child, linux) = (wasm("1"), image("a/b", &[layer("c/d")], &[]));
    let parent = index(&[on(&linux, "amd64", "linux"), on(&child, "wasm", "wasip2")]);
    let found = resolved(&parent, &[&child, &linux], OlderTypes::Refused).await.unwrap();
    assert_eq!(found.manifest, child);
    assert_eq!(found.index.as_ref(), Some(&parent));
    assert_eq!(found.subjects(), [parent.digest, child.digest]);
    // Without platforms the manifests themselves say.
    let parent = index(&[describe(&linux), describe(&child)]);
    let found = resolved(&parent, &[&child, &linux], OlderTypes::Refused).await.unwrap();
    assert_eq!(found.manifest, child);
}

#[tokio::test]
async fn index_that_does_not_name_one_wasm_manifest_is_ambiguous() {
    let (one, two) = (wasm("1"), wasm("2"));
    let labelled = index(&[on(&one, "wasm", "wasip1"), on(&two, "wasm", "wasip2")]);
    assert_eq!(code(&labelled, &[&one, &two]).await, "reference-index-ambiguous");
    let bare = index(&[describe(&one), describe(&two)]);
    assert_eq!(code(&bare, &[&one, &two]).await, "reference-index-ambiguous");
    let inner = index(&[describe(&one)]);
    for outer in [index(&[describe(&inner)]), index(&[on(&inner, "wasm", "wasip2")])] {
        assert_eq!(code(&outer, &[&one, &inner]).await, "reference-index-ambiguous");
    }
    let linux = image("a/b", &[layer("c/d")], &[]);
    let none = index(&[on(&linux, "amd64", "linux"), describe(&linux)]);
    assert_eq!(code(&none, &[&linux]).await, "reference-not-wasm");
    assert_eq!(code(&index(&[]), &[]).await, "reference-not-wasm");
    let many = index(&vec![describe(&linux); 17]);
    assert_eq!(code(&many, &[&linux]).await, "reference-index-ambiguous");
}

#[tokio::test]
async fn child_must_be_what_its_index_says() {
    let child = wasm("1");
    let longer = Descriptor { size: 1, ..on(&child, "wasm", "wasip2") };
    assert_eq!(code(&index(&[longer]), &[&child]).await, "registry-protocol");
    let other = Descriptor {
        media_type: media::DOCKER_MANIFEST.to_owned(),
        ..on(&child, "wasm", "wasip2")
    };
    assert_eq!(code(&index(&[other]), &[&child]).await, "registry-protocol");
    let parent = index(&[on(&child, "wasm", "wasip2")]);
    assert_eq!(code(&parent, &[]).await, "registry-not-found");
}

#[tokio::test]
async fn configuration_is_bounded_and_strict() {
    for (config, expected) in [
        (r#"{"component":{"imports":null,"exports":["a"],"target":"w"}}"#.to_owned(), None),
        (r#"{"component":null}"#.to_owned(), None),
        (r#"{"component":{"imports":[],"imports":[]}}"#.to_owned(), Some("registry-protocol")),
        (r#"{"component":[]}"#.to_owned(), Some("registry-protocol")),
        ("nonsense".to_owned(), Some("registry-protocol")),
        (json!({"component": {"imports": vec!["a"; 1025]}}).to_string(), Some("registry-limit")),
        (format!("{{\"a\":\"{}\"}}", "b".repeat(1 << 20)), Some("registry-limit")),
    ] {
        let store = Memory::new();
        let config = store.push_blob(media::WASM_CONFIG, config.as_bytes()).await.unwrap();
        let layers = [layer(media::WASM_LAYER)];
        let manifest = image(media::WASM_CONFIG, &layers, &[("config", json!(config))]);
        push_as(&store, "x", &manifest).await;
        let answer = resolve(&store, &tag("x"), OlderTypes::Refused).await;
        assert_eq!(answer.as_ref().err().map(FetchError::code), expected, "{config:?}");
    }
}

#[tokio::test]
async fn tag_is_asked_for_once() {
    let store = Memory::new();
    store.push_blob("", b"{}").await.unwrap();
    push_as(&store, "x", &wasm("1")).await;
    resolve(&store, &tag("x"), OlderTypes::Refused).await.unwrap();
    assert_eq!(store.calls("manifest x"), 1);
}
