//! Reading trust policy files: ours and policy-controller's.
//!
//! Both kinds are read by the same code, since ours is a superset; what differs hangs on
//! [`Dialect`]. Every mistake is collected with its place. A field that would have no effect is an
//! error in our own kind, and at least a warning in an imported one.

mod authority;
mod identity;
mod logs;
mod rego;
mod roots;
mod spec;

pub(super) use identity::{Cover, matcher};

use std::collections::BTreeSet;

use ambit_engine::document::{
    self, DocumentLimits, Entry, FieldProblem, Fields, Format, Node, Pointer, ProblemKind, Span,
};

use super::problem::{PolicyError, PolicyProblem, PolicyWarning, ProblemCode, WarningCode};
use super::{BUILTIN_ROOTS, RootDefinition, TrustPolicy};

/// What a trust policy file holds.
#[derive(Clone, Debug)]
pub struct TrustFile {
    /// The policies, in order.
    pub policies: Vec<TrustPolicy>,
    /// The trust roots that it defines, in order.
    pub roots: Vec<RootDefinition>,
    /// What its author may not have meant.
    pub warnings: Vec<PolicyWarning>,
}

/// What a file may refer to and what it may do.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReadOptions {
    /// Names of trust roots that are defined elsewhere, beside those that are built in.
    pub roots: BTreeSet<String>,
    /// Whether imported policies may pass without a signature.
    pub static_pass: StaticPass,
}

/// Whether a policy of policy-controller may say `static: {action: pass}` in mode `enforce`.
///
/// Our own kind says it in the file, with `insecureAllowUnsigned`; that of policy-controller has no
/// such field, so whoever imports it has to say it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StaticPass {
    /// It is an error.
    #[default]
    Refused,
    /// It is accepted.
    Allowed,
}

/// Whose kind a document is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Dialect {
    /// `ambit.dev/v1alpha1`, `TrustPolicy`.
    Ours,
    /// `policy.sigstore.dev/v1beta1` or `v1alpha1`, `ClusterImagePolicy`.
    Imported,
}

const API_VERSION: &str = "ambit.dev/v1alpha1";
const IMPORTED_VERSIONS: [&str; 2] =
    ["policy.sigstore.dev/v1beta1", "policy.sigstore.dev/v1alpha1"];

/// The most items of each list in a policy.
const MAX_ITEMS: usize = 128;

/// The most regular expressions of a file; each may take memory while it is compiled.
const MAX_EXPRESSIONS: usize = 512;

/// Reads a trust policy file: documents of `kind: TrustPolicy` and `kind: TrustRoot`, and
/// `ClusterImagePolicy` documents of policy-controller. `file` is its name in messages.
///
/// # Errors
///
/// [`PolicyError`], with every mistake and its place.
///
/// # Examples
/// ```
/// use ambit_trust::policy::{ReadOptions, read};
/// let text = br#"
/// apiVersion: ambit.dev/v1alpha1
/// kind: TrustPolicy
/// metadata: {name: team}
/// spec:
///   images: [{glob: "registry.example/team/*"}]
///   authorities:
///   - name: ci
///     keyless:
///       identities:
///       - issuer: https://token.actions.githubusercontent.com
///         subject: https://github.com/team/app/.github/workflows/release.yml@refs/heads/main
/// "#;
/// let file = read("trust.yaml", text, &ReadOptions::default())?;
/// assert_eq!(file.policies.len(), 1);
/// # Ok::<(), ambit_trust::policy::PolicyError>(())
/// ```
pub fn read(file: &str, bytes: &[u8], options: &ReadOptions) -> Result<TrustFile, PolicyError> {
    let documents = document::parse(bytes, Format::Auto, &DocumentLimits::default())
        .map_err(|source| PolicyError::Document { file: file.to_owned(), source })?;
    if documents.is_empty() {
        return Err(PolicyError::Empty { file: file.to_owned() });
    }
    let mut reader = Reader::new(file, options);
    // Roots first, so that a policy can refer to one that stands behind it.
    for document in &documents {
        if kind(document.root()) == Some("TrustRoot") {
            reader.trust_root(document.root());
        }
    }
    let mut policies: Vec<TrustPolicy> = Vec::new();
    for document in &documents {
        let root = document.root();
        let Some(dialect) = reader.dialect(root) else { continue };
        let Some(policy) = reader.policy(root, dialect) else { continue };
        if policies.iter().any(|other| other.name == policy.name) {
            let message = format!("a second policy is named `{}`", policy.name);
            reader.at(root, "/metadata/name", ProblemCode::Field, message, None);
        }
        policies.push(policy);
    }
    reader.finish(policies)
}

fn kind(root: &Node) -> Option<&str> {
    root.get("kind").and_then(Node::as_str)
}

/// What is collected while a file is read.
struct Reader<'f> {
    file: &'f str,
    options: &'f ReadOptions,
    fields: Vec<FieldProblem>,
    problems: Vec<PolicyProblem>,
    warnings: Vec<PolicyWarning>,
    roots: Vec<RootDefinition>,
    expressions: usize,
}

impl<'f> Reader<'f> {
    fn new(file: &'f str, options: &'f ReadOptions) -> Self {
        Self {
            file,
            options,
            fields: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            roots: Vec::new(),
            expressions: 0,
        }
    }

    /// Tells whose policy a document is; none of a root's, and of an unknown kind's with a problem.
    fn dialect(&mut self, root: &Node) -> Option<Dialect> {
        let version = root.get("apiVersion").and_then(Node::as_str).unwrap_or_default();
        let help = match (version, kind(root).unwrap_or_default()) {
            (API_VERSION, "TrustPolicy") => return Some(Dialect::Ours),
            (API_VERSION, "TrustRoot") => return None,
            (version, "ClusterImagePolicy") if IMPORTED_VERSIONS.contains(&version) => {
                return Some(Dialect::Imported);
            }
            ("policy.sigstore.dev/v1alpha1", "TrustRoot") => {
                "export its `trusted_root.json`, and name it in a `TrustRoot` of `ambit.dev/v1alpha1`"
                    .to_owned()
            }
            (_, "TrustPolicy" | "TrustRoot") => format!("write `apiVersion: {API_VERSION}`"),
            (_, "ClusterImagePolicy") => format!("write `apiVersion: {}`", IMPORTED_VERSIONS[0]),
            _ => format!("write `apiVersion: {API_VERSION}` and `kind: TrustPolicy`"),
        };
        let shown = |key: &str| {
            let text = root.get(key).and_then(Node::as_str);
            text.unwrap_or_default().chars().take(60).collect::<String>()
        };
        let message = match (shown("kind"), shown("apiVersion")) {
            (kind, _) if kind.is_empty() => "the document has no `kind`".to_owned(),
            (kind, version) if version.is_empty() => {
                format!("the document of `kind: {kind}` has no `apiVersion`")
            }
            (kind, version) => format!("`{kind}` of `{version}` is no trust policy"),
        };
        let place = if root.get("kind").is_some() { "/kind" } else { "" };
        self.at(root, place, ProblemCode::Kind, message, Some(&help));
        None
    }

    /// Reads the parts that every object has, and returns its name.
    fn object(&mut self, fields: &mut Fields<'_>, dialect: Dialect) -> Option<String> {
        fields.ignore(&["apiVersion", "kind"]);
        if dialect == Dialect::Imported {
            fields.ignore(&["status"]);
        }
        let Some(mut metadata) = fields.mapping("metadata", &mut self.fields) else {
            fields.missing("metadata", &mut self.fields);
            return None;
        };
        let name = metadata.required_string("name", &mut self.fields);
        match dialect {
            Dialect::Ours => {
                metadata.ignore(&["annotations", "labels"]);
                metadata.finish(&mut self.fields);
            }
            // What a cluster writes there is none of a policy's meaning.
            Dialect::Imported => {}
        }
        let name = name?;
        let text = name.as_str();
        if text.is_empty()
            || text.len() > 253
            || text.contains(|c: char| c.is_control() || c == '/')
        {
            let help = "write letters, digits, `-` and `.`, at most 253";
            self.invalid(name.span(), name.pointer(), "the name is no name".to_owned(), help);
            return None;
        }
        Some(text.to_owned())
    }

    fn problem(
        &mut self,
        code: ProblemCode,
        span: Span,
        pointer: &Pointer,
        message: String,
        help: &str,
    ) {
        self.problems.push(PolicyProblem {
            code,
            span,
            pointer: pointer.to_string(),
            message,
            help: Some(help.to_owned()),
        });
    }

    fn invalid(&mut self, span: Span, pointer: &Pointer, message: String, help: &str) {
        self.problem(ProblemCode::Field, span, pointer, message, help);
    }

    fn unsupported(&mut self, span: Span, pointer: &Pointer, message: String, help: &str) {
        self.problem(ProblemCode::Unsupported, span, pointer, message, help);
    }

    fn warn(
        &mut self,
        code: WarningCode,
        span: Span,
        pointer: &Pointer,
        message: String,
        help: &str,
    ) {
        self.warnings.push(PolicyWarning {
            code,
            span,
            pointer: pointer.to_string(),
            message,
            help: help.to_owned(),
        });
    }

    /// Reports a problem at a place of a document, or at the document if there is no such place.
    fn at(
        &mut self,
        root: &Node,
        place: &str,
        code: ProblemCode,
        message: String,
        help: Option<&str>,
    ) {
        self.problems.push(PolicyProblem {
            code,
            span: root.at(place).unwrap_or(root).span(),
            pointer: place.to_owned(),
            message,
            help: help.map(str::to_owned),
        });
    }

    /// Reads a list, bounded.
    fn list<'a>(&mut self, fields: &mut Fields<'a>, key: &str) -> Vec<(Pointer, &'a Node)> {
        let items = fields.sequence(key, &mut self.fields);
        if items.len() > MAX_ITEMS {
            let message =
                format!("{} items of `{key}` are over the limit of {MAX_ITEMS}", items.len());
            let pointer = fields.pointer_to(key);
            let help = "split the policy";
            self.problem(ProblemCode::Limit, fields.span(), &pointer, message, help);
            return Vec::new();
        }
        items
    }

    /// Reports fields that are set in one kind and have no meaning here.
    fn refuse(&mut self, fields: &mut Fields<'_>, keys: &[&str], why: &str, help: &str) {
        for key in keys {
            if let Some(entry) = fields.entry(key) {
                let pointer = fields.pointer_to(key);
                let message = format!("`{key}` {why}");
                self.unsupported(entry.key_span(), &pointer, message, help);
            }
        }
    }

    /// Reports that exactly one of some keys must be there, and returns the one that is.
    fn one_of<'k>(&mut self, fields: &mut Fields<'_>, keys: &[&'k str]) -> Option<&'k str> {
        let mut set = keys.iter().filter(|key| fields.entry(key).is_some());
        let found: Vec<&'k str> = set.by_ref().copied().collect();
        match found.as_slice() {
            [one] => Some(one),
            [] => {
                let message = format!("one of {} must be set", quoted(keys));
                let (span, pointer) = (fields.span(), fields.pointer().clone());
                self.invalid(span, &pointer, message, &format!("add {}", alternatives(keys)));
                None
            }
            [_, second, ..] => {
                let span = fields.entry(second).map_or(fields.span(), Entry::key_span);
                let pointer = fields.pointer_to(second);
                let message = format!("only one of {} can be set", quoted(keys));
                self.invalid(span, &pointer, message, &format!("delete `{second}`"));
                None
            }
        }
    }

    fn finish(mut self, policies: Vec<TrustPolicy>) -> Result<TrustFile, PolicyError> {
        self.problems.extend(self.fields.into_iter().map(PolicyProblem::from));
        if !self.problems.is_empty() {
            self.problems.sort_by(|a, b| {
                (a.position(), &a.pointer, &a.message).cmp(&(b.position(), &b.pointer, &b.message))
            });
            self.problems.dedup();
            let file = self.file.to_owned();
            return Err(PolicyError::Fields { file, problems: self.problems });
        }
        self.warnings.sort_by(|a, b| {
            (a.span.start(), a.code, &a.message).cmp(&(b.span.start(), b.code, &b.message))
        });
        Ok(TrustFile { policies, roots: self.roots, warnings: self.warnings })
    }

    /// Tells whether a policy may refer to a trust root by this name.
    fn knows_root(&self, name: &str) -> bool {
        BUILTIN_ROOTS.contains(&name)
            || self.options.roots.contains(name)
            || self.roots.iter().any(|root| root.name == name)
    }
}

fn quoted(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

fn alternatives(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" or ")
}

/// Returns text as it may stand in a message.
fn shown(text: &str) -> String {
    let flat = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(100).map(flat).collect()
}

/// Marks a problem of a field's value, for those that have no help.
fn value_problem(detail: String, pointer: Pointer, span: Span) -> FieldProblem {
    FieldProblem::new(ProblemKind::Invalid { detail }, pointer, span)
}
