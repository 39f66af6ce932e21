//! What a deployment offers a component: hosts it may call and folders it may open.
//!
//! A host grant is a set of (plane, scheme, hosts, ports), never a string. Three dialects are read
//! into that set ([`Dialect`]), the source text is kept so that an untouched entry prints back byte
//! for byte, and [`convert`] says what a rewrite into another dialect loses.
//!
//! Left out on purpose: name resolution, sockets and the file system. Nothing here resolves a name
//! or follows a symlink; a caller that does must judge every address with [`RangePolicy`] and every
//! resolved path again with [`HostPath::sensitivity`].
//!
//! # Invariants
//!
//! - A target is canonical before it is compared: ASCII lower case, one trailing dot removed, no
//!   userinfo, no name that a resolver could take for a number, v4-mapped addresses as IPv4.
//! - No wildcard stands for the machine's own loopback; only [`HostSet::HostInternal`] does.
//! - [`HostPattern::covers`] answers `true` only when inclusion is certain.

mod address;
mod dialect;
mod error;
mod folder;
mod grants;
mod host;
mod lint;
mod lookup;
mod matching;
mod name;
mod parse;
mod policy;
mod target;

pub use address::{AddressClass, classify, metadata_name};
pub use dialect::{Conversion, ConversionVerdict, Dialect, convert, crd_accepts};
pub use error::HostPatternError;
pub use folder::{
    FolderGrant, FolderMode, FolderModeError, FolderPathError, FolderSource, GuestPath, HostPath,
    MAX_PATH_BYTES, Overlap, OverlapKind, RefusedFor, Sensitive, SensitiveKind, overlaps,
};
pub use grants::{HostDecision, HostGrants};
pub use host::{Access, Cidr, HostPattern, HostSet, MAX_PATTERN_BYTES, PortSet, Scheme, SchemeSet};
pub use lint::{Breadth, HostLint, LintContext, PortTrap, address_classes, breadth, lints};
pub use lookup::{LookupPattern, LookupPatternError, LoopbackPort, LoopbackPortError, Protocol};
pub use name::{Name, NameError};
pub use policy::{Consent, RangePolicy, RangeRule};
pub use target::{CanonicalHost, Plane, Target, TargetError};

#[cfg(test)]
mod tests;
