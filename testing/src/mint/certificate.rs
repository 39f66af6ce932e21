//! Authorities and leaves, with the certificate log's word in them.
#![expect(
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    reason = "a test that can't make a certificate has nothing to test"
)]

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyUsagePurpose, OtherNameValue, SanType, SerialNumber,
    date_time_ymd,
};

use super::encode::{der, first_inner, sha256};
use super::{Key, World};

/// When a certificate is valid, ends included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Validity {
    /// The first moment.
    pub from: Timestamp,
    /// The last moment.
    pub to: Timestamp,
}

impl Validity {
    /// Returns a year before and after a time.
    #[must_use]
    pub fn around(time: Timestamp) -> Self {
        let year = SignedDuration::from_hours(24 * 365);
        Self { from: time - year, to: time + year }
    }
}

/// A subject alternative name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Name {
    /// A URI, as for a workload.
    Uri(String),
    /// An e-mail address, as for a person.
    Email(String),
    /// A host name, which no identity is.
    Dns(String),
    /// An OtherName of the form that Fulcio uses for names without a domain.
    Other(String),
}

/// What the certificate log says in a leaf.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sct {
    /// Its word about this leaf.
    Good,
    /// Nothing.
    Missing,
    /// The word of a log that the root doesn't name.
    OtherLog,
    /// Its word about another leaf.
    Wrong,
}

/// What the certificate of a timestamp authority is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Timestamps alone, as RFC 3161 asks for.
    Timestamps,
    /// Timestamps alone, and readers may overlook it.
    NotCritical,
    /// Timestamps and code.
    More,
    /// Code.
    Code,
}

/// An authority.
pub(super) struct Authority {
    params: CertificateParams,
    key: Key,
    der: Vec<u8>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Authority {
    pub(super) fn root(validity: Validity) -> Self {
        let key = Key::p256();
        let params = authority("root", validity);
        let der = params.self_signed(&key.pair).expect("a root").der().to_vec();
        Self { params, key, der }
    }

    pub(super) fn intermediate(&self, validity: Validity) -> Self {
        let key = Key::p256();
        let mut params = authority("intermediate", validity);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let issuer = Issuer::from_params(&self.params, &self.key.pair);
        let der = params.signed_by(&key.pair, &issuer).expect("an intermediate").der().to_vec();
        Self { params, key, der }
    }

    pub(super) fn der(&self) -> &[u8] {
        &self.der
    }

    /// Returns its name in DER: one common name, as a UTF8String.
    pub(super) fn subject(&self) -> Vec<u8> {
        const COMMON_NAME: &[u8] = &[6, 3, 0x55, 4, 3];
        let name = der(0x0c, b"root");
        der(0x30, &der(0x31, &der(0x30, &[COMMON_NAME, &name].concat())))
    }

    /// Signs a certificate of a timestamp authority, with serial number 1.
    pub(super) fn for_timestamps(
        &self,
        key: &Key,
        validity: Validity,
        purpose: Purpose,
    ) -> Vec<u8> {
        const TIME_STAMPING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];
        const CODE_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 3];
        let purposes: &[&[u8]] = match purpose {
            Purpose::Timestamps | Purpose::NotCritical => &[TIME_STAMPING],
            Purpose::More => &[TIME_STAMPING, CODE_SIGNING],
            Purpose::Code => &[CODE_SIGNING],
        };
        let purposes: Vec<u8> = purposes.iter().flat_map(|oid| der(0x06, oid)).collect();
        let mut usage = CustomExtension::from_oid_content(&[2, 5, 29, 37], der(0x30, &purposes));
        usage.set_criticality(purpose != Purpose::NotCritical);
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "timestamps");
        params.serial_number = Some(SerialNumber::from_slice(&[1]));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.custom_extensions.push(usage);
        set(&mut params, validity);
        let issuer = Issuer::from_params(&self.params, &self.key.pair);
        params.signed_by(&key.pair, &issuer).expect("a certificate").der().to_vec()
    }
}

fn authority(name: &str, validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    set(&mut params, validity);
    params
}

fn set(params: &mut CertificateParams, validity: Validity) {
    let epoch = date_time_ymd(1970, 1, 1);
    let since =
        |time: Timestamp| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    params.not_before = epoch + since(validity.from);
    params.not_after = epoch + since(validity.to);
}

/// What a leaf says.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) names: Vec<Name>,
    pub(super) issuer: Option<String>,
    pub(super) claims: Vec<(u64, String)>,
    pub(super) validity: Validity,
    pub(super) sct: Sct,
}

impl Leaf {
    /// Signs a leaf for `key`.
    pub(super) fn sign(&self, world: &World, key: &Key) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.serial_number = Some(SerialNumber::from_slice(&key.id()[..16]));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        params.use_authority_key_identifier_extension = true;
        params.subject_alt_names = self.names.iter().map(san).collect();
        set(&mut params, self.validity);
        if let Some(issuer) = &self.issuer {
            params.custom_extensions.push(fulcio(8, &der(0x0c, issuer.as_bytes())));
        }
        for (number, value) in &self.claims {
            // The deprecated ones hold bare text, the newer ones a UTF8String.
            let content =
                if *number < 8 { value.clone().into_bytes() } else { der(0x0c, value.as_bytes()) };
            params.custom_extensions.push(fulcio(*number, &content));
        }
        let authority = world.issuer();
        let issuer = Issuer::from_params(&authority.params, &authority.key.pair);
        let first = params.signed_by(&key.pair, &issuer).expect("a leaf").der().to_vec();
        let foreign = Key::p256();
        let (log, signed): (&Key, Vec<u8>) = match self.sct {
            Sct::Missing => return first,
            Sct::Good => (&world.certificate_log, first_inner(&first).to_vec()),
            Sct::OtherLog => (&foreign, first_inner(&first).to_vec()),
            Sct::Wrong => (&world.certificate_log, b"another".to_vec()),
        };
        let list = sct_list(log, &sha256(&authority.key.spki()), &signed, self.validity.from);
        // The list goes last, so that the rest of the leaf is what the log saw.
        params.custom_extensions.push(CustomExtension::from_oid_content(
            &[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2],
            der(0x04, &list),
        ));
        params.signed_by(&key.pair, &issuer).expect("a leaf").der().to_vec()
    }
}

fn fulcio(number: u64, content: &[u8]) -> CustomExtension {
    CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 57264, 1, number], content.to_vec())
}

fn san(name: &Name) -> SanType {
    let text = |text: &str| Ia5String::try_from(text).expect("a name in ASCII");
    match name {
        Name::Uri(uri) => SanType::URI(text(uri)),
        Name::Email(email) => SanType::Rfc822Name(text(email)),
        Name::Dns(host) => SanType::DnsName(text(host)),
        Name::Other(name) => SanType::OtherName((
            vec![1, 3, 6, 1, 4, 1, 57264, 1, 7],
            OtherNameValue::Utf8String(name.clone()),
        )),
    }
}

/// Returns a list of one signed certificate timestamp (RFC 6962, sections 3.2 and 3.3).
fn sct_list(log: &Key, issuer: &[u8; 32], signed: &[u8], at: Timestamp) -> Vec<u8> {
    let time = u64::try_from(at.as_millisecond()).unwrap_or_default().to_be_bytes();
    let length = u32::try_from(signed.len()).unwrap_or_default().to_be_bytes();
    // Version 1, certificate timestamp, time, precertificate, key hash, length in 3 bytes.
    let mut message = vec![0, 0];
    message.extend_from_slice(&time);
    message.extend_from_slice(&[0, 1]);
    message.extend_from_slice(issuer);
    message.extend_from_slice(length.get(1..).unwrap_or_default());
    message.extend_from_slice(signed);
    message.extend_from_slice(&[0, 0]);

    let mut sct = vec![0];
    sct.extend_from_slice(&log.id());
    sct.extend_from_slice(&time);
    sct.extend_from_slice(&[0, 0]);
    // SHA-256 and ECDSA.
    sct.extend_from_slice(&[4, 3]);
    sct.extend_from_slice(&prefixed(&log.sign(&message)));
    prefixed(&prefixed(&sct))
}

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(bytes.len()).unwrap_or_default().to_be_bytes().to_vec();
    out.extend_from_slice(bytes);
    out
}
