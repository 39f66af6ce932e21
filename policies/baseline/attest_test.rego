package ambit.baseline_test

test_missing_provenance_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/has_provenance": false})
	codes(found) == {"attest-provenance"}
	subjects(found) == {"mail"}
}

test_verified_provenance_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/has_provenance": true})
	found == set()
}

test_missing_bill_of_materials_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/has_sbom": false})
	codes(found) == {"attest-sbom"}
}

test_verified_bill_of_materials_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/has_sbom": true})
	found == set()
}

test_any_builder_is_allowed_unless_configured if {
	found := data.ambit.baseline.deny with input as mail_with({"/attestations/0/builder_id": "https://builder.example/two"})
	found == set()
}

test_listed_builder_is_allowed if {
	found := data.ambit.baseline.deny with input as clean
		with data.params.baseline.builders as ["https://builder.example/one"]
	found == set()
}

test_unlisted_builder_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/attestations/0/builder_id": "https://builder.example/one/more"})
		with data.params.baseline.builders as ["https://builder.example/one"]
	codes(found) == {"attest-builder"}
	subjects(found) == {"mail"}
}

test_provenance_of_another_digest_names_no_builder if {
	found := data.ambit.baseline.deny with input as mail_with({"/attestations/0/subject_matches": false})
		with data.params.baseline.builders as ["https://builder.example/one"]
	codes(found) == {"attest-builder"}
	some finding in found
	contains(finding.msg, "nobody that a verified provenance names")
}

test_unverified_provenance_names_no_builder if {
	found := data.ambit.baseline.deny with input as mail_with({"/attestations/0/verified": false})
		with data.params.baseline.builders as ["https://builder.example/one"]
	codes(found) == {"attest-builder"}
}

test_attestation_without_builder_is_denied if {
	changed_input := without(clean, ["/workload/components/0/attestations/0/builder_id"])
	found := data.ambit.baseline.deny with input as changed_input
		with data.params.baseline.builders as ["https://builder.example/one"]
	codes(found) == {"attest-builder"}
}

test_component_without_attestations_has_no_listed_builder if {
	found := data.ambit.baseline.deny with input as mail_with({"/attestations": []})
		with data.params.baseline.builders as ["https://builder.example/one"]
	codes(found) == {"attest-builder"}
}

test_old_attestation_is_allowed_unless_configured if {
	found := data.ambit.baseline.deny with input as mail_with({"/attestations/0/age_seconds": 864000000})
	found == set()
}

test_attestation_of_the_last_day_that_counts_is_allowed if {
	found := data.ambit.baseline.deny with input as clean
		with data.params.baseline.max_age_days as 10
	found == set()
}

test_older_attestation_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/attestations/0/age_seconds": 864001})
		with data.params.baseline.max_age_days as 10
	codes(found) == {"attest-age"}
	some finding in found
	contains(finding.msg, "the youngest is 10 days old")
}

test_youngest_attestation_counts if {
	young := object.union(clean.workload.components[0].attestations[0], {"age_seconds": 60})
	found := data.ambit.baseline.deny with input as mail_with({"/attestations/0/age_seconds": 864001, "/attestations/1": young})
		with data.params.baseline.max_age_days as 10
	found == set()
}

test_attestation_of_unknown_age_is_denied if {
	changed_input := without(mail_with({"/attestations/0/has_age": false}), ["/workload/components/0/attestations/0/age_seconds"])
	found := data.ambit.baseline.deny with input as changed_input
		with data.params.baseline.max_age_days as 10
	codes(found) == {"attest-age"}
}

test_component_without_attestations_is_not_recent if {
	found := data.ambit.baseline.deny with input as mail_with({"/attestations": []})
		with data.params.baseline.max_age_days as 10
	codes(found) == {"attest-age"}
}

test_empty_builder_is_no_listed_one if {
	changed_input := without(clean, ["/workload/components/0/attestations/0/builder_id"])
	found := data.ambit.baseline.deny with input as changed_input
		with data.params.baseline.builders as ["", "https://builder.example/one"]
	codes(found) == {"attest-builder"}
}
