use serde_json::json;

use super::*;

/// Labels and annotations that some rule looks at.
fn names() -> BTreeSet<String> {
    BTreeSet::from(["team".to_owned(), "example.com/class".to_owned()])
}

fn workload() -> Value {
    json!({
        "apiVersion": "runtime.wasmcloud.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": "mail",
            "generation": 1,
            "labels": {"team": "post", "app": "mail"},
            "annotations": {"example.com/class": "tool", "note": "first"}
        },
        "spec": {
            "hostId": "h-1",
            "components": [{"name": "mail", "image": "registry.example/mail:1"}],
            "hostInterfaces": [{"namespace": "wasi", "package": "http", "config": {"host": "a"}}],
            "replicas": 1
        },
        "status": {"artifactUrl": "registry.example/mail:1", "phase": "Pending"}
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "mail"},
        "spec": {
            "replicas": 1,
            "paused": false,
            "minReadySeconds": 1,
            "progressDeadlineSeconds": 1,
            "revisionHistoryLimit": 1,
            "suspend": false,
            "selector": {"matchLabels": {"app": "mail"}},
            "template": {
                "metadata": {"labels": {"app": "mail"}},
                "spec": {"replicas": 1, "containers": [{"name": "mail", "image": "mail:1"}]}
            }
        },
        "status": {"readyReplicas": 0}
    })
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mail"},
        "spec": {
            "nodeName": "a",
            "nodeSelector": {},
            "affinity": {},
            "priority": 1,
            "tolerations": [],
            "schedulingGates": [{"name": "wait"}],
            "activeDeadlineSeconds": 9,
            "terminationGracePeriodSeconds": 9,
            "runtimeClassName": "wasm",
            "hostNetwork": false,
            "replicas": 1,
            "containers": [{"name": "mail", "image": "mail:1"}]
        },
        "status": {"phase": "Pending"}
    })
}

/// Sets the member `key` of the object at `pointer`; `None` where there is no such object.
fn with(mut object: Value, pointer: &str, key: &str, value: Value) -> Option<Value> {
    object.pointer_mut(pointer)?.as_object_mut()?.insert(key.to_owned(), value);
    Some(object)
}

/// Holds `is_unchanged` to `expected` for one member that is set, and for the way back.
fn check(carrier: Carrier, old: &Value, set: (&str, &str, Value), expected: bool) {
    let (pointer, key, value) = set;
    let new = with(old.clone(), pointer, key, value);
    assert!(new.is_some(), "nothing at `{pointer}`");
    let new = new.unwrap_or_default();
    assert_ne!(*old, new, "{pointer}/{key} is as it was");
    for (old, new) in [(old, &new), (&new, old)] {
        let found = is_unchanged(carrier, old, new, &names());
        assert_eq!(found, expected, "{carrier:?}: {pointer}/{key}");
    }
}

#[test]
fn equal_objects_are_unchanged() {
    for carrier in [Carrier::Workload, Carrier::Controller, Carrier::Pod, Carrier::Artifact] {
        for object in [workload(), deployment(), pod(), json!({})] {
            assert!(is_unchanged(carrier, &object, &object, &names()), "{carrier:?}: {object}");
        }
    }
    let (old, new) = (json!({"spec": {"a": 1, "b": 2}}), json!({"spec": {"b": 2, "a": 1}}));
    assert!(is_unchanged(Carrier::Workload, &old, &new, &names()), "the order of keys matters");
}

#[test]
fn labels_and_annotations_matter_by_name() {
    let old = workload();
    for (map, key, value, expected) in [
        ("/metadata/labels", "app", json!("post"), true),
        ("/metadata/labels", "new", json!("x"), true),
        ("/metadata/annotations", "note", json!("second"), true),
        ("/metadata/labels", "team", json!("other"), false),
        ("/metadata/annotations", "team", json!("post"), false),
        ("/metadata/annotations", "example.com/class", json!("agent"), false),
        ("/metadata/labels", "example.com/class", json!("tool"), false),
        ("/metadata", "labels", json!({"app": "mail"}), false),
        ("/metadata", "labels", json!({"team": "post"}), true),
        ("/metadata", "finalizers", json!(["example.com/wait"]), true),
        ("/metadata", "generation", json!(2), true),
    ] {
        for carrier in [Carrier::Workload, Carrier::Controller, Carrier::Pod, Carrier::Artifact] {
            check(carrier, &old, (map, key, value.clone()), expected);
        }
    }
}

#[test]
fn everything_in_the_spec_of_a_workload_matters() {
    let old = workload();
    for (pointer, key, value) in [
        ("/spec/components/0", "image", json!("registry.example/mail:2")),
        ("/spec/components/0", "unknown", json!(null)),
        ("/spec/hostInterfaces/0/config", "host", json!("b")),
        ("/spec", "hostId", json!("h-2")),
        ("/spec", "replicas", json!(2)),
        ("/spec", "unknown", json!({})),
        ("", "spec", json!(null)),
        ("", "kind", json!("Artifact")),
        ("", "apiVersion", json!("runtime.wasmcloud.dev/v1")),
    ] {
        for carrier in [Carrier::Workload, Carrier::Artifact] {
            check(carrier, &old, (pointer, key, value.clone()), false);
        }
    }
}

#[test]
fn counts_of_a_controller_do_not_matter_and_its_template_does() {
    let old = deployment();
    for (pointer, key, value, expected) in [
        ("/spec", "replicas", json!(5), true),
        ("/spec", "paused", json!(true), true),
        ("/spec", "minReadySeconds", json!(5), true),
        ("/spec", "progressDeadlineSeconds", json!(5), true),
        ("/spec", "revisionHistoryLimit", json!(5), true),
        ("/spec", "suspend", json!(true), true),
        ("/spec", "nodeName", json!("b"), false),
        ("/spec", "selector", json!({}), false),
        ("/spec", "unknown", json!(1), false),
        ("/spec/template/metadata/labels", "app", json!("post"), false),
        ("/spec/template/metadata", "annotations", json!({"note": "x"}), false),
        ("/spec/template/spec/containers/0", "image", json!("mail:2"), false),
        // What is inert in the controller isn't in what it makes.
        ("/spec/template/spec", "replicas", json!(5), false),
        // A PodTemplate has its template outside of any specification.
        ("", "template", json!({"spec": {"containers": []}}), false),
    ] {
        check(Carrier::Controller, &old, (pointer, key, value), expected);
    }
    let mut scaled = deployment();
    scaled["spec"].as_object_mut().unwrap().remove("replicas").unwrap();
    assert!(is_unchanged(Carrier::Controller, &old, &scaled, &names()));
}

#[test]
fn place_of_a_pod_does_not_matter_and_what_runs_does() {
    let old = pod();
    for (pointer, key, value, expected) in [
        ("/spec", "nodeName", json!("b"), true),
        ("/spec", "nodeSelector", json!({"zone": "b"}), true),
        ("/spec", "affinity", json!({"nodeAffinity": {}}), true),
        ("/spec", "priority", json!(2), true),
        ("/spec", "tolerations", json!([{"operator": "Exists"}]), true),
        ("/spec", "schedulingGates", json!([]), true),
        ("/spec", "activeDeadlineSeconds", json!(1), true),
        ("/spec", "terminationGracePeriodSeconds", json!(1), true),
        ("/spec/containers/0", "image", json!("mail:2"), false),
        ("/spec", "initContainers", json!([{"name": "a", "image": "a:1"}]), false),
        ("/spec", "ephemeralContainers", json!([{"name": "a", "image": "a:1"}]), false),
        ("/spec", "runtimeClassName", json!("other"), false),
        ("/spec", "hostNetwork", json!(true), false),
        ("/spec", "replicas", json!(2), false),
        ("/spec", "unknown", json!(1), false),
    ] {
        check(Carrier::Pod, &old, (pointer, key, value), expected);
    }
}

#[test]
fn status_matters_where_it_says_what_an_artifact_stands_for() {
    let old = workload();
    for (carrier, key, value, expected) in [
        (Carrier::Artifact, "artifactUrl", json!("registry.example/mail:2"), false),
        (Carrier::Artifact, "phase", json!("Ready"), true),
        (Carrier::Workload, "artifactUrl", json!("registry.example/mail:2"), true),
        (Carrier::Workload, "phase", json!("Ready"), true),
        (Carrier::Controller, "readyReplicas", json!(1), true),
        (Carrier::Pod, "phase", json!("Running"), true),
    ] {
        check(carrier, &old, ("/status", key, value), expected);
    }
    check(Carrier::Artifact, &old, ("", "status", json!({})), false);
    check(Carrier::Pod, &old, ("", "status", json!({})), true);
}

#[test]
fn unknown_field_beside_the_specification_matters() {
    for carrier in [Carrier::Workload, Carrier::Controller, Carrier::Pod, Carrier::Artifact] {
        check(carrier, &workload(), ("", "unknown", json!({"image": "mail:2"})), false);
    }
}

#[test]
fn keys_left_out_are_left_out_on_both_sides() {
    let cases: [(Value, Value, &[&str], bool); 6] = [
        (json!({"a": 1, "b": 2}), json!({"a": 1}), &["b"], true),
        (json!({"a": 1}), json!({"a": 1, "b": 2}), &["b"], true),
        (json!({"a": 1}), json!({"a": 1, "b": 2}), &[], false),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), &[], false),
        // One key gone and another come leave the count as it was.
        (json!({"a": null}), json!({"b": null}), &[], false),
        (json!({"a": 1}), json!({"a": 2}), &["b"], false),
    ];
    for (old, new, left_out, expected) in cases {
        let (before, after) = (old.as_object().unwrap(), new.as_object().unwrap());
        assert_eq!(equal_without(before, after, left_out), expected, "{old} {new} {left_out:?}");
    }
}
