//! Names of WIT interfaces and the semver track on which two versions of one mean the same.
//!
//! A policy that names `wasi:http/outgoing-handler@0.2.0` has to hold for `@0.2.6` too, since a
//! host links both to one implementation. [`Track`] is that equivalence, as wasmtime's linker has
//! it: one major version from 1.0.0 on, one minor version below, and the exact version for 0.0.x
//! and for every pre-release.

use std::fmt;

use semver::Version;

/// The name of a WIT interface: `namespace:package/interface`, with or without a version.
///
/// The name is matched exactly; `wasi:file-system/types` is another interface than
/// `wasi:filesystem/types`. Ordering is by name, then by version.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InterfaceName {
    namespace: String,
    package: String,
    interface: String,
    version: Option<Version>,
}

impl InterfaceName {
    /// Parses `namespace:package/interface[@version]`.
    ///
    /// Returns `None` for every other form: a bare name, a URL, a dependency, a name with an
    /// empty part or with a version that is not semver. Such a name is still an import; it just
    /// doesn't name an interface.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(Version::parse(version).ok()?)),
            None => (text, None),
        };
        let (namespace, rest) = name.split_once(':')?;
        let (package, interface) = rest.split_once('/')?;
        let word = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        (word(namespace) && word(package) && word(interface)).then(|| Self {
            namespace: namespace.to_owned(),
            package: package.to_owned(),
            interface: interface.to_owned(),
            version,
        })
    }

    /// Parses a name whose version is split into a canonical part and a suffix, as in
    /// `wasi:random/random@0.2` with suffix `.12` (component model, "canonical interface names").
    #[must_use]
    pub fn parse_with_suffix(text: &str, suffix: Option<&str>) -> Option<Self> {
        suffix.map_or_else(|| Self::parse(text), |suffix| Self::parse(&format!("{text}{suffix}")))
    }

    /// Returns the namespace, `wasi` in `wasi:http/types`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the package, `http` in `wasi:http/types`.
    #[must_use]
    pub fn package(&self) -> &str {
        &self.package
    }

    /// Returns the interface, `types` in `wasi:http/types`.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the version, if the name has one.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    /// Returns the name without its version.
    #[must_use]
    pub fn unversioned(&self) -> String {
        format!("{}:{}/{}", self.namespace, self.package, self.interface)
    }

    /// Returns the track that this name's version is on; `None` without a version.
    #[must_use]
    pub fn track(&self) -> Option<Track> {
        self.version.as_ref().map(Track::of)
    }

    /// Returns the name with the track in place of the version, the form that reports use.
    #[must_use]
    pub fn on_track(&self) -> String {
        match self.track() {
            Some(track) => format!("{}@{track}", self.unversioned()),
            None => self.unversioned(),
        }
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.namespace, self.package, self.interface)?;
        self.version.as_ref().map_or(Ok(()), |version| write!(f, "@{version}"))
    }
}

/// The set of versions that a host's linker treats as one.
///
/// Printed `1`, `0.2`, `0.0.3` or `0.3.0-rc-2026-01-06`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Track(String);

impl Track {
    /// Returns the track of a version.
    #[must_use]
    pub fn of(version: &Version) -> Self {
        Self(if !version.pre.is_empty() {
            format!("{}.{}.{}-{}", version.major, version.minor, version.patch, version.pre)
        } else if version.major > 0 {
            version.major.to_string()
        } else if version.minor > 0 {
            format!("0.{}", version.minor)
        } else {
            format!("0.0.{}", version.patch)
        })
    }

    /// Returns the track as it is printed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(text: &str) -> String {
        InterfaceName::parse(text)
            .and_then(|name| name.track())
            .map_or_else(|| "none".to_owned(), |track| track.to_string())
    }

    #[test]
    fn versions_of_one_track_meet() {
        assert_eq!(track("wasi:http/types@0.2.0"), track("wasi:http/types@0.2.12"));
        assert_eq!(track("a:b/c@1.0.0"), track("a:b/c@1.9.3"));
    }

    #[test]
    fn early_and_pre_release_versions_stand_alone() {
        assert_ne!(track("a:b/c@0.0.1"), track("a:b/c@0.0.2"));
        assert_eq!(track("a:b/c@0.3.0-rc-2026-01-06"), "0.3.0-rc-2026-01-06");
        assert_ne!(track("a:b/c@0.2.0"), track("a:b/c@0.3.0"));
        assert_eq!(track("a:b/c"), "none");
    }

    #[test]
    fn names_print_as_they_were_parsed() {
        for text in ["wasi:http/types@0.2.0", "acme:store/kv", "a:b/c@1.0.0-rc.1+build.5"] {
            assert_eq!(InterfaceName::parse(text).map(|n| n.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn other_kinds_of_names_are_not_interfaces() {
        for text in
            ["primary", "a:b", "a/b", "a:b/c@", "a:b/c@latest", "url=<https://h/x>", ":b/c", "a:/c"]
        {
            assert_eq!(InterfaceName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn canonical_version_and_suffix_are_one_version() {
        let name = InterfaceName::parse_with_suffix("wasi:random/random@0.2", Some(".12"));
        assert_eq!(name, InterfaceName::parse("wasi:random/random@0.2.12"));
    }
}
