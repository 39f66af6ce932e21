//! Reading catalogue files.

use std::collections::BTreeSet;

use super::{Catalogue, Class, ExportEntry, FunctionEntry, GrantKind, InterfaceEntry, Risk, Verb};
use crate::document::{self, DocumentError, DocumentLimits, Format, Position};
use crate::document::{FieldProblem, Fields, Pointer};

/// The files of the built-in catalogue; classes come first, since the others name them.
const BUILTIN: [(&str, &str); 8] = [
    ("classes.yaml", include_str!("classes.yaml")),
    ("wasi-p2.yaml", include_str!("wasi-p2.yaml")),
    ("wasi-p3.yaml", include_str!("wasi-p3.yaml")),
    ("wasi-preview1.yaml", include_str!("wasi-preview1.yaml")),
    ("wasi-drafts.yaml", include_str!("wasi-drafts.yaml")),
    ("wasmcloud.yaml", include_str!("wasmcloud.yaml")),
    ("cosmonic.yaml", include_str!("cosmonic.yaml")),
    ("ambit.yaml", include_str!("ambit.yaml")),
];

/// Why a catalogue file can't be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The file is no YAML or JSON that can be read.
    #[error("{file} can't be read")]
    Document {
        /// The file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: DocumentError,
    },
    /// An entry has the wrong form, or names something that isn't there.
    #[error("{file}:{position}: {message}")]
    Entry {
        /// The file.
        file: String,
        /// The place in it.
        position: Position,
        /// What is wrong.
        message: String,
    },
}

impl CatalogueError {
    /// Returns the stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document { source, .. } => source.code(),
            Self::Entry { .. } => "catalogue-entry",
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Document { source, .. } => source.help(),
            Self::Entry { .. } => Some(
                "`docs/reference/catalogue.md` gives the form; entries can only be added"
                    .to_owned(),
            ),
        }
    }
}

pub(super) fn builtin() -> Result<Catalogue, CatalogueError> {
    let mut catalogue = Catalogue::default();
    for (name, text) in BUILTIN {
        add(&mut catalogue, name, text.as_bytes())?;
    }
    Ok(catalogue)
}

struct Reader<'f> {
    file: &'f str,
    problems: Vec<FieldProblem>,
}

impl Reader<'_> {
    fn error(&self, position: Position, message: impl Into<String>) -> CatalogueError {
        CatalogueError::Entry { file: self.file.to_owned(), position, message: message.into() }
    }

    fn word<T: Copy>(
        &mut self,
        fields: &mut Fields<'_>,
        key: &str,
        known: impl IntoIterator<Item = (&'static str, T)>,
    ) -> Result<T, CatalogueError> {
        let start = fields.span().start();
        let Some(text) = fields.required_string(key, &mut self.problems) else {
            return Err(self.error(start, format!("`{key}` is missing")));
        };
        let found = known.into_iter().find(|(word, _)| word == text.value());
        found.map(|(_, value)| value).ok_or_else(|| {
            self.error(text.span().start(), format!("`{}` is no known {key}", text.value()))
        })
    }

    fn text(&mut self, fields: &mut Fields<'_>, key: &str) -> Result<String, CatalogueError> {
        let start = fields.span().start();
        fields
            .required_string(key, &mut self.problems)
            .map(|text| text.as_str().to_owned())
            .ok_or_else(|| self.error(start, format!("`{key}` is missing")))
    }

    fn strings(&mut self, fields: &mut Fields<'_>, key: &str) -> Vec<String> {
        let list = fields.string_list(key, &mut self.problems);
        list.into_iter().map(|text| text.as_str().to_owned()).collect()
    }

    /// A string or a list of strings.
    fn one_or_more(&mut self, fields: &mut Fields<'_>, key: &str) -> Vec<String> {
        match fields.node(key).and_then(|node| node.as_str()) {
            Some(one) => vec![one.to_owned()],
            None => self.strings(fields, key),
        }
    }
}

/// Adds the entries of one file.
pub(super) fn add(
    catalogue: &mut Catalogue,
    file: &str,
    text: &[u8],
) -> Result<(), CatalogueError> {
    let documents = document::parse(text, Format::Auto, &DocumentLimits::default())
        .map_err(|source| CatalogueError::Document { file: file.to_owned(), source })?;
    let mut reader = Reader { file, problems: Vec::new() };
    for document in &documents {
        let root = document.root();
        let Some(mut fields) = Fields::new(root, Pointer::default(), &mut reader.problems) else {
            return Err(reader.error(root.span().start(), "expected a mapping"));
        };
        for (pointer, node) in fields.sequence("classes", &mut reader.problems) {
            if let Some(entry) = Fields::new(node, pointer, &mut reader.problems) {
                class(catalogue, &mut reader, entry)?;
            }
        }
        for (pointer, node) in fields.sequence("interfaces", &mut reader.problems) {
            if let Some(entry) = Fields::new(node, pointer, &mut reader.problems) {
                interface(catalogue, &mut reader, entry)?;
            }
        }
        for (pointer, node) in fields.sequence("exports", &mut reader.problems) {
            if let Some(entry) = Fields::new(node, pointer, &mut reader.problems) {
                export(catalogue, &mut reader, entry)?;
            }
        }
        let modules = reader.strings(&mut fields, "modules");
        if !modules.is_empty() {
            core_modules(catalogue, &mut reader, &mut fields, &modules)?;
        }
        fields.finish(&mut reader.problems);
    }
    match reader.problems.first() {
        Some(problem) => Err(reader.error(problem.span().start(), problem.message())),
        None => Ok(()),
    }
}

fn class(
    catalogue: &mut Catalogue,
    reader: &mut Reader<'_>,
    mut fields: Fields<'_>,
) -> Result<(), CatalogueError> {
    let start = fields.span().start();
    let id = reader.text(&mut fields, "id")?;
    let risks = [Risk::None, Risk::Low, Risk::Medium, Risk::High, Risk::Critical];
    let grants = [
        GrantKind::Folders,
        GrantKind::Hosts,
        GrantKind::Names,
        GrantKind::Environment,
        GrantKind::Buckets,
        GrantKind::Interfaces,
        GrantKind::Secrets,
        GrantKind::Models,
        GrantKind::Tools,
        GrantKind::None,
    ];
    let class = Class {
        title: reader.text(&mut fields, "title")?,
        risk: reader.word(&mut fields, "risk", risks.map(|risk| (risk.as_str(), risk)))?,
        verb: reader.word(&mut fields, "verb", Verb::ALL.map(|verb| (verb.as_str(), verb)))?,
        grant: reader.word(&mut fields, "grant", grants.map(|grant| (grant.as_str(), grant)))?,
        free: flag(reader, &mut fields, "free"),
        network: flag(reader, &mut fields, "network"),
        filesystem: flag(reader, &mut fields, "filesystem"),
        source: reader.text(&mut fields, "source")?,
        id: id.clone(),
    };
    fields.finish(&mut reader.problems);
    // A user can add, not change.
    if catalogue.classes.contains_key(&id) {
        return Err(reader.error(start, format!("class `{id}` is in the catalogue already")));
    }
    catalogue.classes.insert(id, class);
    Ok(())
}

fn flag(reader: &mut Reader<'_>, fields: &mut Fields<'_>, key: &str) -> bool {
    fields.bool(key, &mut reader.problems).is_some_and(|flag| *flag.value())
}

fn interface(
    catalogue: &mut Catalogue,
    reader: &mut Reader<'_>,
    mut fields: Fields<'_>,
) -> Result<(), CatalogueError> {
    let start = fields.span().start();
    let name = reader.text(&mut fields, "interface")?;
    if crate::interface::InterfaceName::parse(&name).is_none_or(|name| name.version().is_some()) {
        return Err(reader.error(start, format!("`{name}` is no interface name without version")));
    }
    let mut entry = InterfaceEntry {
        interface: name.clone(),
        track: fields.string("track", &mut reader.problems).map(|t| t.as_str().to_owned()),
        types: fields
            .string("types", &mut reader.problems)
            .map_or_else(|| "types".to_owned(), |types| types.as_str().to_owned()),
        source: reader.text(&mut fields, "source")?,
        recalled: confidence(reader, &mut fields)?,
        ..InterfaceEntry::default()
    };
    known_class(catalogue, reader, start, &entry.types)?;
    if let Some(mut resources) = fields.mapping("resources", &mut reader.problems) {
        let node = fields.node("resources").and_then(document::Node::as_mapping);
        for resource in node.into_iter().flatten().map(document::Entry::key) {
            let kinds = reader.one_or_more(&mut resources, resource);
            entry.resources.insert(resource.to_owned(), kinds);
        }
        resources.finish(&mut reader.problems);
    }
    functions(catalogue, reader, &mut fields, &mut entry)?;
    fields.finish(&mut reader.problems);
    let entries = catalogue.interfaces.entry(name.clone()).or_default();
    let clash = entries
        .iter()
        .any(|known| known.track == entry.track || known.track.is_none() || entry.track.is_none());
    if clash {
        let track = entry.track.as_deref().map(|track| format!("@{track}")).unwrap_or_default();
        return Err(reader.error(start, format!("`{name}{track}` is in the catalogue already")));
    }
    entries.push(entry);
    Ok(())
}

fn confidence(reader: &mut Reader<'_>, fields: &mut Fields<'_>) -> Result<bool, CatalogueError> {
    reader.word(fields, "confidence", [("read", false), ("recalled", true)])
}

fn known_class(
    catalogue: &Catalogue,
    reader: &Reader<'_>,
    at: Position,
    class: &str,
) -> Result<(), CatalogueError> {
    if catalogue.classes.contains_key(class) {
        Ok(())
    } else {
        Err(reader.error(at, format!("class `{class}` is not in the catalogue")))
    }
}

fn functions(
    catalogue: &Catalogue,
    reader: &mut Reader<'_>,
    fields: &mut Fields<'_>,
    entry: &mut InterfaceEntry,
) -> Result<(), CatalogueError> {
    for (pointer, node) in fields.sequence("functions", &mut reader.problems) {
        let Some(mut function) = Fields::new(node, pointer, &mut reader.problems) else { continue };
        let start = function.span().start();
        let name = reader.text(&mut function, "name")?;
        let with = function.mapping("with", &mut reader.problems);
        let with = match with {
            Some(mut with) => {
                let handle = reader.text(&mut with, "handle")?;
                let classes = reader.strings(&mut with, "classes");
                with.finish(&mut reader.problems);
                Some((handle, classes))
            }
            None => None,
        };
        let acts = function.bool("acts", &mut reader.problems);
        let read = FunctionEntry {
            classes: reader.strings(&mut function, "classes"),
            needs: reader.one_or_more(&mut function, "needs"),
            mints: reader.one_or_more(&mut function, "mints"),
            key: flag(reader, &mut function, "key"),
            acts: acts.is_none_or(|acts| *acts.value()),
            with,
            name: name.clone(),
        };
        function.ignore(&["source", "confidence"]);
        function.finish(&mut reader.problems);
        let extra = read.with.iter().flat_map(|(_, classes)| classes);
        for class in read.classes.iter().chain(extra) {
            known_class(catalogue, reader, start, class)?;
        }
        if entry.functions.insert(name.clone(), read).is_some() {
            return Err(reader.error(start, format!("function `{name}` is listed twice")));
        }
    }
    Ok(())
}

fn export(
    catalogue: &mut Catalogue,
    reader: &mut Reader<'_>,
    mut fields: Fields<'_>,
) -> Result<(), CatalogueError> {
    let start = fields.span().start();
    let interface = reader.text(&mut fields, "interface")?;
    let entry = ExportEntry {
        track: fields.string("track", &mut reader.problems).map(|t| t.as_str().to_owned()),
        classes: reader.strings(&mut fields, "classes"),
        role: fields.string("role", &mut reader.problems).map(|role| role.as_str().to_owned()),
        interface: interface.clone(),
    };
    fields.ignore(&["source", "confidence"]);
    fields.finish(&mut reader.problems);
    let roles: BTreeSet<&str> = ["agent", "tool"].into();
    if entry.role.as_deref().is_some_and(|role| !roles.contains(role)) {
        return Err(reader.error(start, "a role is `agent` or `tool`"));
    }
    for class in &entry.classes {
        known_class(catalogue, reader, start, class)?;
    }
    catalogue.exports.entry(interface).or_default().push(entry);
    Ok(())
}

fn core_modules(
    catalogue: &mut Catalogue,
    reader: &mut Reader<'_>,
    fields: &mut Fields<'_>,
    modules: &[String],
) -> Result<(), CatalogueError> {
    let mut entry = InterfaceEntry {
        types: "types".to_owned(),
        source: reader.text(fields, "source")?,
        recalled: confidence(reader, fields)?,
        ..InterfaceEntry::default()
    };
    functions(catalogue, reader, fields, &mut entry)?;
    for module in modules {
        if catalogue.modules.contains_key(module) {
            let start = fields.span().start();
            return Err(
                reader.error(start, format!("module `{module}` is in the catalogue already"))
            );
        }
        let entry = InterfaceEntry { interface: module.clone(), ..entry.clone() };
        catalogue.modules.insert(module.clone(), entry);
    }
    Ok(())
}
