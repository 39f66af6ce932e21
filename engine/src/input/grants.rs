//! What a deployment offers, as policies see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the deployment offers to one component.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Grants {
    /// Outbound hosts.
    pub hosts: Vec<HostGrant>,
    /// Names that may be looked up.
    pub lookups: Vec<NamedGrant>,
    /// Ports of the machine's own loopback, as `5432/tcp`.
    pub loopback_ports: Vec<NamedGrant>,
    /// Folders: its own, and those that links bring in.
    pub folders: Vec<FolderGrant>,
    /// Environment variables that are named one by one.
    pub env: Vec<EnvGrant>,
    /// Secrets and config maps that are given by reference.
    pub references: Vec<ReferenceGrant>,
    /// Whether any secret reaches the component.
    pub has_secret: bool,
}

/// One host grant, taken apart.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct HostGrant {
    /// The entry as written.
    pub raw: String,
    /// The entry in `ambit`'s grammar.
    pub canonical: String,
    /// What it means, in words.
    pub meaning: String,
    /// `any`, `suffix`, `suffix-and-apex`, `name`, `ip`, `cidr`, `host-internal`, `self`.
    pub kind: String,
    /// The name, address or network, without scheme and port; `*` for any.
    pub host: String,
    /// Whether the entry takes away instead of giving.
    pub deny: bool,
    /// Whether it matches every host.
    pub any_host: bool,
    /// Whether it matches every port.
    pub any_port: bool,
    /// Whether its targets can't be listed: any host, a public or shared suffix, a network.
    pub unbounded: bool,
    /// Address classes that it names: `loopback`, `link-local`, `metadata`, `private`, …
    pub address_classes: Vec<String>,
    /// Whether it names a cloud metadata service by address or name.
    pub metadata: bool,
    /// Whether it names only what the range policy always refuses.
    pub special: bool,
    /// Whether it names a private range or address.
    pub private: bool,
    /// Whether the wildcard is a top-level or public suffix.
    pub public_suffix: bool,
    /// Whether anybody can get a name under the wildcard.
    pub shared_suffix: bool,
    /// Codes of the lints that it earns.
    pub lints: Vec<String>,
    /// JSON pointer of the entry.
    pub path: String,
}

/// A grant that is a name only.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct NamedGrant {
    /// The entry as written.
    pub name: String,
    /// JSON pointer of the entry.
    pub path: String,
}

/// One folder grant.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct FolderGrant {
    /// Where the component sees it.
    pub guest: String,
    /// `host` or `ephemeral`.
    pub source: String,
    /// Whether `host` is there.
    pub has_host: bool,
    /// The folder on the machine, normalised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `read-only`, `read-write`, `edit-with-undo` or `ask-before-edit`.
    pub mode: String,
    /// Whether the mode lets the component change files.
    pub writable: bool,
    /// Whether the folder is the machine's root, or holds a sensitive folder.
    pub holds_sensitive: bool,
    /// Whether no component should read it (credentials, sockets, kernel interfaces).
    pub sensitive_read: bool,
    /// Whether no component should change it.
    pub sensitive_write: bool,
    /// What makes it sensitive, in words; empty if nothing does.
    pub sensitive_reason: String,
    /// Whether it comes along a link.
    pub inherited: bool,
    /// The component whose mount it is.
    pub owner: String,
    /// JSON pointer of the mount.
    pub path: String,
}

/// One environment variable that the deployment names.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct EnvGrant {
    /// The variable.
    pub name: String,
    /// `literal`, `secret` or `config`.
    pub source: String,
    /// Whether a literal value looks like a secret, by the variable's name or the value's form.
    pub looks_secret: bool,
    /// Length of a literal value in bytes; 0 for references.
    pub length: usize,
    /// JSON pointer of the variable.
    pub path: String,
}

/// A secret or config map given by reference.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ReferenceGrant {
    /// `secret`, `config` or `pull-secret`.
    pub kind: String,
    /// The object's name.
    pub name: String,
    /// `environment`, `interface` or `pull`.
    pub into: String,
    /// JSON pointer of the reference.
    pub path: String,
}
