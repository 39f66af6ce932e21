use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::kept::Turn;
use crate::settings::Sources;

fn service(at_once: usize, settings: Settings) -> Service {
    let (log, _writer) = Log::to(std::io::sink());
    Service::new(Arc::new(settings), log, at_once)
}

fn review() -> Vec<u8> {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mail"}});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "mail",
            "namespace": "post",
            "operation": "CREATE",
            "userInfo": {"username": "alice"},
            "object": pod
        }
    });
    review.to_string().into_bytes()
}

async fn answered(service: &Service, body: &[u8]) -> (u16, Value) {
    let reply = service.answer(Hook::Validate, Some("3s"), body, Arrival::now()).await;
    (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
}

#[test]
fn durations_are_read_as_go_writes_them() {
    for (text, expected) in [
        ("3s", Some(3000)),
        ("10s", Some(10_000)),
        ("1500ms", Some(1500)),
        ("1m30s", Some(90_000)),
        ("", None),
        ("0s", None),
        ("3", None),
        ("s", None),
        ("-3s", None),
        ("1.5s", None),
        ("3h", None),
        ("3s ", None),
        ("99999999999999999999s", None),
        ("18446744073709551615m", None),
        ("18446744073709551615s1s", None),
    ] {
        assert_eq!(duration(text), expected.map(Duration::from_millis), "{text:?}");
    }
}

#[test]
fn a_review_ends_before_an_api_server_stops_waiting() {
    let (started, now) = (Instant::now(), Timestamp::UNIX_EPOCH);
    for (timeout, whole, last) in [
        (None, 9000, 9500),
        (Some("nonsense"), 9000, 9500),
        (Some("100ms"), 50, 75),
        (Some("500ms"), 250, 375),
        (Some("1s"), 500, 750),
        (Some("3s"), 2000, 2500),
        (Some("30s"), 29_000, 29_500),
        (Some("60s"), 29_000, 29_500),
    ] {
        let found = budget(timeout, started, now);
        let after = |time: Instant| time.duration_since(started).as_millis();
        assert_eq!((after(found.deadline), after(found.last)), (whole, last), "{timeout:?}");
        assert_eq!(found.whole.as_millis(), whole);
    }
}

#[test]
fn kinds_that_nobody_knows_are_counted_together() {
    for kind in ["workload", "", "Secret", "Workload\n"] {
        assert_eq!(known_kind(kind), "other");
    }
}

#[test]
fn every_kind_that_can_be_judged_is_counted_by_its_name() {
    for kind in [
        "Artifact",
        "CronJob",
        "DaemonSet",
        "Deployment",
        "HTTPTrigger",
        "Job",
        "Pod",
        "PodTemplate",
        "ReplicaSet",
        "ReplicationController",
        "SpinApp",
        "StatefulSet",
        "Workload",
        "WorkloadDeployment",
        "WorkloadReplicaSet",
    ] {
        assert_eq!(known_kind(kind), kind);
    }
}

#[tokio::test]
async fn without_a_configuration_everything_is_refused() {
    let absent = Sources { config: Some(PathBuf::from("/nowhere.yaml")), ..Sources::default() };
    let settings = Settings::new(absent);
    assert!(matches!(settings.turn(), Turn::Bad(_)));
    let (status, answer) = answered(&service(1, settings), &review()).await;
    assert_eq!((status, &answer["response"]["uid"]), (200, &json!("u-1")));
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["code"], 429);
    let cause = &answer["response"]["status"]["details"]["causes"][0];
    assert_eq!(cause["reason"], "webhook-not-ready");
}

#[tokio::test]
async fn what_is_over_the_limit_is_refused_at_once() {
    let settings = Settings::new(Sources::default());
    assert!(matches!(settings.turn(), Turn::New(_)));
    let (_, answer) = answered(&service(0, settings), &review()).await;
    let status = &answer["response"]["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(429), &json!("TooManyRequests")));
    assert_eq!(status["details"]["causes"][0]["reason"], "webhook-overload");
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn what_is_no_review_is_answered_as_far_as_it_can_be() {
    let service = service(1, Settings::new(Sources::default()));
    let (status, answer) = answered(&service, b"not a review").await;
    assert_eq!((status, answer), (400, Value::Null));
    let half = br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u-2"}}"#;
    let (status, answer) = answered(&service, half).await;
    assert_eq!((status, &answer["response"]["uid"]), (200, &json!("u-2")));
    assert_eq!(answer["response"]["status"]["code"], 400);
    let cause = &answer["response"]["status"]["details"]["causes"][0];
    assert_eq!(cause["reason"], "review-invalid");
}

#[tokio::test]
async fn an_operator_who_only_watches_refuses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("ambit.yaml");
    std::fs::write(&config, "webhook: {mode: audit}\n").unwrap();
    let settings = Settings::new(Sources { config: Some(config), ..Sources::default() });
    assert!(matches!(settings.turn(), Turn::New(_)));
    let service = service(0, settings);
    let half = br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u-2"}}"#;
    for (body, code) in [(&review()[..], "webhook-overload"), (&half[..], "review-invalid")] {
        let (_, answer) = answered(&service, body).await;
        let response = &answer["response"];
        assert_eq!(response["allowed"], true, "{response}");
        assert_eq!(response["auditAnnotations"]["codes"], code);
        assert!(response["auditAnnotations"]["message"].as_str().unwrap().contains(code));
    }
}

#[test]
fn a_configuration_that_cannot_be_used_leaves_the_old_one_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("ambit.yaml");
    let write = |text: &str| std::fs::write(&config, text).unwrap();
    let settings = Settings::new(Sources { config: Some(config.clone()), ..Sources::default() });
    write("webhook: {mode: warn}\n");
    assert!(matches!(settings.turn(), Turn::New(_)));
    assert!(matches!(settings.turn(), Turn::Same));
    let first = settings.kept.current().unwrap().digest.clone();
    write("webhook: {mode: loose}\n");
    let Turn::Bad(failure) = settings.turn() else { panic!("it is taken") };
    let line = crate::log::told(&failure);
    for part in ["ambit.yaml", "`loose` is no mode", "write `enforce`, `warn` or `audit`"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(line.ends_with("[config-field]"), "{line}");
    assert_eq!(settings.kept.current().unwrap().digest, first);
    assert_eq!((settings.kept.count(), settings.kept.problem()), (1, Some(failure)));
    write("webhook: {mode: audit}\n");
    assert!(matches!(settings.turn(), Turn::New(_)));
    assert_eq!((settings.kept.count(), settings.kept.problem()), (2, None));
}

#[tokio::test]
async fn bodies_wait_until_there_is_room() {
    let service = service(1, Settings::new(Sources::default()));
    let whole = u64::try_from(MAX_BODIES_BYTES).unwrap();
    assert!(service.room(whole + 1).await.is_none());
    assert!(service.room(u64::MAX).await.is_none());
    let held = service.room(whole).await.unwrap();
    let mut waiting = std::pin::pin!(service.room(1));
    let first = tokio::select! {
        biased;
        _ = &mut waiting => "room",
        () = tokio::task::yield_now() => "none",
    };
    assert_eq!(first, "none");
    drop(held);
    assert!(waiting.await.is_some());
}
