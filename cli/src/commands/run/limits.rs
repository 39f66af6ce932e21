//! The bounds of a run: the defaults, then `ambit.yaml`, then flags.

use ambit_executor::{LimitError, Limits};

use crate::args::Bounds;
use crate::configuration::Configuration;
use crate::output::Failure;

/// Reads the bounds.
pub(super) fn read(flags: &Bounds, configuration: &Configuration) -> Result<Limits, Failure> {
    let mut limits = Limits::default();
    let failure = |origin: String, error: &LimitError| {
        Failure::new(error.code(), format!("{origin}: {error}"), Some(error.help()))
    };
    let file = configuration.file.as_ref().map(|file| file.display().to_string());
    for (name, value, line) in &configuration.config.run_limits {
        let origin = || format!("{}:{line}", file.as_deref().unwrap_or("ambit.yaml"));
        limits.set(name, value).map_err(|error| failure(origin(), &error))?;
    }
    let named = [
        ("--timeout", "wallTime", &flags.timeout),
        ("--cpu-time", "cpuTime", &flags.cpu_time),
        ("--memory", "memory", &flags.memory),
    ];
    for (flag, name, value) in named {
        if let Some(value) = value {
            limits.set(name, value).map_err(|error| failure(flag.to_owned(), &error))?;
        }
    }
    for pair in &flags.limit {
        let Some((name, value)) = pair.split_once('=') else {
            let message = format!("`--limit {pair}` is not NAME=VALUE");
            let help = format!("NAME is one of {}", Limits::NAMES.join(", "));
            return Err(Failure::new("run-limit", message, Some(help)));
        };
        limits.set(name, value).map_err(|error| failure("--limit".to_owned(), &error))?;
    }
    Ok(limits)
}
