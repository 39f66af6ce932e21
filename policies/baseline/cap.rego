package ambit.baseline

# METADATA
# title: Components bring all their code
# description: Code that is imported runs with the component's reach, and no digest here covers it.
# custom:
#   id: cap/code-import
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some entry in component.interfaces.imports
	imports_code(entry)
	finding := {
		"code": "cap-code-import",
		"msg": sprintf("`%s` imports code: `%s`, a %s", [component.name, entry.name, entry.sort]),
		"subject": component.name,
		"path": component.path,
		"help": sprintf("compose `%s` into the component when it is built", [entry.name]),
	}
}

# METADATA
# title: Imports are known
# description: Nobody can say what an interface outside of the catalogue does. One that a sibling serves does what the sibling can.
# custom:
#   id: cap/unknown-interface
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some entry in component.interfaces.imports
	not entry.known
	not startswith(entry.served_by, "component:")
	finding := {
		"code": "cap-unknown-interface",
		"msg": sprintf("`%s` imports `%s`, which the catalogue doesn't know%s", [component.name, entry.name, near_words(entry)]),
		"subject": component.name,
		"path": component.path,
		"help": near_help(entry),
	}
}

# METADATA
# title: The signers are those of before
# description: Other signers for the same component can be a new team or a stolen name.
# custom:
#   id: cap/signer-change
#   severity: high
#   evidence: true
#   previous: true
deny contains finding if {
	input.has_previous
	some component in input.workload.components
	component.evidence_state == "checked"
	before := {name | some name in object.get(input, ["previous", "components", component.name, "signers"], [])}
	count(before) > 0
	signer_names(component) != before
	finding := {
		"code": "cap-signer-change",
		"msg": sprintf("`%s` was signed by %s and is signed by %s now", [component.name, quoted(before), signer_words(component)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "ask the publisher whether the change is meant, then record the new state",
	}
}

# METADATA
# title: No forbidden capability is asked for
# description: Classes that the operator forbids, whatever is granted. Those of no risk don't count, nor do those of files without a function that opens one.
# custom:
#   id: cap/forbidden
#   severity: high
#   evidence: false
#   parameter: forbidden
deny contains finding if {
	some pattern in data.params.baseline.forbidden
	some component in input.workload.components
	some class in component.capabilities.counted
	named_class(class, pattern)
	finding := {
		"code": "cap-forbidden",
		"msg": sprintf("`%s` asks for `%s`, which is forbidden%s", [component.name, class, bearer_words(component, class)]),
		"subject": component.name,
		"path": component.path,
		"help": sprintf("build it without that import, or delete `%s` from the parameter `forbidden`", [pattern]),
	}
}

# METADATA
# title: Components gain nothing unseen
# description: What a component can do or reach now and couldn't at the last decision needs somebody's approval. A component that was never seen gains nothing.
# custom:
#   id: cap/growth
#   severity: high
#   evidence: false
#   parameter: growth
deny contains finding if {
	data.params.baseline.growth == true
	input.has_previous
	some component in input.workload.components
	before := object.get(input, ["previous", "components", component.name], {})
	some gain in gains(component, before)
	finding := {
		"code": "cap-growth",
		"msg": sprintf("`%s` gains %s", [component.name, gain.words]),
		"subject": component.name,
		"path": gain.path,
		"help": "take it back, or approve it by recording the new state",
	}
}

imports_code(entry) if entry.sort in {"module", "component"}

imports_code(entry) if "code.import" in entry.classes

near_words(entry) := sprintf("; its name is nearly `%s`", [entry.near_miss]) if entry.has_near_miss

near_words(entry) := "" if not entry.has_near_miss

near_help(entry) := sprintf("import `%s` if that is meant; a name so near can be a trap", [entry.near_miss]) if entry.has_near_miss

near_help(entry) := sprintf("describe `%s` in a catalogue file, or add a component that exports it", [entry.interface]) if not entry.has_near_miss

bearer_words(component, class) := sprintf(": %s", [quoted(bearers)]) if {
	bearers := bearing_imports(component, class)
	count(bearers) > 0
}

bearer_words(component, class) := "" if count(bearing_imports(component, class)) == 0

bearing_imports(component, class) := {entry.name |
	some entry in component.interfaces.imports
	class in entry.classes
}

gains(component, before) := {gain |
	had := object.get(before, "capabilities", component.capabilities.declared)
	some class in component.capabilities.declared
	not class in had
	gain := {"words": sprintf("the capability `%s`", [class]), "path": component.path}
} | {gain |
	some entry in component.reach
	words := sprintf("%s %s", [entry.verb, entry.subject])
	not words in object.get(before, "reach", [words])
	gain := {"words": sprintf("reach: %s", [words]), "path": entry.path}
}
