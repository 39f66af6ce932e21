package ambit.baseline

# METADATA
# title: No secret is written into the document
# description: A literal value is readable by everybody who can read the document, its history and its logs.
# custom:
#   id: env/secret-literal
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some variable in component.grants.env
	variable.source == "literal"
	variable.looks_secret
	finding := {
		"code": "env-secret-literal",
		"msg": sprintf("the value of `%s` looks like a secret and is written into the document", [variable.name]),
		"subject": component.name,
		"path": variable.path,
		"help": sprintf("move `%s` into a Secret, refer to that, and change the value, since it has been seen", [variable.name]),
	}
}
