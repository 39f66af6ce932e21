//! Input v1: the one document that policies see.
//!
//! Everything that parsing could get wrong (references, addresses, host patterns, versions) is a
//! fact here, computed in Rust; a rule only compares. Lists and booleans are always present. A
//! scalar that isn't known is absent, never `null`, and has a boolean beside it, so that no rule
//! rests on an undefined value. Literal values of environment variables never enter the document.
//!
//! The JSON Schema that `ambit policy schema` prints is generated from these types.

mod grants;

use std::collections::BTreeMap;

pub use grants::{EnvGrant, FolderGrant, Grants, HostGrant, NamedGrant, ReferenceGrant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The whole document.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Input {
    /// Always `v1`.
    pub schema: String,
    /// Where the decision is taken: `ci`, `admission`, `audit` or `run`.
    pub mode: String,
    /// The time of the decision, RFC 3339 in UTC. Rules have no other clock.
    pub now: String,
    /// The target whose semantics the grants have: `wasmcloud`, `spin` or `ambit`.
    pub target: String,
    /// The request that led here.
    pub request: Request,
    /// Where the subject was read.
    pub source: Source,
    /// The subject: one workload, or one bare component as a workload of one.
    pub workload: Workload,
    /// Whether an earlier decision or lock entry is known; `previous` is absent otherwise.
    pub has_previous: bool,
    /// What was known before about each component, by component name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
}

/// The request behind a decision.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Request {
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT`, `AUDIT` or `CI`.
    pub operation: String,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The API server's identifier of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The groups of who asks.
    pub groups: Vec<String>,
    /// The subresource, as `ephemeralcontainers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_resource: Option<String>,
}

/// A place in a file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Source {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1; 0 where there is none, as in a binary.
    pub line: u32,
}

/// The subject of the decision.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Workload {
    /// `runtime.wasmcloud.dev/v1alpha1`, …; empty for a bare component.
    pub api_version: String,
    /// `Workload`, `Pod`, …; `Component` for a bare component.
    pub kind: String,
    /// The workload's name; empty if it has none yet (`generateName`).
    pub name: String,
    /// The namespace; `default` if the document names none.
    pub namespace: String,
    /// Labels of the object and of its pod or workload template.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the object and of its template.
    pub annotations: BTreeMap<String, String>,
    /// Labels of the namespace, where the front end knows them.
    pub namespace_labels: BTreeMap<String, String>,
    /// Fields that say where the workload runs.
    pub placement: Placement,
    /// The components, in the order of the document.
    pub components: Vec<Component>,
    /// Volumes that the workload defines.
    pub volumes: Vec<Volume>,
    /// Host interfaces that the workload asks for.
    pub host_interfaces: Vec<HostInterface>,
    /// What is wrong with the document or its grants, found while reading it.
    pub problems: Vec<Problem>,
    /// Ways from something private to something outside, along links or in one session.
    pub paths: Vec<ReachPath>,
}

/// Fields that say where a workload runs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Placement {
    /// Whether `hostId` is set.
    pub has_host_id: bool,
    /// The host that is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// Whether `environment` is set.
    pub has_environment: bool,
    /// The tenant pool that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Whether `environment` is set and is another namespace than the workload's own.
    pub foreign_environment: bool,
    /// JSON pointer of `hostId`, or of the specification.
    pub path: String,
}

/// One component of the workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Component {
    /// The name in the document; the file name for a bare component.
    pub name: String,
    /// `component`, `service`, `container`, `init`, `ephemeral`, `bare`.
    pub role: String,
    /// What it is: `agent`, `tool`, `service`; sorted, often empty.
    pub classes: Vec<String>,
    /// JSON pointer of the component in the document.
    pub path: String,
    /// The reference that names its bytes.
    pub image: Image,
    /// Whether the reference names a digest, or the component is a local file.
    pub pinned: bool,
    /// `present` or `absent`: whether the bytes were read.
    pub bytes: String,
    /// The digest of the bytes that were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether both a pinned digest and the bytes' digest are known.
    pub digest_checked: bool,
    /// Whether they are equal; false if `digest_checked` is false.
    pub digest_matches: bool,
    /// The digest of the manifest that names the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_digest: Option<String>,
    /// What the publisher says about the component, compared with the binary.
    pub claims: Claims,
    /// `checked`, `not-checked` or `unknown` (a registry or trust root gave no answer).
    pub evidence_state: String,
    /// What each trust policy that covers the image says.
    pub trust: Vec<TrustOutcome>,
    /// Whether at least one signature satisfies the trust policy.
    pub signed: bool,
    /// Whether a signature is present that is wrong in itself, and none satisfies.
    pub bad_signature: bool,
    /// Whether a satisfying signature is in a transparency log.
    pub in_transparency_log: bool,
    /// Signatures, verified or not.
    pub signatures: Vec<Signature>,
    /// Attestations, verified or not.
    pub attestations: Vec<Attestation>,
    /// Whether a verified SLSA provenance names this digest.
    pub has_provenance: bool,
    /// Whether a verified bill of materials names this digest.
    pub has_sbom: bool,
    /// What the binary asks for and offers.
    pub interfaces: Interfaces,
    /// What that implies.
    pub capabilities: Capabilities,
    /// What the deployment offers.
    pub grants: Grants,
    /// Capabilities met with grants.
    pub reach: Vec<ReachEntry>,
    /// Grants that nothing in the binary can use.
    pub dead_grants: Vec<GrantNote>,
    /// Imports that will be refused, since no grant covers them.
    pub missing_grants: Vec<GrantNote>,
    /// Imports that sibling components serve.
    pub links: Vec<Link>,
    /// The component together with everything it is linked to.
    pub closure: Closure,
    /// Limits that the deployment sets.
    pub resources: Resources,
    /// Ceilings that match this component, and what goes over each.
    pub ceilings: Vec<Ceiling>,
}

/// An image reference, taken apart.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Image {
    /// The reference as written; a file's path for a local file.
    pub raw: String,
    /// `oci`, `file`, `layout`, `artifact` (not resolved) or `invalid`.
    pub kind: String,
    /// The registry's host and port, `docker.io` if the reference names none.
    pub registry: String,
    /// The repository path, `library/` filled in for Docker Hub.
    pub repository: String,
    /// `registry/repository`, the form to compare with.
    pub name: String,
    /// Whether a tag is named.
    pub has_tag: bool,
    /// The tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether a digest is named.
    pub has_digest: bool,
    /// The digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// JSON pointer of the reference in the document.
    pub path: String,
}

/// What the publisher of an image says about the component, compared with the binary.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Claims {
    /// Whether the manifest's configuration says anything, and the bytes are there to compare.
    pub known: bool,
    /// Imports of the binary that the publisher doesn't name.
    pub unnamed_imports: Vec<String>,
    /// Imports that the publisher names and the binary doesn't have.
    pub absent_imports: Vec<String>,
}

/// What one trust policy says about one component.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct TrustOutcome {
    /// The policy's name.
    pub policy: String,
    /// Where it stands, `trust.yaml:3`.
    pub origin: String,
    /// `enforce` or `warn`.
    pub mode: String,
    /// Whether it is satisfied.
    pub satisfied: bool,
    /// If it isn't: why, in one line for each authority.
    pub reasons: Vec<String>,
}

/// A signature and what verification said.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Signature {
    /// Whether it satisfies the trust policy.
    pub verified: bool,
    /// `key` or `keyless`.
    pub kind: String,
    /// The certificate's identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The identity's issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The key's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Whether a transparency log entry was verified.
    pub tlog: bool,
    /// Whether it is wrong in itself, and not just made by somebody who isn't trusted.
    pub wrong: bool,
    /// Codes of what failed.
    pub errors: Vec<String>,
}

/// An attestation and what verification said.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Attestation {
    /// Whether it satisfies the trust policy.
    pub verified: bool,
    /// The predicate type.
    pub predicate_type: String,
    /// Whether one of its subjects is this digest.
    pub subject_matches: bool,
    /// Whether `age_seconds` is known.
    pub has_age: bool,
    /// Seconds between its verified time and `now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    /// The builder that a provenance names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builder_id: Option<String>,
    /// The source that a provenance names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_uri: Option<String>,
    /// Who signed it, in words; empty if nobody that is trusted did.
    pub signer: String,
    /// Codes of what failed.
    pub errors: Vec<String>,
    /// Whether `predicate` is there: it is verified and at most 256 KiB.
    pub has_predicate: bool,
    /// The predicate, as it was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<serde_json::Value>,
}

/// Imports and exports.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Interfaces {
    /// Top-level imports.
    pub imports: Vec<Import>,
    /// Top-level exports.
    pub exports: Vec<Export>,
}

/// One import.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Import {
    /// The name as in the binary.
    pub name: String,
    /// The interface without its version; the name itself if it names none.
    pub interface: String,
    /// The semver track, `0.2`; empty without a version.
    pub track: String,
    /// `func`, `instance`, `type`, `value`, `module`, `component` or `core`.
    pub sort: String,
    /// Whether the catalogue knows it.
    pub known: bool,
    /// The known interface that its name nearly is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_miss: Option<String>,
    /// Whether `near_miss` is there.
    pub has_near_miss: bool,
    /// Capability classes that its functions bear.
    pub classes: Vec<String>,
    /// Whether a sibling component or the host's own linker serves it, or nothing is known to.
    pub served_by: String,
}

/// One export.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Export {
    /// The name as in the binary.
    pub name: String,
    /// The interface without its version; the name itself if it names none.
    pub interface: String,
    /// The semver track; empty without a version.
    pub track: String,
}

/// Capability classes at each depth.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Capabilities {
    /// From every top-level import.
    pub declared: Vec<String>,
    /// From the functions that some core module inside takes.
    pub linked: Vec<String>,
    /// From the functions that can be called; a copy of `linked` until it is computed.
    pub reachable: Vec<String>,
    /// Whether `reachable` was computed.
    pub reachable_computed: bool,
    /// `exact`, `over-approximate` or `not-computed`, of the reachable depth.
    pub precision: String,
    /// Classes that count against a ceiling and against `cap/forbidden`: declared ones that need
    /// listing, with `fs.*` only where a live key function exists.
    pub counted: Vec<String>,
    /// Names of imports that the catalogue doesn't know.
    pub unknown: Vec<String>,
    /// Whether any class reaches the network.
    pub network: bool,
    /// Whether any class touches files.
    pub filesystem: bool,
    /// Imports that bear a network class.
    pub network_imports: Vec<String>,
    /// Imports that bear a file class.
    pub filesystem_imports: Vec<String>,
}

/// One thing that the component can reach.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ReachEntry {
    /// `reach hosts`, `read folder`, …
    pub verb: String,
    /// The capability class.
    pub capability: String,
    /// What is touched.
    pub subject: String,
    /// `grant`, `link:NAME`, `target-default` or `grant-only`.
    pub via: String,
    /// Whether a grant line gives it.
    pub has_grant: bool,
    /// The grant as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// JSON pointer of the grant, or of the component.
    pub path: String,
}

/// A grant without a use, or a use without a grant.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct GrantNote {
    /// `hosts`, `lookups`, `folders`, `interfaces`, `loopback`, `environment`.
    pub kind: String,
    /// The grant as written, or the import.
    pub subject: String,
    /// Why it is dead or missing.
    pub reason: String,
    /// JSON pointer of the grant, or of the component.
    pub path: String,
}

/// An import that a sibling serves.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Link {
    /// The interface.
    pub interface: String,
    /// The component that exports it.
    pub provider: String,
}

/// A component with everything that its links bring together.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Closure {
    /// Names of all members, the component's own included; sorted.
    pub members: Vec<String>,
    /// Whether a member reaches any host (HTTP or sockets without a list).
    pub any_host: bool,
    /// Whether a member reads or changes a folder of the machine.
    pub folder: bool,
    /// Whether a member holds a secret.
    pub secret: bool,
}

/// Limits that the deployment sets.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Resources {
    /// Whether a memory limit is set.
    pub memory_limited: bool,
    /// Whether a CPU or time limit is set.
    pub cpu_limited: bool,
    /// Warm instances that keep state between calls; 0 if none.
    pub pool_size: u64,
}

/// A ceiling that matches a component.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Ceiling {
    /// Where the ceiling stands, `ambit.yaml:4`.
    pub origin: String,
    /// What goes over it.
    pub excess: Vec<Excess>,
}

/// One thing over a ceiling.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Excess {
    /// `capability`, `host`, `folder` or `interface`.
    pub kind: String,
    /// The class, pattern, folder or interface.
    pub value: String,
    /// The import that bears the class; the grant's text otherwise.
    pub because: String,
    /// What the ceiling allows of this kind, as one line.
    pub allowed: String,
    /// JSON pointer of the grant, or of the component.
    pub path: String,
}

/// A volume that the workload defines.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// `host`, `ephemeral`, `both` (ambiguous) or `none`.
    pub kind: String,
    /// JSON pointer of the volume.
    pub path: String,
}

/// A host interface that the workload asks for.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct HostInterface {
    /// `namespace:package`.
    pub package: String,
    /// The interfaces.
    pub interfaces: Vec<String>,
    /// The version; empty if none is named.
    pub version: String,
    /// Names of the configuration keys.
    pub config_keys: Vec<String>,
    /// Whether a Secret feeds its configuration.
    pub has_secret: bool,
    /// Capability classes of the interfaces.
    pub classes: Vec<String>,
    /// Whether some component imports it.
    pub used: bool,
    /// JSON pointer of the entry.
    pub path: String,
}

/// Something wrong with the document, found while it was read.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Problem {
    /// A stable code: `volume-ambiguous`, `host-pattern`, `manifest-unknown-field`, …
    pub code: String,
    /// `invalid` (a grant that can't be read one way) or `lint`.
    pub level: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
    /// The component it concerns; empty for the workload.
    pub component: String,
    /// JSON pointer of the place.
    pub path: String,
}

/// A way from something private to something outside.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ReachPath {
    /// The component that reads.
    pub source: String,
    /// What it reads.
    pub reads: String,
    /// The components between, source and sink included.
    pub hops: Vec<String>,
    /// The component that sends.
    pub sink: String,
    /// Where it can send, each as written or in words.
    pub sends: Vec<String>,
    /// Whether where it can send can't be listed.
    pub unbounded: bool,
    /// How many hosts it can send to; 0 if unbounded.
    pub host_count: usize,
    /// `links` or `session`.
    pub along: String,
    /// JSON pointer of the sink component.
    pub path: String,
}

/// What was known before.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Previous {
    /// By component name.
    pub components: BTreeMap<String, PreviousComponent>,
}

/// What was known before of one component.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct PreviousComponent {
    /// The digest of its bytes; empty if unknown.
    pub digest: String,
    /// Its declared classes.
    pub capabilities: Vec<String>,
    /// What it could reach, as `verb subject`.
    pub reach: Vec<String>,
    /// Its signers.
    pub signers: Vec<String>,
}

/// Returns the JSON Schema of Input v1 (draft 2020-12).
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Input).to_value()
}
