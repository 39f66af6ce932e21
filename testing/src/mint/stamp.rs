//! Timestamp authorities and their tokens (RFC 3161).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::certificate::{Authority, Purpose, Validity};
use super::encode::{base64, der, sha256};
use super::{Key, World};

const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const POLICY: &[u8] = &[0x2b, 6, 1, 4, 1];
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 4];
const TST_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 1, 4];
const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1];
const SIGNING_CERTIFICATE_V2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 2, 47];

/// A timestamp authority with a root above it.
#[derive(Debug)]
pub(super) struct Stamper {
    root: Authority,
    key: Key,
    der: Vec<u8>,
}

impl Stamper {
    pub(super) fn new(root: Validity, validity: Validity, purpose: Purpose) -> Self {
        let root = Authority::root(root);
        let key = Key::p256();
        let der = root.for_timestamps(&key, validity, purpose);
        Self { root, key, der }
    }

    /// Returns the authority as a trust root names it.
    pub(super) fn json(&self) -> Value {
        json!({
            "subject": { "organization": "example", "commonName": "timestamps" },
            "uri": "https://timestamps.example",
            "certChain": { "certificates": [
                { "rawBytes": base64(&self.der) },
                { "rawBytes": base64(self.root.der()) },
            ] },
            "validFor": { "start": "2020-01-01T00:00:00Z" },
        })
    }
}

/// What is wrong with a timestamp.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flaw {
    /// Nothing.
    None,
    /// It is over another signature.
    OtherSignature,
    /// An authority made it that the root doesn't name, and that calls itself like the one that it
    /// names.
    OtherAuthority,
    /// The digest that is signed is not that of its content.
    MessageDigest,
    /// Nothing signed says what its content is.
    NoContentType,
    /// What is signed says that its content is something else.
    OtherContentType,
    /// It names another signing certificate.
    OtherCertificate,
    /// Its time was changed after it was signed.
    Changed,
    /// It is signed twice.
    TwoSigners,
    /// It has an extension that readers have to understand.
    CriticalExtension,
    /// It comes in a response that says that it is refused.
    Refused,
    /// There is something behind it.
    Trailing,
}

/// A timestamp to be made.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    pub(super) time: String,
    pub(super) flaw: Flaw,
}

/// Writes a time as a token has it, with a fraction if there is one.
pub(super) fn written(time: Timestamp) -> String {
    let text = TimeZone::UTC.to_datetime(time).strftime("%Y%m%d%H%M%S%.f").to_string();
    format!("{text}Z")
}

impl Stamp {
    /// Returns a response with the token over `signature`.
    pub(super) fn token(&self, world: &World, signature: &[u8]) -> Vec<u8> {
        let flaw = self.flaw;
        let stamper =
            if flaw == Flaw::OtherAuthority { &world.foreign_stamper } else { &world.stamper };
        let unless = |other: Flaw, bytes: &[u8]| {
            sha256(if flaw == other { b"another".as_slice() } else { bytes })
        };
        let over = unless(Flaw::OtherSignature, signature);
        let info = self.info(&self.time, &over);
        let digest = unless(Flaw::MessageDigest, &info);
        let certificate = unless(Flaw::OtherCertificate, &stamper.der);
        let attribute =
            |kind: &[u8], value: &[u8]| der(0x30, &[oid(kind), der(0x31, value)].concat());
        let certificate = der(0x30, &der(0x30, &der(0x30, &der(0x04, &certificate))));
        let mut attributes = Vec::new();
        if flaw != Flaw::NoContentType {
            let kind = if flaw == Flaw::OtherContentType { DATA } else { TST_INFO };
            attributes.push(attribute(CONTENT_TYPE, &oid(kind)));
        }
        attributes.push(attribute(MESSAGE_DIGEST, &der(0x04, &digest)));
        attributes.push(attribute(SIGNING_CERTIFICATE_V2, &certificate));
        // In the order of DER.
        attributes.sort();
        let attributes = attributes.concat();
        let issuer = stamper.root.subject();
        let signer = |number: u8| {
            let signature = stamper.key.sign(&der(0x31, &attributes));
            let parts = [
                integer(1),
                der(0x30, &[issuer.clone(), integer(number)].concat()),
                algorithm(SHA256),
                der(0xa0, &attributes),
                algorithm(ECDSA_WITH_SHA256),
                der(0x04, &signature),
            ];
            der(0x30, &parts.concat())
        };
        let mut signers = signer(1);
        if flaw == Flaw::TwoSigners {
            signers.extend(signer(2));
        }
        let info = if flaw == Flaw::Changed {
            self.info(&self.time.replacen("00", "01", 1), &over)
        } else {
            info
        };
        let content = [oid(TST_INFO), der(0xa0, &der(0x04, &info))].concat();
        let data =
            [integer(3), der(0x31, &algorithm(SHA256)), der(0x30, &content), der(0x31, &signers)];
        let data = der(0x30, &data.concat());
        let token = der(0x30, &[oid(SIGNED_DATA), der(0xa0, &data)].concat());
        let status = integer(if flaw == Flaw::Refused { 2 } else { 0 });
        let mut response = der(0x30, &[der(0x30, &status), token].concat());
        if flaw == Flaw::Trailing {
            response.push(0);
        }
        response
    }

    fn info(&self, time: &str, over: &[u8]) -> Vec<u8> {
        let mut parts = [
            integer(1),
            oid(POLICY),
            der(0x30, &[algorithm(SHA256), der(0x04, over)].concat()),
            integer(7),
            der(0x18, time.as_bytes()),
            // Accurate to a second, with a nonce.
            der(0x30, &integer(1)),
            integer(9),
        ]
        .concat();
        if self.flaw == Flaw::CriticalExtension {
            let extension = [oid(POLICY), vec![1, 1, 0xff], der(0x04, b"\x05\x00")].concat();
            parts.extend(der(0xa1, &der(0x30, &extension)));
        }
        der(0x30, &parts)
    }
}

fn integer(number: u8) -> Vec<u8> {
    der(0x02, &[number])
}

fn oid(bytes: &[u8]) -> Vec<u8> {
    der(0x06, bytes)
}

fn algorithm(bytes: &[u8]) -> Vec<u8> {
    der(0x30, &oid(bytes))
}
