package ambit.baseline

# Whether a verified signature is by the given identity. An identity without the field that would be
# compared matches nothing.
signed_by(signature, identity) if {
	signature.verified
	issuer := object.get(identity, "issuer", "")
	subject := object.get(identity, "subject", "")
	"" != issuer
	"" != subject
	object.get(signature, "issuer", "") == issuer
	object.get(signature, "identity", "") == subject
}

signed_by(signature, identity) if {
	signature.verified
	key := object.get(identity, "key", "")
	key != ""
	object.get(signature, "key_id", "") == key
}

signed_by_any(component, identities) if {
	some signature in component.signatures
	some identity in identities
	signed_by(signature, identity)
}

# The certificate's identity, or the key's fingerprint, of each verified signature.
signer_names(component) := {name |
	some signature in component.signatures
	signature.verified
	name := object.get(signature, "identity", object.get(signature, "key_id", ""))
	name != ""
}

about_this(component) := [attestation |
	some attestation in component.attestations
	attestation.verified
	attestation.subject_matches
]
