//! A clock that stands still until it is told to move.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use claimant_core::{Clock, Timestamp};

/// When tests take place: far enough ahead that no real TTL process deletes their records.
pub const TEST_EPOCH: Timestamp = Timestamp::from_millis(4_102_444_800_000);

/// A clock set by hand. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(now.as_millis())))
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// A clock that goes with Tokio's time, so that a test with paused time moves both at once.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    start: tokio::time::Instant,
}

impl VirtualClock {
    /// A clock that shows [`TEST_EPOCH`] now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: tokio::time::Instant::now() }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        TEST_EPOCH.plus(self.start.elapsed())
    }
}
