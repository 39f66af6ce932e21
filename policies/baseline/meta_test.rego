package ambit.baseline_test

test_workload_without_an_owner_is_denied if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels": {"app": "post"}})
	codes(found) == {"meta-owner"}
	subjects(found) == {"post"}
}

test_empty_label_names_no_owner if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels": {"owner": ""}})
	codes(found) == {"meta-owner"}
}

test_workload_without_a_name_goes_by_its_kind if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels": {}, "/workload/name": ""})
	some finding in found
	startswith(finding.msg, "`Workload` has none of the labels `owner`")
}

test_any_owner_label_is_allowed if {
	every label in data.params.baseline.owner_labels {
		found := data.ambit.baseline.deny with input as changed({"/workload/labels": {label: "mail-team"}})
		found == set()
	}
}

test_bare_component_needs_no_owner if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels": {}, "/workload/kind": "Component"})
	found == set()
}

test_without_owner_labels_nobody_is_asked if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels": {}})
		with data.params.baseline.owner_labels as []
	found == set()
}

test_unpinned_component_in_production_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/pinned": false})
		with data.params.baseline.production_namespaces as ["shop"]
	codes(found) == {"meta-namespace", "image-digest-pin"}
}

test_unpinned_component_in_production_is_denied_without_evidence if {
	found := data.ambit.baseline.deny with input as mail_with({"/pinned": false, "/signed": false, "/evidence_state": "not-checked"})
		with data.params.baseline.production_namespaces as ["shop"]
	codes(found) == {"meta-namespace", "image-digest-pin"}
	some finding in found
	finding.code == "meta-namespace"
	contains(finding.msg, "is not pinned, and")
}

test_unsigned_component_in_production_is_denied if {
	found := data.ambit.baseline.deny with input as store_with({"/signed": false})
		with data.params.baseline.production_namespaces as ["shop"]
	codes(found) == {"meta-namespace", "sign-required"}
}

test_signed_and_pinned_component_in_production_is_allowed if {
	found := data.ambit.baseline.deny with input as clean
		with data.params.baseline.production_namespaces as ["shop"]
	found == set()
}

test_unpinned_component_elsewhere_is_no_matter_of_production if {
	found := data.ambit.baseline.deny with input as mail_with({"/pinned": false})
		with data.params.baseline.production_namespaces as ["shops"]
	codes(found) == {"image-digest-pin"}
}
