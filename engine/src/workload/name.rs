//! Names and values that look like secrets.

/// Words in a variable's name that mark its value as a secret.
const SECRET_WORDS: [&str; 12] = [
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "APIKEY",
    "API_KEY",
    "PRIVATE_KEY",
    "ACCESS_KEY",
    "CREDENTIAL",
    "CLIENT_KEY",
    "SIGNING_KEY",
    "ENCRYPTION_KEY",
];

/// Words that take a secret word's meaning away: a path, a name or a limit is no secret.
const HARMLESS_ENDINGS: [&str; 9] =
    ["_FILE", "_PATH", "_NAME", "_URL", "_TTL", "_LIMIT", "_HEADER", "_MAX", "_TYPE"];

/// Prefixes by which issuers mark their tokens, from their public documentation.
const TOKEN_PREFIXES: [&str; 16] = [
    "ghp_",
    "gho_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "sk-",
    "sk_live_",
    "rk_live_",
    "AKIA",
    "ASIA",
    "AIza",
    "hvs.",
];

/// Tells whether a literal value is likely to be a secret.
///
/// By the variable's name, by an issuer's prefix, by a PEM header, or by a password in a URL. An
/// empty value is none.
pub(super) fn looks_secret(name: &str, value: &str) -> bool {
    if value.is_empty() {
        return false;
    }
    let plain = value.len() <= 6 && value.bytes().all(|b| b.is_ascii_digit());
    let upper = name.to_ascii_uppercase().replace(['-', '.'], "_");
    let harmless = HARMLESS_ENDINGS.iter().any(|ending| upper.ends_with(ending));
    let named = !harmless
        && !plain
        && !matches!(value, "true" | "false")
        && (SECRET_WORDS.iter().any(|word| upper.contains(word))
            || upper == "PASS"
            || upper.ends_with("_PASS")
            || upper.ends_with("_PWD"));
    let prefixed = value.len() >= 16 && TOKEN_PREFIXES.iter().any(|p| value.starts_with(p));
    let pem = value.contains("-----BEGIN ") && value.contains("PRIVATE KEY-----");
    named || prefixed || pem || password_in_url(value)
}

/// `scheme://user:password@host`.
fn password_in_url(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(userinfo, _)| {
        userinfo.split_once(':').is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::looks_secret;

    #[test]
    fn secrets_are_known_by_name_or_by_form() {
        for (name, value) in [
            ("API_TOKEN", "x"),
            ("db-password", "hunter2"),
            ("stripe.secret", "v"),
            ("GREETING", "ghp_abcdefghijklmnopqrst"),
            ("DATABASE_URL", "postgres://u:p@db/x"),
            ("CERT", "-----BEGIN EC PRIVATE KEY-----"),
            ("DB_PASS", "x"),
        ] {
            assert!(looks_secret(name, value), "{name}");
        }
    }

    #[test]
    fn near_misses_are_no_secrets() {
        for (name, value) in [
            ("API_TOKEN", ""),
            ("TOKEN_FILE", "/run/token"),
            ("MAX_TOKENS", "4096"),
            ("TOKEN_CHECK", "true"),
            ("DATABASE_URL", "postgres://db/x"),
            ("DATABASE_URL", "postgres://u@db/x"),
            ("COMPASS", "north"),
            ("SKIP", "sk-short"),
        ] {
            assert!(!looks_secret(name, value), "{name}={value}");
        }
    }
}
