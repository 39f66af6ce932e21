//! What holds whatever is found.

use proptest::prelude::*;

use super::*;

fn statements() -> impl Strategy<Value = Statement> {
    prop_oneof![
        Just(signature(&[])),
        Just(signature(&[("env", "prod")])),
        Just(attestation(SPDX, json!({"ok": true}))),
        Just(attestation(SPDX, json!({"ok": false}))),
        Just(attestation(VULN, json!({}))),
    ]
}

fn signers() -> impl Strategy<Value = SignedBy> {
    prop_oneof![
        Just(certificate("dev", "i")),
        Just(certificate("dev", "j")),
        Just(certificate("eve", "i")),
        Just(key(P256)),
        Just(key(RSA)),
    ]
}

fn facts() -> impl Strategy<Value = Vec<Fact>> {
    let one = (signers(), statements(), any::<bool>(), any::<bool>());
    prop::collection::vec(one, 0..6).prop_map(|list| {
        list.into_iter()
            .enumerate()
            .map(|(index, (signer, statement, logged, stamped))| Fact {
                log: logged.then_some(LogEvidence::Proof),
                stamped,
                ..fact(&format!("place {index}"), signer, statement)
            })
            .collect()
    })
}

fn specs() -> impl Strategy<Value = String> {
    let dev = format!("{DEV}    attestations: [{{name: bom, predicateType: spdx}}]\n");
    let annotated = format!("{DEV}    annotations: {{env: prod}}\n    maxAge: 60d\n");
    let keys = key_authority("keys", &format!("{P256}{RSA}"), "");
    let require = prop_oneof![
        Just(""),
        Just("  require: {authorities: all}\n"),
        Just("  require: {threshold: 2}\n"),
    ];
    (require, prop_oneof![Just(dev), Just(annotated), Just(DEV.to_owned())])
        .prop_map(move |(require, first)| format!("{require}  authorities:\n{first}{keys}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn order_of_what_is_found_changes_nothing(
        (facts, shuffled) in facts().prop_flat_map(|facts| {
            (Just(facts.clone()), Just(facts).prop_shuffle())
        }),
        spec in specs(),
    ) {
        let (a, b) = (outcome(&spec, &world(facts)), outcome(&spec, &world(shuffled)));
        prop_assert_eq!(serde_json::to_string(&a).unwrap(), serde_json::to_string(&b).unwrap());
    }

    #[test]
    fn more_evidence_never_takes_away(facts in facts(), keep in 0_usize..6, spec in specs()) {
        let less: Vec<Fact> = facts.iter().take(keep).cloned().collect();
        let before = outcome(&spec, &world(less)).outcome;
        let after = outcome(&spec, &world(facts)).outcome;
        prop_assert!(before != Outcome::Satisfied || after == Outcome::Satisfied);
    }

    #[test]
    fn gaps_turn_no_into_unknown_and_leave_yes(facts in facts(), spec in specs()) {
        let seen = outcome(&spec, &world(facts.clone())).outcome;
        let gapped = outcome(&spec, &world(facts).with_gap()).outcome;
        let expected = match seen {
            Outcome::Satisfied => Outcome::Satisfied,
            Outcome::Unsatisfied | Outcome::Unknown => Outcome::Unknown,
        };
        prop_assert_eq!(gapped, expected);
    }

    #[test]
    fn every_candidate_is_listed_for_every_authority(facts in facts(), spec in specs()) {
        let all: Vec<String> = facts.iter().map(|fact| fact.place.clone()).collect();
        for authority in outcome(&spec, &world(facts)).authorities {
            let counted = authority.evidence.iter().map(|evidence| evidence.place.clone());
            let mut listed: Vec<String> =
                authority.rejects.iter().map(|reject| reject.place.clone()).chain(counted).collect();
            listed.sort();
            prop_assert_eq!(&listed, &all);
        }
    }
}
