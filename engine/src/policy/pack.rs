//! Packs: a folder of Rego files with a `pack.yaml`.

use std::collections::{BTreeMap, BTreeSet};

use super::metadata::{self, RuleInfo};
use super::{Action, PolicyLimits, Profile, callgraph};
use crate::digest::Digest;
use crate::document::{self, DocumentError, DocumentLimits, Format, Node};

/// One file of a pack.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PackFile {
    /// The name as messages print it, `baseline/image.rego`.
    pub name: String,
    /// Its bytes.
    pub text: Vec<u8>,
}

/// Whose pack it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// Ours: it is in the binary and its tests run in ours.
    Shipped,
    /// Somebody else's.
    Given,
}

/// A parameter of a pack.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// `list`, `string`, `integer` or `boolean`.
    pub kind: String,
    /// What it is unless it is set.
    pub default: serde_json::Value,
    /// What it does.
    pub description: String,
    /// Whether the default means "not configured".
    pub unset: bool,
}

/// Why a pack can't be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The pack has no Rego files, or too many files, or one that is too large.
    #[error("pack `{pack}`: {message}")]
    Form {
        /// The pack.
        pack: String,
        /// What is wrong.
        message: String,
    },
    /// `pack.yaml` can't be read.
    #[error("{file} can't be read")]
    Manifest {
        /// The file.
        file: String,
        /// What is wrong.
        #[source]
        source: DocumentError,
    },
    /// A Rego file doesn't parse; the text is the Rego engine's, with line and caret.
    #[error("{file} doesn't parse\n{message}")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// A METADATA block has the wrong form.
    #[error("{file}:{line}: METADATA: {message}")]
    Metadata {
        /// The file.
        file: String,
        /// The line of the block.
        line: u32,
        /// What is wrong.
        message: String,
    },
    /// Rules or functions call one another in a circle.
    #[error("pack `{pack}`: recursion through {}", names.join(" -> "))]
    Recursion {
        /// The pack.
        pack: String,
        /// The names in the circle.
        names: Vec<String>,
    },
    /// No rule of the pack can deny, warn or audit.
    #[error("pack `{pack}` has no rule named `deny`, `violation`, `warn` or `audit`")]
    NoRules {
        /// The pack.
        pack: String,
    },
    /// A parameter that the pack doesn't have, or of another type.
    #[error("parameter `{name}` of pack `{pack}`: {message}")]
    Parameter {
        /// The pack.
        pack: String,
        /// The parameter.
        name: String,
        /// What is wrong.
        message: String,
    },
}

impl PackError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Form { .. } => "pack-form",
            Self::Manifest { source, .. } => source.code(),
            Self::Syntax { .. } => "pack-syntax",
            Self::Metadata { .. } => "pack-metadata",
            Self::Recursion { .. } => "pack-recursion",
            Self::NoRules { .. } => "pack-no-rules",
            Self::Parameter { .. } => "pack-parameter",
        }
    }

    /// Returns what to do next, where there is something.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Form { .. } => Some("a pack is a folder of `.rego` files".to_owned()),
            Self::Manifest { source, .. } => source.help(),
            Self::Syntax { .. } => None,
            Self::Metadata { .. } => {
                Some("write `title`, and `custom: {id: …, severity: …}`".to_owned())
            }
            Self::Recursion { .. } => Some(
                "Rego has no recursion; use `walk`, or rename a local variable that has a rule's name"
                    .to_owned(),
            ),
            Self::NoRules { .. } => {
                Some("name a rule `deny`, as in `deny contains finding if { … }`".to_owned())
            }
            Self::Parameter { .. } => {
                Some("`ambit policy list` shows the parameters of each pack".to_owned())
            }
        }
    }
}

/// A pack: rules, parameters and the actions of its profiles.
#[derive(Clone, Debug)]
pub struct Pack {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) package: String,
    pub(super) description: String,
    pub(super) parameters: BTreeMap<String, Parameter>,
    pub(super) profiles: BTreeMap<String, BTreeMap<String, Action>>,
    pub(super) modules: Vec<(String, String)>,
    pub(super) rules: Vec<RuleInfo>,
    /// Full paths of the rules to evaluate, `data.ambit.baseline.deny`.
    pub(super) entrypoints: BTreeSet<String>,
    pub(super) digest: Digest,
    pub(super) origin: Origin,
}

impl Pack {
    /// Reads a pack from its files; those named `*_test.rego` are kept apart.
    ///
    /// # Errors
    ///
    /// [`PackError`] names the file and what is wrong with it.
    pub fn read(
        name: &str,
        files: &[PackFile],
        origin: Origin,
        limits: &PolicyLimits,
    ) -> Result<Self, PackError> {
        let form = |message: String| PackError::Form { pack: name.to_owned(), message };
        if files.len() > limits.max_files {
            return Err(form(format!(
                "{} files are over the limit of {}",
                files.len(),
                limits.max_files
            )));
        }
        let mut pack = Self {
            name: name.to_owned(),
            version: String::new(),
            package: String::new(),
            description: String::new(),
            parameters: BTreeMap::new(),
            profiles: BTreeMap::new(),
            modules: Vec::new(),
            rules: Vec::new(),
            entrypoints: BTreeSet::new(),
            digest: digest(files),
            origin,
        };
        for file in files {
            if file.text.len() > limits.max_file_bytes {
                return Err(form(format!(
                    "{}: {} bytes are over the limit of {}",
                    file.name,
                    file.text.len(),
                    limits.max_file_bytes
                )));
            }
            if file.name.ends_with("pack.yaml") {
                pack.manifest(file)?;
            }
        }
        for file in files.iter().filter(|file| file.name.ends_with(".rego")) {
            let text = String::from_utf8(file.text.clone())
                .map_err(|_| form(format!("{} is no UTF-8", file.name)))?;
            if !file.name.ends_with("_test.rego") {
                pack.rules.extend(metadata::read(&pack.name, &file.name, &text)?);
                pack.modules.push((file.name.clone(), text));
            }
        }
        if pack.modules.is_empty() {
            return Err(form("it has no `.rego` file".to_owned()));
        }
        // Parsing a pack twice costs more than judging with it. The tests put the shipped ones
        // through the check, where all rules are found under one head.
        pack.entrypoints = match origin {
            Origin::Shipped => BTreeSet::from([format!("data.{}.deny", pack.package)]),
            Origin::Given => callgraph::check(&pack.name, &pack.modules)?,
        };
        if pack.entrypoints.is_empty() {
            return Err(PackError::NoRules { pack: pack.name });
        }
        Ok(pack)
    }

    fn manifest(&mut self, file: &PackFile) -> Result<(), PackError> {
        let documents = document::parse(&file.text, Format::Yaml, &DocumentLimits::default())
            .map_err(|source| PackError::Manifest { file: file.name.clone(), source })?;
        let Some(root) = documents.first().map(document::Document::root) else { return Ok(()) };
        let text = |node: &Node, key: &str| {
            node.get(key).and_then(Node::as_str).unwrap_or_default().to_owned()
        };
        if let Some(name) = root.get("name").and_then(Node::as_str) {
            name.clone_into(&mut self.name);
        }
        self.version = text(root, "version");
        self.package = text(root, "package");
        self.description = text(root, "description");
        let parameters = root.get("parameters").and_then(Node::as_mapping);
        for entry in parameters.into_iter().flatten() {
            let node = entry.value();
            self.parameters.insert(
                entry.key().to_owned(),
                Parameter {
                    kind: text(node, "type"),
                    default: node.get("default").map_or(serde_json::Value::Null, Node::to_json),
                    description: text(node, "description"),
                    unset: node.get("unset").and_then(Node::as_bool).unwrap_or(false),
                },
            );
        }
        let profiles = root.get("profiles").and_then(Node::as_mapping);
        for profile in profiles.into_iter().flatten() {
            let mut actions = BTreeMap::new();
            for entry in profile.value().as_mapping().into_iter().flatten() {
                // `off` is a boolean to YAML 1.1, so the text as written counts.
                let word = entry.value().scalar_text().or_else(|| entry.value().as_str());
                let action = word.and_then(Action::parse).ok_or_else(|| PackError::Form {
                    pack: self.name.clone(),
                    message: format!("{}: `{}` has no action", file.name, entry.key()),
                })?;
                actions.insert(entry.key().to_owned(), action);
            }
            self.profiles.insert(profile.key().to_owned(), actions);
        }
        Ok(())
    }

    /// Returns the paths of the rules that are asked, `data.ambit.baseline.deny`.
    #[must_use]
    pub fn entrypoints(&self) -> &BTreeSet<String> {
        &self.entrypoints
    }

    /// Returns the pack's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the pack's version; empty if it names none.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns what the pack is for.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the digest over all files of the pack.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns the rules that have METADATA, one for each id, in the order of the files.
    #[must_use]
    pub fn rules(&self) -> Vec<&RuleInfo> {
        let mut seen = BTreeSet::new();
        self.rules.iter().filter(|rule| seen.insert(rule.id.clone())).collect()
    }

    /// Returns the parameters by name.
    #[must_use]
    pub fn parameters(&self) -> &BTreeMap<String, Parameter> {
        &self.parameters
    }

    /// Returns the action of a rule under a profile, as the pack itself sets it.
    #[must_use]
    pub fn action(&self, rule: &str, profile: Profile) -> Option<Action> {
        self.profiles.get(profile.as_str()).and_then(|actions| actions.get(rule)).copied()
    }

    /// Returns the parameters with what a configuration sets.
    ///
    /// # Errors
    ///
    /// [`PackError::Parameter`] for a name that the pack doesn't have and for a value of another
    /// type.
    pub fn with_parameters(
        &self,
        given: Option<&BTreeMap<String, serde_json::Value>>,
    ) -> Result<BTreeMap<String, serde_json::Value>, PackError> {
        let mut values: BTreeMap<String, serde_json::Value> = self
            .parameters
            .iter()
            .map(|(name, parameter)| (name.clone(), parameter.default.clone()))
            .collect();
        for (name, value) in given.into_iter().flatten() {
            let error = |message: String| PackError::Parameter {
                pack: self.name.clone(),
                name: name.clone(),
                message,
            };
            match self.parameters.get(name) {
                None if self.origin == Origin::Shipped || !self.parameters.is_empty() => {
                    return Err(error("the pack has no such parameter".to_owned()));
                }
                Some(parameter) if !fits(&parameter.kind, value) => {
                    return Err(error(format!("expected a {}", parameter.kind)));
                }
                None | Some(_) => {
                    values.insert(name.clone(), value.clone());
                }
            }
        }
        Ok(values)
    }
}

fn fits(kind: &str, value: &serde_json::Value) -> bool {
    match kind {
        "list" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        _ => true,
    }
}

/// Returns the digest over names, lengths and bytes of all files, in order of name.
fn digest(files: &[PackFile]) -> Digest {
    let mut sorted: Vec<&PackFile> = files.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut all = Vec::new();
    for file in sorted {
        all.extend_from_slice(format!("{}\0{}\0", file.name, file.text.len()).as_bytes());
        all.extend_from_slice(&file.text);
    }
    Digest::of(&all)
}

macro_rules! shipped {
    ($($pack:literal: [$($file:literal),* $(,)?]),* $(,)?) => {
        [$(($pack, &[$((
            concat!($pack, "/", $file),
            include_str!(concat!("../../../policies/", $pack, "/", $file)),
        )),*])),*]
    };
}

type ShippedPack = (&'static str, &'static [(&'static str, &'static str)]);

/// The packs in the binary. A test holds the list equal to the folders.
const SHIPPED: [ShippedPack; 3] = include!("shipped.in");

/// Reads the packs that come with the engine: `baseline`, `agents`, `wasmcloud`.
///
/// # Errors
///
/// None that a user can meet: a test reads them. The type says so rather than a panic, since a
/// broken pack must end in an error and not in an empty one.
pub fn embedded(limits: &PolicyLimits) -> Result<Vec<Pack>, PackError> {
    SHIPPED
        .iter()
        .map(|(name, files)| {
            let files: Vec<PackFile> = files
                .iter()
                .map(|(name, text)| PackFile {
                    name: (*name).to_owned(),
                    text: text.as_bytes().to_vec(),
                })
                .collect();
            Pack::read(name, &files, Origin::Shipped, limits)
        })
        .collect()
}
