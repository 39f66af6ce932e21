//! The command line.

use std::path::PathBuf;

use ambit_engine::policy::Profile;
use ambit_engine::workload::Target;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Tells what a WebAssembly component can reach, decides whether that is allowed, and explains both
#[derive(Debug, Parser)]
#[command(name = "ambit", version, max_term_width = 100, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 allowed or done, 1 denied, 2 no decision, 3 warnings under --fail-on-warn\n\nStart with: ambit reach workload.yaml"
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
    /// Print the page of a diagnostic code
    Explain(Explain),
    /// Look at policy packs and schemas
    #[command(subcommand)]
    Policy(Policy),
    /// Print the completion script of a shell
    Completions(Completions),
    /// Print the manual page
    Man,
}

/// `ambit inspect`.
#[derive(Args, Debug)]
#[command(after_help = "Example: ambit inspect app.wasm")]
pub(crate) struct Inspect {
    /// A `.wasm` file, `-` for standard input, or `layout:DIR[:TAG]`
    pub(crate) source: String,
    /// Print the component's world in WIT instead
    #[arg(long)]
    pub(crate) wit: bool,
    /// Validate function bodies too
    #[arg(long)]
    pub(crate) check_code: bool,
}

/// Where the bytes and the meaning of workloads come from.
#[derive(Args, Debug)]
pub(crate) struct Inputs {
    /// Workload documents or components; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Take this file for the bytes of the component NAME; nothing is fetched for it
    #[arg(long, value_name = "NAME=PATH")]
    pub(crate) component: Vec<String>,
    /// Whose semantics grants have; default: those of each document's own engine
    #[arg(long, value_enum)]
    pub(crate) target: Option<TargetName>,
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
}

/// `ambit completions`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
