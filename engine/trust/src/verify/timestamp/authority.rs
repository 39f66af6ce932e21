//! Whether one timestamp authority vouches for a token, by its own certificates and dates.

use cms::signed_data::SignerIdentifier;
use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, UnixTime};
use sigstore_crypto::{KeyAlgorithm, WEBPKI_VERIFICATION_ALGS};
use sigstore_trust_root::TimestampAuthority;
use sigstore_types::{DerPublicKey, HashAlgorithm, SignatureBytes};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::{ExtendedKeyUsage, KeyUsage as Usages, SubjectKeyIdentifier};

use super::token::Token;
use crate::verify::root::{window, within};

const TIME_STAMPING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.8");

/// Why an authority doesn't vouch for a token.
pub(super) enum Refused {
    /// Another one made it.
    Other,
    /// It names this one as its maker, and is wrong.
    For(String),
}

/// Verifies a token by one authority of the trust root.
pub(super) fn vouches(authority: &TimestampAuthority, token: &Token) -> Result<(), Refused> {
    let chain: Vec<&[u8]> = authority
        .cert_chain
        .certificates
        .iter()
        .map(|certificate| certificate.raw_bytes.as_bytes())
        .collect();
    let leaf = chain.first().ok_or(Refused::Other)?;
    let certificate = Certificate::from_der(leaf).map_err(|_| Refused::Other)?;
    if !is_signer(&certificate, &token.signer.sid) {
        return Err(Refused::Other);
    }
    signed(&certificate, token).map_err(Refused::For)?;
    if !token.names(leaf) {
        return Err(Refused::For("another signing certificate is signed along".to_owned()));
    }
    for_timestamps(&certificate).map_err(Refused::For)?;
    let time = token.time();
    for certificate in &chain {
        let window = window(certificate).map_err(Refused::For)?;
        if !window.contains(time) {
            let message = format!("at {time}, a certificate of its authority was not valid");
            return Err(Refused::For(message));
        }
    }
    leads_to_root(&chain, time).map_err(Refused::For)?;
    if authority.valid_for.is_some_and(|range| !within(range, time)) {
        let message = format!("at {time}, the trust root doesn't count on its authority");
        return Err(Refused::For(message));
    }
    Ok(())
}

fn is_signer(certificate: &Certificate, signer: &SignerIdentifier) -> bool {
    let certificate = &certificate.tbs_certificate;
    match signer {
        SignerIdentifier::IssuerAndSerialNumber(named) => {
            certificate.issuer == named.issuer && certificate.serial_number == named.serial_number
        }
        SignerIdentifier::SubjectKeyIdentifier(named) => {
            matches!(certificate.get::<SubjectKeyIdentifier>(), Ok(Some((_, found))) if found == *named)
        }
    }
}

/// Verifies the signature over the attributes. The algorithm that it names has to be that of the
/// key and of the digest, or name the key only.
fn signed(certificate: &Certificate, token: &Token) -> Result<(), String> {
    let unknown = || "it is signed in an unknown way".to_owned();
    let key = certificate.tbs_certificate.subject_public_key_info.to_der();
    let key = DerPublicKey::new(key.map_err(|_| unknown())?);
    let algorithm = KeyAlgorithm::from_spki(&key).map_err(|_| unknown())?;
    if !matches!(algorithm, KeyAlgorithm::EcdsaP256 | KeyAlgorithm::EcdsaP384) {
        return Err("its authority's key is not an ECDSA one".to_owned());
    }
    let expected = match token.hash {
        HashAlgorithm::Sha2256 => "1.2.840.10045.4.3.2",
        HashAlgorithm::Sha2384 => "1.2.840.10045.4.3.3",
        HashAlgorithm::Sha2512 => "1.2.840.10045.4.3.4",
        _ => return Err(unknown()),
    };
    let named = token.signer.signature_algorithm.oid.to_string();
    if named != expected && named != "1.2.840.10045.2.1" {
        return Err("it is signed by another algorithm than it is hashed by".to_owned());
    }
    let scheme = algorithm.resolve_signing_scheme(token.hash).map_err(|_| unknown())?;
    let signature = SignatureBytes::from_bytes(token.signer.signature.as_bytes());
    sigstore_crypto::verify_signature(&key, &token.signed, &signature, scheme)
        .map_err(|_| "its signature is not one of its authority".to_owned())
}

/// Asks for a certificate that is for timestamps and nothing else (RFC 3161, section 2.3).
fn for_timestamps(certificate: &Certificate) -> Result<(), String> {
    let certificate = &certificate.tbs_certificate;
    let purposes = certificate.get::<ExtendedKeyUsage>();
    let only =
        matches!(&purposes, Ok(Some((true, purposes))) if purposes.0.as_slice() == [TIME_STAMPING]);
    let signs = match certificate.get::<Usages>() {
        Ok(Some((_, usages))) => usages.digital_signature() || usages.non_repudiation(),
        Ok(None) => true,
        Err(_) => false,
    };
    if only && signs {
        Ok(())
    } else {
        Err("its authority's certificate is not one for timestamps alone".to_owned())
    }
}

/// Verifies that the first certificate leads to the last by those between them.
fn leads_to_root(chain: &[&[u8]], time: Timestamp) -> Result<(), String> {
    let bad = |error: webpki::Error| {
        format!("its authority's certificate doesn't lead to its root: {error}")
    };
    let certificates: Vec<CertificateDer<'_>> =
        chain.iter().map(|der| CertificateDer::from(*der)).collect();
    // An authority of one certificate is its own root.
    let (leaf, between, root) = match certificates.as_slice() {
        [] => return Err("its authority has no certificate".to_owned()),
        [root] => (root, &[][..], root),
        [leaf, between @ .., root] => (leaf, between, root),
    };
    let anchors = [anchor_from_trusted_cert(root).map_err(bad)?];
    let seconds = u64::try_from(time.as_second()).map_err(|_| "its time is before 1970")?;
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    EndEntityCert::try_from(leaf)
        .map_err(bad)?
        .verify_for_usage(
            WEBPKI_VERIFICATION_ALGS,
            &anchors,
            between,
            at,
            KeyUsage::required(TIME_STAMPING.as_bytes()),
            None,
            None,
        )
        .map(|_| ())
        .map_err(bad)
}
