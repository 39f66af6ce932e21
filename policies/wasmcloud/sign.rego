package ambit.wasmcloud

# METADATA
# title: No annotation lifts the need for a signature
# description: Who writes the manifest would decide whether it is checked; that is the operator's to say.
# custom:
#   id: unsigned-annotation
#   severity: high
#   evidence: false
deny contains finding if {
	object.get(input.workload.annotations, "desktop.cosmonic.com/unsafe-allow-unsigned", "") == "true"
	finding := {
		"code": "unsigned-annotation",
		"msg": "the annotation `desktop.cosmonic.com/unsafe-allow-unsigned` asks to run unsigned components",
		"subject": input.workload.name,
		"path": "/metadata/annotations/desktop.cosmonic.com~1unsafe-allow-unsigned",
		"help": "delete the annotation and have the components signed",
	}
}
