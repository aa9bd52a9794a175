//! When the invocation ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claimant_core::Timestamp;

/// A deadline before 2020 is ignored: `cargo lambda watch` 1.9 sends one in 1970, and `Context::default()` has zero.
/// A deadline that has just passed counts, and leaves no time.
const PLAUSIBLE_SINCE: Timestamp = Timestamp::from_millis(1_577_836_800_000);

/// Returns the deadline of each invocation; warns once if the runtime provides none.
#[derive(Debug)]
pub(crate) struct Deadlines {
    local_timeout: Duration,
    warned: AtomicBool,
}

impl Deadlines {
    pub(crate) fn new(local_timeout: Duration) -> Self {
        Self { local_timeout, warned: AtomicBool::new(false) }
    }

    /// Returns when the invocation ends, given the runtime's deadline in milliseconds since the epoch.
    pub(crate) fn of(&self, deadline_ms: u64, now: Timestamp) -> Timestamp {
        let deadline = Timestamp::from_millis(deadline_ms);
        if deadline >= PLAUSIBLE_SINCE {
            return deadline;
        }
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                deadline_ms,
                timeout_ms = u64::try_from(self.local_timeout.as_millis()).unwrap_or(u64::MAX),
                "the runtime provides no usable deadline, as under `cargo lambda watch`; using CLAIMANT_LOCAL_TIMEOUT_MS instead"
            );
        }
        now.plus(self.local_timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_deadline_before_2020_is_replaced() {
        let deadlines = Deadlines::new(Duration::from_secs(30));
        let now = Timestamp::from_millis(1_800_000_000_000);
        let later = now.plus(Duration::from_secs(30));
        for (given, wanted) in [
            (0, later),
            (600_000, later),
            (1_577_836_799_999, later),
            (now.as_millis() - 1, Timestamp::from_millis(now.as_millis() - 1)),
            (now.as_millis() + 5, Timestamp::from_millis(now.as_millis() + 5)),
        ] {
            assert_eq!(deadlines.of(given, now), wanted, "{given}");
        }
        assert!(deadlines.warned.load(Ordering::Relaxed));
    }
}
