use std::fs;
use std::os::unix::fs::symlink;

use super::{Files, read_file};

#[test]
fn what_is_not_a_file_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let code = |path: &std::path::Path| read_file(path, 4).unwrap_err().code;
    assert_eq!(code(dir.path()), "file-is-directory");
    assert_eq!(code(&dir.path().join("gone")), "file-not-found");
    assert_eq!(code("/dev/null".as_ref()), "file-not-regular");
}

#[test]
fn file_may_be_as_large_as_the_limit_and_no_larger() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "1234").unwrap();
    assert_eq!(read_file(&path, 4).unwrap(), b"1234");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read_file(&path, 4).unwrap_err().code, "file-too-large");
}

#[test]
fn change_is_seen_in_contents_and_names() {
    let dir = tempfile::tempdir().unwrap();
    let (file, pack, absent) =
        (dir.path().join("file"), dir.path().join("pack"), dir.path().join("absent"));
    fs::write(&file, "one").unwrap();
    fs::create_dir(&pack).unwrap();
    let look = || {
        let mut files = Files::default();
        files.read(&file, 9).unwrap();
        files.list(&pack).unwrap();
        if absent.exists() {
            files.read(&absent, 9).unwrap();
        } else {
            files.absent(&absent);
        }
        files
    };
    let files = look();
    assert!(!files.changed());
    // The same contents, written anew, are no change.
    fs::write(&file, "one").unwrap();
    assert!(!files.changed());
    fs::write(&file, "two").unwrap();
    assert!(files.changed());
    let files = look();
    fs::write(pack.join("more.rego"), "").unwrap();
    assert!(files.changed());
    let files = look();
    fs::write(&absent, "there").unwrap();
    assert!(files.changed());
    let files = look();
    assert!(!files.changed());
    fs::remove_file(&file).unwrap();
    assert!(files.changed());
}

#[test]
fn swapped_link_of_a_mounted_configmap_is_a_change() {
    let dir = tempfile::tempdir().unwrap();
    for (version, text) in [("v1", "one"), ("v2", "two")] {
        fs::create_dir(dir.path().join(version)).unwrap();
        fs::write(dir.path().join(version).join("file"), text).unwrap();
    }
    symlink("v1", dir.path().join("data")).unwrap();
    symlink("data/file", dir.path().join("file")).unwrap();
    let mut files = Files::default();
    assert_eq!(files.read(&dir.path().join("file"), 9).unwrap(), b"one");
    symlink("v2", dir.path().join("next")).unwrap();
    fs::rename(dir.path().join("next"), dir.path().join("data")).unwrap();
    assert!(files.changed());
}

#[test]
fn file_that_was_too_large_is_looked_at_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "12345").unwrap();
    let mut files = Files::default();
    files.read(&path, 4).unwrap_err();
    assert!(!files.changed());
    fs::write(&path, "1234").unwrap();
    assert!(files.changed());
}
