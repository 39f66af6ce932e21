package ambit.agents

# METADATA
# title: Agents import no network
# description: An agent does what text tells it. What it may call, it calls through tools, each with a reach of its own.
# custom:
#   id: no-network
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	"agent" in component.classes
	component.capabilities.network
	finding := {
		"code": "no-network",
		"msg": sprintf("the agent `%s` imports the network: %s", [component.name, quoted(component.capabilities.network_imports)]),
		"subject": component.name,
		"path": component.path,
		"help": "move the calls into a tool that is granted the hosts, and build the agent without these imports",
	}
}

# METADATA
# title: Agents import no files
# description: An agent that reads files by itself reads whatever a text asks it to. A tool reads what its folder holds.
# custom:
#   id: no-files
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	"agent" in component.classes
	component.capabilities.filesystem
	finding := {
		"code": "no-files",
		"msg": sprintf("the agent `%s` imports files: %s", [component.name, quoted(component.capabilities.filesystem_imports)]),
		"subject": component.name,
		"path": component.path,
		"help": "move the reading into a tool that is granted the folder, and build the agent without these imports",
	}
}

# METADATA
# title: A tool holds one folder or a short host list
# description: A tool with one purpose needs one folder, or a few hosts, and not both. Folders of the machine count, those along links included; deleted hosts and scratch space don't.
# custom:
#   id: tool-scope
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	"tool" in component.classes
	some words in too_much(component, data.params.agents.max_hosts)
	finding := {
		"code": "tool-scope",
		"msg": sprintf("the tool `%s` holds %s", [component.name, words]),
		"subject": component.name,
		"path": component.path,
		"help": sprintf("split `%s` into tools with one folder or at most %d hosts each", [component.name, data.params.agents.max_hosts]),
	}
}

# METADATA
# title: Private data has no way to anywhere
# description: A way from what one component reads to where another sends is what exfiltration needs. Where it can end at any host, or at more than `max_hosts`, nobody can watch it.
# custom:
#   id: exfiltration
#   severity: critical
#   evidence: false
deny contains finding if {
	some way in input.workload.paths
	open_ended(way, data.params.agents.max_hosts)
	finding := {
		"code": "exfiltration",
		"msg": sprintf("what `%s` reads (%s) can leave through `%s` to %s", [way.source, way.reads, way.sink, end_words(way)]),
		"subject": way.sink,
		"path": way.path,
		"help": sprintf("list at most %d hosts for `%s`, or take away what `%s` reads", [data.params.agents.max_hosts, way.sink, way.source]),
	}
}

# METADATA
# title: Ways out for private data are known
# description: The same with an end that can be listed. It may be meant, and somebody should know.
# custom:
#   id: exfiltration-path
#   severity: medium
#   evidence: false
deny contains finding if {
	some way in input.workload.paths
	not open_ended(way, data.params.agents.max_hosts)
	finding := {
		"code": "exfiltration-path",
		"msg": sprintf("what `%s` reads (%s) can leave through `%s` to %s", [way.source, way.reads, way.sink, quoted(way.sends)]),
		"subject": way.sink,
		"path": way.path,
		"help": sprintf("if it isn't meant, take the hosts away from `%s`, or what `%s` reads", [way.sink, way.source]),
	}
}

quoted(names) := concat(", ", [sprintf("`%s`", [name]) | some name in names])

open_ended(way, most) if way.unbounded

open_ended(way, most) if way.host_count > most

end_words(way) := "hosts that can't be listed" if way.unbounded

end_words(way) := sprintf("%d hosts", [way.host_count]) if not way.unbounded

too_much(component, most) := {"hosts that can't be listed" | some grant in given_hosts(component); grant.unbounded} |
	{sprintf("%d hosts", [found]) |
		found := count(given_hosts(component))
		found > most
	} |
	{sprintf("%d folders", [found]) |
		found := count(machine_folders(component))
		found > 1
	} |
	{"both folders and hosts" |
		count(given_hosts(component)) > 0
		count(machine_folders(component)) > 0
	}

# In brackets, since the loader's check for recursion takes a dotted `deny` in a function for a use
# of the rule.
given_hosts(component) := {grant |
	some grant in component.grants.hosts
	grant["deny"] == false
}

machine_folders(component) := {folder.host |
	some folder in component.grants.folders
	folder.has_host
}
