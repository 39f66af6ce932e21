//! Which reviews carry code, and as what.
//!
//! The kind of the object decides, not the resource: `deployments/scale` carries a `Scale`, and
//! `pods/ephemeralcontainers` the whole `Pod`. A kind of
//! wasmCloud's group that isn't known is in scope.

use crate::wire::{Operation, Request};

/// What carries the code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carrier {
    /// What hosts run: a `Workload`.
    Workload,
    /// What makes carriers: deployments, sets, jobs, applications.
    Controller,
    /// A pod.
    Pod,
    /// An image that workloads name.
    Artifact,
}

/// Whether there is anything to judge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// There is not, and why.
    Out(&'static str),
    /// There may be.
    In(Carrier),
}

const WASMCLOUD: &str = "runtime.wasmcloud.dev";

/// Tells what a review is about.
#[must_use]
pub fn scope(request: &Request) -> Scope {
    match request.operation {
        Operation::Delete => return Scope::Out("a deletion brings no code"),
        Operation::Connect => return Scope::Out("a connection brings no code"),
        Operation::Create | Operation::Update => {}
    }
    let Some(carrier) = carrier(&request.kind.group, &request.kind.kind) else {
        return Scope::Out("a kind that carries no code");
    };
    match (request.sub_resource.as_str(), carrier) {
        // The status of an Artifact says what its name stands for; other status says what happened.
        ("status", Carrier::Artifact) => Scope::In(Carrier::Artifact),
        ("status", _) => Scope::Out("a status brings no code"),
        (_, carrier) => Scope::In(carrier),
    }
}

fn carrier(group: &str, kind: &str) -> Option<Carrier> {
    match (group, kind) {
        (WASMCLOUD, "Host") => None,
        (WASMCLOUD, "WorkloadDeployment" | "WorkloadReplicaSet") => Some(Carrier::Controller),
        (WASMCLOUD, "Artifact") => Some(Carrier::Artifact),
        // `Scale` has a group of its own, so whatever else is here is a kind of later.
        (WASMCLOUD, _) => Some(Carrier::Workload),
        ("control.cosmonic.io", "HTTPTrigger")
        | ("core.spinkube.dev" | "core.spinoperator.dev", "SpinApp")
        | ("", "ReplicationController" | "PodTemplate")
        | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job" | "CronJob") => Some(Carrier::Controller),
        ("", "Pod") => Some(Carrier::Pod),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
