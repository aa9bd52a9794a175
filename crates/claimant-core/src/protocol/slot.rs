//! One slot of a limit, as the process knows it that holds it.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Timestamp;
use crate::limits::{LIMIT_AHEAD_MS, LIMIT_BACK_MS, LIMIT_LATE_MS, LIMIT_LEASE_MS};

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The time at a process: by its clock, for leases, and by one that never jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    pub(crate) wall: Timestamp,
    pub(crate) mono: Instant,
}

/// What is to be asked of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotRequest {
    /// What all processes go by.
    Look,
    /// Whether a process has no slot.
    Listen,
    /// To say that this one has none.
    Mark,
    /// A slot of this number.
    Claim(u32),
    Renew(u32),
    Release(u32),
}

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotAnswer {
    /// It is held until then, if it was asked for at this time.
    Held { asked: Now, lease_until: Timestamp },
    /// Another one holds it, for so long as far as is known.
    Busy(Duration),
    /// The store gave no answer.
    Unanswered,
}

/// Until when a slot is held.
#[derive(Debug, Clone, Copy)]
struct SlotLease {
    until: Timestamp,
    /// Its end by the other clock.
    ends_at: Instant,
    renew_at: Instant,
}

impl SlotLease {
    /// Returns one that was asked for at this time.
    fn of(asked: Now, until: Timestamp) -> Self {
        let (ends_at, renew_at) = (asked.mono + ms(LIMIT_LEASE_MS), asked.mono + ms(LIMIT_LEASE_MS / 2));
        Self { until, ends_at, renew_at }
    }
}

/// A slot that the process holds.
#[derive(Debug, Clone)]
pub(super) struct LimitSlot {
    pub(super) number: u32,
    lease: SlotLease,
    pub(super) renewing: bool,
    pub(super) since: Instant,
    /// When the next call may begin.
    pub(super) next_at: Instant,
    pub(super) used: bool,
    /// From when on no call begins in it, since other processes are to have it.
    closes_at: Option<Instant>,
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
        let lease = SlotLease::of(leased.0, leased.1);
        let (renewing, used, closes_at, promised, running) = (false, false, None, None, 0);
        Self { number, lease, renewing, since, next_at, used, closes_at, promised, running }
    }

    /// Takes note of a new lease that was asked for at this time.
    pub(super) fn leased(&mut self, asked: Now, lease_until: Timestamp) {
        self.lease = SlotLease::of(asked, lease_until);
    }

    /// Returns when its lease is to be renewed.
    pub(super) fn renew_at(&self) -> Instant {
        self.lease.renew_at
    }

    /// Has its renewal tried once more at this time.
    pub(super) fn renew_again(&mut self, at: Instant) {
        self.lease.renew_at = at;
    }

    /// Returns whether its lease is over, by either clock.
    pub(super) fn is_over(&self, now: Now) -> bool {
        now.mono >= self.lease.ends_at || now.wall > self.lease.until
    }

    /// Closes it for others, once what was claimed for its calls has begun.
    pub(super) fn close(&mut self, now: Now) {
        self.closes_at.get_or_insert(now.mono + ms(LIMIT_AHEAD_MS));
    }

    /// Returns from when on no call begins in it, if others are to have it.
    pub(super) fn closes_at(&self) -> Option<Instant> {
        self.closes_at
    }

    /// Returns from when on its calls are counted. One that is a little late does not make those after it late, too; a slot that was idle
    /// for longer has no more of them for it.
    fn next_from(&self, now: Now) -> Instant {
        self.next_at.max(now.mono.checked_sub(ms(LIMIT_LATE_MS)).unwrap_or(now.mono))
    }

    /// Returns how many calls can begin in it by then, and before it closes, by the rate alone.
    pub(super) fn soon(&self, now: Now, by: Instant, interval: Duration) -> u128 {
        let by = self.closes_at.map_or(by, |at| by.min(at - Duration::from_nanos(1)));
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
        (!self.used && at + ms(LIMIT_BACK_MS) <= self.lease.ends_at).then_some(at)
    }

    /// Returns whether a message may still come back for its turn in it.
    pub(super) fn is_awaited(&self, now: Now) -> bool {
        self.promised.is_some_and(|last| now.mono < last + ms(LIMIT_BACK_MS))
    }
}
