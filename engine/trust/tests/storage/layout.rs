//! Image layouts on disk.

use std::path::Path;
use std::sync::Arc;

use ambit_engine::digest::Digest;
use ambit_trust::layout::{Layout, fallback_tag, is_evidence_tag};
use ambit_trust::oci::{Descriptor, ManifestName, SubjectIndexed, media};
use ambit_trust::store::Store;
use serde_json::{Value, json};

use super::{cosign_layout, cosign_subject, describe, image, index, push, push_as, tag};

fn new() -> (tempfile::TempDir, Layout) {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::create(dir.path()).unwrap();
    (dir, layout)
}

fn blob_path(dir: &Path, digest: &Digest) -> std::path::PathBuf {
    dir.join("blobs/sha256").join(&digest.to_string()["sha256:".len()..])
}

fn index_json(dir: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("index.json")).unwrap()).unwrap()
}

#[tokio::test]
async fn what_is_pushed_is_read_again_after_reopening() {
    let (dir, layout) = new();
    let layer = layout.push_blob(media::WASM_LAYER, b"bytes").await.unwrap();
    let manifest = image(media::WASM_CONFIG, std::slice::from_ref(&layer), &[]);
    push_as(&layout, "1.0", &manifest).await;
    let layout = Layout::open(dir.path()).unwrap();
    assert_eq!(layout.manifest(&tag("1.0")).await.unwrap(), manifest);
    let by_digest = layout.manifest(&ManifestName::Digest(manifest.digest)).await.unwrap();
    assert_eq!(by_digest, manifest);
    assert_eq!(layout.blob(&layer, 5).await.unwrap(), b"bytes");
    assert_eq!(layout.blob(&layer, 4).await.unwrap_err().code(), "registry-limit");
    assert_eq!(layout.manifest(&tag("2.0")).await.unwrap_err().code(), "registry-not-found");
    let other = ManifestName::Digest(Digest::of(b"other"));
    assert_eq!(layout.manifest(&other).await.unwrap_err().code(), "registry-not-found");
    let wrong = layout.push_manifest(&other, media::MANIFEST, &manifest.bytes).await;
    assert_eq!(wrong.unwrap_err().code(), "registry-digest-mismatch");
}

#[tokio::test]
async fn tag_moves_and_other_entries_stay_as_they_were() {
    let (dir, layout) = new();
    let mut body = index_json(dir.path());
    body["manifests"] = json!([{
        "mediaType": "application/vnd.example+json", "digest": Digest::of(b"x"), "size": 1,
        "urls": ["https://example.test"], "annotations": {"org.opencontainers.image.ref.name": "x"},
    }]);
    body["annotations"] = json!({"keep": "this"});
    std::fs::write(dir.path().join("index.json"), body.to_string()).unwrap();
    let first = image(media::WASM_CONFIG, &[], &[("annotations", json!({"n": "1"}))]);
    let second = image(media::WASM_CONFIG, &[], &[("annotations", json!({"n": "2"}))]);
    push_as(&layout, "latest", &first).await;
    push_as(&layout, "latest", &second).await;
    assert_eq!(layout.manifest(&tag("latest")).await.unwrap(), second);
    let after = index_json(dir.path());
    assert_eq!(after["annotations"], body["annotations"]);
    assert_eq!(after["manifests"][0], body["manifests"][0]);
    assert_eq!(after["manifests"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn changed_blob_is_an_error_and_a_push_mends_it() {
    let (dir, layout) = new();
    let blob = layout.push_blob("a/b", b"right").await.unwrap();
    std::fs::write(blob_path(dir.path(), &blob.digest), b"wrong").unwrap();
    let error = layout.blob(&blob, 100).await.unwrap_err();
    assert_eq!(error.code(), "registry-digest-mismatch");
    layout.push_blob("a/b", b"right").await.unwrap();
    assert_eq!(layout.blob(&blob, 100).await.unwrap(), b"right");
    let longer = Descriptor { size: 6, ..blob.clone() };
    assert_eq!(layout.blob(&longer, 100).await.unwrap_err().code(), "registry-protocol");
}

#[cfg(unix)]
#[tokio::test]
async fn links_out_of_the_layout_and_devices_are_refused() {
    use std::os::unix::fs::symlink;
    let (dir, layout) = new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, b"secret").unwrap();
    let blob = Descriptor::of("a/b", b"secret");
    symlink(&secret, blob_path(dir.path(), &blob.digest)).unwrap();
    assert_eq!(layout.blob(&blob, 100).await.unwrap_err().code(), "layout-invalid");
    // A link within the layout is as good as the file.
    let inside = layout.push_blob("a/b", b"inside").await.unwrap();
    std::fs::rename(blob_path(dir.path(), &inside.digest), dir.path().join("moved")).unwrap();
    symlink(dir.path().join("moved"), blob_path(dir.path(), &inside.digest)).unwrap();
    assert_eq!(layout.blob(&inside, 100).await.unwrap(), b"inside");
    let device = Descriptor { size: 0, ..Descriptor::of("a/b", b"device") };
    symlink("/dev/zero", blob_path(dir.path(), &device.digest)).unwrap();
    assert_eq!(layout.blob(&device, 100).await.unwrap_err().code(), "layout-invalid");
    let folder = Descriptor::of("a/b", b"folder");
    std::fs::create_dir(blob_path(dir.path(), &folder.digest)).unwrap();
    assert_eq!(layout.blob(&folder, 100).await.unwrap_err().code(), "layout-invalid");
    let pipe = Descriptor::of("a/b", b"pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(blob_path(dir.path(), &pipe.digest))
        .status()
        .is_ok_and(|status| status.success());
    if made {
        assert_eq!(layout.blob(&pipe, 100).await.unwrap_err().code(), "layout-invalid");
    }
    std::fs::remove_file(dir.path().join("index.json")).unwrap();
    symlink(&secret, dir.path().join("index.json")).unwrap();
    assert_eq!(layout.manifest(&tag("x")).await.unwrap_err().code(), "layout-invalid");
}

#[test]
fn what_is_no_layout_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let code = || Layout::open(dir.path()).unwrap_err().code();
    assert_eq!(code(), "layout-invalid");
    for text in ["", "{}", "[]", r#"{"imageLayoutVersion":"2.0.0"}"#] {
        std::fs::write(dir.path().join("oci-layout"), text).unwrap();
        assert_eq!(code(), "layout-invalid", "{text}");
    }
    let missing = Layout::open(&dir.path().join("missing")).unwrap_err();
    assert_eq!(missing.code(), "registry-not-found");
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("notes.txt"), "mine").unwrap();
    assert_eq!(Layout::create(other.path()).unwrap_err().code(), "layout-invalid");
}

#[tokio::test]
async fn damaged_index_is_an_error_and_no_answer() {
    let (dir, layout) = new();
    let entry = json!({"mediaType": media::MANIFEST, "digest": Digest::of(b"gone"), "size": 4});
    for text in [
        "".to_owned(),
        "[]".to_owned(),
        json!({"schemaVersion": 1, "manifests": []}).to_string(),
        json!({"schemaVersion": 2, "manifests": {}}).to_string(),
        json!({"schemaVersion": 2, "manifests": [{"digest": "sha256:00", "size": 1}]}).to_string(),
        r#"{"schemaVersion":2,"manifests":[],"manifests":[]}"#.to_owned(),
        // What the index names and what isn't there could be a referrer.
        json!({"schemaVersion": 2, "manifests": [entry]}).to_string(),
    ] {
        std::fs::write(dir.path().join("index.json"), &text).unwrap();
        let error = layout.referrers(&Digest::of(b"subject")).await.unwrap_err();
        assert_eq!(error.code(), "layout-invalid", "{text}");
    }
    std::fs::remove_file(dir.path().join("index.json")).unwrap();
    assert_eq!(layout.manifest(&tag("x")).await.unwrap_err().code(), "layout-invalid");
}

#[tokio::test]
async fn tag_of_two_manifests_is_an_error() {
    let (dir, layout) = new();
    let manifests = [image("a/b", &[], &[]), image("a/c", &[], &[])];
    let mut entries = Vec::new();
    for manifest in &manifests {
        push(&layout, manifest).await;
        let mut entry = describe(manifest);
        entry.annotations = super::annotations(&[("org.opencontainers.image.ref.name", "x")]);
        entries.push(entry);
    }
    let body = json!({"schemaVersion": 2, "manifests": entries});
    std::fs::write(dir.path().join("index.json"), body.to_string()).unwrap();
    assert_eq!(layout.manifest(&tag("x")).await.unwrap_err().code(), "layout-invalid");
}

#[tokio::test]
async fn referrers_are_found_by_their_subject_and_by_the_fallback_tag() {
    let (_dir, layout) = new();
    let subject = image(media::WASM_CONFIG, &[], &[]);
    push_as(&layout, "app", &subject).await;
    let refers = |number: &str| {
        image(
            media::EMPTY,
            &[],
            &[
                ("subject", json!(describe(&subject))),
                ("artifactType", json!("a/b")),
                ("annotations", json!({"n": number})),
            ],
        )
    };
    let (first, second) = (refers("1"), refers("2"));
    let name = ManifestName::Digest(first.digest);
    let indexed = layout.push_manifest(&name, media::MANIFEST, &first.bytes).await.unwrap();
    assert_eq!(indexed, SubjectIndexed::ByStore);
    let of_another = image(media::EMPTY, &[], &[("subject", json!(Descriptor::of("a/b", b"x")))]);
    push(&layout, &of_another).await;
    push(&layout, &second).await;
    let third = image(media::EMPTY, &[], &[("annotations", json!({"n": "3"}))]);
    push(&layout, &third).await;
    let fallback = index(&[describe(&first), describe(&third)]);
    push_as(&layout, &fallback_tag(&subject.digest), &fallback).await;
    let found = layout.referrers(&subject.digest).await.unwrap();
    let digests: Vec<Digest> = found.descriptors.iter().map(|d| d.digest).collect();
    assert_eq!(digests, [first.digest, second.digest, third.digest]);
    assert_eq!(found.descriptors[0].artifact_type.as_deref(), Some("a/b"));
    assert_eq!(found.descriptors[0].annotations["n"], "1");
    assert!(!found.truncated);
}

#[tokio::test]
async fn many_referrers_are_truncated_and_say_so() {
    let (_dir, layout) = new();
    let subject = Descriptor::of(media::MANIFEST, b"subject");
    for number in 0..66 {
        let annotations = json!({"n": number.to_string()});
        let more = [("subject", json!(subject)), ("annotations", annotations)];
        push(&layout, &image(media::EMPTY, &[], &more)).await;
    }
    let found = layout.referrers(&subject.digest).await.unwrap();
    assert_eq!((found.descriptors.len(), found.truncated), (64, true));
}

#[tokio::test]
async fn sole_manifest_is_found_beside_its_signatures() {
    let layout = Layout::open(&cosign_layout()).unwrap();
    assert_eq!(layout.sole().await.unwrap(), ManifestName::Digest(cosign_subject()));
    let (_dir, layout) = new();
    assert_eq!(layout.sole().await.unwrap_err().code(), "registry-not-found");
    let child = image(media::WASM_CONFIG, &[], &[]);
    push(&layout, &child).await;
    let parent = index(&[describe(&child)]);
    push_as(&layout, "all", &parent).await;
    assert_eq!(layout.sole().await.unwrap(), ManifestName::Digest(parent.digest));
    push_as(&layout, "other", &image("a/b", &[], &[])).await;
    assert_eq!(layout.sole().await.unwrap_err().code(), "layout-invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pushes_at_once_lose_nothing() {
    let (dir, layout) = new();
    let layout = Arc::new(layout);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..24 {
        // Each opens the layout for itself, as processes do: the lock is on the file.
        let layout = Layout::create(dir.path()).unwrap();
        tasks.spawn(async move {
            let manifest = image("a/b", &[], &[("annotations", json!({"n": number.to_string()}))]);
            push_as(&layout, &format!("t{number}"), &manifest).await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    for number in 0..24 {
        layout.manifest(&tag(&format!("t{number}"))).await.unwrap();
    }
    let names: Vec<String> = std::fs::read_dir(dir.path().join("blobs/sha256"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
}

#[test]
fn evidence_tags_are_told_from_others() {
    let stem = fallback_tag(&Digest::of(b"x"));
    for (text, expected) in [
        (stem.clone(), true),
        (format!("{stem}.sig"), true),
        (format!("{stem}.att"), true),
        (format!("mirror-{stem}.sig"), true),
        (format!("mirror-{stem}"), false),
        (format!("{stem}.sbom"), false),
        (format!("{stem}0"), false),
        ("sha256-00.sig".to_owned(), false),
        ("é.sig".to_owned(), false),
        ("latest".to_owned(), false),
    ] {
        assert_eq!(is_evidence_tag(&text), expected, "{text}");
    }
}
