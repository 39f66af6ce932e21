package ambit.baseline_test

test_metadata_address_is_denied if {
	found := data.ambit.baseline.deny with input as granting({"metadata": true, "special": true, "address_classes": ["metadata"]})
	codes(found) == {"net-metadata"}
	subjects(found) == {"mail"}
}

test_metadata_address_that_is_taken_away_is_allowed if {
	found := data.ambit.baseline.deny with input as granting({"metadata": true, "special": true, "deny": true})
	found == set()
}

test_special_address_is_denied if {
	found := data.ambit.baseline.deny with input as granting({"special": true, "address_classes": ["link-local"]})
	codes(found) == {"net-special"}
}

test_ordinary_address_is_allowed if {
	found := data.ambit.baseline.deny with input as granting({"special": false, "kind": "ip", "host": "192.0.2.1"})
	found == set()
}

test_special_address_that_is_taken_away_is_allowed if {
	found := data.ambit.baseline.deny with input as granting({"special": true, "deny": true})
	found == set()
}

closure(values) := object.union({"members": ["mail", "store"], "any_host": true, "folder": false, "secret": false}, values)

test_any_host_with_a_folder_in_one_closure_is_denied_once if {
	found := data.ambit.baseline.deny with input as changed({
		"/workload/components/0/closure": closure({"folder": true}),
		"/workload/components/1/closure": closure({"folder": true}),
		"/workload/components/0/grants/hosts/0/any_host": true,
	})
	codes(found) == {"net-any-host-closure", "net-wildcard"}
	closures := [finding | some finding in found; finding.code == "net-any-host-closure"]
	count(closures) == 1
	closures[0].subject == "mail"
	closures[0].path == "/spec/components/0/localResources/allowedHosts/0"
	closures[0].msg == "the linked components `mail`, `store` together can reach any host and read a folder"
	closures[0].help == "list the hosts that `mail` calls in place of `https://api.example.com`, or take away the folder"
}

test_open_sockets_with_a_secret_are_denied_at_the_component_that_has_them if {
	entry := object.union(clean.workload.components[1].reach[0], {"verb": "open sockets", "via": "target-default"})
	found := data.ambit.baseline.deny with input as changed({
		"/workload/components/0/closure": closure({"secret": true}),
		"/workload/components/1/closure": closure({"secret": true}),
		"/workload/components/1/reach": [entry],
	})
	codes(found) == {"net-any-host-closure"}
	subjects(found) == {"store"}
	some finding in found
	finding.path == "/spec/components/1"
	finding.help == "run `store` where every host has to be granted, or take away the secret"
}

test_any_host_that_is_taken_away_is_no_place_of_a_finding if {
	found := data.ambit.baseline.deny with input as changed({
		"/workload/components/0/closure": closure({"folder": true}),
		"/workload/components/0/grants/hosts": [object.union(host, {"any_host": true, "deny": true})],
	})
	codes(found) == {"net-any-host-closure"}
	some finding in found
	finding.path == ""
	finding.help == "list the hosts that may be called, or take away the folder"
}

test_any_host_outside_of_the_closure_is_no_place_of_its_finding if {
	found := data.ambit.baseline.deny with input as changed({
		"/workload/components/1/closure": closure({"members": ["store"], "folder": true}),
		"/workload/components/0/grants/hosts/0/any_host": true,
	})
	codes(found) == {"net-any-host-closure", "net-wildcard"}
	subjects(found) == {"mail", "store"}
}

test_any_host_alone_with_folder_and_secret_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/closure": closure({"members": ["mail"], "folder": true, "secret": true})})
	codes(found) == {"net-any-host-closure"}
	some finding in found
	finding.subject == "mail"
	contains(finding.msg, "`mail` can reach any host and read a folder and a secret")
}

test_any_host_without_private_data_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/closure": closure({})})
	found == set()
}

test_folder_and_secret_without_any_host_are_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/closure": closure({"any_host": false, "folder": true, "secret": true})})
	found == set()
}

test_open_wildcards_are_denied if {
	every key in ["any_host", "public_suffix", "shared_suffix"] {
		found := data.ambit.baseline.deny with input as granting({key: true})
		codes(found) == {"net-wildcard"}
	}
}

test_wildcard_over_an_own_domain_is_allowed if {
	found := data.ambit.baseline.deny with input as granting({"kind": "suffix", "host": "*.example.com"})
	found == set()
}

test_wildcard_that_is_taken_away_is_allowed if {
	found := data.ambit.baseline.deny with input as granting({"any_host": true, "deny": true})
	found == set()
}

test_private_address_is_denied if {
	found := data.ambit.baseline.deny with input as granting({"private": true, "address_classes": ["private"]})
	codes(found) == {"net-private"}
}

test_private_address_that_is_taken_away_is_allowed if {
	found := data.ambit.baseline.deny with input as granting({"private": true, "deny": true})
	found == set()
}

test_network_is_allowed_to_offline_workloads_unless_configured if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels/network": "none"})
	found == set()
}

test_offline_workload_with_a_network_import_is_denied if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels/network": "none"})
		with data.params.baseline.offline_labels as ["network=none"]
	codes(found) == {"net-none"}
	subjects(found) == {"mail"}
}

test_offline_workload_without_a_grant_is_denied_too if {
	found := data.ambit.baseline.deny with input as changed({
		"/workload/labels/network": "none",
		"/workload/components/0/grants/hosts": [],
	})
		with data.params.baseline.offline_labels as ["network=none"]
	codes(found) == {"net-none"}
}

test_offline_workload_with_a_database_is_denied if {
	found := data.ambit.baseline.deny with input as changed({
		"/workload/labels/network": "none",
		"/workload/components/0/capabilities": capabilities(["db.read"], [], []),
	})
		with data.params.baseline.offline_labels as ["network=none"]
	codes(found) == {"net-none"}
}

test_offline_workload_without_network_imports_is_allowed if {
	found := data.ambit.baseline.deny with input as changed({
		"/workload/labels/network": "none",
		"/workload/components/0/capabilities": capabilities(["tool.call"], [], []),
	})
		with data.params.baseline.offline_labels as ["network=none"]
	found == set()
}

test_label_with_another_value_is_not_offline if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels/network": "open"})
		with data.params.baseline.offline_labels as ["network=none"]
	found == set()
}

test_workload_without_labels_is_not_offline if {
	found := data.ambit.baseline.deny with input as changed({"/workload/labels": {}})
		with data.params.baseline.offline_labels as ["network=none"]
	codes(found) == {"meta-owner"}
}

test_any_host_grant_is_on_no_list_unless_configured if {
	found := data.ambit.baseline.deny with input as granting({"host": "other.example"})
	found == set()
}

test_hosts_on_the_list_are_allowed if {
	every entry in ["api.example.com", "*.example.com", "https://api.example.com:443"] {
		found := data.ambit.baseline.deny with input as clean
			with data.params.baseline.hosts as [entry]
		found == set()
	}
}

test_hosts_off_the_list_are_denied if {
	every entry in ["example.com", "*.api.example.com", "http://api.example.com:80", "api.example.com.evil", "*"] {
		found := data.ambit.baseline.deny with input as clean
			with data.params.baseline.hosts as [entry]
		codes(found) == {"net-host-allowlist"}
	}
}

test_name_that_only_ends_alike_is_off_the_list if {
	found := data.ambit.baseline.deny with input as granting({"host": "evilexample.com", "canonical": "https://evilexample.com:443"})
		with data.params.baseline.hosts as ["*.example.com"]
	codes(found) == {"net-host-allowlist"}
}

test_wildcard_with_apex_is_off_a_list_without_it if {
	found := data.ambit.baseline.deny with input as granting({"kind": "suffix-and-apex", "host": "**.example.com", "canonical": "https://**.example.com:443"})
		with data.params.baseline.hosts as ["*.example.com"]
	codes(found) == {"net-host-allowlist"}
}

test_host_that_is_taken_away_needs_no_list if {
	found := data.ambit.baseline.deny with input as granting({"deny": true})
		with data.params.baseline.hosts as ["other.example"]
	found == set()
}

test_reach_that_no_line_lists_is_off_the_list if {
	entry := object.union(clean.workload.components[0].reach[0], {"verb": "open sockets", "via": "target-default", "subject": "any address"})
	found := data.ambit.baseline.deny with input as mail_with({"/reach": [entry]})
		with data.params.baseline.hosts as ["api.example.com"]
	codes(found) == {"net-host-allowlist"}
	some finding in found
	finding.msg == "`mail` may reach `any address`, which is not on the list"
}
