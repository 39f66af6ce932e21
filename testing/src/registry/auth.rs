//! Who may do what, and tokens.

use axum::body::Body;
use axum::http::{HeaderMap, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::Shared;
use super::serve::{answer, problem};

/// Who may do what.
#[derive(Clone, Debug)]
pub enum Auth {
    /// Everybody may do everything.
    Open,
    /// One user may do everything, others nothing.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// Who has a token may do what it is for.
    Bearer(Bearer),
}

/// How tokens are given.
#[derive(Clone, Debug)]
pub struct Bearer {
    /// The user who gets tokens for everything.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// The user's token for tokens.
    pub identity: String,
    /// Where tokens are to be had.
    pub realm: Realm,
    /// What others get.
    pub anonymous: Anonymous,
    /// How long a token lives, as far as is said, in seconds.
    pub expires_in: u64,
}

impl Default for Bearer {
    fn default() -> Self {
        Self {
            user: "user".to_owned(),
            password: "password".to_owned(),
            identity: "identity".to_owned(),
            realm: Realm::Own,
            anonymous: Anonymous::Pull,
            expires_in: 300,
        }
    }
}

/// Where tokens are to be had.
#[derive(Clone, Debug)]
pub enum Realm {
    /// At `/token` of the same registry.
    Own,
    /// At this URL. Tokens of all test registries are equal.
    Foreign(String),
}

/// What callers without a name get.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Anonymous {
    /// Tokens to pull.
    Pull,
    /// Nothing.
    Nothing,
}

const PREFIX: &str = "test-token.";

impl Shared {
    /// Lets a request through, or says what it needs.
    pub(super) fn refuse(
        &self,
        headers: &HeaderMap,
        repository: &str,
        action: &str,
    ) -> Option<Response<Body>> {
        let given = headers.get("authorization").and_then(|value| value.to_str().ok());
        match &self.options.auth {
            Auth::Open => None,
            Auth::Basic { user, password } => {
                let wanted = basic(user, password);
                (given != Some(wanted.as_str())).then(|| challenge("Basic realm=\"test\""))
            }
            Auth::Bearer(bearer) => {
                let token = given.and_then(|text| text.strip_prefix("Bearer "));
                if token.is_some_and(|token| self.token_is_for(token, repository, action)) {
                    return None;
                }
                let realm = match &bearer.realm {
                    Realm::Own => {
                        let host = headers.get("host").and_then(|value| value.to_str().ok());
                        format!("{}://{}/token", self.scheme(), host.unwrap_or_default())
                    }
                    Realm::Foreign(url) => url.clone(),
                };
                let scope = format!("repository:{repository}:{action}");
                Some(challenge(&format!(
                    "Bearer realm=\"{realm}\",service=\"test\",scope=\"{scope}\""
                )))
            }
        }
    }

    fn token_is_for(&self, token: &str, repository: &str, action: &str) -> bool {
        let read = || {
            let (number, scope) = token.strip_prefix(PREFIX)?.split_once('.')?;
            let scope = URL_SAFE_NO_PAD.decode(scope).ok()?;
            Some((number.parse::<u64>().ok()?, String::from_utf8(scope).ok()?))
        };
        let Some((number, scope)) = read() else { return false };
        let oldest = self.state(|state| state.oldest_token);
        let Some((name, actions)) = scope.rsplit_once(':') else { return false };
        number > oldest
            && name == format!("repository:{repository}")
            && actions.split(',').any(|own| own == action)
    }

    /// Gives a token: `GET /token?scope=…`, or `POST` with a refresh token in a form.
    pub(super) fn give_token(
        &self,
        headers: &HeaderMap,
        query: &[(String, String)],
        form: &[(String, String)],
    ) -> Response<Body> {
        let Auth::Bearer(bearer) = &self.options.auth else {
            return problem(404, "UNKNOWN");
        };
        let field = |from: &[(String, String)], name: &str| {
            from.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
        };
        let given = headers.get("authorization").and_then(|value| value.to_str().ok());
        let refresh = field(form, "refresh_token");
        let scope = field(query, "scope").or_else(|| field(form, "scope")).unwrap_or_default();
        let known = given == Some(basic(&bearer.user, &bearer.password).as_str())
            || refresh.as_ref() == Some(&bearer.identity);
        let asked = given.is_some() || refresh.is_some();
        let scope = match (known, asked, bearer.anonymous) {
            (true, _, _) => scope,
            (false, false, Anonymous::Pull) => scope.replace("pull,push", "pull"),
            _ => return problem(401, "UNAUTHORIZED"),
        };
        let number = self.state(|state| {
            state.tokens += 1;
            state.tokens
        });
        let token = format!("{PREFIX}{number}.{}", URL_SAFE_NO_PAD.encode(scope));
        // Servers name the token in one of two ways, so both are used in turn.
        let key = if number.is_multiple_of(2) { "token" } else { "access_token" };
        let body = json!({key: token, "expires_in": bearer.expires_in}).to_string();
        answer(200, &[("content-type", "application/json")], body.into_bytes())
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn challenge(text: &str) -> Response<Body> {
    let mut refused = problem(401, "UNAUTHORIZED");
    if let Ok(value) = text.parse() {
        refused.headers_mut().insert("www-authenticate", value);
    }
    refused
}
