package ambit.baseline

# METADATA
# title: Ephemeral and init containers are pinned
# description: They run beside the others with the same reach, and an ephemeral one is added after every review.
# custom:
#   id: run/ephemeral
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	component.role in {"ephemeral", "init"}
	not component.pinned
	finding := {
		"code": "run-ephemeral",
		"msg": sprintf("the %s container `%s` runs `%s`, which names no digest", [component.role, component.name, component.image.raw]),
		"subject": component.name,
		"path": component.image.path,
		"help": "append `@sha256:…` to the reference",
	}
}

# METADATA
# title: Memory and CPU are limited
# description: One component without limits can starve the whole machine. Only containers are asked, since no other document has fields for it.
# custom:
#   id: run/limits
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	component.role in {"container", "init"}
	missing := missing_limits(component.resources)
	count(missing) > 0
	finding := {
		"code": "run-limits",
		"msg": sprintf("`%s` has no limit on %s", [component.name, concat(" and ", missing)]),
		"subject": component.name,
		"path": component.path,
		"help": sprintf("set %s", [quoted([sprintf("resources.limits.%s", [name]) | some name in missing])]),
	}
}

missing_limits(resources) := {"memory" | not resources.memory_limited} | {"cpu" | not resources.cpu_limited}
