//! How the time of one invocation is divided.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::clock::Timestamp;
use crate::limits::{LEASE_MARGIN_MS, LEASE_MAX_MS, SETTLE_RESERVE_MAX_MS, STORE_CALL_MAX_MS, STORE_GUARD_MS};
use crate::meter::Meter;
use crate::store::{Call, StoreError};

/// No invocation lasts longer: a deadline beyond it is implausible, and clamped.
const LONGEST: Duration = Duration::from_millis(LEASE_MAX_MS);

/// The time of one invocation, fixed when it starts.
///
/// The wall clock is read once; after that only the monotonic clock counts, so a clock that jumps in between
/// moves neither limit.
#[derive(Debug, Clone, Copy)]
pub struct InvocationTime {
    /// When it began.
    pub(crate) started_at: Instant,
    /// When handlers are cancelled; nothing is started after it.
    pub(crate) cancel_at: Instant,
    /// When the report must be back.
    pub(crate) return_by: Instant,
    /// Until when claims of this invocation are honoured.
    pub(crate) lease_end: Instant,
    /// How long ago its deadline was when it began; zero where that was still to come.
    pub(crate) late: Duration,
}

impl InvocationTime {
    /// Returns the time of an invocation that the runtime ends at `deadline`, and that must return `margin` before.
    ///
    /// The last fifth of the time, at most [`SETTLE_RESERVE_MAX_MS`], is kept for settling. A deadline that is past
    /// leaves no time at all: nothing is started. One that is later than 15 minutes from `now`, the longest invocation, counts as that.
    #[must_use]
    pub fn new(now: Timestamp, deadline: Timestamp, margin: Duration) -> Self {
        let usable = deadline.minus(margin).since(now).min(LONGEST);
        let reserve = (usable / 5).min(Duration::from_millis(SETTLE_RESERVE_MAX_MS));
        let start = Instant::now();
        Self {
            started_at: start,
            cancel_at: start + (usable - reserve),
            return_by: start + usable,
            lease_end: start + deadline.since(now).min(LONGEST) + Duration::from_millis(LEASE_MARGIN_MS),
            late: now.since(deadline),
        }
    }

    /// Returns the time for handlers, from the beginning to their cancellation.
    pub(crate) fn total(&self) -> Duration {
        self.cancel_at - self.started_at
    }

    /// Returns until when the answer to a claim that is sent now is waited for. Where abandoned work `parks`, that is beyond the time for
    /// handlers: a claim whose owner does not learn of it would be parked, though nothing of its work has started. The rest is
    /// for giving it back.
    pub(crate) fn claims_by(&self, parks: bool) -> Instant {
        match parks && !time_until(self.cancel_at).is_zero() {
            true => self.cancel_at + (self.return_by - self.cancel_at) / 2,
            false => self.cancel_at,
        }
    }

    /// Returns how long a claim of an invocation like this one can be honoured.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.lease_end - self.started_at
    }

    /// Returns until when a claim made at `now` is honoured.
    pub(crate) fn lease_until(&self, now: Timestamp) -> Timestamp {
        now.plus(time_until(self.lease_end))
    }
}

/// Returns how long it is until `at`; zero if that is past.
pub(crate) fn time_until(at: Instant) -> Duration {
    at.saturating_duration_since(Instant::now())
}

/// Returns how long a call of a store may take until then, and the call, which has a little less.
pub(crate) fn store_call(by: Instant, meter: &Meter) -> (Duration, Call<'_>) {
    let within = time_until(by).min(Duration::from_millis(STORE_CALL_MAX_MS));
    (within, Call { within: guarded(within), meter })
}

/// Waits so long for the answer of a store.
pub(crate) async fn answered<T>(
    within: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(within, call).await.unwrap_or_else(|_| Err(StoreError::no_answer(within)))
}

/// Returns a little less than `within`, so that what is called gives up before its caller does, and the answers that it has by
/// then count.
pub(crate) fn guarded(within: Duration) -> Duration {
    within - Duration::from_millis(STORE_GUARD_MS).min(within / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_has_less_time_than_the_engine_waits_for_it() {
        let (most, guard) = (STORE_CALL_MAX_MS, STORE_GUARD_MS);
        for (left, engine, store) in
            [(0, 0, 0), (4, 4, 3), (1_000, 1_000, 1_000 - guard), (900_000, most, most - guard)]
        {
            let meter = Meter::default();
            let (within, call) = store_call(Instant::now() + Duration::from_millis(left), &meter);
            assert_eq!((within.as_millis(), call.within.as_millis()), (engine.into(), store.into()), "{left} ms");
        }
    }
}
