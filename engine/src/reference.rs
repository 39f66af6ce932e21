//! OCI references, and the other ways in which a document names a component's bytes.

use std::fmt;
use std::str::FromStr;

use crate::digest::{Digest, DigestError};

/// The longest repository name, registry included (distribution specification 1.1, "Pulling
/// manifests": <https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md>).
const MAX_NAME: usize = 255;

/// A registry and a repository in it, `ghcr.io/acme/mail`.
///
/// Docker Hub's short forms are filled in, so that `alpine`, `library/alpine` and
/// `docker.io/library/alpine` are equal and `example.com/alpine` is another repository.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Repository {
    registry: String,
    path: String,
}

impl Repository {
    /// Returns the registry's host, with its port if one is named.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the path in the registry.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Tells whether this repository is `prefix` or lies below it, by whole path segments.
    #[must_use]
    pub fn is_within(&self, prefix: &str) -> bool {
        let full = self.to_string();
        full.strip_prefix(prefix.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.path)
    }
}

/// An OCI reference: a repository with a tag, a digest, both or neither.
///
/// [`fmt::Display`] gives back the text that was parsed.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Reference {
    text: String,
    repository: Repository,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// Returns the repository.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns the repository by itself.
    #[must_use]
    pub fn into_repository(self) -> Repository {
        self.repository
    }

    /// Returns the tag, if one is named. A tag beside a digest is decoration.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the digest, if one is named.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is no OCI reference.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// There is no text.
    #[error("the reference is empty")]
    Empty,
    /// The repository's name is too long.
    #[error("a name of {found} characters is over the limit of {limit}")]
    TooLong {
        /// How long it is.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The registry's host is no host.
    #[error("`{0}` is no registry host")]
    Registry(String),
    /// A path segment breaks the grammar.
    #[error("`{segment}` is no repository path segment")]
    Segment {
        /// The segment.
        segment: String,
        /// The segment in lower case, if that would do.
        lower: Option<String>,
    },
    /// The tag breaks the grammar.
    #[error("`{0}` is no tag")]
    Tag(String),
    /// The digest breaks the grammar, or its algorithm isn't SHA-256.
    #[error("the digest can't be used")]
    Digest(#[source] DigestError),
}

impl ReferenceError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty
            | Self::TooLong { .. }
            | Self::Registry(_)
            | Self::Segment { .. }
            | Self::Tag(_) => "reference-invalid",
            Self::Digest(_) => "reference-digest",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Segment { lower: Some(lower), .. } => {
                format!("repository names are lower case: write `{lower}`")
            }
            Self::Digest(_) => "write `@sha256:` and the 64 digits of the manifest".to_owned(),
            Self::Tag(_) => {
                "a tag has up to 128 letters, digits, `_`, `.` and `-`, and starts with none of the last two"
                    .to_owned()
            }
            Self::Empty | Self::TooLong { .. } | Self::Registry(_) | Self::Segment { .. } => {
                "write `registry.example/path/name:tag@sha256:…`".to_owned()
            }
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if text.len() > MAX_NAME.saturating_mul(4) {
            return Err(ReferenceError::TooLong { found: text.len(), limit: MAX_NAME });
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                (rest, Some(digest.parse::<Digest>().map_err(ReferenceError::Digest)?))
            }
            None => (text, None),
        };
        // A `:` after the last `/` starts a tag; one before it is a registry's port.
        let last = rest.rfind('/').map_or(0, |at| at.saturating_add(1));
        let (name, tag) = match rest.get(last..).and_then(|segment| segment.split_once(':')) {
            Some((segment, tag)) => {
                (rest.get(..last.saturating_add(segment.len())).unwrap_or_default(), Some(tag))
            }
            None => (rest, None),
        };
        if let Some(tag) = tag {
            let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            let valid = tag.len() <= 128
                && tag.bytes().next().is_some_and(word)
                && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-');
            if !valid {
                return Err(ReferenceError::Tag(shown(tag)));
            }
        }
        let repository = repository(name)?;
        Ok(Self { text: text.to_owned(), repository, tag: tag.map(str::to_owned), digest })
    }
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

fn repository(name: &str) -> Result<Repository, ReferenceError> {
    if name.len() > MAX_NAME {
        return Err(ReferenceError::TooLong { found: name.len(), limit: MAX_NAME });
    }
    let (registry, path) = match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => {
            (host.to_ascii_lowercase(), path.to_owned())
        }
        Some(_) => ("docker.io".to_owned(), name.to_owned()),
        None => ("docker.io".to_owned(), format!("library/{name}")),
    };
    let registry = if registry == "index.docker.io" { "docker.io".to_owned() } else { registry };
    if !registry_host(&registry) {
        return Err(ReferenceError::Registry(shown(&registry)));
    }
    for segment in path.split('/') {
        if !segment_is_valid(segment) {
            let lower = segment.to_ascii_lowercase();
            let lower = (lower != segment && segment_is_valid(&lower)).then_some(lower);
            return Err(ReferenceError::Segment { segment: shown(segment), lower });
        }
    }
    let path = if registry == "docker.io" && !path.contains('/') {
        format!("library/{path}")
    } else {
        path
    };
    // The filled-in form counts, so that a repository prints as something that can be read.
    let found = registry.len().saturating_add(path.len()).saturating_add(1);
    if found > MAX_NAME {
        return Err(ReferenceError::TooLong { found, limit: MAX_NAME });
    }
    Ok(Repository { registry, path })
}

fn registry_host(host: &str) -> bool {
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return false;
        }
        ("v6", port.strip_prefix(':').or(if port.is_empty() { None } else { Some("x") }))
    } else {
        match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        }
    };
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let port_is_valid = |port: &str| {
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0)
    };
    name.split('.').all(label) && port.is_none_or(port_is_valid)
}

/// A segment is words of `a-z0-9` joined by one `.`, one or two `_`, or any number of `-`.
fn segment_is_valid(segment: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let joins_well = segment
        .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        .filter(|join| !join.is_empty())
        .all(|join| matches!(join, "." | "_" | "__") || join.bytes().all(|b| b == b'-'));
    segment.bytes().next().is_some_and(word)
        && segment.bytes().next_back().is_some_and(word)
        && joins_well
}

/// An OCI reference that names its content by digest, so that it cannot move.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PinnedReference {
    repository: Repository,
    digest: Digest,
}

impl PinnedReference {
    /// Returns the repository.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns the digest of the manifest.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

impl fmt::Display for PinnedReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.repository, self.digest)
    }
}

/// A reference without a digest where one is needed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` names no digest")]
pub struct UnpinnedReference(pub Reference);

impl TryFrom<Reference> for PinnedReference {
    type Error = UnpinnedReference;

    fn try_from(reference: Reference) -> Result<Self, Self::Error> {
        match reference.digest {
            Some(digest) => Ok(Self { repository: reference.repository, digest }),
            None => Err(UnpinnedReference(reference)),
        }
    }
}

/// How a document names a component's bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ImageSource {
    /// In a registry.
    Oci(Reference),
    /// A file, `file:app.wasm` or `file:///srv/app.wasm`; relative to the document.
    File(String),
    /// An OCI image layout on disk, `layout:DIR[:TAG][@DIGEST]`.
    Layout {
        /// The folder.
        path: String,
        /// The tag, by the annotation `org.opencontainers.image.ref.name`.
        tag: Option<String>,
        /// The digest of the manifest or index. A tag beside it is decoration.
        digest: Option<Digest>,
    },
    /// An `Artifact` object that is defined beside the workload, `artifact://NAME`.
    Artifact(String),
    /// Nothing that can be read; the reason is in the error.
    Invalid(ReferenceError),
}

impl ImageSource {
    /// Reads the text of an `image` field. It never fails: what can't be read says so.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if let Some(name) = text.strip_prefix("artifact://") {
            return Self::Artifact(name.to_owned());
        }
        if let Some(path) = text.strip_prefix("file:") {
            return Self::File(path.strip_prefix("//").unwrap_or(path).to_owned());
        }
        if let Some(layout) = text.strip_prefix("layout:") {
            let (layout, digest) = match layout.rsplit_once("@sha256:") {
                Some((path, digits)) => match format!("sha256:{digits}").parse() {
                    Ok(digest) => (path, Some(digest)),
                    Err(error) => return Self::Invalid(ReferenceError::Digest(error)),
                },
                None => (layout, None),
            };
            return match layout.rsplit_once(':') {
                Some((path, tag)) if !tag.contains('/') && !path.is_empty() => {
                    Self::Layout { path: path.to_owned(), tag: Some(tag.to_owned()), digest }
                }
                _ => Self::Layout { path: layout.to_owned(), tag: None, digest },
            };
        }
        let text =
            text.strip_prefix("oci://").or_else(|| text.strip_prefix("oci:")).unwrap_or(text);
        text.parse().map_or_else(Self::Invalid, Self::Oci)
    }

    /// Returns the stable word for the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Oci(_) => "oci",
            Self::File(_) => "file",
            Self::Layout { .. } => "layout",
            Self::Artifact(_) => "artifact",
            Self::Invalid(_) => "invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Reference, ReferenceError> {
        text.parse()
    }

    #[test]
    fn short_names_mean_docker_hub() {
        let names =
            ["alpine", "library/alpine", "docker.io/alpine", "index.docker.io/library/alpine"]
                .map(|text| parse(text).map(|r| r.repository().to_string()));
        assert!(names.iter().all(|n| n.as_deref() == Ok("docker.io/library/alpine")), "{names:?}");
        let other = parse("foo.bar/alpine").map(|r| r.repository().to_string());
        assert_eq!(other.as_deref(), Ok("foo.bar/alpine"));
    }

    #[test]
    fn parts_are_told_apart() {
        let digest = Digest::of(b"x");
        let reference = parse(&format!("localhost:5000/a/b_c:1.4@{digest}")).unwrap();
        assert_eq!(reference.repository().registry(), "localhost:5000");
        assert_eq!(reference.repository().path(), "a/b_c");
        assert_eq!(reference.tag(), Some("1.4"));
        assert_eq!(reference.digest(), Some(&digest));
        assert_eq!(parse("localhost:5000/a").unwrap().tag(), None);
    }

    #[test]
    fn unpinned_reference_is_no_pinned_reference() {
        assert!(PinnedReference::try_from(parse("a/b:1").unwrap()).is_err());
        let digest = Digest::of(b"x");
        let pinned = PinnedReference::try_from(parse(&format!("a/b:1@{digest}")).unwrap()).unwrap();
        assert_eq!(pinned.to_string(), format!("docker.io/a/b@{digest}"));
    }

    #[test]
    fn what_breaks_the_grammar_is_refused() {
        for text in [
            "",
            "Alpine",
            "a//b",
            "a/b:",
            "a/b:-x",
            "a/b@sha256:00",
            "a/b@md5:00",
            "-a",
            "a-/b",
            "a..b/c",
            "h:0/a",
            "h:99999/a",
            "h.:80/a",
            "a b",
            "a/b\n",
            "http://h/a",
            "a/b@",
            "/a",
            "a/",
        ] {
            assert!(parse(text).is_err(), "`{text}` was accepted");
        }
        let long = "a".repeat(256);
        assert!(parse(&long).is_err());
    }

    #[test]
    fn length_counts_with_docker_hubs_own_parts_filled_in() {
        let hub = "docker.io/library/".len();
        assert!(parse(&"a".repeat(MAX_NAME - hub)).is_ok());
        assert!(parse(&"a".repeat(MAX_NAME - hub + 1)).is_err());
        assert!(parse(&format!("h.io/{}", "a".repeat(MAX_NAME - 5))).is_ok());
    }

    #[test]
    fn upper_case_gets_the_lower_case_as_help() {
        let error = parse("ghcr.io/Acme/mail:1").unwrap_err();
        assert_eq!(error.help(), "repository names are lower case: write `acme`");
    }

    #[test]
    fn prefixes_are_whole_segments() {
        let repository = parse("h.io/acme-evil/x").unwrap().into_repository();
        assert!(!repository.is_within("h.io/acme"));
        assert!(repository.is_within("h.io/acme-evil"));
        assert!(repository.is_within("h.io/acme-evil/"));
        assert!(!repository.is_within("h.i"));
    }

    #[test]
    fn layouts_are_named_by_tag_and_digest() {
        let digest = Digest::of(b"x");
        let parts = |text: &str| match ImageSource::parse(text) {
            ImageSource::Layout { path, tag, digest } => Some((path, tag, digest)),
            ImageSource::Oci(_)
            | ImageSource::File(_)
            | ImageSource::Artifact(_)
            | ImageSource::Invalid(_) => None,
        };
        let named = |path: &str, tag: Option<&str>, digest| {
            Some((path.to_owned(), tag.map(str::to_owned), digest))
        };
        assert_eq!(parts("layout:a/b"), named("a/b", None, None));
        assert_eq!(parts("layout:a/b:1"), named("a/b", Some("1"), None));
        assert_eq!(parts(&format!("layout:a@{digest}")), named("a", None, Some(digest)));
        assert_eq!(parts(&format!("layout:a:1@{digest}")), named("a", Some("1"), Some(digest)));
        assert_eq!(parts("layout:a@sha256:00"), None);
    }

    #[test]
    fn image_fields_name_bytes_in_five_ways() {
        let kinds = ["artifact://web", "file:app.wasm", "layout:dir:1", "oci://h.io/a:1", "A B"]
            .map(|text| ImageSource::parse(text).kind());
        assert_eq!(kinds, ["artifact", "file", "layout", "oci", "invalid"]);
    }
}
