//! `ambit.yaml`: profile, ceilings, packs, parameters and enforcement.
//!
//! The text is an argument; finding the file is the front end's business. What this version doesn't
//! enforce yet (waivers) is refused when it is set, never ignored.

mod webhook;

use std::collections::BTreeMap;

pub use self::webhook::{AdmissionMode, IMAGE_KINDS, Webhook};

use crate::document::{
    self, DocumentError, DocumentLimits, FieldProblem, Fields, Format, Located, Node, Pointer,
    Position,
};
use crate::grant::{Dialect, HostPattern};
use crate::policy::{Action, Parameters, Profile};
use crate::workload::Target;

/// The most that is allowed to the components that it matches.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ceiling {
    /// Which components it is for.
    pub matches: CeilingMatch,
    /// Capability classes; `fs.*` stands for every class that starts so.
    pub capabilities: Vec<String>,
    /// Host patterns in the `ambit` dialect.
    pub hosts: Vec<HostPattern>,
    /// Folders of the machine that may be granted, and whether for writing.
    pub folders: Vec<CeilingFolder>,
    /// Host interfaces, `wasi:keyvalue/store` or `wasi:keyvalue`.
    pub interfaces: Vec<String>,
    /// Where it stands, `ambit.yaml:4`.
    pub origin: String,
}

/// Which components a ceiling is for; an absent field matches everything.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CeilingMatch {
    /// The namespace; `*` for any.
    pub namespace: Option<String>,
    /// The class: `agent`, `tool`, `service`.
    pub class: Option<String>,
    /// Labels that the workload has.
    pub labels: BTreeMap<String, String>,
    /// A repository, or a prefix of one by whole path segments.
    pub image: Option<String>,
}

/// A folder that a ceiling allows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CeilingFolder {
    /// The folder; what lies below it is allowed too.
    pub path: crate::grant::HostPath,
    /// Whether it may be granted for writing.
    pub writable: bool,
}

/// The action of a rule or pack, for one namespace or all.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Enforcement {
    /// A pack (`baseline`) or a rule (`baseline/image/digest-pin`).
    pub rule: String,
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
    /// The action.
    pub action: Action,
}

/// A class that the configuration gives to components.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassRule {
    /// `agent`, `tool` or `service`.
    pub class: String,
    /// Which components it is for.
    pub matches: CeilingMatch,
}

/// The configuration.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Config {
    /// The profile, if one is named.
    pub profile: Option<Profile>,
    /// The target, if one is named.
    pub target: Option<Target>,
    /// Ceilings, in order; each that matches counts.
    pub ceilings: Vec<Ceiling>,
    /// Packs to load beside the shipped ones, as written.
    pub policies: Vec<String>,
    /// Parameters by pack.
    pub parameters: Parameters,
    /// Enforcement, in order; the last that matches most exactly counts.
    pub enforcement: Vec<Enforcement>,
    /// Files that add to the catalogue, as written.
    pub catalogue: Vec<String>,
    /// Classes by image, label or namespace.
    pub classes: Vec<ClassRule>,
    /// Trust policy files, as written.
    pub trust: Vec<String>,
    /// Where to read instead of a registry: `HOST` to `HOST[:PORT][/PREFIX]`.
    pub mirrors: BTreeMap<String, String>,
    /// Registries, `HOST[:PORT]`, that may be asked over plain http and at private addresses.
    pub insecure_registries: Vec<String>,
    /// Files with certificates (PEM) of authorities that registries may have, beside the system's.
    pub registry_certificates: Vec<String>,
    /// Hosts that a registry's credentials may be sent to beside its own: registry to token host.
    pub token_hosts: BTreeMap<String, String>,
    /// The largest component in bytes, if one is named.
    pub max_component_bytes: Option<usize>,
    /// Bounds of what `ambit run` starts: name, value as written, and line, in order. The executor
    /// knows the names.
    pub run_limits: Vec<(String, String, u32)>,
    /// How the admission webhook behaves.
    pub webhook: Webhook,
    /// The keys that the file sets, with the line of each.
    pub origins: BTreeMap<String, u32>,
}

/// Why a configuration can't be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is no YAML or JSON that can be read.
    #[error("{file} can't be read")]
    Document {
        /// The file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: DocumentError,
    },
    /// A field has the wrong form.
    #[error("{file}:{position}: {message}")]
    Field {
        /// The file.
        file: String,
        /// The place.
        position: Position,
        /// What is wrong.
        message: String,
        /// What to do.
        help: Option<String>,
    },
    /// A field that this version doesn't enforce.
    #[error("{file}:{position}: `{field}` is not enforced by this version")]
    Unsupported {
        /// The file.
        file: String,
        /// The place.
        position: Position,
        /// The field.
        field: &'static str,
    },
}

impl ConfigError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document { source, .. } => source.code(),
            Self::Field { .. } => "config-field",
            Self::Unsupported { .. } => "config-unsupported",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Document { source, .. } => source.help(),
            Self::Field { help, .. } => help
                .clone()
                .or_else(|| Some("`docs/reference/configuration.md` gives every field".to_owned())),
            Self::Unsupported { .. } => {
                Some("delete it; what isn't enforced must not look as if it were".to_owned())
            }
        }
    }
}

/// The hard cap on `limits.component_bytes`.
const MAX_COMPONENT_BYTES: u64 = 1 << 30;

struct Reader<'f> {
    file: &'f str,
    problems: Vec<FieldProblem>,
}

impl Reader<'_> {
    fn error<T>(&self, at: &Located<T>, message: String, help: Option<String>) -> ConfigError {
        ConfigError::Field {
            file: self.file.to_owned(),
            position: at.span().start(),
            message,
            help,
        }
    }

    fn matches(&mut self, fields: &mut Fields<'_>) -> CeilingMatch {
        let mut found = CeilingMatch::default();
        if let Some(mut inner) = fields.mapping("match", &mut self.problems) {
            let text = |t: Option<document::Text<'_>>| t.map(|t| t.as_str().to_owned());
            found.namespace = text(inner.string("namespace", &mut self.problems));
            found.class = text(inner.string("class", &mut self.problems));
            found.image = text(inner.string("image", &mut self.problems));
            found.labels = inner
                .string_map("labels", &mut self.problems)
                .iter()
                .map(|(key, value)| (key.as_str().to_owned(), value.as_str().to_owned()))
                .collect();
            inner.finish(&mut self.problems);
        }
        found
    }
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with the place: unreadable text, unknown or wrong fields, patterns and
    /// classes that don't parse, and fields that this version can't enforce.
    pub fn read(file: &str, text: &[u8]) -> Result<Self, ConfigError> {
        let documents = document::parse(text, Format::Auto, &DocumentLimits::default())
            .map_err(|source| ConfigError::Document { file: file.to_owned(), source })?;
        let mut config = Self::default();
        let mut reader = Reader { file, problems: Vec::new() };
        let Some(root) = documents.first().map(document::Document::root) else {
            return Ok(config);
        };
        if let Some(second) = documents.get(1) {
            return Err(ConfigError::Field {
                file: file.to_owned(),
                position: second.root().span().start(),
                message: "a configuration is one document".to_owned(),
                help: None,
            });
        }
        for entry in root.as_mapping().into_iter().flatten() {
            config.origins.insert(entry.key().to_owned(), entry.key_span().start().line());
        }
        let Some(mut fields) = Fields::new(root, Pointer::default(), &mut reader.problems) else {
            return Err(ConfigError::Field {
                file: file.to_owned(),
                position: root.span().start(),
                message: "expected a mapping".to_owned(),
                help: None,
            });
        };
        fields.ignore(&["apiVersion", "kind"]);
        if let Some(text) = fields.string("profile", &mut reader.problems) {
            config.profile = Some(Profile::parse(text.as_str()).ok_or_else(|| {
                let help = Some("write `baseline` or `strict`".to_owned());
                reader.error(&text, format!("`{}` is no profile", text.as_str()), help)
            })?);
        }
        if let Some(text) = fields.string("target", &mut reader.problems) {
            let target = [Target::WasmCloud, Target::Spin, Target::Ambit]
                .into_iter()
                .find(|target| target.as_str() == text.as_str());
            config.target = Some(target.ok_or_else(|| {
                let help = Some("write `wasmcloud`, `spin` or `ambit`".to_owned());
                reader.error(&text, format!("`{}` is no target", text.as_str()), help)
            })?);
        }
        for (pointer, node) in fields.sequence("ceilings", &mut reader.problems) {
            if let Some(entry) = Fields::new(node, pointer, &mut reader.problems) {
                config.ceilings.push(ceiling(&mut reader, entry)?);
            }
        }
        for (pointer, node) in fields.sequence("classes", &mut reader.problems) {
            if let Some(mut entry) = Fields::new(node, pointer, &mut reader.problems) {
                let class = entry.required_string("class", &mut reader.problems);
                let matches = reader.matches(&mut entry);
                entry.finish(&mut reader.problems);
                if let Some(class) = class {
                    config.classes.push(ClassRule { class: class.as_str().to_owned(), matches });
                }
            }
        }
        let strings = |fields: &mut Fields<'_>, key: &str, reader: &mut Reader<'_>| {
            let list = fields.string_list(key, &mut reader.problems);
            list.into_iter().map(|text| text.as_str().to_owned()).collect::<Vec<_>>()
        };
        config.policies = strings(&mut fields, "policies", &mut reader);
        config.catalogue = strings(&mut fields, "catalogue", &mut reader);
        config.trust = match fields.node("trust").and_then(Node::as_str) {
            Some(file) => vec![file.to_owned()],
            None => strings(&mut fields, "trust", &mut reader),
        };
        config.insecure_registries = strings(&mut fields, "insecureRegistries", &mut reader);
        config.registry_certificates = strings(&mut fields, "registryCertificates", &mut reader);
        let texts = |fields: &mut Fields<'_>, key: &str, reader: &mut Reader<'_>| {
            let map = fields.string_map(key, &mut reader.problems);
            let pairs = map.iter().map(|(k, v)| (k.as_str().to_owned(), v.as_str().to_owned()));
            pairs.collect::<BTreeMap<_, _>>()
        };
        config.mirrors = texts(&mut fields, "mirrors", &mut reader);
        config.token_hosts = texts(&mut fields, "tokenHosts", &mut reader);
        if let Some(node) = fields.node("parameters") {
            config.parameters = parameters(node);
        }
        if let Some(mut limits) = fields.mapping("limits", &mut reader.problems) {
            if let Some(bytes) = limits.u64("component_bytes", &mut reader.problems) {
                if *bytes.value() > MAX_COMPONENT_BYTES || *bytes.value() == 0 {
                    let message = format!("`component_bytes` is 1 to {MAX_COMPONENT_BYTES}");
                    return Err(reader.error(&bytes, message, None));
                }
                config.max_component_bytes = usize::try_from(*bytes.value()).ok();
            }
            limits.finish(&mut reader.problems);
        }
        if let Some(mut run) = fields.mapping("run", &mut reader.problems) {
            let limits = run.node("limits").and_then(Node::as_mapping);
            for entry in limits.into_iter().flatten() {
                let value = entry.value().scalar_text().ok_or_else(|| ConfigError::Field {
                    file: file.to_owned(),
                    position: entry.value().span().start(),
                    message: format!("`{}` is not a number or a time", entry.key()),
                    help: Some("write it like `30s` or `256Mi`".to_owned()),
                })?;
                let line = entry.key_span().start().line();
                config.run_limits.push((entry.key().to_owned(), value.to_string(), line));
            }
            run.finish(&mut reader.problems);
        }
        if let Some(entry) = fields.mapping("webhook", &mut reader.problems) {
            config.webhook = webhook::read(&mut reader, entry)?;
        }
        enforcement(&mut config, &mut reader, &mut fields)?;
        unsupported(&reader, &mut fields)?;
        fields.finish(&mut reader.problems);
        match reader.problems.first() {
            Some(problem) => Err(ConfigError::Field {
                file: file.to_owned(),
                position: problem.span().start(),
                message: problem.message(),
                help: problem.help(),
            }),
            None => Ok(config),
        }
    }
}

fn ceiling(reader: &mut Reader<'_>, mut fields: Fields<'_>) -> Result<Ceiling, ConfigError> {
    let line = fields.span().start().line();
    let mut ceiling = Ceiling {
        matches: reader.matches(&mut fields),
        capabilities: Vec::new(),
        hosts: Vec::new(),
        folders: Vec::new(),
        interfaces: Vec::new(),
        origin: format!("{}:{line}", reader.file),
    };
    for text in fields.string_list("capabilities", &mut reader.problems) {
        ceiling.capabilities.push(text.as_str().to_owned());
    }
    for text in fields.string_list("hosts", &mut reader.problems) {
        let pattern = HostPattern::parse(text.as_str(), Dialect::Ambit).map_err(|error| {
            let help = error.help().map(str::to_owned);
            reader.error(&text, format!("`{}`: {error}", text.as_str()), help)
        })?;
        ceiling.hosts.push(pattern);
    }
    for (pointer, node) in fields.sequence("folders", &mut reader.problems) {
        let (text, writable) = match node.as_str() {
            Some(text) => (text.to_owned(), false),
            None => {
                let Some(mut entry) = Fields::new(node, pointer, &mut reader.problems) else {
                    continue;
                };
                let path = entry.required_string("path", &mut reader.problems);
                let mode = entry.string("mode", &mut reader.problems);
                entry.finish(&mut reader.problems);
                let Some(path) = path else { continue };
                let writable = match mode {
                    None => false,
                    Some(mode) => {
                        let read: Result<crate::grant::FolderMode, _> = mode.as_str().parse();
                        let read = read.map_err(|error| {
                            let help = error.help().map(str::to_owned);
                            reader.error(&mode, error.to_string(), help)
                        })?;
                        read.can_write()
                    }
                };
                (path.as_str().to_owned(), writable)
            }
        };
        let path = crate::grant::HostPath::parse(&text).map_err(|error| ConfigError::Field {
            file: reader.file.to_owned(),
            position: node.span().start(),
            message: format!("`{text}`: {error}"),
            help: error.help().map(str::to_owned),
        })?;
        ceiling.folders.push(CeilingFolder { path, writable });
    }
    for text in fields.string_list("interfaces", &mut reader.problems) {
        ceiling.interfaces.push(text.as_str().to_owned());
    }
    fields.finish(&mut reader.problems);
    Ok(ceiling)
}

fn parameters(node: &Node) -> Parameters {
    let mut found = Parameters::new();
    for pack in node.as_mapping().into_iter().flatten() {
        let values = pack.value().as_mapping().into_iter().flatten();
        let values = values.map(|entry| (entry.key().to_owned(), entry.value().to_json()));
        found.insert(pack.key().to_owned(), values.collect());
    }
    found
}

fn enforcement(
    config: &mut Config,
    reader: &mut Reader<'_>,
    fields: &mut Fields<'_>,
) -> Result<(), ConfigError> {
    let Some(node) = fields.node("enforcement").filter(|node| !node.is_null()) else {
        return Ok(());
    };
    let error = |node: &Node, message: String| ConfigError::Field {
        file: reader.file.to_owned(),
        position: node.span().start(),
        message,
        help: Some("write `enforce`, `warn`, `audit` or `off`".to_owned()),
    };
    let action = |node: &Node| {
        let word = node.scalar_text().or_else(|| node.as_str());
        word.and_then(Action::parse)
            .ok_or_else(|| error(node, format!("`{}` is no enforcement", word.unwrap_or_default())))
    };
    let Some(mapping) = node.as_mapping() else {
        return Err(error(node, "`enforcement` is a mapping from rules to actions".to_owned()));
    };
    for entry in mapping {
        match entry.value().as_mapping() {
            Some(namespaces) => {
                for inner in namespaces {
                    let namespace = (inner.key() != "*").then(|| inner.key().to_owned());
                    config.enforcement.push(Enforcement {
                        rule: entry.key().to_owned(),
                        namespace,
                        action: action(inner.value())?,
                    });
                }
            }
            None => config.enforcement.push(Enforcement {
                rule: entry.key().to_owned(),
                namespace: None,
                action: action(entry.value())?,
            }),
        }
    }
    Ok(())
}

/// Refuses what would look enforced and isn't.
fn unsupported(reader: &Reader<'_>, fields: &mut Fields<'_>) -> Result<(), ConfigError> {
    let Some(node) = fields.node("waivers") else { return Ok(()) };
    let empty = node.is_null()
        || node.as_sequence().is_some_and(<[Node]>::is_empty)
        || node.as_mapping().is_some_and(document::Mapping::is_empty);
    if empty {
        return Ok(());
    }
    Err(ConfigError::Unsupported {
        file: reader.file.to_owned(),
        position: node.span().start(),
        field: "waivers",
    })
}

#[cfg(test)]
mod tests;
