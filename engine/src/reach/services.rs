//! Interfaces that a workload asks the host for, matched with what components import and export.

use std::collections::BTreeSet;

use super::Bytes;
use crate::interface::{InterfaceName, Track};
use crate::workload::{HostInterface, Workload};

/// Tells whether an entry of `hostInterfaces` gives an interface.
///
/// A version that is no semantic version means any version, as wasmCloud's host reads it.
pub(crate) fn gives(entry: &HostInterface, name: &InterfaceName) -> bool {
    let version = semver::Version::parse(&entry.version).ok();
    let on_track = match (version, name.track()) {
        (Some(version), Some(track)) => Track::of(&version) == track,
        (Some(_), None) | (None, _) => true,
    };
    entry.namespace == name.namespace()
        && entry.package == name.package()
        && on_track
        && covers_interface(entry, name.interface())
}

/// Interfaces that only carry types for others of their package come along with them.
fn covers_interface(entry: &HostInterface, interface: &str) -> bool {
    entry.interfaces.iter().any(|listed| listed.name == interface)
        || matches!(interface, "types" | "container")
}

/// Returns the entries of `hostInterfaces` that no component imports or exports, by index.
///
/// The set is empty as long as some component's bytes are absent, since that one may use them.
pub(super) fn unused(workload: &Workload, bytes: &[Bytes<'_>]) -> BTreeSet<usize> {
    let components: Vec<_> =
        bytes.iter().filter_map(|bytes| bytes.analysis().map(|a| a.component)).collect();
    if components.len() < workload.components.len() || components.is_empty() {
        return BTreeSet::new();
    }
    let used = |entry: &HostInterface| {
        components.iter().any(|component| {
            let imports = component.imports.iter().filter_map(|i| i.interface.as_ref());
            let exports = component.exports.iter().filter_map(|e| e.interface.as_ref());
            imports.chain(exports).any(|name| gives(entry, name))
        })
    };
    let entries = workload.host_interfaces.iter().enumerate();
    entries.filter(|(_, entry)| !used(entry)).map(|(index, _)| index).collect()
}

/// Returns what an entry of `hostInterfaces` leads to, in words: the interfaces, then the parts of
/// its configuration that name something, then the Secret that feeds it.
pub(super) fn describe(entry: &HostInterface, interface: Option<&str>) -> String {
    let package = format!("{}:{}", entry.namespace, entry.package);
    let mut words = match interface {
        Some(interface) => format!("{package}/{interface}"),
        None => {
            let names: Vec<&str> =
                entry.interfaces.iter().map(|interface| interface.name.as_str()).collect();
            match names.as_slice() {
                [one] => format!("{package}/{one}"),
                _ => format!("{package}/{{{}}}", names.join(",")),
            }
        }
    };
    let telling =
        ["buckets", "bucket", "subscriptions", "host", "database", "backend", "url", "topic"];
    let named: Vec<String> = telling
        .iter()
        .filter_map(|key| Some(format!("{key} `{}`", entry.config.get(*key)?)))
        .collect();
    if !named.is_empty() {
        words = format!("{words} ({})", named.join(", "));
    }
    words
}
