//! The cache on disk, and the store that reads through it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use ambit_engine::digest::Digest;
use ambit_trust::cache::{Cache, CachedStore};
use ambit_trust::discover::{DiscoverLimits, discover};
use ambit_trust::error::FetchError;
use ambit_trust::layout::Layout;
use ambit_trust::oci::{Descriptor, ManifestName, media};
use ambit_trust::store::Store;
use serde_json::json;
use tokio::sync::Semaphore;

use super::memory::Memory;
use super::{cosign_layout, cosign_subject, describe, image, index, push, push_as, tag};

const LARGE: u64 = 1 << 30;

/// Room for six of the blobs that the other processes write, so that they evict all the time.
const SMALL: u64 = 1 << 20;

fn path(dir: &Path, kind: &str, digest: &Digest) -> PathBuf {
    dir.join(kind).join(&digest.to_string()["sha256:".len()..])
}

fn online(store: &Arc<Memory>, cache: &Arc<Cache>) -> CachedStore {
    CachedStore::online(Arc::<Memory>::clone(store), Arc::clone(cache))
}

/// A repository with one blob, and a cache.
async fn setting(bytes: &[u8]) -> (Arc<Memory>, Descriptor, tempfile::TempDir, Arc<Cache>) {
    let store = Arc::new(Memory::new());
    let blob = store.push_blob("a/b", bytes).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cache = Arc::new(Cache::open(dir.path(), LARGE).unwrap());
    (store, blob, dir, cache)
}

#[tokio::test]
async fn content_is_fetched_once_and_outlives_the_process() {
    let (store, blob, dir, cache) = setting(b"bytes").await;
    let manifest = image(media::WASM_CONFIG, &[], &[]);
    push(&*store, &manifest).await;
    let name = ManifestName::Digest(manifest.digest);
    let first = online(&store, &cache);
    for _ in 0..2 {
        assert_eq!(first.blob(&blob, 10).await.unwrap(), b"bytes");
        assert_eq!(first.manifest(&name).await.unwrap(), manifest);
    }
    assert_eq!((store.calls("blob"), store.calls("manifest")), (1, 1));
    let later = Arc::new(Cache::open(dir.path(), LARGE).unwrap());
    let offline = CachedStore::offline(&store.name(), later);
    assert_eq!(offline.blob(&blob, 10).await.unwrap(), b"bytes");
    assert_eq!(offline.manifest(&name).await.unwrap(), manifest);
    let other = Descriptor::of("a/b", b"other");
    assert_eq!(offline.blob(&other, 10).await.unwrap_err().code(), "registry-offline");
}

#[tokio::test]
async fn wrong_file_counts_as_absent_and_is_replaced() {
    let (store, blob, dir, cache) = setting(b"bytes").await;
    let manifest = image(media::WASM_CONFIG, &[], &[]);
    push(&*store, &manifest).await;
    let name = ManifestName::Digest(manifest.digest);
    let through = online(&store, &cache);
    through.blob(&blob, 10).await.unwrap();
    through.manifest(&name).await.unwrap();
    let blob_path = path(dir.path(), "blobs", &blob.digest);
    let manifest_path = path(dir.path(), "manifests", &manifest.digest);
    let longer = vec![b'x'; 100];
    for wrong in [b"bytez".as_slice(), b"", b"no line feed", b"a/b\n{}", &longer, b"\xff\xff\n"] {
        std::fs::write(&blob_path, wrong).unwrap();
        std::fs::write(&manifest_path, wrong).unwrap();
        let offline = CachedStore::offline(&store.name(), Arc::clone(&cache));
        assert_eq!(offline.blob(&blob, 10).await.unwrap_err().code(), "registry-offline");
        assert_eq!(offline.manifest(&name).await.unwrap_err().code(), "registry-offline");
        assert!(!blob_path.exists() && !manifest_path.exists());
        assert_eq!(through.blob(&blob, 10).await.unwrap(), b"bytes");
        assert_eq!(through.manifest(&name).await.unwrap(), manifest);
    }
    assert_eq!(cache.take_problem(), None);
}

#[tokio::test]
async fn size_is_checked_before_and_after() {
    let (store, blob, _dir, cache) = setting(b"bytes").await;
    let through = online(&store, &cache);
    assert_eq!(through.blob(&blob, 4).await.unwrap_err().code(), "registry-limit");
    assert_eq!(store.calls("blob"), 0);
    let longer = Descriptor { size: 6, ..blob.clone() };
    assert_eq!(through.blob(&longer, 10).await.unwrap_err().code(), "registry-protocol");
    assert_eq!(through.blob(&blob, 5).await.unwrap(), b"bytes");
}

#[tokio::test]
async fn tags_are_asked_for_each_time_and_offline_only_evidence_has_an_answer() {
    let (store, _, _dir, cache) = setting(b"bytes").await;
    let manifest = image(media::WASM_CONFIG, &[], &[]);
    let stem = manifest.digest.to_string().replace(':', "-");
    push_as(&*store, "1.0", &manifest).await;
    let signatures = image("a/b", &[], &[]);
    push_as(&*store, &format!("{stem}.sig"), &signatures).await;
    push_as(&*store, &stem, &index(&[])).await;
    let through = online(&store, &cache);
    let offline = CachedStore::offline(&store.name(), Arc::clone(&cache));
    let sig = tag(&format!("{stem}.sig"));
    let att = tag(&format!("{stem}.att"));
    assert_eq!(offline.manifest(&sig).await.unwrap_err().code(), "registry-offline");
    for _ in 0..2 {
        through.manifest(&tag("1.0")).await.unwrap();
        through.manifest(&sig).await.unwrap();
        through.manifest(&tag(&stem)).await.unwrap();
        through.manifest(&att).await.unwrap_err();
    }
    assert_eq!(store.calls("manifest 1.0"), 2);
    assert_eq!(offline.manifest(&tag("1.0")).await.unwrap_err().code(), "registry-offline");
    assert_eq!(offline.manifest(&sig).await.unwrap(), signatures);
    assert_eq!(offline.manifest(&tag(&stem)).await.unwrap().media_type, media::INDEX);
    // That there was no such tag is remembered too; what was never asked has no answer.
    assert_eq!(offline.manifest(&att).await.unwrap_err().code(), "registry-not-found");
    let elsewhere = CachedStore::offline("registry.test/other", Arc::clone(&cache));
    assert_eq!(elsewhere.manifest(&sig).await.unwrap_err().code(), "registry-offline");
    // An outage is an error: what was seen before must not stand in for it.
    let down = FetchError::Unavailable { registry: "r".to_owned(), reason: "503".to_owned() };
    store.fault(&format!("{stem}.sig"), down.clone());
    assert_eq!(through.manifest(&sig).await.unwrap_err(), down);
}

#[tokio::test]
async fn referrers_are_those_that_were_last_seen() {
    let (store, _, _dir, cache) = setting(b"bytes").await;
    let subject = image(media::WASM_CONFIG, &[], &[]);
    let through = online(&store, &cache);
    let offline = CachedStore::offline(&store.name(), Arc::clone(&cache));
    let code = offline.referrers(&subject.digest).await.unwrap_err().code();
    assert_eq!(code, "registry-offline");
    assert_eq!(through.referrers(&subject.digest).await.unwrap().descriptors, []);
    assert_eq!(offline.referrers(&subject.digest).await.unwrap().descriptors, []);
    push(&*store, &image(media::EMPTY, &[], &[("subject", json!(describe(&subject)))])).await;
    let seen = through.referrers(&subject.digest).await.unwrap();
    assert_eq!(seen.descriptors.len(), 1);
    assert_eq!(offline.referrers(&subject.digest).await.unwrap(), seen);
}

#[tokio::test]
async fn discovery_gives_the_same_offline() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Arc::new(Cache::open(dir.path(), LARGE).unwrap());
    let layout = Arc::new(Layout::open(&cosign_layout()).unwrap());
    let name = layout.name();
    let limits = DiscoverLimits::default();
    let through = CachedStore::online(layout, Arc::clone(&cache));
    let seen = discover(&through, &cosign_subject(), &limits).await;
    assert_eq!((seen.candidates.len(), seen.problems.len()), (2, 0));
    let offline = CachedStore::offline(&name, cache);
    assert_eq!(discover(&offline, &cosign_subject(), &limits).await, seen);
    let unseen = discover(&offline, &Digest::of(b"unseen"), &limits).await;
    assert_eq!(unseen.problems.len(), 3);
}

#[tokio::test]
async fn nothing_is_pushed_offline() {
    let (store, _, _dir, cache) = setting(b"bytes").await;
    let offline = CachedStore::offline(&store.name(), Arc::clone(&cache));
    assert_eq!(offline.push_blob("a/b", b"x").await.unwrap_err().code(), "registry-offline");
    let pushed = offline.push_manifest(&tag("x"), media::MANIFEST, b"{}").await;
    assert_eq!(pushed.unwrap_err().code(), "registry-offline");
    let through = online(&store, &cache);
    let blob = through.push_blob("a/b", b"x").await.unwrap();
    assert_eq!(through.blob(&blob, 1).await.unwrap(), b"x");
}

#[tokio::test]
async fn tasks_that_ask_at_once_share_one_fetch_and_its_error() {
    for fails in [false, true] {
        let mut store = Memory::new();
        let gate = Arc::new(Semaphore::new(0));
        store.gate = Some(Arc::clone(&gate));
        let blob = match fails {
            true => Descriptor::of("a/b", b"absent"),
            false => store.push_blob("a/b", b"bytes").await.unwrap(),
        };
        let store = Arc::new(store);
        let dir = tempfile::tempdir().unwrap();
        let cache = Arc::new(Cache::open(dir.path(), LARGE).unwrap());
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (through, blob) = (online(&store, &cache), blob.clone());
            tasks.spawn(async move { through.blob(&blob, 10).await.is_ok() });
        }
        while store.calls("blob") == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(100);
        while let Some(done) = tasks.join_next().await {
            assert_eq!(done.unwrap(), !fails);
        }
        assert_eq!(store.calls("blob"), 1);
        // An error is kept for nobody who comes later.
        let _ = online(&store, &cache).blob(&blob, 10).await;
        assert_eq!(store.calls("blob"), if fails { 2 } else { 1 });
    }
}

#[tokio::test]
async fn another_goes_on_when_the_task_that_fetches_is_dropped() {
    let mut store = Memory::new();
    let gate = Arc::new(Semaphore::new(0));
    store.gate = Some(Arc::clone(&gate));
    let blob = store.push_blob("a/b", b"bytes").await.unwrap();
    let store = Arc::new(store);
    let dir = tempfile::tempdir().unwrap();
    let cache = Arc::new(Cache::open(dir.path(), LARGE).unwrap());
    let task = |blob: Descriptor| {
        let through = online(&store, &cache);
        tokio::spawn(async move { through.blob(&blob, 10).await })
    };
    let first = task(blob.clone());
    while store.calls("blob") == 0 {
        tokio::task::yield_now().await;
    }
    let second = task(blob);
    first.abort();
    gate.add_permits(1);
    assert_eq!(second.await.unwrap().unwrap(), b"bytes");
}

#[tokio::test]
async fn what_was_used_longest_ago_goes_first() {
    let store = Arc::new(Memory::new());
    let dir = tempfile::tempdir().unwrap();
    let cache = Arc::new(Cache::open(dir.path(), 1000).unwrap());
    let through = online(&store, &cache);
    let mut blobs = Vec::new();
    for number in 0..4_u8 {
        let blob = store.push_blob("a/b", &[number; 240]).await.unwrap();
        through.blob(&blob, 1000).await.unwrap();
        blobs.push(blob);
    }
    let file = |number: usize| path(dir.path(), "blobs", &blobs[number].digest);
    for number in 0..4 {
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + number as u64);
        let file = std::fs::File::options().write(true).open(file(number)).unwrap();
        file.set_modified(then).unwrap();
    }
    // A reader that has the file open, and a use that makes the oldest one the newest.
    let mut reader = std::fs::File::open(file(1)).unwrap();
    through.blob(&blobs[0], 1000).await.unwrap();
    let fifth = store.push_blob("a/b", &[9; 240]).await.unwrap();
    through.blob(&fifth, 1000).await.unwrap();
    assert!(file(0).exists() && !file(1).exists() && !file(2).exists() && file(3).exists());
    assert!(path(dir.path(), "blobs", &fifth.digest).exists());
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 240]);
    // Something larger than all of it is handed on and not kept.
    let large = store.push_blob("a/b", &[7; 1001]).await.unwrap();
    assert_eq!(through.blob(&large, 2000).await.unwrap().len(), 1001);
    assert!(file(0).exists() && !path(dir.path(), "blobs", &large.digest).exists());
    assert_eq!(cache.take_problem(), None);
}

#[cfg(unix)]
#[tokio::test]
async fn folder_that_fails_slows_and_is_said() {
    let (store, blob, dir, cache) = setting(b"bytes").await;
    std::fs::remove_dir_all(dir.path().join("blobs")).unwrap();
    let through = online(&store, &cache);
    assert_eq!(through.blob(&blob, 10).await.unwrap(), b"bytes");
    assert_eq!(cache.take_problem().map(|problem| problem.code()), Some("storage-failed"));
    assert_eq!(cache.take_problem(), None);
}

const FOLDER: &str = "AMBIT_TEST_CACHE_WRITER";

/// The other process of the next test: writes into the cache until it is killed.
#[tokio::test]
async fn writer_process() {
    let Some(dir) = std::env::var_os(FOLDER) else { return };
    // The end of the input is the end of the process that started this one.
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    std::thread::spawn(move || {
        let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0]);
        end.store(true, Ordering::SeqCst);
    });
    let store = Arc::new(Memory::new());
    let cache = Arc::new(Cache::open(Path::new(&dir), SMALL).unwrap());
    let through = online(&store, &cache);
    for number in 0_u32..5000 {
        if ended.load(Ordering::SeqCst) {
            return;
        }
        let bytes = number.to_le_bytes().repeat(40_000);
        let blob = store.push_blob("a/b", &bytes).await.unwrap();
        assert_eq!(through.blob(&blob, 1 << 20).await.unwrap(), bytes);
        store.state.lock().unwrap().blobs.clear();
        // The other process must not take this one's temporary files for abandoned ones.
        assert_eq!(cache.take_problem(), None);
    }
}

/// A process that doesn't outlive the test, even if that fails.
struct Writer(Child);

impl Writer {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn writer(dir: &Path) -> Writer {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cache::writer_process"])
        .env(FOLDER, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Writer(child)
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir.join("blobs")).unwrap();
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        // The other process may evict what was just listed.
        std::fs::read(entry.path()).ok().map(|bytes| (name, bytes))
    };
    entries.filter_map(|entry| read(entry.unwrap())).collect()
}

#[test]
fn killed_processes_leave_nothing_wrong_behind() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let mut writers = [writer(dir.path()), writer(dir.path())];
        // Both get some way, which is seen by what is in the folder and not by a clock.
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 10 + round * 30 {
            if dir.path().join("blobs").exists() {
                let names = files(dir.path()).into_iter().map(|(name, _)| name);
                seen.extend(names.filter(|name| !name.starts_with('.')));
            }
            assert!(writers.iter_mut().all(|writer| writer.0.try_wait().unwrap().is_none()));
            std::thread::sleep(Duration::from_millis(1));
        }
        writers.iter_mut().for_each(Writer::kill);
        for (name, bytes) in files(dir.path()) {
            let right = format!("sha256:{name}") == Digest::of(&bytes).to_string();
            assert!(right || name.starts_with(".tmp-"), "{name} holds something else");
        }
        Cache::open(dir.path(), SMALL).unwrap();
        let left = files(dir.path());
        assert!(left.iter().all(|(name, _)| !name.starts_with(".tmp-")));
        assert!(left.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>() <= SMALL);
        std::fs::remove_dir_all(dir.path().join("blobs")).unwrap();
    }
}
