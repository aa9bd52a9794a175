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

/// Returns the same for a column, where there is little room.
#[must_use]
pub fn age(time: Timestamp, now: Timestamp) -> String {
    match ahead(time, now) {
        Some(ahead) => format!("{ahead} ahead"),
        None => span(now.since(time).as_secs()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ahead_by_more_than_the_usual_margin_was_not_so_long_ago() {
        let now = Timestamp::from_millis(10_000_000);
        for (at_ms, told, in_column) in [
            (9_400_000, "10 min ago", "10 min"),
            (10_001_000, "0 s ago", "0 s"),
            (10_001_001, "1 s ahead of this machine's clock", "1 s ahead"),
            (13_600_000, "1 h ahead of this machine's clock", "1 h ahead"),
        ] {
            let at = Timestamp::from_millis(at_ms);
            assert_eq!((when(at, now).as_str(), age(at, now).as_str()), (told, in_column), "{at_ms}");
        }
    }
}
