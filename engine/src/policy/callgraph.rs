//! Who calls whom in a pack: recursion is refused here, since the evaluator overflows its stack on
//! a recursive function whatever timer it has.
//!
//! The graph is over names, not paths, so it holds every real call and perhaps more: a circle that
//! isn't one is possible where a local variable has a rule's name, and is refused with that advice.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::pack::PackError;

/// Heads whose values are findings, as conftest names them.
fn is_entrypoint(name: &str) -> bool {
    let (base, suffix) = name.split_once('_').unwrap_or((name, "x"));
    matches!(base, "deny" | "violation" | "warn" | "audit")
        && !suffix.is_empty()
        && suffix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[derive(Debug, Default)]
struct Definition {
    function: bool,
    uses: BTreeSet<String>,
}

/// Parses the modules, refuses recursion, and returns the paths of the rules to evaluate.
pub(super) fn check(
    pack: &str,
    modules: &[(String, String)],
) -> Result<BTreeSet<String>, PackError> {
    let mut engine = regorus::Engine::new();
    for (name, text) in modules {
        engine.add_policy(name.clone(), text.clone()).map_err(|error| PackError::Syntax {
            file: name.clone(),
            message: error.to_string(),
        })?;
    }
    let form = |message: String| PackError::Form { pack: pack.to_owned(), message };
    let ast = engine.get_ast_as_json().map_err(|error| form(error.to_string()))?;
    let ast: Value = serde_json::from_str(&ast).map_err(|error| form(error.to_string()))?;
    let mut definitions: BTreeMap<String, Definition> = BTreeMap::new();
    let mut entrypoints = BTreeSet::new();
    let mut packages = Vec::new();
    for module in ast.as_array().into_iter().flatten().filter_map(|module| module.get("ast")) {
        let package = module.pointer("/package/refr").map(path).unwrap_or_default();
        for rule in module.get("rules").and_then(Value::as_array).into_iter().flatten() {
            let (body, head) = match (rule.get("Spec"), rule.get("Default")) {
                (Some(spec), _) => (spec, spec.get("head")),
                (None, Some(default)) => (default, Some(default)),
                (None, None) => continue,
            };
            let function = head.and_then(|head| head.get("Func")).is_some();
            let name = head.and_then(head_name).unwrap_or_default();
            let first = name.split('.').next().unwrap_or_default().to_owned();
            if is_entrypoint(&first) && !function && rule.get("Spec").is_some() {
                entrypoints.insert(format!("data.{package}.{first}"));
            }
            let definition = definitions.entry(first.clone()).or_default();
            definition.function |= function;
            collect(body, &mut definition.uses);
        }
        packages.push(package);
    }
    // A reference to a package as a whole uses everything in it.
    let everything: BTreeSet<String> = definitions.keys().cloned().collect();
    for definition in definitions.values_mut() {
        let whole = definition.uses.iter().any(|used| used == "data");
        if whole && !definition.uses.iter().any(|used| everything.contains(used)) {
            definition.uses.extend(everything.iter().cloned());
        }
    }
    match circle(&definitions) {
        Some(names) => Err(PackError::Recursion { pack: pack.to_owned(), names }),
        None => Ok(entrypoints),
    }
}

/// Returns the dotted path of a reference made of names only.
fn path(refr: &Value) -> String {
    let mut parts = Vec::new();
    let mut at = refr;
    loop {
        if let Some(variable) = at.get("Var") {
            parts.push(variable.get("value").and_then(Value::as_str).unwrap_or_default());
            break;
        }
        if let Some(dot) = at.get("RefDot") {
            parts.push(dot.pointer("/field/1").and_then(Value::as_str).unwrap_or_default());
            let Some(inner) = dot.get("refr") else { break };
            at = inner;
        } else if let Some(bracket) = at.get("RefBrack") {
            let Some(inner) = bracket.get("refr") else { break };
            at = inner;
        } else {
            break;
        }
    }
    parts.reverse();
    parts.join(".")
}

fn head_name(head: &Value) -> Option<String> {
    let refr = ["Func", "Set", "Compr"]
        .iter()
        .find_map(|kind| head.get(kind)?.get("refr"))
        .or_else(|| head.get("refr"))?;
    Some(path(refr))
}

/// Collects the names of variables and fields in a rule, without recursion on its depth.
fn collect(rule: &Value, names: &mut BTreeSet<String>) {
    let mut work = vec![rule];
    while let Some(value) = work.pop() {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    // A head names the rule itself; its arguments and value are looked into.
                    if key == "refr" && (map.contains_key("args") || map.contains_key("key")) {
                        continue;
                    }
                    match key.as_str() {
                        "Var" => names.extend(
                            inner.get("value").and_then(Value::as_str).map(str::to_owned),
                        ),
                        "field" => names
                            .extend(inner.get(1).and_then(Value::as_str).map(str::to_owned)),
                        _ => {}
                    }
                    work.push(inner);
                }
            }
            Value::Array(items) => work.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Finds a circle that a function is part of; circles of plain rules are the evaluator's to refuse,
/// which it does cleanly.
fn circle(definitions: &BTreeMap<String, Definition>) -> Option<Vec<String>> {
    for (name, definition) in definitions {
        if !definition.function {
            continue;
        }
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut work = vec![name.as_str()];
        while let Some(at) = work.pop() {
            let uses = definitions.get(at).map(|definition| &definition.uses);
            for next in uses.into_iter().flatten() {
                if next == name {
                    let mut circle = vec![name.clone()];
                    let mut step = at;
                    while step != name {
                        circle.push(step.to_owned());
                        step = before.get(step).copied().unwrap_or(name);
                    }
                    circle.push(name.clone());
                    circle.reverse();
                    return Some(circle);
                }
                if definitions.contains_key(next) && !before.contains_key(next.as_str()) {
                    before.insert(next, at);
                    work.push(next);
                }
            }
        }
    }
    None
}
