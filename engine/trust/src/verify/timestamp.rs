//! Signed timestamps (RFC 3161): each token is verified here, and by the library as well.
//!
//! The library doesn't read times with fractions of a second, which RFC 3161 (section 2.4.2)
//! allows. So that everything else about such a bundle still goes through the library, it sees a
//! token of a [`stand_in`] in the place of one that is verified here and has a fraction. A token
//! with whole seconds it sees as it came: both have to accept it, and read the same time in it.

mod authority;
mod der;
mod info;
mod stand_in;
mod token;

use jiff::Timestamp;
use sigstore_trust_root::TimestampAuthority;
use sigstore_types::{Bundle, Rfc3161Timestamp, SignatureContent};

use super::text::{Refusal, refuse};
use super::{RejectCode, TrustRoot, bundle};
use stand_in::StandIn;
use token::Token;

/// The largest token, in bytes. One with a chain of certificates in it has six thousand.
const MAX_TOKEN_BYTES: usize = 1 << 16;

/// The verified tokens of a bundle, and what the library is to see of them.
pub(super) struct Stamps {
    times: Vec<Timestamp>,
    replaced: Option<Replaced>,
}

/// A bundle whose tokens with fractions are replaced, and who signed what stands in their place.
struct Replaced {
    bundle: Bundle,
    authorities: Vec<TimestampAuthority>,
}

impl Stamps {
    /// Verifies each token of `bundle`. One that no authority of `root` vouches for is refused,
    /// whatever else says when it was signed.
    pub(super) fn of(bundle: &Bundle, root: &TrustRoot) -> Result<Self, Refusal> {
        let all: Vec<&TimestampAuthority> = root.timestamp_authorities().iter().collect();
        let times = verified(bundle, &all)?;
        if times.iter().all(|time| *time == whole(*time)) {
            return Ok(Self { times, replaced: None });
        }
        let signer = StandIn::new()?;
        let mut seen = bundle.clone();
        let signature = signature(bundle)?;
        let data = &mut seen.verification_material.timestamp_verification_data;
        for (token, time) in data.rfc3161_timestamps.iter_mut().zip(&times) {
            if *time != whole(*time) {
                *token = Rfc3161Timestamp::new(signer.token(signature, whole(*time))?);
            }
        }
        let authorities = vec![signer.authority()?];
        Ok(Self { times, replaced: Some(Replaced { bundle: seen, authorities }) })
    }

    /// Returns the bundle that the library is to see, where it isn't the bundle itself.
    pub(super) fn seen(&self) -> Option<&Bundle> {
        self.replaced.as_ref().map(|replaced| &replaced.bundle)
    }

    /// Returns the authorities that the library needs to know beside those of the root.
    pub(super) fn authorities(&self) -> &[TimestampAuthority] {
        self.replaced.as_ref().map_or(&[], |replaced| &replaced.authorities)
    }

    /// Returns the times of the tokens.
    pub(super) fn times(&self) -> &[Timestamp] {
        &self.times
    }

    /// Returns the library's times with those of the tokens as they are, and refuses a token in
    /// which the library reads another time.
    pub(super) fn exact(&self, mut found: Vec<Timestamp>) -> Result<Vec<Timestamp>, Refusal> {
        for time in &self.times {
            let at = found.iter().position(|found| *found == whole(*time)).ok_or_else(|| {
                wrong(format!("the time {time} of a timestamp can be read in more than one way"))
            })?;
            found.swap_remove(at);
        }
        found.extend(&self.times);
        Ok(found)
    }

    /// Verifies the tokens once more, by those authorities of `root` only that were in use at each
    /// of `times`.
    pub(super) fn within(
        bundle: &Bundle,
        root: &TrustRoot,
        times: &[Timestamp],
    ) -> Result<(), Refusal> {
        verified(bundle, &root.timestamp_authorities_at(times)).map(|_| ())
    }
}

/// Returns the time without its fraction, as the library is told it.
pub(super) fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(Timestamp::MAX)
}

fn verified(
    bundle: &Bundle,
    authorities: &[&TimestampAuthority],
) -> Result<Vec<Timestamp>, Refusal> {
    let tokens = &bundle.verification_material.timestamp_verification_data.rfc3161_timestamps;
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let signature = signature(bundle)?;
    tokens
        .iter()
        .map(|token| one(token.signed_timestamp.as_bytes(), signature, authorities))
        .collect()
}

/// Verifies one token over `signature`. Each authority is tried alone, so that none lends another
/// its dates.
fn one(
    bytes: &[u8],
    signature: &[u8],
    authorities: &[&TimestampAuthority],
) -> Result<Timestamp, Refusal> {
    let size = bytes.len();
    bundle::limit(size, MAX_TOKEN_BYTES, "bytes in a timestamp")?;
    let token = Token::read(bytes).map_err(wrong)?;
    token.covers(signature).map_err(wrong)?;
    let mut reason = "no timestamp authority of the trust root made it".to_owned();
    for authority in authorities {
        match authority::vouches(authority, &token) {
            Ok(()) => return Ok(token.time()),
            Err(authority::Refused::Other) => {}
            Err(authority::Refused::For(found)) => reason = found,
        }
    }
    Err(wrong(reason))
}

fn signature(bundle: &Bundle) -> Result<&[u8], Refusal> {
    match &bundle.content {
        SignatureContent::MessageSignature(message) => Ok(message.signature.as_bytes()),
        SignatureContent::DsseEnvelope(envelope) => Ok(envelope.signature.sig.as_bytes()),
        _ => Err(refuse(RejectCode::Format, "the content is of an unknown kind")),
    }
}

fn wrong(reason: impl Into<String>) -> Refusal {
    let reason: String = reason.into();
    refuse(RejectCode::Time, format!("a signed timestamp doesn't count: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_is_an_authority_like_any_other() {
        let signer = StandIn::new().expect("a key");
        let authority = signer.authority().expect("an authority");
        let time = Timestamp::from_second(1_800_000_000).expect("a time");
        let token = signer.token(b"a signature", time).expect("a token");
        assert_eq!(one(token.as_bytes(), b"a signature", &[&authority]).ok(), Some(time));
        assert!(one(token.as_bytes(), b"another", &[&authority]).is_err());
        let other = StandIn::new().expect("a key").authority().expect("an authority");
        assert!(one(token.as_bytes(), b"a signature", &[&other]).is_err());
        assert!(one(token.as_bytes(), b"a signature", &[]).is_err());
    }

    #[test]
    fn no_cut_or_flipped_token_counts_or_panics() {
        let signer = StandIn::new().expect("a key");
        let authority = signer.authority().expect("an authority");
        let time = Timestamp::from_second(1_800_000_000).expect("a time");
        let token = signer.token(b"a signature", time).expect("a token").as_bytes().to_vec();
        for at in 0..token.len() {
            let cut = token.get(..at).unwrap_or_default();
            assert!(one(cut, b"a signature", &[&authority]).is_err(), "cut at {at}");
            let mut flipped = token.clone();
            if let Some(byte) = flipped.get_mut(at) {
                *byte ^= 1;
            }
            let found = one(&flipped, b"a signature", &[&authority]).ok();
            // Versions and algorithm parameters aren't signed, and say nothing.
            assert!(found.is_none() || found == Some(time), "flipped at {at}");
        }
        let long = vec![0x30; MAX_TOKEN_BYTES.saturating_add(1)];
        let refused = one(&long, b"a signature", &[&authority]).map_err(|refusal| refusal.code);
        assert_eq!(refused, Err(RejectCode::Limit));
    }
}
