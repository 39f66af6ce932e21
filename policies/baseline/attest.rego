package ambit.baseline

# METADATA
# title: Components have a provenance
# description: A verified SLSA provenance for this digest says where and from what the bytes were built.
# custom:
#   id: attest/provenance
#   severity: high
#   evidence: true
deny contains finding if {
	some component in input.workload.components
	component.evidence_state == "checked"
	not component.has_provenance
	finding := {
		"code": "attest-provenance",
		"msg": sprintf("`%s` has no verified provenance for its digest", [component.image.raw]),
		"subject": component.name,
		"path": component.image.path,
		"help": "attach a SLSA provenance where it is built, signed by an identity of the trust policy",
	}
}

# METADATA
# title: Components have a bill of materials
# description: Without a verified one, nobody can tell whether a known vulnerability is inside.
# custom:
#   id: attest/sbom
#   severity: medium
#   evidence: true
deny contains finding if {
	some component in input.workload.components
	component.evidence_state == "checked"
	not component.has_sbom
	finding := {
		"code": "attest-sbom",
		"msg": sprintf("`%s` has no verified bill of materials for its digest", [component.image.raw]),
		"subject": component.name,
		"path": component.image.path,
		"help": "attach a CycloneDX or SPDX attestation with cosign",
	}
}

# METADATA
# title: Components come from a listed builder
# description: The builder is what a provenance rests on; one that anybody can run proves nothing.
# custom:
#   id: attest/builder
#   severity: high
#   evidence: true
#   parameter: builders
deny contains finding if {
	count(data.params.baseline.builders) > 0
	some component in input.workload.components
	component.evidence_state == "checked"
	builders := builder_ids(component)
	every builder in builders {
		not builder in data.params.baseline.builders
	}
	finding := {
		"code": "attest-builder",
		"msg": sprintf("`%s` was built by %s, which is no listed builder", [component.image.raw, builder_words(builders)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "build it where a listed builder signs the provenance, or add the builder's id to the parameter `builders`",
	}
}

# METADATA
# title: Attestations are recent
# description: An old statement says nothing about what was found since. The youngest verified attestation for the digest counts.
# custom:
#   id: attest/age
#   severity: medium
#   evidence: true
#   parameter: max_age_days
deny contains finding if {
	data.params.baseline.max_age_days > 0
	some component in input.workload.components
	component.evidence_state == "checked"
	ages := attestation_ages(component)
	every age in ages {
		age > data.params.baseline.max_age_days * 86400
	}
	finding := {
		"code": "attest-age",
		"msg": sprintf("`%s` has no verified attestation from the last %d days%s", [component.image.raw, data.params.baseline.max_age_days, age_words(ages)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "scan or build it again, and attest the result",
	}
}

builder_ids(component) := {builder |
	some attestation in about_this(component)
	builder := object.get(attestation, "builder_id", "")
	builder != ""
}

builder_words(builders) := quoted(builders) if count(builders) > 0

builder_words(builders) := "nobody that a verified provenance names" if count(builders) == 0

attestation_ages(component) := {age |
	some attestation in about_this(component)
	attestation.has_age
	age := attestation.age_seconds
}

age_words(ages) := sprintf("; the youngest is %d days old", [floor(min(ages) / 86400)]) if count(ages) > 0

age_words(ages) := "" if count(ages) == 0
