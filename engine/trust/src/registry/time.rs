//! Time, waiting and chance, as an argument.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// A clock, a way to wait, and chance. Tests bring one that never really waits.
pub trait Timer: Send + Sync {
    /// Returns the time since some fixed moment; it never goes back.
    fn elapsed(&self) -> Duration;

    /// Returns the time of day, to read dates in answers by.
    fn now(&self) -> Timestamp;

    /// Waits.
    fn sleep(&self, pause: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Returns a number from 0 to 999 that other processes don't share, so that they spread out.
    fn chance(&self) -> u32;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemTimer {
    start: tokio::time::Instant,
}

impl Default for SystemTimer {
    fn default() -> Self {
        Self { start: tokio::time::Instant::now() }
    }
}

impl Timer for SystemTimer {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, pause: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn chance(&self) -> u32 {
        // Each `RandomState` has other keys, and nothing secret hangs on this number.
        let random = RandomState::new().build_hasher().finish();
        u32::try_from(random.checked_rem(1000).unwrap_or(0)).unwrap_or(0)
    }
}

/// Returns how long a `Retry-After` header asks to wait (RFC 9110, section 10.2.3): seconds, or a
/// date. A date in the past is no wait; what is neither is no answer.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.len() <= 10 && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    if text.len() > 40 {
        return None;
    }
    let at = DateTimeParser::new().parse_timestamp(text).ok()?;
    let seconds = at.as_second().saturating_sub(now.as_second());
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(retry_after("7", now), Some(Duration::from_secs(7)));
        let date = "Fri, 02 Jan 2026 03:04:15 GMT";
        assert_eq!(retry_after(date, now), Some(Duration::from_secs(10)));
        let past = "Thu, 01 Jan 2026 03:04:15 GMT";
        assert_eq!(retry_after(past, now), Some(Duration::ZERO));
        for odd in ["", "-1", "soon", "1.5", "99999999999", "Fri, 02 Jan 2026"] {
            assert_eq!(retry_after(odd, now), None, "{odd}");
        }
    }
}
