//! The text of `--secret` and `--config-map`, and of the files that they name.
//!
//! Nothing is read here: the front end reads the variable, file or command and hands over bytes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ambit_engine::document::{DocumentLimits, Format, Node, parse};

/// The most bytes of one object, as Kubernetes has it.
const MAX_OBJECT: usize = 1024 * 1024;

/// A `--secret`: which Secret, which key, and where its value is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SecretFlag {
    /// The Secret's name.
    pub name: String,
    /// The key; `None` if the value holds all keys in the form that [`entries`] reads.
    pub key: Option<String>,
    /// Where the value is.
    pub source: SecretSource,
}

/// Where the value of a Secret is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SecretSource {
    /// A variable of the front end's own environment.
    Environment(String),
    /// A file.
    File(PathBuf),
    /// What a command writes to its standard output.
    Command(String),
}

/// A `--config-map`: which ConfigMap, and the file that holds it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigMapFlag {
    /// The ConfigMap's name.
    pub name: String,
    /// The file, in the form that [`entries`] reads.
    pub file: PathBuf,
}

/// What is wrong with a flag, or with the file that it names. No text of a value is in it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlagError {
    /// The flag hasn't the form that it should have.
    #[error("expected {expected}")]
    Form {
        /// The form.
        expected: &'static str,
    },
    /// A file of values is neither a mapping of text, nor an object, nor lines `KEY=VALUE`.
    #[error("line {line}: {reason}")]
    Entries {
        /// The line, from 1.
        line: u32,
        /// What is wrong.
        reason: &'static str,
    },
    /// A file of values is longer than an object may be.
    #[error("{found} bytes are over the limit of {MAX_OBJECT}")]
    TooLarge {
        /// The length.
        found: usize,
    },
}

impl FlagError {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Form { .. } => "value-flag",
            Self::Entries { .. } | Self::TooLarge { .. } => "value-file",
        }
    }
}

impl SecretFlag {
    /// Reads `NAME[.KEY]=env:VARIABLE|file:PATH|cmd:COMMAND`.
    ///
    /// The first full stop ends the name, since keys such as `tls.crt` have one more often than
    /// names have; `NAME/KEY` serves a name with a full stop.
    ///
    /// # Errors
    ///
    /// [`FlagError::Form`].
    ///
    /// # Examples
    /// ```
    /// # use ambit_executor::services::{SecretFlag, SecretSource};
    /// let flag = SecretFlag::parse("db.password=env:DB_PW")?;
    /// assert_eq!((flag.name.as_str(), flag.key.as_deref()), ("db", Some("password")));
    /// assert_eq!(flag.source, SecretSource::Environment("DB_PW".to_owned()));
    /// # Ok::<(), ambit_executor::services::FlagError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, FlagError> {
        let form = FlagError::Form {
            expected: "`NAME[.KEY]=env:VARIABLE`, `NAME[.KEY]=file:PATH` or `NAME[.KEY]=cmd:COMMAND`",
        };
        let (object, source) = text.split_once('=').ok_or_else(|| form.clone())?;
        let named = object.split_once('/').or_else(|| object.split_once('.'));
        let (name, key) = named.map_or((object, None), |(name, key)| (name, Some(key)));
        let (kind, rest) = source.split_once(':').ok_or_else(|| form.clone())?;
        if !is_name(name) || key.is_some_and(|key| !is_name(key)) || rest.trim().is_empty() {
            return Err(form);
        }
        let source = match kind {
            "env" if rest.contains(['=', '\0']) => return Err(form),
            "env" => SecretSource::Environment(rest.to_owned()),
            "file" => SecretSource::File(PathBuf::from(rest)),
            "cmd" => SecretSource::Command(rest.to_owned()),
            _ => return Err(form),
        };
        Ok(Self { name: name.to_owned(), key: key.map(str::to_owned), source })
    }
}

impl ConfigMapFlag {
    /// Reads `NAME=FILE`.
    ///
    /// # Errors
    ///
    /// [`FlagError::Form`].
    pub fn parse(text: &str) -> Result<Self, FlagError> {
        match text.split_once('=') {
            Some((name, file)) if is_name(name) && !file.is_empty() => {
                Ok(Self { name: name.to_owned(), file: PathBuf::from(file) })
            }
            Some(_) | None => Err(FlagError::Form { expected: "`NAME=FILE`" }),
        }
    }
}

/// Names of objects and of their keys, as Kubernetes allows them.
fn is_name(text: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_');
    !text.is_empty() && text.len() <= 253 && text.chars().all(plain)
}

/// Reads the keys of an object out of a file.
///
/// Three forms are read: a mapping of scalars in YAML or JSON; a ConfigMap or Secret with `data`
/// (base64 in a Secret) or `stringData`; and lines `KEY=VALUE` as in `.env` files, with `#`
/// comments and quotes round a whole value.
///
/// # Errors
///
/// [`FlagError::Entries`] with the line, [`FlagError::TooLarge`].
pub fn entries(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, FlagError> {
    if bytes.len() > MAX_OBJECT {
        return Err(FlagError::TooLarge { found: bytes.len() });
    }
    let limits = DocumentLimits { max_documents: 1, ..DocumentLimits::default() };
    if let Ok(documents) = parse(bytes, Format::Auto, &limits) {
        match documents.first() {
            None => return lines(bytes),
            Some(document) if document.root().as_mapping().is_some() => {
                return mapping(document.root());
            }
            // Lines `KEY=VALUE` are one YAML string, or a list to those who begin with a dash.
            Some(_) => {}
        }
    }
    lines(bytes)
}

fn mapping(root: &Node) -> Result<BTreeMap<String, Vec<u8>>, FlagError> {
    let mut found = BTreeMap::new();
    let kind = root.get("kind").and_then(Node::as_str);
    let is_object = root.get("apiVersion").is_some() && kind.is_some();
    if !is_object {
        scalars(root, Encoding::Text, &mut found)?;
        return Ok(found);
    }
    let wrong = |reason| FlagError::Entries { line: root.span().start().line(), reason };
    let data = match kind {
        Some("ConfigMap") => Encoding::Text,
        Some("Secret") => Encoding::Base64,
        Some(_) | None => return Err(wrong("the object is neither a ConfigMap nor a Secret")),
    };
    let fields = [("data", data), ("binaryData", Encoding::Base64), ("stringData", Encoding::Text)];
    for (field, encoding) in fields {
        if let Some(node) = root.get(field) {
            scalars(node, encoding, &mut found)?;
        }
    }
    Ok(found)
}

#[derive(Clone, Copy)]
enum Encoding {
    Text,
    Base64,
}

fn scalars(
    node: &Node,
    encoding: Encoding,
    found: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), FlagError> {
    let wrong =
        |node: &Node, reason| FlagError::Entries { line: node.span().start().line(), reason };
    let map = node.as_mapping().ok_or_else(|| wrong(node, "expected a mapping of text"))?;
    for entry in map.iter() {
        let text = entry.value().scalar_text();
        let text = text.ok_or_else(|| wrong(entry.value(), "expected text as the value"))?;
        let value = match encoding {
            Encoding::Text => text.as_bytes().to_vec(),
            Encoding::Base64 => {
                base64(text).ok_or_else(|| wrong(entry.value(), "expected base64"))?
            }
        };
        found.insert(entry.key().to_owned(), value);
    }
    Ok(())
}

fn lines(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, FlagError> {
    let mut found = BTreeMap::new();
    for (line, text) in (1_u32..).zip(bytes.split(|byte| *byte == b'\n')) {
        let wrong = |reason| FlagError::Entries { line, reason };
        let text = std::str::from_utf8(text).map_err(|_| wrong("expected UTF-8"))?.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let text = text.strip_prefix("export ").unwrap_or(text);
        let (key, value) = text.split_once('=').ok_or_else(|| wrong("expected `KEY=VALUE`"))?;
        let (key, value) = (key.trim(), value.trim());
        if !is_name(key) {
            return Err(wrong("expected `KEY=VALUE` with a plain name"));
        }
        let quoted = ['"', '\''].iter().find_map(|quote| {
            value.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote))
        });
        found.insert(key.to_owned(), quoted.unwrap_or(value).as_bytes().to_vec());
    }
    Ok(found)
}

/// Decodes base64 (RFC 4648, section 4) with padding; line breaks are skipped.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let (mut bits, mut held, mut pad, mut count) = (0_u32, 0_u32, 0_u32, 0_usize);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        count = count.checked_add(1)?;
        let digit = match byte {
            b'A'..=b'Z' => byte.checked_sub(b'A')?,
            b'a'..=b'z' => byte.checked_sub(b'a')?.checked_add(26)?,
            b'0'..=b'9' => byte.checked_sub(b'0')?.checked_add(52)?,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                pad = pad.checked_add(1)?;
                continue;
            }
            _ => return None,
        };
        if pad > 0 {
            return None;
        }
        bits = (bits << 6) | u32::from(digit);
        held = held.checked_add(6)?;
        if held >= 8 {
            held = held.checked_sub(8)?;
            decoded.push(u8::try_from((bits >> held) & 0xff).ok()?);
            bits &= (1_u32 << held).checked_sub(1)?;
        }
    }
    let whole = count.is_multiple_of(4) && pad <= 2 && bits == 0;
    whole.then_some(decoded)
}
