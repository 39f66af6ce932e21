//! Docker's `config.json`, and its older form `.dockercfg`.

use std::fmt;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use zeroize::Zeroizing;

use super::helper::name_is_valid;
use super::{Credential, CredentialsError, MAX_CONFIG_BYTES, PullSecret, Secret};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A place in a registry: host, and the path below it, which may be empty.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Key {
    host: String,
    path: String,
}

impl Key {
    pub(super) fn of_repository(registry: &str, path: &str) -> Self {
        Self { host: canonical_host(registry), path: path.to_owned() }
    }

    /// Reads a key of `auths`: `host`, `host/path`, `https://host/v1/`.
    fn parse(text: &str) -> Self {
        let bare = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let (host, path) = match bare.unwrap_or(text).split_once('/') {
            Some((host, path)) => (host, path.trim_end_matches('/')),
            None => (bare.unwrap_or(text), ""),
        };
        // What Docker's first registries had behind the host; it is no path of a repository.
        let path = if matches!(path, "v1" | "v2") { "" } else { path };
        Self { host: canonical_host(host), path: path.to_owned() }
    }

    fn covers(&self, wanted: &Self, hosts: HostMatch) -> bool {
        let host = match hosts {
            HostMatch::Exact => self.host == wanted.host,
            HostMatch::Globs => glob_host(&self.host, &wanted.host),
        };
        host && wanted
            .path
            .strip_prefix(self.path.as_str())
            .is_some_and(|rest| self.path.is_empty() || rest.is_empty() || rest.starts_with('/'))
    }
}

fn canonical_host(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    match host.as_str() {
        "index.docker.io" | "registry-1.docker.io" | "docker.io" => "docker.io".to_owned(),
        _ => host,
    }
}

#[derive(Clone, Copy, Debug)]
enum HostMatch {
    Exact,
    /// Kubernetes: `*` stands for characters within one label.
    Globs,
}

/// Compares label by label, as the kubelet does
/// (<https://kubernetes.io/docs/concepts/containers/images/#config-json>).
fn glob_host(pattern: &str, host: &str) -> bool {
    let mut patterns = pattern.split('.');
    let mut labels = host.split('.');
    loop {
        match (patterns.next(), labels.next()) {
            (None, None) => return true,
            (Some(pattern), Some(label)) if glob_label(pattern, label) => {}
            _ => return false,
        }
    }
}

fn glob_label(pattern: &str, label: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == label };
    let Some(mut left) = label.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    true
}

#[derive(Clone)]
pub(super) struct Config {
    entries: Vec<(Key, Credential)>,
    helpers: Vec<(Key, String)>,
    store: Option<String>,
    hosts: HostMatch,
}

impl Config {
    pub(super) fn docker(origin: &str, bytes: &[u8]) -> Result<Self, CredentialsError> {
        let file: File = json(origin, bytes)?;
        let store = file.creds_store.filter(|name| !name.is_empty());
        let helpers: Vec<(String, String)> =
            file.cred_helpers.0.into_iter().filter(|(_, name)| !name.is_empty()).collect();
        if !helpers.iter().map(|(_, name)| name).chain(&store).all(|name| name_is_valid(name)) {
            return Err(CredentialsError::HelperName { origin: origin.to_owned() });
        }
        let helpers = helpers.into_iter().map(|(key, name)| (Key::parse(&key), name)).collect();
        let entries = entries(origin, file.auths)?;
        Ok(Self { entries, helpers, store, hosts: HostMatch::Exact })
    }

    pub(super) fn pull_secret(
        origin: &str,
        form: PullSecret,
        bytes: &[u8],
    ) -> Result<Self, CredentialsError> {
        let auths = match form {
            PullSecret::DockerConfigJson => json::<File>(origin, bytes)?.auths,
            PullSecret::DockerCfg => json::<Pairs<Entry>>(origin, bytes)?,
        };
        let entries = entries(origin, auths)?;
        Ok(Self { entries, helpers: Vec::new(), store: None, hosts: HostMatch::Globs })
    }

    /// Returns the credential with the longest path, if one has any.
    pub(super) fn below_host(&self, wanted: &Key) -> Option<&Credential> {
        let below = self.entries.iter().filter(|(key, _)| !key.path.is_empty());
        below
            .filter(|(key, _)| key.covers(wanted, self.hosts))
            .max_by_key(|(key, _)| key.path.len())
            .map(|(_, credential)| credential)
    }

    pub(super) fn for_host(&self, wanted: &Key) -> Option<&Credential> {
        let whole = self.entries.iter().filter(|(key, _)| key.path.is_empty());
        // A host in full is closer than a pattern, and the longer pattern is the closer one.
        whole
            .filter(|(key, _)| key.covers(wanted, self.hosts))
            .max_by_key(|(key, _)| (!key.host.contains('*'), key.host.len()))
            .map(|(_, credential)| credential)
    }

    pub(super) fn credentials(&self) -> impl Iterator<Item = &Credential> {
        self.entries.iter().map(|(_, credential)| credential)
    }

    pub(super) fn helper(&self, wanted: &Key) -> Option<&str> {
        self.helpers
            .iter()
            .filter(|(key, _)| key.covers(wanted, HostMatch::Exact))
            .max_by_key(|(key, _)| key.path.len())
            .map(|(_, name)| name)
            .or(self.store.as_ref())
            .map(String::as_str)
    }
}

fn entries(origin: &str, auths: Pairs<Entry>) -> Result<Vec<(Key, Credential)>, CredentialsError> {
    let mut entries = Vec::new();
    for (registry, entry) in auths.0 {
        if let Some(credential) = credential(origin, &registry, entry)? {
            entries.push((Key::parse(&registry), credential));
        }
    }
    Ok(entries)
}

/// Returns what an entry holds. Docker leaves empty entries where a helper holds the credential.
fn credential(
    origin: &str,
    registry: &str,
    entry: Entry,
) -> Result<Option<Credential>, CredentialsError> {
    let filled = |text: Option<Hidden>| text.filter(|text| !text.0.is_empty());
    if let Some(token) = filled(entry.identitytoken) {
        return Ok(Some(Credential::Identity { token: token.into_secret() }));
    }
    if let Some(auth) = filled(entry.auth) {
        let invalid = || CredentialsError::Auth {
            origin: origin.to_owned(),
            registry: super::super::text::printable(registry),
        };
        let bytes = Zeroizing::new(BASE64.decode(auth.0.trim()).map_err(|_| invalid())?);
        let text = std::str::from_utf8(&bytes).map_err(|_| invalid())?;
        let (user, password) = text.trim_end_matches('\0').split_once(':').ok_or_else(invalid)?;
        let password = Secret::new(password.to_owned());
        return Ok(Some(Credential::Password { user: user.to_owned(), password }));
    }
    Ok(match (entry.username.filter(|user| !user.is_empty()), filled(entry.password)) {
        (Some(user), Some(password)) => {
            Some(Credential::Password { user, password: password.into_secret() })
        }
        _ => None,
    })
}

/// The errors of the JSON reader repeat values, so only the position is kept.
fn json<T: for<'de> Deserialize<'de>>(origin: &str, bytes: &[u8]) -> Result<T, CredentialsError> {
    if bytes.len() > MAX_CONFIG_BYTES {
        let (found, limit) = (bytes.len(), MAX_CONFIG_BYTES);
        return Err(CredentialsError::TooLarge { origin: origin.to_owned(), found, limit });
    }
    serde_json::from_slice(bytes).map_err(|error| CredentialsError::Json {
        origin: origin.to_owned(),
        line: error.line(),
        column: error.column(),
    })
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: Pairs<Entry>,
    #[serde(default, rename = "credHelpers")]
    cred_helpers: Pairs<String>,
    #[serde(default, rename = "credsStore")]
    creds_store: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: Option<Hidden>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<Hidden>,
    #[serde(default)]
    identitytoken: Option<Hidden>,
}

/// Text that is overwritten when dropped.
struct Hidden(Zeroizing<String>);

impl Hidden {
    fn into_secret(self) -> Secret {
        Secret::new(self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self(Zeroizing::new(text)))
    }
}

/// An object as a list; a key that is there twice is an error, since readers differ about it.
struct Pairs<T>(Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(PairsVisitor(std::marker::PhantomData))
    }
}

struct PairsVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
    type Value = Pairs<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Pairs::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Pairs::default())
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut seen = std::collections::BTreeSet::new();
        let mut pairs = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, T>()? {
            if !seen.insert(key.clone()) {
                return Err(serde::de::Error::custom("a key is there twice"));
            }
            pairs.push((key, value));
        }
        Ok(Pairs(pairs))
    }
}
