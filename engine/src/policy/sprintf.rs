//! `sprintf` with capped width: the engine's own allocates whatever a format asks for.

use std::fmt::Write as _;

use regorus::Value;

/// The widest field, and the most digits behind a point.
const MAX_WIDTH: usize = 1_000;

/// The longest result in bytes.
const MAX_RESULT: usize = 1 << 20;

#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// Formats as Go's `fmt.Sprintf` does for the verbs that Rego documents: `%v %s %d %q %t %x %X %o
/// %b %e %f %g %%`, with flags `-+#0`, width and precision up to 1 000.
pub(super) fn sprintf(args: &[Value]) -> Result<Value, String> {
    let format = args.first().and_then(|value| value.as_string().ok());
    let format = format.ok_or("sprintf: the format must be a string")?;
    let values = args.get(1).and_then(|value| value.as_array().ok());
    let values = values.ok_or("sprintf: the values must be an array")?;
    let mut values = values.iter();
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if out.len() > MAX_RESULT {
            return Err(format!("sprintf: more than {MAX_RESULT} bytes"));
        }
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = Spec::default();
        while let Some(flag) = chars.next_if(|c| "-+# 0".contains(*c)) {
            match flag {
                '-' => spec.left = true,
                '+' => spec.plus = true,
                '#' => spec.alternate = true,
                '0' => spec.zero = true,
                _ => {}
            }
        }
        spec.width = number(&mut chars)?.unwrap_or(0);
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(number(&mut chars)?.unwrap_or(0));
        }
        match chars.next() {
            Some('%') => out.push('%'),
            Some(verb) => {
                let Some(value) = values.next() else {
                    let _ = write!(out, "%!{verb}(MISSING)");
                    continue;
                };
                let text = field(verb, value, &spec)?;
                pad(&mut out, &text, &spec);
            }
            None => out.push_str("%!(NOVERB)"),
        }
    }
    let rest: Vec<String> = values.map(plain).collect();
    if !rest.is_empty() {
        let _ = write!(out, "%!(EXTRA {})", rest.join(", "));
    }
    Ok(Value::from(out))
}

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, String> {
    let mut found = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = usize::try_from(digit.to_digit(10).unwrap_or(0)).unwrap_or(0);
        let value = found.unwrap_or(0_usize).saturating_mul(10).saturating_add(digit);
        if value > MAX_WIDTH {
            return Err(format!("sprintf: a width is 0 to {MAX_WIDTH}"));
        }
        found = Some(value);
    }
    Ok(found)
}

/// The value as `%v` prints it: text without quotes, everything else as JSON.
fn plain(value: &Value) -> String {
    match value.as_string() {
        Ok(text) => text.to_string(),
        Err(_) => value.to_string(),
    }
}

fn field(verb: char, value: &Value, spec: &Spec) -> Result<String, String> {
    let wrong = || format!("%!{verb}({})", plain(value));
    let sign = |n: i64| if spec.plus && n >= 0 { "+" } else { "" };
    Ok(match verb {
        'v' | 's' => {
            let text = plain(value);
            match spec.precision {
                Some(precision) => text.chars().take(precision).collect(),
                None => text,
            }
        }
        'q' => serde_json::to_string(&plain(value)).map_err(|error| error.to_string())?,
        't' => value.as_bool().map_or_else(|_| wrong(), bool::to_string),
        'd' => match value.as_i64() {
            Ok(n) => format!("{}{n}", sign(n)),
            Err(_) if value.as_f64().is_ok() => plain(value),
            Err(_) => wrong(),
        },
        'x' | 'X' | 'o' | 'b' => match (value.as_i64(), verb) {
            (Ok(n), 'x') => format!("{}{n:x}", if spec.alternate { "0x" } else { "" }),
            (Ok(n), 'X') => format!("{}{n:X}", if spec.alternate { "0X" } else { "" }),
            (Ok(n), 'o') => format!("{n:o}"),
            (Ok(n), _) => format!("{n:b}"),
            (Err(_), 'x') => plain(value).bytes().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            }),
            (Err(_), _) => wrong(),
        },
        'e' | 'f' | 'g' | 'F' => match value.as_f64() {
            Ok(n) => match (verb, spec.precision) {
                ('e', precision) => format!("{n:.*e}", precision.unwrap_or(6)),
                ('g', _) => format!("{n}"),
                (_, precision) => format!("{n:.*}", precision.unwrap_or(6)),
            },
            Err(_) => wrong(),
        },
        _ => wrong(),
    })
}

fn pad(out: &mut String, text: &str, spec: &Spec) {
    let missing = spec.width.saturating_sub(text.chars().count());
    if spec.left {
        out.push_str(text);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if spec.zero && text.starts_with(|c: char| c.is_ascii_digit()) {
        out.extend(std::iter::repeat_n('0', missing));
        out.push_str(text);
    } else {
        out.extend(std::iter::repeat_n(' ', missing));
        out.push_str(text);
    }
}
