package ambit.baseline_test

limited := {"memory_limited": true, "cpu_limited": true, "pool_size": 0}

test_unpinned_ephemeral_and_init_containers_are_denied if {
	every role in ["ephemeral", "init"] {
		found := data.ambit.baseline.deny with input as mail_with({"/role": role, "/pinned": false, "/resources": limited})
		codes(found) == {"run-ephemeral", "image-digest-pin"}
	}
}

test_pinned_ephemeral_container_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/role": "ephemeral"})
	found == set()
}

test_unpinned_ordinary_container_is_no_ephemeral_one if {
	found := data.ambit.baseline.deny with input as mail_with({"/role": "container", "/pinned": false, "/resources": limited})
	codes(found) == {"image-digest-pin"}
}

test_container_without_a_limit_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/role": "container", "/resources": object.union(limited, {"memory_limited": false})})
	codes(found) == {"run-limits"}
	some finding in found
	finding.msg == "`mail` has no limit on memory"
	finding.help == "set `resources.limits.memory`"
}

test_container_without_limits_is_denied_once if {
	found := data.ambit.baseline.deny with input as mail_with({"/role": "init"})
	count(found) == 1
	some finding in found
	finding.msg == "`mail` has no limit on cpu and memory"
}

test_limited_container_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/role": "container", "/resources": limited})
	found == set()
}

test_roles_that_can_not_be_limited_are_allowed if {
	every role in ["component", "service", "ephemeral", "bare"] {
		found := data.ambit.baseline.deny with input as mail_with({"/role": role})
		found == set()
	}
}
