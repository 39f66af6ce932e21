//! Components that run to their end.

mod common;

use std::sync::Arc;

use ambit_engine::workload::Private;
use ambit_executor::services::Values;
use ambit_executor::{ExecutorError, run_command};
use common::{bare, hello, manifest, one, sample};

#[tokio::test]
async fn a_command_runs_to_its_end() {
    let run = bare("hello", &hello());
    let outcome = run_command(run.program(), &run.stdio).await.expect("it runs");
    assert_eq!(outcome.status, 0);
    assert_eq!(run.printed(), "hello\n");
}

#[test]
fn bytes_that_were_not_admitted_are_refused() {
    let mut other = hello();
    other.push(0);
    match common::try_bare("hello", &hello(), &other) {
        Err(ExecutorError::Digest { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_secret_of_the_operator_reaches_the_component_and_nothing_of_the_process_does() {
    let resources = "      environment: {secretFrom: [{name: api}]}";
    let bytes = sample("env-reader.wasm");
    let text = one("reader", resources, "");
    let run = manifest(&text, &[("reader", &bytes)], |setup| {
        let secret = Private::new("from-the-operator");
        setup.values = Arc::new(Values::builder().secret("api", "API_TOKEN", &secret).build());
    });
    run_command(run.program(), &run.stdio).await.expect("it runs");
    assert!(run.printed().contains("token is set"), "{}", run.printed());
    assert!(!format!("{:?}", run.record.effects()).contains("from-the-operator"));
    match common::try_manifest(&text, &[("reader", &bytes)], |_| {}) {
        Err(error) => {
            assert_eq!(error.code(), "value-missing");
            assert!(error.to_string().contains("workload.yaml:"), "{error}");
        }
        Ok(_) => panic!("it runs without the Secret"),
    }
    let run = bare("reader", &bytes);
    run_command(run.program(), &run.stdio).await.expect("it runs");
    assert!(!run.printed().contains("token is set"), "{}", run.printed());
}

#[tokio::test]
async fn a_folder_of_the_manifest_is_read_and_on_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("its path");
    std::fs::write(real.join("input.txt"), "from the folder").expect("a file");
    let rest = format!("  volumes: [{{name: data, hostPath: {{path: {}}}}}]", real.display());
    let resources = "      volumeMounts: [{name: data, mountPath: /data, readOnly: true}]";
    let bytes = sample("file-reader.wasm");
    let run = manifest(&one("reader", resources, &rest), &[("reader", &bytes)], |_| {});
    run_command(run.program(), &run.stdio).await.expect("it runs");
    assert!(run.printed().contains("from the folder"), "{}", run.printed());
    let effects = run.record.effects();
    assert!(
        effects.iter().any(|e| e.subject == "/data/input.txt" && e.denied.is_none()),
        "{effects:#?}"
    );
}

#[tokio::test]
async fn a_read_only_folder_is_not_written_and_the_record_says_who_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("its path");
    let rest = format!("  volumes: [{{name: out, hostPath: {{path: {}}}}}]", real.display());
    let bytes = sample("file-writer.wasm");
    let read_only = "      volumeMounts: [{name: out, mountPath: /out, readOnly: true}]";
    let run = manifest(&one("writer", read_only, &rest), &[("writer", &bytes)], |_| {});
    let _ended = run_command(run.program(), &run.stdio).await;
    assert_eq!(std::fs::read_dir(&real).expect("the folder").count(), 0);
    let effects = run.record.effects();
    let denied = effects.iter().find(|e| e.denied.is_some()).expect("a denial");
    assert_eq!(denied.denied.as_deref(), Some("folder-read-only"));
    assert!(denied.why.contains("workload.yaml:"), "{}", denied.why);

    let read_write = "      volumeMounts: [{name: out, mountPath: /out}]";
    let run = manifest(&one("writer", read_write, &rest), &[("writer", &bytes)], |_| {});
    run_command(run.program(), &run.stdio).await.expect("it runs");
    assert_eq!(std::fs::read_dir(&real).expect("the folder").count(), 1);
}

#[tokio::test]
async fn the_real_c_rust_and_javascript_guests_run() {
    for name in ["linked-not-called.wasm", "rust-std-hello.wasm", "pair-mem.wasm", "hello.wasm"] {
        let run = bare("guest", &sample(name));
        if run.program().kind() == ambit_executor::Kind::Command {
            run_command(run.program(), &run.stdio).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}
