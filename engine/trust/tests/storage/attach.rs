//! Pushing, attaching and copying.

use std::collections::BTreeMap;

use ambit_engine::digest::Digest;
use ambit_trust::attach::{
    CopyLimits, WithReferrers, attach_bundle, attach_legacy_attestation, attach_legacy_signature,
    copy, push_component,
};
use ambit_trust::candidate::Content;
use ambit_trust::discover::{DiscoverLimits, discover};
use ambit_trust::error::FetchError;
use ambit_trust::keys::SigningKey;
use ambit_trust::layout::{Layout, fallback_tag};
use ambit_trust::oci::{Descriptor, ManifestName, RawManifest, media};
use ambit_trust::resolve::{Claims, OlderTypes, component_bytes, resolve};
use ambit_trust::sign::{
    COSIGN_SIGN, LegacySignature, legacy_attestation, legacy_signature, signature_bundle,
};
use ambit_trust::store::Store;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::memory::Memory;
use super::{cosign_layout, cosign_subject, describe, image, index, push, push_as, tag};

fn now() -> Timestamp {
    "2026-11-30T23:21:40Z".parse().unwrap()
}

fn claims() -> Claims {
    Claims {
        imports: vec!["wasi:cli/environment@0.2.0".to_owned()],
        exports: vec!["wasi:cli/run@0.2.0".to_owned()],
        target: None,
    }
}

async fn pushed(store: &dyn Store) -> RawManifest {
    let annotations = BTreeMap::new();
    let digest =
        push_component(store, "app", b"\0asm", &claims(), &annotations, now()).await.unwrap();
    store.manifest(&ManifestName::Digest(digest)).await.unwrap()
}

async fn count(store: &dyn Store, subject: &Digest) -> (usize, usize) {
    let found = discover(store, subject, &DiscoverLimits::default()).await;
    assert_eq!(found.problems, []);
    let bundles = found.candidates.iter().filter(|c| matches!(c.content, Content::Bundle(_)));
    let bundles = bundles.count();
    (bundles, found.candidates.len() - bundles)
}

fn entries(store: &Memory, name: &str) -> Vec<Value> {
    let state = store.state.lock().unwrap();
    let raw = &state.manifests[&state.tags[name]];
    let body: Value = serde_json::from_slice(&raw.bytes).unwrap();
    let list = if raw.media_type == media::INDEX { "manifests" } else { "layers" };
    body[list].as_array().unwrap().clone()
}

#[tokio::test]
async fn pushed_component_has_the_cncf_layout() {
    let store = Memory::new();
    let manifest = pushed(&store).await;
    let found = resolve(&store, &tag("app"), OlderTypes::Refused).await.unwrap();
    assert_eq!(found.manifest, manifest);
    assert_eq!(found.claims, Some(claims()));
    assert_eq!(component_bytes(&store, &found, 10).await.unwrap(), b"\0asm");
    let config = store.blob(&found.config, 1000).await.unwrap();
    insta::assert_snapshot!(String::from_utf8(config).unwrap(), @r#"{"created":"2026-11-30T23:21:40Z","author":null,"architecture":"wasm","os":"wasip2","layerDigests":["sha256:cd5d4935a48c0672cb06407bb443bc0087aff947c6b864bac886982c73b3027f"],"component":{"exports":["wasi:cli/run@0.2.0"],"imports":["wasi:cli/environment@0.2.0"],"target":null}}"#);
    insta::assert_snapshot!(String::from_utf8(manifest.bytes).unwrap(), @r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.wasm.config.v0+json","digest":"sha256:9ca6172715e1e68dbb3a55868d7caa0f39f69877b6c221b3ce8ea9671301feca","size":277},"layers":[{"mediaType":"application/wasm","digest":"sha256:cd5d4935a48c0672cb06407bb443bc0087aff947c6b864bac886982c73b3027f","size":4}],"annotations":{"org.opencontainers.image.created":"2026-11-30T23:21:40Z"}}"#);
    // The same input gives the same digest.
    assert_eq!(pushed(&Memory::new()).await.digest, found.manifest.digest);
}

#[tokio::test]
async fn bundle_becomes_the_manifest_that_cosign_writes() {
    let store = Memory::new();
    let layout = Layout::open(&cosign_layout()).unwrap();
    let subject = layout.manifest(&ManifestName::Digest(cosign_subject())).await.unwrap();
    let cosign = layout.referrers(&cosign_subject()).await.unwrap().descriptors.remove(0);
    let cosign = layout.manifest(&ManifestName::Digest(cosign.digest)).await.unwrap();
    let mut theirs: Value = serde_json::from_slice(&cosign.bytes).unwrap();
    let layer: Descriptor = serde_json::from_value(theirs["layers"][0].clone()).unwrap();
    let bundle = layout.blob(&layer, 1000).await.unwrap();
    let digest = attach_bundle(&store, &subject, &bundle, COSIGN_SIGN, now()).await.unwrap();
    let ours = store.manifest(&ManifestName::Digest(digest)).await.unwrap();
    // cosign repeats the artifact type in the configuration's descriptor, where nobody reads it.
    theirs["config"].as_object_mut().unwrap().remove("artifactType");
    assert_eq!(serde_json::from_slice::<Value>(&ours.bytes).unwrap(), theirs);
}

#[tokio::test]
async fn what_is_attached_is_found_in_every_kind_of_store() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::create(dir.path()).unwrap();
    let (new, old) = (Memory::new(), Memory::old());
    let key = SigningKey::generate().unwrap();
    let stores: [&dyn Store; 3] = [&layout, &new, &old];
    for store in stores {
        let subject = pushed(store).await;
        for number in 1..=2 {
            let annotations = super::annotations(&[("n", &number.to_string())]);
            let bundle = signature_bundle(&key, &subject.digest, &annotations).unwrap();
            attach_bundle(store, &subject, &bundle, COSIGN_SIGN, now()).await.unwrap();
            let legacy = legacy_signature(&key, "h.io/a", &subject.digest, &annotations).unwrap();
            for _ in 0..2 {
                attach_legacy_signature(store, &subject.digest, &legacy).await.unwrap();
            }
        }
        let kind = "https://in-toto.io/Link/v1";
        let envelope = legacy_attestation(&key, "h.io/a", &subject.digest, kind, &json!({}));
        let envelope = envelope.unwrap();
        attach_legacy_attestation(store, &subject.digest, kind, &envelope).await.unwrap();
        assert_eq!(count(store, &subject.digest).await, (2, 3), "{}", store.name());
    }
    let fallback = fallback_tag(&pushed(&old).await.digest);
    let entry = &entries(&old, &fallback)[0];
    assert_eq!(entry["artifactType"], media::BUNDLE_V03);
    assert_eq!(entry["annotations"]["dev.sigstore.bundle.predicateType"], COSIGN_SIGN);
    assert!(!new.state.lock().unwrap().tags.contains_key(&fallback));
}

#[tokio::test]
async fn legacy_manifest_is_the_one_that_cosign_writes() {
    let layout = Layout::open(&cosign_layout()).unwrap();
    let name = tag(&format!("{}.sig", fallback_tag(&cosign_subject())));
    let theirs = layout.manifest(&name).await.unwrap();
    let found = discover(&layout, &cosign_subject(), &DiscoverLimits::default()).await;
    let Content::LegacySignature(layer) = &found.candidates[1].content else { panic!() };
    let signature =
        LegacySignature { payload: layer.payload.clone(), signature: layer.signature.clone() };
    let store = Memory::new();
    attach_legacy_signature(&store, &cosign_subject(), &signature).await.unwrap();
    let ours = store.manifest(&name).await.unwrap();
    let read = |raw: &RawManifest| serde_json::from_slice::<Value>(&raw.bytes).unwrap();
    assert_eq!(read(&ours), read(&theirs));
}

/// Attaches a bundle to a store without a referrers API, whose tags `hook` changes in between.
async fn attach_with(
    store: &Memory,
    hook: impl FnMut(&mut super::memory::State, &ManifestName) + Send + 'static,
) -> Result<(), FetchError> {
    let subject = pushed(store).await;
    *store.after_push.lock().unwrap() = Some(Box::new(hook));
    let result = attach_bundle(store, &subject, b"{}", COSIGN_SIGN, now()).await;
    *store.after_push.lock().unwrap() = None;
    result.map(|_| ())
}

/// An index that somebody else puts under the fallback tag.
fn foreign(number: u32) -> (RawManifest, RawManifest) {
    let more = [("annotations", json!({"foreign": number.to_string()}))];
    let manifest = image("a/b", &[], &more);
    let mut body = json!({"schemaVersion": 2, "mediaType": media::INDEX, "x": "kept"});
    body["manifests"] = json!([describe(&manifest)]);
    (super::raw(media::INDEX, &body), manifest)
}

#[tokio::test]
async fn foreign_entries_and_fields_are_kept() {
    let store = Memory::old();
    let subject = pushed(&store).await;
    let fallback = fallback_tag(&subject.digest);
    let (index, manifest) = foreign(0);
    push(&store, &manifest).await;
    push_as(&store, &fallback, &index).await;
    attach_with(&store, |_, _| {}).await.unwrap();
    let after = entries(&store, &fallback);
    assert_eq!(after.len(), 2);
    assert_eq!(after[0], json!(describe(&manifest)));
    let raw = store.manifest(&tag(&fallback)).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&raw.bytes).unwrap()["x"], "kept");
}

/// Puts an index of somebody else in place of the one that was pushed just now, `times` times.
fn overtake(tag: String, times: u32) -> impl FnMut(&mut super::memory::State, &ManifestName) {
    let mut done = 0;
    move |state, pushed| {
        if *pushed == ManifestName::Tag(tag.clone()) && done < times {
            done += 1;
            let (index, manifest) = foreign(done);
            state.tags.insert(tag.clone(), index.digest);
            for raw in [index, manifest] {
                state.manifests.insert(raw.digest, raw);
            }
        }
    }
}

#[tokio::test]
async fn writer_that_was_overtaken_adds_its_entry_again() {
    let store = Memory::old();
    let fallback = fallback_tag(&pushed(&store).await.digest);
    attach_with(&store, overtake(fallback.clone(), 2)).await.unwrap();
    let after = entries(&store, &fallback);
    assert_eq!(after.len(), 2);
    assert_eq!(after[0], json!(describe(&foreign(2).1)));
}

#[tokio::test]
async fn writer_that_is_always_overtaken_gives_up() {
    let store = Memory::old();
    let fallback = fallback_tag(&pushed(&store).await.digest);
    let error = attach_with(&store, overtake(fallback.clone(), u32::MAX)).await.unwrap_err();
    assert_eq!(error.code(), "registry-conflict");
    assert_eq!(store.calls(&format!("push {fallback}")), 5);
}

#[tokio::test]
async fn entries_whose_manifests_are_gone_are_dropped_when_the_registry_minds() {
    let store = Memory::old();
    let fallback = fallback_tag(&pushed(&store).await.digest);
    let (_, gone) = foreign(0);
    let there = image("a/b", &[], &[]);
    push(&store, &there).await;
    let mixed = index(&[describe(&gone), describe(&there)]);
    {
        let mut state = store.state.lock().unwrap();
        state.manifests.insert(mixed.digest, mixed.clone());
        state.tags.insert(fallback.clone(), mixed.digest);
    }
    attach_with(&store, |_, _| {}).await.unwrap();
    let after = entries(&store, &fallback);
    assert_eq!(after.len(), 2);
    assert_eq!(after[0], json!(describe(&there)));
}

#[tokio::test]
async fn tag_of_another_kind_or_an_outage_stops_the_push() {
    let store = Memory::old();
    let subject = pushed(&store).await;
    let fallback = fallback_tag(&subject.digest);
    push_as(&store, &fallback, &image("a/b", &[], &[])).await;
    let error = attach_with(&store, |_, _| {}).await.unwrap_err();
    assert_eq!(error.code(), "registry-protocol");
    let down = FetchError::Unavailable { registry: "r".to_owned(), reason: "503".to_owned() };
    store.fault(&fallback, down.clone());
    assert_eq!(attach_with(&store, |_, _| {}).await.unwrap_err(), down);
    let sig = format!("{fallback}.sig");
    store.fault(&sig, down.clone());
    let signature = LegacySignature { payload: b"p".to_vec(), signature: "s".to_owned() };
    let error = attach_legacy_signature(&store, &subject.digest, &signature).await.unwrap_err();
    assert_eq!(error, down);
    assert_eq!(store.calls(&format!("push {sig}")), 0);
}

#[tokio::test]
async fn copy_brings_along_what_is_attached() {
    let from = Layout::open(&cosign_layout()).unwrap();
    let limits = CopyLimits::default();
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::create(dir.path()).unwrap();
    let (new, old) = (Memory::new(), Memory::old());
    let stores: [&dyn Store; 3] = [&layout, &new, &old];
    for to in stores {
        let copied =
            copy(&from, to, &tag("demo"), &tag("mine"), WithReferrers::Yes, &limits).await.unwrap();
        assert_eq!((copied.digest, copied.referrers, copied.legacy), (cosign_subject(), 1, 1));
        assert_eq!(count(to, &cosign_subject()).await, (1, 1), "{}", to.name());
        let found = resolve(to, &tag("mine"), OlderTypes::Refused).await.unwrap();
        assert!(component_bytes(to, &found, 1000).await.is_ok());
    }
    let bare = Memory::new();
    copy(&from, &bare, &tag("demo"), &tag("mine"), WithReferrers::No, &limits).await.unwrap();
    assert_eq!(count(&bare, &cosign_subject()).await, (0, 0));
    // What the target has already stays.
    let signature = LegacySignature { payload: b"own".to_vec(), signature: "own".to_owned() };
    attach_legacy_signature(&bare, &cosign_subject(), &signature).await.unwrap();
    for _ in 0..2 {
        copy(&from, &bare, &tag("demo"), &tag("mine"), WithReferrers::Yes, &limits).await.unwrap();
        assert_eq!(count(&bare, &cosign_subject()).await, (1, 2));
    }
}

#[tokio::test]
async fn referrer_that_is_copied_by_itself_is_listed() {
    let (from, to) = (Memory::new(), Memory::old());
    let subject = pushed(&from).await;
    let digest = attach_bundle(&from, &subject, b"{}", COSIGN_SIGN, now()).await.unwrap();
    let name = ManifestName::Digest(digest);
    let limits = CopyLimits::default();
    copy(&from, &to, &name, &name, WithReferrers::No, &limits).await.unwrap();
    assert_eq!(count(&to, &subject.digest).await, (1, 0));
}

#[tokio::test]
async fn index_is_copied_with_its_manifests_and_within_limits() {
    let (from, to) = (Memory::new(), Memory::new());
    let child = pushed(&from).await;
    let parent = index(&[describe(&child)]);
    push_as(&from, "all", &parent).await;
    attach_bundle(&from, &child, b"{}", COSIGN_SIGN, now()).await.unwrap();
    let limits = CopyLimits::default();
    let name = ManifestName::Digest(parent.digest);
    let copied = copy(&from, &to, &tag("all"), &name, WithReferrers::Yes, &limits).await.unwrap();
    assert_eq!((copied.digest, copied.referrers), (parent.digest, 1));
    assert_eq!(to.manifest(&name).await.unwrap(), parent);
    assert_eq!(count(&to, &child.digest).await, (1, 0));
    let small = CopyLimits { max_blob_bytes: 3 };
    let error = copy(&from, &to, &tag("all"), &name, WithReferrers::Yes, &small).await;
    assert_eq!(error.unwrap_err().code(), "registry-limit");
    let nested = index(&[describe(&parent)]);
    push_as(&from, "nested", &nested).await;
    let error = copy(&from, &to, &tag("nested"), &tag("n"), WithReferrers::No, &limits).await;
    assert_eq!(error.unwrap_err().code(), "reference-index-ambiguous");
    assert!(to.manifest(&tag("n")).await.is_err());
}
