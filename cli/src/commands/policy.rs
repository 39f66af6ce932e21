//! `ambit policy`.

use ambit_engine::policy::{Action, PolicySet, Profile};
use ambit_engine::{input, report};
use ambit_setup::Files;
use ambit_trust::policy::verify_schema;

use crate::args::{Format, Global, Policy, PolicyList, SchemaName};
use crate::configuration;
use crate::exit::Exit;
use crate::output::{Failure, Output};
use crate::render::style::{Style, table};

/// Runs a subcommand.
pub(crate) fn run(command: &Policy, global: &Global, output: &Output) -> Result<Exit, Failure> {
    match command {
        Policy::List(command) => list(command, global, output),
        Policy::Schema(command) => {
            output.only(&[Format::Human, Format::Json])?;
            output.json(&match command.name {
                SchemaName::Input => input::schema(),
                SchemaName::Inspect => report::inspect_schema(),
                SchemaName::Reach => report::reach_schema(),
                SchemaName::Decision => report::decision_schema(),
                SchemaName::Verify => verify_schema(),
                SchemaName::TrustPolicy => trust_policy()?,
            })?;
            Ok(Exit::Done)
        }
    }
}

/// The schema of TrustPolicy files is written by hand, since it says more than types do.
const TRUST_POLICY: &str =
    include_str!("../../../docs/reference/schemas/trust-policy-v1alpha1.schema.json");

fn trust_policy() -> Result<serde_json::Value, Failure> {
    serde_json::from_str(TRUST_POLICY)
        .map_err(|error| Failure::new("output-failed", error.to_string(), None))
}

fn list(command: &PolicyList, global: &Global, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let mut configuration = configuration::read(global)?;
    let policies = configuration.policies(&command.policy, &mut Files::default())?;
    if output.format == Format::Json {
        output.json(&json(&policies))?;
    } else {
        output.answer(&human(&policies, Style::new(output.colored())))?;
    }
    Ok(Exit::Done)
}

fn json(policies: &PolicySet) -> serde_json::Value {
    let packs: Vec<serde_json::Value> = policies
        .packs()
        .iter()
        .map(|pack| {
            let rules: Vec<serde_json::Value> = pack
                .rules()
                .into_iter()
                .map(|rule| {
                    let action =
                        |profile| pack.action(&rule.id, profile).unwrap_or(Action::Deny).as_str();
                    serde_json::json!({
                        "rule": rule.full(),
                        "code": rule.code(),
                        "title": rule.title,
                        "severity": rule.severity,
                        "baseline": action(Profile::Baseline),
                        "strict": action(Profile::Strict),
                        "parameter": rule.parameter.clone().unwrap_or_default(),
                        "evidence": rule.evidence,
                    })
                })
                .collect();
            serde_json::json!({
                "name": pack.name(),
                "version": pack.version(),
                "digest": pack.digest().to_string(),
                "description": pack.description(),
                "rules": rules,
                "parameters": pack.parameters().iter().map(|(name, parameter)| {
                    serde_json::json!({
                        "name": name,
                        "type": parameter.kind,
                        "default": parameter.default,
                        "description": parameter.description,
                    })
                }).collect::<Vec<_>>(),
            })
        })
        .collect();
    serde_json::json!({"schema": "ambit.policy-list/v1", "packs": packs})
}

fn human(policies: &PolicySet, style: Style) -> String {
    let mut text = String::new();
    for pack in policies.packs() {
        text.push_str(&format!("{} {}\n", style.bold(pack.name()), pack.version()));
        if !pack.description().is_empty() {
            text.push_str(&format!("  {}\n", pack.description().trim()));
        }
        let mut rows = vec![
            ["rule", "severity", "baseline", "strict", "what it demands"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for rule in pack.rules() {
            let action =
                |profile| pack.action(&rule.id, profile).unwrap_or(Action::Deny).to_string();
            let title = match &rule.parameter {
                Some(parameter) => format!("{} (needs `{parameter}`)", rule.title),
                None => rule.title.clone(),
            };
            rows.push(vec![
                rule.full(),
                rule.severity.clone(),
                action(Profile::Baseline),
                action(Profile::Strict),
                title,
            ]);
        }
        text.push_str(&table(&rows, 2));
        if !pack.parameters().is_empty() {
            text.push_str("  parameters\n");
            let rows: Vec<Vec<String>> = pack
                .parameters()
                .iter()
                .map(|(name, parameter)| {
                    vec![
                        name.clone(),
                        parameter.kind.clone(),
                        parameter.default.to_string(),
                        parameter.description.clone(),
                    ]
                })
                .collect();
            text.push_str(&table(&rows, 4));
        }
        text.push('\n');
    }
    text
}
