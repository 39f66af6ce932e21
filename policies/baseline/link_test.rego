package ambit.baseline_test

builder := {"issuer": "https://issuer.example", "subject": "builder@example.com"}

other := {"issuer": "https://issuer.example", "subject": "other@example.com"}

test_any_provider_is_allowed_unless_configured if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures/0/identity": "other@example.com"})
	found == set()
}

test_provider_of_the_same_group_is_allowed if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures/0/identity": "other@example.com"})
		with data.params.baseline.trust_groups as [{"name": "us", "identities": [builder, other]}]
	found == set()
}

test_provider_of_another_group_is_denied if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures/0/identity": "other@example.com"})
		with data.params.baseline.trust_groups as [{"name": "us", "identities": [builder]}, {"name": "them", "identities": [other]}]
	codes(found) == {"link-untrusted-provider"}
	subjects(found) == {"mail"}
}

test_unsigned_provider_is_denied if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures": []})
		with data.params.baseline.trust_groups as [{"name": "us", "identities": [builder]}]
	codes(found) == {"link-untrusted-provider"}
}

test_component_without_links_needs_no_group if {
	found := data.ambit.baseline.deny with input as mail_with({"/links": []})
		with data.params.baseline.trust_groups as [{"name": "them", "identities": [other]}]
	found == set()
}

test_provider_whose_evidence_is_not_known_is_left_to_the_engine if {
	found := data.ambit.baseline.deny with input as store_with({"/signatures": [], "/evidence_state": "unknown"})
		with data.params.baseline.trust_groups as [{"name": "us", "identities": [builder]}]
	found == set()
}

test_sibling_without_a_link_needs_no_group if {
	sibling := object.union(store, {"name": "sort", "signatures": []})
	found := data.ambit.baseline.deny with input as changed({"/workload/components/2": sibling})
		with data.params.baseline.trust_groups as [{"name": "us", "identities": [builder]}]
	found == set()
}
