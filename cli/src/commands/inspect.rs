//! `ambit inspect`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ambit_engine::component::{CodeCheck, HintScan, Kind, ReadOptions};
use ambit_engine::reference::ImageSource;
use ambit_engine::report;

use crate::args::{Format, Global, Inspect};
use crate::configuration;
use crate::exit::Exit;
use crate::fetch::Lazy;
use crate::output::{Failure, Output};
use crate::render::inspect;
use crate::render::style::Style;
use crate::source::{analyse, read_source};

/// Shows what one binary can do.
pub(crate) fn run(command: &Inspect, global: &Global, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let configuration = configuration::read(global)?;
    let fetch =
        Lazy { flags: &command.registry, configuration: &configuration, output, trusted: None };
    let bytes = read_source(&command.source, configuration.limits.max_component_bytes, &fetch)?;
    let options = ReadOptions {
        code: if command.check_code { CodeCheck::Validate } else { CodeCheck::Skip },
        hints: HintScan::Collect,
    };
    let name = match ImageSource::parse(&command.source) {
        ImageSource::File(path) => path,
        ImageSource::Oci(_)
        | ImageSource::Layout { .. }
        | ImageSource::Artifact(_)
        | ImageSource::Invalid(_) => command.source.clone(),
    };
    let loaded =
        analyse(&name, &bytes, (&configuration.limits, options), &configuration.catalogue)?;
    if command.wit {
        if loaded.component.kind == Kind::CoreModule {
            let help = "only components have a world; `ambit inspect` lists a module's imports";
            let message = format!("{name} is a core module");
            return Err(Failure::new("wit-unavailable", message, Some(help.to_owned())));
        }
        output.answer(&world(&name, &bytes)?)?;
        return Ok(Exit::Done);
    }
    let document = report::inspect(&name, &loaded.component, &loaded.capabilities);
    if output.format == Format::Json {
        output.json(&document)?;
    } else {
        let style = Style::new(output.colored());
        output.answer(&inspect::human(&document, &configuration.catalogue, style))?;
    }
    Ok(Exit::Done)
}

/// Prints the component's world. The decoder sees only valid components, and still refuses or
/// breaks on some; the capability report doesn't depend on it.
fn world(name: &str, bytes: &[u8]) -> Result<String, Failure> {
    let help = "the report without `--wit` doesn't depend on this printer".to_owned();
    let unavailable = |message: String| {
        Failure::new("wit-unavailable", format!("{name}: {message}"), Some(help.clone()))
    };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let printed = catch_unwind(AssertUnwindSafe(|| {
        let decoded = wit_component::decode(bytes).map_err(|error| format!("{error:#}"))?;
        let mut printer = wit_component::WitPrinter::default();
        printer
            .print(decoded.resolve(), decoded.package(), &[])
            .map_err(|error| format!("{error:#}"))?;
        Ok(printer.output.to_string())
    }));
    std::panic::set_hook(hook);
    match printed {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(message)) => Err(unavailable(message)),
        Err(_) => Err(unavailable("the WIT printer broke down on it".to_owned())),
    }
}
