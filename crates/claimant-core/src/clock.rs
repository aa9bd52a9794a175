//! Time as an argument.

use std::fmt;
use std::time::Duration;

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Returns the time this many milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded up: the unit in which stores expire records.
    #[must_use]
    pub const fn as_secs_rounded_up(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// Returns `self` plus `duration`, at most the largest timestamp.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// Returns `self` minus `duration`, at least the epoch.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// Returns the time as `2026-11-22T09:30:00Z`, without its milliseconds.
    #[must_use]
    pub fn to_utc(self) -> String {
        let (days, s) = (self.0 / 86_400_000, self.0 / 1_000 % 86_400);
        let (year, month, day) = date(days);
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", s / 3_600, s / 60 % 60, s % 60)
    }

    /// Returns how long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// Returns year, month and day of the day that is this many days after 1 January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that leap days are last; 1 March of the year 0 is 719,468 days before the epoch.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + later, month, day)
}

/// Returns a duration in whole milliseconds, at most `u64::MAX` of them.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Where the time comes from. Nothing else in claimant reads a clock.
///
/// A clock may jump, in either direction, at any time: safety never depends on it (S1–S10 of the protocol).
pub trait Clock: Send + Sync + 'static {
    /// Returns the time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock that everything else asks")]
    fn now(&self) -> Timestamp {
        // A clock set before 1970 reads as the epoch: every lease then looks live, which wastes time but loses nothing.
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(millis(since_epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let t = Timestamp::from_millis(1_001);
        assert_eq!(t.as_secs_rounded_up(), 2);
        assert_eq!(Timestamp::from_millis(1_000).as_secs_rounded_up(), 1);
        assert_eq!(t.plus(Duration::MAX), Timestamp::from_millis(u64::MAX));
        assert_eq!(t.minus(Duration::MAX), Timestamp::from_millis(0));
        assert_eq!(Timestamp::from_millis(5).since(t), Duration::ZERO);
        assert_eq!(t.since(Timestamp::from_millis(1)), Duration::from_secs(1));
    }

    #[test]
    fn dates_follow_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_795_339_845, "2026-11-22T09:30:45Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Timestamp::from_millis(seconds * 1_000 + 999).to_utc(), text);
        }
        assert!(Timestamp::from_millis(u64::MAX).to_utc().ends_with('Z'));
    }

    #[test]
    fn the_systems_clock_counts_from_1970() {
        let written = Timestamp::from_millis(1_700_000_000_000);
        let now = SystemClock.now();
        assert!(written < now && now < written.plus(Duration::from_secs(100 * 366 * 86_400)), "{now}");
    }
}
