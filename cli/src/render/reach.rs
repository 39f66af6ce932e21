//! Reach for a person, as a table for each component, and turned round for an auditor.

use std::collections::BTreeMap;

use ambit_engine::catalogue::Verb;
use ambit_engine::reach::{Entry, Reach, Via};
use ambit_engine::report::{ReachDocument, WorkloadView};

use super::style::{Style, safe, table};
use crate::args::By;

/// Renders the report of all workloads.
pub(crate) fn human(document: &ReachDocument, style: Style) -> String {
    let mut text = String::new();
    for (index, workload) in document.workloads.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&one(workload, style));
    }
    if !document.skipped.is_empty() {
        text.push('\n');
        for skipped in &document.skipped {
            text.push_str(&style.dim(&format!(
                "skipped {}:{} {}: {}\n",
                safe(&skipped.location.file),
                skipped.location.line,
                safe(&skipped.kind),
                skipped.reason
            )));
        }
    }
    text
}

fn title(workload: &WorkloadView) -> String {
    if workload.kind == "Component" && workload.components.len() == 1 {
        workload.name.clone()
    } else {
        format!("{} {}/{}", workload.kind, workload.namespace, workload.name)
    }
}

fn one(workload: &WorkloadView, style: Style) -> String {
    let mut text = format!(
        "{}  {}, read for target {}\n",
        style.bold(&safe(&title(workload))),
        safe(&workload.file),
        workload.target
    );
    for component in &workload.components {
        let bytes = match &component.reason {
            None => String::new(),
            Some(reason) => format!("  upper bounds from the grants alone: {}", safe(reason)),
        };
        text.push_str(&format!(
            "\n  {}{}\n",
            style.bold(&safe(&component.name)),
            style.dim(&bytes)
        ));
        let mut rows = Vec::new();
        for entry in &component.reach {
            // The heading names the file.
            let line = match &entry.grant {
                Some(grant) => format!("line {}", grant.line),
                None => entry.via.clone(),
            };
            let via = match entry.via.as_str() {
                "grant" | "grant-only" | "target-default" => String::new(),
                link => format!(" ({link})"),
            };
            rows.push(vec![
                entry.verb.clone(),
                safe(&entry.subject),
                safe(&format!("{line}{via}")),
                safe(&entry.note),
            ]);
        }
        if rows.is_empty() {
            text.push_str("    reaches nothing\n");
        }
        text.push_str(&table(&rows, 4));
        for (word, notes) in
            [("dead grant", &component.dead_grants), ("missing grant", &component.missing_grants)]
        {
            for note in notes {
                text.push_str(&format!(
                    "    {} `{}`: {}\n",
                    style.warn(word),
                    safe(&note.subject),
                    safe(&note.reason)
                ));
            }
        }
    }
    if !workload.paths.is_empty() {
        text.push_str(&format!("\n  {}\n", style.bold("from private to outside")));
        for path in &workload.paths {
            let sends = if path.unbounded { "anywhere".to_owned() } else { path.sends.join(", ") };
            text.push_str(&format!(
                "    {} -> {} -> {}\n",
                safe(&path.reads.join(", ")),
                safe(&path.hops.join(" -> ")),
                safe(&sends)
            ));
        }
    }
    if !workload.problems.is_empty() {
        text.push_str(&format!("\n  {}\n", style.bold("problems")));
        for problem in &workload.problems {
            text.push_str(&format!(
                "    {}:{}: {} [{}]\n",
                safe(&problem.location.file),
                problem.location.line,
                safe(&problem.message),
                problem.code
            ));
        }
    }
    if !workload.under_ambit.is_empty() {
        text.push_str(&format!("\n  {}\n", style.bold("under `--target ambit`")));
        for line in &workload.under_ambit {
            text.push_str(&format!("    {}\n", safe(line)));
        }
    }
    text
}

/// Renders the report as Markdown, for a comment on a pull request.
pub(crate) fn markdown(document: &ReachDocument) -> String {
    let mut text = String::new();
    for workload in &document.workloads {
        text.push_str(&format!("### {}\n\n", escape(&title(workload))));
        text.push_str("| component | can | what | because of |\n| --- | --- | --- | --- |\n");
        for component in &workload.components {
            for entry in &component.reach {
                let line = match &entry.grant {
                    Some(grant) => format!("{}:{}", grant.file, grant.line),
                    None => entry.via.clone(),
                };
                text.push_str(&format!(
                    "| {} | {} | {} | {} |\n",
                    escape(&component.name),
                    entry.verb,
                    escape(&entry.subject),
                    escape(&line)
                ));
            }
            if component.reach.is_empty() {
                text.push_str(&format!("| {} | reach nothing | | |\n", escape(&component.name)));
            }
        }
        text.push('\n');
    }
    text
}

/// Escapes what Markdown tables and mentions would read.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in safe(text).chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '#' => {
                out.push('\\');
                out.push(c);
            }
            // A zero-width space keeps a name from calling somebody.
            '@' => out.push_str("@\u{200b}"),
            '\n' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// One row of the inverse report.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
pub(crate) struct InverseRow {
    /// The host, folder or secret.
    pub(crate) thing: String,
    /// The workload.
    pub(crate) workload: String,
    /// The component.
    pub(crate) component: String,
    /// The verb.
    pub(crate) verb: String,
    /// How.
    pub(crate) via: String,
    /// The file and line that give it; empty where no line does.
    pub(crate) location: String,
}

/// Turns reach round: which components reach each host, folder or secret.
pub(crate) fn inverse(workloads: &[(&str, String, &Reach)], by: By) -> Vec<InverseRow> {
    let wanted = |entry: &Entry| match by {
        By::Host => matches!(
            entry.verb,
            Verb::ReachHosts | Verb::LookUpNames | Verb::OpenSockets | Verb::UseMachinePorts
        ),
        By::Folder => {
            matches!(entry.verb, Verb::ReadFolder | Verb::ChangeFolder) && !entry.key.is_empty()
        }
        By::Secret => entry.verb == Verb::ReadSecrets,
    };
    let mut rows = Vec::new();
    for (file, name, reach) in workloads {
        for component in &reach.components {
            for entry in component.entries.iter().filter(|entry| wanted(entry)) {
                rows.push(InverseRow {
                    thing: entry.key.clone(),
                    workload: name.clone(),
                    component: component.name.clone(),
                    verb: entry.verb.as_str().to_owned(),
                    via: Via::to_string(&entry.via),
                    location: entry
                        .grant
                        .as_ref()
                        .map(|grant| format!("{file}:{}", grant.place.line()))
                        .unwrap_or_default(),
                });
            }
        }
    }
    rows.sort();
    rows.dedup();
    rows
}

/// Renders the inverse report.
pub(crate) fn inverse_human(rows: &[InverseRow], style: Style) -> String {
    if rows.is_empty() {
        return "nothing is reached\n".to_owned();
    }
    let mut groups: BTreeMap<&str, Vec<&InverseRow>> = BTreeMap::new();
    for row in rows {
        groups.entry(&row.thing).or_default().push(row);
    }
    let mut text = String::new();
    for (thing, rows) in groups {
        let thing = if thing == "*" { "* (any)" } else { thing };
        text.push_str(&format!("{}\n", style.bold(&safe(thing))));
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let place = if row.location.is_empty() { &row.via } else { &row.location };
                vec![safe(&row.workload), safe(&row.component), row.verb.clone(), safe(place)]
            })
            .collect();
        text.push_str(&table(&rows, 2));
    }
    text
}
