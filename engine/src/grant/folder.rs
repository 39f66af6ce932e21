//! Folder grants: where a folder appears, where it comes from, and what may be done to it.

mod sensitive;

use std::fmt;
use std::str::FromStr;

pub use sensitive::{RefusedFor, Sensitive, SensitiveKind};

/// The longest path, in bytes; Linux's PATH_MAX.
pub const MAX_PATH_BYTES: usize = 4096;

/// A path as a component sees it: absolute, without `..`; compared by whole segments.
///
/// `Display` gives back the source text; [`GuestPath::as_str`] the normalised path.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GuestPath {
    path: String,
    text: String,
}

/// A path on the machine: absolute, without `..`; compared by whole segments.
///
/// The text alone is judged. Whoever opens the folder resolves symlinks first and judges the
/// result again.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostPath {
    path: String,
    text: String,
}

/// Why a text is not a folder path.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FolderPathError {
    /// The path is empty.
    #[error("empty folder path")]
    Empty,
    /// The path doesn't start with `/`.
    #[error("folder path is relative")]
    Relative,
    /// A segment is `..`.
    #[error("`..` in a folder path")]
    ParentSegment,
    /// A segment starts with `~`, which some readers expand and others don't.
    #[error("`~` in a folder path")]
    Tilde,
    /// The path holds NUL or another control character.
    #[error("control character in a folder path")]
    Control,
    /// The path is too long.
    #[error("folder path of {found} bytes is over the limit of {limit}")]
    TooLong {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
}

impl FolderPathError {
    /// The stable code of this error.
    pub fn code(self) -> &'static str {
        "folder-path"
    }

    /// What to do about it.
    pub fn help(self) -> Option<&'static str> {
        Some(match self {
            Self::Empty | Self::Relative => "write an absolute path such as `/srv/data`",
            Self::ParentSegment => "write the path that `..` leads to",
            Self::Tilde => "write the home folder in full",
            Self::Control => "remove the control character",
            Self::TooLong { .. } => "choose a shorter path",
        })
    }
}

impl GuestPath {
    /// Reads a path. Doubled and trailing slashes and `.` segments don't count.
    ///
    /// # Errors
    ///
    /// Every variant of [`FolderPathError`], by its description.
    pub fn parse(text: &str) -> Result<Self, FolderPathError> {
        Ok(Self { path: normalise(text)?, text: text.to_owned() })
    }

    /// The normalised path.
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// Whether `other` is this folder or lies in it.
    pub fn covers(&self, other: &Self) -> bool {
        contains(&self.path, &other.path)
    }
}

impl HostPath {
    /// Reads a path. Doubled and trailing slashes and `.` segments don't count.
    ///
    /// # Errors
    ///
    /// Every variant of [`FolderPathError`], by its description.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ambit_engine::grant::HostPath;
    /// assert_eq!(HostPath::parse("/srv//data/./a/")?.as_str(), "/srv/data/a");
    /// assert!(HostPath::parse("/srv/../etc").is_err());
    /// # Ok::<(), ambit_engine::grant::FolderPathError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, FolderPathError> {
        Ok(Self { path: normalise(text)?, text: text.to_owned() })
    }

    /// The normalised path.
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// Whether `other` is this folder or lies in it.
    pub fn covers(&self, other: &Self) -> bool {
        contains(&self.path, &other.path)
    }

    /// What makes the folder one to refuse, if anything does.
    pub fn sensitivity(&self) -> Option<Sensitive> {
        sensitive::judge(&self.path)
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a component may do to a folder. There is no default: whoever reads a form knows it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum FolderMode {
    /// Read.
    ReadOnly,
    /// Read and change.
    ReadWrite,
    /// Read and change, with a journal that takes the changes back.
    EditWithUndo,
    /// Read, and change after a person agrees to each change.
    AskBeforeEdit,
}

/// A word that is no folder mode.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown folder mode `{found}`")]
pub struct FolderModeError {
    found: String,
}

impl FolderModeError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        "folder-mode"
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some("write `read-only`, `read-write`, `edit-with-undo` or `ask-before-edit`")
    }
}

impl FolderMode {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
            Self::EditWithUndo => "edit-with-undo",
            Self::AskBeforeEdit => "ask-before-edit",
        }
    }

    /// Whether the folder can be changed in some way.
    pub fn can_write(self) -> bool {
        self != Self::ReadOnly
    }
}

impl FromStr for FolderMode {
    type Err = FolderModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let modes = [Self::ReadOnly, Self::ReadWrite, Self::EditWithUndo, Self::AskBeforeEdit];
        modes
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| FolderModeError { found: text.to_owned() })
    }
}

impl fmt::Display for FolderMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a folder's content comes from.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum FolderSource {
    /// A folder of the machine.
    Host(HostPath),
    /// An empty folder that goes away with the component.
    Ephemeral,
}

/// One folder given to one component.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FolderGrant {
    guest: GuestPath,
    source: FolderSource,
    mode: FolderMode,
}

impl FolderGrant {
    /// A grant of `source` at `guest`.
    pub fn new(guest: GuestPath, source: FolderSource, mode: FolderMode) -> Self {
        Self { guest, source, mode }
    }

    /// Where the component sees the folder.
    pub fn guest(&self) -> &GuestPath {
        &self.guest
    }

    /// Where the content comes from.
    pub fn source(&self) -> &FolderSource {
        &self.source
    }

    /// What may be done to it.
    pub fn mode(&self) -> FolderMode {
        self.mode
    }

    /// What makes the grant one to refuse: a sensitive folder, unless it is only sensitive to
    /// changes and can't be changed.
    pub fn refusal(&self) -> Option<Sensitive> {
        match &self.source {
            FolderSource::Ephemeral => None,
            FolderSource::Host(path) => path.sensitivity().filter(|sensitive| {
                sensitive.refused == RefusedFor::ReadAndWrite || self.mode.can_write()
            }),
        }
    }
}

/// How two guest paths meet.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OverlapKind {
    /// The same path twice.
    Duplicate,
    /// One lies in the other, and more may be done to one of them.
    NestedDifferentMode,
    /// One lies in the other, under one mode.
    NestedSameMode,
}

/// Two grants whose guest paths meet, by their places in the list; `first < second`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Overlap {
    /// The earlier grant.
    pub first: usize,
    /// The later grant.
    pub second: usize,
    /// How they meet.
    pub kind: OverlapKind,
}

/// The pairs of grants whose guest paths meet, in order. Takes time in the square of the list's
/// length, which a caller bounds.
pub fn overlaps(grants: &[FolderGrant]) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (first, one) in grants.iter().enumerate() {
        for (second, other) in grants.iter().enumerate().skip(first.saturating_add(1)) {
            let kind = match (one.guest.covers(&other.guest), other.guest.covers(&one.guest)) {
                (false, false) => continue,
                (true, true) => OverlapKind::Duplicate,
                _ if one.mode == other.mode => OverlapKind::NestedSameMode,
                _ => OverlapKind::NestedDifferentMode,
            };
            found.push(Overlap { first, second, kind });
        }
    }
    found
}

fn normalise(text: &str) -> Result<String, FolderPathError> {
    if text.is_empty() {
        return Err(FolderPathError::Empty);
    }
    if text.len() > MAX_PATH_BYTES {
        return Err(FolderPathError::TooLong { found: text.len(), limit: MAX_PATH_BYTES });
    }
    if text.chars().any(char::is_control) {
        return Err(FolderPathError::Control);
    }
    if text.starts_with('~') {
        return Err(FolderPathError::Tilde);
    }
    let rest = text.strip_prefix('/').ok_or(FolderPathError::Relative)?;
    let mut path = String::with_capacity(text.len());
    for segment in rest.split('/') {
        match segment {
            "" | "." => {}
            ".." => return Err(FolderPathError::ParentSegment),
            _ if segment.starts_with('~') => return Err(FolderPathError::Tilde),
            _ => {
                path.push('/');
                path.push_str(segment);
            }
        }
    }
    if path.is_empty() {
        path.push('/');
    }
    Ok(path)
}

/// Whether normalised `inner` is `outer` or lies in it.
fn contains(outer: &str, inner: &str) -> bool {
    outer == "/"
        || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
