//! Planted secrets turn up in no error, whatever a registry answers.

use std::sync::Arc;

use ambit_testing::registry::{Action, Anonymous, Auth, Bearer, Fault, Options, Registry};
use ambit_trust::oci::Descriptor;
use ambit_trust::registry::credentials::Credentials;
use ambit_trust::registry::{self, Client};
use ambit_trust::store::Store as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::{options, repository, store_with, tag};

const PASSWORD: &str = "pl4nted-p4ssw0rd";
const IDENTITY: &str = "pl4nted-identity";
const TOKEN: &str = "pl4nted-t0ken";

#[tokio::test]
async fn planted_secrets_are_in_no_error() {
    let encoded = STANDARD.encode(format!("user:{PASSWORD}"));
    let secrets = [PASSWORD, IDENTITY, TOKEN, encoded.as_str()];
    let bearer = Auth::Bearer(Bearer {
        password: PASSWORD.to_owned(),
        identity: IDENTITY.to_owned(),
        anonymous: Anonymous::Nothing,
        ..Bearer::default()
    });
    let basic = Auth::Basic { user: "user".to_owned(), password: PASSWORD.to_owned() };
    let mut shown = Vec::new();
    for auth in [basic, bearer] {
        let registry = Registry::start(Options { auth, ..Options::default() }).await;
        let host = registry.host();
        // Each secret is known to the client; which one is for this registry differs.
        let entries = [
            format!(r#"{{"auth": "{encoded}"}}"#),
            format!(r#"{{"identitytoken": "{IDENTITY}"}}"#),
        ];
        for (own, other) in [(0, 1), (1, 0)] {
            let (own, other) = (&entries[own], &entries[other]);
            let config = format!(r#"{{"auths": {{"{host}": {own}, "other.example": {other}}}}}"#);
            let credentials = Credentials::default().with_docker_config("c", config.as_bytes());
            let credentials = Arc::new(credentials.expect("a configuration"));
            shown.push(format!("{credentials:?}"));
            let found = credentials.find(&repository(&host)).await.expect("an answer");
            shown.push(format!("{found:?}"));
            let options = registry::Options { credentials, ..options() };
            shown.push(format!("{options:?}"));
            let client = Client::new(options.clone()).expect("options");
            shown.push(format!("{client:?}"));
            for action in actions(&secrets) {
                for path in ["/v2/*", "/token"] {
                    registry.clear_faults();
                    registry.fault(Fault::each("*", path, action.clone()));
                    let store = store_with(&registry, options.clone());
                    shown.push(format!("{store:?}"));
                    let blob = Descriptor::of("application/wasm", b"x");
                    let errors = [
                        store.manifest(&tag("1")).await.err(),
                        // Once more, now that it is known what is asked for.
                        store.manifest(&tag("1")).await.err(),
                        store.blob(&blob, 10).await.err(),
                        store.referrers(&blob.digest).await.err(),
                        store.push_blob("application/wasm", b"x").await.err(),
                    ];
                    for error in errors.into_iter().flatten() {
                        shown.push(format!("{error} {error:?} {}", error.help()));
                    }
                }
            }
        }
    }
    assert!(shown.len() > 300, "{}", shown.len());
    for text in shown {
        for secret in secrets {
            assert!(!text.contains(secret) && !text.contains("xpl4nted"), "{text}");
        }
    }
}

/// Answers that repeat what a registry may know by then.
fn actions(secrets: &[&str]) -> Vec<Action> {
    let mut actions = Vec::new();
    let all = secrets.join(" ");
    let token = format!(r#"{{"token": "{TOKEN}"}}"#);
    actions.push(Action::body("application/json", token.as_bytes()));
    for secret in &secrets[..2] {
        let text = format!("denied: {secret}");
        // At the cut of what is shown, no part of it may be left either.
        let body = format!("{}{secret}", "x".repeat(190)).into_bytes();
        actions.push(Action::Answer { status: 400, headers: Vec::new(), body });
        for status in [400, 401, 403, 500] {
            let body = text.clone().into_bytes();
            actions.push(Action::Answer { status, headers: Vec::new(), body });
        }
    }
    actions.push(Action::status_with(401, "www-authenticate", "Basic realm=\"x\""));
    for secret in &secrets[..2] {
        actions.push(Action::header("content-type", secret));
        actions.push(Action::body(secret, b"{}"));
        actions.push(Action::redirect(&format!("https://{secret}.example/")));
        actions.push(Action::redirect(&format!("https://10.0.0.1/{secret}")));
        actions.push(Action::redirect(&format!("ftp://{secret}/{secret}")));
        let realm = format!("Bearer realm=\"https://{secret}.example/{secret}\"");
        actions.push(Action::status_with(401, "www-authenticate", &realm));
        let body = format!(r#"{{"{secret}": 1, "{secret}": 2, "mediaType": "{secret}"}}"#);
        actions.push(Action::body("application/vnd.oci.image.index.v1+json", body.as_bytes()));
    }
    for to in ["https://10.0.0.1/", "https://nowhere.example/"] {
        actions.push(Action::redirect(&format!("{to}?signature={}", all.replace(' ', "+"))));
    }
    actions
}
