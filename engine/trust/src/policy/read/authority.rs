//! `authorities`: who signs, and what a signature must come with.

use std::collections::BTreeMap;

use ambit_engine::document::{Fields, Node, Pointer};
use ambit_engine::reference::Reference;

use super::logs::Root;
use super::{Dialect, Reader, shown, value_problem};
use crate::policy::duration::parse_duration;
use crate::policy::key::{HashChoice, public_keys};
use crate::policy::predicate::predicate_types;
use crate::policy::problem::{ProblemCode, WarningCode};
use crate::policy::{
    AttestationRule, Authority, Formats, GITHUB_ROOT, KeyHash, LogRule, Mode, PUBLIC_GOOD_ROOT,
    SctRule, SignatureSource, Signer, StaticAction, TimestampRule,
};

/// Where an authority stands.
pub(super) struct Context<'a> {
    pub(super) dialect: Dialect,
    pub(super) mode: Mode,
    pub(super) policy: Option<&'a str>,
    pub(super) index: usize,
}

impl Reader<'_> {
    pub(super) fn authority(
        &mut self,
        node: &Node,
        pointer: Pointer,
        context: &Context<'_>,
    ) -> Option<Authority> {
        let mut fields = Fields::new(node, pointer, &mut self.fields)?;
        let name = match fields.string("name", &mut self.fields) {
            Some(name) => {
                self.nonempty(&name);
                name.as_str().to_owned()
            }
            None => format!("authority-{}", context.index),
        };
        let key = self.one_of(&mut fields, &["key", "keyless", "static"]);
        if key == Some("static") {
            return self.static_authority(fields, name, context);
        }
        let formats = self.formats(&mut fields, context.dialect);
        let mut root: Root = None;
        let mut keys = Vec::new();
        let mut identities = Vec::new();
        let mut sct = None;
        match key {
            Some("key") => keys = self.key(&mut fields, context.dialect),
            Some(_) => {
                if let Some(mut keyless) = fields.mapping("keyless", &mut self.fields) {
                    root = self.keyless_root(&mut keyless, context, &name);
                    sct = keyless.bool("insecureIgnoreSCT", &mut self.fields);
                    identities = self.identities(&mut keyless, context.dialect);
                    keyless.finish(&mut self.fields);
                }
            }
            None => {}
        }
        let log = self.log(&mut fields, &mut root, context.dialect);
        let timestamp = self.timestamp(&mut fields, &mut root, context.dialect);
        let root = root.map_or_else(|| PUBLIC_GOOD_ROOT.to_owned(), |(name, _)| name);
        let private = root == GITHUB_ROOT;
        let signer = if key == Some("keyless") {
            let ignored = sct.map_or(private, |set| *set.value());
            let sct = if ignored { SctRule::Ignored } else { SctRule::Required };
            Signer::Certificate { root, identities, sct }
        } else {
            Signer::Key { keys, root }
        };
        let sources = self.sources(&mut fields, context.dialect);
        let attestations = self.attestations(&mut fields);
        let mut authority = Authority {
            name,
            formats,
            signer,
            // GitHub's own instance has no logs, and timestamps instead.
            log: log.unwrap_or(if private { LogRule::Unasked } else { LogRule::ProofOrPromise }),
            timestamp: timestamp.unwrap_or(if private {
                TimestampRule::Required
            } else {
                TimestampRule::Optional
            }),
            annotations: BTreeMap::new(),
            max_age: None,
            not_before: None,
            attestations,
            sources,
        };
        if context.dialect == Dialect::Ours {
            self.additions(&mut fields, &mut authority);
        }
        if authority.formats == Formats::Legacy && authority.log == LogRule::Proof {
            let (span, pointer) = (fields.span(), fields.pointer_to("ctlog"));
            let help = "write `require: proofOrPromise`, or another `signatureFormat`";
            let message = "legacy signatures carry the log's promise and no proof".to_owned();
            self.invalid(span, &pointer, message, help);
        }
        fields.finish(&mut self.fields);
        Some(authority)
    }

    fn static_authority(
        &mut self,
        mut fields: Fields<'_>,
        name: String,
        context: &Context<'_>,
    ) -> Option<Authority> {
        let others = [
            "signatureFormat",
            "source",
            "ctlog",
            "attestations",
            "rfc3161timestamp",
            "annotations",
            "maxAge",
            "notBefore",
        ];
        let others = if context.dialect == Dialect::Ours { &others[..] } else { &others[..5] };
        for key in others {
            if let Some(entry) = fields.entry(key) {
                let pointer = fields.pointer_to(key);
                let message = format!("`{key}` has no effect beside `static`");
                self.invalid(entry.key_span(), &pointer, message, "delete it");
            }
        }
        let mut inner = fields.mapping("static", &mut self.fields)?;
        fields.finish(&mut self.fields);
        let action = inner.required_string("action", &mut self.fields);
        let allowed = match context.dialect {
            Dialect::Ours => inner
                .bool("insecureAllowUnsigned", &mut self.fields)
                .is_some_and(|set| *set.value()),
            Dialect::Imported => {
                if let Some(message) = inner.string("message", &mut self.fields) {
                    let text = "`message` is not shown".to_owned();
                    let (span, pointer) = (message.span(), message.pointer());
                    self.warn(WarningCode::Ignored, span, pointer, text, "delete it");
                }
                self.options.static_pass == super::StaticPass::Allowed
            }
        };
        inner.finish(&mut self.fields);
        let action = action?;
        let read = match action.as_str() {
            "fail" => StaticAction::Fail,
            "pass" => StaticAction::Pass,
            other => {
                let message = format!("`{}` is no action", shown(other));
                self.invalid(action.span(), action.pointer(), message, "write `pass` or `fail`");
                return None;
            }
        };
        if read == StaticAction::Pass && context.mode == Mode::Enforce && !allowed {
            let help = match context.dialect {
                Dialect::Ours => {
                    "add `insecureAllowUnsigned: true` beside it, or `mode: warn` to the policy"
                }
                Dialect::Imported => {
                    "name an authority with a key or an identity, or add `mode: warn` to the policy"
                }
            };
            let message = "`action: pass` accepts every image without a signature".to_owned();
            self.problem(ProblemCode::Insecure, action.span(), action.pointer(), message, help);
        }
        Some(Authority {
            name,
            formats: Formats::Any,
            signer: Signer::Static { action: read },
            log: LogRule::Unasked,
            timestamp: TimestampRule::Optional,
            annotations: BTreeMap::new(),
            max_age: None,
            not_before: None,
            attestations: Vec::new(),
            sources: Vec::new(),
        })
    }

    fn formats(&mut self, fields: &mut Fields<'_>, dialect: Dialect) -> Formats {
        let Some(format) = fields.string("signatureFormat", &mut self.fields) else {
            return match dialect {
                Dialect::Ours => Formats::Any,
                Dialect::Imported => Formats::Legacy,
            };
        };
        match (format.as_str(), dialect) {
            ("legacy", _) => Formats::Legacy,
            ("bundle", _) => Formats::Bundle,
            ("any", Dialect::Ours) => Formats::Any,
            (other, _) => {
                let message = format!("`{}` is no format of signatures", shown(other));
                let help = match dialect {
                    Dialect::Ours => "write `any`, `bundle` or `legacy`",
                    Dialect::Imported => "write `bundle` or `legacy`",
                };
                self.invalid(format.span(), format.pointer(), message, help);
                Formats::Any
            }
        }
    }

    fn key(&mut self, fields: &mut Fields<'_>, dialect: Dialect) -> Vec<crate::policy::PublicKey> {
        let Some(mut key) = fields.mapping("key", &mut self.fields) else { return Vec::new() };
        let hash = key.string("hashAlgorithm", &mut self.fields);
        let choice = match &hash {
            None => HashChoice::Unnamed,
            Some(text) => match KeyHash::parse(text.as_str()) {
                Some(hash) => HashChoice::Named(hash),
                None => {
                    let message = format!("`{}` is no hash of signatures", shown(text.as_str()));
                    let help = "write `sha256`, `sha384` or `sha512`";
                    self.invalid(text.span(), text.pointer(), message, help);
                    HashChoice::Unnamed
                }
            },
        };
        let found = self.key_data(&mut key);
        key.finish(&mut self.fields);
        let Some(data) = found else { return Vec::new() };
        match public_keys(data.as_str(), choice) {
            Ok(keys) if keys.len() > 1 && dialect == Dialect::Imported => {
                let help =
                    "write an authority for each key, as policy-controller reads the first only";
                let message = "there is more than one key".to_owned();
                self.invalid(data.span(), data.pointer(), message, help);
                keys
            }
            Ok(keys) => keys,
            Err(error) => {
                self.invalid(data.span(), data.pointer(), error.to_string(), error.help());
                Vec::new()
            }
        }
    }

    /// Reads a reference to a key or certificate, of which only inline text is accepted.
    pub(super) fn key_data<'a>(
        &mut self,
        key: &mut Fields<'a>,
    ) -> Option<ambit_engine::document::Text<'a>> {
        match self.one_of(key, &["data", "kms", "secretRef"])? {
            "data" => key.string("data", &mut self.fields),
            "kms" => {
                let help = "export the public key (`cosign public-key --key awskms://…`) and write it under `data`";
                self.refuse(key, &["kms"], "names a key service, and none is asked", help);
                None
            }
            _ => {
                let help = "write the public key under `data`; there are no secrets to read outside of a cluster";
                self.refuse(key, &["secretRef"], "names a secret of a cluster", help);
                None
            }
        }
    }

    fn sources(&mut self, fields: &mut Fields<'_>, dialect: Dialect) -> Vec<SignatureSource> {
        let mut sources = Vec::new();
        for (pointer, node) in self.list(fields, "source") {
            let Some(mut entry) = Fields::new(node, pointer, &mut self.fields) else { continue };
            let oci = entry.required_string("oci", &mut self.fields);
            let prefix = entry.string("tagPrefix", &mut self.fields);
            if dialect == Dialect::Imported
                && let Some(secrets) = entry.entry("signaturePullSecrets")
            {
                let pointer = entry.pointer_to("signaturePullSecrets");
                let message = "`signaturePullSecrets` names secrets of a cluster".to_owned();
                let help = "log in with `docker login` or `oras login`";
                self.warn(WarningCode::Ignored, secrets.key_span(), &pointer, message, help);
            }
            entry.finish(&mut self.fields);
            let Some(oci) = oci else { continue };
            let tag_prefix = prefix.as_ref().map_or("", |prefix| prefix.as_str()).to_owned();
            // A prefix stands before `sha256-…`, so whatever makes a tag with it will do.
            let fits = format!("a/b:{tag_prefix}s").parse::<Reference>().is_ok();
            if let Some(prefix) = prefix.filter(|prefix| !fits || prefix.as_str().len() > 50) {
                let message = format!("`{}` can't start a tag", shown(prefix.as_str()));
                let help = "write letters, digits, `_`, `.` and `-`, at most 50";
                self.invalid(prefix.span(), prefix.pointer(), message, help);
            }
            match oci.as_str().parse::<Reference>() {
                Ok(reference) if reference.tag().is_none() && reference.digest().is_none() => {
                    let repository = reference.repository().to_string();
                    sources.push(SignatureSource { repository, tag_prefix });
                }
                Ok(_) => {
                    let message = "a source is a repository, without tag or digest".to_owned();
                    self.invalid(oci.span(), oci.pointer(), message, "delete what follows it");
                }
                Err(error) => {
                    self.invalid(oci.span(), oci.pointer(), error.to_string(), &error.help());
                }
            }
        }
        sources
    }

    fn attestations(&mut self, fields: &mut Fields<'_>) -> Vec<AttestationRule> {
        let mut rules: Vec<AttestationRule> = Vec::new();
        let set = fields.node("attestations").and_then(Node::as_sequence);
        if set.is_some_and(<[_]>::is_empty) {
            let (span, pointer) = (fields.span(), fields.pointer_to("attestations"));
            let help = "list an attestation; to ask for a signature, delete it";
            self.invalid(span, &pointer, "`attestations` is empty".to_owned(), help);
        }
        for (pointer, node) in self.list(fields, "attestations") {
            let place = pointer.clone();
            let Some(mut entry) = Fields::new(node, pointer, &mut self.fields) else { continue };
            let name = entry.required_string("name", &mut self.fields);
            let kind = entry.required_string("predicateType", &mut self.fields);
            let rego = self.rego(&mut entry);
            entry.finish(&mut self.fields);
            let (Some(name), Some(kind)) = (name, kind) else { continue };
            self.nonempty(&name);
            if rules.iter().any(|rule| rule.name == name.as_str()) {
                let detail = format!("a second attestation is named `{}`", shown(name.as_str()));
                self.fields.push(value_problem(detail, place, name.span()));
            }
            match predicate_types(kind.as_str()) {
                Ok(predicate_types) => {
                    let name = name.as_str().to_owned();
                    rules.push(AttestationRule { name, predicate_types, rego });
                }
                Err(error) => {
                    self.invalid(kind.span(), kind.pointer(), error.to_string(), &error.help());
                }
            }
        }
        rules
    }

    /// Reads what policy-controller doesn't have.
    fn additions(&mut self, fields: &mut Fields<'_>, authority: &mut Authority) {
        let annotations = fields.string_map("annotations", &mut self.fields);
        if let Some((first, _)) = annotations.first()
            && !authority.attestations.is_empty()
        {
            let message = "annotations are those of signatures, and attestations are asked for";
            let help = "ask for the signature in an authority of its own, with `require: {authorities: all}`";
            self.invalid(first.span(), first.pointer(), message.to_owned(), help);
        }
        for (key, value) in &annotations {
            authority.annotations.insert(key.as_str().to_owned(), value.as_str().to_owned());
        }
        if let Some(age) = fields.string("maxAge", &mut self.fields) {
            match parse_duration(age.as_str()) {
                Ok(duration) => authority.max_age = Some(duration),
                Err(error) => {
                    self.invalid(age.span(), age.pointer(), error.to_string(), error.help());
                }
            }
        }
        if let Some(time) = fields.string("notBefore", &mut self.fields) {
            match time.as_str().parse() {
                Ok(time) => authority.not_before = Some(time),
                Err(_) => {
                    let message = format!("`{}` is no time", shown(time.as_str()));
                    let help = "write it as `2026-01-31T00:00:00Z`";
                    self.invalid(time.span(), time.pointer(), message, help);
                }
            }
        }
    }
}
