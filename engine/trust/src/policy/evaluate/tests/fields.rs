//! A field that is set has an effect: changing its value changes what some image is told.

use ambit_engine::document::{self, DocumentLimits, Format, Node, Span};
use ambit_engine::reference::Reference;

use super::*;

/// Every field of the language is in here, with a value that can be changed to another one.
const BASE: &str = "apiVersion: ambit.dev/v1alpha1
kind: TrustPolicy
metadata: {name: signed}
spec:
  images: [{glob: registry.example/team/*}]
  mode: enforce
  pins: [{manifest: sha256:MANIFEST}, {layer: sha256:LAYER}]
  require: {authorities: any}
  authorities:
  - name: dev
    signatureFormat: bundle
    keyless:
      trustRootRef: ours
      insecureIgnoreSCT: false
      identities:
      - issuer: i
        subjectRegExp: 'd.v'
        regexMode: full
        claims: {runnerEnvironment: hosted}
      - issuerRegExp: 'j|k'
        subject: ops
    ctlog: {trustRootRef: ours, require: proof}
    rfc3161timestamp: {trustRootRef: ours, require: required}
    annotations: {env: prod}
    maxAge: 60d
    notBefore: 2026-10-15T00:00:00Z
  - name: spare
    keyless: {identities: [{issuer: spare, subject: spare}]}
  policy:
    type: rego
    data: 'package sigstore

      isCompliant { input.authorityMatches.dev.signatures[_].annotations.tier == \"1\" }'
---
apiVersion: ambit.dev/v1alpha1
kind: TrustPolicy
metadata: {name: attested}
spec:
  images: [{glob: registry.example/team/*}]
  require: {threshold: 2}
  authorities:
  - name: scanners
    signatureFormat: any
    key:
      hashAlgorithm: sha256
      data: |
KEYS    ctlog: {require: none}
    source: [{oci: registry.example/signatures, tagPrefix: team-}]
    attestations:
    - name: scan
      predicateType: vuln
      policy:
        type: rego
        data: 'package sigstore

          isCompliant { input.predicate.findings == 0 }'
---
apiVersion: ambit.dev/v1alpha1
kind: TrustPolicy
metadata: {name: passes}
spec:
  images: [{glob: registry.example/open/*}]
  authorities:
  - name: anybody
    static: {action: pass, insecureAllowUnsigned: true}
";

/// Fields without a value of their own to change, and why.
const EXEMPT: [(&str, &str); 8] = [
    ("/spec/policy/type", "one value"),
    ("/spec/authorities/1/keyless/identities/0/subject", "as in the first authority"),
    ("/spec/authorities/0/attestations/0/policy/type", "one value"),
    ("/spec/authorities/0/ctlog/trustRootRef", "an authority has one root: changed with the first"),
    ("/spec/authorities/0/rfc3161timestamp/trustRootRef", "as above"),
    ("/spec/authorities/1/keyless/identities/0/issuer", "as in the first authority"),
    ("/spec/authorities/0/static/insecureAllowUnsigned", "asked for by the other field"),
    ("/spec/authorities/0/key/data", "changed as a whole, below"),
];

/// What to change each field to, by document and pointer.
const CHANGES: [(usize, &str, &str); 38] = [
    (0, "/spec/images/0/glob", "registry.example/team"),
    (0, "/spec/images/0/glob", "registry.example/**"),
    (0, "/spec/mode", "warn"),
    (0, "/spec/pins/0/manifest", "sha256:LAYER"),
    (0, "/spec/pins/1/layer", "sha256:MANIFEST"),
    (0, "/spec/require/authorities", "all"),
    (0, "/spec/authorities/0/name", "other"),
    (0, "/spec/authorities/0/signatureFormat", "any"),
    (0, "/spec/authorities/0/keyless/insecureIgnoreSCT", "true"),
    (0, "/spec/authorities/0/keyless/identities/0/issuer", "k"),
    (0, "/spec/authorities/0/keyless/identities/0/subjectRegExp", "'d.x'"),
    (0, "/spec/authorities/0/keyless/identities/0/regexMode", "search"),
    (0, "/spec/authorities/0/keyless/identities/0/claims/runnerEnvironment", "own"),
    (0, "/spec/authorities/0/keyless/identities/1/issuerRegExp", "'k'"),
    (0, "/spec/authorities/0/keyless/identities/1/subject", "op"),
    (0, "/spec/authorities/0/ctlog/require", "proofOrPromise"),
    (0, "/spec/authorities/0/ctlog/require", "none"),
    (0, "/spec/authorities/0/rfc3161timestamp/require", "optional"),
    (0, "/spec/authorities/0/annotations/env", "test"),
    (0, "/spec/authorities/0/maxAge", "20d"),
    (0, "/spec/authorities/0/notBefore", "2026-11-15T00:00:00Z"),
    (0, "/spec/authorities/0/notBefore", "2026-10-05T00:00:00Z"),
    (0, "/spec/policy/data", "'package sigstore\n\n      isCompliant { true }'"),
    (1, "/spec/images/0/glob", "registry.example/other/*"),
    (1, "/spec/require/threshold", "1"),
    (1, "/spec/authorities/0/name", "others"),
    (1, "/spec/authorities/0/signatureFormat", "legacy"),
    (1, "/spec/authorities/0/key/hashAlgorithm", "sha512"),
    (1, "/spec/authorities/0/ctlog/require", "proofOrPromise"),
    (1, "/spec/authorities/0/source/0/oci", "registry.example/other"),
    (1, "/spec/authorities/0/source/0/tagPrefix", "own-"),
    (1, "/spec/authorities/0/attestations/0/name", "other"),
    (1, "/spec/authorities/0/attestations/0/predicateType", "spdx"),
    (
        1,
        "/spec/authorities/0/attestations/0/policy/data",
        "'package sigstore\n\n          isCompliant { true }'",
    ),
    (2, "/spec/images/0/glob", "registry.example/team/*"),
    (2, "/spec/authorities/0/name", "nobody"),
    (2, "/spec/authorities/0/static/action", "fail"),
    (0, "/spec/authorities/1/name", "last"),
];

fn base() -> String {
    let keys: String = RSA.lines().map(|line| format!("        {line}\n")).collect();
    let more: String = second_key().lines().map(|line| format!("        {line}\n")).collect();
    with_digests(&BASE.replace("KEYS", &format!("{keys}{more}")))
}

fn with_digests(text: &str) -> String {
    text.replace("sha256:MANIFEST", &digest("manifest").to_string())
        .replace("sha256:LAYER", &digest("layer").to_string())
}

fn second_key() -> &'static str {
    include_str!("../../../../../../testdata/trust/keys/rsa2048-other.pub")
}

/// Each world differs from one that satisfies the first two policies in one thing.
fn worlds() -> Vec<(&'static str, World)> {
    let dev = || Fact {
        root: "ours".to_owned(),
        ..fact("a", certificate("dev", "i"), signature(&[("env", "prod"), ("tier", "1")]))
    };
    let ops = || Fact { signer: certificate("ops", "j"), ..dev() };
    let scan = |place: &str, pem: &str| Fact {
        log: None,
        ..fact(place, key(pem), attestation(VULN, json!({"findings": 0})))
    };
    let scans = || vec![scan("registry.example/signatures:team-b", RSA), scan("c", second_key())];
    let without_claim = SignedBy::Certificate {
        identity: "dev".to_owned(),
        issuer: "i".to_owned(),
        claims: BTreeMap::from([(Claim::RunnerEnvironment, "own".to_owned())]),
        certificate: digest("own"),
    };
    let mut worlds = vec![
        ("nothing", world(vec![])),
        ("good", world([vec![dev()], scans()].concat())),
        ("scans", world(scans())),
        ("ops", world(vec![ops()])),
        ("another issuer", world(vec![Fact { signer: certificate("dev", "k"), ..dev() }])),
        ("a longer name", world(vec![Fact { signer: certificate("dev-eve", "i"), ..dev() }])),
        ("another claim", world(vec![Fact { signer: without_claim, ..dev() }])),
        ("another root", world(vec![Fact { root: "theirs".to_owned(), ..dev() }])),
        ("no sct", world(vec![Fact { sct: false, ..dev() }])),
        ("promise", world(vec![Fact { log: Some(LogEvidence::Promise), ..dev() }])),
        ("no timestamp", world(vec![Fact { stamped: false, ..dev() }])),
        ("old", world(vec![Fact { time: "2026-10-10T00:00:00Z", ..dev() }])),
        ("older", world(vec![Fact { time: "2026-10-01T00:00:00Z", ..dev() }])),
        ("recent", world(vec![Fact { time: "2026-11-20T00:00:00Z", ..dev() }])),
        ("legacy", world(vec![Fact { format: CandidateFormat::LegacySignature, ..dev() }])),
        (
            "annotation",
            world(vec![Fact { statement: signature(&[("env", "test"), ("tier", "1")]), ..dev() }]),
        ),
        (
            "tier",
            world(vec![Fact { statement: signature(&[("env", "prod"), ("tier", "2")]), ..dev() }]),
        ),
        ("one scan", world(vec![scan("c", second_key())])),
        (
            "findings",
            world(vec![
                scan("c", second_key()),
                Fact { statement: attestation(VULN, json!({"findings": 1})), ..scan("d", RSA) },
            ]),
        ),
        (
            "sha512",
            world(vec![Fact { hash: KeyHash::Sha512, ..scan("c", RSA) }, scan("d", second_key())]),
        ),
    ];
    let mut repinned = world(vec![dev()]);
    repinned.layer = Some(digest("another layer"));
    worlds.push(("another layer", repinned.clone()));
    repinned.layer = Some(digest("layer"));
    repinned.subjects = vec![digest("another manifest")];
    worlds.push(("another manifest", repinned));
    worlds
}

/// What every image is told in every world.
fn told(text: &str) -> Vec<String> {
    let roots = ["ours", "theirs"].map(str::to_owned).into();
    let options = ReadOptions { roots, ..ReadOptions::default() };
    let file = read("trust.yaml", text.as_bytes(), &options)
        .unwrap_or_else(|error| panic!("{error:#?}\n{text}"));
    let mut told = Vec::new();
    for image in ["registry.example/team/a", "registry.example/team/a/b", "registry.example/open/a"]
    {
        let reference: Reference = image.parse().unwrap();
        let policies: Vec<TrustPolicy> =
            matching(&file.policies, reference.repository()).into_iter().cloned().collect();
        for (name, mut world) in worlds() {
            // Only what stands in a place that is looked at is found.
            let sources = policies.iter().flat_map(|policy| &policy.authorities);
            let looked: Vec<String> = sources
                .flat_map(|authority| &authority.sources)
                .map(|source| format!("{}:{}", source.repository, source.tag_prefix))
                .collect();
            world.facts.retain(|fact| {
                !fact.place.contains('/') || looked.iter().any(|from| fact.place.starts_with(from))
            });
            let outcomes = world.ask(&policies);
            let names: Vec<String> = outcomes
                .iter()
                .map(|outcome| {
                    let authorities: Vec<_> = outcome
                        .authorities
                        .iter()
                        .map(|authority| (&authority.name, &authority.missing))
                        .collect();
                    let (answer, codes) = (outcome.outcome.as_str(), codes(outcome));
                    format!("{} {answer} {codes:?} {authorities:?}", outcome.policy)
                })
                .collect();
            let all = VerifyImage::new(image.to_owned(), Some(digest("m")), (None, None), outcomes);
            told.push(format!("{image}, {name}: {} {names:?}", all.outcome.as_str()));
        }
    }
    told
}

fn leaves(node: &Node, pointer: &str, found: &mut Vec<(String, Span)>) {
    if let Some(mapping) = node.as_mapping() {
        for entry in mapping {
            leaves(entry.value(), &format!("{pointer}/{}", entry.key()), found);
        }
    } else if let Some(items) = node.as_sequence() {
        for (index, item) in items.iter().enumerate() {
            leaves(item, &format!("{pointer}/{index}"), found);
        }
    } else {
        found.push((pointer.to_owned(), node.span()));
    }
}

#[test]
fn changing_any_field_changes_what_some_image_is_told() {
    let base = base();
    let before = told(&base);
    assert!(before.iter().any(|line| line.contains("good: satisfied")), "{before:#?}");
    let documents =
        document::parse(base.as_bytes(), Format::Yaml, &DocumentLimits::default()).unwrap();
    let roots = (0, "/spec/authorities/0/keyless/trustRootRef");
    for (document, pointer, value) in CHANGES {
        let node = documents[document].root().at(pointer).unwrap_or_else(|| panic!("{pointer}"));
        let mut changed = base.clone();
        changed.replace_range(node.span().start_byte()..node.span().end_byte(), value);
        let after = told(&with_digests(&changed));
        assert!(after != before, "{document} {pointer}: `{value}` changes nothing");
    }
    let swapped = base.replace("trustRootRef: ours", "trustRootRef: theirs");
    assert!(told(&swapped) != before, "{roots:?} changes nothing");
    let one_key = base.replace(
        &second_key().lines().map(|line| format!("        {line}\n")).collect::<String>(),
        &P256.lines().map(|line| format!("        {line}\n")).collect::<String>(),
    );
    assert!(told(&one_key) != before, "the keys change nothing");
    for (index, document) in documents.iter().enumerate() {
        let mut found = Vec::new();
        leaves(document.root().get("spec").unwrap(), "/spec", &mut found);
        for (pointer, _) in found {
            let covered =
                CHANGES.iter().any(|(at, changed, _)| *at == index && *changed == pointer)
                    || EXEMPT.iter().any(|(exempt, _)| *exempt == pointer)
                    || (index, pointer.as_str()) == roots;
            assert!(covered, "{index} {pointer} is never changed");
        }
    }
}
