package ambit.wasmcloud

# METADATA
# title: No workload picks its host
# description: With `hostId` set, the scheduler asks neither for the environment nor for whose host it is, so a tenant can run on another tenant's machine.
# custom:
#   id: host-id
#   severity: high
#   evidence: false
deny contains finding if {
	input.workload.placement.has_host_id
	finding := {
		"code": "host-id",
		"msg": sprintf("`hostId` pins the host `%s` and bypasses the tenant filter", [object.get(input.workload.placement, "host_id", "")]),
		"subject": input.workload.name,
		"path": input.workload.placement.path,
		"help": "delete `hostId`; choose hosts with `hostSelector` or `environment`",
	}
}

# METADATA
# title: Workloads run in their own environment
# description: The environment is a tenant's pool of hosts. Another namespace's is refused only where the operator runs without shared hosts, which isn't the default.
# custom:
#   id: foreign-environment
#   severity: medium
#   evidence: false
deny contains finding if {
	input.workload.placement.foreign_environment
	finding := {
		"code": "foreign-environment",
		"msg": sprintf("`environment` asks for the hosts of `%s`, and the workload is in namespace `%s`", [object.get(input.workload.placement, "environment", ""), input.workload.namespace]),
		"subject": input.workload.name,
		"path": input.workload.placement.path,
		"help": sprintf("delete `environment`, or write `environment: %s`", [input.workload.namespace]),
	}
}

# METADATA
# title: Warm instances serve one caller
# description: An instance of a pool keeps its memory between calls, so that what one caller sent can show up in the answer to another.
# custom:
#   id: pool-state
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	component.resources.pool_size > 0
	some words in caller_words(component, input.workload.components)
	finding := {
		"code": "pool-state",
		"msg": sprintf("`%s` keeps %d instances warm between calls of %s", [component.name, component.resources.pool_size, words]),
		"subject": component.name,
		"path": component.path,
		"help": sprintf("delete `poolSize` of `%s`, or make sure that it keeps nothing between calls", [component.name]),
	}
}

caller_words(component, components) := {words |
	callers := [caller.name |
		some caller in components
		some link in caller.links
		link.provider == component.name
	]
	callers_by_name := {name | some name in callers}
	count(callers_by_name) > 1
	words := concat(", ", [sprintf("`%s`", [name]) | some name in callers_by_name])
} | {"whoever sends it a request" |
	some served in component.interfaces.exports
	served.interface in {"wasi:http/incoming-handler", "wasi:http/handler"}
}
