//! No interface outside the plan can be linked: the whole catalogue is walked.

use std::collections::{BTreeMap, BTreeSet};

use ambit_engine::admitted::{Admitted, Link, NotAdmitted};
use ambit_engine::catalogue::{Catalogue, Match};
use ambit_engine::interface::InterfaceName;
use wasmtime::component::Component;

use super::build;
use crate::{Allocation, Host, HostOptions, Limits};

/// How wasmtime says that a linker has no definition of a function or resource.
const MISSING: &str = "implementation is missing";

/// A component that imports one interface, with the name of something in it. What the linker has of
/// that name has another type, so an error tells "missing" from "there".
fn importing(name: &str, inside: &str) -> Vec<u8> {
    wat::parse_str(format!("(component (import \"{name}\" (instance {inside})))"))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The catalogue's interfaces at every track and at versions around it, each with what is asked for
/// in it.
fn names() -> BTreeMap<String, String> {
    let catalogue = Catalogue::builtin().expect("the catalogue");
    let mut names = BTreeMap::new();
    for entry in catalogue.interfaces() {
        let name = &entry.interface;
        let track = entry.track.as_deref().map(|track| {
            if track.contains('-') || track.matches('.').count() > 1 {
                format!("{name}@{track}")
            } else {
                format!("{name}@{track}.0")
            }
        });
        let around = ["0.1.0", "0.2.0", "0.2.0-draft", "0.2.12", "0.2.99", "0.3.0", "1.0.0"];
        let around = around.iter().map(|version| format!("{name}@{version}"));
        for name in around.chain(track).chain([name.clone()]) {
            let parsed = InterfaceName::parse(&name).expect("a name");
            let (Match::Known(entry) | Match::OtherTrack(entry)) = catalogue.interface(&parsed)
            else {
                panic!("{name} is in the catalogue");
            };
            let function = entry.functions.keys().find(|name| !name.contains('['));
            let resource = entry.resources.keys().next();
            let inside = match (resource, function) {
                (Some(resource), _) => {
                    format!("(export \"{resource}\" (type (sub resource)))")
                }
                (None, Some(function)) => {
                    format!("(export \"{function}\" (func (param \"other\" s8)))")
                }
                // Types alone: there is nothing to have.
                (None, None) => continue,
            };
            names.insert(name, inside);
        }
    }
    names
}

fn host() -> Host {
    let options = HostOptions { allocation: Allocation::OnDemand, limits: Limits::default() };
    Host::new(&options).expect("the engine starts")
}

/// Whether a component can be instantiated with what the first component of `admitted` is planned.
fn links(host: &Host, admitted: &Admitted, bytes: &[u8]) -> Result<(), String> {
    let planned = admitted.components().first().expect("a component");
    let component = Component::from_binary(host.engine(), bytes).expect("it compiles");
    let linker = build(host.engine(), planned, &component, &[]).map_err(|e| e.to_string())?;
    let pre = linker.instantiate_pre(&component).map_err(|error| format!("{error:#}"))?;
    drop(pre);
    Ok(())
}

#[test]
fn an_empty_plan_links_no_interface_of_the_catalogue() {
    let host = host();
    let nothing = wat::parse_str("(component)").expect("it assembles");
    let admitted = ambit_testing::admit::bare("nothing", &nothing).admitted.expect("allowed");
    links(&host, &admitted, &nothing).expect("nothing needs nothing");
    let names = names();
    assert!(names.len() > 300, "the catalogue has shrunk: {}", names.len());
    for (name, inside) in names {
        let error = links(&host, &admitted, &importing(&name, &inside)).expect_err(&name);
        assert!(error.contains(&name) && error.contains(MISSING), "{name}: {error}");
    }
}

#[test]
fn a_bare_component_links_what_its_plan_has_and_is_refused_anything_else() {
    let host = host();
    let (mut linked, mut inert, mut refused) = (BTreeSet::new(), BTreeSet::new(), 0_usize);
    // One version of a track stands for the others here.
    let apart = |name: &String| !["@0.2.12", "@0.2.99", "@1.0.0"].iter().any(|v| name.ends_with(v));
    for (name, inside) in names().into_iter().filter(|(name, _)| apart(name)) {
        let bytes = importing(&name, &inside);
        match ambit_testing::admit::bare("one", &bytes).admitted {
            Ok(admitted) => {
                // It is there: either it fits, or it is of the type that it ought to be.
                if let Err(error) = links(&host, &admitted, &bytes) {
                    assert!(!error.contains(MISSING), "{name}: {error}");
                }
                let component = admitted.components().first().expect("a component");
                for import in component.plan().imports() {
                    match import.link {
                        Link::Granted => linked.insert(import.track.clone()),
                        Link::Inert => inert.insert(import.track.clone()),
                        Link::Types | Link::Sibling(_) => panic!("{name}: {import:?}"),
                    };
                }
            }
            Err(NotAdmitted::Imports(refusals)) => {
                let refusal = refusals.first().expect("a refusal");
                assert_eq!(refusal.import, name);
                let codes = [
                    "executor-wasi-p3",
                    "interface-not-granted",
                    "interface-not-served",
                    "interface-unknown",
                ];
                assert!(codes.contains(&refusal.code), "{name}: {}", refusal.code);
                refused += 1;
            }
            // Interfaces that no policy lets a component have.
            Err(NotAdmitted::Decision(_)) => refused += 1,
            Err(other) => panic!("{name}: {other}"),
        }
    }
    // Nothing with a grant behind it, for a component that was granted nothing.
    let effects = ["wasi:http/outgoing", "wasi:filesystem", "wasi:sockets", "wasi:keyvalue"];
    for effect in effects {
        assert!(!linked.iter().any(|name| name.starts_with(effect)), "{linked:?}");
    }
    let packages = inert.iter().map(|name| name.split('/').next().unwrap_or(name));
    let packages: BTreeSet<_> = packages.collect();
    assert_eq!(packages, BTreeSet::from(["wasi:filesystem", "wasi:http", "wasi:sockets"]));
    assert_eq!(linked.len() + inert.len(), 26, "{linked:?} {inert:?}");
    assert!(refused > 200, "{refused}");
}

#[test]
fn an_import_that_the_plan_lacks_is_a_hard_stop_even_beside_one_that_it_has() {
    let host = host();
    let text = |more: &str| {
        let environment = r#"(import "wasi:cli/environment@0.2.0" (instance
            (export "initial-cwd" (func (result (option string))))))"#;
        wat::parse_str(format!("(component {environment} {more})")).expect("it assembles")
    };
    let one = text("");
    let admitted = ambit_testing::admit::bare("one", &one).admitted.expect("it is allowed");
    links(&host, &admitted, &one).expect("its plan has it");
    let two = text(
        r#"(import "wasi:cli/exit@0.2.0" (instance
            (export "exit" (func (param "status" (result))))))"#,
    );
    let error = links(&host, &admitted, &two).expect_err("one of them isn't planned");
    assert!(error.contains("wasi:cli/exit@0.2.0") && error.contains(MISSING), "{error}");
    let admitted = ambit_testing::admit::bare("two", &two).admitted.expect("it is allowed");
    links(&host, &admitted, &two).expect("its plan has both");
}
