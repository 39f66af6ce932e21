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
    /// Whether it refers to a package as a whole.
    whole: bool,
}

/// The version of the language.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Syntax {
    /// Rego v0: bodies without `if`, sets without `contains`.
    V0,
    /// Rego v1.
    V1,
}

/// Parses the modules, refuses recursion, and returns the paths of the rules to evaluate.
pub(super) fn check(
    pack: &str,
    modules: &[(String, String)],
) -> Result<BTreeSet<String>, PackError> {
    read(pack, modules, Syntax::V1).map(|rules| rules.entrypoints)
}

/// Parses the modules, refuses recursion, and returns the paths of all rules.
pub(super) fn paths(
    pack: &str,
    modules: &[(String, String)],
    syntax: Syntax,
) -> Result<BTreeSet<String>, PackError> {
    read(pack, modules, syntax).map(|rules| rules.all)
}

struct Rules {
    entrypoints: BTreeSet<String>,
    all: BTreeSet<String>,
}

fn read(pack: &str, modules: &[(String, String)], syntax: Syntax) -> Result<Rules, PackError> {
    let mut engine = regorus::Engine::new();
    engine.set_rego_v0(syntax == Syntax::V0);
    for (name, text) in modules {
        super::nesting::check(text)
            .map_err(|message| PackError::Syntax { file: name.clone(), message })?;
        engine.add_policy(name.clone(), text.clone()).map_err(|error| PackError::Syntax {
            file: name.clone(),
            message: error.to_string(),
        })?;
    }
    let form = |message: String| PackError::Form { pack: pack.to_owned(), message };
    let ast = engine.get_ast_as_json().map_err(|error| form(error.to_string()))?;
    let ast: Value = serde_json::from_str(&ast).map_err(|error| form(error.to_string()))?;
    let parsed: Vec<&Value> =
        ast.as_array().into_iter().flatten().filter_map(|module| module.get("ast")).collect();
    let package = |module: &Value| module.pointer("/package/refr").map(path).unwrap_or_default();
    let packages: Vec<String> = parsed.iter().map(|module| package(module)).collect();
    let mut definitions: BTreeMap<String, Definition> = BTreeMap::new();
    let mut entrypoints = BTreeSet::new();
    let mut all = BTreeSet::new();
    for (module, text) in parsed.into_iter().zip(modules.iter().map(|(_, text)| text)) {
        let package = package(module);
        let roots = roots(module, text);
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
            if !function {
                all.insert(format!("data.{package}.{first}"));
            }
            let definition = definitions.entry(first.clone()).or_default();
            definition.function |= function;
            collect(body, (&roots, &packages), definition);
        }
    }
    // A reference to a package as a whole uses everything in it.
    let everything: BTreeSet<String> = definitions.keys().cloned().collect();
    for definition in definitions.values_mut().filter(|definition| definition.whole) {
        definition.uses.extend(everything.iter().cloned());
    }
    match circle(&definitions) {
        Some(names) => Err(PackError::Recursion { pack: pack.to_owned(), names }),
        None => Ok(Rules { entrypoints, all }),
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

/// Returns the names from which a reference leads to other rules: `data` and the aliases of imports.
fn roots(module: &Value, text: &str) -> BTreeSet<String> {
    let imports = module.get("imports").and_then(Value::as_array).into_iter().flatten();
    let aliases = imports.filter_map(|import| {
        let full = import.get("refr").map(path)?;
        let byte = |key: &str| {
            let span = import.get("as")?.get(key)?.as_u64()?;
            usize::try_from(span).ok()
        };
        let alias = byte("start").zip(byte("end")).and_then(|(a, b)| text.get(a..b));
        let alias = alias.map(str::to_owned);
        full.starts_with("data.").then(|| {
            alias.unwrap_or_else(|| full.rsplit('.').next().unwrap_or_default().to_owned())
        })
    });
    aliases.chain(["data".to_owned()]).collect()
}

/// Collects the names that a rule refers to, without recursion on its depth.
///
/// A field counts only behind `data` or an import: `grant.deny` reads a field of a value, and
/// `data.lib.deny` a rule.
fn collect(
    rule: &Value,
    (roots, packages): (&BTreeSet<String>, &[String]),
    definition: &mut Definition,
) {
    let mut work = vec![rule];
    while let Some(value) = work.pop() {
        match value {
            Value::Object(map) => {
                if map.contains_key("RefDot") || map.contains_key("RefBrack") {
                    chain(value, (roots, packages), definition, &mut work);
                    continue;
                }
                for (key, inner) in map {
                    // A head names the rule itself; its arguments and value are looked into.
                    if key == "refr" && (map.contains_key("args") || map.contains_key("key")) {
                        continue;
                    }
                    if key == "Var" {
                        let name = inner.get("value").and_then(Value::as_str).map(str::to_owned);
                        // An import used by itself is its whole package.
                        definition.whole |= name.as_ref().is_some_and(|name| roots.contains(name));
                        definition.uses.extend(name);
                    }
                    work.push(inner);
                }
            }
            Value::Array(items) => work.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Handles one reference, from its last field down to the variable that it starts with.
fn chain<'v>(
    reference: &'v Value,
    (roots, packages): (&BTreeSet<String>, &[String]),
    definition: &mut Definition,
    work: &mut Vec<&'v Value>,
) {
    // Fields from the last to the first; `None` for an index that isn't a literal.
    let mut fields: Vec<Option<String>> = Vec::new();
    let mut at = reference;
    let root = loop {
        if let Some(dot) = at.get("RefDot") {
            let field = dot.pointer("/field/1").and_then(Value::as_str);
            fields.push(field.map(str::to_owned));
            match dot.get("refr") {
                Some(inner) => at = inner,
                None => break None,
            }
        } else if let Some(bracket) = at.get("RefBrack") {
            let index = bracket.get("index");
            let literal = index.and_then(|index| {
                let string = index.get("String").or_else(|| index.get("RawString"))?;
                string.get("value").and_then(Value::as_str).map(str::to_owned)
            });
            fields.push(literal);
            work.extend(index);
            match bracket.get("refr") {
                Some(inner) => at = inner,
                None => break None,
            }
        } else if let Some(variable) = at.get("Var") {
            break variable.get("value").and_then(Value::as_str);
        } else {
            // A reference into the value of a call or another expression.
            work.push(at);
            break None;
        }
    };
    let Some(root) = root else { return };
    definition.uses.insert(root.to_owned());
    if !roots.contains(root) {
        return;
    }
    fields.reverse();
    let literal: Vec<&str> = fields.iter().map_while(|field| field.as_deref()).collect();
    let dotted = literal.join(".");
    let package = packages.iter().any(|package| {
        root != "data" && literal.is_empty()
            || root == "data"
                && (dotted.is_empty()
                    || *package == dotted
                    || package.strip_prefix(&dotted).is_some_and(|rest| rest.starts_with('.')))
    });
    definition.whole |= package;
    definition.uses.extend(literal.into_iter().map(str::to_owned));
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
