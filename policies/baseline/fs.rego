package ambit.baseline

# METADATA
# title: No sensitive folder of the machine is mounted
# description: The root, credentials, sockets and kernel interfaces are control of the machine, also for reading, and so is a folder that holds one of them.
# custom:
#   id: fs/host-root
#   severity: critical
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some folder in component.grants.folders
	not folder.inherited
	sensitive_to_read(folder)
	finding := {
		"code": "fs-host-root",
		"msg": sprintf("`%s` may read `%s`: %s", [component.name, folder_name(folder), folder.sensitive_reason]),
		"subject": component.name,
		"path": folder.path,
		"help": sprintf("mount the one folder that `%s` needs at `%s`, outside of system and credential folders", [component.name, folder.guest]),
	}
}

# METADATA
# title: No sensitive folder of the machine is writable
# description: Who can change system files, credentials or sockets can take over the machine.
# custom:
#   id: fs/sensitive-write
#   severity: critical
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some folder in component.grants.folders
	not folder.inherited
	folder.writable
	folder.sensitive_write
	finding := {
		"code": "fs-sensitive-write",
		"msg": sprintf("`%s` may change `%s`: %s", [component.name, folder_name(folder), folder.sensitive_reason]),
		"subject": component.name,
		"path": folder.path,
		"help": sprintf("set `readOnly: true` on the mount at `%s`, or mount another folder there", [folder.guest]),
	}
}

# METADATA
# title: Components write in their own place only
# description: A writable folder of the machine outlives the workload and may be read by others; the parameter `writable_roots` names where that is meant.
# custom:
#   id: fs/writable-scope
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some folder in component.grants.folders
	not folder.inherited
	folder.has_host
	folder.writable
	not within_any(folder.host, data.params.baseline.writable_roots)
	finding := {
		"code": "fs-writable-scope",
		"msg": sprintf("`%s` may change `%s`, which lies in no writable root", [component.name, folder.host]),
		"subject": component.name,
		"path": folder.path,
		"help": sprintf("set `readOnly: true` on the mount at `%s`, or add `%s` to the parameter `writable_roots`", [folder.guest, folder.host]),
	}
}

sensitive_to_read(folder) if folder.holds_sensitive

sensitive_to_read(folder) if folder.sensitive_read

folder_name(folder) := object.get(folder, "host", folder.guest)
