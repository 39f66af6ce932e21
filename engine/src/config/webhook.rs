//! `webhook`: how the admission webhook behaves.

use super::{ConfigError, Reader};
use crate::document::Fields;

/// What a denial by the admission webhook leads to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AdmissionMode {
    /// The object is refused.
    #[default]
    Enforce,
    /// Findings that deny become warnings. What can't be judged is refused all the same.
    Warn,
    /// Everything is let through, and what would have been said goes on record.
    Audit,
}

impl AdmissionMode {
    const ALL: [Self; 3] = [Self::Enforce, Self::Warn, Self::Audit];

    /// Returns the stable word for this mode.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Audit => "audit",
        }
    }
}

/// How the admission webhook behaves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Webhook {
    /// What a denial leads to.
    pub mode: AdmissionMode,
    /// The kinds in which a tag is replaced by `tag@digest`.
    pub mutate: Vec<String>,
    /// How long a tag is taken for what it was, in seconds; 0 to 300.
    pub tag_seconds: u32,
    /// How long evidence that satisfies is taken for what it was, in seconds; 0 to 3600.
    pub evidence_seconds: u32,
}

impl Default for Webhook {
    fn default() -> Self {
        Self {
            mode: AdmissionMode::Enforce,
            mutate: vec!["Pod".to_owned(), "Workload".to_owned()],
            tag_seconds: 10,
            evidence_seconds: 300,
        }
    }
}

/// The kinds that name images, and in which tags can be replaced.
pub const IMAGE_KINDS: [&str; 15] = [
    "Artifact",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "HTTPTrigger",
    "Job",
    "Pod",
    "PodTemplate",
    "ReplicaSet",
    "ReplicationController",
    "SpinApp",
    "StatefulSet",
    "Workload",
    "WorkloadDeployment",
    "WorkloadReplicaSet",
];

pub(super) fn read(
    reader: &mut Reader<'_>,
    mut fields: Fields<'_>,
) -> Result<Webhook, ConfigError> {
    let mut webhook = Webhook::default();
    if let Some(text) = fields.string("mode", &mut reader.problems) {
        let mode = AdmissionMode::ALL.into_iter().find(|mode| mode.as_str() == text.as_str());
        webhook.mode = mode.ok_or_else(|| {
            let help = Some("write `enforce`, `warn` or `audit`".to_owned());
            reader.error(&text, format!("`{}` is no mode", text.as_str()), help)
        })?;
    }
    if fields.node("mutate").is_some() {
        webhook.mutate.clear();
        for kind in fields.string_list("mutate", &mut reader.problems) {
            if !IMAGE_KINDS.contains(&kind.as_str()) {
                let help = Some(format!("write {}", IMAGE_KINDS.join(", ")));
                let message = format!("`{}` is no kind with images", kind.as_str());
                return Err(reader.error(&kind, message, help));
            }
            webhook.mutate.push(kind.as_str().to_owned());
        }
    }
    for (key, max, into) in [
        ("tagSeconds", 300, &mut webhook.tag_seconds),
        ("evidenceSeconds", 3600, &mut webhook.evidence_seconds),
    ] {
        let Some(seconds) = fields.u64(key, &mut reader.problems) else { continue };
        let within = u32::try_from(*seconds.value()).ok().filter(|seconds| *seconds <= max);
        *into =
            within.ok_or_else(|| reader.error(&seconds, format!("`{key}` is 0 to {max}"), None))?;
    }
    fields.finish(&mut reader.problems);
    Ok(webhook)
}
