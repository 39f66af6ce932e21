package ambit.agents_test

network := ["wasi:http/outgoing-handler@0.2.12"]

files := ["wasi:filesystem/preopens@0.2.12"]

test_clean_workload_has_no_finding if {
	found := data.ambit.agents.deny with input as clean
	found == set()
}

test_workload_without_components_has_no_finding if {
	found := data.ambit.agents.deny with input as changed({"/workload/components": []})
	found == set()
}

test_agent_with_network_is_denied if {
	found := data.ambit.agents.deny with input as mail_with({"/classes": ["agent"]})
	codes(found) == {"no-network"}
	some finding in found
	finding.msg == "the agent `mail` imports the network: `wasi:http/outgoing-handler@0.2.12`"
}

test_tool_with_network_is_allowed if {
	found := data.ambit.agents.deny with input as mail_with({"/classes": ["tool"]})
	found == set()
}

test_agent_with_tools_only_is_allowed if {
	found := data.ambit.agents.deny with input as mail_with({
		"/classes": ["agent"],
		"/capabilities": capabilities(["tool.call"], [], []),
	})
	found == set()
}

test_agent_with_files_is_denied if {
	found := data.ambit.agents.deny with input as store_with({"/classes": ["agent"]})
	codes(found) == {"no-files"}
	subjects(found) == {"store"}
}

test_agent_that_is_a_tool_too_is_denied if {
	found := data.ambit.agents.deny with input as mail_with({
		"/classes": ["agent", "tool"],
		"/capabilities": capabilities(["http.out", "fs.root"], network, files),
	})
	codes(found) == {"no-network", "no-files"}
}

test_tool_with_files_is_allowed if {
	found := data.ambit.agents.deny with input as store_with({"/classes": ["tool"]})
	found == set()
}

tool_with(folders, hosts) := store_with({
	"/classes": ["tool"],
	"/grants/folders": [object.union(folder, {"host": path}) | some path in folders],
	"/grants/hosts": [object.union(host, {"host": name}) | some name in hosts],
})

test_tool_with_two_folders_is_denied if {
	found := data.ambit.agents.deny with input as tool_with(["/srv/a", "/srv/b"], [])
	codes(found) == {"tool-scope"}
	some finding in found
	finding.msg == "the tool `store` holds 2 folders"
}

test_tool_with_one_folder_twice_is_allowed if {
	found := data.ambit.agents.deny with input as tool_with(["/srv/a", "/srv/a"], [])
	found == set()
}

test_tool_with_scratch_space_is_allowed if {
	scratch := without({"folder": object.union(folder, {"has_host": false, "source": "ephemeral"})}, ["/folder/host"]).folder
	found := data.ambit.agents.deny with input as store_with({"/classes": ["tool"], "/grants/folders": [folder, scratch]})
	found == set()
}

test_tool_with_folder_and_host_is_denied if {
	found := data.ambit.agents.deny with input as tool_with(["/srv/a"], ["a.example"])
	codes(found) == {"tool-scope"}
	some finding in found
	finding.msg == "the tool `store` holds both folders and hosts"
}

test_tool_with_many_hosts_is_denied if {
	found := data.ambit.agents.deny with input as tool_with([], ["1.example", "2.example", "3.example"])
		with data.params.agents.max_hosts as 2
	codes(found) == {"tool-scope"}
	some finding in found
	finding.help == "split `store` into tools with one folder or at most 2 hosts each"
}

test_tool_with_a_short_host_list_is_allowed if {
	found := data.ambit.agents.deny with input as tool_with([], ["1.example", "2.example"])
		with data.params.agents.max_hosts as 2
	found == set()
}

test_host_that_is_taken_away_does_not_count if {
	away := object.union(host, {"host": "3.example", "deny": true, "unbounded": true})
	found := data.ambit.agents.deny with input as mail_with({"/classes": ["tool"], "/grants/hosts": [host, away]})
		with data.params.agents.max_hosts as 1
	found == set()
}

test_tool_with_an_open_host_is_denied if {
	found := data.ambit.agents.deny with input as mail_with({
		"/classes": ["tool"],
		"/grants/hosts": [object.union(host, {"unbounded": true, "any_host": true})],
	})
	codes(found) == {"tool-scope"}
}

test_service_with_everything_is_no_tool if {
	found := data.ambit.agents.deny with input as mail_with({
		"/classes": ["service"],
		"/grants/folders": [folder, object.union(folder, {"host": "/srv/b"})],
	})
	found == set()
}

way(values) := changed({"/workload/paths": [object.union(
	{
		"source": "store",
		"reads": "/srv/letters",
		"hops": ["store", "mail"],
		"sink": "mail",
		"sends": ["api.example.com"],
		"unbounded": false,
		"host_count": 1,
		"along": "links",
		"path": "/spec/components/0",
	},
	values,
)]})

test_way_to_any_host_is_denied if {
	found := data.ambit.agents.deny with input as way({"unbounded": true, "host_count": 0, "sends": ["*"]})
	codes(found) == {"exfiltration"}
	some finding in found
	finding.subject == "mail"
	finding.msg == "what `store` reads (/srv/letters) can leave through `mail` to hosts that can't be listed"
}

test_way_to_more_hosts_than_allowed_is_denied if {
	found := data.ambit.agents.deny with input as way({"host_count": 9})
	codes(found) == {"exfiltration"}
}

test_way_to_few_hosts_is_shown if {
	found := data.ambit.agents.deny with input as way({"host_count": 8})
	codes(found) == {"exfiltration-path"}
	some finding in found
	contains(finding.msg, "`api.example.com`")
}

test_fewer_hosts_can_be_allowed if {
	found := data.ambit.agents.deny with input as way({"host_count": 2})
		with data.params.agents.max_hosts as 1
	codes(found) == {"exfiltration"}
}

test_workload_without_a_way_out_is_allowed if {
	found := data.ambit.agents.deny with input as changed({"/workload/paths": []})
	found == set()
}
