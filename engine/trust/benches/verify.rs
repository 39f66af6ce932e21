//! How long one verification takes, parsing included: `cargo bench -p ambit-trust --bench verify`.
//!
//! Prints the median and the 95th percentile of each case in microseconds. Machines differ; the
//! ratios between the cases are what to compare.
#![expect(clippy::expect_used, reason = "a bench that can't read its input has to fail loudly")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ambit_engine::digest::Digest;
use ambit_testing::mint::{IDENTITY, ISSUER, Key, World};
use ambit_trust::policy::{
    Authority, Formats, Identity, KeyHash, LogRule, Matcher, PublicKey, SctRule, Signer,
    TimestampRule,
};
use ambit_trust::verify::{Artifact, Roots, TrustRoot, blob};
use jiff::Timestamp;

const ROUNDS: usize = 400;
const BEACON: &str = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main";

fn authority(signer: Signer, log: LogRule) -> Authority {
    Authority {
        name: "bench".to_owned(),
        formats: Formats::Any,
        signer,
        log,
        timestamp: TimestampRule::Optional,
        annotations: BTreeMap::new(),
        max_age: None,
        not_before: None,
        attestations: Vec::new(),
        sources: Vec::new(),
    }
}

fn keyless(subject: &str) -> Authority {
    let identity = Identity {
        issuer: Matcher::Exact(ISSUER.to_owned()),
        subject: Matcher::Exact(subject.to_owned()),
        claims: BTreeMap::new(),
    };
    let identities = vec![identity];
    let signer =
        Signer::Certificate { root: "bench".to_owned(), identities, sct: SctRule::Required };
    authority(signer, LogRule::Proof)
}

fn keyed(key: &Key, log: LogRule) -> Authority {
    let keys = vec![PublicKey { spki: key.spki(), hash: KeyHash::Sha256 }];
    authority(Signer::Key { keys, root: "bench".to_owned() }, log)
}

fn roots(bytes: &[u8]) -> Roots {
    let mut roots = Roots::none();
    roots.insert(TrustRoot::from_json("bench", bytes).expect("a root"));
    roots
}

struct Case {
    name: &'static str,
    bundle: Vec<u8>,
    artifact: Vec<u8>,
    authority: Authority,
    roots: Roots,
}

impl Case {
    fn measure(&self, now: Timestamp) -> Vec<Duration> {
        let artifact = || Artifact::Digest(Digest::of(&self.artifact));
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                blob(&self.bundle, artifact(), &self.authority, &self.roots, now)
                    .expect("a bundle that verifies");
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        times
    }
}

fn main() -> std::io::Result<()> {
    let now: Timestamp = "2026-11-30T00:00:00Z".parse().expect("a time");
    let world = World::at(now);
    let key = Key::p256();
    let artifact = b"manifest".to_vec();
    let digest = Digest::of(&artifact).to_string();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sigstore/conformance");
    let read = |path: &str| std::fs::read(data.join(path)).expect("test data");
    let own = || roots(&world.trusted_root_json());
    let minted = |name, bundle, authority| Case {
        name,
        bundle,
        artifact: artifact.clone(),
        authority,
        roots: own(),
    };
    let cases = [
        minted(
            "keyless, rekor v1",
            world.mint().subject(&digest).tree(1000, 7).bytes(),
            keyless(IDENTITY),
        ),
        Case {
            name: "keyless, rekor v2 and timestamp",
            bundle: read("bundle-verify/rekor2-dsse-happy-path/bundle.sigstore.json"),
            artifact: read("a.txt"),
            authority: keyless(BEACON),
            roots: roots(&read("bundle-verify/rekor2-dsse-happy-path/trusted_root.json")),
        },
        minted(
            "key, rekor v1",
            world.mint().key(&key).subject(&digest).bytes(),
            keyed(&key, LogRule::Proof),
        ),
        minted(
            "key, no log",
            world.mint().key(&key).no_log().subject(&digest).bytes(),
            keyed(&key, LogRule::Unasked),
        ),
    ];
    let mut out = std::io::stdout().lock();
    for case in &cases {
        let times = case.measure(now);
        let at = |percent: usize| {
            let index = ROUNDS.saturating_mul(percent) / 100;
            times.get(index).map_or(0, Duration::as_micros)
        };
        writeln!(out, "{:<34} p50 {:>6} us   p95 {:>6} us", case.name, at(50), at(95))?;
    }
    Ok(())
}
