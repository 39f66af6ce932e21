//! What a workload says that can't be meant, or that means more than it seems to.

use std::collections::BTreeMap;

use super::{
    ComponentSpec, EnvSource, HostGrantList, Level, Place, Problem, ReferenceKind, Target, Volume,
    VolumeSource, Workload,
};
use crate::grant::{
    self, FolderGrant, FolderSource, HostGrants, HostLint, HostSet, LintContext, OverlapKind,
};
use crate::reference::ImageSource;

/// Adds what is wrong with the parts, and between them, to the workload's problems.
pub(super) fn run(workload: &mut Workload, target: Target) {
    let mut problems = Vec::new();
    names(workload, &mut problems);
    volumes(workload, &mut problems);
    interfaces(workload, &mut problems);
    for component in &workload.components {
        image(component, &mut problems);
        hosts(component, target, &mut problems);
        lookups(component, &mut problems);
        if target == Target::WasmCloud {
            loopback(component, &mut problems);
        }
        host_lints(workload, component, &mut problems);
        mounts(workload, component, &mut problems);
    }
    workload.problems.extend(problems);
}

fn problem(
    (code, level, severity): (&'static str, Level, &'static str),
    message: String,
    help: impl Into<String>,
    component: &str,
    place: &Place,
) -> Problem {
    Problem {
        code,
        level,
        severity,
        message,
        help: help.into(),
        component: component.to_owned(),
        place: place.clone(),
    }
}

fn names(workload: &Workload, problems: &mut Vec<Problem>) {
    let mut seen = BTreeMap::new();
    for component in &workload.components {
        if component.name.is_empty() {
            continue;
        }
        if seen.insert(&component.name, ()).is_some() {
            problems.push(problem(
                ("component-duplicate-name", Level::Invalid, "high"),
                format!("two components are named `{}`", component.name),
                "give each component a name of its own",
                &component.name,
                &component.place,
            ));
        }
    }
}

fn volumes(workload: &Workload, problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<&str, &Volume> = BTreeMap::new();
    for volume in &workload.volumes {
        if let Some(first) = seen.insert(&volume.name, volume) {
            problems.push(problem(
                ("volume-duplicate", Level::Invalid, "high"),
                format!(
                    "volume `{}` is defined twice, first at `{}`",
                    volume.name, first.place.pointer
                ),
                "delete or rename one of them",
                "",
                &volume.place,
            ));
        }
    }
}

fn interfaces(workload: &Workload, problems: &mut Vec<Problem>) {
    let mut seen = BTreeMap::new();
    for interface in &workload.host_interfaces {
        let package = format!("{}:{}", interface.namespace, interface.package);
        if !interface.version.is_empty() && semver::Version::parse(&interface.version).is_err() {
            problems.push(problem(
                ("host-interface-version", Level::Lint, "medium"),
                format!(
                    "`{}` is no semantic version, so wasmCloud takes any version of `{package}`",
                    interface.version
                ),
                "write three numbers, as `0.2.0`",
                "",
                &interface.place,
            ));
        }
        let key = (package.clone(), interface.name.clone(), interface.version.clone());
        if seen.insert(key, ()).is_some() {
            problems.push(problem(
                ("host-interface-duplicate", Level::Invalid, "medium"),
                format!("`{package}` is asked for twice under one name and version"),
                "give each entry a `name` of its own",
                "",
                &interface.place,
            ));
        }
        if !interface.scope.is_empty() {
            problems.push(problem(
                ("host-interface-scope", Level::Lint, "low"),
                format!(
                    "`config.components` claims to keep `{package}` to `{}`; only Cosmonic Desktop enforces that",
                    interface.scope.join("`, `")
                ),
                "put the component into a workload of its own where the scope has to hold",
                "",
                &interface.place,
            ));
        }
    }
}

fn image(component: &ComponentSpec, problems: &mut Vec<Problem>) {
    if let ImageSource::Invalid(error) = &component.image.source
        && !component.image.text.is_empty()
    {
        problems.push(problem(
            (error.code(), Level::Invalid, "high"),
            format!("`{}` is no reference: {error}", component.image.text),
            error.help(),
            &component.name,
            &component.image.place,
        ));
    }
}

/// Tells whether a secret reaches the component's own memory.
pub(crate) fn has_secret(workload: &Workload, component: &ComponentSpec) -> bool {
    let env = component.env.iter().any(|entry| match &entry.source {
        EnvSource::Secret(_) => true,
        EnvSource::Literal { looks_secret, .. } => *looks_secret,
        EnvSource::Config(_) => false,
    });
    let reference = component.references.iter().any(|entry| entry.kind == ReferenceKind::Secret);
    let mounted = component.mounts.iter().any(|mount| {
        workload.volume(&mount.volume).is_some_and(|volume| {
            matches!(volume.source, VolumeSource::Object(ReferenceKind::Secret, _))
        })
    });
    env || reference || mounted
}

fn hosts(component: &ComponentSpec, target: Target, problems: &mut Vec<Problem>) {
    let HostGrantList::Listed(entries) = &component.hosts else { return };
    for entry in entries {
        if let Err(error) = &entry.pattern {
            problems.push(problem(
                (error.code(), Level::Invalid, "high"),
                format!("`{}`: {error}", entry.text),
                error.help().unwrap_or_default(),
                &component.name,
                &entry.place,
            ));
        } else if target == Target::WasmCloud && !grant::crd_accepts(&entry.text) {
            problems.push(problem(
                ("host-crd-refuses", Level::Lint, "low"),
                format!(
                    "`{}` can be read, but the custom resource's own pattern refuses it",
                    entry.text
                ),
                "a cluster won't store this entry; write a form that its schema accepts",
                &component.name,
                &entry.place,
            ));
        }
    }
}

/// Remarks about host entries that no rule of the baseline pack makes.
fn host_lints(workload: &Workload, component: &ComponentSpec, problems: &mut Vec<Problem>) {
    let context = LintContext { has_secret: has_secret(workload, component) };
    for entry in component.hosts.entries() {
        let Ok(pattern) = &entry.pattern else { continue };
        for lint in grant::lints(pattern, &context) {
            let severity = match lint {
                HostLint::Userinfo { .. } | HostLint::CleartextWithSecret { .. } => "high",
                HostLint::DefaultPortTrap { .. } => "medium",
                HostLint::AllPorts { .. } => "low",
                // The rules `net/…` judge these.
                HostLint::AnyHost
                | HostLint::PublicSuffixWildcard { .. }
                | HostLint::SharedHostingSuffix { .. }
                | HostLint::SpecialRange { .. }
                | HostLint::PrivateRange { .. } => continue,
            };
            problems.push(problem(
                (lint.code(), Level::Lint, severity),
                lint.message(),
                lint.help().unwrap_or_default(),
                &component.name,
                &entry.place,
            ));
        }
    }
}

fn lookups(component: &ComponentSpec, problems: &mut Vec<Problem>) {
    let hosts: HostGrants =
        component.hosts.entries().iter().filter_map(|entry| entry.pattern.clone().ok()).collect();
    for entry in &component.lookups {
        if let Some(pattern) = &entry.pattern
            && !pattern.is_within(&hosts)
        {
            problems.push(problem(
                ("lookup-wider-than-hosts", Level::Lint, "medium"),
                format!(
                    "`{}` may be looked up but not reached; names alone carry data out",
                    entry.text
                ),
                "list only names of `allowedHosts` in `allowedIpNameLookups`",
                &component.name,
                &entry.place,
            ));
        }
    }
}

fn loopback(component: &ComponentSpec, problems: &mut Vec<Problem>) {
    let internal = component.hosts.entries().iter().find(|entry| {
        entry.pattern.as_ref().is_ok_and(|p| matches!(p.host(), HostSet::HostInternal))
    });
    match (internal, component.loopback.first()) {
        (Some(entry), None) => problems.push(problem(
            ("loopback-pair", Level::Lint, "medium"),
            format!("`{}` is inert: no entry of `allowedHostLoopbackPorts` opens a port", entry.text),
            "add the port to `allowedHostLoopbackPorts`, or delete this entry",
            &component.name,
            &entry.place,
        )),
        (None, Some(port)) => problems.push(problem(
            ("loopback-pair", Level::Lint, "medium"),
            format!(
                "port `{}` opens for sockets only: no entry of `allowedHosts` names `host.wasmcloud.internal`",
                port.text
            ),
            "add `host.wasmcloud.internal` with this port to `allowedHosts`, or delete the port",
            &component.name,
            &port.place,
        )),
        (Some(_), Some(_)) | (None, None) => {}
    }
}

fn mounts(workload: &Workload, component: &ComponentSpec, problems: &mut Vec<Problem>) {
    let mut grants = Vec::new();
    let mut places = Vec::new();
    for mount in &component.mounts {
        let volume = workload.volume(&mount.volume);
        if volume.is_none() {
            problems.push(problem(
                ("mount-unknown-volume", Level::Invalid, "high"),
                format!(
                    "`{}` mounts volume `{}`, which the workload doesn't define",
                    component.name, mount.volume
                ),
                format!("add `{}` to `volumes`, or delete the mount", mount.volume),
                &component.name,
                &mount.place,
            ));
        }
        if let (Some(guest), Some(volume)) = (&mount.guest, volume) {
            let source = match &volume.source {
                VolumeSource::Host(path) => FolderSource::Host(path.clone()),
                VolumeSource::Ephemeral
                | VolumeSource::Object(..)
                | VolumeSource::Other(_)
                | VolumeSource::Invalid => FolderSource::Ephemeral,
            };
            grants.push(FolderGrant::new(guest.clone(), source, mount.mode));
            places.push(mount);
        }
    }
    for overlap in grant::overlaps(&grants) {
        let (Some(first), Some(second)) = (places.get(overlap.first), places.get(overlap.second))
        else {
            continue;
        };
        let path = |mount: &&super::Mount| {
            mount.guest.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        let (level, words) = match overlap.kind {
            OverlapKind::Duplicate => (Level::Invalid, "and hide one another"),
            OverlapKind::NestedDifferentMode => {
                (Level::Invalid, "with different modes, so that one weakens the other")
            }
            OverlapKind::NestedSameMode => (Level::Lint, "one inside the other"),
        };
        problems.push(problem(
            ("mount-overlap", level, "high"),
            format!("`{}` and `{}` overlap {words}", path(first), path(second)),
            "mount each volume at a path of its own",
            &component.name,
            &second.place,
        ));
    }
}
