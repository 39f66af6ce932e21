//! Logging in: which credential may go where, tokens, and what is remembered of both.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::address::{Authority, Scheme, Site, resolve_url};
use super::challenge::Challenge;
use super::credentials::{Credential, basic};
use super::exchange::{Exchange, Failure, Length, Request, Scope};
use super::options::RealmPair;
use super::secret::Secret;
use crate::error::FetchError;

/// The largest answer of a token server, and the longest token.
const MAX_TOKEN_ANSWER: usize = 64 << 10;
const MAX_TOKEN: usize = 32 << 10;
const MAX_SERVICE: usize = 256;

/// How long a token lives that doesn't say so, and the longest that is believed.
const TOKEN_LIFE: u64 = 60;
const MAX_TOKEN_LIFE: u64 = 3600;

/// How long before its end a token isn't used any more.
const TOKEN_MARGIN: Duration = Duration::from_secs(5);

/// How long the answer of a credential helper is kept.
const CREDENTIAL_LIFE: Duration = Duration::from_secs(300);

/// The most entries of each kind that are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Token servers that are known to belong to a registry.
const KNOWN_REALMS: [&str; 1] = ["registry-1.docker.io=auth.docker.io"];

/// The value of an `Authorization` header, with what must not be repeated of it.
#[derive(Clone)]
pub(super) struct Authorization {
    header: Secret,
    secrets: Vec<Secret>,
}

impl Authorization {
    pub(super) fn header(&self) -> &Secret {
        &self.header
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.header.reveal() == other.header.reveal()
    }

    pub(super) fn is_repeated_in(&self, text: &str) -> bool {
        self.secrets.iter().any(|secret| {
            let secret = secret.reveal();
            !secret.is_empty() && text.contains(secret)
        })
    }

    fn basic(user: &str, password: &Secret) -> Self {
        let encoded = basic(user, password);
        let header = Secret::new(format!("Basic {}", encoded.reveal()));
        Self { header, secrets: vec![encoded, password.clone()] }
    }

    fn bearer(token: Secret) -> Self {
        let header = Secret::new(format!("Bearer {}", token.reveal()));
        Self { header, secrets: vec![token] }
    }
}

/// Whether a token from before will do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tokens {
    Kept,
    New,
}

/// What is remembered between calls.
#[derive(Default)]
pub(super) struct Memory {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    challenges: HashMap<Authority, Challenge>,
    tokens: HashMap<TokenKey, (Duration, Secret)>,
    /// By registry and path.
    credentials: HashMap<(String, String), Kept>,
}

/// What there is for a repository, and until when that is taken to be so.
type Kept = (Duration, Option<Arc<Credential>>);

#[derive(Clone, Eq, Hash, PartialEq)]
struct TokenKey {
    registry: Authority,
    realm: String,
    service: String,
    scope: String,
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn challenge(&self, registry: &Authority) -> Option<Challenge> {
        self.state().challenges.get(registry).cloned()
    }

    pub(super) fn remember(&self, registry: &Authority, challenge: &Challenge) {
        let mut state = self.state();
        if state.challenges.len() >= MAX_REMEMBERED {
            state.challenges.clear();
        }
        state.challenges.insert(registry.clone(), challenge.clone());
    }

    /// Tells whether `text` repeats a token, or what a helper gave.
    pub(super) fn is_repeated_in(&self, text: &str) -> bool {
        let state = self.state();
        state.tokens.values().any(|(_, token)| text.contains(token.reveal()))
            || state.credentials.values().any(|(_, credential)| {
                credential.as_ref().is_some_and(|credential| credential.is_repeated_in(text))
            })
    }

    fn token(&self, key: &TokenKey, now: Duration) -> Option<Secret> {
        let state = self.state();
        state.tokens.get(key).filter(|(end, _)| *end > now).map(|(_, token)| token.clone())
    }

    fn keep_token(&self, key: TokenKey, token: &Secret, now: Duration, life: Duration) {
        let mut state = self.state();
        if state.tokens.len() >= MAX_REMEMBERED {
            state.tokens.retain(|_, (end, _)| *end > now);
        }
        if state.tokens.len() >= MAX_REMEMBERED {
            state.tokens.clear();
        }
        let end = now.saturating_add(life.saturating_sub(TOKEN_MARGIN));
        state.tokens.insert(key, (end, token.clone()));
    }
}

impl Exchange<'_> {
    /// Returns the answer to a challenge; none if a password is asked for and none may be sent.
    pub(super) async fn authorize(
        &self,
        challenge: &Challenge,
        scope: Scope,
        tokens: Tokens,
    ) -> Result<Option<Authorization>, Failure> {
        match challenge {
            Challenge::Basic => {
                if !is_sealed(&self.route.site) {
                    return Ok(None);
                }
                Ok(self.credential().await?.and_then(|credential| match credential.as_ref() {
                    Credential::Password { user, password } => {
                        Some(Authorization::basic(user, password))
                    }
                    Credential::Identity { .. } => None,
                }))
            }
            Challenge::Bearer { realm, service } => {
                let token = self.token(realm, service, scope, tokens).await?;
                Ok(Some(Authorization::bearer(token)))
            }
        }
    }

    /// Says why no password was sent.
    pub(super) async fn no_credential(&self) -> Result<String, FetchError> {
        let known = self.credential().await?.is_some();
        Ok(match (known, is_sealed(&self.route.site)) {
            (true, true) => "it asks for a password, and a token is all that is known for it",
            (true, false) => "it asks for a password, and none is sent over plain http",
            (false, _) => "it asks for a password, and none is known for it",
        }
        .to_owned())
    }

    async fn credential(&self) -> Result<Option<Arc<Credential>>, FetchError> {
        let memory = &self.session.memory;
        let key = (self.route.registry.clone(), self.route.path.clone());
        let now = self.shared.options.timer.elapsed();
        let kept = memory.state().credentials.get(&key).cloned();
        if let Some((end, credential)) = kept
            && end > now
        {
            return Ok(credential);
        }
        let credentials = &self.session.credentials;
        let found = credentials.find_in(&key.0, &key.1).await?.map(Arc::new);
        let mut state = memory.state();
        if state.credentials.len() >= MAX_REMEMBERED {
            state.credentials.clear();
        }
        state.credentials.insert(key, (now.saturating_add(CREDENTIAL_LIFE), found.clone()));
        drop(state);
        Ok(found)
    }

    /// Returns a token, from memory or from the realm.
    ///
    /// The scope is what this call needs, whatever the challenge asks for.
    async fn token(
        &self,
        realm: &str,
        service: &str,
        scope: Scope,
        tokens: Tokens,
    ) -> Result<Secret, Failure> {
        let scope = format!("repository:{}:{}", self.route.path, scope.actions());
        let timer = &self.shared.options.timer;
        let key = TokenKey {
            registry: self.route.site.authority.clone(),
            realm: realm.to_owned(),
            service: service.to_owned(),
            scope: scope.clone(),
        };
        if tokens == Tokens::Kept
            && let Some(token) = self.session.memory.token(&key, timer.elapsed())
        {
            return Ok(token);
        }
        if service.len() > MAX_SERVICE || service.chars().any(char::is_control) {
            return Err(self.protocol("its token service has no usable name").into());
        }
        let (token, life) = self.fetch_token(realm, service, &scope).await?;
        self.session.memory.keep_token(key, &token, timer.elapsed(), life);
        Ok(token)
    }

    async fn fetch_token(
        &self,
        realm: &str,
        service: &str,
        scope: &str,
    ) -> Result<(Secret, Duration), Failure> {
        let home = &self.route.site;
        let mut url = resolve_url(realm, &self.route.base)?;
        url.set_fragment(None);
        let site = self.shared.gate.onward(&url, home, home.scheme)?;
        let host = site.authority.to_string();
        let known = self.credential().await?;
        let trusted = gets_credentials(home, &site, &self.shared.options.realms);
        let credential = known.as_deref().filter(|_| trusted);
        let held = match (known.is_some(), credential.is_some()) {
            (true, true) => Held::Sent,
            (true, false) => Held::Kept,
            (false, _) => Held::Nothing,
        };
        let mut request = Request::read(url, "application/json", Length::AtMost(MAX_TOKEN_ANSWER));
        // What goes into the header, and what an error must not repeat: the token of an identity
        // goes into a form.
        let (header, sent) = match credential {
            Some(Credential::Identity { token }) => {
                request.method = Method::POST;
                let form = form(&[
                    ("grant_type", "refresh_token"),
                    ("service", service),
                    ("scope", scope),
                    ("client_id", "ambit"),
                    ("refresh_token", token.reveal()),
                ]);
                let media_type = "application/x-www-form-urlencoded".to_owned();
                request.content = Some((media_type, form.as_bytes().to_vec()));
                let sent = Authorization { header: token.clone(), secrets: vec![token.clone()] };
                (None, Some(sent))
            }
            Some(Credential::Password { user, password }) => {
                let basic = Authorization::basic(user, password);
                (Some(basic.clone()), Some(basic))
            }
            None => (None, None),
        };
        if request.content.is_none() {
            let mut query = request.url.query_pairs_mut();
            if !service.is_empty() {
                query.append_pair("service", service);
            }
            query.append_pair("scope", scope);
        }
        let response = self.send(&request, &request.url, site.net, header.as_ref()).await?;
        let refused = response.status();
        self.read_token(&request, response, sent.as_ref())
            .await
            .map_err(|failure| self.explain(failure, refused, &host, held))
    }

    async fn read_token(
        &self,
        request: &Request,
        response: reqwest::Response,
        sent: Option<&Authorization>,
    ) -> Result<(Secret, Duration), Failure> {
        let fetched = self.finish(request, response, sent).await?;
        let body = Zeroizing::new(fetched.body);
        // The errors of the JSON reader repeat values, so none is passed on.
        let answer: TokenAnswer = serde_json::from_slice(&body)
            .map_err(|_| self.protocol("the answer of its token server can't be read"))?;
        let token = answer.token.filter(|token| !token.is_empty()).or(answer.access_token);
        let token = Secret::new(token.unwrap_or_default());
        if !is_token(token.reveal()) {
            return Err(self.protocol("its token server gives no usable token").into());
        }
        let life = answer.expires_in.unwrap_or(TOKEN_LIFE).min(MAX_TOKEN_LIFE);
        Ok((token, Duration::from_secs(life)))
    }

    /// Says more about a token server that refuses.
    fn explain(&self, failure: Failure, status: StatusCode, host: &str, held: Held) -> Failure {
        let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if let FetchError::Auth { reason, .. } = &failure.error
            && refused
        {
            let hint = match held {
                Held::Sent => "",
                Held::Kept => {
                    "; the configuration doesn't name this token server, so it got no credential"
                }
                Held::Nothing => "; no credential is known for this registry",
            };
            return self.auth(format!("token server `{host}`: {reason}{hint}")).into();
        }
        // That there is no token server is another thing than that there is no manifest.
        if matches!(failure.error, FetchError::NotFound { .. }) {
            return self.protocol(format!("token server `{host}`: status 404")).into();
        }
        failure
    }
}

/// What became of the credential for a registry when its token server was asked.
#[derive(Clone, Copy, Debug)]
enum Held {
    Sent,
    Kept,
    Nothing,
}

/// Whether what is sent there can't be read on the way.
fn is_sealed(site: &Site) -> bool {
    site.scheme == Scheme::Https || site.authority.is_spelled_loopback()
}

/// Whether a token server gets the credentials of the registry at `home`.
///
/// A certificate names hosts and no ports, so over https another port of the same host will do.
/// Within this machine every port may be somebody else.
fn gets_credentials(home: &Site, realm: &Site, pairs: &[RealmPair]) -> bool {
    // What a token was given for can be done by whoever reads it on the way to the registry.
    if !is_sealed(realm) || !is_sealed(home) {
        return false;
    }
    let both_https = home.scheme == Scheme::Https && realm.scheme == Scheme::Https;
    let own = realm.authority == home.authority
        || (both_https && realm.authority.host == home.authority.host);
    let known = KNOWN_REALMS.iter().filter_map(|text| text.parse::<RealmPair>().ok());
    own || pairs
        .iter()
        .cloned()
        .chain(known)
        .any(|pair| pair.registry.is(&home.authority) && pair.realm.is(&realm.authority))
}

fn is_token(text: &str) -> bool {
    (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Writes a form as browsers do (URL standard, `application/x-www-form-urlencoded`).
fn form(pairs: &[(&str, &str)]) -> Zeroizing<String> {
    let encoded = Url::parse("https://form.example/").ok().map(|mut url| {
        url.query_pairs_mut().extend_pairs(pairs);
        url.query().unwrap_or_default().to_owned()
    });
    Zeroizing::new(encoded.unwrap_or_default())
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::super::address::Net;
    use super::*;
    use ambit_engine::grant::Target;

    fn site(scheme: Scheme, text: &str) -> Site {
        let target = Target::http(scheme.as_str(), text).unwrap();
        let authority = Authority { host: target.host().clone(), port: target.port() };
        Site { scheme, authority, net: Net::Public }
    }

    #[test]
    fn realms_of_the_registrys_choosing_get_no_credentials() {
        let pair = ["r.example=auth.example:8443".parse().unwrap()];
        let gets = |home: &str, realm: &str| {
            gets_credentials(&site(Scheme::Https, home), &site(Scheme::Https, realm), &pair)
        };
        assert!(gets("r.example", "r.example"));
        assert!(gets("r.example:5000", "r.example"));
        assert!(gets("r.example", "auth.example:8443"));
        assert!(gets("registry-1.docker.io", "auth.docker.io"));
        assert!(!gets("r.example", "auth.example"));
        assert!(!gets("r.example", "auth.docker.io"));
        assert!(!gets("r.example", "evil.example"));
        assert!(!gets("r.example", "r.example.evil.example"));
        assert!(!gets("sub.r.example", "r.example"));
        assert!(!gets("evil.example", "auth.example:8443"));
    }

    #[test]
    fn plain_http_gets_credentials_on_this_machine_only() {
        let local = site(Scheme::Http, "127.0.0.1:5000");
        assert!(gets_credentials(&local, &local, &[]));
        assert!(!gets_credentials(&local, &site(Scheme::Http, "127.0.0.1:5001"), &[]));
        let plain = site(Scheme::Http, "plain.example");
        assert!(!gets_credentials(&plain, &plain, &[]));
        // The token would be readable on the way to the registry.
        let pair = ["plain.example=auth.example".parse().unwrap()];
        assert!(!gets_credentials(&plain, &site(Scheme::Https, "auth.example"), &pair));
        assert!(!is_sealed(&plain));
    }
}
