//! `kind: TrustRoot`: names for trust roots.

use ambit_engine::document::{Fields, Node, Pointer, Span, Text};

use super::{API_VERSION, Dialect, Reader, shown};
use crate::policy::problem::ProblemCode;
use crate::policy::{BUILTIN_ROOTS, RootDefinition, RootSource};

/// The longest name of a root, in bytes.
const MAX_NAME: usize = 253;

impl Reader<'_> {
    /// Reads a document of `kind: TrustRoot`; one of another version is left to the search for
    /// policies, which reports it.
    pub(super) fn trust_root(&mut self, root: &Node) {
        if root.get("apiVersion").and_then(Node::as_str) != Some(API_VERSION) {
            return;
        }
        let Some(mut fields) = Fields::new(root, Pointer::root(), &mut self.fields) else { return };
        let name = self.object(&mut fields, Dialect::Ours);
        let spec = fields.mapping("spec", &mut self.fields);
        if spec.is_none() {
            fields.missing("spec", &mut self.fields);
        }
        fields.finish(&mut self.fields);
        let Some(mut spec) = spec else { return };
        let source = self.root_source(&mut spec);
        spec.finish(&mut self.fields);
        let (Some(name), Some(source)) = (name, source) else { return };
        let at = "/metadata/name";
        if BUILTIN_ROOTS.contains(&name.as_str()) {
            let message = format!("`{name}` is built in and can't be defined anew");
            self.at(root, at, ProblemCode::Field, message, Some("choose another name"));
        } else if name.len() > MAX_NAME || self.knows_root(&name) {
            let message = format!("a second trust root is named `{name}`");
            self.at(root, at, ProblemCode::Field, message, Some("choose another name"));
        } else {
            let origin = format!("{}:{}", self.file, root.span().start().line());
            self.roots.push(RootDefinition { name, origin, source });
        }
    }

    fn root_source(&mut self, spec: &mut Fields<'_>) -> Option<RootSource> {
        // Each is looked at, so that the others are no unknown fields.
        match self.one_of(spec, &["file", "data", "certificates"])? {
            "file" => {
                let path = spec.string("file", &mut self.fields)?;
                self.nonempty(&path).then(|| RootSource::File(path.as_str().to_owned()))
            }
            "data" => {
                let text = spec.string("data", &mut self.fields)?;
                let json = text.as_str().trim_start().starts_with('{');
                if !json {
                    let help = "`data` is the text of a `trusted_root.json`; `file` names one";
                    let message = "the text is no JSON object".to_owned();
                    self.invalid(text.span(), text.pointer(), message, help);
                }
                json.then(|| RootSource::Json(text.as_str().to_owned()))
            }
            _ => {
                let mut inner = spec.mapping("certificates", &mut self.fields)?;
                let roots = inner.required_string("roots", &mut self.fields);
                let intermediates = inner.string("intermediates", &mut self.fields);
                inner.finish(&mut self.fields);
                let roots = self.certificates(&roots?)?;
                let intermediates = match intermediates {
                    Some(text) => self.certificates(&text)?,
                    None => String::new(),
                };
                Some(RootSource::Certificates { roots, intermediates })
            }
        }
    }

    /// Looks at the frame of PEM certificates; their content is the verifier's to read.
    pub(super) fn certificates(&mut self, text: &Text<'_>) -> Option<String> {
        let pem = text.as_str();
        let fits = pem.contains("-----BEGIN CERTIFICATE-----")
            && pem.contains("-----END CERTIFICATE-----")
            && !pem.contains("PRIVATE KEY-----");
        if !fits {
            let help = "give certificates in PEM, `-----BEGIN CERTIFICATE-----`";
            let message = "the text holds no certificates, or more than that".to_owned();
            self.invalid(text.span(), text.pointer(), message, help);
        }
        fits.then(|| pem.to_owned())
    }

    pub(super) fn nonempty(&mut self, text: &Text<'_>) -> bool {
        let empty = text.as_str().trim().is_empty();
        if empty {
            let message = format!("`{}` is empty", text.pointer());
            self.invalid(
                text.span(),
                text.pointer(),
                message,
                "write a value, or delete the field",
            );
        }
        !empty
    }

    /// Reads a reference to a trust root.
    pub(super) fn root_reference(&mut self, fields: &mut Fields<'_>) -> Option<(String, Span)> {
        let name = fields.string("trustRootRef", &mut self.fields)?;
        if !self.knows_root(name.as_str()) {
            let mut known: Vec<&str> = BUILTIN_ROOTS.to_vec();
            known.extend(self.options.roots.iter().map(String::as_str));
            known.extend(self.roots.iter().map(|root| root.name.as_str()));
            // Names that stand for certificates within a policy can't be referred to.
            known.retain(|name| !name.contains('/'));
            let help = format!(
                "define it by a document of `kind: TrustRoot`, or name one of {}",
                known
                    .iter()
                    .take(16)
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            let message = format!("there is no trust root `{}`", shown(name.as_str()));
            self.invalid(name.span(), name.pointer(), message, &help);
        }
        Some((name.as_str().to_owned(), name.span()))
    }
}
