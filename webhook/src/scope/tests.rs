use super::*;
use crate::wire::{Kind, Resource, User};

fn request(group: &str, kind: &str, operation: Operation, sub_resource: &str) -> Request {
    Request {
        uid: "u-1".to_owned(),
        kind: Kind { group: group.to_owned(), version: "v1".to_owned(), kind: kind.to_owned() },
        resource: Resource::default(),
        sub_resource: sub_resource.to_owned(),
        name: "mail".to_owned(),
        namespace: "prod".to_owned(),
        operation,
        user_info: User::default(),
        dry_run: None,
        object: None,
        old_object: None,
    }
}

/// Returns the carrier, or `None` where there is nothing to judge.
fn carried(group: &str, kind: &str, operation: Operation, sub_resource: &str) -> Option<Carrier> {
    match scope(&request(group, kind, operation, sub_resource)) {
        Scope::In(carrier) => Some(carrier),
        Scope::Out(_) => None,
    }
}

#[test]
fn what_is_made_or_changed_is_judged_by_its_kind() {
    for (group, kind, carrier) in [
        ("", "Pod", Some(Carrier::Pod)),
        ("", "ReplicationController", Some(Carrier::Controller)),
        ("", "PodTemplate", Some(Carrier::Controller)),
        ("apps", "Deployment", Some(Carrier::Controller)),
        ("apps", "ReplicaSet", Some(Carrier::Controller)),
        ("apps", "StatefulSet", Some(Carrier::Controller)),
        ("apps", "DaemonSet", Some(Carrier::Controller)),
        ("batch", "Job", Some(Carrier::Controller)),
        ("batch", "CronJob", Some(Carrier::Controller)),
        ("core.spinkube.dev", "SpinApp", Some(Carrier::Controller)),
        ("core.spinoperator.dev", "SpinApp", Some(Carrier::Controller)),
        ("control.cosmonic.io", "HTTPTrigger", Some(Carrier::Controller)),
        (WASMCLOUD, "Workload", Some(Carrier::Workload)),
        (WASMCLOUD, "WorkloadDeployment", Some(Carrier::Controller)),
        (WASMCLOUD, "WorkloadReplicaSet", Some(Carrier::Controller)),
        (WASMCLOUD, "Artifact", Some(Carrier::Artifact)),
        // A kind of later may carry code.
        (WASMCLOUD, "WorkloadSchedule", Some(Carrier::Workload)),
        (WASMCLOUD, "Host", None),
        ("", "ConfigMap", None),
        ("", "Service", None),
        ("policy", "PodDisruptionBudget", None),
        ("core.spinkube.dev", "SpinAppExecutor", None),
        // A kind is one of its group only.
        ("", "Deployment", None),
        ("apps", "Pod", None),
        ("apps", "Job", None),
        ("batch", "Deployment", None),
        ("apps", "Workload", None),
        ("example.com", "Pod", None),
        ("example.com", "Artifact", None),
        ("example.com", "SpinApp", None),
        ("runtime.wasmcloud.dev.example.com", "Workload", None),
        // Names of kinds have a case.
        ("", "pod", None),
        ("apps", "deployment", None),
    ] {
        for operation in [Operation::Create, Operation::Update] {
            assert_eq!(
                carried(group, kind, operation, ""),
                carrier,
                "{group} {kind} {operation:?}"
            );
        }
    }
}

#[test]
fn subresource_is_judged_by_the_kind_of_its_object() {
    for (resource, group, kind, sub_resource, carrier) in [
        ("pods", "", "Pod", "ephemeralcontainers", Some(Carrier::Pod)),
        ("pods", "", "Pod", "resize", Some(Carrier::Pod)),
        ("pods", "", "Pod", "status", None),
        ("pods", "policy", "Eviction", "eviction", None),
        ("pods", "", "Binding", "binding", None),
        ("deployments", "autoscaling", "Scale", "scale", None),
        ("replicationcontrollers", "autoscaling", "Scale", "scale", None),
        ("workloaddeployments", "autoscaling", "Scale", "scale", None),
        ("deployments", "apps", "Deployment", "status", None),
        ("jobs", "batch", "Job", "status", None),
        ("workloads", WASMCLOUD, "Workload", "status", None),
        ("workloaddeployments", WASMCLOUD, "WorkloadDeployment", "status", None),
        ("artifacts", WASMCLOUD, "Artifact", "status", Some(Carrier::Artifact)),
        ("artifacts", "example.com", "Artifact", "status", None),
        // A subresource of later that brings the whole object brings its code.
        ("deployments", "apps", "Deployment", "rollback", Some(Carrier::Controller)),
    ] {
        for operation in [Operation::Create, Operation::Update] {
            let found = carried(group, kind, operation, sub_resource);
            assert_eq!(found, carrier, "{resource}/{sub_resource} {operation:?}");
        }
    }
}

#[test]
fn deletion_and_connection_bring_no_code() {
    for (group, kind, sub_resource) in [
        ("", "Pod", ""),
        ("", "PodExecOptions", "exec"),
        ("", "PodAttachOptions", "attach"),
        ("apps", "Deployment", ""),
        (WASMCLOUD, "Workload", ""),
        (WASMCLOUD, "Artifact", ""),
        (WASMCLOUD, "Artifact", "status"),
    ] {
        for (operation, reason) in [
            (Operation::Delete, "a deletion brings no code"),
            (Operation::Connect, "a connection brings no code"),
        ] {
            let found = scope(&request(group, kind, operation, sub_resource));
            assert_eq!(found, Scope::Out(reason), "{group} {kind}/{sub_resource}");
        }
    }
}

#[test]
fn what_is_left_out_says_why() {
    for (group, kind, sub_resource, reason) in [
        ("", "ConfigMap", "", "a kind that carries no code"),
        ("", "ConfigMap", "status", "a kind that carries no code"),
        ("autoscaling", "Scale", "scale", "a kind that carries no code"),
        ("", "Pod", "status", "a status brings no code"),
    ] {
        let found = scope(&request(group, kind, Operation::Update, sub_resource));
        assert_eq!(found, Scope::Out(reason), "{group} {kind}/{sub_resource}");
    }
}
