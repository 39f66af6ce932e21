//! `trustRootRef`, `ctlog` and `rfc3161timestamp`: who is believed about a signature.

use ambit_engine::document::{Fields, Span};

use super::authority::Context;
use super::{Dialect, Reader, shown};
use crate::policy::problem::WarningCode;
use crate::policy::{LogRule, RootDefinition, RootSource, TimestampRule};

/// The trust root of an authority, while it is read: whoever names one first.
pub(super) type Root = Option<(String, Span)>;

/// Sigstore's public certificate authority and log, which `public-good` stands for.
const PUBLIC_URLS: [&str; 2] = ["https://fulcio.sigstore.dev", "https://rekor.sigstore.dev"];

impl Reader<'_> {
    pub(super) fn keyless_root(
        &mut self,
        keyless: &mut Fields<'_>,
        context: &Context<'_>,
        authority: &str,
    ) -> Root {
        let named = self.root_reference(keyless);
        if context.dialect == Dialect::Ours {
            return named;
        }
        self.ignored_url(keyless, "url");
        let Some(mut certificate) = keyless.mapping("ca-cert", &mut self.fields) else {
            return named;
        };
        let span = certificate.span();
        let data = self.key_data(&mut certificate);
        certificate.finish(&mut self.fields);
        let roots = data.and_then(|data| self.certificates(&data))?;
        if named.is_some() {
            let pointer = keyless.pointer_to("ca-cert");
            let message = "only one of `ca-cert` and `trustRootRef` can be set".to_owned();
            self.invalid(span, &pointer, message, "delete one of the two");
        }
        // No document can define a name with a slash, so this one is free.
        let name = format!("{}/{authority}/ca-cert", context.policy.unwrap_or_default());
        self.roots.push(RootDefinition {
            name: name.clone(),
            origin: format!("{}:{}", self.file, span.start().line()),
            source: RootSource::Certificates { roots, intermediates: String::new() },
        });
        Some((name, span))
    }

    /// Says that an address has no effect, unless it is the one that the default stands for.
    fn ignored_url(&mut self, fields: &mut Fields<'_>, key: &str) -> bool {
        let Some(url) = fields.string(key, &mut self.fields) else { return false };
        if !PUBLIC_URLS.contains(&url.as_str().trim_end_matches('/')) {
            let message = format!(
                "`{}` is not called: what is trusted comes from the trust root",
                shown(url.as_str())
            );
            let help = "name the instance's `trusted_root.json` by `trustRootRef`";
            self.warn(WarningCode::Ignored, url.span(), url.pointer(), message, help);
        }
        true
    }

    /// Takes over the trust root that a block names. An authority has one.
    fn same_root(&mut self, fields: &mut Fields<'_>, root: &mut Root) -> bool {
        let Some((name, span)) = self.root_reference(fields) else { return false };
        match root {
            Some((first, _)) if *first != name => {
                let pointer = fields.pointer_to("trustRootRef");
                let message =
                    format!("an authority has one trust root, and `{first}` is named too");
                let help = "put both into one `trusted_root.json`";
                self.unsupported(span, &pointer, message, help);
            }
            Some(_) => {}
            None => *root = Some((name, span)),
        }
        true
    }

    pub(super) fn log(
        &mut self,
        fields: &mut Fields<'_>,
        root: &mut Root,
        dialect: Dialect,
    ) -> Option<LogRule> {
        let mut log = fields.mapping("ctlog", &mut self.fields)?;
        let named = self.same_root(&mut log, root);
        let rule = match dialect {
            Dialect::Imported => {
                let url = self.ignored_url(&mut log, "url");
                if url || named {
                    None
                } else {
                    let message = "an empty `ctlog` asks for no entry in a log".to_owned();
                    let help = "delete `ctlog` to ask for one";
                    self.warn(WarningCode::Ignored, log.span(), log.pointer(), message, help);
                    Some(LogRule::Unasked)
                }
            }
            Dialect::Ours => {
                let require = log.string("require", &mut self.fields);
                let rule = require.as_ref().map(|text| match text.as_str() {
                    "proof" => Some(LogRule::Proof),
                    "proofOrPromise" => Some(LogRule::ProofOrPromise),
                    "none" => Some(LogRule::Unasked),
                    _ => None,
                });
                match (&require, rule) {
                    (Some(text), Some(None)) => {
                        let message = format!("`{}` is no demand on a log", shown(text.as_str()));
                        let help = "write `proof`, `proofOrPromise` or `none`";
                        self.invalid(text.span(), text.pointer(), message, help);
                    }
                    // To policy-controller this means that no entry is asked for.
                    (None, _) if !named => {
                        let help = "write `require: none` if no entry is asked for, or delete it";
                        let pointer = log.pointer().clone();
                        let message = "an empty `ctlog` has no effect".to_owned();
                        self.invalid(log.span(), &pointer, message, help);
                    }
                    (_, _) => {}
                }
                rule.flatten()
            }
        };
        log.finish(&mut self.fields);
        rule
    }

    pub(super) fn timestamp(
        &mut self,
        fields: &mut Fields<'_>,
        root: &mut Root,
        dialect: Dialect,
    ) -> Option<TimestampRule> {
        let mut timestamp = fields.mapping("rfc3161timestamp", &mut self.fields)?;
        self.same_root(&mut timestamp, root);
        let mut rule = TimestampRule::Required;
        if dialect == Dialect::Ours
            && let Some(text) = timestamp.string("require", &mut self.fields)
        {
            match text.as_str() {
                "required" => {}
                "optional" => rule = TimestampRule::Optional,
                other => {
                    let message = format!("`{}` is no demand on timestamps", shown(other));
                    let help = "write `required` or `optional`";
                    self.invalid(text.span(), text.pointer(), message, help);
                }
            }
        }
        timestamp.finish(&mut self.fields);
        Some(rule)
    }
}
