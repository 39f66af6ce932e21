use super::*;

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::read("ambit.yaml", text.as_bytes())
}

#[test]
fn every_field_is_read() {
    let config = read(
        "profile: strict
target: ambit
ceilings:
- match: {namespace: prod, class: tool, image: registry.example/acme, labels: {a: b}}
  capabilities: [http.out, 'fs.*']
  hosts: ['https://api.example.com']
  folders: [/srv/a, {path: /srv/b, mode: read-write}]
  interfaces: ['wasi:keyvalue/store']
policies: [mine]
parameters: {baseline: {growth: true}}
enforcement: {baseline/net/wildcard: enforce, agents: {staging: off, '*': warn}}
catalogue: [more.yaml]
classes:
- {class: agent, match: {image: registry.example/agents}}
limits: {component_bytes: 1000}
waivers: []
trust: [trust/release.yaml]
mirrors: {ghcr.io: mirror.example:5000/ghcr}
insecureRegistries: [registry.test:5000]
registryCertificates: [ca.pem]
tokenHosts: {registry.example: auth.example}
",
    )
    .unwrap();
    assert_eq!(config.profile, Some(Profile::Strict));
    assert_eq!(config.target, Some(Target::Ambit));
    assert_eq!(config.ceilings[0].origin, "ambit.yaml:4");
    assert_eq!(config.ceilings[0].folders.len(), 2);
    assert!(config.ceilings[0].folders[1].writable);
    assert_eq!(config.max_component_bytes, Some(1000));
    assert_eq!(config.trust, ["trust/release.yaml"]);
    assert_eq!(config.mirrors["ghcr.io"], "mirror.example:5000/ghcr");
    assert_eq!(config.insecure_registries, ["registry.test:5000"]);
    assert_eq!(config.registry_certificates, ["ca.pem"]);
    assert_eq!(config.token_hosts["registry.example"], "auth.example");
    let actions: Vec<(Option<&str>, Action)> =
        config.enforcement.iter().map(|entry| (entry.namespace.as_deref(), entry.action)).collect();
    assert_eq!(
        actions,
        [(None, Action::Deny), (Some("staging"), Action::Off), (None, Action::Warn)]
    );
}

#[test]
fn empty_configuration_is_the_default() {
    assert_eq!(read("").unwrap(), Config::default());
    assert_eq!(read("# nothing\n").unwrap(), Config::default());
    assert_eq!(read("trust: one.yaml\n").unwrap().trust, ["one.yaml"]);
    assert!(read("trust: null\nmirrors: null\n").unwrap().trust.is_empty());
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    for (text, code, words) in [
        ("profil: strict\n", "config-field", "ambit.yaml:1:1"),
        ("profile: strictest\n", "config-field", "`strictest` is no profile"),
        ("ceilings:\n- hosts: ['h:99999']\n", "config-field", "`h:99999`"),
        ("ceilings:\n- capabilties: [a]\n", "config-field", "capabilties"),
        ("ceilings:\n- folders: [relative]\n", "config-field", "path is relative"),
        ("enforcement: {baseline: loudly}\n", "config-field", "`loudly` is no enforcement"),
        ("limits: {component_bytes: 0}\n", "config-field", "component_bytes"),
        ("waivers: [w.yaml]\n", "config-unsupported", "`waivers`"),
        ("mirrors: [a]\n", "config-field", "mirrors"),
        ("tokenHosts: {a: 1}\n", "config-field", "tokenHosts"),
        ("a: b\n---\nc: d\n", "config-field", "one document"),
        ("- a\n", "config-field", "mapping"),
        ("a: [\n", "manifest-syntax", "can't be read"),
    ] {
        let error = read(text).expect_err(text);
        assert_eq!(error.code(), code, "{text}: {error}");
        let shown = format!("{error}");
        assert!(shown.contains(words), "{text}: {shown}");
    }
}
