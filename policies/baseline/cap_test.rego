package ambit.baseline_test

test_imported_code_is_denied if {
	every sort in ["module", "component"] {
		found := data.ambit.baseline.deny with input as mail_with({"/interfaces/imports/0/sort": sort})
		codes(found) == {"cap-code-import"}
	}
}

test_import_of_the_code_class_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/interfaces/imports/0/classes": ["code.import"]})
	codes(found) == {"cap-code-import"}
}

test_imported_function_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/interfaces/imports/0/sort": "func"})
	found == set()
}

test_unknown_import_of_the_host_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/interfaces/imports/1/served_by": "host"})
	codes(found) == {"cap-unknown-interface"}
	some finding in found
	finding.msg == "`mail` imports `acme:store/kv@1.0.0`, which the catalogue doesn't know"
}

test_unknown_import_without_a_near_miss_key_is_denied if {
	changed_input := without(mail_with({"/interfaces/imports/1/served_by": "host"}), ["/workload/components/0/interfaces/imports/1/near_miss"])
	found := data.ambit.baseline.deny with input as changed_input
	codes(found) == {"cap-unknown-interface"}
}

test_near_miss_is_named if {
	found := data.ambit.baseline.deny with input as mail_with({
		"/interfaces/imports/0/known": false,
		"/interfaces/imports/0/name": "wasi:htpp/outgoing-handler@0.2.12",
		"/interfaces/imports/0/has_near_miss": true,
		"/interfaces/imports/0/near_miss": "wasi:http/outgoing-handler",
	})
	codes(found) == {"cap-unknown-interface"}
	some finding in found
	contains(finding.msg, "nearly `wasi:http/outgoing-handler`")
	contains(finding.help, "`wasi:http/outgoing-handler`")
}

test_unknown_import_of_a_sibling_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/interfaces/imports/1/served_by": "component:store"})
	found == set()
}

test_other_signer_than_before_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/signatures/0/identity": "other@example.com"})
	codes(found) == {"cap-signer-change"}
}

test_same_signer_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/signatures/0/identity": "builder@example.com"})
	found == set()
}

test_signer_of_a_component_never_seen_is_allowed if {
	changed_input := without(mail_with({"/signatures/0/identity": "other@example.com"}), ["/previous/components/mail"])
	found := data.ambit.baseline.deny with input as changed_input
		with data.params.baseline.growth as true
	found == set()
}

test_first_signer_is_allowed if {
	found := data.ambit.baseline.deny with input as changed({"/previous/components/mail/signers": []})
	found == set()
}

test_without_a_previous_decision_nothing_changed if {
	changed_input := without(
		object.union(mail_with({"/signatures/0/identity": "other@example.com"}), {"has_previous": false}),
		["/previous"],
	)
	found := data.ambit.baseline.deny with input as changed_input
		with data.params.baseline.growth as true
	found == set()
}

test_any_capability_is_allowed_unless_configured if {
	found := data.ambit.baseline.deny with input as mail_with({"/capabilities/counted": ["net.tcp.connect"]})
	found == set()
}

test_forbidden_capability_is_denied if {
	every pattern in ["http.out", "http.*"] {
		found := data.ambit.baseline.deny with input as clean
			with data.params.baseline.forbidden as [pattern]
		codes(found) == {"cap-forbidden"}
		some finding in found
		finding.msg == "`mail` asks for `http.out`, which is forbidden: `wasi:http/outgoing-handler@0.2.12`"
	}
}

test_forbidden_capability_without_a_known_import_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/capabilities/counted": ["net.udp.send"]})
		with data.params.baseline.forbidden as ["net.*"]
	codes(found) == {"cap-forbidden"}
}

test_other_capabilities_than_forbidden_ones_are_allowed if {
	found := data.ambit.baseline.deny with input as clean
		with data.params.baseline.forbidden as ["http", "http.outer", "htt.*"]
	found == set()
}

test_capability_that_does_not_count_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/capabilities/counted": []})
		with data.params.baseline.forbidden as ["http.out"]
	found == set()
}

test_growth_is_allowed_unless_configured if {
	found := data.ambit.baseline.deny with input as changed({"/previous/components/mail/capabilities": []})
	found == set()
}

test_unchanged_component_gains_nothing if {
	found := data.ambit.baseline.deny with input as clean
		with data.params.baseline.growth as true
	found == set()
}

test_new_capability_is_denied if {
	found := data.ambit.baseline.deny with input as changed({"/previous/components/mail/capabilities": ["tool.call"]})
		with data.params.baseline.growth as true
	codes(found) == {"cap-growth"}
	some finding in found
	finding.msg == "`mail` gains the capability `http.out`"
}

test_new_reach_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/reach/0/subject": "evil.example over https, port 443"})
		with data.params.baseline.growth as true
	codes(found) == {"cap-growth"}
	some finding in found
	finding.path == "/spec/components/0/localResources/allowedHosts/0"
}

test_lost_capability_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/capabilities/declared": [], "/reach": []})
		with data.params.baseline.growth as true
	found == set()
}

test_previous_that_does_not_count_is_not_compared if {
	found := data.ambit.baseline.deny with input as object.union(
		mail_with({"/signatures/0/identity": "other@example.com", "/reach/0/subject": "evil.example"}),
		{"has_previous": false},
	)
		with data.params.baseline.growth as true
	found == set()
}

test_signature_without_a_name_is_no_signer if {
	changed_input := without(mail_with({"/signatures/1": clean.workload.components[0].signatures[0]}), [
		"/workload/components/0/signatures/1/identity",
		"/workload/components/0/signatures/1/key_id",
	])
	found := data.ambit.baseline.deny with input as changed_input
	found == set()
}
