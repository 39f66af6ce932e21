//! `ambit reach`.

use ambit_engine::reach::{Reach, differences};
use ambit_engine::report::{self, ReachDocument, ReachSource};
use ambit_engine::workload::Target;

use crate::args::{Format, Global, Reach as ReachArguments};
use crate::configuration::{self, Configuration};
use crate::exit::Exit;
use crate::fetch::Lazy;
use crate::output::{Failure, Output};
use crate::render::reach;
use crate::render::style::Style;
use crate::source::{Inputs, Keep, LoadedWorkload, load};

/// Shows what each component of the workloads can reach.
pub(crate) fn run(
    command: &ReachArguments,
    global: &Global,
    output: &Output,
) -> Result<Exit, Failure> {
    if command.by.is_some() {
        output.only(&[Format::Human, Format::Json])?;
    } else {
        output.only(&[Format::Human, Format::Json, Format::Markdown])?;
    }
    let configuration = configuration::read(global)?;
    let target = command.inputs.target.map(Target::from).or(configuration.config.target);
    let known = (&configuration.limits, &configuration.catalogue);
    let fetch = Lazy {
        flags: &command.inputs.registry,
        configuration: &configuration,
        output,
        trusted: None,
    };
    let inputs = load(&command.inputs, (target, Keep::Nothing), known, &fetch)?;
    let reaches = reaches(&inputs, target, &configuration);
    for unread in &inputs.unread {
        output.failure(&unread.failure);
    }
    if let Some(by) = command.by {
        let sources: Vec<(&str, String, &Reach)> = inputs
            .workloads
            .iter()
            .zip(&reaches)
            .map(|(loaded, reach)| (loaded.file.as_str(), loaded.workload.name.clone(), reach))
            .collect();
        let rows = reach::inverse(&sources, by);
        if output.format == Format::Json {
            output.json(&serde_json::json!({
                "schema": "ambit.reach-by/v1",
                "by": by.as_str(),
                "rows": rows,
            }))?;
        } else {
            output.answer(&reach::inverse_human(&rows, Style::new(output.colored())))?;
        }
    } else {
        let document = document(&inputs, &reaches, &configuration);
        if output.format == Format::Json {
            output.json(&document)?;
        } else if output.format == Format::Markdown {
            output.answer(&reach::markdown(&document))?;
        } else if !document.workloads.is_empty() {
            output.answer(&reach::human(&document, Style::new(output.colored())))?;
        }
    }
    Ok(if inputs.unread.is_empty() { Exit::Done } else { Exit::NoDecision })
}

/// Computes what each workload can reach.
pub(crate) fn reaches(
    inputs: &Inputs,
    target: Option<Target>,
    configuration: &Configuration,
) -> Vec<Reach> {
    let of = |loaded: &LoadedWorkload| {
        let target = target.unwrap_or(loaded.workload.engine);
        Reach::of(&loaded.workload, &loaded.bytes(), target, &configuration.catalogue)
    };
    inputs.workloads.iter().map(of).collect()
}

/// Builds the document of all workloads.
pub(crate) fn document(
    inputs: &Inputs,
    reaches: &[Reach],
    configuration: &Configuration,
) -> ReachDocument {
    let details: Vec<(Vec<Option<String>>, Vec<String>)> = inputs
        .workloads
        .iter()
        .zip(reaches)
        .map(|(loaded, theirs)| (loaded.digests(), under_ambit(loaded, theirs, configuration)))
        .collect();
    let sources: Vec<ReachSource<'_>> = inputs
        .workloads
        .iter()
        .zip(reaches)
        .zip(&details)
        .map(|((loaded, reach), (digests, under_ambit))| ReachSource {
            file: &loaded.file,
            workload: &loaded.workload,
            reach,
            digests,
            under_ambit,
        })
        .collect();
    report::reach(&sources, &inputs.skipped)
}

/// What would differ if our executor ran the workload.
fn under_ambit(
    loaded: &LoadedWorkload,
    theirs: &Reach,
    configuration: &Configuration,
) -> Vec<String> {
    if theirs.target == Target::Ambit {
        return Vec::new();
    }
    let bytes = loaded.bytes();
    let ours = Reach::of(&loaded.under_ambit, &bytes, Target::Ambit, &configuration.catalogue);
    differences(theirs, &ours)
}
