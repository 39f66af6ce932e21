//! The bounds of one instance, and what is said when one is met.

use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The bounds of each instance of a component. A document or flag may lower each, and raise it up
/// to the cap that its field names.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Limits {
    /// Wall time of instantiation, the call, and the body that it streams.
    pub wall: Duration,
    /// CPU time of the instance's calls, looked at each [`TICK`](crate::engine::TICK).
    pub cpu: Duration,
    /// Bytes of all linear memories and tables together.
    pub memory_bytes: u64,
    /// Core instances, memories and tables, each.
    pub instances: usize,
    /// Handles in the guest's tables and, apart from them, in the host's.
    pub handles: usize,
    /// Bytes that one call copies out of the guest.
    pub copy_bytes: usize,
    /// Bytes that standard output and error take together.
    pub output_bytes: u64,
    /// Lines of standard output, error and logs.
    pub log_lines: u64,
    /// Bytes of one random read.
    pub random_bytes: u64,
    /// Bytes of the headers of one message.
    pub header_bytes: usize,
    /// Bytes of a request's body, either way.
    pub request_body_bytes: u64,
    /// Bytes of a response's body, either way.
    pub response_body_bytes: u64,
    /// Outgoing requests that are under way at once, of one component.
    pub requests_in_flight: usize,
    /// Outgoing requests of one instance.
    pub requests: u64,
    /// Time of one outgoing request, from the look-up to the end of the body.
    pub request_time: Duration,
    /// Open files and folders of one instance.
    pub descriptors: usize,
    /// Entries of all listings that one instance has open.
    pub listing: usize,
    /// Bytes that one instance writes into folders.
    pub written_bytes: u64,
    /// Calls of one component that run at once.
    pub concurrency: usize,
    /// Calls that wait for a free place.
    pub queue: usize,
    /// Threads that compile at once.
    pub compile_threads: usize,
    /// Time of one compilation.
    pub compile_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(10),
            memory_bytes: 256 * MIB,
            instances: 64,
            handles: 16 * 1024,
            copy_bytes: 16 * 1024 * 1024,
            output_bytes: 64 * MIB,
            log_lines: 100_000,
            random_bytes: 64 * 1024,
            header_bytes: 64 * 1024,
            request_body_bytes: 16 * MIB,
            response_body_bytes: 64 * MIB,
            requests_in_flight: 64,
            requests: 10_000,
            request_time: Duration::from_secs(30),
            descriptors: 256,
            listing: 100_000,
            written_bytes: 1024 * MIB,
            concurrency: 100,
            queue: 1_000,
            compile_threads: 2,
            compile_time: Duration::from_secs(300),
        }
    }
}

/// Why a bound can't be set.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// There is no such bound.
    #[error("there is no limit `{0}`")]
    Unknown(String),
    /// The value can't be read.
    #[error("`{value}` is no {kind}")]
    Value {
        /// The value as written.
        value: String,
        /// What it has to be.
        kind: &'static str,
    },
    /// The value is over what this executor holds anybody to.
    #[error("`{name}` may be at most {cap}")]
    OverCap {
        /// The bound.
        name: String,
        /// Its cap.
        cap: String,
    },
}

impl LimitError {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "run-limit"
    }

    /// Returns what to do.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Unknown(_) => format!("it is one of {}", Limits::NAMES.join(", ")),
            Self::Value { kind: TIME, .. } => "write it like `30s`, `500ms` or `5m`".to_owned(),
            Self::Value { .. } => "write it like `1000`, `64Ki` or `256Mi`".to_owned(),
            Self::OverCap { .. } => "choose a lower value".to_owned(),
        }
    }
}

const TIME: &str = "time";
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

impl Limits {
    /// The names that [`set`](Self::set) knows.
    pub const NAMES: [&'static str; 21] = [
        "wallTime",
        "cpuTime",
        "memory",
        "instances",
        "handles",
        "copy",
        "output",
        "logLines",
        "random",
        "headers",
        "requestBody",
        "responseBody",
        "requestsInFlight",
        "requests",
        "requestTime",
        "descriptors",
        "listing",
        "written",
        "concurrency",
        "queue",
        "compileTime",
    ];

    /// Sets one bound by its name: a time as `30s`, `500ms`, `5m` or `1h`; else a number with an
    /// optional `Ki`, `Mi` or `Gi` (powers of 1024).
    ///
    /// # Errors
    ///
    /// [`LimitError`] for another name, a value that can't be read, zero, or one over the cap: a
    /// day for times, 4 GiB for memory, 64 GiB for other bytes, a million for counts.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), LimitError> {
        const GIB: u64 = 1024 * 1024 * 1024;
        const MILLION: u64 = 1_000_000;
        let time = || time(name, value);
        let number = |cap: u64| number(name, value, cap);
        let size = |cap: u64| number(cap).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        match name {
            "wallTime" => self.wall = time()?,
            "cpuTime" => self.cpu = time()?,
            "memory" => self.memory_bytes = number(4 * GIB)?,
            "instances" => self.instances = size(1_000)?,
            "handles" => self.handles = size(MILLION)?,
            "copy" => self.copy_bytes = size(GIB)?,
            "output" => self.output_bytes = number(64 * GIB)?,
            "logLines" => self.log_lines = number(1_000 * MILLION)?,
            "random" => self.random_bytes = number(64 * 1024 * 1024)?,
            "headers" => self.header_bytes = size(1024 * 1024)?,
            "requestBody" => self.request_body_bytes = number(64 * GIB)?,
            "responseBody" => self.response_body_bytes = number(64 * GIB)?,
            "requestsInFlight" => self.requests_in_flight = size(10_000)?,
            "requests" => self.requests = number(1_000 * MILLION)?,
            "requestTime" => self.request_time = time()?,
            "descriptors" => self.descriptors = size(10_000)?,
            "listing" => self.listing = size(10 * MILLION)?,
            "written" => self.written_bytes = number(1024 * GIB)?,
            "concurrency" => self.concurrency = size(10_000)?,
            "queue" => self.queue = size(100_000)?,
            "compileTime" => self.compile_time = time()?,
            _ => return Err(LimitError::Unknown(name.to_owned())),
        }
        Ok(())
    }
}

impl Limits {
    /// Reads a size as limits are written: a number of bytes, or one with `Ki`, `Mi` or `Gi`.
    ///
    /// # Errors
    ///
    /// [`LimitError`] if it is none, zero, or over 1 TiB.
    pub fn bytes(value: &str) -> Result<u64, LimitError> {
        number("size", value, 1 << 40)
    }
}

fn time(name: &str, value: &str) -> Result<Duration, LimitError> {
    let bad = || LimitError::Value { value: value.to_owned(), kind: TIME };
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at_checked(digits).ok_or_else(bad)?;
    let number: u64 = number.parse().map_err(|_| bad())?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(bad()),
    };
    let time = Duration::from_millis(number.checked_mul(factor).ok_or_else(bad)?);
    if time.is_zero() {
        return Err(bad());
    }
    if time > MAX_TIME {
        return Err(LimitError::OverCap { name: name.to_owned(), cap: "24h".to_owned() });
    }
    Ok(time)
}

fn number(name: &str, value: &str, cap: u64) -> Result<u64, LimitError> {
    let bad = || LimitError::Value { value: value.to_owned(), kind: "number" };
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at_checked(digits).ok_or_else(bad)?;
    let number: u64 = number.parse().map_err(|_| bad())?;
    let shift = match unit {
        "" => 0,
        "Ki" => 10,
        "Mi" => 20,
        "Gi" => 30,
        _ => return Err(bad()),
    };
    let number = number.checked_mul(1 << shift).filter(|number| *number > 0).ok_or_else(bad)?;
    if number > cap {
        return Err(LimitError::OverCap { name: name.to_owned(), cap: cap.to_string() });
    }
    Ok(number)
}

/// The bound that ended an instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Trip {
    /// [`Limits::wall`].
    Wall(Duration),
    /// [`Limits::cpu`].
    Cpu(Duration),
    /// [`Limits::memory_bytes`].
    Memory(u64),
    /// [`Limits::instances`].
    Instances(usize),
    /// [`Limits::handles`].
    Handles(usize),
    /// [`Limits::copy_bytes`].
    Copy(usize),
    /// [`Limits::output_bytes`] or [`Limits::log_lines`], or too many empty writes.
    Output,
    /// [`Limits::requests`].
    Requests(u64),
    /// [`Limits::request_body_bytes`] or [`Limits::response_body_bytes`].
    Body(u64),
    /// [`Limits::descriptors`].
    Descriptors(usize),
    /// [`Limits::listing`].
    Listing(usize),
    /// [`Limits::written_bytes`].
    Written(u64),
    /// The run was told to stop.
    Stopped,
}

impl Trip {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Wall(_) => "limit-wall-time",
            Self::Cpu(_) => "limit-cpu-time",
            Self::Memory(_) => "limit-memory",
            Self::Instances(_) => "limit-instances",
            Self::Handles(_) => "limit-handles",
            Self::Copy(_) => "limit-copy",
            Self::Output => "limit-output",
            Self::Requests(_) => "limit-requests",
            Self::Body(_) => "limit-body",
            Self::Descriptors(_) => "limit-descriptors",
            Self::Listing(_) => "limit-listing",
            Self::Written(_) => "limit-written",
            Self::Stopped => "run-stopped",
        }
    }

    /// Returns what raises the bound.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::Wall(_) => "`--timeout` raises it",
            Self::Cpu(_) => "`--cpu-time` raises it",
            Self::Memory(_) => "`--memory` raises it",
            Self::Stopped => "start it again",
            Self::Instances(_)
            | Self::Handles(_)
            | Self::Copy(_)
            | Self::Output
            | Self::Requests(_)
            | Self::Body(_)
            | Self::Descriptors(_)
            | Self::Listing(_)
            | Self::Written(_) => "`run.limits` in `ambit.yaml` raises it",
        }
    }
}

impl fmt::Display for Trip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wall(limit) => write!(f, "it took longer than {limit:?}"),
            Self::Cpu(limit) => write!(f, "it used more than {limit:?} of CPU time"),
            Self::Memory(limit) => write!(f, "it asked for more than {limit} bytes of memory"),
            Self::Instances(limit) => {
                write!(f, "it has more than {limit} core instances, memories or tables")
            }
            Self::Handles(limit) => write!(f, "it held more than {limit} handles"),
            Self::Copy(limit) => write!(f, "one call copied more than {limit} bytes"),
            Self::Output => f.write_str("it wrote more than its output may hold"),
            Self::Requests(limit) => write!(f, "it made more than {limit} requests"),
            Self::Body(limit) => write!(f, "a body was larger than {limit} bytes"),
            Self::Descriptors(limit) => write!(f, "it opened more than {limit} files at once"),
            Self::Listing(limit) => write!(f, "it listed more than {limit} entries at once"),
            Self::Written(limit) => write!(f, "it wrote more than {limit} bytes to folders"),
            Self::Stopped => f.write_str("the run was told to stop"),
        }
    }
}

/// The first bound that an instance met, shared by everything that can end it.
#[derive(Clone, Debug, Default)]
pub struct TripCell(Arc<OnceLock<Trip>>);

impl TripCell {
    /// Notes a bound; the first one stays.
    pub fn set(&self, trip: Trip) {
        // A second bound is a consequence of the first, so it isn't news.
        let _ = self.0.set(trip);
    }

    /// Returns the first bound that was met.
    #[must_use]
    pub fn get(&self) -> Option<Trip> {
        self.0.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_sets_a_bound_and_only_one() {
        for name in Limits::NAMES {
            let mut limits = Limits::default();
            let value = if name.ends_with("Time") { "7ms" } else { "7" };
            assert_eq!(limits.set(name, value), Ok(()), "{name}");
            assert_ne!(limits, Limits::default(), "{name}");
        }
    }

    #[test]
    fn units_count() {
        let mut limits = Limits::default();
        limits.set("memory", "64Mi").expect("a size");
        limits.set("wallTime", "5m").expect("a time");
        assert_eq!((limits.memory_bytes, limits.wall.as_secs()), (64 << 20, 300));
    }

    #[test]
    fn what_cannot_be_read_or_is_over_the_cap_is_refused() {
        let mut limits = Limits::default();
        for (name, value) in [
            ("memory", ""),
            ("memory", "0"),
            ("memory", "-1"),
            ("memory", "64MB"),
            ("memory", "5Gi"),
            ("memory", "99999999999999999999"),
            ("memory", "18014398509481984Ki"),
            ("wallTime", "30"),
            ("wallTime", "0s"),
            ("wallTime", "25h"),
            ("wall", "1s"),
        ] {
            assert!(limits.set(name, value).is_err(), "{name}={value}");
        }
        assert_eq!(limits, Limits::default());
    }
}
