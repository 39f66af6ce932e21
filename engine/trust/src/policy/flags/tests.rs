//! What flags mean, and which are missing.

use super::*;

const P256: &str = include_str!("../../../../../testdata/trust/keys/p256.pub");

fn keyless() -> Flags {
    Flags {
        certificate_identity: Some("dev@example.com".to_owned()),
        certificate_oidc_issuer: Some("https://accounts.example".to_owned()),
        ..Flags::default()
    }
}

fn keyed() -> Flags {
    Flags { key_pem: Some(P256.to_owned()), ..Flags::default() }
}

fn refused(flags: &Flags) -> String {
    let error = flags.policy().unwrap_err();
    format!("{error}: {}", error.help())
}

#[test]
fn missing_flags_are_named() {
    insta::assert_snapshot!(refused(&Flags::default()), @"nothing says whose signatures count: add `--key FILE`, or `--certificate-identity` with `--certificate-oidc-issuer`");
    let half = Flags { certificate_oidc_issuer: None, ..keyless() };
    insta::assert_snapshot!(refused(&half), @"`--certificate-oidc-issuer` is missing beside `--certificate-identity`: add `--certificate-oidc-issuer`");
    let half = Flags { certificate_identity: None, ..keyless() };
    insta::assert_snapshot!(refused(&half), @"`--certificate-identity` is missing beside `--certificate-oidc-issuer`: add `--certificate-identity`");
    let untimed = Flags { insecure_ignore_tlog: true, ..keyless() };
    insta::assert_snapshot!(refused(&untimed), @"nothing would say when a signature was made, which `--certificate-identity` asks for: add `--use-signed-timestamps`, or leave `--insecure-ignore-tlog` out");
}

#[test]
fn flags_without_effect_are_refused() {
    for flags in [
        Flags { key_pem: Some(P256.to_owned()), ..keyless() },
        Flags { insecure_ignore_sct: true, ..keyed() },
        Flags { ca_roots: Some("-----BEGIN CERTIFICATE-----".to_owned()), ..keyed() },
        Flags { claims: [(Claim::GithubWorkflowRef, "r".to_owned())].into(), ..keyed() },
        Flags { key_hash: HashChoice::Named(super::super::KeyHash::Sha256), ..keyless() },
        Flags { certificate_identity_regexp: Some("a".to_owned()), ..keyless() },
        Flags { ca_intermediates: Some(String::new()), ..keyless() },
        Flags {
            annotations: [("a".to_owned(), "b".to_owned())].into(),
            types: vec!["spdx".to_owned()],
            ..keyed()
        },
        Flags { types: vec!["spdx".to_owned(), "spdxjson".to_owned()], ..keyed() },
        Flags { types: vec!["sbom".to_owned()], ..keyed() },
        Flags { max_age: Some("90".to_owned()), ..keyed() },
        Flags { max_age: Some("9d".to_owned()), insecure_ignore_tlog: true, ..keyed() },
        Flags { key_pem: Some("no key".to_owned()), ..Flags::default() },
        Flags { certificate_identity: Some(" ".to_owned()), ..keyless() },
    ] {
        assert!(flags.policy().is_err(), "{flags:?}");
    }
}

#[test]
fn flags_become_the_fields_of_one_authority() {
    let flags = Flags {
        claims: [(Claim::GithubWorkflowRef, "refs/heads/main".to_owned())].into(),
        insecure_ignore_tlog: true,
        insecure_ignore_sct: true,
        use_signed_timestamps: true,
        max_age: Some("90d".to_owned()),
        types: vec!["slsaprovenance1".to_owned()],
        ..keyless()
    };
    let made = flags.policy().unwrap();
    let authority = &made.policy.authorities[0];
    assert_eq!(authority.log, LogRule::Unasked);
    assert_eq!(authority.timestamp, TimestampRule::Required);
    assert_eq!(authority.max_age.map(|age| age.as_secs()), Some(7_776_000));
    assert_eq!(authority.attestations.len(), 1);
    let Signer::Certificate { identities, sct, root } = &authority.signer else {
        unreachable!("identities make a certificate signer")
    };
    assert_eq!((*sct, root.as_str()), (SctRule::Ignored, PUBLIC_GOOD_ROOT));
    assert_eq!(identities[0].claims.len(), 1);
    let github = Flags { trusted_root: Some("github".to_owned()), ..keyless() };
    let github = github.policy().unwrap();
    assert_eq!(github.policy.authorities[0].log, LogRule::Unasked);
    assert_eq!(github.policy.authorities[0].timestamp, TimestampRule::Required);
    let roots = Some("-----BEGIN CERTIFICATE-----".to_owned());
    let own = Flags { ca_roots: roots, ..keyless() }.policy().unwrap();
    assert_eq!(own.root.map(|root| root.name).as_deref(), Some(FLAG_ROOT));
}

#[test]
fn expressions_cover_the_whole_name() {
    let flags = Flags {
        certificate_identity: None,
        certificate_identity_regexp: Some("https://github.com/acme/.*".to_owned()),
        ..keyless()
    };
    let made = flags.policy().unwrap();
    let Signer::Certificate { identities, .. } = &made.policy.authorities[0].signer else {
        unreachable!("identities make a certificate signer")
    };
    assert!(identities[0].subject.matches("https://github.com/acme/x"));
    assert!(!identities[0].subject.matches("https://evil.example/https://github.com/acme/x"));
    let any = Flags { certificate_identity_regexp: Some(".*".to_owned()), ..flags };
    assert_eq!(any.policy().unwrap().warnings.len(), 1);
}
