//! Authorities' certificates: their dates, and chains that are given as PEM.

use jiff::Timestamp;
use sigstore_crypto::{KeyAlgorithm, SigningScheme};
use sigstore_trust_root::CertificateAuthority;
use sigstore_types::{DerCertificate, DerPublicKey, SignatureBytes};
use x509_cert::Certificate;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::BasicConstraints;

use super::{MAX_PARTS, RootError, limit};
use crate::verify::legacy::pem_certificates;
use crate::verify::text::shown;

/// When a certificate is valid, ends included.
#[derive(Clone, Copy, Debug)]
pub(in crate::verify) struct Window {
    from: Timestamp,
    to: Timestamp,
}

impl Window {
    pub(in crate::verify) fn contains(&self, time: Timestamp) -> bool {
        self.from <= time && time <= self.to
    }
}

/// Returns when a certificate is valid.
pub(in crate::verify) fn window(der: &[u8]) -> Result<Window, String> {
    let certificate = Certificate::from_der(der)
        .map_err(|error| format!("a certificate can't be read: {}", shown(&error.to_string())))?;
    let validity = certificate.tbs_certificate.validity;
    let time = |time: x509_cert::time::Time| {
        Timestamp::try_from(time.to_system_time())
            .map_err(|_| "a certificate has a date that can't be read".to_owned())
    };
    Ok(Window { from: time(validity.not_before)?, to: time(validity.not_after)? })
}

struct Issuer {
    der: DerCertificate,
    certificate: Certificate,
    /// Where the way up goes on; a root has none.
    above: Option<usize>,
}

/// Makes one authority of each root, with those intermediates that lead to it.
pub(super) fn from_pem(
    name: &str,
    roots: &str,
    intermediates: &str,
) -> Result<Vec<CertificateAuthority>, RootError> {
    let invalid = |reason: String| RootError::Invalid { name: name.to_owned(), reason };
    let read = |pem: &str| -> Result<Vec<(DerCertificate, Certificate)>, RootError> {
        let list = pem_certificates(pem).map_err(|refusal| invalid(refusal.message))?;
        limit(name, list.len(), MAX_PARTS, "certificates")?;
        list.into_iter()
            .map(|der| match Certificate::from_der(der.as_bytes()) {
                Ok(certificate) => Ok((der, certificate)),
                Err(error) => Err(invalid(shown(&error.to_string()))),
            })
            .collect()
    };
    let roots = read(roots)?;
    if roots.is_empty() {
        return Err(invalid("there is no certificate in it".to_owned()));
    }
    let mut issuers: Vec<Issuer> = Vec::new();
    for (der, certificate) in roots {
        issuers.push(Issuer { der, certificate, above: None });
    }
    let mut waiting: Vec<(usize, DerCertificate, Certificate)> = read(intermediates)?
        .into_iter()
        .enumerate()
        .map(|(at, (der, certificate))| (at.saturating_add(1), der, certificate))
        .collect();
    // Each round hangs at least one intermediate below what is there already, or gives up.
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for (position, der, certificate) in waiting {
            let above = issuers.iter().position(|issuer| signed_by(&certificate, issuer));
            match above {
                Some(above) => issuers.push(Issuer { der, certificate, above: Some(above) }),
                None => left.push((position, der, certificate)),
            }
        }
        if left.len() == before {
            let position = left.first().map_or(0, |(position, _, _)| *position);
            return Err(RootError::Unrooted { name: name.to_owned(), position });
        }
        waiting = left;
    }
    // One authority for each way up, so that a certificate that expires takes only the ways
    // through it along.
    (0..issuers.len()).map(|at| authority(&issuers, at).map_err(invalid)).collect()
}

fn authority(issuers: &[Issuer], at: usize) -> Result<CertificateAuthority, String> {
    let mut chain = Vec::new();
    let mut next = Some(at);
    // `above` always names an earlier issuer, so the way up ends.
    while let Some(issuer) = next.and_then(|at| issuers.get(at)) {
        chain.push(serde_json::json!({ "rawBytes": issuer.der.to_base64() }));
        next = issuer.above;
    }
    let value = serde_json::json!({ "uri": "", "certChain": { "certificates": chain } });
    serde_json::from_value(value).map_err(|error| shown(&error.to_string()))
}

/// Tells whether `certificate` is signed by `issuer`, which has to be an authority by its own
/// constraints.
fn signed_by(certificate: &Certificate, issuer: &Issuer) -> bool {
    let above = &issuer.certificate.tbs_certificate;
    if certificate.tbs_certificate.issuer != above.subject {
        return false;
    }
    let constraints = above.get::<BasicConstraints>();
    if !matches!(constraints, Ok(Some((_, BasicConstraints { ca: true, .. })))) {
        return false;
    }
    let Ok(key) = above.subject_public_key_info.to_der().map(DerPublicKey::new) else {
        return false;
    };
    let Ok(algorithm) = KeyAlgorithm::from_spki(&key) else {
        return false;
    };
    let scheme = match certificate.signature_algorithm.oid.to_string().as_str() {
        "1.2.840.10045.4.3.2" if algorithm == KeyAlgorithm::EcdsaP384 => {
            SigningScheme::EcdsaP384Sha256
        }
        "1.2.840.10045.4.3.2" => SigningScheme::EcdsaP256Sha256,
        "1.2.840.10045.4.3.3" if algorithm == KeyAlgorithm::EcdsaP256 => {
            SigningScheme::EcdsaP256Sha384
        }
        "1.2.840.10045.4.3.3" => SigningScheme::EcdsaP384Sha384,
        "1.2.840.113549.1.1.11" => SigningScheme::RsaPkcs1Sha256,
        "1.2.840.113549.1.1.12" => SigningScheme::RsaPkcs1Sha384,
        "1.2.840.113549.1.1.13" => SigningScheme::RsaPkcs1Sha512,
        "1.3.101.112" => SigningScheme::Ed25519,
        _ => return false,
    };
    let (Ok(signed), Some(signature)) =
        (certificate.tbs_certificate.to_der(), certificate.signature.as_bytes())
    else {
        return false;
    };
    let signature = SignatureBytes::from_bytes(signature);
    sigstore_crypto::verify_signature(&key, &signed, &signature, scheme).is_ok()
}
