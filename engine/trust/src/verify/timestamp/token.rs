//! A token: signed data (RFC 5652, section 5) of one signer over what the token says.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest as sha1};
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerInfo};
use jiff::Timestamp;
use sigstore_types::HashAlgorithm;
use x509_cert::attr::Attributes;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{AnyRef, Decode as _, Encode as _, Tag, Tagged as _};

use super::der::{document, is, sequence};
use super::info::{Info, digest};

const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const SIGNING_CERTIFICATE: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.12");
const SIGNING_CERTIFICATE_V2: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.47");

/// A token, read: its content is what its attributes say, and who signed them is still open.
pub(super) struct Token {
    info: Info,
    pub(super) signer: SignerInfo,
    /// The digest by which everything in it is hashed.
    pub(super) hash: HashAlgorithm,
    /// The attributes as they are signed.
    pub(super) signed: Vec<u8>,
    /// The digests of the signing certificate that are signed along.
    certificates: Vec<(CertificateHash, Vec<u8>)>,
}

/// How a signing certificate is named (RFC 5035).
#[derive(Clone, Copy)]
enum CertificateHash {
    Sha1,
    Sha2(HashAlgorithm),
}

impl Token {
    /// Reads a token, or a response that grants one: bundles have either.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let bad = |error: x509_cert::der::Error| format!("it can't be read: {error}");
        let parts = document(bytes)?;
        let content = match parts.as_slice() {
            [status, token] if status.tag() == Tag::Sequence => {
                granted(*status)?;
                ContentInfo::from_der(&token.to_der().map_err(bad)?).map_err(bad)?
            }
            _ => ContentInfo::from_der(bytes).map_err(bad)?,
        };
        if content.content_type != SIGNED_DATA {
            return Err("it is no signed data".to_owned());
        }
        let data = SignedData::from_der(&content.content.to_der().map_err(bad)?).map_err(bad)?;
        if data.encap_content_info.econtent_type != TST_INFO {
            return Err("it is over something else than a time".to_owned());
        }
        let content = data.encap_content_info.econtent.ok_or("it has no content")?;
        if content.tag() != Tag::OctetString {
            return Err("it has no content".to_owned());
        }
        let content = content.value();
        let [signer] = data.signer_infos.0.as_slice() else {
            return Err("it has not exactly one signer".to_owned());
        };
        let signer = signer.clone();
        let hash = digest(&signer.digest_alg.oid).ok_or("it is hashed in an unknown way")?;
        let attributes = signer.signed_attrs.as_ref().ok_or("nothing in it says what is signed")?;
        if only(attributes, CONTENT_TYPE)?.map(|value| value.to_der()) != Some(TST_INFO.to_der()) {
            return Err("its content type is not signed".to_owned());
        }
        let named = only(attributes, MESSAGE_DIGEST)?.ok_or("its content is not signed")?;
        is(named, Tag::OctetString)?;
        if named.value() != hashed(hash, content)?.as_slice() {
            return Err("its content is not what is signed".to_owned());
        }
        let mut certificates = Vec::new();
        if let Some(value) = only(attributes, SIGNING_CERTIFICATE)? {
            certificates.push(signing_certificate(value)?);
        }
        if let Some(value) = only(attributes, SIGNING_CERTIFICATE_V2)? {
            certificates.push(signing_certificate_v2(value)?);
        }
        let info = Info::read(content)?;
        // In the message they have an implicit tag; what is signed is the set itself
        // (RFC 5652, section 5.4).
        let signed = attributes.to_der().map_err(bad)?;
        Ok(Self { info, hash, signed, certificates, signer })
    }

    /// Returns when it was made.
    pub(super) fn time(&self) -> Timestamp {
        self.info.time
    }

    /// Refuses a token over something else than `signature`.
    pub(super) fn covers(&self, signature: &[u8]) -> Result<(), String> {
        if hashed(self.info.algorithm, signature)? == self.info.hash {
            Ok(())
        } else {
            Err("it is over another signature".to_owned())
        }
    }

    /// Tells whether the certificate is the one that is signed along, if one is.
    pub(super) fn names(&self, certificate: &[u8]) -> bool {
        self.certificates.iter().all(|(by, hash)| match by {
            CertificateHash::Sha1 => {
                sha1(&SHA1_FOR_LEGACY_USE_ONLY, certificate).as_ref() == hash.as_slice()
            }
            CertificateHash::Sha2(by) => hashed(*by, certificate).is_ok_and(|found| found == *hash),
        })
    }
}

/// Refuses a response that doesn't grant a token: its status is 0, or 1 for a token that differs
/// from what was asked for.
fn granted(status: AnyRef<'_>) -> Result<(), String> {
    match sequence(status)?.first() {
        Some(status) if status.tag() == Tag::Integer && matches!(status.value(), [0 | 1]) => Ok(()),
        _ => Err("it is a refusal of the timestamp authority".to_owned()),
    }
}

/// Returns the value of an attribute, which is there at most once and has one value.
fn only(attributes: &Attributes, kind: ObjectIdentifier) -> Result<Option<AnyRef<'_>>, String> {
    let mut found = attributes.iter().filter(|attribute| attribute.oid == kind);
    let Some(attribute) = found.next() else { return Ok(None) };
    match (found.next(), attribute.values.as_slice()) {
        (None, [value]) => Ok(Some(AnyRef::from(value))),
        _ => Err(format!("attribute {kind} is there more than once")),
    }
}

/// Reads `SigningCertificate` (RFC 2634, section 5.4). The first certificate is the signer's.
fn signing_certificate(value: AnyRef<'_>) -> Result<(CertificateHash, Vec<u8>), String> {
    let first = first_certificate(value)?;
    match first.as_slice() {
        [hash, ..] if hash.tag() == Tag::OctetString => {
            Ok((CertificateHash::Sha1, hash.value().to_vec()))
        }
        _ => Err("its signing certificate can't be read".to_owned()),
    }
}

/// Reads `SigningCertificateV2` (RFC 5035, section 3), whose hash is SHA-256 where none is named.
fn signing_certificate_v2(value: AnyRef<'_>) -> Result<(CertificateHash, Vec<u8>), String> {
    let bad = || "its signing certificate can't be read".to_owned();
    let first = first_certificate(value)?;
    let (by, hash) = match first.as_slice() {
        [hash, ..] if hash.tag() == Tag::OctetString => (HashAlgorithm::Sha2256, hash),
        [algorithm, hash, ..] if hash.tag() == Tag::OctetString => {
            let algorithm = sequence(*algorithm)?;
            let oid = algorithm.first().and_then(|oid| oid.decode_as::<ObjectIdentifier>().ok());
            (oid.as_ref().and_then(digest).ok_or_else(bad)?, hash)
        }
        _ => return Err(bad()),
    };
    Ok((CertificateHash::Sha2(by), hash.value().to_vec()))
}

fn first_certificate(value: AnyRef<'_>) -> Result<Vec<AnyRef<'_>>, String> {
    let bad = || "its signing certificate can't be read".to_owned();
    let certificates = *sequence(value)?.first().ok_or_else(bad)?;
    sequence(*sequence(certificates)?.first().ok_or_else(bad)?)
}

/// Hashes bytes.
fn hashed(by: HashAlgorithm, bytes: &[u8]) -> Result<Vec<u8>, String> {
    match by {
        HashAlgorithm::Sha2256 => Ok(sigstore_crypto::sha256(bytes).as_bytes().to_vec()),
        HashAlgorithm::Sha2384 => Ok(sigstore_crypto::sha384(bytes).as_bytes().to_vec()),
        HashAlgorithm::Sha2512 => Ok(sigstore_crypto::sha512(bytes).as_bytes().to_vec()),
        _ => Err("it is hashed in an unknown way".to_owned()),
    }
}
