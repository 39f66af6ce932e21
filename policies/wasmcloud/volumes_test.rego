package ambit.wasmcloud_test

test_folder_along_a_link_is_denied if {
	found := data.ambit.wasmcloud.deny with input as mail_with({"/grants/folders": [object.union(folder, {"inherited": true})]})
	codes(found) == {"mounts-along-links"}
	some finding in found
	finding.subject == "mail"
	finding.msg == "`mail` sees `/letters`, which `store` mounts, since they are linked"
}

test_folder_of_its_own_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as mail_with({"/grants/folders": [object.union(folder, {"inherited": false, "owner": "mail"})]})
	found == set()
}
