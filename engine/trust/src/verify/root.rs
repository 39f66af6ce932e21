//! Trust roots: which authorities, logs and timestamp authorities count, each with its dates.

mod authority;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ambit_engine::digest::Digest;
use jiff::Timestamp;
use sigstore_trust_root::{
    SIGSTORE_GITHUB_TRUSTED_ROOT, SIGSTORE_PRODUCTION_TRUSTED_ROOT, TimestampAuthority, TrustedRoot,
};
use sigstore_types::{DerCertificate, TimeRange, TransparencyLogEntry};
use sigstore_verify::Verifier;

use super::legacy::pem_certificates;
use super::log::ours;
use super::text::{Refusal, refuse, shown};
use super::timestamp::whole;
use super::{RejectCode, json};
use authority::Window;
pub(super) use authority::window;

/// The name of the built-in root of the public-good instance (sigstore.dev).
pub(super) const PUBLIC_GOOD: &str = "public-good";

/// The name of the built-in root of GitHub's instance.
pub(super) const GITHUB: &str = "github";

/// The largest trust root, in bytes. The public-good one has seven thousand.
const MAX_BYTES: usize = 1 << 20;

/// The most logs, certificates and authorities of one root, each.
const MAX_PARTS: usize = 64;

/// The forms of a trust root.
const MEDIA_TYPES: [&str; 3] = [
    "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "application/vnd.dev.sigstore.trustedroot.v0.1+json",
    "application/vnd.dev.sigstore.trustedroot.v0.2+json",
];

/// Why a trust root can't be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// It is not a trust root, or not certificates in PEM.
    #[error("trust root `{name}`: {reason}")]
    Invalid {
        /// The name of the root.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is larger or has more parts than are read.
    #[error("trust root `{name}` has {what}, over the limit of {limit}")]
    Limit {
        /// The name of the root.
        name: String,
        /// What there is too much of, with the number found.
        what: String,
        /// The limit.
        limit: usize,
    },
    /// An intermediate certificate is signed by none of the roots.
    #[error("trust root `{name}`: intermediate certificate {position} leads to none of the roots")]
    Unrooted {
        /// The name of the root.
        name: String,
        /// Which one, counted from 1.
        position: usize,
    },
}

impl RootError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "trust-root-invalid",
            Self::Limit { .. } => "trust-root-limit",
            Self::Unrooted { .. } => "trust-root-unrooted",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => {
                "give a `trusted_root.json`, as `cosign trusted-root create` writes it"
            }
            Self::Limit { .. } => "no trust root is that large; look at the file",
            Self::Unrooted { .. } => {
                "give the certificates between the roots and the signing certificates, and no others"
            }
        }
    }
}

/// One trust root, prepared once.
///
/// The library treats each certificate of an authority as an anchor and doesn't look at its dates;
/// they are kept here, and an authority counts only where each of its certificates was valid at
/// each verified time.
pub struct TrustRoot {
    name: String,
    digest: Digest,
    as_of: Option<Timestamp>,
    material: TrustedRoot,
    authorities: Vec<Vec<Window>>,
    logs: BTreeSet<Vec<u8>>,
    verifier: Verifier,
}

impl TrustRoot {
    /// Reads a `trusted_root.json`.
    ///
    /// # Errors
    ///
    /// [`RootError::Invalid`] if it is none, or has a key, certificate or window that can't be
    /// used; [`RootError::Limit`].
    pub fn from_json(name: &str, bytes: &[u8]) -> Result<Self, RootError> {
        limit(name, bytes.len(), MAX_BYTES, "bytes")?;
        let invalid = |reason: String| RootError::Invalid { name: name.to_owned(), reason };
        let value = json::parse(bytes, "it").map_err(|refusal| invalid(refusal.message))?;
        let kind = value.get("mediaType").and_then(serde_json::Value::as_str).unwrap_or_default();
        if !MEDIA_TYPES.contains(&kind) {
            return Err(invalid(format!("its `mediaType` is `{}`", shown(kind))));
        }
        let material: TrustedRoot =
            serde_json::from_value(value).map_err(|error| invalid(shown(&error.to_string())))?;
        Self::prepare(name, Digest::of(bytes), material)
    }

    /// Makes a root of private authorities in PEM (`--ca-roots`, `--ca-intermediates`), without
    /// logs and timestamp authorities.
    ///
    /// # Errors
    ///
    /// [`RootError::Invalid`] if a certificate can't be read or there is no root;
    /// [`RootError::Unrooted`] if an intermediate isn't signed by what comes above it.
    pub fn from_certificates(
        name: &str,
        roots_pem: &str,
        intermediates_pem: &str,
    ) -> Result<Self, RootError> {
        let empty = serde_json::json!({ "mediaType": MEDIA_TYPES[0] });
        let material = serde_json::from_value(empty).map_err(|error| RootError::Invalid {
            name: name.to_owned(),
            reason: shown(&error.to_string()),
        })?;
        Self::assemble(name, material, Digest::of(b""), roots_pem, intermediates_pem)
    }

    /// Makes a root of private authorities in PEM, with the logs and timestamp authorities of this
    /// one.
    ///
    /// # Errors
    ///
    /// Those of [`TrustRoot::from_certificates`].
    pub fn with_certificates(
        &self,
        name: &str,
        roots_pem: &str,
        intermediates_pem: &str,
    ) -> Result<Self, RootError> {
        Self::assemble(name, self.material.clone(), self.digest, roots_pem, intermediates_pem)
    }

    /// Makes a root of one private chain in PEM (`--certificate-chain`: the issuer of the signing
    /// certificates first, the root last), with the logs and timestamp authorities of this one.
    ///
    /// # Errors
    ///
    /// Those of [`TrustRoot::from_certificates`].
    pub fn with_chain(&self, name: &str, chain_pem: &str) -> Result<Self, RootError> {
        limit(name, chain_pem.len(), MAX_BYTES, "bytes")?;
        let invalid = |reason: String| RootError::Invalid { name: name.to_owned(), reason };
        let chain = pem_certificates(chain_pem).map_err(|refusal| invalid(refusal.message))?;
        let (root, intermediates) = chain
            .split_last()
            .ok_or_else(|| invalid("there is no certificate in it".to_owned()))?;
        let intermediates: String = intermediates.iter().map(DerCertificate::to_pem).collect();
        self.with_certificates(name, &root.to_pem(), &intermediates)
    }

    fn assemble(
        name: &str,
        mut material: TrustedRoot,
        base: Digest,
        roots_pem: &str,
        intermediates_pem: &str,
    ) -> Result<Self, RootError> {
        limit(name, roots_pem.len().saturating_add(intermediates_pem.len()), MAX_BYTES, "bytes")?;
        material.certificate_authorities = authority::from_pem(name, roots_pem, intermediates_pem)?;
        let mut bytes = base.as_bytes().to_vec();
        for text in [roots_pem, intermediates_pem] {
            bytes.extend_from_slice(Digest::of(text.as_bytes()).as_bytes());
        }
        Self::prepare(name, Digest::of(&bytes), material)
    }

    /// Returns the public-good instance's root (sigstore.dev), as it is in this build.
    ///
    /// # Errors
    ///
    /// [`RootError`] only if this build is broken.
    pub fn public_good() -> Result<Self, RootError> {
        Self::from_json(PUBLIC_GOOD, SIGSTORE_PRODUCTION_TRUSTED_ROOT.as_bytes())
    }

    /// Returns the root of GitHub's instance, which signs for private repositories and releases,
    /// as it is in this build. It has no logs, only timestamps.
    ///
    /// # Errors
    ///
    /// [`RootError`] only if this build is broken.
    pub fn github() -> Result<Self, RootError> {
        Self::from_json(GITHUB, SIGSTORE_GITHUB_TRUSTED_ROOT.as_bytes())
    }

    fn prepare(name: &str, digest: Digest, material: TrustedRoot) -> Result<Self, RootError> {
        let invalid = |reason: String| RootError::Invalid { name: name.to_owned(), reason };
        limit(name, material.tlogs.len(), MAX_PARTS, "logs")?;
        limit(name, material.ctlogs.len(), MAX_PARTS, "certificate logs")?;
        limit(name, material.certificate_authorities.len(), MAX_PARTS, "authorities")?;
        limit(name, material.timestamp_authorities.len(), MAX_PARTS, "timestamp authorities")?;
        let authorities = material
            .certificate_authorities
            .iter()
            .map(|authority| {
                let chain = &authority.cert_chain.certificates;
                limit(name, chain.len(), MAX_PARTS, "certificates")?;
                chain
                    .iter()
                    .map(|entry| window(entry.raw_bytes.as_bytes()).map_err(invalid))
                    .collect()
            })
            .collect::<Result<Vec<Vec<Window>>, RootError>>()?;
        let verifier =
            Verifier::new(&material).map_err(|error| invalid(shown(&error.to_string())))?;
        let logs = material.tlogs.iter().map(|log| log.log_id.key_id.as_bytes().to_vec()).collect();
        let ranges = material
            .tlogs
            .iter()
            .map(|log| log.public_key.valid_for)
            .chain(material.ctlogs.iter().map(|log| log.public_key.valid_for))
            .chain(material.certificate_authorities.iter().map(|authority| authority.valid_for))
            .chain(material.timestamp_authorities.iter().map(|authority| authority.valid_for));
        let as_of = ranges.flatten().map(|range| ours(range.start)).max();
        Ok(Self { name: name.to_owned(), digest, as_of, material, authorities, logs, verifier })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the digest of what the root was made of, for caches and reports.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the newest date in the root: it was written no earlier, and knows nothing of later
    /// keys.
    #[must_use]
    pub fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    /// Tells whether the root names transparency logs.
    #[must_use]
    pub fn has_logs(&self) -> bool {
        !self.logs.is_empty()
    }

    /// Tells whether the root names certificate transparency logs.
    #[must_use]
    pub fn has_certificate_logs(&self) -> bool {
        !self.material.ctlogs.is_empty()
    }

    pub(super) fn knows_log(&self, id: &[u8]) -> bool {
        self.logs.contains(id)
    }

    pub(super) fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Returns a verifier that knows further timestamp authorities.
    pub(super) fn joined(&self, authorities: &[TimestampAuthority]) -> Result<Verifier, Refusal> {
        let mut material = self.material.clone();
        material.timestamp_authorities.extend_from_slice(authorities);
        Verifier::new(&material)
            .map_err(|error| refuse(RejectCode::Chain, shown(&error.to_string())))
    }

    pub(super) fn timestamp_authorities(&self) -> &[TimestampAuthority] {
        &self.material.timestamp_authorities
    }

    /// Returns the timestamp authorities that were in use at each of `times`.
    pub(super) fn timestamp_authorities_at(&self, times: &[Timestamp]) -> Vec<&TimestampAuthority> {
        let covers = |range: TimeRange| times.iter().all(|time| within(range, *time));
        let all = self.timestamp_authorities().iter();
        all.filter(|authority| authority.valid_for.is_none_or(covers)).collect()
    }

    /// Returns a verifier that knows only what was valid at each of `times`, if that could change
    /// the answer: an authority with an expired certificate, a log key that is no longer in use
    /// (whose checkpoints the library accepts at any time), an authority that fits one time and
    /// not another. Those that are `joined` to the root for one bundle stay.
    pub(super) fn narrowed(
        &self,
        times: &[Timestamp],
        entries: &[TransparencyLogEntry],
        timestamps: usize,
        joined: &[TimestampAuthority],
    ) -> Option<Result<Verifier, Refusal>> {
        let all = |range: Option<TimeRange>| {
            range.is_none_or(|range| times.iter().all(|time| within(range, *time)))
        };
        // The library was told whole seconds, so that a window may have fit it that ends within one.
        let any = |range: Option<TimeRange>| {
            let fits = |range| {
                times.iter().any(|time| within(range, *time) || within(range, whole(*time)))
            };
            range.is_none_or(fits)
        };
        let hinted = |id: &[u8]| {
            entries
                .iter()
                .filter_map(|entry| entry.inclusion_proof.as_ref()?.checkpoint.checkpoint())
                .flat_map(sigstore_types::Checkpoint::signatures)
                .any(|signature| id.starts_with(signature.key_id.as_slice()))
        };
        let mut narrow = self.material.clone();
        let mut matters = false;
        let mut covered = self.authorities.iter().map(|windows| {
            windows.iter().all(|window| times.iter().all(|time| window.contains(*time)))
        });
        narrow.certificate_authorities.retain(|authority| {
            let kept = covered.next().unwrap_or(false) && all(authority.valid_for);
            matters |= !kept && any(authority.valid_for);
            kept
        });
        narrow.tlogs.retain(|log| {
            let kept = all(log.public_key.valid_for);
            matters |= !kept && hinted(log.log_id.key_id.as_bytes());
            kept
        });
        narrow.timestamp_authorities.retain(|authority| {
            let kept = all(authority.valid_for);
            matters |= !kept && timestamps > 0 && any(authority.valid_for);
            kept
        });
        narrow.timestamp_authorities.extend_from_slice(joined);
        matters.then(|| {
            Verifier::new(&narrow)
                .map_err(|error| refuse(RejectCode::Chain, shown(&error.to_string())))
        })
    }
}

impl fmt::Debug for TrustRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustRoot")
            .field("name", &self.name)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// Tells whether a closed range holds a time.
pub(super) fn within(range: TimeRange, time: Timestamp) -> bool {
    ours(range.start) <= time && range.end.is_none_or(|end| time <= ours(end))
}

/// Trust roots by name.
#[derive(Debug, Default)]
pub struct Roots(BTreeMap<String, TrustRoot>);

impl Roots {
    /// Returns no roots at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the built-in roots: `public-good` and `github`.
    ///
    /// # Errors
    ///
    /// [`RootError`] only if this build is broken.
    pub fn builtin() -> Result<Self, RootError> {
        let mut roots = Self::none();
        roots.insert(TrustRoot::public_good()?);
        roots.insert(TrustRoot::github()?);
        Ok(roots)
    }

    /// Adds a root under its own name, in the place of one that has it.
    pub fn insert(&mut self, root: TrustRoot) {
        self.0.insert(root.name.clone(), root);
    }

    /// Returns the root of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&TrustRoot> {
        self.0.get(name)
    }

    /// Returns the roots in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &TrustRoot> {
        self.0.values()
    }

    pub(super) fn named(&self, name: &str) -> Result<&TrustRoot, Refusal> {
        self.get(name).ok_or_else(|| {
            refuse(RejectCode::Chain, format!("there is no trust root `{}`", shown(name)))
        })
    }
}

fn limit(name: &str, found: usize, limit: usize, what: &str) -> Result<(), RootError> {
    if found > limit {
        let what = format!("{found} {what}");
        return Err(RootError::Limit { name: name.to_owned(), what, limit });
    }
    Ok(())
}
