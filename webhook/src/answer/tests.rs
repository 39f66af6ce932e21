use ambit_engine::digest::Digest;
use ambit_engine::workload::Place;

use super::*;
use crate::wire::{Kind, Operation, Resource, User, Version};

const MODES: [AdmissionMode; 3] =
    [AdmissionMode::Enforce, AdmissionMode::Warn, AdmissionMode::Audit];

fn request() -> Request {
    Request {
        uid: "u-1".to_owned(),
        kind: Kind {
            group: "runtime.wasmcloud.dev".to_owned(),
            version: "v1alpha1".to_owned(),
            kind: "Workload".to_owned(),
        },
        resource: Resource::default(),
        sub_resource: String::new(),
        name: "mail".to_owned(),
        namespace: "prod".to_owned(),
        operation: Operation::Create,
        user_info: User::default(),
        dry_run: None,
        object: None,
        old_object: None,
    }
}

fn manner(mode: AdmissionMode) -> Manner<'static> {
    Manner { mode, retry_after_seconds: None, configuration: "sha256:c" }
}

fn place() -> Place {
    Place { pointer: "/spec/components/0/image".to_owned(), span: None }
}

fn finding(code: &str, action: Action) -> Finding {
    Finding {
        code: code.to_owned(),
        rule: format!("baseline/{code}"),
        severity: "high".to_owned(),
        action,
        subject: "mail".to_owned(),
        message: format!("{code} is so"),
        help: "change it".to_owned(),
        place: place(),
        unjudged: false,
    }
}

fn error(code: &str) -> DecisionError {
    DecisionError {
        code: code.to_owned(),
        subject: "mail".to_owned(),
        message: "no answer".to_owned(),
        help: String::new(),
        place: place(),
    }
}

fn decision(verdict: Verdict, findings: Vec<Finding>, errors: Vec<DecisionError>) -> Decision {
    Decision {
        verdict,
        kind: "Workload".to_owned(),
        namespace: "prod".to_owned(),
        name: "mail".to_owned(),
        target: "wasmcloud".to_owned(),
        findings,
        errors,
        inputs: BTreeMap::from([("mail".to_owned(), "sha256:a".to_owned())]),
        packs: Vec::new(),
        decision_id: Digest::of(b"input"),
        place: Place::default(),
    }
}

/// A decision of each verdict, with a finding that denies unless it allows, one that warns and one
/// for the record.
fn of(verdict: Verdict) -> Decision {
    let told = [finding("told", Action::Warn), finding("noted", Action::Audit)];
    let denying = match verdict {
        Verdict::Allow | Verdict::Error => None,
        Verdict::Deny => Some(finding("bad", Action::Deny)),
    };
    let errors = if verdict == Verdict::Error { vec![error("no-bytes")] } else { Vec::new() };
    decision(verdict, denying.into_iter().chain(told).collect(), errors)
}

#[test]
fn mode_decides_whether_a_verdict_stands() {
    let (told, would) = ("warn[told]: told is so", "would deny[bad]: bad is so");
    let cases: [(Verdict, AdmissionMode, bool, &[&str]); 9] = [
        (Verdict::Allow, AdmissionMode::Enforce, false, &[told]),
        (Verdict::Allow, AdmissionMode::Warn, false, &[told]),
        (Verdict::Allow, AdmissionMode::Audit, false, &[]),
        (Verdict::Deny, AdmissionMode::Enforce, true, &[told]),
        (Verdict::Deny, AdmissionMode::Warn, false, &[would, told]),
        (Verdict::Deny, AdmissionMode::Audit, false, &[]),
        (Verdict::Error, AdmissionMode::Enforce, true, &[told]),
        (Verdict::Error, AdmissionMode::Warn, true, &[told]),
        (Verdict::Error, AdmissionMode::Audit, false, &[]),
    ];
    for (verdict, mode, denied, warnings) in cases {
        let answer = decided(&of(verdict), &request(), &manner(mode));
        let found = answer.denied.as_ref().map(|status| (status.code, status.reason));
        assert_eq!(found, denied.then_some((403, "Forbidden")), "{verdict:?} {mode:?}");
        assert_eq!(answer.warnings, warnings, "{verdict:?} {mode:?}");
        let recorded = answer.annotations.contains_key(MESSAGE);
        let watched = mode == AdmissionMode::Audit && verdict != Verdict::Allow;
        assert_eq!(recorded, watched, "{verdict:?} {mode:?}");
        assert!(answer.patch.is_empty(), "{verdict:?} {mode:?}");
    }
}

#[test]
fn denial_says_what_was_found_where_and_what_to_do() {
    let findings = vec![finding("bad", Action::Deny), finding("told", Action::Warn)];
    for (verdict, errors, message, causes) in [
        (
            Verdict::Deny,
            vec![],
            "Workload `prod/mail` is denied\n\
             [bad] (spec.components[0].image) bad is so; change it",
            vec![("bad", "bad is so; change it")],
        ),
        (
            Verdict::Error,
            vec![error("no-bytes")],
            "Workload `prod/mail` can't be judged, so it is denied\n\
             [no-bytes] (spec.components[0].image) no answer\n\
             [bad] (spec.components[0].image) bad is so; change it",
            vec![("no-bytes", "no answer"), ("bad", "bad is so; change it")],
        ),
    ] {
        let decision = decision(verdict, findings.clone(), errors);
        let status =
            decided(&decision, &request(), &manner(AdmissionMode::Enforce)).denied.unwrap();
        assert_eq!(status.message, message);
        let found: Vec<(&str, &str)> = status
            .details
            .causes
            .iter()
            .map(|cause| (cause.reason.as_str(), cause.message.as_str()))
            .collect();
        assert_eq!(found, causes);
        assert!(status.details.causes.iter().all(|c| c.field == "spec.components[0].image"));
        assert_eq!(status.details.name, "mail");
        assert_eq!(status.details.group, "runtime.wasmcloud.dev");
        assert_eq!(status.details.kind, "Workload");
    }
}

#[test]
fn object_without_a_name_is_called_so() {
    let mut decision = of(Verdict::Deny);
    decision.name.clear();
    let status = decided(&decision, &request(), &manner(AdmissionMode::Enforce)).denied.unwrap();
    assert!(status.message.starts_with("Workload `prod/(unnamed)` is denied\n"), "{status:?}");
}

#[test]
fn trying_again_is_offered_where_it_can_help() {
    let bad = || vec![finding("bad", Action::Deny)];
    let later = Some((429, "TooManyRequests", Some(5)));
    let never = Some((403, "Forbidden", None));
    for (verdict, findings, retry, expected) in [
        (Verdict::Error, vec![], Some(5), later),
        (Verdict::Error, vec![finding("told", Action::Warn)], Some(5), later),
        (Verdict::Error, vec![], None, never),
        // What is denied stays denied when the source answers.
        (Verdict::Error, bad(), Some(5), never),
        (Verdict::Deny, bad(), Some(5), never),
        (Verdict::Allow, vec![], Some(5), None),
    ] {
        let errors = if verdict == Verdict::Error { vec![error("late")] } else { vec![] };
        let decision = decision(verdict, findings, errors);
        let manner = Manner { retry_after_seconds: retry, ..manner(AdmissionMode::Enforce) };
        let denied = decided(&decision, &request(), &manner).denied;
        let found = denied.map(|s| (s.code, s.reason, s.details.retry_after_seconds));
        assert_eq!(found, expected, "{decision:?}");
    }
}

#[test]
fn long_denial_ends_with_how_many_more_there_are() {
    for (count, lines, causes, last) in [
        (8, 9, 8, "[bad-7] "),
        (9, 10, 9, "and 1 more; "),
        (64, 10, 64, "and 56 more; "),
        (65, 10, 64, "and 57 more; "),
    ] {
        let findings: Vec<Finding> =
            (0..count).map(|number| finding(&format!("bad-{number}"), Action::Deny)).collect();
        let decision = decision(Verdict::Deny, findings, vec![]);
        let status =
            decided(&decision, &request(), &manner(AdmissionMode::Enforce)).denied.unwrap();
        assert_eq!(status.message.lines().count(), lines, "{count}");
        let found = status.message.lines().next_back().unwrap();
        assert!(found.starts_with(last), "{count}: {found}");
        assert_eq!(status.details.causes.len(), causes, "{count}");
    }
}

#[test]
fn message_of_a_denial_is_bounded_and_clean() {
    let mut long = finding("bad", Action::Deny);
    long.message = format!("a\nb\t{}", "é".repeat(20_000));
    let decision = decision(Verdict::Deny, vec![long.clone(), long], vec![]);
    let status = decided(&decision, &request(), &manner(AdmissionMode::Enforce)).denied.unwrap();
    assert_eq!(status.message.chars().count(), MAX_MESSAGE);
    assert!(status.message.contains("a b é"), "control characters stay");
    for cause in &status.details.causes {
        assert_eq!(cause.message.chars().count(), MAX_MESSAGE);
        assert!(cause.message.starts_with("a b é"), "control characters stay");
    }
}

#[test]
fn every_answer_to_a_decision_goes_on_record() {
    for mode in MODES {
        let codes = vec![error("late"), error("early"), error("late")];
        let findings = vec![finding("bad", Action::Deny), finding("told", Action::Warn)];
        let decision = decision(Verdict::Error, findings, codes);
        let mut answer = decided(&decision, &request(), &manner(mode));
        let message = answer.annotations.remove(MESSAGE);
        assert_eq!(message.is_some(), mode == AdmissionMode::Audit);
        let expected = BTreeMap::from(
            [
                ("verdict", "error"),
                ("mode", mode.as_str()),
                ("decision-id", decision.decision_id.to_string().as_str()),
                ("configuration", "sha256:c"),
                ("codes", "bad,early,late"),
                ("digests", "mail=sha256:a"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        assert_eq!(answer.annotations, expected);
    }
    let mut decision = of(Verdict::Allow);
    decision.inputs.clear();
    let found = decided(&decision, &request(), &manner(AdmissionMode::Enforce)).annotations;
    let keys: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(keys, ["configuration", "decision-id", "mode", "verdict"]);
}

#[test]
fn key_of_an_annotation_has_no_slash() {
    let error = WireError { answerable: None, message: "a/b".to_owned() };
    let mut answers = vec![
        pass("a/b"),
        malformed(&error),
        unreadable(&request(), "review-object", "a/b", "a/b", "a/b"),
        later(&request(), "webhook-overload", "a/b", 1),
    ];
    for verdict in [Verdict::Allow, Verdict::Deny, Verdict::Error] {
        answers.extend(MODES.map(|mode| decided(&of(verdict), &request(), &manner(mode))));
    }
    for answer in answers {
        assert!(!answer.annotations.is_empty(), "{answer:?}");
        assert!(answer.annotations.keys().all(|key| !key.contains('/')), "{answer:?}");
    }
}

#[test]
fn what_is_not_judged_passes_with_its_reason() {
    let answer = pass("a status\nbrings no code");
    let annotations =
        BTreeMap::from([("skipped".to_owned(), "a status brings no code".to_owned())]);
    assert_eq!(answer, Answer { annotations, ..Answer::default() });
    let long = pass(&"é".repeat(5000));
    assert_eq!(long.annotations["skipped"].chars().count(), MAX_ANNOTATION);
}

#[test]
fn refusal_has_a_code_a_reason_and_a_cause() {
    let wire = WireError {
        answerable: Some((Version::V1, "u-1".to_owned())),
        message: "the request can't be read".to_owned(),
    };
    let (about, nothing) = (["mail", "runtime.wasmcloud.dev", "Workload"], ["", "", ""]);
    for (answer, code, reason, word, told, field, details, retry) in [
        (
            malformed(&wire),
            400,
            "BadRequest",
            "review-invalid",
            "the request can't be read",
            "",
            nothing,
            None,
        ),
        (
            unreadable(&request(), "review-object", "no object", "send one", "spec.a"),
            400,
            "BadRequest",
            "review-object",
            "no object; send one",
            "spec.a",
            about,
            None,
        ),
        (
            unreadable(&request(), "review-object", "no object", "", ""),
            400,
            "BadRequest",
            "review-object",
            "no object",
            "",
            about,
            None,
        ),
        (
            later(&request(), "webhook-overload", "too many", 3),
            429,
            "TooManyRequests",
            "webhook-overload",
            "too many; try again",
            "",
            about,
            Some(3),
        ),
    ] {
        let status = answer.denied.unwrap();
        assert_eq!((status.code, status.reason), (code, reason));
        assert_eq!(status.message, format!("[{word}] {told}"));
        let cause =
            Cause { reason: word.to_owned(), message: told.to_owned(), field: field.to_owned() };
        assert_eq!(status.details.causes, [cause]);
        let found = [status.details.name, status.details.group, status.details.kind];
        assert_eq!(found, details);
        assert_eq!(status.details.retry_after_seconds, retry);
        assert_eq!(answer.annotations["verdict"], "error");
        assert_eq!(answer.annotations["codes"], word);
        assert!(answer.warnings.is_empty() && answer.patch.is_empty());
    }
}

#[test]
fn who_only_watches_is_told_nothing_and_finds_it_on_record() {
    let mut refused = later(&request(), "webhook-overload", "too many\tnow", 3);
    refused.warnings.push(notice("told", "so"));
    watched(&mut refused);
    let annotations = [
        ("codes", "webhook-overload"),
        ("message", "[webhook-overload] too many now; try again"),
        ("verdict", "error"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let annotations = BTreeMap::from(annotations);
    assert_eq!(refused, Answer { annotations, ..Answer::default() });
    let mut long = unreadable(&request(), "review-object", &"é".repeat(5000), "", "");
    watched(&mut long);
    assert_eq!(long.annotations["message"].chars().count(), MAX_ANNOTATION);
    let mut passed = pass("a status brings no code");
    watched(&mut passed);
    assert_eq!(passed, pass("a status brings no code"));
}

#[test]
fn help_for_the_command_line_is_left_out() {
    for (code, told) in [
        ("artifact-unresolved", "no answer"),
        ("component-unavailable", "no answer"),
        ("no-bytes", "no answer; give a file"),
    ] {
        let mut error = error(code);
        error.help = "give a file".to_owned();
        let decision = decision(Verdict::Error, vec![], vec![error]);
        let status =
            decided(&decision, &request(), &manner(AdmissionMode::Enforce)).denied.unwrap();
        assert_eq!(status.details.causes[0].message, told, "{code}");
        assert!(status.message.ends_with(told), "{status:?}");
    }
}

#[test]
fn warning_is_bounded_and_clean_and_begins_with_its_code() {
    let (short, long) = ("é".repeat(100), "é".repeat(1000));
    for (message, expected) in [
        ("plain", "warn[told]: plain".to_owned()),
        ("a\r\nb\u{7f}\u{85}c", "warn[told]: a  b  c".to_owned()),
        (short.as_str(), format!("warn[told]: {short}")),
        (long.as_str(), format!("warn[told]: {}…", "é".repeat(107))),
    ] {
        assert_eq!(notice("told", message), expected);
        let mut finding = finding("told", Action::Warn);
        finding.message = message.to_owned();
        let decision = decision(Verdict::Allow, vec![finding], vec![]);
        let answer = decided(&decision, &request(), &manner(AdmissionMode::Enforce));
        assert_eq!(answer.warnings, [expected.as_str()]);
        assert!(expected.chars().count() <= MAX_WARNING);
    }
}

#[test]
fn warnings_are_few_and_each_is_told_once() {
    for (count, shown, last) in [
        (1, 1, "warn[told-0]: told-0 is so"),
        (30, 30, "warn[told-29]: told-29 is so"),
        (31, 30, "and 2 more; `ambit check` on the same object tells them all"),
        (100, 30, "and 71 more; `ambit check` on the same object tells them all"),
    ] {
        let once = (0..count).map(|number| finding(&format!("told-{number}"), Action::Warn));
        let findings = once.clone().chain(once).collect();
        let decision = decision(Verdict::Allow, findings, vec![]);
        let warnings = decided(&decision, &request(), &manner(AdmissionMode::Enforce)).warnings;
        assert_eq!(warnings.len(), shown, "{count}");
        assert!(warnings.len() <= MAX_WARNINGS);
        assert_eq!(warnings.last().map(String::as_str), Some(last), "{count}");
    }
}

#[test]
fn text_is_cut_between_characters() {
    for (text, max, expected) in [
        ("", 3, ""),
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("äöü", 3, "äöü"),
        ("äöüß", 3, "äö…"),
        ("日本語文", 2, "日…"),
        ("🦀🦀", 1, "…"),
        ("a\0b\u{1b}[c", 9, "a b [c"),
        ("a\u{9f}b\nc", 4, "a b…"),
    ] {
        assert_eq!(clean(text, max), expected, "{text:?} {max}");
    }
}

#[test]
fn pointer_is_written_as_kubernetes_writes_fields() {
    for (pointer, expected) in [
        ("", ""),
        ("/spec", "spec"),
        ("/spec/components/0/image", "spec.components[0].image"),
        ("/spec/a/10/20", "spec.a[10][20]"),
        ("/metadata/annotations/example.com~1class", "metadata.annotations[example.com/class]"),
        ("/metadata/labels/team", "metadata.labels.team"),
        ("/spec/a~0b", "spec.a~b"),
        ("/spec/a~01b", "spec.a~1b"),
        ("/spec/0a", "spec.0a"),
        ("/0", "[0]"),
    ] {
        assert_eq!(field(pointer), expected, "{pointer}");
    }
}
