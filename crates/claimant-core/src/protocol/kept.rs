//! What a process keeps of a limit's slots at the end of an invocation.

use std::time::Duration;

use super::slot::{LimitSlot, Now, ms};
use super::slots::LimitSlots;
use crate::limits::LIMIT_LEFT_MS;

impl LimitSlots {
    /// Notes that messages had no turn in an invocation.
    pub(crate) fn unserved(&mut self) {
        self.short |= !self.held.is_empty();
    }

    /// Returns after how long a message has its turn in a slot that was granted too late for a call in this invocation: within its
    /// lease, in which the message must be received again. Such a slot is kept until then. `None` where there is none, or all its
    /// turns are for others.
    pub(crate) fn promise(&mut self, now: Now) -> Option<Duration> {
        self.forget(now);
        let interval = self.interval();
        let turns = self.open(now).filter_map(|(slot, _)| Some((slot.turn(interval)?, slot.number)));
        let (at, number) = turns.min()?;
        self.held.iter_mut().filter(|slot| slot.number == number).for_each(|slot| slot.promised = Some(at));
        Some(at.saturating_duration_since(now.mono))
    }

    /// Returns whether it is to be looked first whether some process has none, where one would be let go for it: this one may not be invoked again.
    pub(crate) fn listens_last(&mut self, now: Now) -> bool {
        self.forget(now);
        let would_let_go = self.held.len() > 1 || !self.held.is_empty() && self.turn.is_over(now.mono, self.interval());
        let listens = would_let_go && self.keeps.is_none() && !self.asking && self.turn.listens_last(now.mono);
        self.asking |= listens;
        listens
    }

    /// Returns the slots that are let go where the process may have no more work: those that it has no right to any more, and a single one
    /// that another process may need, if no messages had to wait for their calls. Kept, they cost nothing, and a call in them waits for nothing.
    /// The only slot of all is not kept, and none is let go to which messages come back.
    pub(crate) fn leave(&mut self, now: Now) -> Vec<u32> {
        self.note_turn(now);
        self.turn.rest();
        let is_free = self.plan().used() > 1 && !self.turn.is_wanted(now.mono);
        let has_more = self.held.iter().filter(|slot| !slot.is_over(now)).count() > 1;
        let keeps = *self.keeps.get_or_insert(std::mem::take(&mut self.short) || is_free || has_more);
        let closed = self.held.iter().any(|slot| slot.closes_at().is_some());
        let left = self.let_go(|slot| if keeps { slot.closes_at().is_some() } else { !slot.is_awaited(now) });
        if closed && self.held.is_empty() {
            self.ask_at = self.ask_at.max(now.mono + ms(LIMIT_LEFT_MS));
        }
        left
    }

    /// Returns all slots that are not used, which are let go where the process ends.
    pub(crate) fn leave_all(&mut self) -> Vec<u32> {
        self.let_go(|_| true)
    }

    fn let_go(&mut self, which: impl Fn(&LimitSlot) -> bool) -> Vec<u32> {
        let is_idle = |slot: &mut LimitSlot| slot.running == 0 && !slot.renewing && which(slot);
        self.held.extract_if(.., is_idle).map(|slot| slot.number).collect()
    }
}
