//! Patterns over repositories.

use ambit_engine::reference::Repository;
use regex::Regex;

use super::ImagePattern;

/// The longest pattern, in bytes: twice the longest repository name.
const MAX_PATTERN: usize = 512;

/// Why a text is no pattern over repositories.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// There is no text.
    #[error("the pattern is empty")]
    Empty,
    /// It is longer than any repository name could ask for.
    #[error("a pattern of {found} bytes is over the limit of {limit}")]
    TooLong {
        /// How long it is.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// It holds a character that no repository name has.
    #[error("`{character}` in pattern `{text}` is in no repository name")]
    Character {
        /// The pattern.
        text: String,
        /// The first such character.
        character: char,
    },
    /// It names a tag.
    #[error("pattern `{text}` names a tag")]
    Tag {
        /// The pattern.
        text: String,
    },
    /// It can match no name, since a path segment would be empty.
    #[error("pattern `{text}` has an empty path segment")]
    Segment {
        /// The pattern.
        text: String,
    },
}

impl PatternError {
    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Empty | Self::TooLong { .. } | Self::Segment { .. } => {
                "write `registry.example/team/*`, or `**` for every image"
            }
            Self::Character { character: '@', .. } => "a policy names digests under `pins`",
            Self::Character { character: 'A'..='Z', .. } => "repository names are lower case",
            Self::Character { .. } => {
                "a pattern has the characters of a repository name, `*` within a path segment, and `**` across them"
            }
            Self::Tag { .. } => {
                "delete the tag: a policy is for a repository, whatever tag a reference has"
            }
        }
    }
}

impl ImagePattern {
    /// Reads a pattern.
    ///
    /// A pattern whose first segment is no host is one of Docker Hub, as in a reference: `app`
    /// is `docker.io/library/app`, `*` is `docker.io/library/*` and `*/*` is `docker.io/*/*`.
    ///
    /// # Errors
    ///
    /// [`PatternError`]; tags and digests are refused, since the same content would be outside of
    /// the policy under another one.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > MAX_PATTERN {
            return Err(PatternError::TooLong { found: text.len(), limit: MAX_PATTERN });
        }
        let (host, path) = match text.split_once('/') {
            Some((host, path)) if is_host(host) => (host.to_ascii_lowercase(), path),
            _ => (String::new(), text),
        };
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./:*".contains(c);
        let checked = if host.is_empty() { path.to_owned() } else { format!("{host}/{path}") };
        if let Some(character) = checked.chars().find(|c| !allowed(*c)) {
            return Err(PatternError::Character { text: text.to_owned(), character });
        }
        if path.contains(':') {
            return Err(PatternError::Tag { text: text.to_owned() });
        }
        if path.split('/').any(str::is_empty) {
            return Err(PatternError::Segment { text: text.to_owned() });
        }
        let first = path.split('/').next().unwrap_or_default();
        let full = match (host.as_str(), path) {
            ("", "*") => "docker.io/library/*".to_owned(),
            ("", "*/*") => "docker.io/*/*".to_owned(),
            // What begins with a wildcard may begin with any host.
            ("", _) if first.contains('*') => path.to_owned(),
            ("" | "docker.io" | "index.docker.io", _) if !path.contains(['/', '*']) => {
                format!("docker.io/library/{path}")
            }
            ("" | "index.docker.io", _) => format!("docker.io/{path}"),
            _ => format!("{host}/{path}"),
        };
        // The dot takes line ends too: a layout's folder may have one in its name.
        let mut pattern = String::from(r"(?s)\A");
        for (index, across) in full.split("**").enumerate() {
            pattern.push_str(if index > 0 { ".*" } else { "" });
            for (index, within) in across.split('*').enumerate() {
                pattern.push_str(if index > 0 { "[^/]*" } else { "" });
                pattern.push_str(&regex::escape(within));
            }
        }
        pattern.push_str(r"\z");
        let limit = PatternError::TooLong { found: text.len(), limit: MAX_PATTERN };
        let regex = Regex::new(&pattern).map_err(|_| limit)?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Tells whether the policy is for images of `repository`.
    ///
    /// A registry is looked for under each of its names, so that none of them leads around the
    /// policy: with and without https's own port, and Docker Hub by all that it answers to.
    #[must_use]
    pub fn matches(&self, repository: &Repository) -> bool {
        let (registry, path) = (repository.registry(), repository.path());
        let host = registry.strip_suffix(HTTPS_PORT).unwrap_or(registry);
        let named = |host: &str| self.regex.is_match(&format!("{host}/{path}"));
        if named(registry) || named(host) {
            return true;
        }
        if !host.contains(':') && named(&format!("{host}{HTTPS_PORT}")) {
            return true;
        }
        DOCKER_HUB.contains(&host)
            && (DOCKER_HUB.iter().any(|name| named(name))
                || self.regex.is_match(path)
                || path.strip_prefix("library/").is_some_and(|short| self.regex.is_match(short)))
    }
}

/// The port that a registry's name means when it names none.
const HTTPS_PORT: &str = ":443";

/// The names under which Docker Hub answers.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// Tells whether a first segment is a registry's host, as references have it.
fn is_host(segment: &str) -> bool {
    segment.contains(['.', ':']) || segment == "localhost"
}

#[cfg(test)]
mod tests {
    use ambit_engine::reference::Reference;

    use super::*;

    fn matches(pattern: &str, image: &str) -> bool {
        let reference: Reference = image.parse().unwrap();
        ImagePattern::parse(pattern).unwrap().matches(reference.repository())
    }

    #[test]
    fn stars_stay_within_a_segment_and_double_stars_do_not() {
        for (pattern, image, expected) in [
            ("ghcr.io/acme/app", "ghcr.io/acme/app:1", true),
            ("ghcr.io/acme/app", "ghcr.io/acme/app-evil", false),
            ("ghcr.io/acme/app", "evil.ghcr.io/acme/app", false),
            ("ghcr.io/acme/*", "ghcr.io/acme/app", true),
            ("ghcr.io/acme/*", "ghcr.io/acme/team/app", false),
            ("ghcr.io/acme/**", "ghcr.io/acme/team/app", true),
            ("ghcr.io/*/*", "ghcr.io/acme", false),
            ("ghcr.io/**", "ghcrxio/acme", false),
            ("GHCR.io/acme/*", "ghcr.io/acme/app", true),
            ("localhost:5000/*", "localhost:5000/app", true),
            ("**", "registry.example/a/b", true),
            ("*/**", "registry.example/a/b", true),
            ("**demo**", "registry.example/a/demo-b", true),
            ("registry*.example/a", "registry2.example/a", true),
        ] {
            assert_eq!(matches(pattern, image), expected, "{pattern} {image}");
        }
    }

    #[test]
    fn no_other_name_of_a_registry_leads_around_a_policy() {
        assert!(matches("ghcr.io/**", "ghcr.io:443/acme/app"));
        assert!(matches("ghcr.io:443/**", "ghcr.io/acme/app"));
        assert!(!matches("ghcr.io/**", "ghcr.io:8443/acme/app"));
        assert!(!matches("ghcr.io:8443/**", "ghcr.io/acme/app"));
        for name in ["docker.io", "index.docker.io", "registry-1.docker.io", "docker.io:443"] {
            assert!(matches("docker.io/acme/*", &format!("{name}/acme/app")), "{name}");
        }
    }

    #[test]
    fn docker_hub_has_one_set_of_repositories_under_several_names() {
        for pattern in [
            "app",
            "app*",
            "*",
            "docker.io/app",
            "docker.io/library/app",
            "index.docker.io/*/*",
            "index.docker.**",
            "inde**",
            "index.docker.io/library/app",
            "**",
            "*.docker.io/**",
        ] {
            assert!(matches(pattern, "app"), "{pattern}");
            assert!(matches(pattern, "index.docker.io/library/app"), "{pattern}");
        }
        for pattern in ["team/app", "team/*", "*/*", "docker.io/team/app", "docker.io/*/app"] {
            assert!(matches(pattern, "docker.io/team/app"), "{pattern}");
            assert!(!matches(pattern, "registry.example/team/app"), "{pattern}");
        }
        assert!(!matches("*", "team/app"));
    }

    #[test]
    fn what_is_no_pattern_over_repositories_is_refused() {
        for text in [
            "",
            "[a-z]*",
            ".+",
            "app:1",
            "h.io/app:*",
            "h.io/app@sha256:00",
            "h.io/App",
            "a//b",
            "h.io/",
            "a b",
            "h.io/a\n",
        ] {
            assert!(ImagePattern::parse(text).is_err(), "`{text}` was accepted");
        }
        assert!(ImagePattern::parse(&"a".repeat(MAX_PATTERN + 1)).is_err());
    }
}
