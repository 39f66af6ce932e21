//! Folders, environment and secrets.

use super::entries::{Asks, Context, class};
use super::{ComponentReach, Entry, GrantLine, GrantNote, Via};
use crate::capability::CapabilitySet;
use crate::catalogue::Verb;
use crate::workload::{ComponentSpec, EnvSource, Place, ReferenceKind, Target, VolumeSource};

const READ: [&str; 4] = ["fs.read", "fs.list", "fs.meta", "fs.root"];
const WRITE: [&str; 1] = ["fs.write"];
const FILES: [&str; 5] = ["fs.read", "fs.list", "fs.meta", "fs.root", "fs.write"];
const ENVIRONMENT: [&str; 1] = ["env.read"];

impl Context<'_> {
    pub(super) fn folders(
        &self,
        spec: &ComponentSpec,
        asks: &Asks<'_>,
        reach: &mut ComponentReach,
    ) {
        let wants = asks.any(&FILES);
        let mut entries = Vec::new();
        let mut usable = false;
        for effective in &reach.mounts {
            let Some(owner) = self.workload.components.get(effective.owner) else { continue };
            let Some(mount) = owner.mounts.get(effective.mount) else { continue };
            let Some(volume) = self.workload.volume(&mount.volume) else { continue };
            let guest = mount.guest.as_ref().map(ToString::to_string).unwrap_or_default();
            if !wants {
                if !effective.inherited {
                    reach.dead.push(GrantNote {
                        kind: "folders",
                        subject: format!("{guest} ({})", mount.volume),
                        reason: "the component doesn't import the filesystem".to_owned(),
                        place: mount.place.clone(),
                    });
                }
                continue;
            }
            let (what, key) = match &volume.source {
                VolumeSource::Host(path) => (format!("{path} as {guest}"), path.to_string()),
                VolumeSource::Ephemeral => (format!("an empty folder as {guest}"), String::new()),
                VolumeSource::Object(kind, name) => {
                    let word = if *kind == ReferenceKind::Secret { "Secret" } else { "ConfigMap" };
                    (format!("{word} {name} as {guest}"), format!("{word} {name}"))
                }
                VolumeSource::Other(kind) => {
                    (format!("{kind} `{}` as {guest}", volume.name), volume.name.clone())
                }
                VolumeSource::Invalid => continue,
            };
            usable = true;
            let via =
                if effective.inherited { Via::Link(owner.name.clone()) } else { asks.granted() };
            let note = if effective.inherited {
                "wasmCloud gives one store the folders of everything that is linked".to_owned()
            } else {
                String::new()
            };
            let entry = |verb: Verb, classes: &[&str], note: &str| Entry {
                verb,
                capability: class(asks, classes).to_owned(),
                subject: what.clone(),
                key: key.clone(),
                via: via.clone(),
                grant: (!effective.inherited || self.target == Target::WasmCloud).then(|| {
                    GrantLine {
                        text: format!("{guest} ({})", mount.volume),
                        place: mount.place.clone(),
                    }
                }),
                imports: asks.imports(classes),
                note: note.to_owned(),
                unbounded: false,
                any_host: false,
            };
            let secret = matches!(volume.source, VolumeSource::Object(ReferenceKind::Secret, _));
            if asks.any(&["fs.read", "fs.list"]) {
                let verb = if secret { Verb::ReadSecrets } else { Verb::ReadFolder };
                entries.push(entry(verb, &READ, &note));
            } else if asks.any(&READ) && asks.set.is_some_and(|set| !files_counted(set)) {
                let limited = "its own metadata only: no function that opens, lists or names a file is imported";
                entries.push(Entry {
                    key: String::new(),
                    ..entry(Verb::ReadFolder, &["fs.meta", "fs.root"], limited)
                });
            } else if asks.any(&READ) {
                entries.push(entry(
                    Verb::ReadFolder,
                    &["fs.meta", "fs.root"],
                    "names and metadata, not contents",
                ));
            }
            if asks.any(&WRITE) && mount.mode.can_write() && !secret {
                entries.push(entry(Verb::ChangeFolder, &WRITE, &note));
            }
        }
        reach.entries.extend(entries);
        let needs = asks.set.is_some_and(files_counted);
        if needs && !usable && spec.mounts.is_empty() {
            for import in asks.imports(&["fs.read", "fs.write", "fs.list"]) {
                reach.missing.push(GrantNote {
                    kind: "folders",
                    subject: import,
                    reason: "no folder is granted, so it sees an empty filesystem".to_owned(),
                    place: spec.place.clone(),
                });
            }
        }
    }

    pub(super) fn environment(
        &self,
        spec: &ComponentSpec,
        asks: &Asks<'_>,
        reach: &mut ComponentReach,
    ) {
        let wants = asks.any(&ENVIRONMENT);
        let mut give = |verb, subject: String, key: &str, place: &Place, note: &str| {
            if wants {
                reach.entries.push(Entry {
                    verb,
                    capability: "env.read".to_owned(),
                    subject,
                    key: key.to_owned(),
                    via: asks.granted(),
                    grant: Some(GrantLine { text: key.to_owned(), place: place.clone() }),
                    imports: asks.imports(&ENVIRONMENT),
                    note: note.to_owned(),
                    unbounded: false,
                    any_host: false,
                });
            } else {
                reach.dead.push(GrantNote {
                    kind: "environment",
                    subject: key.to_owned(),
                    reason: "the component doesn't import `wasi:cli/environment`".to_owned(),
                    place: place.clone(),
                });
            }
        };
        for entry in &spec.env {
            match &entry.source {
                EnvSource::Literal { looks_secret, .. } => {
                    let verb =
                        if *looks_secret { Verb::ReadSecrets } else { Verb::ReadEnvironment };
                    let note = if *looks_secret { "written in the document itself" } else { "" };
                    give(verb, format!("variable {}", entry.name), &entry.name, &entry.place, note);
                }
                EnvSource::Secret(name) => give(
                    Verb::ReadSecrets,
                    format!("Secret {name} in variable {}", entry.name),
                    name,
                    &entry.place,
                    "",
                ),
                EnvSource::Config(name) => give(
                    Verb::ReadEnvironment,
                    format!("variable {} from {name}", entry.name),
                    &entry.name,
                    &entry.place,
                    "",
                ),
            }
        }
        // What a shim loads for its runtime reaches the component as variables and stores.
        let reaching = |into: &str| matches!(into, "environment" | "interface");
        for reference in spec.references.iter().filter(|entry| reaching(entry.into)) {
            match reference.kind {
                ReferenceKind::Secret => give(
                    Verb::ReadSecrets,
                    format!("all keys of Secret {} in its environment", reference.name),
                    &reference.name,
                    &reference.place,
                    "",
                ),
                ReferenceKind::Config => give(
                    Verb::ReadEnvironment,
                    format!("all keys of ConfigMap {} in its environment", reference.name),
                    &reference.name,
                    &reference.place,
                    "",
                ),
                ReferenceKind::PullSecret => {}
            }
        }
    }
}

fn files_counted(set: &CapabilitySet) -> bool {
    FILES.iter().any(|class| set.counted.contains(*class))
}
