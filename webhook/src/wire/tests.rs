use serde_json::{Value, json};

use super::*;

const V1: &str = "admission.k8s.io/v1";

const REQUEST: &str = r#"{
    "uid": "u-1",
    "kind": {"group": "runtime.wasmcloud.dev", "version": "v1alpha1", "kind": "Workload"},
    "resource": {"group": "runtime.wasmcloud.dev", "version": "v1alpha1", "resource": "workloads"},
    "requestKind": {"group": "other", "version": "v1", "kind": "Other"},
    "subResource": "status",
    "name": "mail",
    "namespace": "prod",
    "operation": "UPDATE",
    "userInfo": {"username": "ada", "groups": ["staff"], "uid": "7"},
    "dryRun": true,
    "object": {"b": 1,  "a": "\u00e9"},
    "oldObject": {"b": 0},
    "options": {"kind": "UpdateOptions"}
}"#;

fn body(api_version: &str, request: &str) -> String {
    format!(r#"{{"apiVersion":"{api_version}","kind":"AdmissionReview","request":{request}}}"#)
}

fn with_uid(uid: &str) -> String {
    body(V1, &REQUEST.replace("u-1", uid))
}

/// Returns what an API server reads.
fn sent(version: Version, answer: &Answer) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(&encode(version, "u-1", answer)?)
}

fn denial() -> Status {
    let cause = Cause {
        reason: "image-digest-pin".to_owned(),
        message: "named by tag".to_owned(),
        field: "spec.image".to_owned(),
    };
    Status {
        code: 403,
        reason: "Forbidden",
        message: "Workload `prod/mail` is denied".to_owned(),
        details: Details {
            name: "mail".to_owned(),
            causes: vec![cause],
            retry_after_seconds: Some(5),
            ..Details::default()
        },
    }
}

#[test]
fn reviews_of_both_versions_are_read() {
    for (api_version, version) in
        [("admission.k8s.io/v1", Version::V1), ("admission.k8s.io/v1beta1", Version::V1Beta1)]
    {
        let review = decode(body(api_version, REQUEST).as_bytes()).unwrap();
        assert_eq!(review.version, version);
        let request = review.request;
        assert_eq!(request.uid, "u-1");
        assert_eq!(request.kind.api_version(), "runtime.wasmcloud.dev/v1alpha1");
        assert_eq!(request.kind.kind, "Workload");
        assert_eq!(request.resource.resource, "workloads");
        assert_eq!(request.sub_resource, "status");
        assert_eq!((request.namespace.as_str(), request.name.as_str()), ("prod", "mail"));
        assert_eq!(request.operation, Operation::Update);
        assert_eq!(request.user_info.username, "ada");
        assert_eq!(request.user_info.groups, ["staff"]);
        assert_eq!(request.dry_run, Some(true));
        // Its digest is over the text as it was sent.
        let object = request.object.unwrap();
        assert_eq!(object.get(), r#"{"b": 1,  "a": "\u00e9"}"#);
        assert_eq!(request.old_object.unwrap().get(), r#"{"b": 0}"#);
    }
}

#[test]
fn what_a_request_may_lack_is_empty() {
    let request = r#"{"uid":"u-1","kind":{"version":"v1","kind":"Pod"},
        "resource":{"resource":"pods"},"operation":"DELETE","object":null}"#;
    let request = decode(body(V1, request).as_bytes()).unwrap().request;
    assert_eq!(request.kind.api_version(), "v1");
    assert_eq!(request.operation, Operation::Delete);
    assert_eq!(request.resource, Resource { resource: "pods".to_owned(), ..Resource::default() });
    assert_eq!([request.name, request.namespace, request.sub_resource], ["", "", ""]);
    assert_eq!(request.user_info, User::default());
    assert_eq!(request.dry_run, None);
    assert!(request.object.is_none() && request.old_object.is_none());
}

#[test]
fn every_operation_has_its_word() {
    for (word, operation) in [
        ("CREATE", Operation::Create),
        ("UPDATE", Operation::Update),
        ("DELETE", Operation::Delete),
        ("CONNECT", Operation::Connect),
    ] {
        let request = REQUEST.replace("UPDATE", word);
        let review = decode(body(V1, &request).as_bytes()).unwrap();
        assert_eq!(review.request.operation, operation);
        assert_eq!(operation.as_str(), word);
    }
}

#[test]
fn what_is_no_review_is_answered_where_it_can_be() {
    let unknown = |from: &str, to: &str| body(V1, REQUEST).replace(from, to);
    let v1 = Some((Version::V1, "u-1"));
    for (text, answerable, words) in [
        (String::new(), None, "no AdmissionReview"),
        ("{".to_owned(), None, "no AdmissionReview"),
        ("\"text\"".to_owned(), None, "no AdmissionReview"),
        (format!("{} {{}}", body(V1, REQUEST)), None, "no AdmissionReview"),
        (unknown("\"dryRun\": true", "\"dryRun\": tru"), None, "no AdmissionReview"),
        ("{}".to_owned(), None, "is no review"),
        (body("admission.k8s.io/v2", REQUEST), None, "`admission.k8s.io/v2 AdmissionReview`"),
        (body("v1", REQUEST), None, "`v1 AdmissionReview`"),
        (unknown("AdmissionReview", "Review"), None, "`admission.k8s.io/v1 Review`"),
        (unknown(":\"AdmissionReview\"", ":\"\""), None, "`admission.k8s.io/v1 `"),
        (body(V1, "null"), None, "has no request"),
        (unknown("\"request\"", "\"requests\""), None, "has no request"),
        (body(V1, "\"text\""), None, "the request can't be read"),
        (unknown("\"uid\": \"u-1\",", ""), None, "missing field `uid`"),
        (unknown("\"u-1\"", "1"), None, "the request can't be read"),
        (with_uid(""), None, "no `uid`"),
        (with_uid(&"u".repeat(129)), None, "no `uid`"),
        (body(V1, r#"{"uid":"u-1"}"#), v1, "missing field"),
        (unknown("\"UPDATE\"", "\"update\""), v1, "`update`"),
        (unknown("\"dryRun\": true", "\"dryRun\": 1"), v1, "the request can't be read"),
        (unknown("\"name\": \"mail\"", "\"name\": []"), v1, "the request can't be read"),
        (
            body("admission.k8s.io/v1beta1", &REQUEST.replace("UPDATE", "PATCH")),
            Some((Version::V1Beta1, "u-1")),
            "`PATCH`",
        ),
    ] {
        let error = decode(text.as_bytes()).expect_err(&text);
        let found = error.answerable.as_ref().map(|(version, uid)| (*version, uid.as_str()));
        assert_eq!(found, answerable, "{text}: {error}");
        assert_eq!(error.code(), "review-invalid", "{text}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

#[test]
fn bytes_that_are_no_text_are_no_review() {
    let mut bytes = body(V1, REQUEST).into_bytes();
    let place = bytes.iter().position(|byte| *byte == b'm').unwrap();
    bytes[place] = 0xff;
    let error = decode(&bytes).unwrap_err();
    assert_eq!(error.answerable, None);
    assert_eq!(error.message, "the body is no UTF-8 text");
}

#[test]
fn longest_uid_is_repeated() {
    let uid = "u".repeat(128);
    let review = decode(with_uid(&uid).as_bytes()).unwrap();
    assert_eq!(review.request.uid, uid);
}

#[test]
fn unknown_version_is_repeated_in_part() {
    let error = decode(body(&"é".repeat(5000), REQUEST).as_bytes()).unwrap_err();
    assert!(error.message.contains(&format!("`{} ", "é".repeat(80))), "{error}");
    assert!(!error.message.contains(&"é".repeat(81)), "{error}");
}

#[test]
fn nesting_is_neither_followed_nor_lost() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    // What isn't looked at is as deep as it likes; whoever reads the object has a limit.
    let request = REQUEST.replace(r#"{"b": 0}"#, &deep);
    let review = decode(body(V1, &request).as_bytes()).unwrap();
    assert!(review.request.old_object.unwrap().get() == deep);
    let request = REQUEST.replace(r#"{"kind": "UpdateOptions"}"#, &deep);
    assert_eq!(decode(body(V1, &request).as_bytes()).unwrap().request.uid, "u-1");
    // In place of a text it is refused, with an answer where the `uid` is known.
    for (request, answerable) in [
        (REQUEST.replace("\"mail\"", &deep), Some((Version::V1, "u-1".to_owned()))),
        (REQUEST.replace("\"u-1\"", &deep), None),
        ("[".repeat(100_000), None),
    ] {
        let error = decode(body(V1, &request).as_bytes()).unwrap_err();
        assert_eq!(error.answerable, answerable, "{error}");
        assert_eq!(error.code(), "review-invalid");
    }
}

#[test]
fn allowance_has_the_version_and_uid_of_its_review_and_nothing_else() {
    for version in [Version::V1, Version::V1Beta1] {
        assert_eq!(
            sent(version, &Answer::default()).unwrap(),
            json!({
                "apiVersion": version.as_str(),
                "kind": "AdmissionReview",
                "response": {"uid": "u-1", "allowed": true}
            })
        );
    }
}

#[test]
fn denial_has_a_code_a_reason_and_a_message() {
    for version in [Version::V1, Version::V1Beta1] {
        let answer = Answer {
            denied: Some(denial()),
            warnings: vec!["warn[a]: b".to_owned()],
            annotations: BTreeMap::from([("verdict".to_owned(), "deny".to_owned())]),
            // Nothing is changed in what isn't stored.
            patch: vec![Replace::new("/spec/image", "mail@sha256:1".to_owned())],
        };
        assert_eq!(
            sent(version, &answer).unwrap(),
            json!({
                "apiVersion": version.as_str(),
                "kind": "AdmissionReview",
                "response": {
                    "uid": "u-1",
                    "allowed": false,
                    "status": {
                        "code": 403,
                        "reason": "Forbidden",
                        "message": "Workload `prod/mail` is denied",
                        "details": {
                            "name": "mail",
                            "causes": [{
                                "reason": "image-digest-pin",
                                "message": "named by tag",
                                "field": "spec.image"
                            }],
                            "retryAfterSeconds": 5
                        }
                    },
                    "warnings": ["warn[a]: b"],
                    "auditAnnotations": {"verdict": "deny"}
                }
            })
        );
    }
}

#[test]
fn patch_is_json_patch_and_says_so() {
    for version in [Version::V1, Version::V1Beta1] {
        let answer = Answer {
            patch: vec![
                Replace::new("/spec/images/0", "mail@sha256:1".to_owned()),
                Replace::new("/metadata/annotations/a~1b", "post@sha256:2".to_owned()),
            ],
            ..Answer::default()
        };
        let response = sent(version, &answer).unwrap()["response"].clone();
        assert_eq!(response["allowed"], true);
        assert_eq!(response["patchType"], "JSONPatch");
        let bytes = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&bytes).unwrap();
        let mut object = json!({
            "metadata": {"annotations": {"a/b": "post"}},
            "spec": {"images": ["mail", "post"]}
        });
        json_patch::patch(&mut object, &patch).unwrap();
        let expected = json!({
            "metadata": {"annotations": {"a/b": "post@sha256:2"}},
            "spec": {"images": ["mail@sha256:1", "post"]}
        });
        assert_eq!(object, expected);
    }
}
