//! What is found about a digest.

use ambit_engine::digest::Digest;
use ambit_trust::candidate::{Candidate, Content};
use ambit_trust::discover::{DiscoverLimits, Discovery, Source, annotation, discover, discover_in};
use ambit_trust::error::FetchError;
use ambit_trust::layout::Layout;
use ambit_trust::oci::{Descriptor, RawManifest, media};
use ambit_trust::store::Store as _;
use serde_json::{Value, json};

use super::memory::Memory;
use super::{cosign_layout, cosign_subject, describe, image, index, push, push_as};

fn subject() -> RawManifest {
    image(media::WASM_CONFIG, &[], &[])
}

/// A manifest that refers to the subject, with one layer of some bytes.
async fn refer(store: &Memory, artifact: Option<&str>, layer: &str, bytes: &[u8]) -> RawManifest {
    let layer = store.push_blob(layer, bytes).await.unwrap();
    let mut more = vec![("subject", json!(describe(&subject())))];
    more.extend(artifact.map(|artifact| ("artifactType", json!(artifact))));
    let raw = image(media::EMPTY, &[layer], &more);
    push(store, &raw).await;
    raw
}

/// Puts layers under a legacy tag; each has its bytes and its signature.
async fn legacy(store: &Memory, prefix: &str, suffix: &str, kind: &str, layers: &[(&str, &str)]) {
    let mut descriptors = Vec::new();
    for (bytes, signature) in layers {
        let mut layer = store.push_blob(kind, bytes.as_bytes()).await.unwrap();
        layer.annotations = super::annotations(&[(annotation::SIGNATURE, signature)]);
        descriptors.push(layer);
    }
    let stem = subject().digest.to_string().replace(':', "-");
    push_as(store, &format!("{prefix}{stem}.{suffix}"), &image("a/b", &descriptors, &[])).await;
}

async fn found(store: &Memory) -> Discovery {
    discover(store, &subject().digest, &DiscoverLimits::default()).await
}

fn texts(candidates: &[Candidate]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    candidates
        .iter()
        .map(|candidate| match &candidate.content {
            Content::Bundle(bytes) => format!("bundle {}", text(bytes)),
            Content::LegacySignature(layer) => {
                format!("sig {} {}", text(&layer.payload), layer.signature)
            }
            Content::LegacyAttestation(layer) => format!("att {}", text(&layer.payload)),
            Content::Unreadable(_) => "unreadable".to_owned(),
        })
        .collect()
}

fn codes(discovery: &Discovery) -> Vec<&'static str> {
    discovery.problems.iter().map(FetchError::code).collect()
}

#[tokio::test]
async fn what_cosign_wrote_is_found_in_both_forms() {
    let layout = Layout::open(&cosign_layout()).unwrap();
    let found = discover(&layout, &cosign_subject(), &DiscoverLimits::default()).await;
    assert_eq!((found.problems.len(), found.truncated), (0, false));
    let [bundle, signature] = found.candidates.as_slice() else { panic!("{found:?}") };
    assert!(bundle.place.starts_with("sha256:7d2f2aa9"), "{}", bundle.place);
    let Content::Bundle(bytes) = &bundle.content else { panic!("{bundle:?}") };
    assert!(bytes.starts_with(br#"{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json""#));
    assert!(signature.place.ends_with(".sig layer 1"), "{}", signature.place);
    let Content::LegacySignature(layer) = &signature.content else { panic!("{signature:?}") };
    assert!(layer.signature.starts_with("MEYCIQDDlGN"));
    assert!(layer.certificate.is_none() && layer.bundle.is_none());
}

#[tokio::test]
async fn nothing_is_an_answer() {
    assert_eq!(found(&Memory::new()).await, Discovery::default());
    assert_eq!(found(&Memory::old()).await, Discovery::default());
}

#[tokio::test]
async fn manifest_counts_and_its_descriptor_does_not() {
    let store = Memory::old();
    let bundle = refer(&store, Some(media::BUNDLE_V03), media::BUNDLE_V03, b"b").await;
    let sbom = refer(&store, Some("application/spdx+json"), "application/spdx+json", b"s").await;
    // Descriptors as go-containerregistry writes them, and one that lies the other way.
    let empty = Descriptor { artifact_type: Some(media::EMPTY.to_owned()), ..describe(&bundle) };
    let lie = Descriptor { artifact_type: Some(media::BUNDLE_V03.to_owned()), ..describe(&sbom) };
    let fallback = subject().digest.to_string().replace(':', "-");
    push_as(&store, &fallback, &index(&[empty, lie])).await;
    let found = found(&store).await;
    assert_eq!(texts(&found.candidates), ["bundle b"]);
    assert_eq!(found.problems, []);
}

#[tokio::test]
async fn every_place_that_names_a_bundle_counts() {
    let store = Memory::new();
    let older = "application/vnd.dev.sigstore.bundle+json;version=0.1";
    refer(&store, None, media::BUNDLE_V03, b"by layer").await;
    refer(&store, Some(older), older, b"older").await;
    refer(&store, Some(media::BUNDLE_V03), "text/plain", b"broken").await;
    let near = "application/vnd.dev.sigstore.bundles+json";
    refer(&store, Some(near), near, b"foreign").await;
    let two = [Descriptor::of(media::BUNDLE_V03, b"1"), Descriptor::of(media::BUNDLE_V03, b"2")];
    push(&store, &image(media::EMPTY, &two, &[("subject", json!(describe(&subject())))])).await;
    let mut texts = texts(&found(&store).await.candidates);
    texts.sort();
    assert_eq!(texts, ["bundle by layer", "bundle older", "unreadable", "unreadable"]);
}

#[tokio::test]
async fn legacy_tags_hold_signatures_and_attestations() {
    let store = Memory::new();
    legacy(&store, "", "sig", media::SIMPLE_SIGNING, &[("p", "1"), ("p", "2"), ("p", "1")]).await;
    legacy(&store, "", "att", media::DSSE, &[("e", "")]).await;
    let found = found(&store).await;
    // One payload under two signatures is two, and under the same one it is one.
    assert_eq!(texts(&found.candidates), ["sig p 1", "sig p 2", "att e"]);
    let odd = Memory::new();
    legacy(&odd, "", "sig", "text/plain", &[("p", "1")]).await;
    assert_eq!(texts(&self::found(&odd).await.candidates), ["unreadable"]);
}

#[tokio::test]
async fn tag_that_is_no_image_is_unreadable() {
    let store = Memory::new();
    let stem = subject().digest.to_string().replace(':', "-");
    push_as(&store, &format!("{stem}.sig"), &index(&[])).await;
    push_as(&store, &format!("{stem}.att"), &super::raw(media::MANIFEST, &Value::Null)).await;
    assert_eq!(texts(&found(&store).await.candidates), ["unreadable", "unreadable"]);
}

#[tokio::test]
async fn sources_are_merged_and_the_same_evidence_is_there_once() {
    let (own, other) = (Memory::new(), Memory::new());
    for (store, prefix) in [(&own, ""), (&other, "team-")] {
        refer(store, Some(media::BUNDLE_V03), media::BUNDLE_V03, b"same").await;
        legacy(store, prefix, "sig", media::SIMPLE_SIGNING, &[("p", "same"), ("p", prefix)]).await;
    }
    let sources = [Source::new(&own), Source { store: &other, tag_prefix: "team-" }];
    let limits = DiscoverLimits::default();
    let found = discover_in(&sources, &subject().digest, &limits).await;
    let expected = ["bundle same", "sig p same", "sig p ", "sig p team-"];
    assert_eq!(texts(&found.candidates), expected);
}

#[tokio::test]
async fn outage_is_a_problem_and_hides_nothing() {
    let outage = || FetchError::Unavailable {
        registry: "registry.test".to_owned(),
        reason: "503".to_owned(),
    };
    let stem = subject().digest.to_string().replace(':', "-");
    for what in ["referrers".to_owned(), format!("{stem}.sig"), format!("{stem}.att")] {
        let store = Memory::new();
        refer(&store, None, media::BUNDLE_V03, b"b").await;
        legacy(&store, "", "sig", media::SIMPLE_SIGNING, &[("p", "1")]).await;
        store.fault(&what, outage());
        let found = found(&store).await;
        assert_eq!(codes(&found), ["registry-unavailable"], "{what}");
        assert!(!found.candidates.is_empty(), "{what}");
    }
    for what in ["manifest", "blob"] {
        let store = Memory::new();
        let gone = refer(&store, None, media::BUNDLE_V03, b"gone").await;
        refer(&store, None, media::BUNDLE_V03, b"there").await;
        let name = match what {
            "manifest" => gone.digest,
            _ => Digest::of(b"gone"),
        };
        store.fault(&name.to_string(), FetchError::NotFound { what: name.to_string() });
        let found = found(&store).await;
        assert_eq!(codes(&found), ["registry-not-found"], "{what}");
        assert_eq!(texts(&found.candidates), ["bundle there"], "{what}");
    }
}

#[tokio::test]
async fn limits_are_kept_and_said() {
    let store = Memory::new();
    for number in 0..5 {
        refer(&store, None, media::BUNDLE_V03, format!("bundle number {number}").as_bytes()).await;
    }
    let layers: Vec<(String, String)> =
        (0..5).map(|n| ("payload".to_owned(), n.to_string())).collect();
    let layers: Vec<(&str, &str)> = layers.iter().map(|(p, s)| (p.as_str(), s.as_str())).collect();
    legacy(&store, "", "sig", media::SIMPLE_SIGNING, &layers).await;
    let with = async |limits: DiscoverLimits| discover(&store, &subject().digest, &limits).await;
    let count = |found: &Discovery, start: &str| {
        texts(&found.candidates).iter().filter(|text| text.starts_with(start)).count()
    };
    let all = with(DiscoverLimits::default()).await;
    assert_eq!((all.candidates.len(), all.truncated), (10, false));

    let few = with(DiscoverLimits { max_referrers: 3, ..Default::default() }).await;
    assert_eq!((count(&few, "bundle"), few.truncated), (3, true));
    let few = with(DiscoverLimits { max_layers: 2, ..Default::default() }).await;
    assert_eq!((count(&few, "sig"), few.truncated), (2, true));
    let small = with(DiscoverLimits { max_blob_bytes: 10, ..Default::default() }).await;
    assert_eq!((count(&small, "sig"), count(&small, "bundle")), (5, 0));
    assert_eq!(codes(&small), ["registry-limit"; 5]);
    let little = with(DiscoverLimits { max_total_bytes: 4000, ..Default::default() }).await;
    assert!(little.truncated && little.candidates.len() < 10);
    assert_eq!(codes(&little), ["registry-limit"]);
    // The order of arrival doesn't matter.
    let one = with(DiscoverLimits { at_once: 1, ..Default::default() }).await;
    assert_eq!(one, all);
}

#[tokio::test]
async fn descriptor_with_another_size_is_a_problem() {
    let store = Memory::old();
    let bundle = refer(&store, None, media::BUNDLE_V03, b"b").await;
    let wrong = Descriptor { size: 1, ..describe(&bundle) };
    let huge = Descriptor { size: 5 << 20, ..describe(&subject()) };
    let fallback = subject().digest.to_string().replace(':', "-");
    push(&store, &subject()).await;
    push_as(&store, &fallback, &index(&[wrong, huge])).await;
    let found = found(&store).await;
    assert_eq!(codes(&found), ["registry-limit", "registry-protocol"]);
    assert!(found.candidates.is_empty());
}
