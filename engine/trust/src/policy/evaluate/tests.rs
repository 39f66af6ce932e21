//! Evaluation against a verifier that believes a table of facts.

mod fields;
mod properties;

use std::collections::BTreeMap;

use super::*;
use crate::candidate::{CandidateFormat, Content, LegacyLayer};
use crate::policy::{
    Claim, Formats, KeyHash, LogRule, ReadOptions, SctRule, TimestampRule, VerifyDocument,
    VerifyImage, read,
};
use crate::verify::{
    Claimed, LogEntry, LogEvidence, SignedBy, Statement, TimeSource, VerifiedTime,
};

/// What is true of a candidate, as far as the verifier is concerned.
#[derive(Clone, Debug)]
struct Fact {
    place: String,
    format: CandidateFormat,
    signer: SignedBy,
    statement: Statement,
    time: &'static str,
    log: Option<LogEvidence>,
    stamped: bool,
    sct: bool,
    root: String,
    hash: KeyHash,
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn certificate(identity: &str, issuer: &str) -> SignedBy {
    SignedBy::Certificate {
        identity: identity.to_owned(),
        issuer: issuer.to_owned(),
        claims: BTreeMap::from([(Claim::RunnerEnvironment, "hosted".to_owned())]),
        certificate: digest(&format!("certificate of {identity}")),
    }
}

fn key(pem: &str) -> SignedBy {
    let keys = crate::policy::public_keys(pem, crate::policy::HashChoice::Unnamed).unwrap();
    SignedBy::Key { fingerprint: Digest::of(&keys[0].spki) }
}

fn signature(annotations: &[(&str, &str)]) -> Statement {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Statement::Signature { annotations: annotations.iter().map(pair).collect() }
}

#[expect(clippy::needless_pass_by_value, reason = "`json!` is written where it is called")]
fn attestation(predicate_type: &str, predicate: serde_json::Value) -> Statement {
    Statement::Attestation {
        predicate_type: predicate_type.to_owned(),
        statement: json!({
            "_type": "https://in-toto.io/Statement/v1",
            "predicateType": predicate_type,
            "predicate": predicate,
        }),
    }
}

fn fact(place: &str, signer: SignedBy, statement: Statement) -> Fact {
    Fact {
        place: place.to_owned(),
        format: CandidateFormat::Bundle,
        signer,
        statement,
        time: "2026-11-01T00:00:00Z",
        log: Some(LogEvidence::Proof),
        stamped: true,
        sct: true,
        root: "public-good".to_owned(),
        hash: KeyHash::Sha256,
    }
}

impl Fact {
    fn candidate(&self) -> Candidate {
        let layer =
            || LegacyLayer { payload: self.place.clone().into_bytes(), ..Default::default() };
        let content = match self.format {
            CandidateFormat::Bundle => Content::Bundle(self.place.clone().into_bytes()),
            CandidateFormat::LegacySignature => Content::LegacySignature(layer()),
            CandidateFormat::LegacyAttestation => Content::LegacyAttestation(layer()),
        };
        Candidate { place: self.place.clone(), content }
    }

    fn verify(&self, authority: &Authority) -> Result<Verified<Signed>, Reject> {
        let reject = |code: RejectCode| Reject {
            code,
            message: format!("the verifier says {}", code.as_str()),
            claimed: Claimed::default(),
        };
        match (&authority.signer, &self.signer) {
            (Signer::Key { keys, root }, SignedBy::Key { fingerprint }) => {
                let named = keys.iter().find(|key| Digest::of(&key.spki) == *fingerprint);
                let named = named.ok_or_else(|| reject(RejectCode::Key))?;
                if named.hash != self.hash {
                    return Err(reject(RejectCode::KeyAlgorithm));
                }
                if *root != self.root {
                    return Err(reject(RejectCode::TlogInvalid));
                }
            }
            (
                Signer::Certificate { root, identities, sct },
                SignedBy::Certificate { identity, issuer, claims, .. },
            ) => {
                if *root != self.root {
                    return Err(reject(RejectCode::Chain));
                }
                if *sct == SctRule::Required && !self.sct {
                    return Err(reject(RejectCode::Sct));
                }
                let fits = identities.iter().any(|wanted| {
                    wanted.issuer.matches(issuer)
                        && wanted.subject.matches(identity)
                        && wanted
                            .claims
                            .iter()
                            .all(|(claim, value)| claims.get(claim) == Some(value))
                });
                if !fits {
                    return Err(reject(RejectCode::Identity));
                }
            }
            (_, _) => return Err(reject(RejectCode::Key)),
        }
        match (authority.log, self.log) {
            (LogRule::Unasked, _)
            | (LogRule::ProofOrPromise, Some(_))
            | (LogRule::Proof, Some(LogEvidence::Proof)) => {}
            (LogRule::Proof | LogRule::ProofOrPromise, _) => {
                return Err(reject(RejectCode::TlogMissing));
            }
        }
        if authority.timestamp == TimestampRule::Required && !self.stamped {
            return Err(reject(RejectCode::TimestampMissing));
        }
        let time = VerifiedTime { time: self.time.parse().unwrap(), source: TimeSource::Log };
        Ok(Verified::for_test(Signed {
            signer: self.signer.clone(),
            statement: self.statement.clone(),
            times: if self.log.is_some() { vec![time] } else { Vec::new() },
            log: self.log.map(|evidence| LogEntry {
                log_id: "bG9n".to_owned(),
                index: 7,
                evidence,
            }),
            evidence: self.candidate().evidence_digest(),
        }))
    }
}

/// A world in which policies are asked.
#[derive(Clone, Debug)]
struct World {
    facts: Vec<Fact>,
    subjects: Vec<Digest>,
    layer: Option<Digest>,
    gaps: Vec<Gap>,
}

fn world(facts: Vec<Fact>) -> World {
    World {
        facts,
        subjects: vec![digest("manifest")],
        layer: Some(digest("layer")),
        gaps: Vec::new(),
    }
}

impl World {
    fn ask(&self, policies: &[TrustPolicy]) -> Vec<PolicyOutcome> {
        let policies: Vec<&TrustPolicy> = policies.iter().collect();
        let candidates: Vec<Candidate> = self.facts.iter().map(Fact::candidate).collect();
        let question = Question {
            subjects: &self.subjects,
            layer: self.layer,
            candidates: &candidates,
            gaps: &self.gaps,
            now: "2026-12-01T00:00:00Z".parse().unwrap(),
        };
        evaluate(&policies, &question, |candidate, authority| {
            let fact = self.facts.iter().find(|fact| fact.place == candidate.place).unwrap();
            fact.verify(authority)
        })
    }

    fn with_gap(mut self) -> Self {
        self.gaps.push(Gap::truncated(64));
        self
    }
}

const P256: &str = include_str!("../../../../../testdata/trust/keys/p256.pub");
const RSA: &str = include_str!("../../../../../testdata/trust/keys/rsa2048.pub");
const SPDX: &str = "https://spdx.dev/Document";
const VULN: &str = "https://cosign.sigstore.dev/attestation/vuln/v1";

fn policies(spec: &str) -> Vec<TrustPolicy> {
    let text = format!(
        "apiVersion: ambit.dev/v1alpha1\nkind: TrustPolicy\nmetadata: {{name: p}}\nspec:\n  images: [{{glob: '**'}}]\n{spec}"
    );
    read("trust.yaml", text.as_bytes(), &ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
        .policies
}

fn key_authority(name: &str, pem: &str, more: &str) -> String {
    let pem = pem.lines().map(|line| format!("        {line}\n")).collect::<String>();
    format!("  - name: {name}\n    key:\n      data: |\n{pem}{more}")
}

fn outcome(spec: &str, world: &World) -> PolicyOutcome {
    world.ask(&policies(spec)).remove(0)
}

fn codes(outcome: &PolicyOutcome) -> Vec<&'static str> {
    let rejects = outcome.authorities.iter().flat_map(|authority| &authority.rejects);
    rejects.map(|reject| reject.code.as_str()).collect()
}

const DEV: &str = "  - name: dev\n    keyless: {identities: [{issuer: i, subject: dev}]}\n";

#[test]
fn attestation_by_the_right_signer_is_no_signature_and_the_reverse() {
    let bom = fact("bom", certificate("dev", "i"), attestation(SPDX, json!({})));
    let signed = fact("sig", certificate("dev", "i"), signature(&[]));
    let wants_signature = format!("  authorities:\n{DEV}");
    let wants_bom =
        format!("  authorities:\n{DEV}    attestations: [{{name: bom, predicateType: spdx}}]\n");
    for (spec, good, bad) in [(&wants_signature, &signed, &bom), (&wants_bom, &bom, &signed)] {
        let refused = outcome(spec, &world(vec![bad.clone()]));
        assert_eq!(refused.outcome, Outcome::Unsatisfied);
        assert_eq!(codes(&refused), ["signature-predicate-type"]);
        let both = outcome(spec, &world(vec![bad.clone(), good.clone()]));
        assert_eq!(both.outcome, Outcome::Satisfied);
    }
}

#[test]
fn another_predicate_type_counts_for_nothing() {
    let spec = format!(
        "  authorities:\n{DEV}    attestations: [{{name: bom, predicateType: '{SPDX}'}}]\n"
    );
    for other in [VULN, "https://spdx.dev/Document/v2.3", "https://spdx.dev/document"] {
        let there = fact("a", certificate("dev", "i"), attestation(other, json!({})));
        let refused = outcome(&spec, &world(vec![there]));
        assert_eq!(refused.outcome, Outcome::Unsatisfied, "{other}");
        assert_eq!(codes(&refused), ["signature-predicate-type"]);
        assert_eq!(refused.authorities[0].missing, ["bom"]);
    }
}

#[test]
fn each_attestation_that_is_named_has_to_be_there() {
    let spec = format!(
        "  authorities:\n{DEV}    attestations: [{{name: bom, predicateType: spdx}}, {{name: scan, predicateType: vuln}}]\n"
    );
    let bom = fact("a", certificate("dev", "i"), attestation(SPDX, json!({})));
    let scan = fact("b", certificate("dev", "i"), attestation(VULN, json!({})));
    let half = outcome(&spec, &world(vec![bom.clone()]));
    assert_eq!(
        (half.outcome, &half.authorities[0].missing),
        (Outcome::Unsatisfied, &vec!["scan".to_owned()])
    );
    assert_eq!(outcome(&spec, &world(vec![bom, scan])).outcome, Outcome::Satisfied);
}

#[test]
fn signers_count_once_however_often_they_sign() {
    let spec = format!(
        "  require: {{threshold: 2}}\n  authorities:\n{}{}  - name: dev\n    keyless: {{identities: [{{issuer: i, subjectRegExp: '.+'}}, {{issuer: j, subject: dev}}]}}\n",
        key_authority("one", P256, ""),
        key_authority("two", &format!("{P256}{RSA}"), ""),
    );
    let by_key = |place: &str| fact(place, key(P256), signature(&[]));
    let dev = |place: &str| fact(place, certificate("dev", "i"), signature(&[]));
    let mut renewed = dev("d");
    renewed.signer = SignedBy::Certificate {
        identity: "dev".to_owned(),
        issuer: "i".to_owned(),
        claims: BTreeMap::new(),
        certificate: digest("a later certificate"),
    };
    for once in [vec![by_key("a"), by_key("b")], vec![dev("c"), renewed.clone()], vec![]] {
        let refused = outcome(&spec, &world(once));
        assert_eq!(refused.outcome, Outcome::Unsatisfied, "{refused:#?}");
        assert_eq!(refused.reasons[0].code, "sign-required");
    }
    for twice in [
        vec![by_key("a"), dev("c")],
        vec![by_key("a"), fact("b", key(RSA), signature(&[]))],
        vec![dev("c"), fact("e", certificate("dev", "j"), signature(&[]))],
        vec![dev("c"), fact("e", certificate("ops", "i"), signature(&[]))],
    ] {
        let enough = outcome(&spec, &world(twice));
        assert_eq!((enough.outcome, enough.signers.len()), (Outcome::Satisfied, 2));
    }
}

#[test]
fn signers_who_complete_each_other_are_not_two() {
    let spec = "  require: {threshold: 2}\n  authorities:\n  - name: any\n    keyless: {identities: [{issuer: i, subjectRegExp: '.+'}]}\n    attestations: [{name: bom, predicateType: spdx}, {name: scan, predicateType: vuln}]\n";
    let by = |place: &str, who: &str, what: &str| {
        fact(place, certificate(who, "i"), attestation(what, json!({})))
    };
    let parts = vec![by("a", "x", SPDX), by("b", "y", VULN)];
    let refused = outcome(spec, &world(parts.clone()));
    assert_eq!(refused.outcome, Outcome::Unsatisfied);
    let whole = [parts, vec![by("c", "x", VULN), by("d", "y", SPDX)]].concat();
    assert_eq!(outcome(spec, &world(whole)).outcome, Outcome::Satisfied);
}

#[test]
fn all_authorities_means_each() {
    let spec = format!(
        "  require: {{authorities: all}}\n  authorities:\n{DEV}{}",
        key_authority("vendor", P256, "")
    );
    let dev = fact("a", certificate("dev", "i"), signature(&[]));
    let vendor = fact("b", key(P256), signature(&[]));
    assert_eq!(outcome(&spec, &world(vec![dev.clone()])).outcome, Outcome::Unsatisfied);
    assert_eq!(outcome(&spec, &world(vec![dev, vendor])).outcome, Outcome::Satisfied);
}

#[test]
fn what_was_not_seen_is_unknown_and_what_was_seen_stays() {
    let spec = format!("  authorities:\n{DEV}");
    let good = fact("a", certificate("dev", "i"), signature(&[]));
    let bad = fact("b", certificate("eve", "i"), signature(&[]));
    let unknown = outcome(&spec, &world(vec![bad.clone()]).with_gap());
    assert_eq!((unknown.outcome, unknown.gaps.len()), (Outcome::Unknown, 1));
    let satisfied = outcome(&spec, &world(vec![bad, good.clone()]).with_gap());
    assert_eq!((satisfied.outcome, satisfied.gaps.len()), (Outcome::Satisfied, 0));
    // Nothing that might have been there would help.
    let pinned = format!("  pins: [{{manifest: '{}'}}]\n  authorities:\n{DEV}", digest("other"));
    let never = outcome(&pinned, &world(vec![good.clone()]).with_gap());
    assert_eq!(never.outcome, Outcome::Unsatisfied);
    let fail = "  authorities: [{static: {action: fail}}]\n";
    assert_eq!(outcome(fail, &world(vec![good]).with_gap()).outcome, Outcome::Unsatisfied);
}

#[test]
fn pins_name_manifest_index_or_bytes() {
    let spec = |pin: &str| format!("  pins: [{pin}]\n  authorities:\n{DEV}");
    let mut asked = world(vec![fact("a", certificate("dev", "i"), signature(&[]))]);
    asked.subjects.push(digest("index"));
    for (pin, expected) in [
        (format!("{{manifest: '{}'}}", digest("manifest")), Outcome::Satisfied),
        (format!("{{manifest: '{}'}}", digest("index")), Outcome::Satisfied),
        (format!("{{layer: '{}'}}", digest("layer")), Outcome::Satisfied),
        (format!("{{layer: '{}'}}", digest("manifest")), Outcome::Unsatisfied),
        (format!("{{manifest: '{}'}}", digest("layer")), Outcome::Unsatisfied),
    ] {
        assert_eq!(outcome(&spec(&pin), &asked).outcome, expected, "{pin}");
    }
    asked.layer = None;
    let pin = format!("{{layer: '{}'}}", digest("layer"));
    assert_eq!(outcome(&spec(&pin), &asked).outcome, Outcome::Unknown);
}

#[test]
fn age_counts_from_the_earliest_time() {
    let spec = |more: &str| format!("  authorities:\n{}", key_authority("k", P256, more));
    let aged = spec("    ctlog: {require: none}\n    maxAge: 30d\n");
    let since = spec("    ctlog: {require: none}\n    notBefore: 2026-11-01T00:00:00Z\n");
    let at =
        |time: &'static str| world(vec![Fact { time, ..fact("a", key(P256), signature(&[])) }]);
    assert_eq!(outcome(&aged, &at("2026-11-01T00:00:00Z")).outcome, Outcome::Satisfied);
    let old = outcome(&aged, &at("2026-10-31T23:59:59Z"));
    assert_eq!(codes(&old), ["signature-age"]);
    assert_eq!(outcome(&since, &at("2026-11-01T00:00:00Z")).outcome, Outcome::Satisfied);
    assert_eq!(codes(&outcome(&since, &at("2026-10-31T23:59:59Z"))), ["signature-age"]);
    for spec in [&aged, &since] {
        let untimed = Fact { log: None, ..fact("a", key(P256), signature(&[])) };
        assert_eq!(codes(&outcome(spec, &world(vec![untimed]))), ["signature-age"]);
    }
    // A second time, which anybody can add, makes no signature younger.
    let time = |time: &str, source| VerifiedTime { time: time.parse().unwrap(), source };
    let times = vec![
        time("2026-01-01T00:00:00Z", TimeSource::Log),
        time("2026-11-30T00:00:00Z", TimeSource::TimestampAuthority),
    ];
    let policy = policies(&aged).remove(0);
    let there = fact("a", key(P256), signature(&[]));
    let candidates = [there.candidate()];
    let question = Question {
        subjects: &[digest("manifest")],
        layer: None,
        candidates: &candidates,
        gaps: &[],
        now: "2026-12-01T00:00:00Z".parse().unwrap(),
    };
    let found = evaluate(&[&policy], &question, |_, authority| {
        let signed = there.verify(authority)?.get().clone();
        Ok(Verified::for_test(Signed { times: times.clone(), ..signed }))
    });
    assert_eq!(codes(&found[0]), ["signature-age"]);
}

#[test]
fn rego_has_to_agree() {
    let rego = |body: &str| {
        format!(
            "  authorities:\n{DEV}    attestations:\n    - name: scan\n      predicateType: vuln\n      policy: {{type: rego, data: 'package sigstore\n\n        {body}'}}\n"
        )
    };
    let scan = |findings: u32| {
        world(vec![fact(
            "a",
            certificate("dev", "i"),
            attestation(VULN, json!({"findings": findings})),
        )])
    };
    let clean = rego("isCompliant { input.predicate.findings == 0 }");
    assert_eq!(outcome(&clean, &scan(0)).outcome, Outcome::Satisfied);
    assert_eq!(codes(&outcome(&clean, &scan(1))), ["signature-policy"]);
    let failing = rego("isCompliant { to_number(\"x\") == 0 }");
    assert_eq!(codes(&outcome(&failing, &scan(0))), ["signature-policy"]);
    // One that satisfies another rule is listed for the one that refuses it all the same.
    let both = format!("{clean}    - {{name: any, predicateType: vuln}}\n");
    let part = outcome(&both, &scan(1));
    assert_eq!((codes(&part), part.authorities[0].evidence.len()), (vec!["signature-policy"], 1));
    assert_eq!(
        (part.outcome, &part.authorities[0].missing),
        (Outcome::Unsatisfied, &vec!["scan".to_owned()])
    );
}

#[test]
fn policy_rego_sees_the_authorities_that_are_satisfied() {
    let spec = format!(
        "  authorities:\n{DEV}{}  policy:\n    type: rego\n    data: |\n      package sigstore\n      isCompliant {{ count(input.authorityMatches.dev.signatures) == 1; input.authorityMatches.dev.signatures[_].issuer == \"i\"; input.authorityMatches.vendor }}\n",
        key_authority("vendor", P256, "")
    );
    let dev = fact("a", certificate("dev", "i"), signature(&[]));
    let vendor = fact("b", key(P256), signature(&[]));
    let half = outcome(&spec, &world(vec![dev.clone()]));
    assert_eq!(half.outcome, Outcome::Unsatisfied);
    assert_eq!(half.reasons[0].code, "signature-policy");
    assert_eq!(outcome(&spec, &world(vec![dev, vendor])).outcome, Outcome::Satisfied);
}

#[test]
fn formats_that_are_not_accepted_are_never_verified() {
    let policy = policies(&format!("  authorities:\n{DEV}    signatureFormat: bundle\n")).remove(0);
    let legacy = Fact {
        format: CandidateFormat::LegacySignature,
        ..fact("a", certificate("dev", "i"), signature(&[]))
    };
    let candidates = [legacy.candidate()];
    let question = Question {
        subjects: &[],
        layer: None,
        candidates: &candidates,
        gaps: &[],
        now: "2026-12-01T00:00:00Z".parse().unwrap(),
    };
    let found = evaluate(&[&policy], &question, |_, _| unreachable!("it isn't asked"));
    assert_eq!(codes(&found[0]), ["signature-format-not-accepted"]);
    assert_eq!(policy.authorities[0].formats, Formats::Bundle);
}

#[test]
fn mode_changes_what_it_means_and_nothing_else() {
    let facts = vec![fact("a", certificate("eve", "i"), signature(&[]))];
    let enforce = outcome(&format!("  authorities:\n{DEV}"), &world(facts.clone()));
    let warn = outcome(&format!("  mode: warn\n  authorities:\n{DEV}"), &world(facts));
    assert_eq!(enforce.outcome, warn.outcome);
    assert_eq!(enforce.authorities, warn.authorities);
    let image =
        |policies| VerifyImage::new("a".to_owned(), Some(digest("a")), (None, None), policies);
    assert_eq!(image(vec![enforce]).outcome, Outcome::Unsatisfied);
    assert_eq!(image(vec![warn]).outcome, Outcome::Unsatisfied);
    assert_eq!(image(vec![]).outcome, Outcome::Unsatisfied);
}

#[test]
fn document_lists_who_satisfies_and_why_others_do_not() {
    let spec = format!(
        "  authorities:\n{DEV}    annotations: {{env: prod}}\n{}    attestations: [{{name: bom, predicateType: spdx}}]\n",
        key_authority("vendor", P256, "    ctlog: {require: none}\n"),
    );
    let facts = vec![
        fact("sha256:b", certificate("dev", "i"), signature(&[("env", "prod")])),
        fact("sha256:a", certificate("eve", "i"), signature(&[("env", "prod")])),
        Fact { log: None, ..fact("sha256:c", key(P256), attestation(SPDX, json!({}))) },
    ];
    let asked = world(facts);
    let outcomes = asked.ask(&policies(&spec));
    let image = VerifyImage::new(
        "registry.example/app:1".to_owned(),
        Some(digest("manifest")),
        (None, asked.layer),
        outcomes,
    );
    insta::assert_json_snapshot!("document", VerifyDocument::new(vec![image]));
}
