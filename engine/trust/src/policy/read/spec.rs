//! `spec`: what a policy is for and what it asks.

use ambit_engine::document::{Entry, Fields, Node, Pointer};

use super::{Dialect, Reader, shown};
use crate::policy::problem::{ProblemCode, WarningCode};
use crate::policy::{
    Authority, ImagePattern, Matcher, Mode, Pin, Require, Signer, StaticAction, TrustPolicy,
};

impl Reader<'_> {
    pub(super) fn policy(&mut self, root: &Node, dialect: Dialect) -> Option<TrustPolicy> {
        let mut fields = Fields::new(root, Pointer::root(), &mut self.fields)?;
        let name = self.object(&mut fields, dialect);
        let spec = fields.mapping("spec", &mut self.fields);
        if spec.is_none() {
            fields.missing("spec", &mut self.fields);
        }
        fields.finish(&mut self.fields);
        let mut spec = spec?;
        let images = self.images(&mut spec, dialect);
        let mode = self.mode(&mut spec);
        let pins = if dialect == Dialect::Ours { self.pins(&mut spec) } else { Vec::new() };
        let authorities = self.authorities(&mut spec, dialect, mode, name.as_deref());
        self.selectors(&mut spec, dialect, &authorities);
        let require = if dialect == Dialect::Ours {
            self.require(&mut spec, &authorities)
        } else {
            Require::Any
        };
        let rego = self.rego(&mut spec);
        spec.finish(&mut self.fields);
        let origin = format!("{}:{}", self.file, root.span().start().line());
        Some(TrustPolicy { name: name?, origin, images, mode, pins, require, authorities, rego })
    }

    fn images(&mut self, spec: &mut Fields<'_>, dialect: Dialect) -> Vec<ImagePattern> {
        let items = self.list(spec, "images");
        if items.is_empty()
            && spec.node("images").and_then(Node::as_sequence).is_none_or(<[_]>::is_empty)
        {
            spec.missing("images", &mut self.fields);
        }
        let mut images = Vec::new();
        for (pointer, node) in items {
            let Some(mut entry) = Fields::new(node, pointer, &mut self.fields) else { continue };
            let glob = entry.required_string("glob", &mut self.fields);
            entry.finish(&mut self.fields);
            let Some(glob) = glob else { continue };
            // A tag of wildcards is how policy-controller says "whatever the tag".
            let text = match glob.as_str().rsplit_once(':') {
                Some((name, tag))
                    if dialect == Dialect::Imported
                        && !tag.is_empty()
                        && tag.bytes().all(|b| b == b'*') =>
                {
                    name
                }
                _ => glob.as_str(),
            };
            match ImagePattern::parse(text) {
                Ok(pattern) => images.push(pattern),
                Err(error) => {
                    self.invalid(glob.span(), glob.pointer(), error.to_string(), error.help());
                }
            }
        }
        images
    }

    fn mode(&mut self, spec: &mut Fields<'_>) -> Mode {
        let Some(mode) = spec.string("mode", &mut self.fields) else { return Mode::Enforce };
        match mode.as_str() {
            "enforce" => Mode::Enforce,
            "warn" => Mode::Warn,
            other => {
                let message = format!("`{}` is no mode", shown(other));
                self.invalid(mode.span(), mode.pointer(), message, "write `enforce` or `warn`");
                Mode::Enforce
            }
        }
    }

    fn pins(&mut self, spec: &mut Fields<'_>) -> Vec<Pin> {
        let mut pins = Vec::new();
        let set = spec.entry("pins").is_some();
        let items = self.list(spec, "pins");
        if set && items.is_empty() {
            let help = "list digests, or delete `pins`";
            let (span, pointer) = (spec.span(), spec.pointer_to("pins"));
            self.invalid(span, &pointer, "`pins` lists no digest".to_owned(), help);
        }
        for (pointer, node) in items {
            let Some(mut entry) = Fields::new(node, pointer, &mut self.fields) else { continue };
            let key = self.one_of(&mut entry, &["manifest", "layer"]);
            let text = key.and_then(|key| entry.string(key, &mut self.fields));
            entry.finish(&mut self.fields);
            let Some(text) = text else { continue };
            match text.as_str().parse() {
                Ok(digest) if key == Some("manifest") => pins.push(Pin::Manifest(digest)),
                Ok(digest) => pins.push(Pin::Layer(digest)),
                Err(error) => {
                    let help = "write `sha256:` and 64 lower-case hexadecimal digits";
                    self.invalid(text.span(), text.pointer(), format!("{error}"), help);
                }
            }
        }
        pins
    }

    fn authorities(
        &mut self,
        spec: &mut Fields<'_>,
        dialect: Dialect,
        mode: Mode,
        policy: Option<&str>,
    ) -> Vec<Authority> {
        let items = self.list(spec, "authorities");
        let written = spec.node("authorities").and_then(Node::as_sequence);
        if written.is_none_or(<[_]>::is_empty) {
            let span = spec.entry("authorities").map_or(spec.span(), Entry::key_span);
            let pointer = spec.pointer_to("authorities");
            let message = "a policy without authorities denies every image".to_owned();
            let help =
                "add an authority; to deny on purpose, write one with `static: {action: fail}`";
            self.invalid(span, &pointer, message, help);
        }
        let mut authorities: Vec<Authority> = Vec::new();
        for (index, (pointer, node)) in items.into_iter().enumerate() {
            let context = super::authority::Context { dialect, mode, policy, index };
            let Some(authority) = self.authority(node, pointer.clone(), &context) else { continue };
            if authorities.iter().any(|other| other.name == authority.name) {
                let message = format!("a second authority is named `{}`", authority.name);
                self.invalid(node.span(), &pointer, message, "choose another name");
            }
            authorities.push(authority);
        }
        authorities
    }

    /// `match`: resources of a cluster by kind and label. Here a policy is for whoever names the
    /// image. That asks for more, unless the policy passes without a signature.
    fn selectors(&mut self, spec: &mut Fields<'_>, dialect: Dialect, authorities: &[Authority]) {
        let Some(entry) = spec.entry("match") else { return };
        let span = entry.key_span();
        let pointer = spec.pointer_to("match");
        let empty = entry.value().as_sequence().is_some_and(<[_]>::is_empty);
        let passes = authorities
            .iter()
            .any(|a| matches!(a.signer, Signer::Static { action: StaticAction::Pass }));
        match dialect {
            _ if empty => {}
            Dialect::Imported if !passes => {
                let message = "`match` has no effect: the policy is for every workload".to_owned();
                let help = "delete `match`, or keep the policy out of this file";
                self.warn(WarningCode::Ignored, span, &pointer, message, help);
            }
            Dialect::Imported => {
                let message = "`match` has no effect, so every workload would pass".to_owned();
                let help = "delete `match`, or the authority that passes";
                self.problem(ProblemCode::Insecure, span, &pointer, message, help);
            }
            Dialect::Ours => {
                let message = "`match` selects resources of a cluster".to_owned();
                let help = "delete it: a policy is for images, whoever names them";
                self.unsupported(span, &pointer, message, help);
            }
        }
    }

    fn require(&mut self, spec: &mut Fields<'_>, authorities: &[Authority]) -> Require {
        let Some(mut fields) = spec.mapping("require", &mut self.fields) else {
            return Require::Any;
        };
        let which = fields.string("authorities", &mut self.fields);
        let threshold = fields.u32("threshold", &mut self.fields);
        fields.finish(&mut self.fields);
        let all = match &which {
            None => false,
            Some(text) if text.as_str() == "any" => false,
            Some(text) if text.as_str() == "all" => true,
            Some(text) => {
                let message = format!("`{}` is no choice of authorities", shown(text.as_str()));
                self.invalid(text.span(), text.pointer(), message, "write `any` or `all`");
                false
            }
        };
        let Some(threshold) = threshold else {
            return if all { Require::All } else { Require::Any };
        };
        let wanted = *threshold.value();
        let (span, pointer) = (threshold.span(), threshold.pointer().clone());
        let most = most_signers(authorities);
        if all {
            let help = "delete one of the two";
            let message = "`threshold` has no effect beside `authorities: all`".to_owned();
            self.invalid(span, &pointer, message, help);
        } else if wanted == 0 {
            let help = "write at least 1";
            self.invalid(
                span,
                &pointer,
                "`threshold` is 0, which asks for nobody".to_owned(),
                help,
            );
        } else if most.is_some_and(|most| wanted > most) {
            let message = format!(
                "`threshold` is {wanted}, and the authorities name {} signers at most",
                most.unwrap_or_default()
            );
            self.invalid(span, &pointer, message, "lower it, or add keys or identities");
        }
        // With one signer wanted an authority that passes without a signature counts too.
        if wanted <= 1 { Require::Any } else { Require::Signers(wanted) }
    }
}

/// Returns how many distinct signers could satisfy the authorities at most; `None` if a pattern
/// leaves it open.
fn most_signers(authorities: &[Authority]) -> Option<u32> {
    let mut keys: Vec<&[u8]> = Vec::new();
    let mut identities: Vec<(&str, &str)> = Vec::new();
    for authority in authorities {
        match &authority.signer {
            Signer::Key { keys: named, .. } => {
                keys.extend(named.iter().map(|key| key.spki.as_slice()));
            }
            Signer::Certificate { identities: named, .. } => {
                for identity in named {
                    let (Matcher::Exact(issuer), Matcher::Exact(subject)) =
                        (&identity.issuer, &identity.subject)
                    else {
                        return None;
                    };
                    identities.push((issuer, subject));
                }
            }
            Signer::Static { .. } => {}
        }
    }
    keys.sort_unstable();
    keys.dedup();
    identities.sort_unstable();
    identities.dedup();
    u32::try_from(keys.len().saturating_add(identities.len())).ok()
}
