//! Whether an update changes anything that runs or is granted.
//!
//! Most updates are the cluster's own: finalizers, status, replica counts. Denying one of an object
//! that is stored already blocks garbage collection and the emptying of namespaces, and looking at
//! its images again costs a registry's answer each time. Such an update passes; a sweep over what is
//! stored reports what a newer policy would deny.
//!
//! # Invariants
//!
//! Only what is named here is left out of the comparison. A field that isn't known counts as one
//! that matters.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::scope::Carrier;

/// Fields of an object that are compared by rules of their own.
const APART: [&str; 3] = ["metadata", "spec", "status"];

/// Fields of a pod's `spec` that place it or end it, and grant nothing.
const POD_INERT: [&str; 8] = [
    "activeDeadlineSeconds",
    "affinity",
    "nodeName",
    "nodeSelector",
    "priority",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
];

/// Fields of a controller's `spec` that say how many there are, how old ones go, and when.
const CONTROLLER_INERT: [&str; 6] = [
    "minReadySeconds",
    "paused",
    "progressDeadlineSeconds",
    "replicas",
    "revisionHistoryLimit",
    "suspend",
];

/// Tells whether an update leaves alone what runs, what is granted, and the labels and annotations
/// of these names.
#[must_use]
pub fn is_unchanged(carrier: Carrier, old: &Value, new: &Value, names: &BTreeSet<String>) -> bool {
    let same_rest = match (old, new) {
        (Value::Object(old), Value::Object(new)) => equal_without(old, new, &APART),
        _ => false,
    };
    let inert: &[&str] = match carrier {
        Carrier::Pod => &POD_INERT,
        Carrier::Controller => &CONTROLLER_INERT,
        Carrier::Workload | Carrier::Artifact => &[],
    };
    let same_spec = match (old.get("spec"), new.get("spec")) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => equal_without(old, new, inert),
        (old, new) => old == new,
    };
    let status = |object: &Value| object.pointer("/status/artifactUrl").cloned();
    let same_status = carrier != Carrier::Artifact || status(old) == status(new);
    same_names(old, new, names) && same_rest && same_spec && same_status
}

/// Tells whether the labels and annotations of these names are as they were.
#[must_use]
pub(crate) fn same_names(old: &Value, new: &Value, names: &BTreeSet<String>) -> bool {
    let metadata = |object: &'_ Value, map: &str| -> Map<String, Value> {
        let found = object.pointer(&format!("/metadata/{map}")).and_then(Value::as_object);
        let found = found.into_iter().flatten().filter(|(key, _)| names.contains(*key));
        found.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    ["labels", "annotations"].iter().all(|map| metadata(old, map) == metadata(new, map))
}

/// Tells whether two objects are equal but for the named keys, whatever the order of keys.
#[must_use]
pub(crate) fn equal_without(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    left_out: &[&str],
) -> bool {
    let kept = |map: &Map<String, Value>| {
        map.keys().filter(|key| !left_out.contains(&key.as_str())).count()
    };
    kept(old) == kept(new)
        && old
            .iter()
            .filter(|(key, _)| !left_out.contains(&key.as_str()))
            .all(|(key, value)| new.get(key) == Some(value))
}

#[cfg(test)]
mod tests;
