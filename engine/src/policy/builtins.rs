//! Builtins that are replaced: those that allocate without bound get a cap, and those that read a
//! clock or random numbers are refused.

use regorus::{Engine, Value};

use super::sprintf;

/// The most elements that a builtin may make.
const MAX_ELEMENTS: i64 = 65_536;

/// The widest shift.
const MAX_SHIFT: i64 = 1_024;

fn integer(value: Option<&Value>, name: &str) -> Result<i64, String> {
    value
        .and_then(|value| value.as_i64().ok())
        .ok_or_else(|| format!("{name}: expected an integer"))
}

fn range(name: &str, args: &[Value], step: i64) -> Result<Value, String> {
    let start = integer(args.first(), name)?;
    let end = integer(args.get(1), name)?;
    let step = step.checked_abs().filter(|step| *step > 0);
    let step = step.ok_or_else(|| format!("{name}: the step must be positive"))?;
    let span = end.checked_sub(start).and_then(i64::checked_abs);
    let span = span.ok_or_else(|| format!("{name}: the range is too long"))?;
    let steps = span.checked_div(step).unwrap_or(i64::MAX);
    if steps >= MAX_ELEMENTS {
        return Err(format!("{name}: more than {MAX_ELEMENTS} elements"));
    }
    let mut values = Vec::new();
    for index in 0..=steps {
        let offset = index.saturating_mul(step);
        let value =
            if end >= start { start.saturating_add(offset) } else { start.saturating_sub(offset) };
        values.push(Value::from(value));
    }
    Ok(Value::from(values))
}

fn shift(name: &str, args: &[Value]) -> Result<Value, String> {
    let value = integer(args.first(), name)?;
    let by = integer(args.get(1), name)?;
    if !(0..=MAX_SHIFT).contains(&by) {
        return Err(format!("{name}: a shift is 0 to {MAX_SHIFT}"));
    }
    let by = u32::try_from(by).unwrap_or(u32::MAX);
    let shifted = value.checked_shl(by).filter(|shifted| by < 63 && shifted >> by == value);
    shifted.map(Value::from).ok_or_else(|| format!("{name}: the result doesn't fit 64 bits"))
}

/// Puts the replacements in place of the engine's own builtins.
pub(super) fn install(engine: &mut Engine) -> Result<(), String> {
    let mut add = |path: &str, nargs: u8, function: fn(&[Value]) -> Result<Value, String>| {
        engine
            .add_extension(
                path.to_owned(),
                nargs,
                Box::new(move |args: Vec<Value>| {
                    function(&args).map_err(|message| regorus_error(&message))
                }),
            )
            .map_err(|error| error.to_string())
    };
    add("numbers.range", 2, |args| range("numbers.range", args, 1))?;
    add("numbers.range_step", 3, |args| {
        range("numbers.range_step", args, integer(args.get(2), "numbers.range_step")?)
    })?;
    add("bits.lsh", 2, |args| shift("bits.lsh", args))?;
    add("sprintf", 2, sprintf::sprintf)?;
    add("net.cidr_expand", 1, |_| {
        Err("net.cidr_expand: not available; `net.cidr_contains` answers without listing"
            .to_owned())
    })?;
    for (name, nargs) in [("time.now_ns", 0), ("rand.intn", 2)] {
        add(name, nargs, |_| {
            Err("rules read no clock and no randomness; use `input.now`".to_owned())
        })?;
    }
    Ok(())
}

fn regorus_error(message: &str) -> anyhow::Error {
    anyhow::Error::msg(message.to_owned())
}
