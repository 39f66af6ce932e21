//! What a token says: `TSTInfo` (RFC 3161, section 2.4.2).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sigstore_types::HashAlgorithm;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{AnyRef, Tag, TagNumber, Tagged as _};

use super::der::{document, is, items, sequence};

/// What a token says, as far as it matters here.
#[derive(Debug)]
pub(super) struct Info {
    /// When.
    pub(super) time: Timestamp,
    /// By which hash it names what it is over.
    pub(super) algorithm: HashAlgorithm,
    /// The hash of what it is over.
    pub(super) hash: Vec<u8>,
}

impl Info {
    /// Reads it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let fields = document(bytes)?;
        let [version, policy, imprint, serial, time, rest @ ..] = fields.as_slice() else {
            return Err("its content has too few fields".to_owned());
        };
        is(*version, Tag::Integer)?;
        if version.value() != [1] {
            return Err("its content is of another version".to_owned());
        }
        is(*policy, Tag::ObjectIdentifier)?;
        is(*serial, Tag::Integer)?;
        is(*time, Tag::GeneralizedTime)?;
        further(rest)?;
        let imprint = sequence(*imprint)?;
        let [algorithm, hash] = imprint.as_slice() else {
            return Err("what it is over can't be read".to_owned());
        };
        is(*hash, Tag::OctetString)?;
        let algorithm = match sequence(*algorithm)?.as_slice() {
            [oid] | [oid, _] => {
                oid.decode_as::<ObjectIdentifier>().ok().and_then(|oid| digest(&oid))
            }
            _ => None,
        };
        Ok(Self {
            time: moment(time.value())?,
            algorithm: algorithm.ok_or("what it is over is hashed in an unknown way")?,
            hash: hash.value().to_vec(),
        })
    }
}

/// Returns the digest that an identifier names.
pub(super) fn digest(oid: &ObjectIdentifier) -> Option<HashAlgorithm> {
    match oid.to_string().as_str() {
        "2.16.840.1.101.3.4.2.1" => Some(HashAlgorithm::Sha2256),
        "2.16.840.1.101.3.4.2.2" => Some(HashAlgorithm::Sha2384),
        "2.16.840.1.101.3.4.2.3" => Some(HashAlgorithm::Sha2512),
        _ => None,
    }
}

/// Reads what may follow the time: accuracy, ordering, nonce, the authority's name, extensions,
/// each at most once and in this order. A critical extension is one that has to be understood.
fn further(fields: &[AnyRef<'_>]) -> Result<(), String> {
    let mut last = 0;
    for field in fields {
        let tag = field.tag();
        let marked = |wanted: TagNumber| matches!(tag, Tag::ContextSpecific { number, .. } if number == wanted);
        let order = [
            tag == Tag::Sequence,
            tag == Tag::Boolean,
            tag == Tag::Integer,
            marked(TagNumber::N0),
            marked(TagNumber::N1),
        ];
        let place = order.iter().zip(1..).find(|(here, _)| **here).map_or(0, |(_, place)| place);
        if place <= last {
            return Err("its content has a field that doesn't belong there".to_owned());
        }
        last = place;
        if place == 5 {
            for extension in items(field.value())? {
                if sequence(extension)?.iter().any(|part| part.tag() == Tag::Boolean) {
                    return Err("it has a critical extension".to_owned());
                }
            }
        }
    }
    Ok(())
}

/// Reads a time: `YYYYMMDDhhmmss[.s…]Z`, in UTC, and in the one form that DER has for it, without
/// zeros at the end of the fraction.
fn moment(bytes: &[u8]) -> Result<Timestamp, String> {
    let bad = || "its time is in no form that RFC 3161 allows".to_owned();
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    let text = text.strip_suffix('Z').ok_or_else(bad)?;
    let (seconds, fraction) = match text.split_once('.') {
        Some((_, fraction)) if fraction.is_empty() || fraction.ends_with('0') => return Err(bad()),
        Some((seconds, fraction)) => (seconds, fraction),
        None => (text, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.len() != 14 || !digits(seconds) || !digits(fraction) {
        return Err(bad());
    }
    if fraction.len() > 9 {
        return Err("its time is finer than a nanosecond".to_owned());
    }
    let part = |from: usize, to: usize| {
        seconds.get(from..to).and_then(|text| text.parse::<i8>().ok()).ok_or_else(bad)
    };
    let year = seconds.get(..4).and_then(|text| text.parse::<i16>().ok()).ok_or_else(bad)?;
    let nanoseconds = format!("{fraction:0<9}").parse::<i32>().map_err(|_| bad())?;
    let time = DateTime::new(
        year,
        part(4, 6)?,
        part(6, 8)?,
        part(8, 10)?,
        part(10, 12)?,
        part(12, 14)?,
        nanoseconds,
    )
    .and_then(|time| TimeZone::UTC.to_timestamp(time))
    .map_err(|_| bad())?;
    if time < Timestamp::UNIX_EPOCH {
        return Err("its time is before 1970".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_form() {
        for (text, expected) in [
            ("20261130224954Z", "2026-11-30T22:49:54Z"),
            ("20261130224954.5Z", "2026-11-30T22:49:54.5Z"),
            ("20261130224954.024Z", "2026-11-30T22:49:54.024Z"),
            ("20261130224954.123456789Z", "2026-11-30T22:49:54.123456789Z"),
            ("20240229000000Z", "2024-02-29T00:00:00Z"),
        ] {
            let found = moment(text.as_bytes()).map(|time| time.to_string());
            assert_eq!(found.as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "Z",
            "20261130224954",
            "20261130224954.Z",
            "20261130224954.50Z",
            "20261130224954.0Z",
            "20261130224954,5Z",
            "20261130224954.5",
            "20261130224954.5+0100",
            "20261130224954.+5Z",
            "20261130224954.5.5Z",
            "20261130224954.1234567891Z",
            "202611302249Z",
            "20261130224960Z",
            "20261130240000Z",
            "20230229000000Z",
            "+2261130224954Z",
            "19691231235959Z",
            "2026113022495\u{e9}Z",
        ] {
            assert!(moment(text.as_bytes()).is_err(), "{text}");
        }
        assert!(moment(b"20261130224954\xffZ").is_err());
    }
}
