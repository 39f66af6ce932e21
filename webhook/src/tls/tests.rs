use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

/// A chain of two certificates and the key of its leaf, in PEM.
fn issued() -> (String, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["webhook.example".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    (format!("{}{}", leaf.pem(), authority.pem()), key.serialize_pem())
}

/// Puts files in place as a mounted Secret does it: by a link that leads elsewhere.
fn mount(folder: &Path, version: &str, certificate: &str, key: &str) {
    std::fs::create_dir(folder.join(version)).unwrap();
    std::fs::write(folder.join(version).join(CERTIFICATE), certificate).unwrap();
    std::fs::write(folder.join(version).join(KEY), key).unwrap();
    std::os::unix::fs::symlink(version, folder.join("..next")).unwrap();
    std::fs::rename(folder.join("..next"), folder.join("..data")).unwrap();
    for name in [CERTIFICATE, KEY] {
        let link = folder.join(name);
        if !link.is_symlink() {
            std::os::unix::fs::symlink(Path::new("..data").join(name), link).unwrap();
        }
    }
}

fn chain(certificates: &Certificates) -> Vec<CertificateDer<'static>> {
    certificates.kept.current().map(|loaded| loaded.key.cert.clone()).unwrap_or_default()
}

#[test]
fn a_mounted_certificate_is_followed_and_its_chain_kept_whole() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::new(folder.path().to_owned());
    assert!(matches!(certificates.turn(), Turn::Bad(_)));
    assert_eq!(
        (certificates.kept.count(), certificates.kept.current().map(|loaded| loaded.expires)),
        (0, None)
    );
    let (certificate, key) = issued();
    mount(folder.path(), "v1", &certificate, &key);
    assert!(matches!(certificates.turn(), Turn::New(_)));
    assert!(matches!(certificates.turn(), Turn::Same));
    let first = chain(&certificates);
    assert_eq!((first.len(), certificates.kept.count()), (2, 1));
    assert!(
        certificates.kept.problem().is_none()
            && certificates.kept.current().map(|loaded| loaded.expires).is_some()
    );
    let (certificate, key) = issued();
    mount(folder.path(), "v2", &certificate, &key);
    assert!(matches!(certificates.turn(), Turn::New(_)));
    assert_ne!(chain(&certificates), first);
    assert_eq!(certificates.kept.count(), 2);
}

#[test]
fn absent_folder_or_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent");
    let certificates = Certificates::new(absent.clone());
    let Turn::Bad(failure) = certificates.turn() else { panic!("nothing is taken") };
    assert_eq!(failure.code, "file-not-found");
    assert!(failure.message.contains("absent/tls.crt"), "{failure}");
    assert_eq!(certificates.kept.problem(), Some(failure));
    // What isn't there still isn't a change.
    assert!(matches!(certificates.turn(), Turn::Same));
    let (certificate, key) = issued();
    std::fs::create_dir(&absent).unwrap();
    std::fs::write(absent.join(CERTIFICATE), certificate).unwrap();
    let Turn::Bad(failure) = certificates.turn() else { panic!("half is taken") };
    assert_eq!(failure.code, "file-not-found");
    assert!(failure.message.contains("absent/tls.key"), "{failure}");
    std::fs::write(absent.join(KEY), key).unwrap();
    assert!(matches!(certificates.turn(), Turn::New(_)));
    assert_eq!(certificates.kept.problem(), None);
    assert_eq!(certificates.kept.count(), 1);
}

#[test]
fn what_cannot_be_used_leaves_the_old_certificate_in_place() {
    let (certificate, key) = issued();
    let (_, foreign) = issued();
    for (name, next, next_key) in [
        ("foreign key", certificate.as_str(), foreign.as_str()),
        ("no certificate", "nothing\n", key.as_str()),
        ("no key", certificate.as_str(), "nothing\n"),
        ("broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", key.as_str()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let certificates = Certificates::new(folder.path().to_owned());
        mount(folder.path(), "v1", &certificate, &key);
        assert!(matches!(certificates.turn(), Turn::New(_)));
        let first = chain(&certificates);
        mount(folder.path(), "v2", next, next_key);
        let Turn::Bad(failure) = certificates.turn() else { panic!("{name} is taken") };
        assert_eq!(failure.code, "webhook-certificate", "{name}");
        assert!(certificates.kept.problem().is_some());
        assert_eq!(chain(&certificates), first, "{name}");
        mount(folder.path(), "v3", &certificate, &key);
        assert!(matches!(certificates.turn(), Turn::New(_)), "{name}");
        assert!(certificates.kept.problem().is_none());
    }
}
