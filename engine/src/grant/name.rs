//! DNS names in the one form in which they are compared.

use std::fmt;
use std::net::Ipv4Addr;

/// The longest name, in bytes, without its trailing dot (RFC 1035, section 2.3.4).
const MAX_NAME_BYTES: usize = 253;
/// The longest label, in bytes (RFC 1035, section 2.3.4).
const MAX_LABEL_BYTES: usize = 63;

/// A DNS name: ASCII, lower case, without its trailing dot, of labels of 1 to 63 letters, digits,
/// hyphens and underscores, at most 253 bytes in all.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Name(String);

/// Why a text is not a [`Name`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing is left once one trailing dot is removed.
    #[error("empty name")]
    Empty,
    /// The name is longer than DNS allows.
    #[error("name of {found} bytes is over the limit of {limit}")]
    TooLong {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A label is empty, longer than 63 bytes, or holds another character.
    #[error("invalid label `{0}`")]
    Label(String),
    /// A resolver may take the name for an IPv4 address (`127.1`, `2130706433`, `0x7f.1`).
    #[error("name looks like a number")]
    Numeric,
    /// The Unicode form has no ASCII form (UTS 46, section 4).
    #[error("name has no ASCII form")]
    Idna,
}

impl Name {
    /// Reads a name; Unicode is mapped to its ASCII form.
    ///
    /// # Errors
    ///
    /// Every variant of [`NameError`], by its description.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ambit_engine::grant::Name;
    /// assert_eq!(Name::parse("Bücher.Example.")?.as_str(), "xn--bcher-kva.example");
    /// # Ok::<(), ambit_engine::grant::NameError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let name = Self::parse_lenient(text)?;
        if looks_numeric(name.as_str()) { Err(NameError::Numeric) } else { Ok(name) }
    }

    /// Reads a name that may look like a number, as wasmCloud does; such a name equals no target.
    pub(super) fn parse_lenient(text: &str) -> Result<Self, NameError> {
        let ascii = to_ascii(text)?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > MAX_NAME_BYTES {
            return Err(NameError::TooLong { found: name.len(), limit: MAX_NAME_BYTES });
        }
        for label in name.split('.') {
            let valid = (1..=MAX_LABEL_BYTES).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
            if !valid {
                return Err(NameError::Label(label.to_owned()));
            }
        }
        Ok(Self(name.to_owned()))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name lies strictly below `parent`, by whole labels.
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0
            .strip_suffix(parent.as_str())
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|rest| !rest.is_empty())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The lower-case ASCII form. ASCII input is only lower-cased, so that entries and targets, which
/// arrive in ASCII, are normalised by the same rule.
pub(super) fn to_ascii(text: &str) -> Result<String, NameError> {
    if text.is_ascii() {
        return Ok(text.to_ascii_lowercase());
    }
    idna::domain_to_ascii(text).map_err(|_| NameError::Idna)
}

/// Whether the last label is all digits or starts with `0x`, which is when `getaddrinfo` and
/// browsers try to read the name as an IPv4 address.
pub(super) fn looks_numeric(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    !last.is_empty()
        && (last.bytes().all(|b| b.is_ascii_digit())
            || last.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x")))
}

/// Reads an IPv4 address in any spelling that a URL parser takes: one to four parts, each decimal,
/// octal or hexadecimal, the last one filling the remaining bytes (URL Standard, section 3.5).
pub(super) fn loose_ipv4(text: &str) -> Option<Ipv4Addr> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let parts: Vec<u64> = text.split('.').map(loose_number).collect::<Option<_>>()?;
    let (last, front) = parts.split_last()?;
    if front.len() > 3 || front.iter().any(|part| *part > 255) {
        return None;
    }
    let missing = u32::try_from(4usize.checked_sub(front.len())?).ok()?;
    if *last >= 256u64.checked_pow(missing)? {
        return None;
    }
    let mut value = *last;
    for (index, part) in front.iter().enumerate() {
        let shift = 3usize.checked_sub(index)?.checked_mul(8)?;
        value |= part.checked_shl(u32::try_from(shift).ok()?)?;
    }
    u32::try_from(value).ok().map(Ipv4Addr::from)
}

fn loose_number(part: &str) -> Option<u64> {
    let hexadecimal = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
    let (digits, radix) = match (hexadecimal, part.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        (None, _) => (part, 10),
    };
    match (digits.is_empty(), radix) {
        (true, 16) => Some(0),
        (true, _) => None,
        (false, _) if digits.starts_with('+') => None,
        (false, _) => u64::from_str_radix(digits, radix).ok(),
    }
}
