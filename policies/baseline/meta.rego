package ambit.baseline

# METADATA
# title: Workloads say whose they are
# description: Somebody has to answer a question at night. A bare component has no labels and isn't asked.
# custom:
#   id: meta/owner
#   severity: low
#   evidence: false
deny contains finding if {
	count(data.params.baseline.owner_labels) > 0
	input.workload.kind != "Component"
	every label in data.params.baseline.owner_labels {
		object.get(input.workload.labels, label, "") == ""
	}
	finding := {
		"code": "meta-owner",
		"msg": sprintf("`%s` has none of the labels %s", [workload_words(input.workload), quoted(data.params.baseline.owner_labels)]),
		"subject": input.workload.name,
		"path": "/metadata/labels",
		"help": sprintf("add `%s: …` to `metadata.labels`", [data.params.baseline.owner_labels[0]]),
	}
}

# METADATA
# title: Production runs signed and pinned components only
# description: In the namespaces of the parameter both are needed, whatever the actions of `image/digest-pin` and `sign/required` are.
# custom:
#   id: meta/namespace
#   severity: high
#   evidence: true
#   parameter: production_namespaces
deny contains finding if {
	input.workload.namespace in data.params.baseline.production_namespaces
	some component in input.workload.components
	lacks := production_lacks(component)
	count(lacks) > 0
	finding := {
		"code": "meta-namespace",
		"msg": sprintf("`%s` is %s, and `%s` is a production namespace", [component.image.raw, concat(" and ", lacks), input.workload.namespace]),
		"subject": component.name,
		"path": component.image.path,
		"help": "name it by `@sha256:…` and have it signed, or deploy it to another namespace",
	}
}

# A signature counts only once it was looked for; the pin always does.
production_lacks(component) := {"not pinned" | not component.pinned} |
	{"not signed" |
		component.evidence_state == "checked"
		not component.signed
	}

# A workload whose name the API server is still to generate goes by its kind.
workload_words(workload) := workload.name if workload.name != ""

workload_words(workload) := workload.kind if workload.name == ""
