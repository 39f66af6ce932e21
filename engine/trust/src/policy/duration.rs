//! Durations as policies write them: `90d`, `36h`, `1d12h`.

use std::time::Duration;

/// The longest duration: a hundred years of 365 days.
const MAX_SECONDS: u64 = 100 * 365 * 86_400;

/// A text that is no duration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no duration")]
pub struct DurationError(String);

impl DurationError {
    /// Returns what to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        "write whole weeks, days, hours, minutes or seconds, the larger first: `90d`, `36h`, `1d12h`"
    }
}

/// Reads a duration of at least one second.
///
/// # Errors
///
/// [`DurationError`]; units stand from larger to smaller, each at most once.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError(text.chars().take(40).collect());
    let mut units =
        [('w', 7 * 86_400_u64), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)].iter();
    let mut seconds = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
        let (digits, tail) = rest.split_at_checked(end).ok_or_else(error)?;
        let unit = tail.chars().next().ok_or_else(error)?;
        // The iterator goes on from where the unit before was found, so the order is held.
        let (_, each) = units.find(|(name, _)| *name == unit).ok_or_else(error)?;
        let count: u64 = digits.parse().map_err(|_| error())?;
        let part = count.checked_mul(*each).ok_or_else(error)?;
        seconds = seconds.checked_add(part).filter(|all| *all <= MAX_SECONDS).ok_or_else(error)?;
        rest = tail.get(unit.len_utf8()..).ok_or_else(error)?;
    }
    if seconds == 0 {
        return Err(error());
    }
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_days_and_their_like() {
        for (text, seconds) in [
            ("90d", 7_776_000),
            ("36h", 129_600),
            ("1d12h", 129_600),
            ("2w", 1_209_600),
            ("90s", 90),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "0d",
            "90",
            "d",
            "1.5d",
            "-1d",
            "1h1d",
            "1d1d",
            "90D",
            "1 d",
            "40000d",
            "99999999999999999999d",
            "1é",
        ] {
            assert!(parse_duration(text).is_err(), "`{text}` was accepted");
        }
    }
}
