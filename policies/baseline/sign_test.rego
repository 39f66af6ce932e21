package ambit.baseline_test

unsigned := {"/signed": false, "/signatures": [], "/in_transparency_log": false}

test_bad_signature_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({
		"/bad_signature": true,
		"/signatures/0/errors": ["signature-mismatch"],
	})
	codes(found) == {"sign-bad"}
	some finding in found
	contains(finding.msg, "fails verification: `signature-mismatch`")
}

test_bad_signature_without_codes_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/bad_signature": true})
	codes(found) == {"sign-bad"}
}

test_good_signature_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/bad_signature": false})
	found == set()
}

test_enforced_trust_policy_denies if {
	found := data.ambit.baseline.deny with input as mail_with({"/trust/0/satisfied": false, "/trust/0/reasons": ["release: signed by another key"]})
	codes(found) == {"sign-policy"}
	some finding in found
	contains(finding.msg, "doesn't satisfy the trust policy `release` (trust.yaml:1): release: signed by another key")
}

test_trust_policy_that_warns_has_its_own_rule if {
	found := data.ambit.baseline.deny with input as mail_with({"/trust/0/satisfied": false, "/trust/0/mode": "warn"})
	codes(found) == {"sign-policy-warn"}
}

test_satisfied_trust_policies_are_allowed if {
	every mode in ["enforce", "warn"] {
		found := data.ambit.baseline.deny with input as mail_with({"/trust/0/mode": mode})
		found == set()
	}
}

test_component_that_no_trust_policy_covers_is_left_to_other_rules if {
	found := data.ambit.baseline.deny with input as mail_with({"/trust": []})
	found == set()
}

test_unsigned_component_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with(unsigned)
	codes(found) == {"sign-required", "cap-signer-change"}
	some finding in found
	endswith(finding.msg, "has no signature that a trust policy accepts")
}

test_message_tells_that_no_trust_policy_covers_the_image if {
	found := data.ambit.baseline.deny with input as mail_with(object.union(unsigned, {"/trust": []}))
	some finding in found
	finding.code == "sign-required"
	endswith(finding.msg, "is covered by no trust policy, so no signature of it is accepted")
}

test_evidence_that_was_not_checked_is_left_to_the_engine if {
	every state in ["not-checked", "unknown"] {
		found := data.ambit.baseline.deny with input as mail_with({
			"/evidence_state": state,
			"/signed": false,
			"/trust/0/satisfied": false,
			"/bad_signature": true,
			"/signatures": [],
			"/attestations": [],
			"/has_sbom": false,
			"/has_provenance": false,
			"/in_transparency_log": false,
		})
			with data.params.baseline.identities as [{"issuer": "https://issuer.example", "subject": "builder@example.com"}]
			with data.params.baseline.builders as ["https://builder.example/one"]
			with data.params.baseline.max_age_days as 30
			with data.params.baseline.trust_groups as [{"name": "other", "identities": [{"key": "SHA256:k"}]}]
			with data.params.baseline.production_namespaces as ["shop"]
		found == set()
	}
}

test_signature_outside_of_a_log_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/in_transparency_log": false})
	codes(found) == {"sign-tlog"}
}

test_logged_signature_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/in_transparency_log": true, "/signatures/0/tlog": true})
	found == set()
}

test_any_signer_is_allowed_unless_configured if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures/0/identity": "other@example.com"})
	found == set()
}

test_listed_identity_is_allowed if {
	found := data.ambit.baseline.deny with input as clean
		with data.params.baseline.identities as [{"issuer": "https://issuer.example", "subject": "builder@example.com"}]
	found == set()
}

test_unlisted_identity_is_denied if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures/0/identity": "builder@example.com.evil"})
		with data.params.baseline.identities as [{"issuer": "https://issuer.example", "subject": "builder@example.com"}]
	codes(found) == {"sign-identity"}
	subjects(found) == {"store"}
}

test_listed_subject_of_another_issuer_is_denied if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures/0/issuer": "https://other.example"})
		with data.params.baseline.identities as [{"issuer": "https://issuer.example", "subject": "builder@example.com"}]
	codes(found) == {"sign-identity"}
}

test_unverified_signature_by_a_listed_identity_is_denied if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures/0/verified": false})
		with data.params.baseline.identities as [{"issuer": "https://issuer.example", "subject": "builder@example.com"}]
	codes(found) == {"sign-identity"}
	some finding in found
	contains(finding.msg, "signed by nobody")
}

test_signature_without_identity_matches_no_empty_entry if {
	changed_input := without(store_with({}), [
		"/workload/components/1/signatures/0/identity",
		"/workload/components/1/signatures/0/issuer",
		"/workload/components/1/signatures/0/key_id",
	])
	found := data.ambit.baseline.deny with input as changed_input
		with data.params.baseline.identities as [{}, {"issuer": "https://issuer.example", "subject": "builder@example.com"}]
	codes(found) == {"sign-identity"}
}

test_listed_key_is_allowed if {
	changed_input := without(
		store_with({"/signatures/0/key_id": "SHA256:k"}),
		["/workload/components/1/signatures/0/identity", "/workload/components/1/signatures/0/issuer"],
	)
	found := data.ambit.baseline.deny with input as changed_input
		with data.params.baseline.identities as [{"key": "SHA256:k"}, {"issuer": "https://issuer.example", "subject": "builder@example.com"}]
	found == set()
}

test_component_without_signatures_has_no_listed_identity if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures": []})
		with data.params.baseline.identities as [{"issuer": "https://issuer.example", "subject": "builder@example.com"}]
	codes(found) == {"sign-identity"}
}

test_unlogged_signature_that_was_not_checked_is_left_to_the_engine if {
	found := data.ambit.baseline.deny with input as mail_with({"/evidence_state": "not-checked", "/in_transparency_log": false})
	found == set()
}

test_other_or_unverified_keys_are_denied if {
	every values in [{"/signatures/0/key_id": "SHA256:other"}, {"/signatures/0/key_id": "SHA256:k", "/signatures/0/verified": false}] {
		found := data.ambit.baseline.deny with input as mail_with(values)
			with data.params.baseline.identities as [{"key": "SHA256:k"}]
		some finding in found
		finding.code == "sign-identity"
		finding.subject == "mail"
	}
}
