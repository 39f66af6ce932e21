use super::super::{
    FolderGrant, FolderMode as M, FolderPathError as E, FolderSource, GuestPath, HostPath,
    OverlapKind as O, RefusedFor as R, SensitiveKind as K, overlaps,
};

fn host(text: &str) -> HostPath {
    HostPath::parse(text).expect(text)
}

fn grant(guest: &str, mode: M) -> FolderGrant {
    FolderGrant::new(GuestPath::parse(guest).expect(guest), FolderSource::Ephemeral, mode)
}

#[test]
fn paths_are_absolute_and_whole() {
    let cases = [
        ("", E::Empty),
        ("a/b", E::Relative),
        ("./a", E::Relative),
        ("/a/../b", E::ParentSegment),
        ("/..", E::ParentSegment),
        ("~/a", E::Tilde),
        ("/home/~bob", E::Tilde),
        ("/a\0b", E::Control),
    ];
    for (text, error) in cases {
        assert_eq!(HostPath::parse(text), Err(error), "{text:?}");
        assert_eq!(GuestPath::parse(text), Err(error), "{text:?}");
    }
    let long = format!("/{}", "a".repeat(4096));
    assert!(matches!(HostPath::parse(&long), Err(E::TooLong { found: 4097, limit: 4096 })));
}

#[test]
fn spelling_is_normalised_and_kept() {
    let path = host("/a//b/./c/");
    assert_eq!(path.as_str(), "/a/b/c");
    assert_eq!(path.to_string(), "/a//b/./c/");
    assert_eq!(host("//.").as_str(), "/");
    assert!(host("/a/b").covers(&host("/a/b/c")));
    assert!(!host("/a/b").covers(&host("/a/bc")));
    assert!(host("/").covers(&host("/a")));
}

#[test]
fn sensitive_folders_and_their_ancestors_are_known() {
    let read = R::ReadAndWrite;
    let cases = [
        ("/", Some((K::Root, read))),
        ("/etc", Some((K::System, read))),
        ("/etc//passwd", Some((K::System, read))),
        ("/proc/1", Some((K::System, read))),
        ("/root", Some((K::Home, read))),
        ("/root/.ssh", Some((K::Credentials, read))),
        ("/home", Some((K::Home, read))),
        ("/home/ann", Some((K::AncestorOf("/home/*/.ssh"), read))),
        ("/home/ann/.aws/x", Some((K::Credentials, read))),
        ("/home/ann/.config", Some((K::AncestorOf("/home/*/.config/gcloud"), read))),
        ("/home/ann/work", None),
        ("/var", Some((K::AncestorOf("/var/lib/kubelet"), read))),
        ("/var/lib", Some((K::AncestorOf("/var/lib/kubelet"), read))),
        ("/var/lib/kubelet/pods", Some((K::ServiceAccount, read))),
        ("/var/run/secrets/kubernetes.io/serviceaccount", Some((K::ServiceAccount, read))),
        ("/var/run/docker.sock", Some((K::ContainerSocket, read))),
        ("/run", Some((K::System, read))),
        ("/var/runner", None),
        ("/usr/share", Some((K::System, R::Write))),
        ("/usrlocal", None),
        ("/var/spool", Some((K::AncestorOf("/var/spool/cron"), R::Write))),
        ("/srv/data", None),
        ("/tmp", None),
    ];
    for (text, wanted) in cases {
        let found = host(text).sensitivity().map(|s| (s.kind, s.refused));
        assert_eq!(found, wanted, "{text}");
    }
}

#[test]
fn system_folders_are_refused_only_for_changes() {
    let refusal = |path: &str, mode| {
        let guest = GuestPath::parse("/data").expect("path");
        FolderGrant::new(guest, FolderSource::Host(host(path)), mode).refusal().is_some()
    };
    assert!(!refusal("/usr/share/zoneinfo", M::ReadOnly));
    for mode in [M::ReadWrite, M::EditWithUndo, M::AskBeforeEdit] {
        assert!(refusal("/usr/share/zoneinfo", mode));
        assert!(!refusal("/srv/data", mode));
    }
    assert!(refusal("/etc", M::ReadOnly));
}

#[test]
fn guest_paths_that_meet_are_named() {
    let grants = [
        grant("/a", M::ReadOnly),
        grant("/a/", M::ReadWrite),
        grant("/a/b", M::ReadOnly),
        grant("/ab", M::ReadOnly),
    ];
    let found: Vec<_> = overlaps(&grants).iter().map(|o| (o.first, o.second, o.kind)).collect();
    let wanted = [(0, 1, O::Duplicate), (0, 2, O::NestedSameMode), (1, 2, O::NestedDifferentMode)];
    assert_eq!(found, wanted);
}

#[test]
fn unknown_mode_is_refused() {
    for mode in [M::ReadOnly, M::ReadWrite, M::EditWithUndo, M::AskBeforeEdit] {
        assert_eq!(mode.as_str().parse(), Ok(mode));
    }
    let error = "ReadOnly".parse::<M>().expect_err("capitals");
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("folder-mode", "unknown folder mode `ReadOnly`")
    );
}
