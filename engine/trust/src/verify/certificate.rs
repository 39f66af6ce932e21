//! Signing certificates: the one name, the issuer and the claims in them, and who may sign.

use std::collections::{BTreeMap, BTreeSet};

use ambit_engine::digest::Digest;
use jiff::Timestamp;
use sigstore_crypto::CertificateInfo;
use sigstore_types::DerCertificate;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::log::ours;
use super::text::{Refusal, refuse, shown};
use super::{RejectCode, SignedBy};
use crate::policy::{Claim, Identity};

/// A signing certificate, read.
pub(super) struct Leaf {
    pub(super) info: CertificateInfo,
    der: DerCertificate,
    names: Vec<Name>,
}

/// A subject alternative name.
enum Name {
    Email(String),
    Uri(String),
    Other,
}

impl Leaf {
    /// Reads a certificate. One that has an extension twice is refused, since readers differ in
    /// which one they take.
    pub(super) fn read(der: &DerCertificate) -> Result<Self, Refusal> {
        let bad = |error: &dyn std::fmt::Display| {
            refuse(
                RejectCode::Format,
                format!("the certificate can't be read: {}", shown(&error.to_string())),
            )
        };
        let certificate = Certificate::from_der(der.as_bytes()).map_err(|error| bad(&error))?;
        let mut seen = BTreeSet::new();
        for extension in certificate.tbs_certificate.extensions.iter().flatten() {
            if !seen.insert(extension.extn_id) {
                return Err(bad(&format!("extension {} is there twice", extension.extn_id)));
            }
        }
        let names = names(&certificate).map_err(|error| bad(&error))?;
        let info = sigstore_crypto::parse_certificate_info(der).map_err(|error| bad(&error))?;
        Ok(Self { info, der: der.clone(), names })
    }

    /// Tells whether the certificate is valid at `time`.
    pub(super) fn is_valid_at(&self, time: Timestamp) -> bool {
        ours(self.info.not_before) <= time && time <= ours(self.info.not_after)
    }

    /// Returns who signed: the one name, which is an address or a URI.
    pub(super) fn signer(&self) -> Result<SignedBy, Refusal> {
        let identity = match self.names.as_slice() {
            [Name::Email(text) | Name::Uri(text)] if !text.is_empty() => text.clone(),
            [] => return Err(refuse(RejectCode::Identity, "its certificate names nobody")),
            [_] => {
                return Err(refuse(
                    RejectCode::Identity,
                    "its certificate names neither an e-mail address nor a URI",
                ));
            }
            names => {
                return Err(refuse(
                    RejectCode::Identity,
                    format!("its certificate has {} names, and one is asked for", names.len()),
                ));
            }
        };
        Ok(SignedBy::Certificate {
            identity,
            issuer: self.info.issuer.clone().unwrap_or_default(),
            claims: claims(&self.info),
            certificate: Digest::of(self.der.as_bytes()),
        })
    }
}

fn names(certificate: &Certificate) -> Result<Vec<Name>, x509_cert::der::Error> {
    let names = certificate.tbs_certificate.get::<SubjectAltName>()?;
    let names = names.map(|(_, names)| names.0).unwrap_or_default();
    Ok(names
        .into_iter()
        .map(|name| match name {
            GeneralName::Rfc822Name(text) => Name::Email(text.to_string()),
            GeneralName::UniformResourceIdentifier(text) => Name::Uri(text.to_string()),
            GeneralName::OtherName(_)
            | GeneralName::DnsName(_)
            | GeneralName::DirectoryName(_)
            | GeneralName::EdiPartyName(_)
            | GeneralName::IpAddress(_)
            | GeneralName::RegisteredId(_) => Name::Other,
        })
        .collect())
}

/// Returns what an unverified certificate says of its holder: a name and an issuer.
pub(super) fn claimed(der: &DerCertificate) -> (Option<String>, Option<String>) {
    let Ok(info) = sigstore_crypto::parse_certificate_info(der) else {
        return (None, None);
    };
    (info.identity.map(|identity| identity.as_str().to_owned()), info.issuer)
}

/// Compares the signer with the identities that may sign. Issuer, name and claims of one of them
/// have to match; the refusal is about the one that came furthest.
pub(super) fn authorized(signer: &SignedBy, identities: &[Identity]) -> Result<(), Refusal> {
    let SignedBy::Certificate { identity, issuer, claims, .. } = signer else {
        return Err(refuse(RejectCode::Key, "it is signed with a key, not a certificate"));
    };
    let wanted = |of: fn(&Identity) -> &str| {
        let all: Vec<_> =
            identities.iter().map(|wanted| format!("`{}`", shown(of(wanted)))).collect();
        if all.is_empty() { "nobody".to_owned() } else { all.join(" or ") }
    };
    let mut named = identities.iter().filter(|wanted| wanted.subject.matches(identity)).peekable();
    if named.peek().is_none() {
        return Err(refuse(
            RejectCode::Identity,
            format!(
                "it is signed by `{}`, and {} may sign",
                shown(identity),
                wanted(|wanted| wanted.subject.as_str())
            ),
        ));
    }
    let mut issued = named.filter(|wanted| wanted.issuer.matches(issuer)).peekable();
    if issued.peek().is_none() {
        return Err(refuse(
            RejectCode::Issuer,
            format!(
                "the signer was authenticated by `{}`, and {} counts",
                shown(issuer),
                wanted(|wanted| wanted.issuer.as_str())
            ),
        ));
    }
    let mut differs = None;
    for wanted in issued {
        let other = wanted.claims.iter().find(|(claim, value)| claims.get(claim) != Some(value));
        match other {
            None => return Ok(()),
            Some(other) => differs = Some(other),
        }
    }
    let message = match differs {
        Some((claim, value)) => {
            let found = claims
                .get(claim)
                .map_or_else(|| "absent".to_owned(), |found| format!("`{}`", shown(found)));
            format!("claim `{}` is {found}, not `{}`", claim.key(), shown(value))
        }
        None => "a claim differs".to_owned(),
    };
    Err(refuse(RejectCode::Claim, message))
}

/// Returns the claims under the keys that policies use.
fn claims(info: &CertificateInfo) -> BTreeMap<Claim, String> {
    let ci = &info.ci_claims;
    let github = &ci.deprecated_github;
    let value = |claim: Claim| match claim {
        Claim::GithubWorkflowTrigger => &github.workflow_trigger,
        Claim::GithubWorkflowSha => &github.workflow_sha,
        Claim::GithubWorkflowName => &github.workflow_name,
        Claim::GithubWorkflowRepository => &github.workflow_repository,
        Claim::GithubWorkflowRef => &github.workflow_ref,
        Claim::BuildSignerUri => &ci.build_signer_uri,
        Claim::BuildSignerDigest => &ci.build_signer_digest,
        Claim::RunnerEnvironment => &ci.runner_environment,
        Claim::SourceRepositoryUri => &ci.source_repository_uri,
        Claim::SourceRepositoryDigest => &ci.source_repository_digest,
        Claim::SourceRepositoryRef => &ci.source_repository_ref,
        Claim::SourceRepositoryIdentifier => &ci.source_repository_identifier,
        Claim::SourceRepositoryOwnerUri => &ci.source_repository_owner_uri,
        Claim::SourceRepositoryOwnerIdentifier => &ci.source_repository_owner_identifier,
        Claim::BuildConfigUri => &ci.build_config_uri,
        Claim::BuildConfigDigest => &ci.build_config_digest,
        Claim::BuildTrigger => &ci.build_trigger,
        Claim::RunInvocationUri => &ci.run_invocation_uri,
        Claim::SourceRepositoryVisibility => &ci.source_repository_visibility_at_signing,
        Claim::DeploymentEnvironment => &ci.deployment_environment,
    };
    Claim::ALL.into_iter().filter_map(|claim| Some((claim, value(claim).clone()?))).collect()
}
