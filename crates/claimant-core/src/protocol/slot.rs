//! One slot of a limit, as the process knows it that holds it.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Timestamp;
use crate::limits::{LIMIT_BACK_MS, LIMIT_LATE_MS, LIMIT_LEASE_MS, LIMIT_TERM_MS};

/// A slot is kept for so many intervals at least.
const TERM_INTERVALS: u32 = 60;

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The time at a process: by its clock, for leases, and by one that never jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    pub(crate) wall: Timestamp,
    pub(crate) mono: Instant,
}

/// A slot that the process holds.
#[derive(Debug, Clone)]
pub(super) struct LimitSlot {
    pub(super) number: u32,
    lease_until: Timestamp,
    /// The end of the lease by the other clock.
    ends_at: Instant,
    pub(super) renew_at: Instant,
    pub(super) renewing: bool,
    pub(super) since: Instant,
    /// When the next call may begin.
    pub(super) next_at: Instant,
    pub(super) used: bool,
    /// The last turn in it for which a message comes back.
    pub(super) promised: Option<Instant>,
    /// Calls that run, where it matters how many.
    pub(super) running: u32,
}

impl LimitSlot {
    /// Returns a slot that was asked for, and is leased, as `leased` says. Its first call waits an interval: the last one of another
    /// process may have begun just before.
    pub(super) fn granted(number: u32, leased: (Now, Timestamp), now: Now, interval: Duration) -> Self {
        let (since, next_at) = (now.mono, now.mono + interval);
        let (asked, lease_until) = leased;
        let (ends_at, renew_at) = lease(asked);
        let (renewing, used, promised, running) = (false, false, None, 0);
        Self { number, lease_until, ends_at, renew_at, renewing, since, next_at, used, promised, running }
    }

    /// Takes note of a new lease that was asked for at this time.
    pub(super) fn leased(&mut self, asked: Now, lease_until: Timestamp) {
        self.lease_until = lease_until;
        (self.ends_at, self.renew_at) = lease(asked);
    }

    /// Returns whether its lease is over, by either clock.
    pub(super) fn is_over(&self, now: Now) -> bool {
        now.mono >= self.ends_at || now.wall > self.lease_until
    }

    /// Returns when others are to have it, after as long as it is kept where calls are so far apart.
    pub(super) fn term_ends_at(&self, interval: Duration) -> Instant {
        self.since + ms(LIMIT_TERM_MS).max(interval * TERM_INTERVALS)
    }

    /// Returns whether others are to have it.
    pub(super) fn has_had_its_term(&self, now: Now, interval: Duration) -> bool {
        now.mono >= self.term_ends_at(interval)
    }

    /// Returns from when on its calls are counted. One that is a little late does not make those after it late, too; a slot that was idle
    /// for longer has no more of them for it.
    fn next_from(&self, now: Now) -> Instant {
        self.next_at.max(now.mono.checked_sub(ms(LIMIT_LATE_MS)).unwrap_or(now.mono))
    }

    /// Returns how many calls can begin in it within this time, by the rate alone.
    pub(super) fn soon(&self, now: Now, within: Duration, interval: Duration) -> u128 {
        let by = (now.mono + within).min(self.term_ends_at(interval) - Duration::from_nanos(1));
        match by.checked_duration_since(self.next_from(now)) {
            Some(_) if interval.is_zero() => u128::MAX,
            Some(left) => left.as_nanos() / interval.as_nanos() + 1,
            None => 0,
        }
    }

    pub(super) fn begin(&mut self, now: Now, interval: Duration, counts: bool) {
        self.next_at = self.next_from(now) + interval;
        self.used = true;
        self.running += u32::from(counts);
    }

    /// Returns the first turn in it that no message comes back for; `None` where it was used, or its lease ends too soon.
    pub(super) fn turn(&self, interval: Duration) -> Option<Instant> {
        let at = self.promised.map_or(self.next_at, |last| last + interval);
        (!self.used && at + ms(LIMIT_BACK_MS) <= self.ends_at).then_some(at)
    }

    /// Returns whether a message may still come back for its turn in it.
    pub(super) fn is_awaited(&self, now: Now) -> bool {
        self.promised.is_some_and(|last| now.mono < last + ms(LIMIT_BACK_MS))
    }
}

/// The end of a lease that was asked for then, and when it is renewed.
fn lease(asked: Now) -> (Instant, Instant) {
    (asked.mono + ms(LIMIT_LEASE_MS), asked.mono + ms(LIMIT_LEASE_MS / 2))
}
