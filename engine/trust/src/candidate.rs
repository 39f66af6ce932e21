//! Signatures and attestations as they are found, before anything is believed.

use ambit_engine::digest::Digest;

/// The form in which a candidate is stored.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CandidateFormat {
    /// A sigstore bundle as an OCI referrer (cosign 3's default).
    Bundle,
    /// A layer of a `.sig` tag: simple signing (cosign 1 and 2).
    LegacySignature,
    /// A layer of a `.att` tag: a DSSE envelope (cosign 1 and 2).
    LegacyAttestation,
}

impl CandidateFormat {
    /// Returns the stable word for this form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::LegacySignature => "legacy-signature",
            Self::LegacyAttestation => "legacy-attestation",
        }
    }
}

/// One signature or attestation as found. Nothing in it is verified.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// Where it was found, for people: `sha256:…` of the referrer manifest, or the tag and layer.
    pub place: String,
    /// What it is.
    pub content: Content,
}

/// The content of a candidate, by form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Content {
    /// The bytes of a sigstore bundle.
    Bundle(Vec<u8>),
    /// A `.sig` layer: the signed payload and the layer's annotations.
    LegacySignature(LegacyLayer),
    /// A `.att` layer: the DSSE envelope and the layer's annotations.
    LegacyAttestation(LegacyLayer),
    /// A referrer or layer that is presented as a signature or attestation, and is none that can
    /// be read; the text says why.
    Unreadable(String),
}

/// A layer of a legacy cosign manifest.
///
/// The fields hold the annotations of cosign's `SIGNATURE_SPEC.md`
/// (<https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>), as they came.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LegacyLayer {
    /// The blob.
    pub payload: Vec<u8>,
    /// `dev.cosignproject.cosign/signature`, base64; empty for attestations.
    pub signature: String,
    /// `dev.sigstore.cosign/certificate`, PEM.
    pub certificate: Option<String>,
    /// `dev.sigstore.cosign/chain`, PEM.
    pub chain: Option<String>,
    /// `dev.sigstore.cosign/bundle`, JSON.
    pub bundle: Option<String>,
    /// `dev.sigstore.cosign/rfc3161timestamp`, JSON.
    pub timestamp: Option<String>,
}

impl Candidate {
    /// Returns the form.
    #[must_use]
    pub fn format(&self) -> CandidateFormat {
        match &self.content {
            Content::Bundle(_) | Content::Unreadable(_) => CandidateFormat::Bundle,
            Content::LegacySignature(_) => CandidateFormat::LegacySignature,
            Content::LegacyAttestation(_) => CandidateFormat::LegacyAttestation,
        }
    }

    /// Returns the digest over everything that verification reads, for caches and reports.
    #[must_use]
    pub fn evidence_digest(&self) -> Digest {
        let mut bytes = Vec::new();
        let mut field = |part: &[u8]| {
            bytes.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            bytes.extend_from_slice(part);
        };
        match &self.content {
            Content::Bundle(bundle) => {
                field(b"bundle");
                field(bundle);
            }
            Content::Unreadable(reason) => {
                field(b"unreadable");
                field(reason.as_bytes());
            }
            Content::LegacySignature(layer) | Content::LegacyAttestation(layer) => {
                field(self.format().as_str().as_bytes());
                field(&layer.payload);
                field(layer.signature.as_bytes());
                for part in [&layer.certificate, &layer.chain, &layer.bundle, &layer.timestamp] {
                    match part {
                        Some(text) => {
                            field(b"+");
                            field(text.as_bytes());
                        }
                        None => field(b"-"),
                    }
                }
            }
        }
        Digest::of(&bytes)
    }
}
