//! Compiled components that are kept, and what tampers with them.
#![expect(clippy::expect_used, reason = "helpers of tests may fail loudly")]

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ambit_engine::admitted::Admitted;
use ambit_executor::aot::Cache;
use ambit_executor::record::Memory;
use ambit_executor::workload::{Code, Source, Workload};
use ambit_executor::{Allocation, Host, HostOptions, run_command};
use common::{hello, sample, setup};

fn admitted(bytes: &[u8]) -> Admitted {
    ambit_testing::admit::bare("guest", bytes).admitted.expect("it is admitted")
}

fn load(host: &Host, cache: &Cache, bytes: &[u8]) -> Workload {
    let admitted = admitted(bytes);
    let temporary = std::env::temp_dir();
    let source = Source {
        admitted: &admitted,
        bytes: &[bytes],
        temporary: &temporary,
        code: Code::Cached(cache),
        progress: &|_, _| {},
        arguments: &[],
    };
    Workload::load(host, &source, &setup(&Memory::default())).expect("it loads")
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "aot")).collect()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = dir.path().join("cache");
    (dir, cache)
}

#[tokio::test]
async fn a_second_start_takes_the_entry_and_runs_as_the_first() {
    let (_keep, dir) = folder();
    let host = common::host();
    let cache = Cache::open(&dir).expect("a cache");
    load(&host, &cache, &hello());
    assert_eq!(cache.counts(), (0, 1));
    let again = Cache::open(&dir).expect("a cache");
    let workload = load(&host, &again, &hello());
    assert_eq!(again.counts(), (1, 0));
    let (stdio, output) = ambit_executor::stdio::Stdio::captured("");
    run_command(workload.programs().first().expect("a component"), &stdio).await.expect("it runs");
    assert_eq!(output.out(), b"hello\n");
}

#[test]
fn an_entry_that_was_tampered_with_is_compiled_again() {
    let (_keep, dir) = folder();
    let host = common::host();
    load(&host, &Cache::open(&dir).expect("a cache"), &hello());
    let path = entries(&dir).remove(0);
    let whole = std::fs::read(&path).expect("the entry");
    let flip = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let broken = [
        flip(0),
        flip(12),
        flip(whole.len() / 2),
        flip(whole.len() - 1),
        whole[..whole.len() / 2].to_vec(),
        whole[..20].to_vec(),
        Vec::new(),
        [whole.as_slice(), b"more"].concat(),
    ];
    for bytes in broken {
        std::fs::write(&path, bytes).expect("a change");
        let cache = Cache::open(&dir).expect("a cache");
        load(&host, &cache, &hello());
        assert_eq!(cache.counts(), (0, 1));
        // What was compiled has taken the place of what was broken.
        assert_eq!(std::fs::read(&path).expect("the entry").len(), whole.len());
    }
}

#[test]
fn the_entry_of_another_component_engine_or_installation_does_not_count() {
    let (_keep, dir) = folder();
    let host = common::host();
    let other = sample("env-reader.wasm");
    let cache = Cache::open(&dir).expect("a cache");
    load(&host, &cache, &hello());
    let mine = entries(&dir).remove(0);
    load(&host, &cache, &other);
    let theirs = entries(&dir).into_iter().find(|path| *path != mine).expect("another entry");
    std::fs::copy(&theirs, &mine).expect("a swap");
    let swapped = Cache::open(&dir).expect("a cache");
    load(&host, &swapped, &hello());
    assert_eq!(swapped.counts(), (0, 1));

    let pooled = Host::new(&HostOptions { allocation: Allocation::Pooling, ..Default::default() });
    if let Ok(pooled) = pooled {
        let cache = Cache::open(&dir).expect("a cache");
        load(&pooled, &cache, &hello());
        let (hits, _) = cache.counts();
        // Code for a pool is other code, unless wasmtime says that it is the same.
        assert!(hits <= 1);
    }

    std::fs::remove_file(dir.join("key")).expect("the key goes");
    let new_key = Cache::open(&dir).expect("a cache");
    load(&host, &new_key, &hello());
    assert_eq!(new_key.counts(), (0, 1));
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let (_keep, dir) = folder();
    Cache::open(&dir).expect("a cache");
    for mode in [0o720, 0o702, 0o777] {
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).expect("a mode");
        match Cache::open(&dir) {
            Err(error) => assert_eq!(error.code(), "aot-cache"),
            Ok(_) => panic!("{mode:o} is accepted"),
        }
    }
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).expect("a mode");
    let key = dir.join("key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    assert!(Cache::open(&dir).is_err());
}

#[test]
fn many_at_once_agree_on_one_key() {
    let (_keep, dir) = folder();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let dir = dir.clone();
            std::thread::spawn(move || Cache::open(&dir).map(|_| ()))
        })
        .collect();
    for thread in threads {
        thread.join().expect("it ends").expect("a cache");
    }
    let host = common::host();
    load(&host, &Cache::open(&dir).expect("a cache"), &hello());
    let cache = Cache::open(&dir).expect("a cache");
    load(&host, &cache, &hello());
    assert_eq!(cache.counts(), (1, 0));
}
