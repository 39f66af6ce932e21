package ambit.wasmcloud_test

test_annotation_for_unsigned_components_is_denied if {
	found := data.ambit.wasmcloud.deny with input as changed({"/workload/annotations": {"desktop.cosmonic.com/unsafe-allow-unsigned": "true"}})
	codes(found) == {"unsigned-annotation"}
	subjects(found) == {"post"}
}

test_annotation_with_another_value_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as changed({"/workload/annotations": {"desktop.cosmonic.com/unsafe-allow-unsigned": "false"}})
	found == set()
}

test_other_annotation_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as changed({"/workload/annotations": {"desktop.cosmonic.com/enabled": "true"}})
	found == set()
}
