//! A timestamp authority for the length of one verification.
//!
//! It repeats a time that is already verified in a form that the library reads, without the
//! fraction. Its key is made for one bundle, never leaves this module and goes with it, so that
//! nobody else can speak for it; the library knows it only while it looks at that one bundle, and
//! each token in there is verified by the trust root's own authorities before.

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sigstore_trust_root::TimestampAuthority;
use sigstore_types::{DerCertificate, TimestampToken};

use super::der::value;
use crate::verify::RejectCode;
use crate::verify::text::{Refusal, refuse, shown};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_3: u8 = 0xa3;

const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const TIME_STAMPING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];
const ANY_POLICY: &[u8] = &[0x55, 0x1d, 0x20, 0x00];
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const TST_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x03];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x04];

/// A key and the certificate that it signed for itself.
pub(super) struct StandIn {
    pair: EcdsaKeyPair,
    certificate: Vec<u8>,
}

impl StandIn {
    /// Makes one.
    pub(super) fn new() -> Result<Self, Refusal> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).map_err(|_| broken())?;
        let key = pair.public_key().as_der().map_err(|_| broken())?;
        let purposes = value(SEQUENCE, &[&value(OID, &[TIME_STAMPING])]);
        let extension = value(
            SEQUENCE,
            &[
                &value(OID, &[EXTENDED_KEY_USAGE]),
                // Critical.
                &[0x01, 0x01, 0xff],
                &value(OCTETS, &[&purposes]),
            ],
        );
        let always = value(
            SEQUENCE,
            &[
                &value(UTC_TIME, &[b"700101000000Z"]),
                &value(GENERALIZED_TIME, &[b"99990101000000Z"]),
            ],
        );
        let content = value(
            SEQUENCE,
            &[
                // Version 3, serial number 1.
                &value(CONTEXT_0, &[&number(2)]),
                &number(1),
                &algorithm(ECDSA_WITH_SHA256),
                &name(),
                &always,
                &name(),
                key.as_ref(),
                &value(CONTEXT_3, &[&value(SEQUENCE, &[&extension])]),
            ],
        );
        let signature = sign(&pair, &content)?;
        // The signature is a bit string without unused bits.
        let signature = value(0x03, &[&[0], &signature]);
        let certificate = value(SEQUENCE, &[&content, &algorithm(ECDSA_WITH_SHA256), &signature]);
        Ok(Self { pair, certificate })
    }

    /// Returns it as a trust root names an authority.
    pub(super) fn authority(&self) -> Result<TimestampAuthority, Refusal> {
        let certificate = DerCertificate::from_bytes(&self.certificate).to_base64();
        let authority =
            serde_json::json!({ "certChain": { "certificates": [{ "rawBytes": certificate }] } });
        serde_json::from_value(authority)
            .map_err(|error| refuse(RejectCode::Time, shown(&error.to_string())))
    }

    /// Signs that `signature` was there at `time`, a whole second.
    pub(super) fn token(
        &self,
        signature: &[u8],
        time: Timestamp,
    ) -> Result<TimestampToken, Refusal> {
        let time = TimeZone::UTC.to_datetime(time).strftime("%Y%m%d%H%M%SZ").to_string();
        let hash = sigstore_crypto::sha256(signature);
        let info = value(
            SEQUENCE,
            &[
                &number(1),
                &value(OID, &[ANY_POLICY]),
                &value(SEQUENCE, &[&algorithm(SHA256), &value(OCTETS, &[hash.as_bytes()])]),
                &number(1),
                &value(GENERALIZED_TIME, &[time.as_bytes()]),
            ],
        );
        let hash = sigstore_crypto::sha256(&info);
        let attribute = |kind: &[u8], content: &[u8]| {
            value(SEQUENCE, &[&value(OID, &[kind]), &value(SET, &[content])])
        };
        // In the order of DER: by their encodings.
        let attributes = [
            attribute(CONTENT_TYPE, &value(OID, &[TST_INFO])),
            attribute(MESSAGE_DIGEST, &value(OCTETS, &[hash.as_bytes()])),
        ]
        .concat();
        let signed = sign(&self.pair, &value(SET, &[&attributes]))?;
        let signer = value(
            SEQUENCE,
            &[
                &number(1),
                &value(SEQUENCE, &[&name(), &number(1)]),
                &algorithm(SHA256),
                &value(CONTEXT_0, &[&attributes]),
                &algorithm(ECDSA_WITH_SHA256),
                &value(OCTETS, &[&signed]),
            ],
        );
        let content = value(
            SEQUENCE,
            &[&value(OID, &[TST_INFO]), &value(CONTEXT_0, &[&value(OCTETS, &[&info])])],
        );
        let data = value(
            SEQUENCE,
            &[&number(3), &value(SET, &[&algorithm(SHA256)]), &content, &value(SET, &[&signer])],
        );
        let token = value(SEQUENCE, &[&value(OID, &[SIGNED_DATA]), &value(CONTEXT_0, &[&data])]);
        Ok(TimestampToken::new(token))
    }
}

fn number(number: u8) -> Vec<u8> {
    value(INTEGER, &[&[number]])
}

fn algorithm(oid: &[u8]) -> Vec<u8> {
    value(SEQUENCE, &[&value(OID, &[oid])])
}

fn name() -> Vec<u8> {
    let part = value(SEQUENCE, &[&value(OID, &[COMMON_NAME]), &value(UTF8, &[b"stand-in"])]);
    value(SEQUENCE, &[&value(SET, &[&part])])
}

fn sign(pair: &EcdsaKeyPair, message: &[u8]) -> Result<Vec<u8>, Refusal> {
    let signature = pair.sign(&SystemRandom::new(), message).map_err(|_| broken())?;
    Ok(signature.as_ref().to_vec())
}

fn broken() -> Refusal {
    refuse(RejectCode::Time, "this build can't repeat a time with a fraction of a second")
}
