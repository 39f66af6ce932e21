//! Values of Secrets and ConfigMaps, and how variables get theirs.

use std::collections::BTreeMap;
use std::fmt;

use ambit_engine::admitted::{GrantSource, ValueSource, Variable};
use ambit_engine::workload::{Private, ReferenceKind};

use crate::error::ExecutorError;

/// Values of Secrets and ConfigMaps, as the operator gives them. Neither `Debug` nor an error shows
/// a value.
#[derive(Clone, Default)]
pub struct Values {
    objects: Objects,
}

type Objects = BTreeMap<(ReferenceKind, String), BTreeMap<String, Vec<u8>>>;

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for ((kind, name), keys) in &self.objects {
            map.entry(&(kind.as_str(), name), &keys.keys().collect::<Vec<_>>());
        }
        map.finish()
    }
}

/// Collects values.
#[derive(Clone, Debug, Default)]
pub struct ValuesBuilder {
    values: Values,
}

impl ValuesBuilder {
    /// Adds one key of a Secret, in the place of what it had.
    #[must_use]
    pub fn secret(self, name: &str, key: &str, value: &Private) -> Self {
        self.secret_bytes(name, key, value.reveal().as_bytes().to_vec())
    }

    /// Adds one key of a Secret that may be no text, in the place of what it had.
    #[must_use]
    pub fn secret_bytes(mut self, name: &str, key: &str, value: Vec<u8>) -> Self {
        self.object(ReferenceKind::Secret, name).insert(key.to_owned(), value);
        self
    }

    /// Adds one key of a ConfigMap that may be no text, in the place of what it had.
    #[must_use]
    pub(crate) fn config_bytes(mut self, name: &str, key: &str, value: Vec<u8>) -> Self {
        self.object(ReferenceKind::Config, name).insert(key.to_owned(), value);
        self
    }

    /// Adds the keys of a ConfigMap to those that it has.
    #[must_use]
    pub fn config_map(mut self, name: &str, data: BTreeMap<String, String>) -> Self {
        let object = self.object(ReferenceKind::Config, name);
        object.extend(data.into_iter().map(|(key, value)| (key, value.into_bytes())));
        self
    }

    /// Returns a key of a Secret, if it has been given.
    #[must_use]
    pub fn secret_value(&self, name: &str, key: &str) -> Option<&[u8]> {
        let object = self.values.objects.get(&(ReferenceKind::Secret, name.to_owned()))?;
        object.get(key).map(Vec::as_slice)
    }

    /// Returns the values.
    #[must_use]
    pub fn build(self) -> Values {
        self.values
    }

    fn object(&mut self, kind: ReferenceKind, name: &str) -> &mut BTreeMap<String, Vec<u8>> {
        self.values.objects.entry((kind, name.to_owned())).or_default()
    }
}

impl Values {
    /// Starts without values.
    #[must_use]
    pub fn builder() -> ValuesBuilder {
        ValuesBuilder::default()
    }

    /// Returns the objects with their keys, for volumes that are made of them. Whoever reads them
    /// must neither print nor record a value.
    #[must_use]
    pub fn objects(&self) -> &BTreeMap<(ReferenceKind, String), BTreeMap<String, Vec<u8>>> {
        &self.objects
    }

    /// Returns the keys of one object.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Setup`] with code `value-missing`, naming the line and the flag, if nobody
    /// gave it.
    pub(crate) fn object(
        &self,
        kind: ReferenceKind,
        name: &str,
        source: &GrantSource,
    ) -> Result<&BTreeMap<String, Vec<u8>>, ExecutorError> {
        let object = self.objects.get(&(kind, name.to_owned()));
        object.ok_or_else(|| missing(kind, name, None, source, name))
    }

    /// Resolves variables to values, in order, a later one of the same name replacing an earlier.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Setup`]: `value-missing` names the line that asks for what isn't given,
    /// `value-not-text` a value that isn't UTF-8, `value-name` a key that can't be a variable.
    pub(crate) fn resolve(
        &self,
        variables: &[Variable],
    ) -> Result<Vec<(String, String)>, ExecutorError> {
        let mut resolved = Resolved::default();
        for variable in variables {
            let source = &variable.source;
            match &variable.value {
                ValueSource::Literal(value) => {
                    resolved.set(&variable.name, value.reveal().to_owned());
                }
                ValueSource::Key { kind, object, key } => {
                    let keys = self.objects.get(&(*kind, object.clone()));
                    let value = keys.and_then(|keys| keys.get(key));
                    let value = value
                        .ok_or_else(|| missing(*kind, object, Some(key), source, &variable.name))?;
                    resolved.set(&variable.name, text(value, *kind, (object, key), source)?);
                }
                ValueSource::All { kind, object } => {
                    let keys = self.objects.get(&(*kind, object.clone()));
                    let keys = keys.ok_or_else(|| missing(*kind, object, None, source, object))?;
                    for (key, value) in keys {
                        if key.is_empty() || key.contains(['=', '\0']) {
                            return Err(bad_name(*kind, object, key, source));
                        }
                        resolved.set(key, text(value, *kind, (object, key), source)?);
                    }
                }
            }
        }
        Ok(resolved.list)
    }
}

#[derive(Default)]
struct Resolved {
    list: Vec<(String, String)>,
    at: BTreeMap<String, usize>,
}

impl Resolved {
    fn set(&mut self, name: &str, value: String) {
        if let Some((_, old)) = self.at.get(name).and_then(|at| self.list.get_mut(*at)) {
            *old = value;
        } else {
            self.at.insert(name.to_owned(), self.list.len());
            self.list.push((name.to_owned(), value));
        }
    }
}

fn kind_name(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Secret => "Secret",
        ReferenceKind::Config => "ConfigMap",
        ReferenceKind::PullSecret => "pull Secret",
    }
}

fn missing(
    kind: ReferenceKind,
    object: &str,
    key: Option<&str>,
    source: &GrantSource,
    wanted: &str,
) -> ExecutorError {
    let GrantSource { file, line, .. } = source;
    let what = match key {
        Some(key) => format!("key `{key}` of {} `{object}`", kind_name(kind)),
        None => format!("{} `{object}`", kind_name(kind)),
    };
    let help = match (kind, key) {
        (ReferenceKind::Secret, Some(key)) => {
            format!("give it with `--secret {object}.{key}=env:VARIABLE`, `file:PATH` or `cmd:…`")
        }
        (ReferenceKind::Config, _) => format!("give it with `--config-map {object}=FILE`"),
        (ReferenceKind::Secret | ReferenceKind::PullSecret, _) => {
            format!(
                "give its keys with `--secret {object}=file:PATH` or each with `--secret {object}.KEY=…`"
            )
        }
    };
    ExecutorError::Setup {
        code: "value-missing",
        message: format!("`{wanted}` needs {what}, which isn't given ({file}:{line})"),
        help,
    }
}

fn text(
    value: &[u8],
    kind: ReferenceKind,
    (object, key): (&str, &str),
    source: &GrantSource,
) -> Result<String, ExecutorError> {
    let GrantSource { file, line, .. } = source;
    match std::str::from_utf8(value) {
        Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
        Ok(_) | Err(_) => Err(ExecutorError::Setup {
            code: "value-not-text",
            message: format!(
                "key `{key}` of {} `{object}` isn't text, so no variable can hold it ({file}:{line})",
                kind_name(kind)
            ),
            help: "mount it as a volume instead".to_owned(),
        }),
    }
}

fn bad_name(kind: ReferenceKind, object: &str, key: &str, source: &GrantSource) -> ExecutorError {
    let GrantSource { file, line, .. } = source;
    ExecutorError::Setup {
        code: "value-name",
        message: format!(
            "key {key:?} of {} `{object}` can't be the name of a variable ({file}:{line})",
            kind_name(kind)
        ),
        help: "name single keys of the object instead of taking all".to_owned(),
    }
}
