package ambit.baseline_test

test_folder_that_holds_sensitive_ones_is_denied if {
	found := data.ambit.baseline.deny with input as mounting({"holds_sensitive": true, "host": "/", "sensitive_reason": "it holds `/etc`: system files"})
	codes(found) == {"fs-host-root"}
	some finding in found
	finding.subject == "store"
	finding.msg == "`store` may read `/`: it holds `/etc`: system files"
}

test_folder_that_nobody_should_read_is_denied if {
	found := data.ambit.baseline.deny with input as mounting({"sensitive_read": true})
	codes(found) == {"fs-host-root"}
}

test_sensitive_folder_without_a_host_path_is_denied if {
	changed_input := without(mounting({"sensitive_read": true, "has_host": false}), ["/workload/components/1/grants/folders/0/host"])
	found := data.ambit.baseline.deny with input as changed_input
	codes(found) == {"fs-host-root"}
	some finding in found
	contains(finding.msg, "may read `/letters`")
}

test_folder_of_its_own_is_allowed if {
	found := data.ambit.baseline.deny with input as mounting({"sensitive_write": true})
	found == set()
}

test_folder_along_a_link_is_left_to_its_owner if {
	found := data.ambit.baseline.deny with input as mounting({"holds_sensitive": true, "writable": true, "sensitive_write": true, "inherited": true})
	found == set()
}

test_writable_sensitive_folder_is_denied if {
	found := data.ambit.baseline.deny with input as mounting({"sensitive_write": true, "writable": true})
		with data.params.baseline.writable_roots as ["/srv"]
	codes(found) == {"fs-sensitive-write"}
}

test_readable_sensitive_folder_is_allowed if {
	found := data.ambit.baseline.deny with input as mounting({"sensitive_write": true, "writable": false})
		with data.params.baseline.writable_roots as ["/srv"]
	found == set()
}

test_writable_folder_is_denied_without_roots if {
	found := data.ambit.baseline.deny with input as mounting({"writable": true})
	codes(found) == {"fs-writable-scope"}
}

test_writable_folder_in_a_root_is_allowed if {
	every root in ["/srv", "/srv/", "/srv/letters", "/"] {
		found := data.ambit.baseline.deny with input as mounting({"writable": true})
			with data.params.baseline.writable_roots as [root]
		found == set()
	}
}

test_writable_folder_beside_a_root_is_denied if {
	found := data.ambit.baseline.deny with input as mounting({"writable": true})
		with data.params.baseline.writable_roots as ["/srv/let"]
	codes(found) == {"fs-writable-scope"}
}

test_writable_ephemeral_folder_is_allowed if {
	changed_input := without(mounting({"writable": true, "has_host": false, "source": "ephemeral"}), ["/workload/components/1/grants/folders/0/host"])
	found := data.ambit.baseline.deny with input as changed_input
	found == set()
}
