package ambit.baseline

# METADATA
# title: No metadata service is granted
# description: A cloud's metadata service hands out the machine's own credentials to whoever asks.
# custom:
#   id: net/metadata
#   severity: critical
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some grant in component.grants.hosts
	gives(grant)
	grant.metadata
	finding := {
		"code": "net-metadata",
		"msg": sprintf("`%s` names a cloud metadata service", [grant.raw]),
		"subject": component.name,
		"path": grant.path,
		"help": sprintf("delete `%s` from the hosts of `%s`; give credentials as a Secret where they are needed", [grant.raw, component.name]),
	}
}

# METADATA
# title: No special address is granted
# description: Loopback, link-local, multicast and reserved addresses are refused at run time whatever is granted, so an entry that names one is a mistake or an attempt.
# custom:
#   id: net/special
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some grant in component.grants.hosts
	gives(grant)
	grant.special
	not grant.metadata
	finding := {
		"code": "net-special",
		"msg": sprintf("`%s` names an address that is never reached: %s", [grant.raw, concat(", ", grant.address_classes)]),
		"subject": component.name,
		"path": grant.path,
		"help": sprintf("delete `%s` from the hosts of `%s`, or name the host that was meant", [grant.raw, component.name]),
	}
}

# METADATA
# title: Any host and private data don't meet
# description: Components that are linked act as one. Where one may reach any host and one reads a folder or a secret, what is read can leave.
# custom:
#   id: net/any-host-closure
#   severity: critical
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	component.closure.any_host
	private := private_words(component.closure)
	finding := object.union(
		{
			"code": "net-any-host-closure",
			"msg": sprintf("%s can reach any host and read %s", [member_words(component.closure.members), private]),
		},
		any_host_place(component.closure.members, input.workload.components, private),
	)
}

# METADATA
# title: Host grants have no open wildcard
# description: Any host, a public suffix, and a suffix where everybody can get a name all include hosts of an attacker.
# custom:
#   id: net/wildcard
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some grant in component.grants.hosts
	gives(grant)
	some words in wildcard_words(grant)
	finding := {
		"code": "net-wildcard",
		"msg": sprintf("`%s` allows %s", [grant.raw, words]),
		"subject": component.name,
		"path": grant.path,
		"help": sprintf("write the hosts that `%s` calls in place of `%s`, each on a line of its own", [component.name, grant.raw]),
	}
}

# METADATA
# title: No private address is granted
# description: What listens on a private network often trusts whoever gets there.
# custom:
#   id: net/private
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some grant in component.grants.hosts
	gives(grant)
	grant.private
	finding := {
		"code": "net-private",
		"msg": sprintf("`%s` names a private address", [grant.raw]),
		"subject": component.name,
		"path": grant.path,
		"help": sprintf("delete `%s`, or set `baseline/net/private` to `off` for this namespace if the component is meant to call into the private network", [grant.raw]),
	}
}

# METADATA
# title: Offline workloads reach no network
# description: A workload that says it is offline asks for no network, whatever is granted. Databases and message brokers that a host service connects to count as network.
# custom:
#   id: net/none
#   severity: critical
#   evidence: false
#   parameter: offline_labels
deny contains finding if {
	some label in data.params.baseline.offline_labels
	some key, value in input.workload.labels
	label == sprintf("%s=%s", [key, value])
	some component in input.workload.components
	found := network_asks(component)
	count(found) > 0
	finding := {
		"code": "net-none",
		"msg": sprintf("`%s` is offline by label `%s` and asks for %s", [component.name, label, quoted(found)]),
		"subject": component.name,
		"path": component.path,
		"help": sprintf("build `%s` without these imports, or delete the label `%s`", [component.name, key]),
	}
}

# METADATA
# title: Host grants are on the list
# description: Every host that is granted is on the operator's list, and nothing reaches hosts that no line lists.
# custom:
#   id: net/host-allowlist
#   severity: high
#   evidence: false
#   parameter: hosts
deny contains finding if {
	count(data.params.baseline.hosts) > 0
	some component in input.workload.components
	some target in unlisted(component, data.params.baseline.hosts)
	finding := {
		"code": "net-host-allowlist",
		"msg": sprintf("`%s` may reach `%s`, which is not on the list", [component.name, target.host]),
		"subject": component.name,
		"path": target.path,
		"help": target.help,
	}
}

private_words(closure) := "a folder and a secret" if {
	closure.folder
	closure.secret
}

private_words(closure) := "a folder" if {
	closure.folder
	not closure.secret
}

private_words(closure) := "a secret" if {
	closure.secret
	not closure.folder
}

member_words(members) := sprintf("`%s`", [members[0]]) if count(members) == 1

member_words(members) := sprintf("the linked components %s together", [quoted(members)]) if count(members) > 1

# One place for the whole closure: the first member that may reach any host itself, at the entry
# that says so.
any_host_place(members, components, private) := place if {
	found := any_host_places(members, components)
	count(found) > 0
	first := min(found)
	place := {
		"subject": first[0],
		"path": first[1],
		"help": sprintf("%s, or take away %s", [first[2], replace(private, "a ", "the ")]),
	}
}

any_host_place(members, components, private) := place if {
	count(any_host_places(members, components)) == 0
	place := {
		"subject": members[0],
		"path": "",
		"help": sprintf("list the hosts that may be called, or take away %s", [replace(private, "a ", "the ")]),
	}
}

any_host_places(members, components) := {[component.name, end.path, end.help] |
	some component in components
	component.name in members
	some end in open_ends(component)
}

open_ends(component) := {end |
	some grant in component.grants.hosts
	grant.any_host
	gives(grant)
	end := {
		"path": grant.path,
		"help": sprintf("list the hosts that `%s` calls in place of `%s`", [component.name, grant.raw]),
	}
} | {end |
	some entry in component.reach
	entry.verb in {"reach hosts", "open sockets"}
	entry.via == "target-default"
	end := {
		"path": component.path,
		"help": sprintf("run `%s` where every host has to be granted", [component.name]),
	}
}

wildcard_words(grant) := {"every host" | grant.any_host} |
	{"every name under a public suffix" | grant.public_suffix} |
	{"names that anybody can get" | grant.shared_suffix}

network_asks(component) := {name |
	some name in component.capabilities.network_imports
} | {class |
	some class in component.capabilities.declared
	some prefix in ["db.", "msg."]
	startswith(class, prefix)
}

unlisted(component, allowed) := {target |
	some grant in component.grants.hosts
	gives(grant)
	not listed_host(grant, allowed)
	target := {
		"host": grant.raw,
		"path": grant.path,
		"help": sprintf("delete `%s` from the hosts of `%s`, or add it to the parameter `hosts`", [grant.raw, component.name]),
	}
} | {target |
	some entry in component.reach
	entry.verb in {"reach hosts", "open sockets"}
	entry.via == "target-default"
	target := {
		"host": entry.subject,
		"path": component.path,
		"help": sprintf("run `%s` where every host has to be granted, or build it without the import", [component.name]),
	}
}

listed_host(grant, allowed) if grant.canonical in allowed

listed_host(grant, allowed) if grant.host in allowed

listed_host(grant, allowed) if {
	grant.kind in {"name", "suffix"}
	some pattern in allowed
	startswith(pattern, "*.")
	endswith(grant.host, trim_prefix(pattern, "*"))
}
