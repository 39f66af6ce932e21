package ambit.agents_test

# A workload to which no rule objects, with every key of Input v1; tests change it at single places.
clean := {
	"schema": "v1",
	"mode": "ci",
	"now": "2026-11-30T12:00:00Z",
	"target": "ambit",
	"request": {"operation": "CI", "dry_run": false, "uid": "7e0c", "user": "dana", "groups": ["builders"], "sub_resource": ""},
	"source": {"file": "workload.yaml", "line": 1},
	"workload": {
		"api_version": "runtime.wasmcloud.dev/v1alpha1",
		"kind": "Workload",
		"name": "post",
		"namespace": "shop",
		"labels": {"owner": "mail-team"},
		"annotations": {},
		"namespace_labels": {},
		"placement": {
			"has_host_id": false,
			"host_id": "",
			"has_environment": false,
			"environment": "",
			"foreign_environment": false,
			"path": "/spec",
		},
		"components": [mail, store],
		"volumes": [{"name": "letters", "kind": "host", "path": "/spec/volumes/0"}],
		"host_interfaces": [{
			"package": "wasi:http",
			"interfaces": ["outgoing-handler"],
			"version": "0.2.12",
			"config_keys": [],
			"has_secret": false,
			"classes": ["http.out"],
			"used": true,
			"path": "/spec/hostInterfaces/0",
		}],
		"problems": [],
		"paths": [],
	},
	"has_previous": true,
	"previous": {"components": {"mail": {
		"digest": concat("", ["sha256:", digits]),
		"capabilities": ["http.out", "tool.call"],
		"reach": ["reach hosts api.example.com over https, port 443"],
		"signers": ["builder@example.com"],
	}}},
}

digits := "9f2c5d6a8b7e4f3019283746556473829f2c5d6a8b7e4f301928374655647382"

# Calls one host.
mail := object.union(plain("mail", 0), {
	"classes": [],
	"interfaces": {
		"imports": [
			{
				"name": "wasi:http/outgoing-handler@0.2.12",
				"interface": "wasi:http/outgoing-handler",
				"track": "0.2",
				"sort": "instance",
				"known": true,
				"near_miss": "",
				"has_near_miss": false,
				"classes": ["http.out"],
				"served_by": "host",
			},
			{
				"name": "acme:store/kv@1.0.0",
				"interface": "acme:store/kv",
				"track": "1",
				"sort": "instance",
				"known": false,
				"near_miss": "",
				"has_near_miss": false,
				"classes": ["tool.call"],
				"served_by": "component:store",
			},
		],
		"exports": [{"name": "acme:mail/send@1.0.0", "interface": "acme:mail/send", "track": "1"}],
	},
	"capabilities": capabilities(["http.out", "tool.call"], ["wasi:http/outgoing-handler@0.2.12"], []),
	"grants": {
		"hosts": [host],
		"lookups": [{"name": "api.example.com", "path": "/spec/components/0/localResources/allowedIpNameLookups/0"}],
		"loopback_ports": [],
		"folders": [],
		"env": [{
			"name": "LANGUAGE",
			"source": "literal",
			"looks_secret": false,
			"length": 2,
			"path": "/spec/components/0/localResources/environment/config/LANGUAGE",
		}],
		"references": [{
			"kind": "config",
			"name": "mail",
			"into": "environment",
			"path": "/spec/components/0/localResources/environment/configFrom/0",
		}],
		"has_secret": false,
	},
	"reach": [{
		"verb": "reach hosts",
		"capability": "http.out",
		"subject": "api.example.com over https, port 443",
		"via": "grant",
		"has_grant": true,
		"grant": "https://api.example.com",
		"path": "/spec/components/0/localResources/allowedHosts/0",
	}],
	"links": [{"interface": "acme:store/kv@1", "provider": "store"}],
})

# Reads one folder, and is linked to the other.
store := object.union(plain("store", 1), {
	"interfaces": {
		"imports": [{
			"name": "wasi:filesystem/preopens@0.2.12",
			"interface": "wasi:filesystem/preopens",
			"track": "0.2",
			"sort": "instance",
			"known": true,
			"near_miss": "",
			"has_near_miss": false,
			"classes": ["fs.root"],
			"served_by": "host",
		}],
		"exports": [{"name": "acme:store/kv@1.0.0", "interface": "acme:store/kv", "track": "1"}],
	},
	"capabilities": capabilities(["fs.root"], [], ["wasi:filesystem/preopens@0.2.12"]),
	"grants": {
		"hosts": [],
		"lookups": [],
		"loopback_ports": [],
		"folders": [folder],
		"env": [],
		"references": [],
		"has_secret": false,
	},
	"reach": [{
		"verb": "read folder",
		"capability": "fs.root",
		"subject": "/srv/letters",
		"via": "grant",
		"has_grant": true,
		"grant": "letters",
		"path": "/spec/components/1/localResources/volumeMounts/0",
	}],
})

host := {
	"raw": "https://api.example.com",
	"canonical": "https://api.example.com:443",
	"meaning": "api.example.com over https, port 443",
	"kind": "name",
	"host": "api.example.com",
	"deny": false,
	"any_host": false,
	"any_port": false,
	"unbounded": false,
	"address_classes": [],
	"metadata": false,
	"special": false,
	"private": false,
	"public_suffix": false,
	"shared_suffix": false,
	"lints": [],
	"path": "/spec/components/0/localResources/allowedHosts/0",
}

folder := {
	"guest": "/letters",
	"source": "host",
	"has_host": true,
	"host": "/srv/letters",
	"mode": "read-only",
	"writable": false,
	"holds_sensitive": false,
	"sensitive_read": false,
	"sensitive_write": false,
	"sensitive_reason": "",
	"inherited": false,
	"owner": "store",
	"path": "/spec/components/1/localResources/volumeMounts/0",
}

capabilities(classes, network, files) := {
	"declared": classes,
	"linked": classes,
	"reachable": classes,
	"reachable_computed": true,
	"precision": "exact",
	"counted": classes,
	"unknown": [],
	"network": count(network) > 0,
	"filesystem": count(files) > 0,
	"network_imports": network,
	"filesystem_imports": files,
}

# What both components have in common: pinned, signed, attested, limited.
plain(name, index) := {
	"name": name,
	"role": "component",
	"classes": [],
	"path": sprintf("/spec/components/%d", [index]),
	"image": {
		"raw": sprintf("registry.example/shop/%s:1.4@sha256:%s", [name, digits]),
		"kind": "oci",
		"registry": "registry.example",
		"repository": sprintf("shop/%s", [name]),
		"name": sprintf("registry.example/shop/%s", [name]),
		"has_tag": true,
		"tag": "1.4",
		"has_digest": true,
		"digest": sprintf("sha256:%s", [digits]),
		"path": sprintf("/spec/components/%d/image", [index]),
	},
	"pinned": true,
	"bytes": "present",
	"digest": sprintf("sha256:%s", [digits]),
	"digest_checked": true,
	"digest_matches": true,
	"manifest_digest": sprintf("sha256:%s", [digits]),
	"claims": {"known": true, "unnamed_imports": [], "absent_imports": []},
	"evidence_state": "checked",
	"trust": [{"policy": "release", "origin": "trust.yaml:1", "mode": "enforce", "satisfied": true, "reasons": []}],
	"signed": true,
	"bad_signature": false,
	"in_transparency_log": true,
	"signatures": [{
		"verified": true,
		"kind": "keyless",
		"identity": "builder@example.com",
		"issuer": "https://issuer.example",
		"key_id": "",
		"tlog": true,
		"wrong": false,
		"errors": [],
	}],
	"attestations": [{
		"verified": true,
		"predicate_type": "https://slsa.dev/provenance/v1",
		"subject_matches": true,
		"has_age": true,
		"age_seconds": 864000,
		"builder_id": "https://builder.example/one",
		"source_uri": "https://source.example/shop",
		"signer": "builder@example.com",
		"errors": [],
		"has_predicate": false,
		"predicate": {},
	}],
	"has_provenance": true,
	"has_sbom": true,
	"dead_grants": [],
	"missing_grants": [],
	"links": [],
	"closure": {"members": ["mail", "store"], "any_host": false, "folder": true, "secret": false},
	"resources": {"memory_limited": false, "cpu_limited": false, "pool_size": 0},
	"ceilings": [],
}

# The clean input with each value put at its JSON pointer.
changed(values) := json.patch(clean, [{"op": "add", "path": path, "value": value} | some path, value in values])

# The clean input with the same values put into the component `mail`.
mail_with(values) := changed({concat("", ["/workload/components/0", path]): value | some path, value in values})

# The same for `store`.
store_with(values) := changed({concat("", ["/workload/components/1", path]): value | some path, value in values})

# An input without what the pointers name.
without(document, paths) := json.patch(document, [{"op": "remove", "path": path} | some path in paths])

# A host entry, changed; the whole list of `mail` becomes this one.
granting(values) := mail_with({"/grants/hosts": [object.union(host, values)]})

# The folder of `store`, changed.
mounting(values) := store_with({"/grants/folders": [object.union(folder, values)]})

codes(findings) := {finding.code | some finding in findings}

subjects(findings) := {finding.subject | some finding in findings}
