//! Folders: where a component sees one, what it is made of, and what it may do there.

use std::fmt;

/// The longest path that is read, in bytes; the limit of Linux (`PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4096;

/// Why a text is not a folder path.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FolderPathError {
    /// There is no text.
    #[error("empty path")]
    Empty,
    /// The text is too long.
    #[error("path of {found} bytes is over the limit of {limit}")]
    TooLong {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The path doesn't start at the root.
    #[error("not an absolute path")]
    Relative,
    /// A segment is `..`.
    #[error("a path with `..` can mean a place that it doesn't name")]
    Parent,
    /// A segment starts with `~`, which only a shell expands.
    #[error("`~` is not expanded here")]
    Tilde,
    /// The text holds a NUL or another control character.
    #[error("a path holds no control characters")]
    Control,
}

impl FolderPathError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "folder-path"
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Empty | Self::Relative | Self::Tilde => "write the whole path, from `/` on",
            Self::TooLong { .. } => "no file system takes a path of this length",
            Self::Parent => "write the path that is meant, without `..`",
            Self::Control => "retype the path by hand",
        })
    }
}

/// Splits an absolute path into segments, dropping empty ones and `.`.
fn segments(text: &str) -> Result<Vec<String>, FolderPathError> {
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
    let Some(rest) = text.strip_prefix('/') else { return Err(FolderPathError::Relative) };
    let mut segments = Vec::new();
    for segment in rest.split('/') {
        match segment {
            "" | "." => {}
            ".." => return Err(FolderPathError::Parent),
            _ if segment.starts_with('~') => return Err(FolderPathError::Tilde),
            _ => segments.push(segment.to_owned()),
        }
    }
    Ok(segments)
}

macro_rules! path_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Absolute and normalised: no `..`, no empty segment, no trailing slash. `Display` gives the
        /// normalised form, and parsing that gives the same value.
        #[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name {
            segments: Vec<String>,
        }

        impl $name {
            /// Reads an absolute path.
            ///
            /// # Errors
            ///
            /// Every variant of [`FolderPathError`], by its description.
            pub fn parse(text: &str) -> Result<Self, FolderPathError> {
                segments(text).map(|segments| Self { segments })
            }

            /// Tells whether `other` is this path or lies below it, by whole segments.
            #[must_use]
            pub fn covers(&self, other: &Self) -> bool {
                other.segments.starts_with(&self.segments)
            }

            /// Tells whether this is `/`.
            #[must_use]
            pub fn is_root(&self) -> bool {
                self.segments.is_empty()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.segments.is_empty() {
                    return f.write_str("/");
                }
                self.segments.iter().try_for_each(|segment| write!(f, "/{segment}"))
            }
        }
    };
}

path_type! {
    /// Where a component sees a folder.
    GuestPath
}
path_type! {
    /// A folder of the machine.
    HostPath
}

/// What a component may do in a folder.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum FolderMode {
    /// Read.
    ReadOnly,
    /// Read and change.
    ReadWrite,
    /// Read and change, each change kept so that it can be undone.
    EditWithUndo,
    /// Read; each change is asked for first.
    AskBeforeEdit,
}

/// A text that is no folder mode.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no folder mode")]
pub struct FolderModeError(pub String);

impl FolderModeError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "folder-mode"
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        Some("write `read-only`, `read-write`, `edit-with-undo` or `ask-before-edit`")
    }
}

impl FolderMode {
    /// Returns the stable word for this mode.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
            Self::EditWithUndo => "edit-with-undo",
            Self::AskBeforeEdit => "ask-before-edit",
        }
    }

    /// Tells whether the component can change files, asked or not.
    #[must_use]
    pub fn is_writable(self) -> bool {
        self != Self::ReadOnly
    }
}

impl std::str::FromStr for FolderMode {
    type Err = FolderModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::ReadOnly, Self::ReadWrite, Self::EditWithUndo, Self::AskBeforeEdit]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| FolderModeError(text.chars().take(40).collect()))
    }
}

/// What a folder is made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FolderSource {
    /// A folder of the machine.
    Host(HostPath),
    /// An empty folder that lives as long as the workload.
    Ephemeral,
}

/// A folder given to a component.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FolderGrant {
    /// Where the component sees it.
    pub guest: GuestPath,
    /// What it is made of.
    pub source: FolderSource,
    /// What the component may do there.
    pub mode: FolderMode,
}

/// How two folders of one component overlap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OverlapKind {
    /// Both at one path.
    Duplicate,
    /// One inside the other, with different modes.
    NestedDifferentMode,
    /// One inside the other, with one mode.
    NestedSameMode,
}

/// Two folders of one component that overlap, by index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Overlap {
    /// The earlier one.
    pub first: usize,
    /// The later one.
    pub second: usize,
    /// How they overlap.
    pub kind: OverlapKind,
}

/// Returns the pairs of folders whose guest paths overlap, in order.
#[must_use]
pub fn overlaps(grants: &[FolderGrant]) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (second, later) in grants.iter().enumerate() {
        for (first, earlier) in grants.iter().enumerate().take(second) {
            let kind = if earlier.guest == later.guest {
                OverlapKind::Duplicate
            } else if !earlier.guest.covers(&later.guest) && !later.guest.covers(&earlier.guest) {
                continue;
            } else if earlier.mode == later.mode {
                OverlapKind::NestedSameMode
            } else {
                OverlapKind::NestedDifferentMode
            };
            found.push(Overlap { first, second, kind });
        }
    }
    found
}

/// For what a sensitive folder is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RefusedFor {
    /// For reading too: credentials, sockets, kernel interfaces.
    Reading,
    /// For changing only: programs and libraries.
    Changing,
}

/// What makes a folder sensitive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SensitiveKind {
    /// The root of the machine.
    Root,
    /// Configuration and interfaces of the system.
    System,
    /// Programs and libraries.
    Programs,
    /// Keys and tokens of a person or machine.
    Credentials,
    /// A socket that controls containers.
    ContainerSocket,
    /// The home folders of all users.
    Homes,
}

impl SensitiveKind {
    /// Returns what it is, in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Root => "the root of the machine",
            Self::System => "system configuration and kernel interfaces",
            Self::Programs => "programs and libraries",
            Self::Credentials => "credentials",
            Self::ContainerSocket => "the socket that controls containers",
            Self::Homes => "the home folders of all users",
        }
    }
}

/// Why a folder should not be given to a component.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sensitive {
    /// The sensitive folder.
    pub folder: &'static str,
    /// What it holds.
    pub kind: SensitiveKind,
    /// For what it is refused.
    pub refused_for: RefusedFor,
    /// Whether the path lies above the sensitive folder and so holds it.
    pub ancestor: bool,
}

/// Folders that no component should get, most sensitive first; `*` stands for one segment.
const SENSITIVE: [(&str, SensitiveKind, RefusedFor); 32] = [
    ("/proc", SensitiveKind::System, RefusedFor::Reading),
    ("/sys", SensitiveKind::System, RefusedFor::Reading),
    ("/dev", SensitiveKind::System, RefusedFor::Reading),
    ("/var/run/secrets", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/run/secrets", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/var/lib/kubelet", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/var/lib/rancher", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/var/lib/etcd", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/etc/kubernetes", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/etc/ssl/private", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/home/*/.ssh", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/home/*/.aws", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/home/*/.kube", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/home/*/.gnupg", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/home/*/.docker", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/home/*/.config/gcloud", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/home/*/.azure", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/Users/*/.ssh", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/Users/*/.aws", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/Users/*/Library/Keychains", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/root", SensitiveKind::Credentials, RefusedFor::Reading),
    ("/var/run", SensitiveKind::ContainerSocket, RefusedFor::Reading),
    ("/run", SensitiveKind::ContainerSocket, RefusedFor::Reading),
    ("/var/lib/docker", SensitiveKind::ContainerSocket, RefusedFor::Reading),
    ("/var/lib/containerd", SensitiveKind::ContainerSocket, RefusedFor::Reading),
    ("/etc", SensitiveKind::System, RefusedFor::Reading),
    ("/boot", SensitiveKind::System, RefusedFor::Reading),
    ("/usr", SensitiveKind::Programs, RefusedFor::Changing),
    ("/bin", SensitiveKind::Programs, RefusedFor::Changing),
    ("/sbin", SensitiveKind::Programs, RefusedFor::Changing),
    ("/lib", SensitiveKind::Programs, RefusedFor::Changing),
    ("/opt", SensitiveKind::Programs, RefusedFor::Changing),
];

/// Folders that are sensitive as a whole although what lies in them is not.
const WHOLE: [(&str, SensitiveKind); 2] =
    [("/home", SensitiveKind::Homes), ("/Users", SensitiveKind::Homes)];

/// Tells whether `path` is `pattern` or lies below it.
fn at_or_below(path: &[String], pattern: &[&str]) -> bool {
    path.len() >= pattern.len()
        && path.iter().zip(pattern).all(|(own, wanted)| *wanted == "*" || own == wanted)
}

/// Tells whether `path` lies above `pattern`.
fn above(path: &[String], pattern: &[&str]) -> bool {
    path.len() < pattern.len()
        && path.iter().zip(pattern).all(|(own, wanted)| *wanted == "*" || own == wanted)
}

impl HostPath {
    /// Returns why this folder should not be given to a component, if there is a reason.
    ///
    /// The folder itself is named, one that it lies in, or one that it holds. A path is judged as
    /// it is written; whoever follows symlinks has to ask again with where they lead.
    #[must_use]
    pub fn sensitivity(&self) -> Option<Sensitive> {
        if self.is_root() {
            return Some(Sensitive {
                folder: "/",
                kind: SensitiveKind::Root,
                refused_for: RefusedFor::Reading,
                ancestor: false,
            });
        }
        // A user's own home holds that user's keys, so it counts as their ancestor below.
        for (folder, kind) in WHOLE {
            if self.to_string() == folder {
                return Some(Sensitive {
                    folder,
                    kind,
                    refused_for: RefusedFor::Reading,
                    ancestor: false,
                });
            }
        }
        let pattern = |folder: &'static str| -> Vec<&'static str> {
            folder.split('/').filter(|segment| !segment.is_empty()).collect()
        };
        let found = |ancestor: bool| {
            SENSITIVE.iter().find_map(|(folder, kind, refused_for)| {
                let pattern = pattern(folder);
                let hit = if ancestor {
                    above(&self.segments, &pattern)
                } else {
                    at_or_below(&self.segments, &pattern)
                };
                hit.then_some(Sensitive { folder, kind: *kind, refused_for: *refused_for, ancestor })
            })
        };
        found(false).or_else(|| found(true))
    }
}
