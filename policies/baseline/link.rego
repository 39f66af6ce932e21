package ambit.baseline

# METADATA
# title: Imports are served by the same trust group
# description: Who serves an import sees what is passed and answers what it likes. Component and server need signatures of one common group.
# custom:
#   id: link/untrusted-provider
#   severity: high
#   evidence: true
#   parameter: trust_groups
deny contains finding if {
	count(data.params.baseline.trust_groups) > 0
	some component in input.workload.components
	component.evidence_state == "checked"
	some link in component.links
	some provider in input.workload.components
	provider.name == link.provider
	provider.evidence_state == "checked"
	common := groups_of(component, data.params.baseline.trust_groups) & groups_of(provider, data.params.baseline.trust_groups)
	count(common) == 0
	finding := {
		"code": "link-untrusted-provider",
		"msg": sprintf("`%s` of `%s` is served by `%s`, which no common trust group signed", [link.interface, component.name, provider.name]),
		"subject": component.name,
		"path": component.path,
		"help": sprintf("have `%s` and `%s` signed by one group, or add the signer to a group of the parameter `trust_groups`", [component.name, provider.name]),
	}
}

groups_of(component, groups) := {group.name |
	some group in groups
	signed_by_any(component, group.identities)
}
