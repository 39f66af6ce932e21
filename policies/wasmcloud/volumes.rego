package ambit.wasmcloud

# METADATA
# title: Folders stay with the component that mounts them
# description: wasmCloud shows a mount to every component that is linked to its owner, in both directions, which no line of the manifest says.
# custom:
#   id: mounts-along-links
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some folder in component.grants.folders
	folder.inherited
	finding := {
		"code": "mounts-along-links",
		"msg": sprintf("`%s` sees `%s`, which `%s` mounts, since they are linked", [component.name, folder.guest, folder.owner]),
		"subject": component.name,
		"path": folder.path,
		"help": sprintf("put `%s` and `%s` into workloads of their own, or mount only what both may see", [folder.owner, component.name]),
	}
}
