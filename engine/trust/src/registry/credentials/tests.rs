use super::*;
use proptest::prelude::*;

fn auth(user: &str, password: &str) -> String {
    STANDARD.encode(format!("{user}:{password}"))
}

fn shown(credential: Option<Credential>) -> String {
    match credential {
        None => "-".to_owned(),
        Some(Credential::Password { user, password }) => format!("{user}:{}", password.reveal()),
        Some(Credential::Identity { token }) => format!("token:{}", token.reveal()),
    }
}

async fn found(credentials: &Credentials, registry: &str, path: &str) -> String {
    shown(credentials.find_in(registry, path).await.unwrap())
}

#[tokio::test]
async fn keys_of_docker_configurations_are_understood() {
    let config = format!(
        r#"{{"auths": {{
            "plain.example": {{"auth": "{}"}},
            "https://old.example/v1/": {{"username": "old", "password": "pw"}},
            "https://index.docker.io/v1/": {{"auth": "{}"}},
            "path.example": {{"auth": "{}"}},
            "path.example/team": {{"auth": "{}"}},
            "path.example/team/app": {{"auth": "{}"}},
            "token.example:5000": {{"identitytoken": "idt"}},
            "empty.example": {{}}
        }}, "HttpHeaders": {{"x": "y"}}, "credsStore": ""}}"#,
        auth("a", "b:c"),
        auth("hub", "h"),
        auth("all", "1"),
        auth("team", "2"),
        auth("app", "3"),
    );
    let credentials =
        Credentials::default().with_docker_config("config.json", config.as_bytes()).unwrap();
    for (registry, path, expected) in [
        ("plain.example", "x", "a:b:c"),
        ("plain.example:443", "x", "-"),
        ("evil-plain.example", "x", "-"),
        ("plain.example.evil", "x", "-"),
        ("old.example", "x/y", "old:pw"),
        ("docker.io", "library/alpine", "hub:h"),
        ("path.example", "other", "all:1"),
        ("path.example", "team/other", "team:2"),
        ("path.example", "team-evil/x", "all:1"),
        ("path.example", "team/app", "app:3"),
        ("path.example", "team/app/deep", "app:3"),
        ("token.example:5000", "x", "token:idt"),
        ("empty.example", "x", "-"),
    ] {
        assert_eq!(found(&credentials, registry, path).await, expected, "{registry}/{path}");
    }
}

#[tokio::test]
async fn pull_secrets_have_both_forms_and_globs() {
    let inner = format!(
        r#"{{"*.cloud.example": {{"auth": "{}"}}, "x.cloud.example": {{"auth": "{}"}}}}"#,
        auth("any", "1"),
        auth("one", "2")
    );
    let new = format!(r#"{{"auths": {inner}}}"#);
    for (form, text) in [(PullSecret::DockerCfg, &inner), (PullSecret::DockerConfigJson, &new)] {
        let credentials =
            Credentials::default().with_pull_secret("secret", form, text.as_bytes()).unwrap();
        assert_eq!(found(&credentials, "a.cloud.example", "p").await, "any:1");
        assert_eq!(found(&credentials, "x.cloud.example", "p").await, "one:2");
        assert_eq!(found(&credentials, "a.b.cloud.example", "p").await, "-");
        assert_eq!(found(&credentials, "cloud.example", "p").await, "-");
    }
    let docker = Credentials::default().with_docker_config("c", new.as_bytes()).unwrap();
    assert_eq!(found(&docker, "a.cloud.example", "p").await, "-");
}

/// Answers as a table says, and notes what it was asked.
struct Table;

impl Helpers for Table {
    fn get<'a>(&'a self, name: &'a str, server: &'a str) -> HelperFuture<'a> {
        Box::pin(async move {
            match name {
                "broken" => Err("it ended with an error".to_owned()),
                "none" => Ok(HelperAnswer::Nothing),
                _ => Ok(HelperAnswer::Found(Credential::Password {
                    user: name.to_owned(),
                    password: Secret::new(server.to_owned()),
                })),
            }
        })
    }
}

#[tokio::test]
async fn helpers_are_asked_by_registry() {
    let config = format!(
        r#"{{"auths": {{"n.example": {{"auth": "{}"}}, "h.example/path": {{"auth": "{0}"}}}},
            "credHelpers": {{"h.example": "one", "n.example": "none", "b.example": "broken"}},
            "credsStore": "store"}}"#,
        auth("file", "f")
    );
    let credentials = Credentials::default()
        .with_docker_config("config.json", config.as_bytes())
        .unwrap()
        .with_helpers(Arc::new(Table));
    assert_eq!(found(&credentials, "h.example", "x").await, "one:h.example");
    assert_eq!(found(&credentials, "h.example", "path/x").await, "file:f");
    assert_eq!(found(&credentials, "n.example", "x").await, "file:f");
    assert_eq!(found(&credentials, "docker.io", "x").await, "store:https://index.docker.io/v1/");
    let error = credentials.find_in("b.example", "x").await.unwrap_err();
    assert_eq!(error.code(), "registry-auth");
}

#[test]
fn helper_names_lead_nowhere_else() {
    for name in ["../evil", "a/b", "a b", "a;b", "a\\u0000", "a.sh", &"a".repeat(65)] {
        for config in [
            format!(r#"{{"credsStore": "{name}"}}"#),
            format!(r#"{{"credHelpers": {{"h": "{name}"}}}}"#),
        ] {
            let error =
                Credentials::default().with_docker_config("c", config.as_bytes()).unwrap_err();
            assert!(matches!(error, CredentialsError::HelperName { .. }), "{name}: {error}");
        }
    }
}

#[test]
fn errors_repeat_no_secret() {
    for config in [
        r#"{"auths": {"h": {"auth": ["s3cr3t"]}}}"#,
        r#"{"auths": {"h": {"auth": 53637}}}"#,
        r#"{"auths": {"h": {"auth": "s3cr3t!"}}}"#,
        r#"{"auths": {"h": {"password": "s3cr3t", "password": "s3cr3t"}}}"#,
        r#"{"auths": {"h": {}, "h": {"auth": "s3cr3t"}}}"#,
        r#"{"auths": "s3cr3t"}"#,
        r#"["s3cr3t"]"#,
        r#"{"credsStore": "s3cr3t/"}"#,
    ] {
        let error = Credentials::default().with_docker_config("c", config.as_bytes()).unwrap_err();
        let text = format!("{error} {error:?} {}", error.help());
        assert!(!text.contains("s3cr3t") && !text.contains("53637"), "{text}");
    }
    let large = vec![b' '; MAX_CONFIG_BYTES + 1];
    let error = Credentials::default().with_docker_config("c", &large).unwrap_err();
    assert!(matches!(error, CredentialsError::TooLarge { .. }));
}

#[cfg(unix)]
mod programs {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    async fn program(folder: &Path, name: &str, script: &str) {
        let path = folder.join(format!("docker-credential-{name}"));
        tokio::fs::write(&path, format!("#!/bin/sh\n{script}\n")).await.unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        tokio::fs::set_permissions(&path, mode).await.unwrap();
    }

    #[tokio::test]
    async fn helpers_are_run_without_a_shell_and_within_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        program(
            at,
            "ok",
            r#"read -r server; printf '{"Username":"%s","Secret":"%s"}' "$1" "$server""#,
        )
        .await;
        program(at, "token", r#"echo '{"Username":"<token>","Secret":"t"}'"#).await;
        program(at, "none", "echo 'credentials not found in native keychain'; exit 1").await;
        program(at, "fails", "echo s3cr3t; exit 1").await;
        program(at, "odd", "echo s3cr3t").await;
        program(at, "endless", "while :; do echo 0123456789012345678901234567890123456789; done")
            .await;
        let helpers = HelperFolders::new(vec![at.to_owned()]);
        let ask = async |name: &str, server: &str| match helpers.get(name, server).await {
            Ok(HelperAnswer::Found(credential)) => shown(Some(credential)),
            Ok(HelperAnswer::Nothing) => "-".to_owned(),
            Err(reason) => reason,
        };
        assert_eq!(ask("ok", "h.example; echo $HOME").await, "get:h.example; echo $HOME");
        assert_eq!(ask("token", "h").await, "token:t");
        assert_eq!(ask("none", "h").await, "-");
        assert_eq!(ask("fails", "h").await, "it ended with an error");
        assert_eq!(ask("odd", "h").await, "its answer can't be read");
        assert_eq!(ask("endless", "h").await, "its answer is over 65536 bytes");
        assert_eq!(ask("absent", "h").await, "there is no such program");
        assert_eq!(ask("../ok", "h").await, "its name has characters that no helper has");
        let relative = HelperFolders::new(vec!["relative".into()]);
        assert!(relative.get("ok", "h").await.is_err());
    }
}

proptest! {
    #[test]
    fn no_configuration_breaks_the_reader(text in ".{0,200}") {
        let _ = Credentials::default().with_docker_config("c", text.as_bytes());
    }
}
