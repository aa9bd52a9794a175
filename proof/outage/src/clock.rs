//! The wall clock on virtual time.

use claimant_core::{Clock, Timestamp};
use tokio::time::Instant;

/// An hour that no clock shows: 2100.
const EPOCH_MS: u64 = 4_102_444_800_000;

/// The wall clock of all processes, which goes with Tokio's time.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    start: Instant,
}

impl VirtualClock {
    /// Returns a clock that shows the year 2100 at `start`.
    #[must_use]
    pub fn new(start: Instant) -> Self {
        Self { start }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(EPOCH_MS).plus(self.start.elapsed())
    }
}
