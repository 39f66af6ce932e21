//! What the cases share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambit_engine::digest::Digest;
use ambit_testing::mint::{IDENTITY, ISSUER, Key, Layer, World};
use ambit_trust::candidate::{Candidate, Content, LegacyLayer};
use ambit_trust::policy::{
    Authority, Formats, Identity, KeyHash, LogRule, Matcher, PublicKey, SctRule, Signer,
    TimestampRule,
};
use ambit_trust::verify::{
    Reject, RejectCode, Roots, Signed, SignedBy, Statement, Subject, TrustRoot, Verified, verify,
};
use jiff::Timestamp;
use regex::Regex;
use serde_json::Value;

/// The time at which everything is verified, after the samples were made.
pub(crate) fn now() -> Timestamp {
    "2026-12-01T00:00:00Z".parse().unwrap()
}

pub(crate) fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sigstore").join(path)
}

pub(crate) fn read(path: &str) -> Vec<u8> {
    std::fs::read(testdata(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn read_json(path: &str) -> Value {
    serde_json::from_slice(&read(path)).expect("JSON")
}

/// The manifest that the minted signatures are about.
pub(crate) const MANIFEST: &[u8] = b"{\"schemaVersion\":2}";

pub(crate) fn subject() -> Subject {
    Subject { digest: Digest::of(MANIFEST) }
}

pub(crate) fn digest() -> String {
    subject().digest.to_string()
}

pub(crate) fn world() -> World {
    World::at(now())
}

pub(crate) fn roots(json: &Value) -> Roots {
    let mut roots = Roots::none();
    let bytes = json.to_string().into_bytes();
    roots.insert(TrustRoot::from_json("test", &bytes).expect("a root"));
    roots
}

pub(crate) fn exact(text: &str) -> Matcher {
    Matcher::Exact(text.to_owned())
}

pub(crate) fn pattern(text: &str) -> Matcher {
    let regex = Regex::new(&format!("^(?:{text})$")).expect("a pattern");
    Matcher::Pattern { text: text.to_owned(), regex }
}

fn authority(signer: Signer) -> Authority {
    Authority {
        name: "release".to_owned(),
        formats: Formats::Any,
        signer,
        log: LogRule::ProofOrPromise,
        timestamp: TimestampRule::Optional,
        annotations: BTreeMap::new(),
        max_age: None,
        not_before: None,
        attestations: Vec::new(),
        sources: Vec::new(),
    }
}

/// An authority by certificate, under the root `test`.
pub(crate) fn by_identity(subject: Matcher, issuer: Matcher) -> Authority {
    let identity = Identity { issuer, subject, claims: BTreeMap::new() };
    authority(Signer::Certificate {
        root: "test".to_owned(),
        identities: vec![identity],
        sct: SctRule::Required,
    })
}

/// The authority that the minted certificates are for.
pub(crate) fn keyless() -> Authority {
    by_identity(exact(IDENTITY), exact(ISSUER))
}

/// An authority by keys, with their usual hashes.
pub(crate) fn by_keys(keys: &[&Key]) -> Authority {
    let keys =
        keys.iter().map(|key| PublicKey { spki: key.spki(), hash: KeyHash::Sha256 }).collect();
    authority(Signer::Key { keys, root: "test".to_owned() })
}

pub(crate) fn by_spki(spki: Vec<u8>, hash: KeyHash) -> Authority {
    let keys = vec![PublicKey { spki, hash }];
    authority(Signer::Key { keys, root: "test".to_owned() })
}

pub(crate) trait Rules: Sized {
    fn change(self, change: impl FnOnce(&mut Authority)) -> Self;

    fn log(self, rule: LogRule) -> Self {
        self.change(|authority| authority.log = rule)
    }

    fn timestamp(self, rule: TimestampRule) -> Self {
        self.change(|authority| authority.timestamp = rule)
    }

    fn sct(self, rule: SctRule) -> Self {
        self.change(|authority| {
            if let Signer::Certificate { sct, .. } = &mut authority.signer {
                *sct = rule;
            }
        })
    }

    fn identities(self, wanted: Vec<Identity>) -> Self {
        self.change(|authority| {
            if let Signer::Certificate { identities, .. } = &mut authority.signer {
                *identities = wanted;
            }
        })
    }
}

impl Rules for Authority {
    fn change(mut self, change: impl FnOnce(&mut Authority)) -> Self {
        change(&mut self);
        self
    }
}

pub(crate) fn bundle(value: &Value) -> Candidate {
    bundle_bytes(value.to_string().into_bytes())
}

pub(crate) fn bundle_bytes(bytes: Vec<u8>) -> Candidate {
    Candidate { place: "referrer".to_owned(), content: Content::Bundle(bytes) }
}

pub(crate) fn layer(layer: Layer) -> LegacyLayer {
    LegacyLayer {
        payload: layer.payload,
        signature: layer.signature,
        certificate: layer.certificate,
        chain: layer.chain,
        bundle: layer.bundle,
        timestamp: layer.timestamp,
    }
}

pub(crate) fn signature_layer(minted: Layer) -> Candidate {
    Candidate { place: "tag".to_owned(), content: Content::LegacySignature(layer(minted)) }
}

pub(crate) fn attestation_layer(minted: Layer) -> Candidate {
    Candidate { place: "tag".to_owned(), content: Content::LegacyAttestation(layer(minted)) }
}

pub(crate) fn run(
    candidate: &Candidate,
    authority: &Authority,
    root: &Value,
) -> Result<Verified<Signed>, Reject> {
    verify(candidate, &subject(), authority, &roots(root), now())
}

/// Verifies, and returns the code, or `ok`.
pub(crate) fn code(candidate: &Candidate, authority: &Authority, root: &Value) -> &'static str {
    code_of(&run(candidate, authority, root).map_err(|reject| {
        assert!(!reject.message.is_empty() && !reject.message.contains('\n'), "{reject:?}");
        reject.code
    }))
}

pub(crate) fn code_of<T>(result: &Result<T, RejectCode>) -> &'static str {
    result.as_ref().map_or_else(|code| code.as_str(), |_| "ok")
}

pub(crate) fn identity_of(signed: &Signed) -> &str {
    match &signed.signer {
        SignedBy::Certificate { identity, .. } => identity,
        SignedBy::Key { .. } => "a key",
    }
}

pub(crate) fn annotations_of(signed: &Signed) -> &BTreeMap<String, String> {
    match &signed.statement {
        Statement::Signature { annotations } => annotations,
        Statement::Attestation { predicate_type, .. } => panic!("{predicate_type}"),
    }
}

/// Changes JSON at a pointer.
pub(crate) fn edit(mut value: Value, pointer: &str, change: impl FnOnce(&mut Value)) -> Value {
    change(value.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")));
    value
}

/// Sets JSON at a pointer.
pub(crate) fn set(value: Value, pointer: &str, new: impl Into<Value>) -> Value {
    edit(value, pointer, |old| *old = new.into())
}

/// Removes a key of an object.
pub(crate) fn without(value: Value, pointer: &str, key: &str) -> Value {
    edit(value, pointer, |object| {
        object.as_object_mut().expect("an object").remove(key).expect("the key");
    })
}

/// Flips one bit in the middle of base64 text.
pub(crate) fn flipped(value: Value, pointer: &str) -> Value {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    edit(value, pointer, |text| {
        let mut bytes = engine.decode(text.as_str().expect("text")).expect("base64");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        *text = engine.encode(bytes).into();
    })
}
