package ambit.baseline_test

problem := {
	"code": "volume-ambiguous",
	"level": "invalid",
	"severity": "critical",
	"message": "volume `letters` has two sources",
	"help": "delete one of them",
	"component": "",
	"path": "/spec/volumes/0",
}

test_grant_that_can_not_be_read_is_denied if {
	found := data.ambit.baseline.deny with input as changed({"/workload/problems": [problem]})
	found == {{
		"code": "grant-invalid",
		"msg": "volume `letters` has two sources",
		"subject": "post",
		"path": "/spec/volumes/0",
		"help": "delete one of them",
		"severity": "critical",
	}}
}

test_problem_of_a_component_has_it_as_subject if {
	found := data.ambit.baseline.deny with input as changed({"/workload/problems": [object.union(problem, {"component": "mail"})]})
	codes(found) == {"grant-invalid"}
	subjects(found) == {"mail"}
}

test_lint_is_allowed if {
	found := data.ambit.baseline.deny with input as changed({"/workload/problems": [object.union(problem, {"level": "lint"})]})
	found == set()
}

note := {
	"kind": "hosts",
	"subject": "https://api.example.com",
	"reason": "the component imports neither outgoing HTTP nor sockets",
	"path": "/spec/components/0/localResources/allowedHosts/0",
}

test_dead_grant_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/dead_grants": [note]})
	codes(found) == {"grant-dead"}
	some finding in found
	finding.help == "delete `https://api.example.com` from the hosts of `mail`"
}

test_grants_in_use_are_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/dead_grants": []})
	found == set()
}

test_missing_grant_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/missing_grants": [note]})
	codes(found) == {"grant-missing"}
}

test_bare_component_misses_no_grant if {
	found := data.ambit.baseline.deny with input as mail_with({"/missing_grants": [note], "/role": "bare"})
	found == set()
}

test_over_approximate_reach_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/capabilities/precision": "over-approximate"})
	codes(found) == {"grant-over-approx"}
}

test_exact_and_uncomputed_reach_are_allowed if {
	every precision in ["exact", "not-computed"] {
		found := data.ambit.baseline.deny with input as mail_with({"/capabilities/precision": precision})
		found == set()
	}
}
