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
		"msg": sprintf("`%s` %s", [component.image.raw, unsigned_words(component)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "sign it with `ambit sign` or cosign, and name its signer in a trust policy; `trust` in `ambit.yaml` or `--trust` names the file",
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

# METADATA
# title: Trust policies are satisfied
# description: A trust policy that covers an image and is enforced says whose signatures and attestations the image must have.
# custom:
#   id: sign/policy
#   severity: high
#   evidence: true
deny contains finding if {
	some component in input.workload.components
	component.evidence_state == "checked"
	some outcome in component.trust
	outcome.mode == "enforce"
	not outcome.satisfied
	finding := trust_finding(component, outcome, "sign-policy")
}

# METADATA
# title: Trust policies that only warn are satisfied
# description: Such a policy is computed like any other, and says what would be denied once it is enforced.
# custom:
#   id: sign/policy-warn
#   severity: medium
#   evidence: true
deny contains finding if {
	some component in input.workload.components
	component.evidence_state == "checked"
	some outcome in component.trust
	outcome.mode != "enforce"
	not outcome.satisfied
	finding := trust_finding(component, outcome, "sign-policy-warn")
}

trust_finding(component, outcome, code) := {
	"code": code,
	"msg": sprintf("`%s` doesn't satisfy the trust policy `%s` (%s): %s", [component.image.raw, outcome.policy, outcome.origin, concat("; ", outcome.reasons)]),
	"subject": component.name,
	"path": component.image.path,
	"help": "have it signed and attested as the policy asks, name an image that is, or change the policy; `ambit verify` lists every candidate",
}

unsigned_words(component) := "has no signature that a trust policy accepts" if count(component.trust) > 0

unsigned_words(component) := "is covered by no trust policy, so no signature of it is accepted" if count(component.trust) == 0

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
