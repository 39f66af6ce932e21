//! What is wrong with a trust policy file, and what is only worth knowing.

use ambit_engine::document::{DocumentError, FieldProblem, Position, Span};

/// Why a trust policy file can't be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file is no YAML or JSON that can be read.
    #[error("{file} can't be read")]
    Document {
        /// The file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: DocumentError,
    },
    /// The file holds neither a policy nor a trust root.
    #[error("{file} holds no trust policy and no trust root")]
    Empty {
        /// The file.
        file: String,
    },
    /// Fields are wrong.
    #[error("{file}: {}", summary(problems))]
    Fields {
        /// The file.
        file: String,
        /// What is wrong, at least one, in the order of the file.
        problems: Vec<PolicyProblem>,
    },
}

fn summary(problems: &[PolicyProblem]) -> String {
    match problems {
        [only] => format!("{}: {}", only.position(), only.message),
        [first, rest @ ..] => {
            format!("{}: {} (and {} more)", first.position(), first.message, rest.len())
        }
        [] => "nothing is wrong".to_owned(),
    }
}

impl PolicyError {
    /// Returns the stable code of this error, that of the first problem.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document { source, .. } => source.code(),
            Self::Empty { .. } => "trust-policy-empty",
            Self::Fields { problems, .. } => {
                problems.first().map_or("trust-policy-field", |problem| problem.code.as_str())
            }
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Document { source, .. } => source.help(),
            Self::Empty { .. } => {
                Some("write a document of `kind: TrustPolicy`, or name another file".to_owned())
            }
            Self::Fields { problems, .. } => {
                problems.first().and_then(|problem| problem.help.clone())
            }
        }
    }
}

/// A kind of problem, as a stable code.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ProblemCode {
    /// A field is unknown, missing, of another type, or its value has no meaning.
    Field,
    /// The document's kind or version is none that is read.
    Kind,
    /// It means something elsewhere that is not offered here.
    Unsupported,
    /// It would accept anything, and doesn't say so.
    Insecure,
    /// There are more of something than are read.
    Limit,
}

impl ProblemCode {
    /// Returns the code as reports print it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.code()
    }

    fn code(self) -> &'static str {
        match self {
            Self::Field => "trust-policy-field",
            Self::Kind => "trust-policy-kind",
            Self::Unsupported => "trust-policy-unsupported",
            Self::Insecure => "trust-policy-insecure",
            Self::Limit => "trust-policy-limit",
        }
    }
}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PolicyProblem {
    /// The kind.
    pub code: ProblemCode,
    /// Where it stands in the text.
    pub span: Span,
    /// Where it is in its document, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What to do, where there is something.
    pub help: Option<String>,
}

impl PolicyProblem {
    /// Returns where it starts.
    #[must_use]
    pub fn position(&self) -> Position {
        self.span.start()
    }
}

impl From<FieldProblem> for PolicyProblem {
    fn from(problem: FieldProblem) -> Self {
        Self {
            code: ProblemCode::Field,
            span: problem.span(),
            pointer: problem.pointer().to_string(),
            message: problem.message(),
            help: problem
                .help()
                .or_else(|| Some("`docs/reference/trust-policy.md` gives every field".to_owned())),
        }
    }
}

/// A kind of remark, as a stable code.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WarningCode {
    /// A pattern may match anywhere within a name.
    Search,
    /// A pattern matches every name.
    Any,
    /// Something in an imported policy has no effect here.
    Ignored,
}

impl WarningCode {
    /// Returns the code as reports print it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.code()
    }

    fn code(self) -> &'static str {
        match self {
            Self::Search => "trust-policy-search",
            Self::Any => "trust-policy-any",
            Self::Ignored => "trust-policy-ignored",
        }
    }
}

/// Something in a file that works and that its author may not have meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PolicyWarning {
    /// The kind.
    pub code: WarningCode,
    /// Where it stands in the text.
    pub span: Span,
    /// Where it is in its document, as a JSON pointer.
    pub pointer: String,
    /// What it means.
    pub message: String,
    /// What to do.
    pub help: String,
}
