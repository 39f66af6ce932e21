package ambit.baseline

# METADATA
# title: Grants can be read in one way
# description: What two readers can take in two ways is decided by the one who is wrong. Ambiguous volumes are such a case.
# custom:
#   id: grant/invalid
#   severity: high
#   evidence: false
deny contains finding if {
	some problem in input.workload.problems
	problem.level == "invalid"
	finding := {
		"code": "grant-invalid",
		"msg": problem.message,
		"subject": owner_of(problem, input.workload.name),
		"path": problem.path,
		"help": problem.help,
		"severity": problem.severity,
	}
}

# METADATA
# title: Every grant has a use
# description: A grant that nothing can use is a door for the next version of the component.
# custom:
#   id: grant/dead
#   severity: low
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some note in component.dead_grants
	finding := {
		"code": "grant-dead",
		"msg": sprintf("`%s` is granted `%s` and can't use it: %s", [component.name, note.subject, note.reason]),
		"subject": component.name,
		"path": note.path,
		"help": sprintf("delete `%s` from the %s of `%s`", [note.subject, note.kind, component.name]),
	}
}

# METADATA
# title: Every import that needs a grant has one
# description: An import without a grant is refused at run time, often long after the start. A bare component has no grants at all and isn't asked.
# custom:
#   id: grant/missing
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	component.role != "bare"
	some note in component.missing_grants
	finding := {
		"code": "grant-missing",
		"msg": sprintf("`%s` imports `%s`: %s", [component.name, note.subject, note.reason]),
		"subject": component.name,
		"path": note.path,
		"help": sprintf("grant what it needs under the %s of `%s`, or build it without the import", [note.kind, component.name]),
	}
}

# METADATA
# title: Reach is exact
# description: Where the analysis gave up, the decision rests on more than the component can really do.
# custom:
#   id: grant/over-approx
#   severity: low
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	component.capabilities.precision == "over-approximate"
	finding := {
		"code": "grant-over-approx",
		"msg": sprintf("what `%s` can call is known from above only", [component.name]),
		"subject": component.name,
		"path": component.path,
		"help": sprintf("`ambit inspect` says where the analysis of `%s` gave up", [component.name]),
	}
}

owner_of(problem, workload_name) := problem.component if problem.component != ""

owner_of(problem, workload_name) := workload_name if problem.component == ""
