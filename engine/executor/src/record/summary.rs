//! What a record says, grouped as a person asks: which component did what, to what, how often.

use std::collections::BTreeMap;

use super::entry::{Entry, Line, Subject};

/// The most things that are told apart for one component and verb.
pub const MAX_SUBJECTS: usize = 1000;

/// The most components that are told apart.
const MAX_COMPONENTS: usize = 1000;

/// Effects whose outcome is awaited, at most.
const MAX_OPEN: usize = 1 << 16;

/// Which lines count. Empty fields let everything through.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The workload's name, with or without its namespace.
    pub workload: Option<String>,
    /// The component.
    pub component: Option<String>,
    /// The verb, with spaces or dashes.
    pub verb: Option<String>,
    /// The host, without a port.
    pub host: Option<String>,
    /// Only what was denied.
    pub denied: bool,
}

impl Filter {
    /// Whether an effect passes, but for whether it was denied.
    #[must_use]
    pub fn takes(&self, effect: &Subject<'_>) -> bool {
        let is = |wanted: &Option<String>, text: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == text)
        };
        let name = effect.workload.rsplit('/').next().unwrap_or_default();
        (is(&self.workload, &effect.workload) || is(&self.workload, name))
            && is(&self.component, &effect.component)
            && (is(&self.verb, &effect.verb) || is(&self.verb, &effect.verb.replace(' ', "-")))
            && (self.host.is_none() || is(&self.host, host(&effect.subject).unwrap_or_default()))
    }

    /// Whether a line passes. Of lines that name no effect, only an unfiltered view has any.
    #[must_use]
    pub fn takes_line(&self, line: &Line<'_>) -> bool {
        match &line.entry {
            Entry::Intent { subject, .. } => !self.denied && self.takes(subject),
            Entry::Denied { subject, .. } => self.takes(subject),
            Entry::Start { .. }
            | Entry::Component { .. }
            | Entry::Outcome { .. }
            | Entry::Seal { .. }
            | Entry::Continued { .. }
            | Entry::End { .. } => {
                !self.denied
                    && self.workload.is_none()
                    && self.component.is_none()
                    && self.verb.is_none()
                    && self.host.is_none()
            }
        }
    }
}

/// The host in what an effect touches: `https://HOST:PORT/…`, `tcp://HOST:PORT`, `HOST:PORT`, or
/// `METHOD HOST/…`.
fn host(subject: &str) -> Option<&str> {
    let text = subject.split_once(' ').map_or(subject, |(_, rest)| rest);
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = text.split('/').next()?;
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next();
    }
    authority.split(':').next()
}

/// What one component did with one verb.
#[derive(Clone, Debug, Default, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Did {
    /// How often it was allowed.
    pub allowed: u64,
    /// How often it was denied.
    pub denied: u64,
    /// How often it was allowed and then failed.
    pub failed: u64,
    /// How often it was allowed and no outcome is known.
    pub unknown: u64,
    /// Bytes that went out of the component.
    pub bytes_out: u64,
    /// Bytes that came in.
    pub bytes_in: u64,
    /// The code of the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The code of the last denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What would have allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Whose effects they are.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Whose {
    /// The workload, `NAMESPACE/NAME`.
    pub workload: String,
    /// The component.
    pub component: String,
    /// The digest of its bytes.
    pub digest: String,
}

/// What a record says, grouped.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// By component, verb and thing.
    pub components: BTreeMap<Whose, BTreeMap<String, BTreeMap<String, Did>>>,
    /// Lines that were taken.
    pub effects: u64,
    open: BTreeMap<u64, (Whose, String, String)>,
}

/// The name under which things are counted that are too many to tell apart.
pub const OTHERS: &str = "(others)";

impl Summary {
    /// Takes a line.
    pub fn take(&mut self, filter: &Filter, line: &Line<'_>) {
        match &line.entry {
            Entry::Component { workload, component, digest, .. } => {
                let whose = Whose {
                    workload: workload.to_string(),
                    component: component.to_string(),
                    digest: digest.to_string(),
                };
                let wanted = |want: &Option<String>, text: &str| {
                    want.as_deref().is_none_or(|want| want == text)
                };
                if wanted(&filter.component, component)
                    && filter.workload.is_none()
                    && self.components.len() < MAX_COMPONENTS
                {
                    self.components.entry(whose).or_default();
                }
            }
            Entry::Intent { subject, .. } if !filter.denied && filter.takes(subject) => {
                let (key, did) = self.did(subject);
                did.allowed = did.allowed.saturating_add(1);
                did.unknown = did.unknown.saturating_add(1);
                if self.open.len() < MAX_OPEN {
                    self.open.insert(line.seq, key);
                }
            }
            Entry::Denied { subject, code, help, .. } if filter.takes(subject) => {
                let (_, did) = self.did(subject);
                did.denied = did.denied.saturating_add(1);
                did.code = Some(code.to_string());
                did.help = Some(help.to_string()).filter(|help| !help.is_empty());
            }
            Entry::Outcome { of, result, bytes_out, bytes_in, .. } => {
                let Some((whose, verb, thing)) = self.open.remove(of) else { return };
                let verbs = self.components.get_mut(&whose);
                let Some(did) = verbs.and_then(|verbs| verbs.get_mut(&verb)?.get_mut(&thing))
                else {
                    return;
                };
                did.unknown = did.unknown.saturating_sub(1);
                if result != "ok" {
                    did.failed = did.failed.saturating_add(1);
                    did.failure = Some(result.to_string());
                }
                did.bytes_out = did.bytes_out.saturating_add(*bytes_out);
                did.bytes_in = did.bytes_in.saturating_add(*bytes_in);
            }
            Entry::Intent { .. }
            | Entry::Denied { .. }
            | Entry::Start { .. }
            | Entry::Seal { .. }
            | Entry::Continued { .. }
            | Entry::End { .. } => {}
        }
    }

    fn did(&mut self, subject: &Subject<'_>) -> ((Whose, String, String), &mut Did) {
        self.effects = self.effects.saturating_add(1);
        let mut whose = Whose {
            workload: subject.workload.to_string(),
            component: subject.component.to_string(),
            digest: subject.digest.to_string(),
        };
        if self.components.len() >= MAX_COMPONENTS && !self.components.contains_key(&whose) {
            whose = Whose {
                workload: OTHERS.to_owned(),
                component: OTHERS.to_owned(),
                digest: String::new(),
            };
        }
        let verb = subject.verb.to_string();
        let things =
            self.components.entry(whose.clone()).or_default().entry(verb.clone()).or_default();
        let mut thing = subject.subject.to_string();
        if things.len() >= MAX_SUBJECTS && !things.contains_key(&thing) {
            OTHERS.clone_into(&mut thing);
        }
        let key = (whose, verb, thing.clone());
        (key, things.entry(thing).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn the_host_of_an_effect_is_found_in_each_form() {
        for (subject, wanted) in [
            ("https://api.example.com:443", "api.example.com"),
            ("tcp://10.0.0.1:5432", "10.0.0.1"),
            ("udp://[2001:db8::1]:53", "2001:db8::1"),
            ("GET shop.localhost/cart", "shop.localhost"),
            ("api.example.com", "api.example.com"),
        ] {
            assert_eq!(host(subject), Some(wanted), "{subject}");
        }
    }
}
