//! Calling one function of a component by hand, with arguments and result as WAVE text.
//!
//! WAVE is the Component Model's text for values (`wasm-tools`, crate `wasm-wave`).

use std::fmt::Write as _;

use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::wasm_wave::untyped::UntypedFuncCall;
use wasmtime::component::wasm_wave::writer::Writer;
use wasmtime::component::{ComponentExportIndex, Type, Val};

use crate::error::ExecutorError;
use crate::instance::{Call, ended, within};
use crate::links::{foreign, shallow};
use crate::program::Program;
use crate::stdio::Stdio;

/// The most bytes of a call's text.
const MAX_CALL: usize = 1024 * 1024;
/// The deepest nesting of a call's text; the parser is recursive.
const MAX_NESTING: usize = 64;
/// The most bytes of a result's text.
const MAX_RESULT: usize = 16 * 1024 * 1024;
/// How many functions a message names.
const MAX_CANDIDATES: usize = 12;

/// A function that a component exports.
struct Candidate {
    /// `None` for a function of the world itself.
    interface: Option<String>,
    function: String,
    ty: ComponentFunc,
    export: ComponentExportIndex,
}

impl Candidate {
    fn shown(&self) -> String {
        match &self.interface {
            Some(interface) => format!("{interface}#{}", self.function),
            None => self.function.clone(),
        }
    }

    /// Tells whether a name means this function: with the interface in full, without its version,
    /// by its last word, or the function's name alone.
    fn answers(&self, interface: Option<&str>, function: &str) -> bool {
        let matches = |wanted: &str| {
            let Some(full) = self.interface.as_deref() else { return false };
            let unversioned = full.split('@').next().unwrap_or(full);
            let last = unversioned.rsplit('/').next().unwrap_or(unversioned);
            [full, unversioned, last].contains(&wanted)
        };
        self.function == function && interface.is_none_or(matches)
    }
}

fn problem(code: &'static str, message: String, help: &str) -> ExecutorError {
    ExecutorError::Setup { code, message, help: help.to_owned() }
}

/// Calls a function in a new instance, and returns its result as WAVE; empty for none.
///
/// `text` is `FUNCTION(ARGUMENTS)`; the function is `interface#fn`, `ns:pkg/interface@version#fn`,
/// or `fn` alone where only one interface has it. All bounds of the component hold.
///
/// # Errors
///
/// [`ExecutorError::Setup`]: `invoke-call` for text that is no call or doesn't fit the function,
/// `invoke-function` if none or several are meant, `invoke-type` for a function that takes or
/// returns handles, `invoke-result` for a result that is too long.
/// [`ExecutorError::Tripped`], [`ExecutorError::Trapped`] and [`ExecutorError::Record`] as for a
/// command.
pub async fn call(program: &Program, stdio: &Stdio, text: &str) -> Result<String, ExecutorError> {
    let (interface, function, arguments) = split(text)?;
    let candidate = find(program, interface, function)?;
    let types: Vec<Type> = candidate.ty.params().map(|(_, ty)| ty).collect();
    let answers: Vec<Type> = candidate.ty.results().collect();
    for ty in types.iter().chain(&answers) {
        let what = foreign(ty).or_else(|| (!shallow(ty)).then_some("deep nesting"));
        if let Some(what) = what {
            let message =
                format!("`{}` has a type with {what}, which has no text", candidate.shown());
            return Err(problem("invoke-type", message, "call a function that takes values only"));
        }
    }
    // The parser takes a plain name only, and the function is known by now.
    let wrong = |reason: String| {
        let message = format!("`{}` can't be called so: {reason}", candidate.shown());
        let help = format!("it takes ({})", params(&candidate.ty));
        ExecutorError::Setup { code: "invoke-call", message, help }
    };
    let source = format!("f{arguments}");
    let parsed = UntypedFuncCall::parse(&source).map_err(|error| wrong(error.to_string()))?;
    let values: Vec<Val> =
        parsed.to_wasm_params(types.iter()).map_err(|error| wrong(error.to_string()))?;
    if values.len() != types.len() {
        return Err(wrong(format!("{} arguments are given", values.len())));
    }

    let scope = program.scope();
    let wall = scope.limits().wall;
    let number = scope.next_instance();
    let interface = candidate.interface.as_deref().unwrap_or("(world)");
    let told = Call::begin(scope, number, interface, &candidate.function)?;
    let mut store = program.store(stdio, number, wall);
    let (deadline, trip, cpu) = {
        let instance = &store.data().instance;
        (instance.deadline, instance.trip.clone(), instance.cpu.clone())
    };
    let mut results = vec![Val::Bool(false); answers.len()];
    let run = async {
        let instance = program.pre().instantiate_async(&mut store).await?;
        let function = instance
            .get_func(&mut store, candidate.export)
            .ok_or_else(|| wasmtime::Error::msg("the export isn't there"))?;
        function.call_async(&mut store, &values, &mut results).await
    };
    let outcome = within(deadline, (&trip, &cpu), wall, run).await;
    if let Err(error) = outcome {
        return Err(told.failed(ended(program, &trip, &error)));
    }
    told.end("ok", String::new());

    let mut written = Bounded::default();
    for value in &results {
        let result = Writer::new(&mut written).write_value(value);
        if result.is_err() {
            let message = format!("the result of `{}` can't be shown", candidate.shown());
            let help = "call a function with a shorter result of plain values";
            return Err(problem("invoke-result", message, help));
        }
    }
    Ok(written.0)
}

/// Text up to a bound.
#[derive(Default)]
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len().saturating_add(text.len()) > MAX_RESULT {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Splits `interface#fn(arguments)`.
fn split(text: &str) -> Result<(Option<&str>, &str, &str), ExecutorError> {
    let wrong = |reason: &str| {
        problem(
            "invoke-call",
            format!("the call {reason}"),
            "write `interface#function(arguments)`",
        )
    };
    let text = text.trim();
    if text.len() > MAX_CALL {
        return Err(wrong("is too long"));
    }
    let open = text.find('(').ok_or_else(|| wrong("has no `(`"))?;
    let (name, arguments) = text.split_at_checked(open).ok_or_else(|| wrong("has no `(`"))?;
    if !arguments.ends_with(')') {
        return Err(wrong("doesn't end with `)`"));
    }
    // Brackets inside strings count too, which errs on the safe side.
    let mut depth = 0_usize;
    for byte in arguments.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth = depth.saturating_add(1),
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(wrong("is nested too deeply"));
        }
    }
    let (interface, function) = match name.trim().split_once('#') {
        Some((interface, function)) => (Some(interface), function),
        None => (None, name.trim()),
    };
    if function.is_empty() || interface == Some("") {
        return Err(wrong("names no function"));
    }
    Ok((interface, function, arguments))
}

fn candidates(program: &Program) -> Vec<Candidate> {
    let engine = program.host().engine();
    let component = program.component();
    let mut found = Vec::new();
    for (name, export) in component.component_type().exports(engine) {
        let Some(at) = component.get_export_index(None, name) else { continue };
        match export.ty {
            ComponentItem::ComponentFunc(ty) => {
                found.push(Candidate {
                    interface: None,
                    function: name.to_owned(),
                    ty,
                    export: at,
                });
            }
            ComponentItem::ComponentInstance(instance) => {
                for (function, item) in instance.exports(engine) {
                    let inner = component.get_export_index(Some(&at), function);
                    if let (ComponentItem::ComponentFunc(ty), Some(inner)) = (item.ty, inner) {
                        found.push(Candidate {
                            interface: Some(name.to_owned()),
                            function: function.to_owned(),
                            ty,
                            export: inner,
                        });
                    }
                }
            }
            ComponentItem::CoreFunc(_)
            | ComponentItem::Module(_)
            | ComponentItem::Component(_)
            | ComponentItem::Type(_)
            | ComponentItem::Resource(_) => {}
        }
    }
    found
}

fn find(
    program: &Program,
    interface: Option<&str>,
    function: &str,
) -> Result<Candidate, ExecutorError> {
    let component = &program.scope().who().component;
    let all = candidates(program);
    let listed = names(&all);
    let mut meant: Vec<Candidate> =
        all.into_iter().filter(|candidate| candidate.answers(interface, function)).collect();
    let wanted = interface.map_or(function.to_owned(), |name| format!("{name}#{function}"));
    let wanted = crate::links::short(&wanted);
    if meant.len() > 1 {
        let message = format!("`{wanted}` of `{component}` may mean {}", names(&meant));
        return Err(problem("invoke-function", message, "name the interface in full"));
    }
    meant.pop().ok_or_else(|| {
        let message = if listed.is_empty() {
            format!("`{component}` exports no function")
        } else {
            format!("`{component}` exports no function `{wanted}`; it exports {listed}")
        };
        problem("invoke-function", message, "name one of those that it exports")
    })
}

fn names(candidates: &[Candidate]) -> String {
    let shown: Vec<String> = candidates
        .iter()
        .take(MAX_CANDIDATES)
        .map(|candidate| format!("`{}`", crate::links::short(&candidate.shown())))
        .collect();
    let mut text = shown.join(", ");
    if let Some(more) = candidates.len().checked_sub(MAX_CANDIDATES).filter(|more| *more > 0) {
        // Writing to a String can't fail.
        let _ = write!(text, " and {more} more");
    }
    text
}

fn params(ty: &ComponentFunc) -> String {
    let shown: Vec<String> = ty
        .params()
        .take(MAX_CANDIDATES)
        .map(|(name, ty)| format!("{name}: {}", crate::links::describe(&ty)))
        .collect();
    shown.join(", ")
}
