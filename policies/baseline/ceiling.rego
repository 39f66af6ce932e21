package ambit.baseline

# METADATA
# title: Capabilities are within the ceiling
# description: What a component asks for is at most what the ceilings that match it allow.
# custom:
#   id: ceiling/capabilities
#   severity: high
#   evidence: false
#   configured_by: ceilings
deny contains finding if {
	some component in input.workload.components
	some ceiling in component.ceilings
	some excess in ceiling.excess
	excess.kind == "capability"
	finding := {
		"code": "ceiling-capabilities",
		"msg": sprintf("`%s` asks for `%s`%s; the ceiling at `%s` allows %s", [component.name, excess.value, excess_words(excess), ceiling.origin, excess.allowed]),
		"subject": component.name,
		"path": excess.path,
		"help": sprintf("add `%s` to `capabilities` at `%s`, or build the component without that import", [excess.value, ceiling.origin]),
	}
}

# METADATA
# title: Grants are within the ceiling
# description: What a deployment offers is at most what the ceilings that match the component allow.
# custom:
#   id: ceiling/grants
#   severity: high
#   evidence: false
#   configured_by: ceilings
deny contains finding if {
	some component in input.workload.components
	some ceiling in component.ceilings
	some excess in ceiling.excess
	excess.kind in {"host", "folder", "interface"}
	finding := {
		"code": "ceiling-grants",
		"msg": sprintf("`%s` is granted the %s `%s`%s; the ceiling at `%s` allows %s", [component.name, excess.kind, excess.value, excess_words(excess), ceiling.origin, excess.allowed]),
		"subject": component.name,
		"path": excess.path,
		"help": sprintf("delete the grant, or add it to `%ss` at `%s`", [excess.kind, ceiling.origin]),
	}
}

excess_words(excess) := sprintf(" (%s)", [excess.because]) if excess.because != ""

excess_words(excess) := "" if excess.because == ""
