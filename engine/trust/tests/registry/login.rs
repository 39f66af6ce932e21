//! Passwords and tokens: who gets them, how often, and what when they don't do.

use std::sync::Arc;
use std::time::Duration;

use ambit_testing::registry::{
    Action, Anonymous, Auth, Bearer, Fault, Nth, Options, Realm, Registry,
};
use ambit_trust::oci::Descriptor;
use ambit_trust::registry;
use ambit_trust::registry::credentials::Credentials;
use ambit_trust::store::Store as _;

use crate::support::{
    FakeTimer, PATH, code, login, options, put, store, store_with, tag, with_login,
};

fn bearer(bearer: Bearer) -> Options {
    Options { auth: Auth::Bearer(bearer), ..Options::default() }
}

fn private() -> Bearer {
    Bearer { anonymous: Anonymous::Nothing, ..Bearer::default() }
}

fn basic() -> Options {
    let auth = Auth::Basic { user: "user".to_owned(), password: "password".to_owned() };
    Options { auth, ..Options::default() }
}

#[tokio::test]
async fn password_is_sent_once_it_is_asked_for() {
    let registry = Registry::start(basic()).await;
    put(&registry, "1");
    let store = store_with(&registry, with_login(&registry, "user", "password"));
    assert!(store.manifest(&tag("1")).await.is_ok());
    let sent: Vec<bool> =
        registry.log().iter().map(|logged| logged.header("authorization").is_some()).collect();
    assert_eq!(sent, [false, true]);
    assert!(store.manifest(&tag("1")).await.is_ok());
    assert_eq!(registry.log().len(), 3, "the second call knows what is asked for");
}

#[tokio::test]
async fn wrong_or_missing_password_is_an_error() {
    let registry = Registry::start(basic()).await;
    put(&registry, "1");
    let wrong = store_with(&registry, with_login(&registry, "user", "wrong"));
    assert_eq!(code(wrong.manifest(&tag("1")).await), "registry-auth");
    assert_eq!(registry.log().len(), 2);
    assert_eq!(code(wrong.manifest(&tag("1")).await), "registry-auth");
    assert_eq!(registry.log().len(), 3, "the same password isn't sent twice");
    assert_eq!(code(store(&registry).manifest(&tag("1")).await), "registry-auth");
}

#[tokio::test]
async fn tokens_are_fetched_kept_and_renewed() {
    let registry = Registry::start(bearer(private())).await;
    put(&registry, "1");
    let timer = FakeTimer::new();
    let options = registry::Options {
        timer: Arc::clone(&timer) as Arc<dyn registry::Timer>,
        ..with_login(&registry, "user", "password")
    };
    let store = store_with(&registry, options);
    let tokens = || registry.count("GET", "/token");
    for _ in 0..3 {
        assert!(store.manifest(&tag("1")).await.is_ok());
    }
    assert_eq!(tokens(), 1);
    let asked = registry.log().into_iter().find(|logged| logged.path.starts_with("/token"));
    let asked = asked.expect("a token request");
    assert_eq!(asked.path, "/token?service=test&scope=repository%3Ateam%2Fapp%3Apull");
    assert!(asked.header("authorization").is_some_and(|text| text.starts_with("Basic ")));

    timer.advance(Duration::from_secs(296));
    assert!(store.manifest(&tag("1")).await.is_ok());
    assert_eq!(tokens(), 2, "a token that is about to end isn't used");

    registry.revoke_tokens();
    assert!(store.manifest(&tag("1")).await.is_ok());
    assert_eq!(tokens(), 3, "a token that is refused is replaced once");
}

#[tokio::test]
async fn callers_without_a_name_get_tokens_too() {
    let registry = Registry::start(bearer(Bearer::default())).await;
    put(&registry, "1");
    assert!(store(&registry).manifest(&tag("1")).await.is_ok());
    assert!(registry.log().iter().all(|logged| {
        logged.header("authorization").is_none_or(|text| text.starts_with("Bearer "))
    }));
    let push = store(&registry).push_blob("application/wasm", b"x").await;
    assert_eq!(code(push), "registry-auth");
}

#[tokio::test]
async fn tokens_are_for_one_repository_and_what_is_done_there() {
    let registry = Registry::start(bearer(private())).await;
    let store = store_with(&registry, with_login(&registry, "user", "password"));
    put(&registry, "1");
    assert!(store.manifest(&tag("1")).await.is_ok());
    store.push_blob("application/wasm", b"x").await.expect("a push");
    let scopes: Vec<String> = registry
        .log()
        .iter()
        .filter_map(|logged| logged.path.split_once("&scope=").map(|(_, scope)| scope.to_owned()))
        .collect();
    let expected = ["repository%3Ateam%2Fapp%3Apull", "repository%3Ateam%2Fapp%3Apull%2Cpush"];
    assert_eq!(scopes, expected);
}

#[tokio::test]
async fn identity_token_is_exchanged_by_a_form() {
    let registry = Registry::start(bearer(private())).await;
    put(&registry, "1");
    let config =
        format!(r#"{{"auths": {{"{}": {{"identitytoken": "identity"}}}}}}"#, registry.host());
    let credentials = Credentials::default().with_docker_config("c", config.as_bytes());
    let options = registry::Options {
        credentials: Arc::new(credentials.expect("a configuration")),
        ..options()
    };
    assert!(store_with(&registry, options).manifest(&tag("1")).await.is_ok());
    assert_eq!(registry.count("POST", "/token"), 1);
    assert!(registry.log().iter().all(|logged| !logged.path.contains("identity")));
}

#[tokio::test]
async fn realm_of_the_registrys_choosing_gets_no_credentials() {
    let realm = Registry::start(bearer(Bearer::default())).await;
    let foreign = Bearer { realm: Realm::Foreign(realm.url("/token")), ..private() };
    let registry = Registry::start(bearer(foreign)).await;
    put(&registry, "1");
    let opened = registry::Options {
        insecure: vec![realm.host().parse().expect("a host")],
        ..with_login(&registry, "user", "password")
    };
    // That the operator lets the host be called gives it no credential.
    let store = store_with(&registry, opened.clone());
    assert!(store.manifest(&tag("1")).await.is_ok());
    assert_eq!(realm.log().len(), 1);
    assert!(realm.log().iter().all(|logged| logged.header("authorization").is_none()));
    assert!(registry.log().iter().all(|logged| {
        logged.header("authorization").is_none_or(|text| text.starts_with("Bearer "))
    }));

    let pair = format!("{}={}", registry.host(), realm.host());
    let named = registry::Options { realms: vec![pair.parse().expect("a pair")], ..opened };
    assert!(store_with(&registry, named).manifest(&tag("1")).await.is_ok());
    let log = realm.log();
    let last = log.last().and_then(|logged| logged.header("authorization"));
    assert!(last.is_some_and(|text| text.starts_with("Basic ")), "{log:?}");
}

#[tokio::test]
async fn error_says_that_the_realm_got_no_credential() {
    let realm = Registry::start(bearer(private())).await;
    let foreign = Bearer { realm: Realm::Foreign(realm.url("/token")), ..private() };
    let registry = Registry::start(bearer(foreign)).await;
    let opened = registry::Options {
        insecure: vec![realm.host().parse().expect("a host")],
        ..with_login(&registry, "user", "password")
    };
    let error = store_with(&registry, opened).manifest(&tag("1")).await.expect_err("no token");
    assert_eq!(error.code(), "registry-auth");
    assert!(error.to_string().contains("it got no credential"), "{error}");
}

#[tokio::test]
async fn credentials_of_another_registry_stay_away() {
    let registry = Registry::start(basic()).await;
    let options =
        registry::Options { credentials: login("other.example", "user", "password"), ..options() };
    assert_eq!(code(store_with(&registry, options).manifest(&tag("1")).await), "registry-auth");
    assert!(registry.log().iter().all(|logged| logged.header("authorization").is_none()));
}

#[tokio::test]
async fn refusals_without_end_end() {
    let registry = Registry::start(bearer(Bearer::default())).await;
    put(&registry, "1");
    let challenge = format!("Bearer realm=\"{}\",service=\"test\"", registry.url("/token"));
    let action = Action::status_with(401, "www-authenticate", &challenge);
    registry.fault(Fault::each("GET", "/v2/*", action));
    let store = store(&registry);
    assert_eq!(code(store.manifest(&tag("1")).await), "registry-auth");
    assert_eq!((registry.count("GET", "/v2/"), registry.count("GET", "/token")), (2, 1));
    assert_eq!(code(store.manifest(&tag("1")).await), "registry-auth");
    assert_eq!((registry.count("GET", "/v2/"), registry.count("GET", "/token")), (4, 2));
}

#[tokio::test]
async fn token_servers_are_bounded_too() {
    let registry = Registry::start(bearer(Bearer::default())).await;
    put(&registry, "1");
    let json = |text: &str| Action::body("application/json", text.as_bytes());
    for (action, expected) in [
        (Action::Endless, "registry-limit"),
        (Action::Announce(1 << 40), "registry-limit"),
        (json("{}"), "registry-protocol"),
        (json("<html>"), "registry-protocol"),
        (json(r#"{"token": "a\r\nx: y"}"#), "registry-protocol"),
        (json(r#"{"token": "a b"}"#), "registry-protocol"),
        (json(r#"{"token": "a", "token": "b"}"#), "registry-protocol"),
        (json(r#"{"token": "a", "expires_in": -1}"#), "registry-protocol"),
        (Action::redirect("https://evil.example/token"), "registry-protocol"),
        (Action::status(404), "registry-protocol"),
        (Action::status(401), "registry-auth"),
        (Action::status(403), "registry-auth"),
        (Action::status(429), "registry-rate-limited"),
        (Action::status(500), "registry-unavailable"),
    ] {
        registry.clear_faults();
        registry.fault(Fault::each("GET", "/token", action.clone()));
        assert_eq!(code(store(&registry).manifest(&tag("1")).await), expected, "{action:?}");
    }
}

#[tokio::test]
async fn hostile_challenges_are_errors() {
    let registry = Registry::start(Options::default()).await;
    for challenge in ["Digest realm=\"x\"", "Bearer", "Bearer realm=\"", "Negotiate", ","] {
        registry.clear_faults();
        let action = Action::status_with(401, "www-authenticate", challenge);
        registry.fault(Fault::each("GET", "/v2/*", action));
        assert_eq!(
            code(store(&registry).manifest(&tag("1")).await),
            "registry-auth",
            "{challenge}"
        );
    }
    let service = "x".repeat(1000);
    for challenge in [
        "Bearer realm=\"token\"".to_owned(),
        "Bearer realm=\"/x\"".to_owned(),
        format!("Bearer realm=\"{}\",service=\"{service}\"", registry.url("/token")),
    ] {
        registry.clear_faults();
        let action = Action::status_with(401, "www-authenticate", &challenge);
        registry.fault(Fault::each("GET", "/v2/*", action));
        let error = store(&registry).manifest(&tag("1")).await.expect_err("no token");
        assert!(matches!(error.code(), "registry-protocol" | "registry-auth"), "{error}");
    }
}

#[tokio::test]
async fn blob_is_read_with_a_token() {
    let registry = Registry::start(bearer(private())).await;
    registry.put_blob(PATH, b"bytes");
    registry.fault(Fault::nth("GET", "/token", Nth::First(1), Action::status(503)));
    let store = store_with(&registry, with_login(&registry, "user", "password"));
    let blob = Descriptor::of("application/wasm", b"bytes");
    assert_eq!(store.blob(&blob, 10).await.expect("a blob"), b"bytes");
    assert_eq!(registry.count("GET", "/token"), 2, "a token server is tried again like a registry");
}

#[tokio::test]
async fn other_credentials_share_no_token() {
    let registry = Registry::start(bearer(private())).await;
    put(&registry, "1");
    let repository = crate::support::repository(&registry.host());
    let client = registry::Client::new(with_login(&registry, "user", "password")).expect("options");
    let store = client.repository(&repository);
    assert!(store.manifest(&tag("1")).await.is_ok());
    let nobody = client.with_credentials(Arc::new(Credentials::default()));
    assert_eq!(code(nobody.repository(&repository).manifest(&tag("1")).await), "registry-auth");
    assert!(store.manifest(&tag("1")).await.is_ok());
    assert_eq!(registry.count("GET", "/token"), 2);
}
