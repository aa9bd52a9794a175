//! A clock moved by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use claimant_core::{Clock, Timestamp};

/// When tests take place: far enough ahead that no real TTL process deletes their records.
pub const TEST_EPOCH: Timestamp = Timestamp::from_millis(4_102_444_800_000);

/// A clock that goes with Tokio's time, and can be moved besides. Clones show the same time.
///
/// On Tokio's paused time (`#[tokio::test(start_paused = true)]`, Tokio's feature `test-util`) it stands still while nothing waits.
#[derive(Debug, Clone)]
pub struct MovableClock {
    start: tokio::time::Instant,
    base_ms: Arc<AtomicU64>,
}

impl MovableClock {
    /// Returns a clock that shows [`TEST_EPOCH`] now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: tokio::time::Instant::now(), base_ms: Arc::new(AtomicU64::new(TEST_EPOCH.as_millis())) }
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.base_ms.fetch_add(millis(by), Ordering::SeqCst);
    }

    /// Moves the clock back.
    pub fn retreat(&self, by: Duration) {
        self.base_ms.fetch_sub(millis(by), Ordering::SeqCst);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("tests stay within some years")
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.base_ms.load(Ordering::SeqCst)).plus(self.start.elapsed())
    }
}
