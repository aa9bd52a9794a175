//! The time of one call to a store, and the waits between its tries.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::limits::{STORE_BUDGET_MAX_MS, STORE_TRY_BASE_MS};
use crate::meter::Meter;
use crate::store::{Call, StoreError};

/// How often a wait is doubled at most.
const DOUBLINGS_MAX: u32 = 7;

/// When a call to a store must end, and where its requests are counted: shared by all tries of the call.
#[derive(Debug, Clone, Copy)]
pub struct Budget<'a> {
    until: Instant,
    meter: &'a Meter,
    failed: bool,
}

impl<'a> Budget<'a> {
    /// Returns the budget of a call that begins now: the call's time, at most as long as an invocation can last.
    #[must_use]
    pub fn of(call: Call<'a>) -> Self {
        let within = call.within.min(Duration::from_millis(STORE_BUDGET_MAX_MS));
        Self { until: Instant::now() + within, meter: call.meter, failed: false }
    }

    /// Returns the same budget after a try that failed.
    #[must_use]
    pub const fn after_failure(self) -> Self {
        Self { failed: true, ..self }
    }

    /// Returns whether an earlier try failed, so that a connection may be broken.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns when the call's time is over.
    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Returns the time that is left.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Returns where the call's requests are counted.
    #[must_use]
    pub const fn meter(&self) -> &'a Meter {
        self.meter
    }

    /// Counts and sends a request, and waits for its answer as long as time is left; then drops it, so that clients need no
    /// timeout of their own for each request. Without time left, it is not sent.
    ///
    /// # Errors
    /// When no answer came in time. The request may have been executed.
    pub async fn send<O>(&self, request: impl Future<Output = O>) -> Result<O, StoreError> {
        let left = self.left();
        if left.is_zero() {
            return Err(StoreError::no_answer(left));
        }
        self.meter.request();
        timeout_at(self.until, request).await.map_err(|_| StoreError::no_answer(left))
    }

    /// Waits before retry number `retry` (from 1): twice as long each time, with jitter over the upper half. Returns whether there is
    /// time for the retry; where the wait would take all that is left, at once. No wait ends with the call: a caller whose process stood
    /// still meanwhile would give up at it, and what this call knows by then with it.
    #[must_use]
    pub async fn wait(&self, retry: u32) -> bool {
        let left = self.left();
        let wait = retry_wait(retry, left);
        if wait >= left {
            return false;
        }
        tokio::time::sleep(wait).await;
        !self.left().is_zero()
    }
}

/// Returns that wait, at most what is left.
///
/// The jitter comes from the last digits of the time left, not from a random generator: callers that failed together
/// are nanoseconds apart, and on a paused clock the same run has the same waits.
#[must_use]
fn retry_wait(retry: u32, left: Duration) -> Duration {
    let half = (STORE_TRY_BASE_MS << retry.saturating_sub(1).min(DOUBLINGS_MAX)) / 2;
    Duration::from_millis(half + u64::from(left.subsec_nanos()) % half).min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_are_spread_over_their_upper_half() {
        let rows =
            [(1, 0, 12), (1, 5, 17), (1, 11, 23), (1, 12, 12), (2, 30, 30), (3, 1, 49), (8, 0, 1_536), (9, 0, 1_536)];
        for (retry, nanos, wanted_ms) in rows {
            let wait = retry_wait(retry, Duration::new(7, nanos));
            assert_eq!(wait, Duration::from_millis(wanted_ms), "retry {retry}, {nanos} ns");
        }
        assert_eq!(retry_wait(8, Duration::from_millis(3)), Duration::from_millis(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_ends_with_its_call_and_knows_whether_a_try_failed() {
        let meter = Meter::default();
        let budget = Budget::of(Call { within: Duration::from_millis(30), meter: &meter });
        assert!(!budget.has_failed() && budget.after_failure().has_failed());
        assert!(budget.wait(1).await && budget.left() < Duration::from_millis(19), "{:?}", budget.left());
        // As for a process that stood still till then: it polls once, since its own time is over, too.
        for _ in ["too little is left", "nothing is left"] {
            assert_eq!(timeout_at(Instant::now(), budget.wait(9)).await, Ok(false));
            tokio::time::advance(Duration::from_millis(40)).await;
        }
        assert_eq!((budget.left(), budget.after_failure().until()), (Duration::ZERO, budget.until()));
        let late: Result<(), _> = budget.send(async { unreachable!("nothing is sent") }).await;
        assert_eq!(late.unwrap_err().to_string(), "no time was left for the store's answer");
        let endless = Budget::of(Call { within: Duration::MAX, meter: &meter });
        assert_eq!(endless.left(), Duration::from_millis(STORE_BUDGET_MAX_MS));
    }
}
