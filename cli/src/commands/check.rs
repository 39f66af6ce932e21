//! `ambit check`.

use ambit_engine::decision::{Verdict, overall};
use ambit_engine::input::Request;
use ambit_engine::policy::{PolicyLimits, PolicySet, Profile, embedded};
use ambit_engine::report;
use ambit_engine::review::{Mode, Subject, Terms, review};
use ambit_engine::workload::Target;

use ambit_setup::Files;
use ambit_trust::policy::PUBLIC_GOOD_ROOT;

use crate::args::{Check, Format, Global};
use crate::commands::reach;
use crate::configuration::{self, Configuration};
use crate::exit::Exit;
use crate::fetch::{Lazy, Trusted};
use crate::output::{Failure, Output};
use crate::render::style::Style;
use crate::render::{github, human, junit, markdown, reach as render_reach, sarif};
use crate::source::{Inputs, Keep, load};

/// What is judged, and how.
pub(crate) struct Judged<'a> {
    pub(crate) inputs: &'a crate::args::Inputs,
    pub(crate) profile: Option<Profile>,
    /// Packs beside those of the configuration.
    pub(crate) policies: &'a [std::path::PathBuf],
    pub(crate) now: jiff::Timestamp,
    /// Whether what is allowed will run.
    pub(crate) mode: Mode,
}

/// What came of it, one answer for each workload.
pub(crate) struct Done<R> {
    pub(crate) inputs: Inputs,
    pub(crate) reviews: Vec<R>,
    pub(crate) profile: Profile,
    pub(crate) policies: PolicySet,
}

/// Reads, fetches, verifies, and asks `each` about every workload: [`review`] or
/// [`admit`](ambit_engine::admitted::admit).
pub(crate) fn judge<R>(
    judged: &Judged<'_>,
    configuration: &mut Configuration,
    trusted: &Trusted,
    output: &Output,
    each: impl Fn(Subject<'_>, &Terms<'_>) -> R,
) -> Result<Done<R>, Failure> {
    let profile = configuration.profile(judged.profile);
    let (target, keep, operation) = match judged.mode {
        Mode::Run => (Some(Target::Ambit), Keep::Bytes, "RUN"),
        Mode::Ci | Mode::Admission | Mode::Audit => {
            let target = judged.inputs.target.map(Target::from).or(configuration.config.target);
            (target, Keep::Nothing, "CI")
        }
    };
    // The shipped packs are parsed while the inputs are read.
    let (inputs, shipped) = std::thread::scope(|scope| {
        let shipped = scope.spawn(|| embedded(&PolicyLimits::default()));
        let fetch =
            Lazy { flags: &judged.inputs.registry, configuration, output, trusted: Some(trusted) };
        let known = (&configuration.limits, &configuration.catalogue);
        let inputs = load(judged.inputs, (target, keep), known, &fetch);
        (inputs, shipped.join())
    });
    let inputs = inputs?;
    let shipped = shipped.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let policies = configuration.policies_with(shipped, judged.policies, &mut Files::default())?;
    let now = judged.now.to_string();
    let terms = Terms {
        mode: judged.mode,
        now: &now,
        target,
        profile,
        config: &configuration.config,
        policies: &policies,
        catalogue: &configuration.catalogue,
        request: Request { operation: operation.to_owned(), ..Request::default() },
        previous: None,
    };
    let reviews = inputs
        .workloads
        .iter()
        .map(|loaded| {
            let bytes = loaded.bytes();
            let subject = Subject {
                workload: &loaded.workload,
                bytes: &bytes,
                supplies: &loaded.supplies,
                file: &loaded.file,
            };
            each(subject, &terms)
        })
        .collect();
    Ok(Done { inputs, reviews, profile, policies })
}

/// Decides.
pub(crate) fn run(command: &Check, global: &Global, output: &Output) -> Result<Exit, Failure> {
    let mut configuration = configuration::read(global)?;
    let now = timestamp(command.now.as_deref())?;
    let trusted = Trusted::read(&command.trust, &mut configuration, now)?;
    if command.show_config {
        let profile = configuration.profile(command.profile.map(Profile::from));
        let target = command.inputs.target.map(Target::from).or(configuration.config.target);
        output.answer(&show(command, &configuration, (profile, target), &trusted))?;
        return Ok(Exit::Done);
    }
    trusted.warn(output);
    let judged = Judged {
        inputs: &command.inputs,
        profile: command.profile.map(Profile::from),
        policies: &command.policy,
        now,
        mode: Mode::Ci,
    };
    let done = judge(&judged, &mut configuration, &trusted, output, review)?;
    let Done { inputs, reviews, profile, policies } = &done;
    let decisions: Vec<(&str, &ambit_engine::decision::Decision)> = inputs
        .workloads
        .iter()
        .zip(reviews)
        .map(|(loaded, review)| (loaded.file.as_str(), &review.decision))
        .collect();
    let errors = inputs.unread.iter().map(|unread| unread.view.clone()).collect();
    let document = report::decision(
        &decisions,
        errors,
        (profile.as_str(), &now.to_string()),
        configuration.digests.clone(),
    );
    match output.format {
        Format::Json => output.json(&document)?,
        Format::Sarif => output.json(&sarif::render(&document, policies.rules()))?,
        Format::Junit => output.answer(&junit::render(&document))?,
        Format::Github => output.answer(&github::render(&document))?,
        Format::Markdown => output.answer(&markdown::render(&document))?,
        Format::Human => {
            let colored = output.colored();
            let style = Style::new(colored);
            let mut text = String::new();
            if command.reach {
                let reaches: Vec<_> = reviews.iter().map(|review| review.reach.clone()).collect();
                let document = reach::document(inputs, &reaches, &configuration);
                text.push_str(&render_reach::human(&document, style));
                text.push('\n');
            }
            for (loaded, (_, decision)) in inputs.workloads.iter().zip(&decisions) {
                text.push_str(&human::subject(loaded, decision, inputs, style, colored));
            }
            output.answer(&text)?;
        }
    }
    if !inputs.skipped.is_empty() && output.format == Format::Human {
        let count = inputs.skipped.len();
        let what = if count == 1 { "document was" } else { "documents were" };
        output.note(&format!("{count} other {what} skipped; `ambit reach` names them"));
    }
    for unread in &inputs.unread {
        output.failure(&unread.failure);
    }
    Ok(exit(command, &decisions, !inputs.unread.is_empty()))
}

fn exit(
    command: &Check,
    decisions: &[(&str, &ambit_engine::decision::Decision)],
    unread: bool,
) -> Exit {
    let warned = decisions.iter().any(|(_, decision)| {
        decision.with_action(ambit_engine::policy::Action::Warn).next().is_some()
    });
    match overall(decisions.iter().map(|(_, decision)| decision.verdict)) {
        _ if unread => Exit::NoDecision,
        Verdict::Error => Exit::NoDecision,
        Verdict::Deny => Exit::Denied,
        Verdict::Allow if command.fail_on_warn && warned => Exit::Warned,
        Verdict::Allow => Exit::Done,
    }
}

/// Returns the time of the decision, to the second, whatever form it was given in.
pub(crate) fn timestamp(given: Option<&str>) -> Result<jiff::Timestamp, Failure> {
    let time = match given {
        Some(text) => text.parse::<jiff::Timestamp>().map_err(|_| {
            let help = "write it like `2026-12-01T09:00:00Z`".to_owned();
            Failure::new("usage-now", format!("`{text}` is no RFC 3339 time"), Some(help))
        })?,
        None => jiff::Timestamp::now(),
    };
    jiff::Timestamp::from_second(time.as_second())
        .map_err(|error| Failure::new("usage-now", error.to_string(), None))
}

/// Prints the merged configuration, each value with where it comes from.
fn show(
    command: &Check,
    configuration: &Configuration,
    (profile, target): (Profile, Option<Target>),
    trusted: &Trusted,
) -> String {
    let config = &configuration.config;
    let file = configuration.file.as_ref().map(|file| file.display().to_string());
    let origin = |key: &str, flag: bool| match (flag, config.origins.get(key), &file) {
        (true, _, _) => "flag".to_owned(),
        (false, Some(line), Some(file)) => format!("{file}:{line}"),
        (false, _, _) => "default".to_owned(),
    };
    let mut lines = vec![format!(
        "# configuration: {}",
        file.as_deref().unwrap_or("none found, so defaults and flags only")
    )];
    let mut line = |text: String, origin: String| lines.push(format!("{text}  # {origin}"));
    line(format!("profile: {}", profile.as_str()), origin("profile", command.profile.is_some()));
    let shown = target.map_or("each document's own engine", Target::as_str);
    line(format!("target: {shown}"), origin("target", command.inputs.target.is_some()));
    line(format!("ceilings: {}", config.ceilings.len()), origin("ceilings", false));
    for ceiling in &config.ceilings {
        let hosts: Vec<String> = ceiling.hosts.iter().map(ToString::to_string).collect();
        line(
            format!(
                "- capabilities: [{}], hosts: [{}], folders: {}, interfaces: [{}]",
                ceiling.capabilities.join(", "),
                hosts.join(", "),
                ceiling.folders.len(),
                ceiling.interfaces.join(", ")
            ),
            ceiling.origin.clone(),
        );
    }
    line(format!("policies: [{}]", config.policies.join(", ")), origin("policies", false));
    for path in &command.policy {
        line(format!("- {}", path.display()), "flag".to_owned());
    }
    for entry in &config.enforcement {
        let namespace = entry.namespace.as_deref().unwrap_or("*");
        line(
            format!("enforcement: {{{}: {{{namespace}: {}}}}}", entry.rule, entry.action),
            origin("enforcement", false),
        );
    }
    for (pack, values) in &config.parameters {
        for (name, value) in values {
            line(
                format!("parameters: {{{pack}: {{{name}: {value}}}}}"),
                origin("parameters", false),
            );
        }
    }
    line(format!("trust: [{}]", config.trust.join(", ")), origin("trust", false));
    for path in &command.trust.trust {
        line(format!("- {}", path.display()), "flag".to_owned());
    }
    for root in trusted.roots().iter() {
        let newest = root.as_of().map_or("nothing".to_owned(), |time| time.to_string());
        let given = root.name() == PUBLIC_GOOD_ROOT
            && (command.trust.trusted_root.is_some() || command.trust.update_trust_root);
        let origin = if given { "flag" } else { "trust policies, or built in" };
        line(
            format!("trust root {}: its newest entry is of {newest}", root.name()),
            origin.to_owned(),
        );
    }
    for (host, mirror) in &config.mirrors {
        line(format!("mirrors: {{{host}: {mirror}}}"), origin("mirrors", false));
    }
    for pair in &command.inputs.registry.mirror {
        line(format!("mirrors: {{{}}}", pair.replacen('=', ": ", 1)), "flag".to_owned());
    }
    let insecure = config.insecure_registries.join(", ");
    line(format!("insecureRegistries: [{insecure}]"), origin("insecureRegistries", false));
    for host in &command.inputs.registry.insecure_registry {
        line(format!("- {host}"), "flag".to_owned());
    }
    let certificates = config.registry_certificates.join(", ");
    line(format!("registryCertificates: [{certificates}]"), origin("registryCertificates", false));
    for (registry, realm) in &config.token_hosts {
        line(format!("tokenHosts: {{{registry}: {realm}}}"), origin("tokenHosts", false));
    }
    line(format!("catalogue: [{}]", config.catalogue.join(", ")), origin("catalogue", false));
    line(
        format!("limits: {{component_bytes: {}}}", configuration.limits.max_component_bytes),
        origin("limits", false),
    );
    lines.push(String::new());
    lines.join("\n")
}
