//! What a plain scalar means.

use super::Value;

/// Returns the reading of a plain scalar by the core schema of YAML 1.2, with legacy booleans.
pub(super) fn resolve_plain(text: &str) -> Value {
    if is_null(text) {
        Value::Null
    } else if let Some(truth) = core_bool(text) {
        Value::Bool(truth)
    } else if let Some(reading) = legacy_bool(text) {
        Value::Legacy { text: text.to_owned(), reading }
    } else {
        number(text).unwrap_or_else(|| Value::String(text.to_owned()))
    }
}

/// Returns whether the core schema reads null.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Returns the boolean that the core schema reads.
pub(super) fn core_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Returns the boolean that go-yaml v2, and with it kubectl, reads from a word of YAML 1.1.
pub(super) fn legacy_bool(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Returns the number that the core schema reads.
pub(super) fn number(text: &str) -> Option<Value> {
    let first = text.bytes().next()?;
    if !matches!(first, b'0'..=b'9' | b'+' | b'-' | b'.') {
        return None;
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        return Some(Value::Float(f64::INFINITY.copysign(sign)));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Value::Float(f64::NAN));
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map(Value::Integer).ok().or_else(|| float(text));
    }
    is_decimal(unsigned).then(|| float(text))?
}

/// Reads digits of another base; what does not fit `i64` becomes the nearest float.
fn radix(digits: &str, base: u32) -> Option<Value> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    if let Ok(number) = i64::from_str_radix(digits, base) {
        return Some(Value::Integer(number));
    }
    let step = |sum: f64, c: char| sum * f64::from(base) + f64::from(c.to_digit(base).unwrap_or(0));
    let sum = digits.chars().fold(0.0, step);
    sum.is_finite().then_some(Value::Float(sum))
}

/// A number too large for a float stays text, as in go-yaml.
fn float(text: &str) -> Option<Value> {
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Float)
}

/// Whether `text` is `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`.
fn is_decimal(text: &str) -> bool {
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !(whole.is_empty() && fraction.is_empty());
    exponent_fits && has_digits && all_digits(whole) && all_digits(fraction)
}
