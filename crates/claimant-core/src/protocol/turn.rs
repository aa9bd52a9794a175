//! How a process shares the slots of a limit: for how long it has had one, and whether some process has none.

use std::time::Duration;

use tokio::time::Instant;

use super::slot::ms;
use crate::limits::{
    LIMIT_ASK_MS, LIMIT_LEFT_MS, LIMIT_LISTEN_MS, LIMIT_MARKED_MS, LIMIT_MORE_MS, LIMIT_NEXT_MS, LIMIT_TERM_MS,
    LIMIT_WANTED_MS,
};

/// A process keeps its last slot for so many intervals at least.
const TERM_INTERVALS: u32 = 60;

/// After so many refusals a process says that it has none, though others may be free that it has not asked for.
const IN_VAIN: u32 = 10;

/// So many slots it asks for one right after the other where it has none and others may be free.
const IN_A_ROW: u32 = 20;

/// So many where it has one: others that began with it took some meanwhile.
const MORE_IN_A_ROW: u32 = 5;

/// What a process knows of the others that share a limit, and how it came by its own slots.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    /// Since when it has had a slot, but for short breaks.
    since: Instant,
    /// When it had one last.
    had_at: Instant,
    /// Until when some process has none, as far as is known.
    wanted_until: Instant,
    listen_at: Instant,
    /// When it was told last whether some process has none.
    told_at: Instant,
    /// How often one was refused while it had none, and while it had one, since one was granted.
    refused_without: u32,
    refused_with: u32,
    /// Whether it is to say that it has none.
    marks: bool,
}

impl Turn {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            had_at: now,
            wanted_until: now,
            listen_at: now,
            told_at: now,
            refused_without: 0,
            refused_with: 0,
            marks: false,
        }
    }

    /// Notes that the process has a slot.
    pub(super) fn goes_on(&mut self, now: Instant) {
        self.had_at = now;
    }

    /// Notes that one was granted, beside so many that it had. One that comes soon after the last was let go is of the same turn.
    pub(super) fn granted(&mut self, now: Instant, had: usize) {
        if had == 0 && now >= self.had_at + ms(LIMIT_LEFT_MS) {
            self.since = now;
        }
        if had == 1 {
            self.listen_at = self.listen_at.min(now + ms(LIMIT_LISTEN_MS));
        }
        (self.had_at, self.refused_without, self.refused_with, self.marks) = (now, 0, 0, false);
    }

    /// Notes that one was refused, where the process has some or none, so many are used, and another one may be free. Returns after how
    /// long it is to ask for another.
    pub(super) fn refused(&mut self, has_some: bool, (may_be_free, used): (bool, u32)) -> Duration {
        if has_some {
            (self.refused_without, self.refused_with) = (0, self.refused_with.saturating_add(1));
            let longer = self.refused_with.saturating_sub(MORE_IN_A_ROW);
            let is_first = may_be_free && longer == 0;
            // Sooner than the one that was granted it asks for its next one: so two that began together share them.
            return ms(if is_first { LIMIT_NEXT_MS / 2 } else { (LIMIT_ASK_MS << longer.min(8)).min(LIMIT_MORE_MS) });
        }
        (self.refused_without, self.refused_with) = (self.refused_without.saturating_add(1), 0);
        self.marks = !may_be_free || self.refused_without >= IN_VAIN;
        ms(if may_be_free && self.refused_without < used.min(IN_A_ROW) { LIMIT_NEXT_MS } else { LIMIT_ASK_MS })
    }

    /// Notes for how long some process has no slot, as its mark says; this one has so many.
    pub(super) fn told(&mut self, now: Instant, for_time: Duration, has: usize) {
        (self.wanted_until, self.told_at) = (now + for_time.min(ms(LIMIT_WANTED_MS)), now);
        let every = match has {
            _ if self.is_wanted(now) => LIMIT_MARKED_MS,
            0 | 1 => 3 * LIMIT_LISTEN_MS,
            _ => LIMIT_LISTEN_MS,
        };
        self.listen_at = now + ms(every);
    }

    /// Ends an invocation: that it found none says nothing of the next one.
    pub(super) fn rest(&mut self) {
        (self.refused_without, self.marks) = (0, false);
    }

    /// Returns whether it is to look once more before it keeps what it has.
    pub(super) fn listens_last(&self, now: Instant) -> bool {
        now >= self.told_at + ms(LIMIT_ASK_MS) && !self.is_wanted(now)
    }

    /// Returns whether some process has none.
    pub(super) fn is_wanted(&self, now: Instant) -> bool {
        self.wanted_until > now
    }

    /// Returns until when some process has none, if that is known.
    pub(super) fn wanted_until(&self, now: Instant) -> Option<Instant> {
        self.is_wanted(now).then_some(self.wanted_until)
    }

    /// Returns when the process is to say that it has none: once no mark says so.
    pub(super) fn marks_at(&self, now: Instant) -> Option<Instant> {
        self.marks.then_some(self.wanted_until.max(now))
    }

    /// Returns when it is to look whether some process has none, where it has so many, and would let one go.
    pub(super) fn listen_at(&self, now: Instant, has: usize, interval: Duration) -> Option<Instant> {
        (has > 1 || self.is_over(now, interval)).then_some(self.listen_at)
    }

    /// Returns whether it has had one for so long that it lets its last one go for a process that has none.
    pub(super) fn is_over(&self, now: Instant, interval: Duration) -> bool {
        now >= self.since + ms(LIMIT_TERM_MS).max(interval * TERM_INTERVALS)
    }
}
