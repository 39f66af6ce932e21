//! What the transparency log has to say before and after it is verified.

use std::time::SystemTime;

use jiff::Timestamp;
use sigstore_types::{KindVersion, TransparencyLogEntry};

use super::text::{Refusal, refuse};
use super::{LogEntry, LogEvidence, RejectCode, TimeSource, TrustRoot, VerifiedTime};
use crate::policy::LogRule;

/// What is to be verified of the log entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scope {
    /// Each entry, with its proof and promise.
    Entries,
    /// Only that entries are about this signature: none is asked for, and there is none, or one of
    /// a log that the root doesn't name.
    Consistency,
}

/// Compares the entries with the rule, before anything in them is verified.
pub(super) fn scope(
    entries: &[TransparencyLogEntry],
    rule: LogRule,
    root: &TrustRoot,
) -> Result<Scope, Refusal> {
    let missing = |message: &str| Err(refuse(RejectCode::TlogMissing, message));
    let unknown = entries.iter().find(|entry| !root.knows_log(entry.log_id.key_id.as_bytes()));
    let empty = |entry: &TransparencyLogEntry| {
        entry.inclusion_proof.is_none() && entry.inclusion_promise.is_none()
    };
    match rule {
        LogRule::Unasked if entries.is_empty() || unknown.is_some() => {
            return Ok(Scope::Consistency);
        }
        LogRule::Unasked => return Ok(Scope::Entries),
        LogRule::Proof | LogRule::ProofOrPromise => {}
    }
    if entries.is_empty() {
        return missing("it has no log entry");
    }
    if let Some(entry) = unknown {
        return Err(refuse(
            RejectCode::TlogMissing,
            format!(
                "its log entry is of log {}, which trust root `{}` doesn't name",
                entry.log_id.key_id.to_base64(),
                root.name()
            ),
        ));
    }
    if entries.iter().any(empty) {
        return missing("a log entry has neither a proof nor a promise of inclusion");
    }
    if rule == LogRule::Proof && entries.iter().all(|entry| entry.inclusion_proof.is_none()) {
        return missing("its log entry has a promise of inclusion, and a proof is asked for");
    }
    Ok(Scope::Entries)
}

/// Returns a time of the library, which has another version of the crate for times. Both have the
/// same range; a time that didn't fit would be one that is still to come, which is refused.
pub(super) fn ours(time: impl Into<SystemTime>) -> Timestamp {
    Timestamp::try_from(time.into()).unwrap_or(Timestamp::MAX)
}

/// Tells whether an entry is of the second version of the log, which vouches for no time.
pub(super) fn timeless(entries: &[TransparencyLogEntry]) -> bool {
    entries.iter().any(|entry| entry.kind_version == KindVersion::HashedRekordV002)
}

/// Returns the times that the log vouches for by its promise.
pub(super) fn times(entries: &[TransparencyLogEntry]) -> impl Iterator<Item = Timestamp> {
    entries
        .iter()
        .filter(|entry| entry.kind_version != KindVersion::HashedRekordV002)
        .filter(|entry| entry.inclusion_promise.is_some())
        .filter_map(|entry| entry.integrated_time)
        .map(ours)
}

/// Describes the best of entries that are verified.
pub(super) fn best(entries: &[TransparencyLogEntry]) -> Option<LogEntry> {
    let proven = entries.iter().find(|entry| entry.inclusion_proof.is_some());
    let entry =
        proven.or_else(|| entries.iter().find(|entry| entry.inclusion_promise.is_some()))?;
    Some(LogEntry {
        log_id: entry.log_id.key_id.to_base64(),
        index: entry.log_index.get(),
        evidence: if proven.is_some() { LogEvidence::Proof } else { LogEvidence::Promise },
    })
}

/// Says who vouches for each of the library's times, and refuses times that are to come.
pub(super) fn sourced(
    found: &[Timestamp],
    from_log: &[Timestamp],
    now: Timestamp,
) -> Result<Vec<VerifiedTime>, Refusal> {
    let mut rest = from_log.to_vec();
    let mut times: Vec<VerifiedTime> = found
        .iter()
        .map(|time| {
            let source = match rest.iter().position(|logged| logged == time) {
                Some(at) => {
                    rest.swap_remove(at);
                    TimeSource::Log
                }
                None => TimeSource::TimestampAuthority,
            };
            VerifiedTime { time: *time, source }
        })
        .collect();
    if let Some(late) = times.iter().find(|time| time.time > now) {
        return Err(refuse(
            RejectCode::Time,
            format!("it was signed at {}, which is still to come", late.time),
        ));
    }
    times.sort_unstable();
    times.dedup();
    Ok(times)
}
