//! The clock: everything here that needs the time of day asks it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "the clock")]
pub(crate) fn wall_clock_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).expect("the year is below 500 million")
}

/// Returns the time of day in UTC, as `08:09:10.123`: what lines of logs begin with.
#[must_use]
pub fn time_of_day() -> String {
    time_of_day_at(wall_clock_ms())
}

/// Returns the time of day of this moment, in milliseconds since 1970, likewise.
#[must_use]
pub fn time_of_day_at(ms: u64) -> String {
    let seconds = ms / 1_000;
    format!("{:02}:{:02}:{:02}.{:03}", seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60, ms % 1_000)
}

#[cfg(test)]
mod tests {
    use super::time_of_day_at;

    #[test]
    fn times_of_day_begin_anew_each_day() {
        let day = 86_400_000;
        let rows = [(0, "00:00:00.000"), (day - 1, "23:59:59.999"), (day * 20_000 + 29_350_123, "08:09:10.123")];
        for (ms, wanted) in rows {
            assert_eq!(time_of_day_at(ms), wanted);
        }
    }
}
