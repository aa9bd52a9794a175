//! Times as people read them.

use std::time::Duration;

use claimant_core::Timestamp;
use claimant_core::limits::SKEW_DEFAULT_MS;

/// Returns how long ago this was; or how far it is ahead, where whoever wrote it has a clock that is ahead by more than the usual margin.
#[must_use]
pub fn when(time: Timestamp, now: Timestamp) -> String {
    match ahead(time, now) {
        Some(ahead) => format!("{ahead} ahead of this machine's clock"),
        None => format!("{} ago", span(now.since(time).as_secs())),
    }
}

/// Returns by how much this is ahead, where that is more than the usual margin.
pub(super) fn ahead(time: Timestamp, now: Timestamp) -> Option<String> {
    let ahead = time.since(now);
    (ahead > Duration::from_millis(SKEW_DEFAULT_MS)).then(|| span(ahead.as_secs()))
}

/// Returns a time span in the two largest units that it has: `3 d 4 h`.
pub fn span(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(size, _)| seconds >= *size).unwrap_or(units.len() - 1);
    let (size, unit) = units[first];
    let rest = units.get(first + 1).map(|(smaller, unit)| (seconds % size / smaller, unit)).filter(|(n, _)| *n > 0);
    match rest {
        Some((n, smaller)) => format!("{} {unit} {n} {smaller}", seconds / size),
        None => format!("{} {unit}", seconds / size),
    }
}
