//! The command line.

use std::path::PathBuf;

use ambit_engine::policy::Profile;
use ambit_engine::workload::Target;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Tells what a WebAssembly component can reach, decides whether that is allowed, and explains both
#[derive(Debug, Parser)]
#[command(name = "ambit", version, max_term_width = 100, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 allowed or done, 1 denied, 2 no decision, 3 warnings under --fail-on-warn,\n4 a component of `run` failed by itself\n\nStart with: ambit reach workload.yaml"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// How the answer is written
    #[arg(long, global = true, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
    /// Whether human output is coloured
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Print the answer only, no warnings about the run
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Use this configuration and look for no other
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Add the interfaces of this file to the catalogue
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) catalogue: Vec<PathBuf>,
}

/// A form of the answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// For a person at a terminal
    Human,
    /// One JSON document with a `schema`
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for test reports
    Junit,
    /// Annotations of GitHub Actions
    Github,
    /// Markdown, for a comment on a pull request
    Markdown,
}

impl Format {
    /// The word that chooses it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Sarif => "sarif",
            Self::Junit => "junit",
            Self::Github => "github",
            Self::Markdown => "markdown",
        }
    }
}

/// When to colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what one component or module can do before any configuration
    Inspect(Inspect),
    /// Show what each component of the workloads can reach, and why
    Reach(Reach),
    /// Decide whether workloads or components are allowed
    Check(Check),
    /// Check workloads or components, then run them with exactly what was admitted
    Run(Box<Run>),
    /// Look at what runs did
    #[command(subcommand)]
    Record(Record),
    /// Verify signatures and attestations against a trust policy or cosign's flags
    Verify(Box<Verify>),
    /// Write the digest that each tag has now into workload documents
    Pin(Pin),
    /// Fetch a component from a registry or layout
    Pull(Pull),
    /// Store a component in a registry or layout
    Push(Push),
    /// Sign an image with a key, as cosign does
    Sign(Sign),
    /// Attest something about an image with a key, as cosign does
    Attest(Attest),
    /// Make a key pair for `sign` and `attest`
    Keygen(Keygen),
    /// Print the page of a diagnostic code
    Explain(Explain),
    /// Look at policy packs and schemas
    #[command(subcommand)]
    Policy(Policy),
    /// Run one workload for the `ambit run` that started this process
    #[command(hide = true)]
    IsolatedWorker,
    /// Print the completion script of a shell
    Completions(Completions),
    /// Print the manual page
    Man,
}

/// `ambit inspect`.
#[derive(Args, Debug)]
#[command(after_help = "Example: ambit inspect app.wasm")]
pub(crate) struct Inspect {
    /// A `.wasm` file, `-` for standard input, `REGISTRY/REPO[:TAG][@DIGEST]`, or `layout:DIR[:TAG]`
    pub(crate) source: String,
    /// Print the component's world in WIT instead
    #[arg(long)]
    pub(crate) wit: bool,
    /// Validate function bodies too
    #[arg(long)]
    pub(crate) check_code: bool,
    #[command(flatten)]
    pub(crate) registry: Registry,
}

/// How registries are read.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Registries")]
pub(crate) struct Registry {
    /// Read files, layouts and the cache only; fetch nothing
    #[arg(long)]
    pub(crate) offline: bool,
    /// Keep what was fetched here; default: `ambit` in the user's cache folder
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Read from another registry instead; digests are checked, reports keep the name
    #[arg(long, value_name = "HOST=HOST[:PORT][/PREFIX]")]
    pub(crate) mirror: Vec<String>,
    /// Allow plain http and inside addresses for this registry
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) insecure_registry: Vec<String>,
    /// Show no progress
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Whose signatures count.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Trust")]
pub(crate) struct Trust {
    /// Trust policies: TrustPolicy or ClusterImagePolicy documents
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: Vec<PathBuf>,
    /// Use this `trusted_root.json` in place of the built-in public-good one
    #[arg(long, value_name = "FILE")]
    pub(crate) trusted_root: Option<PathBuf>,
    /// Fetch the public-good root by TUF first, into the cache
    #[arg(long, conflicts_with = "offline")]
    pub(crate) update_trust_root: bool,
}

/// Where the bytes and the meaning of workloads come from.
#[derive(Args, Debug)]
pub(crate) struct Inputs {
    /// Workload documents, components, or references; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Take this file for the bytes of the component NAME; nothing is fetched for it
    #[arg(long, value_name = "NAME=PATH")]
    pub(crate) component: Vec<String>,
    /// Whose semantics grants have; default: those of each document's own engine
    #[arg(long, value_enum)]
    pub(crate) target: Option<TargetName>,
    #[command(flatten)]
    pub(crate) registry: Registry,
}

/// A target by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TargetName {
    /// wasmCloud's host
    Wasmcloud,
    /// Spin and the containerd shims
    Spin,
    /// Our executor: the strict reading
    Ambit,
}

impl From<TargetName> for Target {
    fn from(name: TargetName) -> Self {
        match name {
            TargetName::Wasmcloud => Self::WasmCloud,
            TargetName::Spin => Self::Spin,
            TargetName::Ambit => Self::Ambit,
        }
    }
}

/// `ambit reach`.
#[derive(Args, Debug)]
#[command(after_help = "Example: ambit reach workload.yaml --component web=build/web.wasm")]
pub(crate) struct Reach {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Turn the report round: which components reach each host, folder or secret
    #[arg(long, value_enum, value_name = "THING")]
    pub(crate) by: Option<By>,
}

/// What the inverse report groups by.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum By {
    /// Hosts, addresses and this machine's ports
    Host,
    /// Folders
    Folder,
    /// Secrets
    Secret,
}

impl By {
    /// The word that chooses it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Folder => "folder",
            Self::Secret => "secret",
        }
    }
}

/// `ambit check`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example: ambit check workload.yaml --component web=build/web.wasm --profile strict"
)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Which rules deny: `baseline` warns where `strict` denies
    #[arg(long, value_enum)]
    pub(crate) profile: Option<ProfileName>,
    /// Load this pack (a folder or a `.rego` file) beside the shipped ones
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) policy: Vec<PathBuf>,
    /// The time of the decision; default: the time of the run
    #[arg(long, value_name = "RFC3339")]
    pub(crate) now: Option<String>,
    /// Exit with 3 if something warns and nothing denies
    #[arg(long)]
    pub(crate) fail_on_warn: bool,
    /// Print what each component can reach before the decision (human output)
    #[arg(long)]
    pub(crate) reach: bool,
    #[command(flatten)]
    pub(crate) trust: Trust,
    /// Print the merged configuration with the origin of each value, and stop
    #[arg(long)]
    pub(crate) show_config: bool,
}

/// A profile by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ProfileName {
    /// What nobody should run denies, what somebody should know warns
    Baseline,
    /// Both deny
    Strict,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Baseline => Self::Baseline,
            ProfileName::Strict => Self::Strict,
        }
    }
}

/// `ambit run`.
#[derive(Args, Debug)]
#[command(
    after_help = "A guest's own non-zero status is exit code 4.\n\nExamples:\n  ambit run workload.yaml                    (serves http://NAME.localhost:8200/)\n  ambit run tool.wasm -- --help               (runs a command with arguments)\n  ambit run lib.wasm --invoke 'add(1, 2)'     (calls one function)"
)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Arguments of a command component
    #[arg(last = true, value_name = "ARGS", help_heading = "Running")]
    pub(crate) arguments: Vec<String>,
    /// Call this exported function once, in WAVE syntax, and print the result
    #[arg(long, value_name = "FN(ARGS)", help_heading = "Running",
        conflicts_with_all = ["listen", "watch"])]
    pub(crate) invoke: Option<String>,
    /// Where HTTP handlers are served
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        help_heading = "Running",
        default_value = "127.0.0.1:8200"
    )]
    pub(crate) listen: std::net::SocketAddr,
    /// Let pages of other sites ask this workload through a browser
    #[arg(long, value_name = "NAME", help_heading = "Running")]
    pub(crate) allow_cross_site: Vec<String>,
    /// Check and load again when a manifest or component changes
    #[arg(long, help_heading = "Running")]
    pub(crate) watch: bool,
    /// Run each workload in a process of its own; `auto` does with more than one
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Running", num_args = 0..=1, require_equals = true,
        default_value = "auto", default_missing_value = "always")]
    pub(crate) isolate: Isolate,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    #[command(flatten)]
    pub(crate) given: Given,
    #[command(flatten)]
    pub(crate) recording: Recording,
    /// Which rules deny: `baseline` warns where `strict` denies
    #[arg(long, value_enum, help_heading = "Policies")]
    pub(crate) profile: Option<ProfileName>,
    /// Load this pack (a folder or a `.rego` file) beside the shipped ones
    #[arg(long, value_name = "DIR|FILE", help_heading = "Policies")]
    pub(crate) policy: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: Trust,
}

/// When a workload gets a process of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Isolate {
    /// With more than one workload
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The bounds of each instance.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct Bounds {
    /// Wall time of one call or command, as `30s` or `5m`
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// CPU time of one call or command
    #[arg(long, value_name = "TIME")]
    pub(crate) cpu_time: Option<String>,
    /// Memory of one instance, all memories and tables together, as `256Mi`
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Another bound by its name, as `run.limits` in `ambit.yaml` has it
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) limit: Vec<String>,
}

/// What the operator gives beside the manifest.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Given by you")]
pub(crate) struct Given {
    /// A Secret that the manifest refers to
    #[arg(long, value_name = "NAME[.KEY]=env:VAR|file:PATH|cmd:COMMAND")]
    pub(crate) secret: Vec<String>,
    /// Give the component a placeholder for this Secret's key, and send the value in this header to
    /// this host only
    #[arg(long, value_name = "NAME.KEY=HEADER@HOST")]
    pub(crate) secret_header: Vec<String>,
    /// A ConfigMap that the manifest refers to
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) config_map: Vec<String>,
    /// Open this port of this machine's loopback to components that are granted it
    #[arg(long, value_name = "PORT")]
    pub(crate) allow_host_loopback: Vec<u16>,
    /// Let granted names lead to private addresses
    #[arg(long)]
    pub(crate) allow_private_network: bool,
    /// Trust these certificates (PEM) for outgoing TLS, beside the built-in roots
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Vec<PathBuf>,
    /// Where host services keep what they store; without it they forget at the end
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

/// What is kept of the run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Record")]
pub(crate) struct Recording {
    /// Where the record is kept; default: `ambit/record` in the user's state folder
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Flush each line of the record to the disk before its effect
    #[arg(long)]
    pub(crate) record_sync: bool,
    /// Sign the record with this private key where a file ends and at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) record_key: Option<PathBuf>,
    /// A file with that key's password; default: `COSIGN_PASSWORD`, else a prompt
    #[arg(long, value_name = "FILE", requires = "record_key")]
    pub(crate) record_password_file: Option<PathBuf>,
    /// The size at which the record goes on in a new file, as `64Mi`
    #[arg(long, value_name = "SIZE")]
    pub(crate) record_rotate: Option<String>,
    /// Serve metrics in the form of Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    /// Send traces to this OpenTelemetry collector, as OTLP over HTTP
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
}

/// `ambit record`.
#[derive(Debug, Subcommand)]
pub(crate) enum Record {
    /// List the records of a folder, the newest first
    List(RecordList),
    /// Show what each component of a run did
    Show(RecordShow),
    /// Check that a record holds together, and its signature
    Verify(RecordVerify),
    /// Print each effect of a run as it happens
    Tail(RecordTail),
}

/// `ambit record list`.
#[derive(Args, Debug)]
pub(crate) struct RecordList {
    /// The folder of records; default: `ambit/record` in the user's state folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Which record.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordSource {
    /// A record's file or the name of its run; default: the newest
    pub(crate) record: Option<String>,
    /// The folder of records; default: `ambit/record` in the user's state folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Which effects.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Filters")]
pub(crate) struct RecordFilter {
    /// Of this workload: `NAME` or `NAMESPACE/NAME`
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Of this component
    #[arg(long, value_name = "NAME")]
    pub(crate) component: Option<String>,
    /// Of this kind, as the report says it: `reach-hosts`, `read-folder`, …
    #[arg(long)]
    pub(crate) verb: Option<String>,
    /// On this host
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// Denied ones only
    #[arg(long)]
    pub(crate) denied: bool,
}

/// `ambit record show`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ambit record show\n  ambit record show --denied\n  ambit record show --lines --component mailer"
)]
pub(crate) struct RecordShow {
    #[command(flatten)]
    pub(crate) source: RecordSource,
    /// Print each effect on a line instead; with `--format json`, the lines as they are
    #[arg(long)]
    pub(crate) lines: bool,
    #[command(flatten)]
    pub(crate) filter: RecordFilter,
}

/// `ambit record verify`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ambit record verify\n  ambit record verify run.ndjson --key cosign.pub\n\nExit codes: 0 it holds, 1 it doesn't, 2 it can't be read"
)]
pub(crate) struct RecordVerify {
    #[command(flatten)]
    pub(crate) source: RecordSource,
    /// Public key (PEM) of `ambit run --record-key`: every line has to be under a seal of it
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// The hash with which the record has to end, as `ambit run` tells it when it ends
    #[arg(long, value_name = "sha256:HEX")]
    pub(crate) head: Option<String>,
}

/// `ambit record tail`.
#[derive(Args, Debug)]
pub(crate) struct RecordTail {
    #[command(flatten)]
    pub(crate) source: RecordSource,
    /// Begin with what happened already
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) filter: RecordFilter,
}

/// `ambit verify`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ambit verify registry.example/mail:1.4 --trust trust.yaml\n  ambit verify registry.example/mail:1.4 --key cosign.pub\n  ambit verify --bundle app.sigstore.json --artifact app.wasm --certificate-identity dana@example.com \\\n    --certificate-oidc-issuer https://accounts.example.com"
)]
pub(crate) struct Verify {
    /// `REGISTRY/REPO[:TAG][@DIGEST]` or `layout:DIR[:TAG]`
    #[arg(required_unless_present = "bundle")]
    pub(crate) reference: Option<String>,
    /// Verify this bundle, without a registry
    #[arg(long, value_name = "FILE", conflicts_with = "reference")]
    pub(crate) bundle: Option<PathBuf>,
    /// The digest that the bundle is about
    #[arg(long, value_name = "DIGEST", requires = "bundle", conflicts_with = "artifact")]
    pub(crate) digest: Option<String>,
    /// The file that the bundle is about
    #[arg(long, value_name = "FILE", requires = "bundle")]
    pub(crate) artifact: Option<PathBuf>,
    /// The time of the verification; default: the time of the run
    #[arg(long, value_name = "RFC3339")]
    pub(crate) now: Option<String>,
    #[command(flatten)]
    pub(crate) cosign: CosignFlags,
    #[command(flatten)]
    pub(crate) trust: Trust,
    #[command(flatten)]
    pub(crate) registry: Registry,
}

/// Flags that cosign has too, under the same names and with the same meaning, but for regular
/// expressions: they have to match the whole text here.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "As cosign has them")]
pub(crate) struct CosignFlags {
    /// Public key: a PEM file, or `env://VARIABLE`
    #[arg(long, value_name = "FILE", conflicts_with = "trust")]
    pub(crate) key: Option<String>,
    /// The certificate's subject
    #[arg(long, value_name = "TEXT", conflicts_with = "trust")]
    pub(crate) certificate_identity: Option<String>,
    /// A pattern that the certificate's whole subject matches
    #[arg(long, value_name = "REGEX", conflicts_with_all = ["certificate_identity", "trust"])]
    pub(crate) certificate_identity_regexp: Option<String>,
    /// The issuer in the certificate
    #[arg(long, value_name = "URL")]
    pub(crate) certificate_oidc_issuer: Option<String>,
    /// A pattern that the certificate's whole issuer matches
    #[arg(long, value_name = "REGEX", conflicts_with = "certificate_oidc_issuer")]
    pub(crate) certificate_oidc_issuer_regexp: Option<String>,
    /// The event that triggered the GitHub workflow
    #[arg(long, value_name = "TEXT")]
    pub(crate) certificate_github_workflow_trigger: Option<String>,
    /// The commit of the GitHub workflow
    #[arg(long, value_name = "TEXT")]
    pub(crate) certificate_github_workflow_sha: Option<String>,
    /// The name of the GitHub workflow
    #[arg(long, value_name = "TEXT")]
    pub(crate) certificate_github_workflow_name: Option<String>,
    /// The repository of the GitHub workflow
    #[arg(long, value_name = "TEXT")]
    pub(crate) certificate_github_workflow_repository: Option<String>,
    /// The git reference of the GitHub workflow
    #[arg(long, value_name = "TEXT")]
    pub(crate) certificate_github_workflow_ref: Option<String>,
    /// Certificates (PEM) of the authorities that may issue, in place of a trust root's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_roots: Option<PathBuf>,
    /// Certificates (PEM) between those and the signer's
    #[arg(long, value_name = "FILE", requires = "ca_roots")]
    pub(crate) ca_intermediates: Option<PathBuf>,
    /// Certificates (PEM) from the signer's issuer up to a root
    #[arg(long, value_name = "FILE", conflicts_with = "ca_roots")]
    pub(crate) certificate_chain: Option<PathBuf>,
    /// Ask for no transparency log entry
    #[arg(long)]
    pub(crate) insecure_ignore_tlog: bool,
    /// Ask for no certificate transparency timestamp
    #[arg(long)]
    pub(crate) insecure_ignore_sct: bool,
    /// Ask for an RFC 3161 timestamp
    #[arg(long)]
    pub(crate) use_signed_timestamps: bool,
    /// An annotation that the signature must carry
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(crate) annotations: Vec<String>,
    /// Ask for an attestation of this type: a name of cosign's, or a URI
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) predicate_type: Option<String>,
    /// The most time since the verified time of signing, as `90d` or `36h`
    #[arg(long, value_name = "DURATION")]
    pub(crate) max_age: Option<String>,
}

/// `ambit pin`.
#[derive(Args, Debug)]
#[command(after_help = "Example: ambit pin workload.yaml")]
pub(crate) struct Pin {
    /// Workload documents, edited in place; `-` reads standard input and prints the result
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Change nothing; exit with 1 if an image names no digest
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) registry: Registry,
}

/// `ambit pull`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ambit pull registry.example/mail:1.4 --output mail.wasm\n  ambit pull registry.example/mail:1.4 --output layout:mail:1.4"
)]
pub(crate) struct Pull {
    /// `REGISTRY/REPO[:TAG][@DIGEST]` or `layout:DIR[:TAG]`
    pub(crate) reference: String,
    /// The file to write, or `layout:DIR[:TAG]` for everything with its signatures; default: the
    /// last part of the repository with `.wasm`
    #[arg(long, short, value_name = "FILE|layout:DIR")]
    pub(crate) output: Option<String>,
    #[command(flatten)]
    pub(crate) registry: Registry,
}

/// `ambit push`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ambit push mail.wasm registry.example/mail:1.4\n  ambit push layout:mail:1.4 registry.example/mail:1.4"
)]
pub(crate) struct Push {
    /// A component, or `layout:DIR[:TAG]` for an image with its signatures
    pub(crate) source: String,
    /// `REGISTRY/REPO:TAG` or `layout:DIR:TAG`
    pub(crate) reference: String,
    /// An annotation of the manifest
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(crate) annotation: Vec<String>,
    /// The time of creation; default: the time of the run
    #[arg(long, value_name = "RFC3339")]
    pub(crate) created: Option<String>,
    #[command(flatten)]
    pub(crate) registry: Registry,
}

/// A private key and its password.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SigningKey {
    /// Private key: PEM, or cosign's encrypted form
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// A file with the key's password; default: `COSIGN_PASSWORD`, else a prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

/// `ambit sign`.
#[derive(Args, Debug)]
#[command(after_help = "Example: ambit sign registry.example/mail:1.4 --key cosign.key")]
pub(crate) struct Sign {
    /// `REGISTRY/REPO[:TAG][@DIGEST]` or `layout:DIR[:TAG]`
    pub(crate) reference: String,
    #[command(flatten)]
    pub(crate) key: SigningKey,
    /// An annotation of the signature
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(crate) annotations: Vec<String>,
    /// Write the `.sig` tag of cosign 1 and 2 instead of a bundle
    #[arg(long)]
    pub(crate) legacy: bool,
    /// The time of signing; default: the time of the run
    #[arg(long, value_name = "RFC3339")]
    pub(crate) now: Option<String>,
    #[command(flatten)]
    pub(crate) registry: Registry,
}

/// `ambit attest`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["predicate", "capabilities", "decision"]))]
#[command(
    after_help = "Examples:\n  ambit attest registry.example/mail:1.4 --key cosign.key --type cyclonedx --predicate bom.json\n  ambit attest registry.example/mail:1.4 --key cosign.key --capabilities\n  ambit attest registry.example/mail:1.4 --key cosign.key --decision"
)]
pub(crate) struct Attest {
    /// `REGISTRY/REPO[:TAG][@DIGEST]` or `layout:DIR[:TAG]`
    pub(crate) reference: String,
    #[command(flatten)]
    pub(crate) key: SigningKey,
    /// A JSON file that holds the predicate
    #[arg(long, value_name = "FILE", requires = "predicate_type")]
    pub(crate) predicate: Option<PathBuf>,
    /// The predicate's type: a name of cosign's, or a URI
    #[arg(long = "type", value_name = "TYPE", requires = "predicate")]
    pub(crate) predicate_type: Option<String>,
    /// Attest the capabilities that the component's imports imply
    #[arg(long)]
    pub(crate) capabilities: bool,
    /// Check the component, and attest the decision as a SLSA verification summary
    #[arg(long)]
    pub(crate) decision: bool,
    /// Which rules deny, for `--decision`
    #[arg(long, value_enum)]
    pub(crate) profile: Option<ProfileName>,
    /// Write the `.att` tag of cosign 1 and 2 instead of a bundle
    #[arg(long)]
    pub(crate) legacy: bool,
    /// The time of the attestation; default: the time of the run
    #[arg(long, value_name = "RFC3339")]
    pub(crate) now: Option<String>,
    #[command(flatten)]
    pub(crate) trust: Trust,
    #[command(flatten)]
    pub(crate) registry: Registry,
}

/// `ambit keygen`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example: ambit keygen --output release   (writes release.key and release.pub)"
)]
pub(crate) struct Keygen {
    /// The files' common start: PREFIX.key and PREFIX.pub
    #[arg(long, short, value_name = "PREFIX", default_value = "cosign")]
    pub(crate) output: PathBuf,
    /// A file with the password; default: `COSIGN_PASSWORD`, else a prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Write the private key without a password (PKCS#8 PEM)
    #[arg(long, conflicts_with = "password_file")]
    pub(crate) no_password: bool,
}

/// `ambit explain`.
#[derive(Args, Debug)]
#[command(after_help = "Example: ambit explain image-digest-pin")]
pub(crate) struct Explain {
    /// A code as findings and errors print it; without one, all codes are listed
    pub(crate) code: Option<String>,
}

/// `ambit policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// List packs, rules, their actions under each profile, and parameters
    List(PolicyList),
    /// Print a JSON Schema: of what policies see, or of a document that a command prints
    Schema(PolicySchema),
}

/// `ambit policy list`.
#[derive(Args, Debug)]
pub(crate) struct PolicyList {
    /// Load this pack too
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) policy: Vec<PathBuf>,
}

/// `ambit policy schema`.
#[derive(Args, Debug)]
pub(crate) struct PolicySchema {
    /// Which document
    #[arg(value_enum, default_value_t = SchemaName::Input)]
    pub(crate) name: SchemaName,
}

/// A document with a JSON Schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum SchemaName {
    /// Input v1, what policies see
    Input,
    /// What `inspect --format json` prints
    Inspect,
    /// What `reach --format json` prints
    Reach,
    /// What `check --format json` prints
    Decision,
    /// What `verify --format json` prints
    Verify,
    /// TrustPolicy files
    TrustPolicy,
}

/// `ambit completions`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
