//! Predicate types and their short names.

/// Cosign's short names, each with every URI that is written for it
/// (<https://github.com/sigstore/cosign/blob/main/pkg/cosign/attestation/attestation.go>). GitHub's
/// action for bills of materials writes the version of SPDX into the URI.
const SHORT_NAMES: [(&str, &[&str]); 10] = [
    ("custom", &["https://cosign.sigstore.dev/attestation/v1"]),
    ("cyclonedx", &["https://cyclonedx.org/bom"]),
    ("link", &["https://in-toto.io/Link/v1"]),
    ("openvex", &["https://openvex.dev/ns"]),
    ("slsaprovenance", &["https://slsa.dev/provenance/v0.2"]),
    ("slsaprovenance02", &["https://slsa.dev/provenance/v0.2"]),
    ("slsaprovenance1", &["https://slsa.dev/provenance/v1"]),
    ("spdx", &["https://spdx.dev/Document", "https://spdx.dev/Document/v2.3"]),
    ("spdxjson", &["https://spdx.dev/Document", "https://spdx.dev/Document/v2.3"]),
    ("vuln", &["https://cosign.sigstore.dev/attestation/vuln/v1"]),
];

/// The predicate type under which cosign 3 stores signatures.
pub(super) const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";

/// The longest predicate type, in bytes.
const MAX_BYTES: usize = 1_024;

/// Why a text is no predicate type.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PredicateError {
    /// It is no URI and no short name.
    #[error("`{0}` is no predicate type")]
    Unknown(String),
    /// It is the type of signatures, which are asked for by asking for no attestation.
    #[error("`{SIGNATURE}` is the type of signatures")]
    Signature,
}

impl PredicateError {
    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Unknown(_) => {
                let names: Vec<&str> = SHORT_NAMES.iter().map(|(name, _)| *name).collect();
                format!("write the URI in full, or one of {}", names.join(", "))
            }
            Self::Signature => "delete it: without attestations a signature is needed".to_owned(),
        }
    }
}

/// Returns the predicate types that a name stands for, which are compared exactly.
///
/// # Errors
///
/// [`PredicateError`].
pub fn predicate_types(text: &str) -> Result<Vec<String>, PredicateError> {
    if let Some((_, uris)) = SHORT_NAMES.iter().find(|(name, _)| *name == text) {
        return Ok(uris.iter().map(|uri| (*uri).to_owned()).collect());
    }
    if text == SIGNATURE {
        return Err(PredicateError::Signature);
    }
    let scheme = text.split_once("://").map(|(scheme, rest)| (scheme.len(), rest.len()));
    let fits = text.len() <= MAX_BYTES && !text.contains(|c: char| c.is_whitespace());
    match scheme {
        Some((1.., 1..)) if fits => Ok(vec![text.to_owned()]),
        _ => Err(PredicateError::Unknown(text.chars().take(80).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_stand_for_exact_types() {
        assert_eq!(predicate_types("spdxjson").unwrap().len(), 2);
        let uri = "https://spdx.dev/Document";
        assert_eq!(predicate_types(uri), Ok(vec![uri.to_owned()]));
        assert_eq!(predicate_types("slsaprovenance"), predicate_types("slsaprovenance02"));
        for text in ["", "SPDX", "spdx.dev/Document", "://", "https://a b", "slsa"] {
            assert!(predicate_types(text).is_err(), "`{text}` was accepted");
        }
        assert_eq!(predicate_types(SIGNATURE), Err(PredicateError::Signature));
    }
}
