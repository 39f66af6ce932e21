//! Workloads that are admitted, for tests of what runs them.
#![expect(clippy::panic, reason = "a test's input that is wrong fails loudly")]

use std::collections::BTreeMap;
use std::sync::OnceLock;

use ambit_engine::admitted::{Admitted, NotAdmitted, admit};
use ambit_engine::capability::CapabilitySet;
use ambit_engine::catalogue::Catalogue;
use ambit_engine::component::Component;
use ambit_engine::config::Config;
use ambit_engine::document::{DocumentLimits, Format};
use ambit_engine::input::Request;
use ambit_engine::limits::Limits;
use ambit_engine::policy::{PolicyLimits, PolicySet, Profile, embedded};
use ambit_engine::reach::{Analysis, Bytes, Reach};
use ambit_engine::reference::ImageSource;
use ambit_engine::review::{Mode, Subject, Terms};
use ambit_engine::workload::{self, Target, Workload};

/// What came of a review.
#[derive(Debug)]
pub struct Reviewed {
    /// What the decision admits, or why nothing.
    pub admitted: Result<Admitted, NotAdmitted>,
    /// What the components can reach.
    pub reach: Reach,
    /// The decision's findings, errors included, a line each.
    pub findings: Vec<String>,
}

/// Reviews the first workload of a manifest under target `ambit` with the shipped packs.
///
/// `components` has the bytes of each component, by its name in the manifest.
///
/// # Panics
///
/// If the manifest or a component can't be read.
#[must_use]
pub fn manifest(text: &str, components: &[(&str, &[u8])]) -> Reviewed {
    let limits = DocumentLimits::default();
    let found = workload::read(text.as_bytes(), Format::Auto, Some(Target::Ambit), &limits);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let workload = found.workloads.first().unwrap_or_else(|| panic!("no workload"));
    reviewed(workload, "workload.yaml", components)
}

/// Reviews a component without a manifest: it is granted nothing.
///
/// # Panics
///
/// If the component can't be read.
#[must_use]
pub fn bare(name: &str, bytes: &[u8]) -> Reviewed {
    let file = format!("{name}.wasm");
    let workload = Workload::bare(name, &file, ImageSource::File(file.clone()), Target::Ambit);
    reviewed(&workload, &file, &[(name, bytes)])
}

/// What is the same for every review: parsed once in a process.
fn rules() -> &'static (Catalogue, PolicySet) {
    static RULES: OnceLock<(Catalogue, PolicySet)> = OnceLock::new();
    RULES.get_or_init(|| {
        let catalogue = Catalogue::builtin().unwrap_or_else(|error| panic!("{error}"));
        let packs = embedded(&PolicyLimits::default()).unwrap_or_else(|error| panic!("{error}"));
        let policies = PolicySet::prepare(packs, &BTreeMap::new(), PolicyLimits::default());
        (catalogue, policies.unwrap_or_else(|error| panic!("{error}")))
    })
}

fn reviewed(workload: &Workload, file: &str, components: &[(&str, &[u8])]) -> Reviewed {
    let (catalogue, policies) = rules();
    let config = Config::default();
    let terms = Terms {
        mode: Mode::Run,
        now: "2026-12-01T00:00:00Z",
        target: Some(Target::Ambit),
        profile: Profile::Baseline,
        config: &config,
        policies,
        catalogue,
        request: Request { operation: "RUN".to_owned(), ..Request::default() },
        previous: None,
    };
    let read: Vec<(Component, CapabilitySet)> = workload
        .components
        .iter()
        .map(|spec| {
            let bytes = components.iter().find(|(name, _)| *name == spec.name);
            let (_, bytes) = bytes.unwrap_or_else(|| panic!("no bytes for `{}`", spec.name));
            let component = Component::read(bytes, &Limits::default());
            let component = component.unwrap_or_else(|error| panic!("{}: {error}", spec.name));
            let capabilities = CapabilitySet::of(&component, catalogue);
            (component, capabilities)
        })
        .collect();
    let bytes: Vec<Bytes<'_>> = read
        .iter()
        .map(|(component, capabilities)| Bytes::Present(Analysis { component, capabilities }))
        .collect();
    let subject = Subject { workload, bytes: &bytes, supplies: &[], file };
    let (review, admitted) = admit(subject, &terms);
    let findings = review.decision.findings.iter();
    let findings = findings.map(|f| format!("{}[{}]: {}", f.action, f.code, f.message));
    let errors = review.decision.errors.iter().map(|e| format!("error[{}]: {}", e.code, e.message));
    Reviewed { admitted, findings: findings.chain(errors).collect(), reach: review.reach }
}
