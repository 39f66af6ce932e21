package ambit.baseline

# METADATA
# title: No signature is wrong
# description: A signature that is there and fails is a sign of tampering, which a missing one isn't.
# custom:
#   id: sign/bad
#   severity: critical
#   evidence: true
deny contains finding if {
	some component in input.workload.components
	component.evidence_state == "checked"
	component.bad_signature
	finding := {
		"code": "sign-bad",
		"msg": sprintf("a signature of `%s` fails verification%s", [component.image.raw, failures(component)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "find out who pushed it; pull the image that its publisher signed, or have it signed again",
	}
}

# METADATA
# title: Components are signed
# description: A signature that the trust policy accepts says who answers for the bytes.
# custom:
#   id: sign/required
#   severity: high
#   evidence: true
deny contains finding if {
	some component in input.workload.components
	component.evidence_state == "checked"
	not component.signed
	finding := {
		"code": "sign-required",
		"msg": sprintf("`%s` has no signature that the trust policy accepts", [component.image.raw]),
		"subject": component.name,
		"path": component.image.path,
		"help": "sign it with cosign, or add its signer to the trust policy",
	}
}

# METADATA
# title: Signatures are in a transparency log
# description: A logged signature can't be made in secret, nor backdated once its certificate has run out.
# custom:
#   id: sign/tlog
#   severity: medium
#   evidence: true
deny contains finding if {
	some component in input.workload.components
	component.evidence_state == "checked"
	component.signed
	not component.in_transparency_log
	finding := {
		"code": "sign-tlog",
		"msg": sprintf("no accepted signature of `%s` is in a transparency log", [component.image.raw]),
		"subject": component.name,
		"path": component.image.path,
		"help": "sign it again with an upload to the transparency log",
	}
}

# METADATA
# title: Components are signed by a listed identity
# description: Issuer and subject are compared exactly, since one subject under two issuers can be two people.
# custom:
#   id: sign/identity
#   severity: high
#   evidence: true
#   parameter: identities
deny contains finding if {
	count(data.params.baseline.identities) > 0
	some component in input.workload.components
	component.evidence_state == "checked"
	not signed_by_any(component, data.params.baseline.identities)
	finding := {
		"code": "sign-identity",
		"msg": sprintf("`%s` is signed by %s, which is no listed identity", [component.image.raw, signer_words(component)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "have it signed by a listed identity, or add its `issuer` and `subject` to the parameter `identities`",
	}
}

failures(component) := sprintf(": %s", [quoted(codes)]) if {
	codes := failure_codes(component)
	count(codes) > 0
}

failures(component) := "" if count(failure_codes(component)) == 0

failure_codes(component) := {code |
	some signature in component.signatures
	some code in signature.errors
}

signer_words(component) := quoted(names) if {
	names := signer_names(component)
	count(names) > 0
}

signer_words(component) := "nobody" if count(signer_names(component)) == 0
