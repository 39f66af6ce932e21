//! Ways round a webhook that others' issue lists tell of.

use serde_json::{Value, json};

use super::api_server::Answered;
use super::testdata;
use super::world::{Images, Issuer, Webhook, World};

/// A review of an object.
fn review(operation: &str, object: &Value, old: Option<&Value>) -> Value {
    let api = object["apiVersion"].as_str().unwrap();
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "e5b1b7f3-5f7f-4c7e-9d8e-1f2f3a4b5c6d",
            "kind": {"group": group, "version": version, "kind": object["kind"]},
            "resource": {"group": group, "version": version, "resource": "things"},
            "name": object["metadata"]["name"],
            "namespace": "payments",
            "operation": operation,
            "userInfo": {"username": "alice@example.com", "groups": ["developers"]},
            "object": object,
            "oldObject": old,
            "dryRun": false
        }
    })
}

fn workload(image: &str) -> Value {
    json!({
        "apiVersion": "runtime.wasmcloud.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "cart", "labels": {"team": "payments"}},
        "spec": {"components": [{"name": "cart", "image": image}]}
    })
}

fn pod(containers: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "cart"},
        "spec": {"runtimeClassName": "wasmtime-spin-v2", "containers": containers}
    })
}

const GOOD: &str = "ghcr.io/example/x:1";
const EVIL: &str = "docker.io/evil/x:latest";

struct Asked {
    webhook: Webhook,
    world: World,
    _issuer: Issuer,
    _folder: tempfile::TempDir,
}

impl Asked {
    /// A webhook that knows signed images, and one that nobody signed.
    async fn new() -> Self {
        let mut world = World::start(Images::Signed).await;
        let bytes = std::fs::read(testdata("components/http-fetch.wasm")).unwrap();
        world.push("hub/evil/x:latest", &bytes, Images::Unsigned).await;
        let (issuer, folder) = (Issuer::new(), tempfile::tempdir().unwrap());
        let settings = world.settings(folder.path(), "");
        let webhook = Webhook::start(&settings, &issuer).await;
        Self { webhook, world, _issuer: issuer, _folder: folder }
    }

    async fn validate(&self, review: &Value) -> Answered {
        self.webhook.api.review("/validate?timeout=30s", review).await
    }

    async fn mutate(&self, review: &Value) -> Answered {
        self.webhook.api.review("/mutate?timeout=30s", review).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_is_found_wherever_it_is_carried() {
    let asked = Asked::new().await;
    let one = |image: &str| json!({"name": "c", "image": image});
    let template = |kind: &str, group: &str, pod: Value| {
        json!({"apiVersion": group, "kind": kind, "metadata": {"name": "cart"},
            "spec": {"template": {"spec": pod["spec"]}}})
    };
    let mut objects = vec![
        ("component", workload(EVIL)),
        ("second component", {
            let mut object = workload(GOOD);
            object["spec"]["components"]
                .as_array_mut()
                .unwrap()
                .push(json!({"name": "b", "image": EVIL}));
            object
        }),
        ("service", {
            let mut object = workload(GOOD);
            object["spec"]["service"] = json!({"image": EVIL});
            object
        }),
        ("artifact", {
            json!({"apiVersion": "runtime.wasmcloud.dev/v1alpha1", "kind": "Artifact",
                "metadata": {"name": "cart"}, "spec": {"image": EVIL}})
        }),
        ("status of an artifact", {
            json!({"apiVersion": "runtime.wasmcloud.dev/v1alpha1", "kind": "Artifact",
                "metadata": {"name": "cart"}, "spec": {"image": GOOD},
                "status": {"artifactUrl": EVIL}})
        }),
        ("spin application", {
            json!({"apiVersion": "core.spinkube.dev/v1alpha1", "kind": "SpinApp",
                "metadata": {"name": "cart"},
                "spec": {"image": EVIL, "executor": "containerd-shim-spin", "replicas": 1}})
        }),
        ("container", pod(&json!([one(EVIL)]))),
        ("second container", pod(&json!([one(GOOD), {"name": "d", "image": EVIL}]))),
    ];
    for list in ["initContainers", "ephemeralContainers"] {
        let mut object = pod(&json!([one(GOOD)]));
        object["spec"][list] = json!([{"name": "i", "image": EVIL}]);
        objects.push((list, object));
    }
    let mut volume = pod(&json!([one(GOOD)]));
    volume["spec"]["volumes"] = json!([{"name": "v", "image": {"reference": EVIL}}]);
    objects.push(("volume", volume));
    for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
        objects.push((kind, template(kind, "apps/v1", pod(&json!([one(EVIL)])))));
    }
    objects.push(("Job", template("Job", "batch/v1", pod(&json!([one(EVIL)])))));
    let job = template("Job", "batch/v1", pod(&json!([one(EVIL)])));
    objects.push((
        "CronJob",
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cart"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}}}),
    ));
    let rc = template("ReplicationController", "v1", pod(&json!([one(EVIL)])));
    objects.push(("ReplicationController", rc));
    for (name, object) in &objects {
        let answer = asked.validate(&review("CREATE", object, None)).await;
        assert!(!answer.allowed, "{name} was let through");
        assert!(answer.codes().contains(&"sign-policy".to_owned()), "{name}: {answer:?}");
        // The same with an image that is signed, so that it is the image that counts.
        let good: Value = serde_json::from_str(&object.to_string().replace(EVIL, GOOD)).unwrap();
        let answer = asked.validate(&review("CREATE", &good, None)).await;
        assert!(!answer.codes().contains(&"sign-policy".to_owned()), "{name}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_is_judged_by_what_it_brings() {
    let asked = Asked::new().await;
    let good = workload(GOOD);
    for (name, changed, allowed) in [
        ("image", workload(EVIL), false),
        (
            "label",
            {
                let mut o = good.clone();
                o["metadata"]["labels"]["x"] = json!("y");
                o
            },
            true,
        ),
    ] {
        let answer = asked.validate(&review("UPDATE", &changed, Some(&good))).await;
        assert_eq!(answer.allowed, allowed, "{name}: {answer:?}");
    }
    // What is stored and bad can still be cleaned up.
    let evil = workload(EVIL);
    let mut released = evil.clone();
    released["metadata"]["finalizers"] = json!([]);
    assert!(asked.validate(&review("UPDATE", &released, Some(&evil))).await.allowed);
    // But not have more added to it.
    let mut grown = evil.clone();
    grown["spec"]["components"][0]["localResources"] = json!({"allowedHosts": ["evil.example"]});
    assert!(!asked.validate(&review("UPDATE", &grown, Some(&evil))).await.allowed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_already_is_judged_again_where_its_class_changes() {
    let asked = Asked::new().await;
    let old = pod(&json!([{"name": "c", "image": EVIL}]));
    let mut debugged = old.clone();
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "d", "image": GOOD}]);
    let mut relabelled = debugged.clone();
    relabelled["metadata"]["labels"] = json!({"ambit.dev/class": "tool"});
    for (name, new, again) in [("debugged", debugged, false), ("relabelled", relabelled, true)] {
        let answer = asked.validate(&review("UPDATE", &new, Some(&old))).await;
        let judged = answer.codes().contains(&"sign-policy".to_owned());
        assert_eq!(judged, again, "{name}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn annotations_that_claim_a_verdict_count_for_nothing() {
    let asked = Asked::new().await;
    let mut object = workload(EVIL);
    object["metadata"]["annotations"] = json!({
        "ambit.dev/verdict": "allow",
        "ambit.dev/decision": "sha256:0",
        "kyverno.io/verify-images": "{\"docker.io/evil/x:latest\":\"pass\"}"
    });
    assert!(!asked.validate(&review("CREATE", &object, None)).await.allowed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_that_moves_after_it_was_pinned_changes_nothing() {
    let mut asked = Asked::new().await;
    let asked_for = review("CREATE", &workload(GOOD), None);
    let pinned = asked.mutate(&asked_for).await.patched.unwrap();
    let image = pinned["spec"]["components"][0]["image"].as_str().unwrap().to_owned();
    let digest = asked.world.digest("ghcr/example/x:1").unwrap().to_owned();
    assert_eq!(image, format!("{GOOD}@{digest}"));
    let bytes = std::fs::read(testdata("components/http-rogue.wasm")).unwrap();
    let moved = asked.world.push("ghcr/example/x:1", &bytes, Images::Unsigned).await;
    assert_ne!(moved, digest);
    let answer = asked.validate(&review("CREATE", &pinned, None)).await;
    assert!(!answer.codes().contains(&"sign-policy".to_owned()), "{answer:?}");
    // Whoever names the new one says what is judged, whatever the tag beside it says.
    let answer =
        asked.validate(&review("CREATE", &workload(&format!("{GOOD}@{moved}")), None)).await;
    assert!(answer.codes().contains(&"sign-policy".to_owned()), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_or_kind_that_does_not_fit_is_refused() {
    let asked = Asked::new().await;
    let good = pod(&json!([{"name": "c", "image": GOOD}]));
    let old = json!({"apiVersion": "apps/v1beta1", "kind": "Deployment",
        "metadata": {"name": "cart"}, "spec": {"template": {"spec": good["spec"]}}});
    let answer = asked.validate(&review("CREATE", &old, None)).await;
    assert_eq!(answer.codes(), ["review-object"], "{answer:?}");
    let mut other = review("CREATE", &workload(EVIL), None);
    other["request"]["object"]["kind"] = json!("Host");
    assert_eq!(asked.validate(&other).await.codes(), ["review-object"]);
    let mut none = review("CREATE", &workload(EVIL), None);
    none["request"]["object"] = Value::Null;
    assert_eq!(asked.validate(&none).await.codes(), ["review-object"]);
    let mut typo = workload(GOOD);
    typo["kind"] = json!("Worklod");
    assert_eq!(asked.validate(&review("CREATE", &typo, None)).await.codes(), ["grant-invalid"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registries_that_fail_deny_for_now_and_never_for_good() {
    use ambit_testing::registry::{Action, Fault};

    let world = World::start(Images::Signed).await;
    let issuer = Issuer::new();
    let folder = tempfile::tempdir().unwrap();
    let settings = world.settings(folder.path(), "");
    let asked_for = review("CREATE", &workload(GOOD), None);
    for status in [500, 503, 429] {
        world.registry.fault(Fault::each("GET", "*", Action::status(status)));
        let webhook = Webhook::start(&settings, &issuer).await;
        let answer = webhook.api.review("/validate?timeout=3s", &asked_for).await;
        assert_eq!(answer.status["code"], 429, "{status}: {answer:?}");
        world.registry.clear_faults();
        assert!(webhook.stop().await);
    }
    world.registry.clear_log();
    // One that never answers costs the time of one review, and the next finds what came of it.
    let webhook = Webhook::start(&settings, &issuer).await;
    world.registry.fault(Fault::each("GET", "*", Action::Hold));
    let answer = webhook.api.review("/validate?timeout=1s", &asked_for).await;
    assert_eq!(answer.status["code"], 429, "{answer:?}");
    assert_eq!(answer.codes(), ["component-unavailable"]);
    assert!(webhook.api.review("/mutate?timeout=1s", &asked_for).await.patched.is_none());
    world.registry.clear_faults();
    world.registry.release();
    let answer = webhook.api.review("/validate?timeout=30s", &asked_for).await;
    assert!(answer.allowed, "{answer:?}");
    assert_eq!(world.registry.count("GET", "/v2/ghcr/example/x/manifests/1"), 1);
    assert!(webhook.stop().await);
}
