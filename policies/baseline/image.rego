package ambit.baseline

# METADATA
# title: The bytes have the pinned digest
# description: Bytes other than the pinned ones were never reviewed, whatever they do.
# custom:
#   id: image/digest-match
#   severity: critical
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	component.digest_checked
	not component.digest_matches
	finding := {
		"code": "image-digest-match",
		"msg": sprintf("the bytes of `%s` are `%s`, not what `%s` pins", [component.name, object.get(component, "digest", "unknown"), component.image.raw]),
		"subject": component.name,
		"path": component.image.path,
		"help": "pull the image again from a registry that you trust; change the digest only after a review of the new bytes",
	}
}

# METADATA
# title: Components are named by digest
# description: A tag can be moved to other bytes after the review. A local file counts as pinned, since its bytes are what was read.
# custom:
#   id: image/digest-pin
#   severity: high
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	not component.pinned
	finding := {
		"code": "image-digest-pin",
		"msg": sprintf("`%s` is named by %s only", [component.image.raw, reference_words(component.image.kind)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "append `@sha256:…` to the reference, the digest that this tag has now",
	}
}

# METADATA
# title: Images come from listed registries
# description: A reference is compared by registry and whole path segments, in its full form, so that `registry.example/team` doesn't cover `registry.example/teammate`. Local files have no registry.
# custom:
#   id: image/registry
#   severity: high
#   evidence: false
#   parameter: registries
deny contains finding if {
	count(data.params.baseline.registries) > 0
	some component in input.workload.components
	not component.image.kind in {"file", "layout"}
	not within_any(component.image.name, data.params.baseline.registries)
	finding := {
		"code": "image-registry",
		"msg": sprintf("`%s` comes from none of %s", [component.image.raw, quoted(data.params.baseline.registries)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "name a copy of the image in a listed registry, or add its repository to the parameter `registries`",
	}
}

# METADATA
# title: The publisher's list of imports is the binary's
# description: The configuration of a wasm artifact lists what the component imports. Tools show that list; the binary decides. Where they differ, the list was written for other bytes, or to look smaller.
# custom:
#   id: image/claims
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	component.claims.known
	count(component.claims.unnamed_imports) + count(component.claims.absent_imports) > 0
	finding := {
		"code": "image-claims",
		"msg": sprintf("what the publisher of `%s` lists as imports is not what its binary imports: %s", [component.image.raw, claim_words(component.claims)]),
		"subject": component.name,
		"path": component.image.path,
		"help": "push the component again with a tool that reads the binary, such as `ambit push`",
	}
}

claim_words(claims) := concat("; ", [words |
	some pair in [["not listed", claims.unnamed_imports], ["listed and absent", claims.absent_imports]]
	count(pair[1]) > 0
	words := sprintf("%s %s", [pair[0], quoted(pair[1])])
])

reference_words("artifact") := "an artifact"

reference_words(kind) := "tag" if kind != "artifact"
