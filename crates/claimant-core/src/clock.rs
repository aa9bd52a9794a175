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
    fn the_systems_clock_counts_from_1970() {
        let written = Timestamp::from_millis(1_700_000_000_000);
        let now = SystemClock.now();
        assert!(written < now && now < written.plus(Duration::from_secs(100 * 366 * 86_400)), "{now}");
    }
}
