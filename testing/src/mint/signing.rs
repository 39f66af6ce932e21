//! Signatures and attestations, with a knob for each thing in them.
#![expect(clippy::arithmetic_side_effects, reason = "times are of a test's own choosing")]

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::certificate::{Leaf, Name, Sct, Validity};
use super::encode::{base64, pem, sha256};
use super::entry::{self, By, Entry, Logged, Version};
use super::stamp::{Flaw, Stamp, written};
use super::{COSIGN_SIGN, IDENTITY, ISSUER, Key, World};

/// The payload type of an in-toto statement.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A signature in the making. Each method changes one thing.
#[derive(Debug)]
#[must_use]
pub struct Mint<'w> {
    world: &'w World,
    key: Option<&'w Key>,
    hint: Option<String>,
    leaf_key: Key,
    leaf: Leaf,
    subjects: Vec<Value>,
    annotations: BTreeMap<String, String>,
    statement_type: String,
    predicate_type: String,
    predicate: Value,
    payload: Option<Vec<u8>>,
    payload_type: String,
    message: Option<Vec<u8>>,
    log: Option<Entry>,
    again: Vec<Entry>,
    stamps: Vec<Stamp>,
}

/// A layer of a `.sig` or `.att` tag, with cosign's annotations
/// (`dev.cosignproject.cosign/signature` and `dev.sigstore.cosign/…`).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Layer {
    /// The blob.
    pub payload: Vec<u8>,
    /// `dev.cosignproject.cosign/signature`; empty for attestations.
    pub signature: String,
    /// `dev.sigstore.cosign/certificate`.
    pub certificate: Option<String>,
    /// `dev.sigstore.cosign/chain`.
    pub chain: Option<String>,
    /// `dev.sigstore.cosign/bundle`.
    pub bundle: Option<String>,
    /// `dev.sigstore.cosign/rfc3161timestamp`.
    pub timestamp: Option<String>,
}

impl<'w> Mint<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        let at = world.signing_time();
        let five = SignedDuration::from_secs(5);
        let validity = Validity { from: at - five, to: at + SignedDuration::from_secs(595) };
        Self {
            world,
            key: None,
            hint: None,
            leaf_key: Key::p256(),
            leaf: Leaf {
                names: vec![Name::Uri(IDENTITY.to_owned())],
                issuer: Some(ISSUER.to_owned()),
                claims: Vec::new(),
                validity,
                sct: Sct::Good,
            },
            subjects: Vec::new(),
            annotations: BTreeMap::new(),
            statement_type: "https://in-toto.io/Statement/v1".to_owned(),
            predicate_type: COSIGN_SIGN.to_owned(),
            predicate: json!({}),
            payload: None,
            payload_type: IN_TOTO.to_owned(),
            message: None,
            log: Some(Entry {
                time: at.as_second(),
                index: 0,
                size: 1,
                version: Version::One,
                by: By::World,
            }),
            again: Vec::new(),
            stamps: Vec::new(),
        }
    }

    /// Signs with a key instead of a certificate; the hint is cosign's.
    pub fn key(mut self, key: &'w Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Writes another hint at the key.
    pub fn hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    /// Uses another key in the certificate.
    pub fn leaf_key(mut self, key: Key) -> Self {
        self.leaf_key = key;
        self
    }

    /// Sets the certificate's one name to a URI.
    pub fn uri(self, uri: &str) -> Self {
        self.names(vec![Name::Uri(uri.to_owned())])
    }

    /// Sets the certificate's one name to an e-mail address.
    pub fn email(self, email: &str) -> Self {
        self.names(vec![Name::Email(email.to_owned())])
    }

    /// Sets the certificate's names.
    pub fn names(mut self, names: Vec<Name>) -> Self {
        self.leaf.names = names;
        self
    }

    /// Sets the issuer.
    pub fn issuer(mut self, issuer: &str) -> Self {
        self.leaf.issuer = Some(issuer.to_owned());
        self
    }

    /// Leaves the issuer out.
    pub fn no_issuer(mut self) -> Self {
        self.leaf.issuer = None;
        self
    }

    /// Adds the claim 1.3.6.1.4.1.57264.1.`number`.
    pub fn claim(mut self, number: u64, value: &str) -> Self {
        self.leaf.claims.push((number, value.to_owned()));
        self
    }

    /// Sets when the certificate is valid: by default from five seconds before signing, for ten
    /// minutes.
    pub fn valid(mut self, validity: Validity) -> Self {
        self.leaf.validity = validity;
        self
    }

    /// Sets what the certificate log says.
    pub fn sct(mut self, sct: Sct) -> Self {
        self.leaf.sct = sct;
        self
    }

    /// Adds a subject by its digest, `sha256:…` or `sha512:…`.
    pub fn subject(self, digest: &str) -> Self {
        let (algorithm, value) = digest.split_once(':').unwrap_or(("sha256", digest));
        let mut digests = Map::new();
        digests.insert(algorithm.to_owned(), value.into());
        self.subject_json(json!({ "digest": digests }))
    }

    /// Adds a subject as it is to stand in the statement.
    pub fn subject_json(mut self, subject: Value) -> Self {
        self.subjects.push(subject);
        self
    }

    /// Adds an annotation of the signature (`cosign sign -a`).
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets the predicate, and makes an attestation of it.
    pub fn predicate(mut self, kind: &str, predicate: Value) -> Self {
        self.predicate_type = kind.to_owned();
        self.predicate = predicate;
        self
    }

    /// Sets `_type` of the statement.
    pub fn statement_type(mut self, kind: &str) -> Self {
        self.statement_type = kind.to_owned();
        self
    }

    /// Signs these bytes in the place of a statement or simple signing payload.
    pub fn payload(mut self, bytes: &[u8]) -> Self {
        self.payload = Some(bytes.to_vec());
        self
    }

    /// Sets the payload type of the envelope.
    pub fn payload_type(mut self, kind: &str) -> Self {
        self.payload_type = kind.to_owned();
        self
    }

    /// Signs these bytes themselves (a message signature), in the place of a statement.
    pub fn message(mut self, bytes: &[u8]) -> Self {
        self.message = Some(bytes.to_vec());
        self
    }

    /// Writes no log entry.
    pub fn no_log(mut self) -> Self {
        self.log = None;
        self
    }

    /// Sets when the log took the entry.
    pub fn log_time(self, time: Timestamp) -> Self {
        self.logged(|entry| entry.time = time.as_second())
    }

    /// Logs the same signature once more, at another time. Bundles only.
    pub fn logged_again(mut self, time: Timestamp) -> Self {
        if let Some(entry) = &self.log {
            let size = entry.size.saturating_add(1);
            let index = entry.size;
            self.again.push(Entry { time: time.as_second(), size, index, ..entry.clone() });
        }
        self
    }

    /// Puts the entry at `index` of a log with `size` entries.
    pub fn tree(self, size: u64, index: u64) -> Self {
        self.logged(|entry| (entry.size, entry.index) = (size, index))
    }

    /// Logs in a log that the root doesn't name.
    pub fn foreign_log(self) -> Self {
        self.logged(|entry| entry.by = By::Foreign)
    }

    /// Logs in the second version of the log, which has no promise and vouches for no time.
    pub fn second_log(self) -> Self {
        self.logged(|entry| entry.version = Version::Two)
    }

    /// Adds a signed timestamp. A layer takes the first only.
    pub fn stamped(self, time: Timestamp) -> Self {
        self.flawed_stamp(time, Flaw::None)
    }

    /// Adds a signed timestamp with something wrong in it.
    pub fn flawed_stamp(mut self, time: Timestamp, flaw: Flaw) -> Self {
        self.stamps.push(Stamp { time: written(time), flaw });
        self
    }

    /// Adds a signed timestamp whose time is written like this.
    pub fn stamped_as(mut self, time: &str) -> Self {
        self.stamps.push(Stamp { time: time.to_owned(), flaw: Flaw::None });
        self
    }

    fn logged(mut self, change: impl FnOnce(&mut Entry)) -> Self {
        if let Some(entry) = &mut self.log {
            change(entry);
        }
        self
    }

    /// Returns a bundle of version 0.3.
    #[must_use]
    pub fn bundle(self) -> Value {
        let signer = self.signer();
        let (content, logged, signature) = match &self.message {
            Some(bytes) => {
                let signature = signer.key.sign(bytes);
                let digest = sha256(bytes);
                let content = json!({
                    "messageDigest": { "algorithm": "SHA2_256", "digest": base64(&digest) },
                    "signature": base64(&signature),
                });
                let logged = signer.hashed(&self, &digest, &signature);
                (("messageSignature", content), logged, signature)
            }
            None => {
                let (envelope, logged, signature) = self.envelope(&signer);
                (("dsseEnvelope", envelope), logged, signature)
            }
        };
        let entries: Vec<Value> = self
            .log
            .iter()
            .chain(&self.again)
            .map(|entry| entry.bundle(self.world, &logged))
            .collect();
        let (name, value) = signer.material(&self);
        let tokens: Vec<Value> = self
            .stamps
            .iter()
            .map(|stamp| stamp.token(self.world, &signature))
            .map(|token| json!({ "signedTimestamp": base64(&token) }))
            .collect();
        let stamps = json!({ "rfc3161Timestamps": tokens });
        let material = if self.stamps.is_empty() {
            json!({ name: value, "tlogEntries": entries })
        } else {
            json!({ name: value, "tlogEntries": entries, "timestampVerificationData": stamps })
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": material,
            content.0: content.1,
        })
    }

    /// Returns a bundle of version 0.3 as bytes.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        self.bundle().to_string().into_bytes()
    }

    /// Returns a layer of a `.sig` tag: a simple signing payload about the first subject, with the
    /// annotations.
    #[must_use]
    pub fn legacy_signature(self) -> Layer {
        let payload = self.payload.clone().unwrap_or_else(|| {
            let digest = self.subjects.first().and_then(|subject| {
                let (algorithm, value) = subject.get("digest")?.as_object()?.iter().next()?;
                Some(format!("{algorithm}:{}", value.as_str()?))
            });
            json!({
                "critical": {
                    "identity": { "docker-reference": "registry.example/app" },
                    "image": { "docker-manifest-digest": digest },
                    "type": "cosign container image signature",
                },
                "optional": self.annotations,
            })
            .to_string()
            .into_bytes()
        });
        let signer = self.signer();
        let signature = signer.key.sign(&payload);
        let logged = entry::hashed(&sha256(&payload), &signature, &signer.verifier);
        let written = base64(&signature);
        self.layer(payload, (written, &signature), &signer, &logged)
    }

    /// Returns a layer of a `.att` tag: the envelope of the statement.
    #[must_use]
    pub fn legacy_attestation(self) -> Layer {
        let signer = self.signer();
        let (envelope, logged, signature) = self.envelope(&signer);
        let payload = envelope.to_string().into_bytes();
        self.layer(payload, (String::new(), &signature), &signer, &logged)
    }

    fn layer(
        &self,
        payload: Vec<u8>,
        (written, signature): (String, &[u8]),
        by: &Signer<'_>,
        logged: &Logged,
    ) -> Layer {
        let world = self.world;
        Layer {
            payload,
            signature: written,
            certificate: by.certificate.as_ref().map(|der| pem("CERTIFICATE", der)),
            chain: by
                .certificate
                .as_ref()
                .map(|_| format!("{}{}", world.intermediate_pem(), world.root_pem())),
            bundle: self.log.as_ref().map(|entry| entry.annotation(world, logged)),
            timestamp: self.stamps.first().map(|stamp| {
                let token = base64(&stamp.token(world, signature));
                json!({ "SignedRFC3161Timestamp": token }).to_string()
            }),
        }
    }

    fn signer(&self) -> Signer<'_> {
        match self.key {
            Some(key) => Signer { key, certificate: None, verifier: key.public_pem() },
            None => {
                let der = self.leaf.sign(self.world, &self.leaf_key);
                let verifier = pem("CERTIFICATE", &der);
                Signer { key: &self.leaf_key, certificate: Some(der), verifier }
            }
        }
    }

    fn statement(&self) -> Vec<u8> {
        if let Some(bytes) = &self.payload {
            return bytes.clone();
        }
        let mut subjects = self.subjects.clone();
        if !self.annotations.is_empty() {
            for subject in subjects.iter_mut().filter_map(Value::as_object_mut) {
                subject.insert("annotations".into(), json!(self.annotations));
            }
        }
        json!({
            "_type": self.statement_type,
            "subject": subjects,
            "predicateType": self.predicate_type,
            "predicate": self.predicate,
        })
        .to_string()
        .into_bytes()
    }

    fn envelope(&self, signer: &Signer<'_>) -> (Value, Logged, Vec<u8>) {
        let payload = self.statement();
        let kind = &self.payload_type;
        let mut encoded = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
        encoded.extend_from_slice(&payload);
        let signature = signer.key.sign(&encoded);
        let envelope = json!({
            "payload": base64(&payload),
            "payloadType": kind,
            "signatures": [{ "sig": base64(&signature) }],
        });
        let second = self.log.as_ref().is_some_and(|entry| entry.version == Version::Two);
        let logged = if second {
            signer.hashed(self, &sha256(&encoded), &signature)
        } else {
            entry::dsse(envelope.to_string().as_bytes(), &payload, &signature, &signer.verifier)
        };
        (envelope, logged, signature)
    }
}

/// Who signs, with what the log holds of them.
struct Signer<'m> {
    key: &'m Key,
    certificate: Option<Vec<u8>>,
    verifier: String,
}

impl Signer<'_> {
    fn hashed(&self, mint: &Mint<'_>, digest: &[u8; 32], signature: &[u8]) -> Logged {
        if mint.log.as_ref().is_none_or(|entry| entry.version == Version::One) {
            return entry::hashed(digest, signature, &self.verifier);
        }
        let spki = self.key.spki();
        let verifier = match &self.certificate {
            Some(der) => ("x509Certificate", der.as_slice()),
            None => ("publicKey", spki.as_slice()),
        };
        entry::second(digest, signature, self.key.details(), verifier)
    }

    fn material(&self, mint: &Mint<'_>) -> (&'static str, Value) {
        match &self.certificate {
            Some(der) => ("certificate", json!({ "rawBytes": base64(der) })),
            None => {
                let hint = mint.hint.clone().unwrap_or_else(|| self.key.hint());
                ("publicKey", json!({ "hint": hint }))
            }
        }
    }
}
