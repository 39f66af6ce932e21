//! Entries of the transparency log: body, promise, inclusion proof, checkpoint.

use serde_json::{Value, json};

use super::encode::{base64, hex, sha256};
use super::{Key, World};

/// How a signature is logged.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) time: i64,
    pub(super) index: u64,
    pub(super) size: u64,
    pub(super) version: Version,
    pub(super) by: By,
}

/// The version of the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Version {
    One,
    Two,
}

/// Whose log it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum By {
    World,
    Foreign,
}

/// A signature as it is logged.
pub(super) struct Logged {
    pub(super) kind: &'static str,
    pub(super) version: &'static str,
    pub(super) body: Value,
}

/// What a `hashedrekord` entry says: the digest, the signature, the verifier in PEM.
pub(super) fn hashed(digest: &[u8; 32], signature: &[u8], verifier: &str) -> Logged {
    let body = json!({
        "apiVersion": "0.0.1",
        "kind": "hashedrekord",
        "spec": {
            "data": { "hash": { "algorithm": "sha256", "value": hex(digest) } },
            "signature": {
                "content": base64(signature),
                "publicKey": { "content": base64(verifier.as_bytes()) },
            },
        },
    });
    Logged { kind: "hashedrekord", version: "0.0.1", body }
}

/// What a `dsse` entry says.
pub(super) fn dsse(envelope: &[u8], payload: &[u8], signature: &[u8], verifier: &str) -> Logged {
    let body = json!({
        "apiVersion": "0.0.1",
        "kind": "dsse",
        "spec": {
            "envelopeHash": { "algorithm": "sha256", "value": hex(&sha256(envelope)) },
            "payloadHash": { "algorithm": "sha256", "value": hex(&sha256(payload)) },
            "signatures": [
                { "signature": base64(signature), "verifier": base64(verifier.as_bytes()) },
            ],
        },
    });
    Logged { kind: "dsse", version: "0.0.1", body }
}

/// What an entry of the second version of the log says.
pub(super) fn second(
    digest: &[u8; 32],
    signature: &[u8],
    details: &str,
    verifier: (&str, &[u8]),
) -> Logged {
    let (kind, raw) = verifier;
    let body = json!({
        "apiVersion": "0.0.2",
        "kind": "hashedrekord",
        "spec": { "hashedRekordV002": {
            "data": { "algorithm": "SHA2_256", "digest": base64(digest) },
            "signature": {
                "content": base64(signature),
                "verifier": { "keyDetails": details, kind: { "rawBytes": base64(raw) } },
            },
        } },
    });
    Logged { kind: "hashedrekord", version: "0.0.2", body }
}

impl Entry {
    fn key<'w>(&self, world: &'w World) -> &'w Key {
        match self.by {
            By::World => &world.log,
            By::Foreign => &world.foreign_log,
        }
    }

    /// Returns the log's promise over the canonical JSON of the entry.
    fn promise(&self, world: &World, body: &str) -> Vec<u8> {
        let key = self.key(world);
        let text = format!(
            r#"{{"body":"{body}","integratedTime":{},"logID":"{}","logIndex":{}}}"#,
            self.time,
            hex(&key.id()),
            self.index
        );
        key.sign(text.as_bytes())
    }

    /// Returns the entry as it stands in a bundle.
    pub(super) fn bundle(&self, world: &World, logged: &Logged) -> Value {
        let key = self.key(world);
        let body = logged.body.to_string();
        let (root, path) = tree(self.size, self.index, &leaf(body.as_bytes()));
        let note = format!("log.example\n{}\n{}\n", self.size, base64(&root));
        let mut signature = key.id().get(..4).unwrap_or_default().to_vec();
        signature.extend_from_slice(&key.sign(note.as_bytes()));
        let checkpoint = format!("{note}\n\u{2014} log.example {}\n", base64(&signature));
        let hashes: Vec<String> = path.iter().map(|hash| base64(hash)).collect();
        let mut entry = json!({
            "logIndex": self.index.to_string(),
            "logId": { "keyId": base64(&key.id()) },
            "kindVersion": { "kind": logged.kind, "version": logged.version },
            "inclusionProof": {
                "logIndex": self.index.to_string(),
                "rootHash": base64(&root),
                "treeSize": self.size.to_string(),
                "hashes": hashes,
                "checkpoint": { "envelope": checkpoint },
            },
            "canonicalizedBody": base64(body.as_bytes()),
        });
        if self.version == Version::One {
            let promise = self.promise(world, &base64(body.as_bytes()));
            if let Some(fields) = entry.as_object_mut() {
                fields.insert("integratedTime".into(), self.time.to_string().into());
                fields.insert(
                    "inclusionPromise".into(),
                    json!({ "signedEntryTimestamp": base64(&promise) }),
                );
            }
        }
        entry
    }

    /// Returns the entry as cosign 1 and 2 write it beside a signature.
    pub(super) fn annotation(&self, world: &World, logged: &Logged) -> String {
        let body = base64(logged.body.to_string().as_bytes());
        json!({
            "SignedEntryTimestamp": base64(&self.promise(world, &body)),
            "Payload": {
                "body": body,
                "integratedTime": self.time,
                "logIndex": self.index,
                "logID": hex(&self.key(world).id()),
            },
        })
        .to_string()
    }
}

fn leaf(body: &[u8]) -> [u8; 32] {
    let mut bytes = vec![0];
    bytes.extend_from_slice(body);
    sha256(&bytes)
}

fn node(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let mut bytes = vec![1];
    bytes.extend_from_slice(left);
    bytes.extend_from_slice(right);
    sha256(&bytes)
}

/// Returns the root of a tree of `size` leaves with ours at `index`, and the path from ours to the
/// root (RFC 6962, section 2.1.1).
fn tree(size: u64, index: u64, ours: &[u8; 32]) -> ([u8; 32], Vec<[u8; 32]>) {
    let leaves: Vec<[u8; 32]> =
        (0..size).map(|at| if at == index { *ours } else { leaf(&at.to_be_bytes()) }).collect();
    let index = usize::try_from(index).unwrap_or_default();
    let mut path = Vec::new();
    let root = subtree(&leaves, Some(index), &mut path);
    (root, path)
}

/// Returns the hash of a subtree, and notes the siblings on the way up from `ours`, if it is in it.
fn subtree(leaves: &[[u8; 32]], ours: Option<usize>, path: &mut Vec<[u8; 32]>) -> [u8; 32] {
    match leaves {
        [] => sha256(b""),
        [single] => *single,
        _ => {
            // The largest power of two below the length.
            let half = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at(half);
            let (in_left, in_right) = match ours {
                Some(at) if at < half => (Some(at), None),
                Some(at) => (None, Some(at.saturating_sub(half))),
                None => (None, None),
            };
            let left = subtree(left, in_left, path);
            let right = subtree(right, in_right, path);
            if in_left.is_some() {
                path.push(right);
            } else if in_right.is_some() {
                path.push(left);
            }
            node(&left, &right)
        }
    }
}
