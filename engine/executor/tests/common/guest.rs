//! Components that tests write themselves, and workloads of several.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ambit_engine::admitted::Link;
use ambit_engine::digest::Digest;
use ambit_executor::files::Folders;
use ambit_executor::{ExecutorError, Host, HostOptions, Program, Scope, Setup};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A memory with an allocator that never frees, which every guest here needs.
pub(crate) const MEMORY: &str = r#"
  (memory (export "memory") 4)
  (global $top (mut i32) (i32.const 1024))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
    (global.set $top (i32.add (local.get $at) (local.get 3)))
    (block $done (loop $grow
      (br_if $done (i32.le_u (global.get $top) (i32.mul (memory.size) (i32.const 65536))))
      (drop (memory.grow (i32.const 16)))
      (br $grow)))
    (local.get $at))
"#;

/// Makes a component of a core module in text and the world that it is built for.
pub(crate) fn component(wit: &str, world: &str, core: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_source("guest.wit", wit).expect("the WIT is right");
    let world = resolve.select_world(&[package], Some(world)).expect("the world is there");
    let mut module = wat::parse_str(format!("(module {core})")).expect("the text is right");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("it fits");
    let encoder = ComponentEncoder::default().module(&module).expect("the module is right");
    encoder.validate(true).encode().expect("it is a component")
}

/// One component of a workload: name, bytes, and lines of `localResources`.
pub(crate) type Part<'a> = (&'a str, &'a [u8], &'a str);

/// A manifest of some components. `interfaces` are lines of `hostInterfaces`.
pub(crate) fn manifest(parts: &[Part<'_>], interfaces: &str) -> String {
    let mut text = String::from(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: Workload\nmetadata:\n  name: test\n  namespace: default\n  labels: {owner: platform}\nspec:\n",
    );
    if !interfaces.is_empty() {
        let _ = writeln!(text, "  hostInterfaces:\n{interfaces}");
    }
    text.push_str("  components:\n");
    for (name, bytes, resources) in parts {
        let digest = Digest::of(bytes);
        let _ = writeln!(
            text,
            "  - name: {name}\n    image: registry.example/acme/{name}:1@{digest}\n    localResources:\n      allowedHosts: []\n{resources}"
        );
    }
    text
}

/// Admits a workload and loads its components, each provider before who calls it.
pub(crate) fn load(
    manifest: &str,
    parts: &[Part<'_>],
    setup: impl Fn(&str) -> Setup,
) -> Result<BTreeMap<String, Program>, ExecutorError> {
    let bytes: Vec<(&str, &[u8])> = parts.iter().map(|(name, bytes, _)| (*name, *bytes)).collect();
    let reviewed = ambit_testing::admit::manifest(manifest, &bytes);
    let findings = reviewed.findings;
    assert!(reviewed.admitted.is_ok(), "{findings:#?}");
    let admitted = reviewed.admitted.expect("it is admitted");
    let host = Host::new(&HostOptions::default()).expect("the engine starts");
    let mut loaded: BTreeMap<usize, Program> = BTreeMap::new();
    let components = admitted.components();
    while loaded.len() < components.len() {
        let before = loaded.len();
        for (index, (component, (_, bytes))) in components.iter().zip(&bytes).enumerate() {
            let mut siblings = Vec::new();
            let mut ready = !loaded.contains_key(&index);
            for import in component.plan().imports() {
                if let Link::Sibling(of) = import.link {
                    match loaded.get(&of) {
                        Some(program) => siblings.push((of, program.clone())),
                        None => ready = false,
                    }
                }
            }
            if !ready {
                continue;
            }
            let setup = setup(component.name());
            let scope = Scope::open(&admitted, component, &setup, Folders::default(), Vec::new())?;
            let program = Program::load(&host, &scope, bytes, &siblings)?;
            loaded.insert(index, program);
        }
        assert!(loaded.len() > before, "the components wait for each other");
    }
    let named = components.iter().map(|component| component.name().to_owned());
    Ok(named.zip(loaded.into_values()).collect())
}
