package ambit.baseline_test

over(kind, value) := mail_with({"/ceilings": [{
	"origin": "ambit.yaml:4",
	"excess": [{
		"kind": kind,
		"value": value,
		"because": "wasi:http/outgoing-handler@0.2.12",
		"allowed": "kv.read",
		"path": "/spec/components/0",
	}],
}]})

test_capability_over_the_ceiling_is_denied if {
	found := data.ambit.baseline.deny with input as over("capability", "http.out")
	codes(found) == {"ceiling-capabilities"}
	some finding in found
	finding.msg == "`mail` asks for `http.out` (wasi:http/outgoing-handler@0.2.12); the ceiling at `ambit.yaml:4` allows kv.read"
	finding.help == "add `http.out` to `capabilities` at `ambit.yaml:4`, or build the component without that import"
}

test_grants_over_the_ceiling_are_denied if {
	every kind in ["host", "folder", "interface"] {
		found := data.ambit.baseline.deny with input as over(kind, "it")
		codes(found) == {"ceiling-grants"}
		subjects(found) == {"mail"}
	}
}

test_excess_without_a_cause_is_denied if {
	found := data.ambit.baseline.deny with input as json.patch(over("capability", "http.out"), [{
		"op": "replace",
		"path": "/workload/components/0/ceilings/0/excess/0/because",
		"value": "",
	}])
	codes(found) == {"ceiling-capabilities"}
}

test_component_within_its_ceiling_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/ceilings": [{"origin": "ambit.yaml:4", "excess": []}]})
	found == set()
}
