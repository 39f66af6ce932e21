package ambit.baseline_test

test_clean_workload_has_no_finding if {
	found := data.ambit.baseline.deny with input as clean
	found == set()
}

test_workload_without_components_has_no_finding if {
	found := data.ambit.baseline.deny with input as changed({"/workload/components": []})
	found == set()
}

test_other_bytes_than_pinned_are_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/digest_matches": false})
	codes(found) == {"image-digest-match"}
	subjects(found) == {"mail"}
}

test_other_bytes_without_a_known_digest_are_denied if {
	changed_input := without(mail_with({"/digest_matches": false}), ["/workload/components/0/digest"])
	found := data.ambit.baseline.deny with input as changed_input
	codes(found) == {"image-digest-match"}
}

test_bytes_that_could_not_be_compared_are_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/digest_matches": false, "/digest_checked": false})
	found == set()
}

test_tag_only_reference_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/pinned": false, "/image/raw": "registry.example/shop/mail:1.4"})
	codes(found) == {"image-digest-pin"}
	some finding in found
	finding.msg == "`registry.example/shop/mail:1.4` is named by tag only"
	finding.path == "/spec/components/0/image"
}

test_reference_without_tag_and_digest_keys_is_denied if {
	changed_input := without(mail_with({"/pinned": false}), ["/workload/components/0/image/tag", "/workload/components/0/image/digest"])
	found := data.ambit.baseline.deny with input as changed_input
	codes(found) == {"image-digest-pin"}
}

test_unresolved_artifact_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/pinned": false, "/image/kind": "artifact", "/image/raw": "artifact://web"})
	some finding in found
	finding.msg == "`artifact://web` is named by an artifact only"
}

test_pinned_reference_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/pinned": true, "/image/has_tag": false})
	found == set()
}

test_any_registry_is_allowed_unless_configured if {
	found := data.ambit.baseline.deny with input as mail_with({"/image/name": "elsewhere.example/mail"})
	found == set()
}

test_unlisted_registry_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/image/name": "elsewhere.example/shop/mail"})
		with data.params.baseline.registries as ["registry.example/shop"]
	codes(found) == {"image-registry"}
	subjects(found) == {"mail"}
}

test_registry_with_a_longer_name_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/image/name": "registry.example/shopping/mail"})
		with data.params.baseline.registries as ["registry.example/shop"]
	codes(found) == {"image-registry"}
}

test_listed_registry_is_allowed if {
	found := data.ambit.baseline.deny with input as clean
		with data.params.baseline.registries as ["registry.example/shop/"]
	found == set()
}

test_listed_repository_is_allowed if {
	found := data.ambit.baseline.deny with input as clean
		with data.params.baseline.registries as ["registry.example/shop/mail", "registry.example/shop/store"]
	found == set()
}

test_unresolved_artifact_comes_from_no_listed_registry if {
	found := data.ambit.baseline.deny with input as mail_with({"/image/kind": "artifact", "/image/name": ""})
		with data.params.baseline.registries as ["registry.example"]
	codes(found) == {"image-registry"}
}

test_local_file_needs_no_registry if {
	found := data.ambit.baseline.deny with input as mail_with({"/image/kind": "file", "/image/name": ""})
		with data.params.baseline.registries as ["registry.example"]
	found == set()
}

test_claimed_imports_that_differ_are_denied if {
	found := data.ambit.baseline.deny with input as mail_with({
		"/claims/unnamed_imports": ["wasi:sockets/tcp@0.2.12"],
		"/claims/absent_imports": ["wasi:http/types@0.2.12"],
	})
	codes(found) == {"image-claims"}
	some finding in found
	endswith(finding.msg, "not listed `wasi:sockets/tcp@0.2.12`; listed and absent `wasi:http/types@0.2.12`")
}

test_one_claimed_import_too_many_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/claims/absent_imports": ["wasi:http/types@0.2.12"]})
	codes(found) == {"image-claims"}
}

test_component_without_claims_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/claims/known": false, "/claims/unnamed_imports": ["wasi:sockets/tcp@0.2.12"]})
	found == set()
}
