//! Records for people and programs.

use std::collections::BTreeMap;
use std::path::Path;

use ambit_executor::record::{Did, Ending, Entry, Line, OTHERS, Subject, Summary, Verified};

use crate::render::style::{Style, count, line as safe, table};

/// The most things that are shown for one verb; the rest are counted.
const MAX_SHOWN: usize = 20;

/// How a run ended, in a word.
pub(crate) fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Ended => "ended",
        Ending::Running => "running",
        Ending::Cut => "cut off",
    }
}

/// A verb as it is shown. What no report names is a call from outside: a command, `--invoke`.
fn shown(verb: &str) -> String {
    if verb == "none" { "run".to_owned() } else { safe(verb) }
}

/// `14 times`, `once`.
fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        number => format!("{number} times"),
    }
}

/// Renders what each component did, as the reach report says what it can do.
pub(crate) fn human(run: &str, summary: &Summary, style: Style) -> String {
    let mut text = format!("{}\n", style.bold(&format!("record {}", safe(run))));
    let mut workload = None;
    for (whose, verbs) in &summary.components {
        if workload != Some(&whose.workload) {
            text.push_str(&format!("\n{}\n", style.bold(&safe(&whose.workload))));
            workload = Some(&whose.workload);
        }
        text.push_str(&format!(
            "  {}  {}\n",
            style.bold(&safe(&whose.component)),
            style.dim(&safe(&whose.digest))
        ));
        let mut rows = Vec::new();
        let mut helps = BTreeMap::new();
        for (verb, things) in verbs {
            verb_rows(verb, things, &mut rows, &mut helps);
        }
        if rows.is_empty() {
            text.push_str("    did nothing that is recorded\n");
        }
        text.push_str(&table(&rows, 4));
        for (help, code) in helps {
            let head = style.bad(&format!("denied[{}]", safe(&code)));
            text.push_str(&format!("    {head}\n      = help: {}\n", safe(&help)));
        }
    }
    if summary.components.is_empty() {
        text.push_str("\nnothing that fits\n");
    }
    text
}

fn verb_rows(
    verb: &str,
    things: &BTreeMap<String, Did>,
    rows: &mut Vec<Vec<String>>,
    helps: &mut BTreeMap<String, String>,
) {
    let mut sorted: Vec<_> = things.iter().collect();
    sorted.sort_by_key(|(thing, did)| {
        // Denials first, then what happened most; what is lumped together comes last.
        let often = did.allowed.saturating_add(did.denied);
        (thing.as_str() == OTHERS, did.denied == 0, std::cmp::Reverse(often))
    });
    for (thing, did) in sorted.iter().take(MAX_SHOWN) {
        let mut said = Vec::new();
        if did.allowed > 0 {
            said.push(times(did.allowed));
        }
        if did.denied > 0 {
            let code = did.code.as_deref().unwrap_or_default();
            said.push(format!("denied {} ({})", times(did.denied), safe(code)));
        }
        if did.failed > 0 {
            let code = did.failure.as_deref().unwrap_or_default();
            said.push(format!("failed {} ({})", times(did.failed), safe(code)));
        }
        if did.unknown > 0 {
            said.push(format!("outcome unknown {}", times(did.unknown)));
        }
        let bytes = match (did.bytes_out, did.bytes_in) {
            (0, 0) => String::new(),
            (out, received) => format!("{out} B out, {received} B in"),
        };
        rows.push(vec![shown(verb), safe(thing), said.join(", "), bytes]);
        if let (Some(help), Some(code)) = (&did.help, &did.code) {
            helps.insert(help.clone(), code.clone());
        }
    }
    let rest = things.len().saturating_sub(MAX_SHOWN);
    if rest > 0 {
        rows.push(vec![shown(verb), format!("… and {rest} more"), String::new(), String::new()]);
    }
}

/// The summary as a document.
pub(crate) fn json(run: &str, summary: &Summary) -> serde_json::Value {
    let components: Vec<_> = summary
        .components
        .iter()
        .map(|(whose, verbs)| {
            let effects: Vec<_> = verbs
                .iter()
                .flat_map(|(verb, things)| {
                    things.iter().map(move |(thing, did)| (verb, thing, did))
                })
                .map(|(verb, thing, did)| {
                    let mut effect = serde_json::json!({ "verb": verb, "subject": thing });
                    if let (Some(into), Ok(serde_json::Value::Object(from))) =
                        (effect.as_object_mut(), serde_json::to_value(did))
                    {
                        into.extend(from);
                    }
                    effect
                })
                .collect();
            serde_json::json!({
                "workload": whose.workload, "component": whose.component,
                "digest": whose.digest, "effects": effects,
            })
        })
        .collect();
    serde_json::json!({
        "schema": "ambit.record/v1alpha1", "run": run, "components": components,
    })
}

/// An effect in a few words.
pub(crate) fn effect(subject: &Subject<'_>) -> String {
    let verb = shown(&subject.verb);
    format!("{}/{} {verb}: {}", subject.workload, subject.component, subject.subject)
}

/// Renders a line of a record; for an outcome, with what it belongs to.
pub(crate) fn line(line: &Line<'_>, of: Option<&str>, style: Style) -> String {
    let (word, rest) = match &line.entry {
        Entry::Start { version, segment, .. } => {
            (style.dim("start"), format!("ambit {version}, segment {segment}"))
        }
        Entry::Component { workload, component, digest, verdict } => {
            (style.dim("admit"), format!("{workload}/{component} {verdict} {digest}"))
        }
        Entry::Intent { subject, .. } => ("begin".to_owned(), effect(subject)),
        Entry::Denied { subject, code, reason, .. } => {
            (style.bad("deny "), format!("{} [{code}] {reason}", effect(subject)))
        }
        Entry::Outcome { result, bytes_out, bytes_in, micros, detail, .. } => {
            let word = if result == "ok" { style.good("ok   ") } else { style.warn("fail ") };
            let result = if result == "ok" { String::new() } else { format!(" [{result}]") };
            let detail = if detail.is_empty() { String::new() } else { format!(" {detail}") };
            let what = of.unwrap_or_default();
            let rest =
                format!("{what}{result}{detail}, {bytes_out} B out, {bytes_in} B in, {micros} µs");
            (word, rest)
        }
        Entry::Seal { key, .. } => (style.dim("seal "), format!("by key {key}")),
        Entry::Continued { segment } => (style.dim("more "), format!("in segment {segment}")),
        Entry::End { open } => {
            let open = usize::try_from(*open).unwrap_or(usize::MAX);
            (style.dim("end  "), format!("{} under way", count(open, "effect")))
        }
        _ => (style.dim("?    "), String::new()),
    };
    format!("{}  {word}  {}\n", style.dim(&safe(&line.time)), safe(&rest))
}

/// What verification found, for a person.
pub(crate) fn verified(
    path: &Path,
    found: &Verified,
    checked: bool,
    wrong: Option<&String>,
    style: Style,
) -> String {
    let verdict = if wrong.is_some() { style.bad("FAILED") } else { style.good("HOLDS") };
    let mut text = format!("{verdict}  {}\n", safe(&path.display().to_string()));
    if let Some(wrong) = wrong {
        text.push_str(&format!("  {}\n", style.bad(wrong)));
    }
    let sealed = match (found.sealed_through, checked) {
        (0, _) => "unsigned: whoever can write the file can write it anew".to_owned(),
        (through, true) => format!("up to line {through}, verified"),
        (through, false) => {
            format!("up to line {through}, not verified: name the key with `--key`")
        }
    };
    let lines = usize::try_from(found.lines).unwrap_or(usize::MAX);
    let files = usize::try_from(found.segments).unwrap_or(usize::MAX);
    let ended = match found.ending {
        Ending::Ended => "in order",
        Ending::Running => "not yet: the run goes on",
        Ending::Cut => "not in order: the process was killed, or lines were cut off",
    };
    let mut rows = vec![
        vec!["holds".to_owned(), format!("{} in {}", count(lines, "line"), count(files, "file"))],
        vec!["ended".to_owned(), ended.to_owned()],
        vec!["head".to_owned(), format!("sha256:{}", found.head)],
        vec!["sealed".to_owned(), sealed],
    ];
    if found.torn_bytes > 0 {
        let torn = format!("{} bytes of a last line that isn't whole", found.torn_bytes);
        rows.push(vec!["torn".to_owned(), torn]);
    }
    text.push_str(&table(&rows, 2));
    if found.unknown > 0 {
        let number = usize::try_from(found.unknown).unwrap_or(usize::MAX);
        text.push_str(&format!("  outcome unknown of {}\n", count(number, "effect")));
        for effect in &found.named {
            text.push_str(&format!(
                "    line {}: {} {}: {}\n",
                effect.seq,
                safe(&effect.component),
                safe(&effect.verb),
                safe(&effect.subject)
            ));
        }
        let rest = number.saturating_sub(found.named.len());
        if rest > 0 {
            text.push_str(&format!("    … and {rest} more\n"));
        }
    }
    text
}

/// What verification found, as a document.
pub(crate) fn verified_json(
    path: &Path,
    found: &Verified,
    checked: bool,
    wrong: Option<&String>,
) -> serde_json::Value {
    let unknown: Vec<_> = found
        .named
        .iter()
        .map(|effect| {
            serde_json::json!({
                "line": effect.seq, "component": effect.component,
                "verb": effect.verb, "subject": effect.subject,
            })
        })
        .collect();
    serde_json::json!({
        "schema": "ambit.record-verification/v1alpha1",
        "record": path.display().to_string(),
        "holds": wrong.is_none(),
        "problem": wrong,
        "lines": found.lines,
        "files": found.segments,
        "head": format!("sha256:{}", found.head),
        "ending": ending(found.ending).replace(' ', "-"),
        "tornBytes": found.torn_bytes,
        "sealedThrough": found.sealed_through,
        "sealedBy": found.sealed_by,
        "sealsVerified": checked,
        "unknownOutcomes": found.unknown,
        "unknown": unknown,
    })
}
