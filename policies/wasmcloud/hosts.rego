package ambit.wasmcloud

# METADATA
# title: Ports mean what they seem to
# description: wasmCloud drops a default port behind a scheme, so that any port is meant, and takes one without a scheme for URLs that spell it.
# custom:
#   id: default-port
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some grant in component.grants.hosts
	"host-default-port" in grant.lints
	finding := {
		"code": "default-port",
		"msg": sprintf("`%s` doesn't mean what its port says; it means %s", [grant.raw, grant.meaning]),
		"subject": component.name,
		"path": grant.path,
		"help": sprintf("write `%s%s` in place of `%s`", [scheme_of(grant), grant.host, grant.raw]),
	}
}

# METADATA
# title: The machine's loopback is granted by both keys or none
# description: A port in `allowedHostLoopbackPorts` and `host.wasmcloud.internal` in `allowedHosts` work together; one alone does nothing, or opens the port to sockets only.
# custom:
#   id: loopback-pair
#   severity: medium
#   evidence: false
deny contains finding if {
	some problem in input.workload.problems
	problem.code == "loopback-pair"
	finding := {
		"code": "loopback-pair",
		"msg": problem.message,
		"subject": subject_of(problem, input.workload.name),
		"path": problem.path,
		"help": problem.help,
	}
}

# METADATA
# title: No daemon of the machine is in reach
# description: A container engine, a kubelet or a cluster's store on loopback obeys whoever connects, and gives control of the whole machine.
# custom:
#   id: host-loopback-daemon
#   severity: critical
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some port in component.grants.loopback_ports
	daemon := daemons[split(port.name, "/")[0]]
	not endswith(port.name, "/udp")
	may_connect(component)
	finding := {
		"code": "host-loopback-daemon",
		"msg": sprintf("`%s` may connect to port `%s` of the machine, where %s listens", [component.name, port.name, daemon]),
		"subject": component.name,
		"path": port.path,
		"help": sprintf("delete `%s` from `allowedHostLoopbackPorts` of `%s`; put what it needs behind a service with narrow calls", [port.name, component.name]),
	}
}

# METADATA
# title: Secrets don't travel in clear text
# description: An entry without a scheme allows plain HTTP, and the component holds a secret that it will send.
# custom:
#   id: cleartext-secret
#   severity: medium
#   evidence: false
deny contains finding if {
	some component in input.workload.components
	some grant in component.grants.hosts
	"host-cleartext-secret" in grant.lints
	finding := {
		"code": "cleartext-secret",
		"msg": sprintf("`%s` allows plain HTTP, and `%s` holds a secret", [grant.raw, component.name]),
		"subject": component.name,
		"path": grant.path,
		"help": sprintf("write `https://%s` in place of `%s`", [after_scheme(grant), grant.raw]),
	}
}

# Registered or customary ports of what controls a machine or a cluster.
daemons := {
	"2375": "a container engine",
	"2376": "a container engine",
	"2377": "a container engine's cluster manager",
	"2379": "a cluster's store",
	"2380": "a cluster's store",
	"4243": "a container engine",
	"6443": "a Kubernetes API server",
	"10250": "a kubelet",
	"10255": "a kubelet",
	"16443": "a Kubernetes API server",
}

# Over HTTP the machine's loopback has a name of its own; sockets need none.
may_connect(component) if {
	some grant in component.grants.hosts
	grant.kind == "host-internal"
	grant["deny"] == false
}

may_connect(component) if "net.tcp.connect" in component.capabilities.declared

scheme_of(grant) := "http://" if startswith(grant.raw, "http://")

scheme_of(grant) := "https://" if not startswith(grant.raw, "http://")

# The entry without its scheme. A port stays, since without one every port is meant; a default one
# goes, as `default-port` asks.
after_scheme(grant) := trim_prefix(grant.raw, "http://") if not "host-default-port" in grant.lints

after_scheme(grant) := grant.host if "host-default-port" in grant.lints

subject_of(problem, workload_name) := problem.component if problem.component != ""

subject_of(problem, workload_name) := workload_name if problem.component == ""
