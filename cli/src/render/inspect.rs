//! One binary for a person at a terminal.

use ambit_engine::catalogue::Catalogue;
use ambit_engine::report::{FunctionView, InspectDocument};

use super::style::{Style, count, safe, table};

/// Renders the report of one binary.
pub(crate) fn human(document: &InspectDocument, catalogue: &Catalogue, style: Style) -> String {
    let mut text = String::new();
    let nested = &document.nested;
    let inside = match (nested.components, nested.modules) {
        (0, modules) => count(modules, "core module"),
        (components, modules) => {
            format!("{}, {}", count(components, "inner component"), count(modules, "core module"))
        }
    };
    text.push_str(&format!(
        "{}  {}, {} bytes, {inside}\n{}\n",
        style.bold(&safe(&document.source)),
        if document.kind == "component" { "component" } else { "core module (not a component)" },
        document.size,
        style.dim(&document.digest)
    ));
    text.push_str(&capabilities(document, catalogue, style));
    text.push_str(&imports(document, style));
    if !document.exports.is_empty() {
        text.push_str(&format!("\n{}\n", style.bold("exports")));
        let rows: Vec<Vec<String>> = document
            .exports
            .iter()
            .map(|export| {
                let through = export
                    .passes_through
                    .as_ref()
                    .map(|import| format!("hands on `{import}`"))
                    .unwrap_or_default();
                vec![safe(&export.name), export.sort.clone(), safe(&through)]
            })
            .collect();
        text.push_str(&table(&rows, 2));
    }
    if !document.notes.is_empty() {
        text.push_str(&format!("\n{}\n", style.bold("notes")));
        for note in &document.notes {
            text.push_str(&format!("  {}\n", safe(&note.message)));
        }
    }
    if !document.executor.is_empty() {
        text.push_str(&format!("\n{}\n", style.bold("the executor would refuse it")));
        for note in &document.executor {
            text.push_str(&format!("  {}\n", safe(&note.reason)));
        }
    }
    text.push_str(&hints(document, style));
    let code = if document.analysis.code == "checked" {
        "validated"
    } else {
        "not validated (`--check-code` does)"
    };
    text.push_str(&format!(
        "\n{}\n  reachable functions were not computed by this version; function bodies were {code}\n",
        style.bold("analysis")
    ));
    for reason in &document.analysis.reasons {
        text.push_str(&format!("  linked is an upper bound: {}\n", safe(reason)));
    }
    text
}

fn capabilities(document: &InspectDocument, catalogue: &Catalogue, style: Style) -> String {
    let mut text = format!("\n{}\n", style.bold("capabilities"));
    let declared = &document.capabilities.declared;
    if declared.is_empty() {
        text.push_str("  none: it imports nothing\n");
        return text;
    }
    let mut rows = Vec::new();
    for id in declared {
        let class = catalogue.class(id);
        let risk = class.map_or("high", |class| class.risk.as_str());
        let linked = document.capabilities.linked.contains(id);
        let depth = if linked { "linked" } else { "declared only" };
        let title = class.map_or(String::new(), |class| format!("can {}", class.title));
        rows.push((
            class.map(|c| c.risk),
            vec![safe(id), risk.to_owned(), depth.to_owned(), title],
        ));
    }
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    text.push_str(&table(&rows, 2));
    text
}

fn imports(document: &InspectDocument, style: Style) -> String {
    if document.imports.is_empty() {
        return String::new();
    }
    let functions: usize = document.imports.iter().map(|import| import.functions.len()).sum();
    let linked: usize = document
        .imports
        .iter()
        .flat_map(|import| &import.functions)
        .filter(|function| function.linked)
        .count();
    let mut text = format!(
        "\n{}  {}, {} ({linked} linked)\n",
        style.bold("imports"),
        count(document.imports.len(), "import"),
        count(functions, "function")
    );
    let rows: Vec<Vec<String>> = document
        .imports
        .iter()
        .map(|import| {
            let used: Vec<String> = import
                .used_by
                .iter()
                .filter(|at| at.path != "/")
                .map(|at| match &at.name {
                    Some(name) => format!("{} ({name}, unverified)", at.path),
                    None => at.path.clone(),
                })
                .collect();
            let mut words = Vec::new();
            if !import.known {
                words.push("not in the catalogue".to_owned());
            }
            if import.delegated {
                words.push("handles come from callers".to_owned());
            }
            if let Some(implements) = &import.implements {
                words.push(format!("implements {implements}"));
            }
            if let Some(id) = &import.external_id {
                words.push(format!("external id `{id}`, unverified"));
            }
            if !import.asks_for.is_empty() {
                words.push(format!("asks for {}", import.asks_for.join(", ")));
            }
            if !used.is_empty() {
                words.push(format!("used by {}", used.join(", ")));
            }
            vec![
                safe(&import.name),
                import.sort.clone(),
                summary(&import.functions),
                safe(&import.classes.join(", ")),
                safe(&words.join("; ")),
            ]
        })
        .collect();
    text.push_str(&table(&rows, 2));
    text
}

fn summary(functions: &[FunctionView]) -> String {
    let linked = functions.iter().filter(|function| function.linked).count();
    if functions.is_empty() {
        "types only".to_owned()
    } else {
        format!("{linked}/{} linked", functions.len())
    }
}

fn hints(document: &InspectDocument, style: Style) -> String {
    let hints = &document.hints;
    let mut rows = Vec::new();
    for (key, value) in &hints.metadata {
        rows.push(vec![safe(key), safe(value)]);
    }
    let mut list = |name: &str, items: &[String]| {
        for item in items.iter().take(8) {
            rows.push(vec![name.to_owned(), safe(item)]);
        }
        if items.len() > 8 {
            let more = items.len().saturating_sub(8);
            rows.push(vec![name.to_owned(), format!("… and {more} more (`--format json`)")]);
        }
    };
    list("producer", &hints.producers);
    list("crate", &hints.dependencies);
    list("url in data", &hints.urls);
    list("host in data", &hints.hosts);
    list("path in data", &hints.paths);
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n{}  what the file says about itself; nothing here is verified\n{}",
        style.bold("hints"),
        table(&rows, 2)
    )
}
