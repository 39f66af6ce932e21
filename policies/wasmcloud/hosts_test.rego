package ambit.wasmcloud_test

test_default_port_is_denied if {
	found := data.ambit.wasmcloud.deny with input as granting({
		"raw": "https://api.example.com:443",
		"meaning": "api.example.com over https, any port",
		"lints": ["host-default-port"],
	})
	codes(found) == {"default-port"}
	some finding in found
	finding.help == "write `https://api.example.com` in place of `https://api.example.com:443`"
}

test_default_port_of_plain_http_keeps_its_scheme if {
	found := data.ambit.wasmcloud.deny with input as granting({"raw": "http://api.example.com:80", "lints": ["host-default-port"]})
	some finding in found
	startswith(finding.help, "write `http://api.example.com` ")
}

test_other_lint_is_no_default_port if {
	found := data.ambit.wasmcloud.deny with input as granting({"lints": ["host-any"]})
	found == set()
}

pair := {
	"code": "loopback-pair",
	"level": "lint",
	"severity": "medium",
	"message": "port `5432` opens for sockets only",
	"help": "delete the port",
	"component": "mail",
	"path": "/spec/components/0/localResources/allowedHostLoopbackPorts/0",
}

test_half_a_loopback_grant_is_denied if {
	found := data.ambit.wasmcloud.deny with input as changed({"/workload/problems": [pair]})
	codes(found) == {"loopback-pair"}
	subjects(found) == {"mail"}
}

test_half_a_loopback_grant_of_no_component_is_denied if {
	found := data.ambit.wasmcloud.deny with input as changed({"/workload/problems": [object.union(pair, {"component": ""})]})
	subjects(found) == {"post"}
}

test_other_problem_is_no_loopback_grant if {
	found := data.ambit.wasmcloud.deny with input as changed({"/workload/problems": [object.union(pair, {"code": "mount-overlap"})]})
	found == set()
}

internal := object.union(host, {"kind": "host-internal", "raw": "host.wasmcloud.internal:2375", "host": "host.internal"})

loopback(port, hosts) := mail_with({
	"/grants/hosts": hosts,
	"/grants/loopback_ports": [{"name": port, "path": "/spec/components/0/localResources/allowedHostLoopbackPorts/0"}],
})

test_container_engine_on_loopback_is_denied if {
	every port in ["2375/tcp", "2376/tcp", "2375", "10250/tcp"] {
		found := data.ambit.wasmcloud.deny with input as loopback(port, [internal])
		codes(found) == {"host-loopback-daemon"}
	}
}

test_container_engine_by_sockets_is_denied if {
	found := data.ambit.wasmcloud.deny with input as json.patch(loopback("2375/tcp", [host]), [{
		"op": "add",
		"path": "/workload/components/0/capabilities/declared",
		"value": ["net.tcp.connect"],
	}])
	codes(found) == {"host-loopback-daemon"}
}

test_other_ports_on_loopback_are_allowed if {
	every port in ["5432/tcp", "2375/udp", "23750/tcp"] {
		found := data.ambit.wasmcloud.deny with input as loopback(port, [internal])
		found == set()
	}
}

test_container_engine_without_the_other_key_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as loopback("2375/tcp", [host])
	found == set()
}

test_container_engine_with_the_other_key_taken_away_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as loopback("2375/tcp", [object.union(internal, {"deny": true})])
	found == set()
}

test_loopback_name_without_a_port_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as mail_with({"/grants/hosts": [internal]})
	found == set()
}

test_secret_over_plain_http_is_denied if {
	found := data.ambit.wasmcloud.deny with input as granting({"raw": "api.example.com", "lints": ["host-cleartext-secret"]})
	codes(found) == {"cleartext-secret"}
	some finding in found
	finding.help == "write `https://api.example.com` in place of `api.example.com`"
}

test_help_about_a_secret_over_plain_http_keeps_the_port if {
	every raw in ["api.example.com:8443", "http://api.example.com:8443"] {
		found := data.ambit.wasmcloud.deny with input as granting({"raw": raw, "lints": ["host-cleartext-secret"]})
		some finding in found
		startswith(finding.help, "write `https://api.example.com:8443` in place of ")
	}
}

test_help_about_a_secret_over_plain_http_drops_a_default_port if {
	found := data.ambit.wasmcloud.deny with input as granting({
		"raw": "http://api.example.com:80",
		"lints": ["host-default-port", "host-cleartext-secret"],
	})
	codes(found) == {"default-port", "cleartext-secret"}
	some finding in found
	finding.code == "cleartext-secret"
	startswith(finding.help, "write `https://api.example.com` in place of ")
}

test_host_without_lints_is_allowed if {
	found := data.ambit.wasmcloud.deny with input as granting({"raw": "api.example.com", "lints": []})
	found == set()
}
