package ambit.wasmcloud_test

test_clean_workload_has_no_finding if {
	found := data.ambit.wasmcloud.deny with input as clean
	found == set()
}

test_workload_without_components_has_no_finding if {
	found := data.ambit.wasmcloud.deny with input as changed({"/workload/components": []})
	found == set()
}

test_pinned_host_is_denied if {
	found := data.ambit.wasmcloud.deny with input as changed({
		"/workload/placement/has_host_id": true,
		"/workload/placement/host_id": "NDX",
		"/workload/placement/path": "/spec/hostId",
	})
	codes(found) == {"host-id"}
	some finding in found
	finding.subject == "post"
	finding.msg == "`hostId` pins the host `NDX` and bypasses the tenant filter"
	finding.path == "/spec/hostId"
}

test_pinned_host_without_its_name_is_denied if {
	changed_input := without(changed({"/workload/placement/has_host_id": true}), ["/workload/placement/host_id"])
	found := data.ambit.wasmcloud.deny with input as changed_input
	codes(found) == {"host-id"}
}

test_workload_without_placement_keys_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as without(clean, ["/workload/placement/host_id", "/workload/placement/environment"])
	found == set()
}

test_foreign_environment_is_denied if {
	found := data.ambit.wasmcloud.deny with input as changed({
		"/workload/placement/has_environment": true,
		"/workload/placement/environment": "bank",
		"/workload/placement/foreign_environment": true,
	})
	codes(found) == {"foreign-environment"}
	some finding in found
	finding.help == "delete `environment`, or write `environment: shop`"
}

test_foreign_environment_without_its_name_is_denied if {
	changed_input := without(changed({"/workload/placement/foreign_environment": true}), ["/workload/placement/environment"])
	found := data.ambit.wasmcloud.deny with input as changed_input
	codes(found) == {"foreign-environment"}
}

test_own_environment_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as changed({
		"/workload/placement/has_environment": true,
		"/workload/placement/environment": "shop",
	})
	found == set()
}

link_to_store := {"interface": "acme:store/kv@1", "provider": "store"}

third := object.union(plain("sort", 2), {
	"interfaces": {"imports": [], "exports": []},
	"capabilities": capabilities([], [], []),
	"grants": object.union(store.grants, {"folders": []}),
	"reach": [],
	"links": [link_to_store],
})

test_pool_with_several_callers_is_denied if {
	found := data.ambit.wasmcloud.deny with input as changed({
		"/workload/components/1/resources/pool_size": 4,
		"/workload/components/2": third,
	})
	codes(found) == {"pool-state"}
	some finding in found
	finding.msg == "`store` keeps 4 instances warm between calls of `mail`, `sort`"
}

test_pool_with_one_caller_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as changed({
		"/workload/components/1/resources/pool_size": 4,
		"/workload/components/0/links": [link_to_store, object.union(link_to_store, {"interface": "acme:store/list@1"})],
	})
	found == set()
}

test_several_callers_without_a_pool_are_allowed if {
	found := data.ambit.wasmcloud.deny with input as changed({"/workload/components/2": third})
	found == set()
}

test_pool_behind_http_is_denied if {
	served := {"name": "wasi:http/incoming-handler@0.2.12", "interface": "wasi:http/incoming-handler", "track": "0.2"}
	found := data.ambit.wasmcloud.deny with input as store_with({"/resources/pool_size": 1, "/interfaces/exports": [served]})
	codes(found) == {"pool-state"}
}

test_callers_of_another_component_do_not_count if {
	elsewhere := object.union(third, {"links": [{"interface": "acme:mail/send@1", "provider": "mail"}]})
	found := data.ambit.wasmcloud.deny with input as changed({
		"/workload/components/1/resources/pool_size": 4,
		"/workload/components/2": elsewhere,
	})
	found == set()
}
