//! Minted signing material: authorities, logs, certificates, bundles.
//!
//! A [`World`] is a whole signing service without a network: an authority (with an intermediate on
//! request), a log for certificates, a transparency log and a timestamp authority, at a time of the
//! test's choosing. It writes its own `trusted_root.json`, and [`World::mint`] signs with it. Each knob of [`Mint`]
//! changes one thing, so that a test mints a passing twin and a mutant that differs in that thing.
//! What needs no key (a flipped byte, an entry of another bundle) is an edit of the JSON.
//!
//! ```
//! use ambit_testing::mint::World;
//!
//! let world = World::at("2026-03-01T12:00:00Z".parse()?);
//! let digest = format!("sha256:{}", "ab".repeat(32));
//! let root = world.trusted_root_json();
//! let signature = world.mint().subject(&digest).bytes();
//! let attestation = world
//!     .mint()
//!     .uri("https://ci.example/acme/app/release@refs/tags/v1")
//!     .issuer("https://ci.example")
//!     .subject(&digest)
//!     .predicate("https://slsa.dev/provenance/v1", serde_json::json!({"builder": "b"}))
//!     .bytes();
//! # assert!(!root.is_empty() && !signature.is_empty() && !attestation.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A leaf takes a tenth of a millisecond. Everything is ECDSA over P-256 unless a test says
//! otherwise. No private key is ever written down.
#![expect(clippy::arithmetic_side_effects, reason = "times are of a test's own choosing")]

mod certificate;
mod encode;
mod entry;
mod key;
mod signing;
mod stamp;

pub use certificate::{Name, Purpose, Sct, Validity};
pub use key::Key;
pub use signing::{Layer, Mint};
pub use stamp::Flaw;

use encode::{base64, pem};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The identity that [`Mint`] signs as unless a test says otherwise.
pub const IDENTITY: &str =
    "https://github.com/example/app/.github/workflows/release.yml@refs/heads/main";

/// The issuer that [`Mint`] signs with unless a test says otherwise.
pub const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// The predicate type under which cosign 3 writes a signature, and the one that [`Mint`] uses
/// unless a test says otherwise.
pub const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// A signing service: authorities and logs, at a time.
#[derive(Debug)]
pub struct World {
    now: Timestamp,
    root: certificate::Authority,
    intermediate: Option<certificate::Authority>,
    certificate_log: Key,
    log: Key,
    foreign_log: Key,
    stamper: stamp::Stamper,
    foreign_stamper: stamp::Stamper,
}

impl World {
    /// Makes a world in which it is `now`, with one authority that signs leaves itself. Signing
    /// happens a minute before.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self::with_root(now, Validity::around(now))
    }

    /// Makes a world whose authority's certificate is valid at other times.
    #[must_use]
    pub fn with_root(now: Timestamp, validity: Validity) -> Self {
        let around = Validity::around(now);
        let stamper = || stamp::Stamper::new(around, around, Purpose::Timestamps);
        Self {
            now,
            root: certificate::Authority::root(validity),
            intermediate: None,
            certificate_log: Key::p256(),
            log: Key::p256(),
            foreign_log: Key::p256(),
            stamper: stamper(),
            foreign_stamper: stamper(),
        }
    }

    /// Puts an intermediate authority between the root and the leaves.
    #[must_use]
    pub fn intermediate(mut self, validity: Validity) -> Self {
        self.intermediate = Some(self.root.intermediate(validity));
        self
    }

    /// Makes another timestamp authority: its root's dates, its own, and what it is for.
    #[must_use]
    pub fn stamper(mut self, root: Validity, own: Validity, purpose: Purpose) -> Self {
        self.stamper = stamp::Stamper::new(root, own, purpose);
        self
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns when [`Mint`] signs unless a test says otherwise: a minute before now.
    #[must_use]
    pub fn signing_time(&self) -> Timestamp {
        self.now - SignedDuration::from_secs(60)
    }

    /// Starts a signature, with a certificate for [`IDENTITY`] and a log entry.
    pub fn mint(&self) -> Mint<'_> {
        Mint::new(self)
    }

    /// Returns the trust root as JSON, for tests that edit it.
    #[must_use]
    pub fn trusted_root(&self) -> Value {
        let chain: Vec<Value> = self
            .intermediate
            .iter()
            .chain([&self.root])
            .map(|authority| json!({ "rawBytes": base64(authority.der()) }))
            .collect();
        let start = "2020-01-01T00:00:00Z";
        let log = |key: &Key, url: &str| {
            json!({
                "baseUrl": url,
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": base64(&key.spki()),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": { "start": start },
                },
                "logId": { "keyId": base64(&key.id()) },
            })
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(&self.log, "https://log.example")],
            "certificateAuthorities": [{
                "subject": { "organization": "example", "commonName": "root" },
                "uri": "https://authority.example",
                "certChain": { "certificates": chain },
                "validFor": { "start": start },
            }],
            "ctlogs": [log(&self.certificate_log, "https://certificates.example")],
            "timestampAuthorities": [self.stamper.json()],
        })
    }

    /// Returns the trust root as the bytes of a `trusted_root.json`.
    #[must_use]
    pub fn trusted_root_json(&self) -> Vec<u8> {
        self.trusted_root().to_string().into_bytes()
    }

    /// Returns the root authority's certificate in PEM, as `--ca-roots` takes it.
    #[must_use]
    pub fn root_pem(&self) -> String {
        pem("CERTIFICATE", self.root.der())
    }

    /// Returns the intermediate authority's certificate in PEM, or nothing if there is none.
    #[must_use]
    pub fn intermediate_pem(&self) -> String {
        self.intermediate.as_ref().map(|ca| pem("CERTIFICATE", ca.der())).unwrap_or_default()
    }

    fn issuer(&self) -> &certificate::Authority {
        self.intermediate.as_ref().unwrap_or(&self.root)
    }
}
