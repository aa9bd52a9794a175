//! The decisions of a process on the slots of a limit, as pure functions of what it holds and what it was answered.
//!
//! A limit is split into slots, each the record of a key: whoever is granted its claim has the slot, and nobody else meanwhile. In a
//! slot, calls begin one after the other, an interval apart, the first one an interval after the slot was granted. So whatever
//! becomes of its holders, the calls of a slot are an interval apart, less only by what its present holder was late.

use std::cmp::Reverse;
use std::time::Duration;

use tokio::time::Instant;

use super::rate::Allowed;
pub(crate) use super::slot::Now;
use super::slot::{LimitSlot, ms};
use crate::clock::Timestamp;
use crate::limits::{LIMIT_ASK_MS, LIMIT_LEFT_MS, LIMIT_LOOK_MS, LIMIT_NEXT_MS, LIMIT_TERM_MS};

/// What is to be asked of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotRequest {
    /// What an operator has set.
    Read,
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

/// What a process knows of a limit.
#[derive(Debug, Clone)]
pub(crate) struct LimitSlots {
    /// As the consumer sets it.
    own: Allowed,
    slots: u32,
    allowed: Allowed,
    held: Vec<LimitSlot>,
    /// Of each slot: when it may be free, as far as is known.
    free_at: Vec<Instant>,
    ask_at: Instant,
    read_at: Instant,
    /// Whether an answer is awaited to a claim, or to a read.
    asking: bool,
    /// Whether a message had to wait for the next call lately, and not for a slot.
    short: bool,
    /// Until when it is remembered that another process had the slot that this one wanted.
    contended_until: Instant,
}

impl LimitSlots {
    pub(crate) fn new(allowed: Allowed, slots: u32, now: Instant) -> Self {
        let free_at = (0..slots).map(|_| now).collect();
        let (ask_at, read_at, contended_until, held) = (now, now, now, Vec::new());
        let (asking, short) = (false, false);
        Self { own: allowed, slots, allowed, held, free_at, ask_at, read_at, asking, short, contended_until }
    }

    fn used(&self) -> u32 {
        self.allowed.used(self.slots)
    }

    /// Returns the time between two calls in a slot.
    pub(crate) fn interval(&self) -> Duration {
        self.allowed.interval(self.used())
    }

    /// Forgets the slots whose leases are over.
    fn forget(&mut self, now: Now) {
        self.held.retain(|slot| !slot.is_over(now));
    }

    fn holds(&self, number: u32) -> bool {
        self.held.iter().any(|slot| slot.number == number)
    }

    /// Returns whether a slot is to be let go: its term is over, or it is not used any more.
    fn is_closing(&self, slot: &LimitSlot, now: Now) -> bool {
        slot.has_had_its_term(now, self.interval()) || slot.number >= self.used()
    }

    /// The slots in which calls may begin, and how many at once in each.
    fn open(&self, now: Now) -> impl Iterator<Item = (&LimitSlot, u32)> {
        let used = self.used();
        let free = move |slot: &LimitSlot| self.allowed.at_once_in(slot.number, used).saturating_sub(slot.running);
        let is_open = move |slot: &&LimitSlot| !slot.is_over(now) && !self.is_closing(slot, now);
        self.held.iter().filter(is_open).map(move |slot| (slot, free(slot)))
    }

    /// Returns how many calls can begin within this time, in the slots that are held.
    pub(crate) fn soon(&self, now: Now, within: Duration) -> usize {
        let interval = self.interval();
        // OK because it is no more than `free`.
        let of = |(slot, free): (&LimitSlot, u32)| slot.soon(now, within, interval).min(u128::from(free)) as usize;
        self.open(now).map(of).fold(0, usize::saturating_add)
    }

    /// Returns when the next call can begin in a slot that is held; `None` where there is none, or calls must end first.
    pub(crate) fn next_call_at(&self, now: Now) -> Option<Instant> {
        self.open(now).filter(|(_, free)| *free > 0).map(|(slot, _)| slot.next_at).min()
    }

    /// Begins a call, if one may begin now; returns its slot.
    pub(crate) fn begin(&mut self, now: Now) -> Option<u32> {
        self.forget(now);
        let best = self.open(now).filter(|(_, free)| *free > 0).min_by_key(|(slot, _)| slot.next_at);
        let Some(number) = best.filter(|(slot, _)| slot.next_at <= now.mono).map(|(slot, _)| slot.number) else {
            self.short |= self.held.iter().any(|slot| slot.used);
            return None;
        };
        let (interval, counts) = (self.interval(), self.allowed.at_once.is_some());
        if let Some(slot) = self.held.iter_mut().find(|slot| slot.number == number) {
            slot.begin(now, interval, counts);
        }
        Some(number)
    }

    /// Ends a call in this slot, if it is still the same holding of it.
    pub(crate) fn end(&mut self, number: u32, since: Instant) {
        let held = self.held.iter_mut().find(|slot| slot.number == number && slot.since == since);
        if let Some(slot) = held {
            slot.running = slot.running.saturating_sub(1);
        }
    }

    /// Returns since when a slot is held, which tells one holding of it from another; `None` where calls are not counted.
    pub(crate) fn counted_since(&self, number: u32) -> Option<Instant> {
        self.allowed.at_once?;
        self.held.iter().find(|slot| slot.number == number).map(|slot| slot.since)
    }

    /// Returns what is to be done now where so many messages wait, or when there may be something to be done.
    pub(crate) fn next(&mut self, now: Now, waiting: usize, seed: u64) -> Result<SlotRequest, Option<Instant>> {
        self.forget(now);
        let (mut wake_at, mut due) = (None::<Instant>, None);
        let earlier = |wake_at: Option<Instant>, at: Instant| Some(wake_at.map_or(at, |other| other.min(at)));
        for slot in &self.held {
            let needed = waiting > 0 || slot.running > 0;
            match self.is_closing(slot, now) && slot.running == 0 {
                _ if slot.renewing => {}
                true => due = Some(SlotRequest::Release(slot.number)),
                false if needed && slot.renew_at <= now.mono => due = due.or(Some(SlotRequest::Renew(slot.number))),
                false if needed => {
                    let term_end = Some(slot.term_ends_at(self.interval())).filter(|end| *end > now.mono);
                    wake_at = term_end.into_iter().chain([slot.renew_at]).fold(wake_at, earlier);
                }
                false => {}
            }
        }
        if due.is_none() && waiting > 0 && !self.asking {
            match self.ask(now, waiting, seed) {
                Ok(step) => due = Some(step),
                Err(at) => wake_at = at.into_iter().fold(wake_at, earlier),
            }
        }
        match due {
            Some(SlotRequest::Release(number)) => {
                self.held.retain(|slot| slot.number != number);
                let left_until = now.mono + ms(LIMIT_LEFT_MS);
                self.free_at[number as usize] = left_until;
                self.ask_at = self.ask_at.max(left_until);
            }
            Some(SlotRequest::Renew(number)) => {
                self.held.iter_mut().filter(|slot| slot.number == number).for_each(|slot| slot.renewing = true);
            }
            Some(SlotRequest::Read | SlotRequest::Claim(_)) => self.asking = true,
            None => return Err(wake_at),
        }
        due.ok_or(wake_at)
    }

    /// What to ask for now, or when.
    fn ask(&mut self, now: Now, waiting: usize, seed: u64) -> Result<SlotRequest, Option<Instant>> {
        if self.read_at <= now.mono {
            return Ok(SlotRequest::Read);
        }
        let used = self.used();
        let has_none = self.open(now).next().is_none();
        if !has_none && self.soon(now, ms(1_000)) >= waiting {
            return Err(None);
        }
        // OK because there are few slots. Each process begins elsewhere.
        let turn = |number: &u32| (number + used - (seed % u64::from(used)) as u32) % used;
        let free_at = |number: &u32| self.free_at[*number as usize].max(now.mono);
        let others = (0..used).filter(|number| !self.holds(*number));
        // Of those that may be free, first the one that was let go last: the others are most likely held.
        let known = |number: &u32| Reverse(self.free_at[*number as usize]);
        let Some(number) = others.min_by_key(|number| (free_at(number), known(number), turn(number))) else {
            return Err(None);
        };
        // Without any, it is asked for even where it should not be free: its owner can have let it go.
        let at = if has_none { self.ask_at } else { self.ask_at.max(free_at(&number)) };
        if at <= now.mono { Ok(SlotRequest::Claim(number)) } else { Err(Some(at)) }
    }

    pub(crate) fn claimed(&mut self, number: u32, came: SlotAnswer, now: Now) {
        self.asking = false;
        match came {
            SlotAnswer::Held { asked, lease_until } => {
                self.held.push(LimitSlot::granted(number, (asked, lease_until), now, self.interval()));
                self.ask_at = now.mono + ms(LIMIT_NEXT_MS);
            }
            SlotAnswer::Busy(for_time) => {
                self.free_at[number as usize] = now.mono + for_time;
                if self.held.is_empty() {
                    self.contended_until = now.mono + ms(LIMIT_TERM_MS);
                }
                let may_be_free =
                    (0..self.used()).any(|number| !self.holds(number) && self.free_at[number as usize] <= now.mono);
                self.ask_at = now.mono + ms(if may_be_free { LIMIT_NEXT_MS } else { LIMIT_ASK_MS });
            }
            SlotAnswer::Unanswered => self.ask_at = now.mono + ms(LIMIT_ASK_MS),
        }
    }

    /// Takes note of a renewal that was asked for at this time: the new end, or `None` where the slot is lost; an error where the
    /// store gave no answer. Returns whether the holding still lasts that was to be renewed: one that began after that has nothing to do
    /// with the answer.
    pub(crate) fn renewed(&mut self, number: u32, asked: Now, answer: Result<Option<Timestamp>, ()>) -> bool {
        let same = |slot: &LimitSlot| slot.number == number && slot.since <= asked.mono;
        let Some(at) = self.held.iter().position(same) else { return false };
        let slot = &mut self.held[at];
        slot.renewing = false;
        match answer {
            Ok(Some(lease_until)) => slot.leased(asked, lease_until),
            Ok(None) => drop(self.held.swap_remove(at)),
            Err(()) => slot.renew_at = asked.mono + ms(LIMIT_ASK_MS),
        }
        answer != Ok(None)
    }

    /// Takes note of what an operator has set, or of no answer.
    pub(crate) fn read(&mut self, set: Result<Option<Allowed>, ()>, now: Now) {
        self.asking = false;
        self.read_at = now.mono + ms(LIMIT_LOOK_MS);
        if let Ok(set) = set {
            self.allowed = set.map_or(self.own, |set| set.over(self.own));
        }
    }

    /// Gives up on the answer to a claim or a read: whoever waited for it has no more time.
    pub(crate) fn unasked(&mut self) {
        self.asking = false;
    }

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

    /// Returns the slots that are let go where the process may have no more work. None where messages had to wait for their calls,
    /// since the next batch then most likely comes at once; none to which messages come back; and none but the only one where no
    /// other process was met: kept, they cost nothing, and a call in them waits for nothing.
    pub(crate) fn leave(&mut self, now: Now) -> Vec<u32> {
        let keeps = self.used() > 1 && self.contended_until <= now.mono;
        if std::mem::take(&mut self.short) || keeps {
            return Vec::new();
        }
        self.let_go(|slot| !slot.is_awaited(now))
    }

    /// Returns all slots that are not used, which are let go where the process ends.
    pub(crate) fn leave_all(&mut self) -> Vec<u32> {
        self.let_go(|_| true)
    }

    fn let_go(&mut self, which: impl Fn(&LimitSlot) -> bool) -> Vec<u32> {
        let is_idle = |slot: &mut LimitSlot| slot.running == 0 && !slot.renewing && which(slot);
        self.held.extract_if(.., is_idle).map(|slot| slot.number).collect()
    }

    /// Returns what holds now, and how many slots of it are used.
    pub(crate) fn allowed(&self) -> (Allowed, u32) {
        (self.allowed, self.used())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Claim, OwnerToken};
    use crate::fingerprint::Fingerprint;
    use crate::key::{ConsumerName, Key, MessageId, RecordId};
    use crate::limits::{LIMIT_LATE_MS, LIMIT_LEASE_MS};
    use crate::protocol::{
        self, ClaimPolicy, ClaimRequest, Decision, Ending, Likely, Refusal, RenewDecision, Renewal, SettleDecision,
        Settlement,
    };
    use crate::record::Record;

    const RATE: Allowed = Allowed { calls: Some(10), per_ms: 1_000, at_once: None };

    fn at(start: Instant, after: u64) -> Now {
        Now { wall: Timestamp::from_millis(1_000_000 + after), mono: start + ms(after) }
    }

    /// Slots of which these are held since `after`, all asked for then.
    fn holding(allowed: Allowed, slots: u32, numbers: &[u32], (start, after): (Instant, u64)) -> LimitSlots {
        let mut known = LimitSlots::new(allowed, slots, start);
        known.read(Ok(None), at(start, after));
        for number in numbers {
            let asked = at(start, after);
            let lease_until = asked.wall.plus(ms(LIMIT_LEASE_MS));
            known.claimed(*number, SlotAnswer::Held { asked, lease_until }, asked);
        }
        known
    }

    #[test]
    fn calls_in_a_slot_are_an_interval_apart_and_begin_with_one() {
        let start = Instant::now();
        let mut known = holding(RATE, 2, &[0], (start, 0));
        let begun: Vec<_> = (0..2_000).filter(|t| known.begin(at(start, *t)).is_some()).collect();
        // Two slots for ten a second: one each 200 ms.
        assert_eq!(begun, [200, 400, 600, 800, 1_000, 1_200, 1_400, 1_600, 1_800]);
        // What is late by 15 ms does not make the next ones late; what is later does.
        let mut known = holding(RATE, 2, &[0], (start, 0));
        for (t, begins) in [(215, true), (399, false), (400, true), (650, true), (829, false), (830, true)] {
            assert_eq!(known.begin(at(start, t)).is_some(), begins, "{t}");
        }
    }

    /// As many keys are claimed as calls can begin: after a pause, too, and no more than begin before others are to have the slot.
    #[test]
    fn a_slot_that_was_idle_or_is_to_be_let_go_has_no_more_calls_soon_than_begin_then() {
        let start = Instant::now();
        let mut known = holding(RATE, 2, &[0], (start, 0));
        let soon = |known: &mut LimitSlots, t: u64| [0, 199, 500].map(|within| known.soon(at(start, t), ms(within)));
        assert_eq!(soon(&mut known, 10_000), [1, 2, 3]);
        assert_eq!((known.begin(at(start, 10_000)), soon(&mut known, 10_000)), (Some(0), [0, 1, 2]));
        for t in [14_000, 28_000, 42_000, 56_000] {
            known.renewed(0, at(start, t), Ok(Some(at(start, t + LIMIT_LEASE_MS).wall)));
        }
        assert_eq!(soon(&mut known, LIMIT_TERM_MS - 300), [1, 2, 2]);
        assert_eq!(
            (known.begin(at(start, LIMIT_TERM_MS - 300)), soon(&mut known, LIMIT_TERM_MS - 300)),
            (Some(0), [0, 1, 1])
        );
        assert_eq!(known.begin(at(start, LIMIT_TERM_MS - 1)), Some(0));
        assert_eq!(soon(&mut known, LIMIT_TERM_MS - 1), [0; 3], "its next call would come too late");
        // It looks at the record, and wakes when the slot is to be let go.
        let steps = [LIMIT_TERM_MS - 1, LIMIT_TERM_MS - 1, LIMIT_TERM_MS].map(|t| known.next(at(start, t), 1, 0));
        assert_eq!(steps, [Ok(SlotRequest::Read), Err(Some(start + ms(LIMIT_TERM_MS))), Ok(SlotRequest::Release(0))]);
    }

    #[test]
    fn what_came_too_early_for_a_slot_has_a_turn_in_it_while_its_lease_lasts() {
        let start = Instant::now();
        let slow = Allowed { calls: Some(1), per_ms: 1_000, at_once: None };
        let mut known = holding(slow, 1, &[0], (start, 0));
        let turns: Vec<_> = std::iter::from_fn(|| known.promise(at(start, 900))).map(|turn| turn.as_millis()).collect();
        // The last one is 3 s before the end of the lease.
        assert_eq!(turns, (0..12).map(|n| 100 + n * 1_000).collect::<Vec<_>>());
        let mut other = known.clone();
        assert_eq!((known.leave(at(start, 900)), known.begin(at(start, 1_000))), (vec![], Some(0)), "it is kept");
        assert_eq!((known.promise(at(start, 1_100)), known.leave(at(start, 14_999))), (None, vec![]), "it was used");
        assert_eq!(known.leave(at(start, 15_000)), [0], "nobody comes any more");
        // A slot whose lease is over, and one whose first call is too late for its lease.
        assert_eq!(other.promise(at(start, LIMIT_LEASE_MS)), None);
        let mut known = holding(Allowed { per_ms: 13_000, ..slow }, 1, &[0], (start, 0));
        assert_eq!((known.promise(at(start, 900)), known.leave(at(start, 900))), (None, vec![0]));
        assert_eq!(LimitSlots::new(slow, 1, start).promise(at(start, 0)), None);
    }

    #[test]
    fn so_many_run_at_once_in_a_slot_and_nothing_runs_after_its_lease() {
        let start = Instant::now();
        let limit = Allowed { calls: None, per_ms: 1_000, at_once: Some(5) };
        let mut known = holding(limit, 2, &[0, 1], (start, 0));
        let begun: Vec<_> = (0..6).map_while(|_| known.begin(at(start, 0))).collect();
        assert_eq!(begun.iter().filter(|number| **number == 0).count(), 3);
        assert_eq!(begun.len(), 5);
        let since = known.counted_since(1).unwrap();
        known.end(1, since);
        known.end(0, start - ms(1));
        assert_eq!((known.soon(at(start, 0), ms(0)), known.begin(at(start, 0))), (1, Some(1)));
        known.end(1, since);
        assert_eq!(known.soon(at(start, LIMIT_LEASE_MS - 1), ms(0)), 1);
        // By either clock.
        let late = Now { wall: at(start, LIMIT_LEASE_MS + 1).wall, ..at(start, 0) };
        assert_eq!(known.clone().begin(late), None);
        assert_eq!(known.begin(Now { mono: start + ms(LIMIT_LEASE_MS), ..at(start, 0) }), None);
    }

    #[test]
    fn as_many_slots_are_asked_for_as_are_needed_and_no_more_often_than_makes_sense() {
        let start = Instant::now();
        let mut known = LimitSlots::new(RATE, 10, start);
        assert_eq!(known.next(at(start, 0), 0, 3), Err(None), "without messages, nothing");
        assert_eq!(known.next(at(start, 0), 5, 3), Ok(SlotRequest::Read));
        assert_eq!(known.next(at(start, 0), 5, 3), Err(None), "one thing at a time");
        known.read(Ok(None), at(start, 1));
        assert_eq!(known.next(at(start, 1), 1, 3), Ok(SlotRequest::Claim(3)), "each process begins elsewhere");
        known.claimed(3, SlotAnswer::Busy(ms(9_000)), at(start, 5));
        assert_eq!(known.next(at(start, 5), 1, 3), Err(Some(start + ms(105))));
        assert_eq!(known.next(at(start, 105), 1, 3), Ok(SlotRequest::Claim(4)));
        let lease_until = at(start, 105).wall.plus(ms(LIMIT_LEASE_MS));
        known.claimed(4, SlotAnswer::Held { asked: at(start, 105), lease_until }, at(start, 110));
        // It allows one a second.
        assert_eq!(known.next(at(start, 110), 1, 3), Err(Some(start + ms(105 + LIMIT_LEASE_MS / 2))));
        assert_eq!(known.next(at(start, 210), 2, 3), Ok(SlotRequest::Claim(5)));
        known.claimed(5, SlotAnswer::Unanswered, at(start, 250));
        assert_eq!(known.next(at(start, 250), 2, 3), Err(Some(start + ms(1_250))));
        // All others are held: asked for again when they may be free.
        for number in [0, 1, 2, 5, 6, 7, 8, 9] {
            known.claimed(number, SlotAnswer::Busy(ms(5_000)), at(start, 1_250));
        }
        assert_eq!(known.next(at(start, 3_000), 9, 3), Err(Some(start + ms(6_250))));
        assert_eq!(known.next(at(start, 7_605), 9, 3), Ok(SlotRequest::Renew(4)));
    }

    #[test]
    fn without_a_slot_one_is_asked_for_each_second() {
        let start = Instant::now();
        let mut known = holding(RATE, 3, &[], (start, 0));
        let mut asked = Vec::new();
        for t in 0..5_000 {
            if let Ok(SlotRequest::Claim(number)) = known.next(at(start, t), 9, 0) {
                asked.push((t, number));
                known.claimed(number, SlotAnswer::Busy(ms(9_000)), at(start, t));
            }
        }
        let times: Vec<_> = asked.iter().map(|(t, _)| *t).collect();
        assert_eq!(times, [0, 100, 200, 1_200, 2_200, 3_200, 4_200]);
    }

    #[test]
    fn a_slot_is_renewed_while_it_is_needed_let_go_after_its_term_and_left_to_others() {
        let start = Instant::now();
        let mut known = holding(RATE, 1, &[0], (start, 0));
        assert_eq!(known.next(at(start, 7_500), 0, 0), Err(None), "nothing waits");
        assert_eq!(known.next(at(start, 7_499), 1, 0), Err(Some(start + ms(7_500))));
        assert_eq!(known.next(at(start, 7_500), 1, 0), Ok(SlotRequest::Renew(0)));
        known.renewed(0, at(start, 7_500), Err(()));
        assert_eq!(known.next(at(start, 8_499), 1, 0), Err(Some(start + ms(8_500))));
        let mut t = 8_500;
        while t < LIMIT_TERM_MS {
            assert_eq!(known.next(at(start, t), 1, 0), Ok(SlotRequest::Renew(0)), "{t}");
            known.renewed(0, at(start, t), Ok(Some(at(start, t + LIMIT_LEASE_MS).wall)));
            t += 7_500;
        }
        known.read_at = start + ms(1_000_000);
        assert_eq!(known.next(at(start, LIMIT_TERM_MS), 1, 0), Ok(SlotRequest::Release(0)));
        assert_eq!(known.next(at(start, LIMIT_TERM_MS), 1, 0), Err(Some(start + ms(LIMIT_TERM_MS + LIMIT_LEFT_MS))));
        assert_eq!(known.next(at(start, LIMIT_TERM_MS + LIMIT_LEFT_MS), 1, 0), Ok(SlotRequest::Claim(0)));
    }

    #[test]
    fn what_is_answered_about_an_earlier_holding_of_a_slot_changes_nothing_of_the_present_one() {
        let start = Instant::now();
        for late in [Ok(None), Ok(Some(at(start, 7_500 + LIMIT_LEASE_MS).wall)), Err(())] {
            let mut known = holding(RATE, 1, &[0], (start, 0));
            assert_eq!(known.next(at(start, 7_500), 1, 0), Ok(SlotRequest::Renew(0)));
            // Its lease is over before the answer comes, and the slot was granted once more.
            let again = at(start, LIMIT_LEASE_MS + 1);
            assert_eq!(known.next(again, 1, 0), Ok(SlotRequest::Claim(0)));
            let lease_until = again.wall.plus(ms(LIMIT_LEASE_MS));
            known.claimed(0, SlotAnswer::Held { asked: again, lease_until }, again);
            assert!(!known.renewed(0, at(start, 7_500), late), "{late:?}");
            let due = LIMIT_LEASE_MS + 1 + LIMIT_LEASE_MS / 2;
            assert_eq!(known.next(at(start, due - 1), 1, 0), Err(Some(start + ms(due))), "{late:?}");
            assert_eq!(known.next(at(start, due), 1, 0), Ok(SlotRequest::Renew(0)), "{late:?}");
            assert!(known.renewed(0, at(start, due), Err(())), "it is still held");
        }
    }

    #[test]
    fn at_the_end_of_an_invocation_slots_are_kept_where_they_are_used_again_at_once() {
        let start = Instant::now();
        let one = Allowed { calls: Some(1), ..RATE };
        let mut only = holding(one, 10, &[0], (start, 0));
        assert!(only.begin(at(start, 1_000)).is_some());
        assert_eq!(only.clone().leave(at(start, 1_001)), [0], "another process has only this one");
        assert!(only.begin(at(start, 1_002)).is_none());
        assert!(only.leave(at(start, 1_003)).is_empty(), "more would have run");
        let mut many = holding(RATE, 10, &[0], (start, 0));
        assert!(many.leave(at(start, 1)).is_empty(), "no other process was met");
        let mut met = holding(RATE, 10, &[], (start, 0));
        met.claimed(3, SlotAnswer::Busy(ms(1)), at(start, 0));
        met.claimed(4, SlotAnswer::Held { asked: at(start, 1), lease_until: at(start, 15_001).wall }, at(start, 1));
        assert_eq!(met.leave(at(start, 2)), [4]);
    }

    #[test]
    fn what_an_operator_sets_holds_from_the_next_call_on() {
        let start = Instant::now();
        let mut known = holding(RATE, 10, &[0, 7], (start, 0));
        known.read(Ok(Some(Allowed { calls: Some(2), ..RATE })), at(start, 10));
        assert_eq!(known.allowed().1, 2);
        assert_eq!(known.next(at(start, 10), 1, 0), Ok(SlotRequest::Release(7)), "it is not used any more");
        assert_eq!(known.begin(at(start, 1_000)), Some(0));
        assert_eq!((known.begin(at(start, 1_999)), known.begin(at(start, 2_000))), (None, Some(0)));
        known.read(Err(()), at(start, 40_000));
        assert_eq!(known.allowed().1, 2, "without an answer it stays");
        known.read(Ok(None), at(start, 80_000));
        assert_eq!(known.allowed(), (RATE, 10));
    }

    /// A process of the walk below: what it knows, the claim that it holds, and the answer on its way to it.
    #[derive(Clone)]
    struct Process {
        known: LimitSlots,
        /// By how much its clock is off.
        off: i64,
        claim: Option<(OwnerToken, crate::Fence)>,
        answer: Option<(u32, SlotAnswer)>,
    }

    #[derive(Clone)]
    struct World {
        start: Instant,
        t: u64,
        owners: u64,
        record: Option<Record>,
        processes: [Process; 2],
        /// When calls began, and in which process.
        calls: Vec<(u64, usize)>,
    }

    const ONE: Allowed = Allowed { calls: Some(1), per_ms: 4_000, at_once: None };
    const SKEW: u64 = 1_000;

    fn id() -> RecordId {
        RecordId::new(&ConsumerName::new("claimant-rate").unwrap(), &Key::new("ses/0").unwrap())
    }

    fn policy() -> ClaimPolicy {
        ClaimPolicy { skew: ms(SKEW), window: ms(60_000), ..ClaimPolicy::default() }
    }

    impl World {
        fn fresh(start: Instant, t: u64, off: i64) -> Process {
            let mut known = LimitSlots::new(ONE, 1, start + ms(t));
            known.read_at = start + ms(10_000_000);
            Process { known, off, claim: None, answer: None }
        }

        fn now(&self, process: usize) -> Now {
            let wall = (1_000_000 + self.t).saturating_add_signed(self.processes[process].off);
            Now { wall: Timestamp::from_millis(wall), mono: self.start + ms(self.t) }
        }

        fn claim_of(&self, process: usize) -> Option<Claim> {
            let (owner, fence) = self.processes[process].claim.clone()?;
            let lease_until = Timestamp::from_millis(0);
            Some(Claim { id: id(), owner, fence, lease_until, attempt: 1, interruptions: 0, transaction: None })
        }

        /// A process takes its answer, or begins a call, or asks the store.
        fn go(&mut self, process: usize) {
            let now = self.now(process);
            if let Some((number, came)) = self.processes[process].answer.take() {
                return self.processes[process].known.claimed(number, came, now);
            }
            if self.processes[process].known.begin(now).is_some() {
                return self.calls.push((self.t, process));
            }
            match self.processes[process].known.next(now, 1, 0) {
                Ok(SlotRequest::Claim(number)) => self.claim(process, number, now),
                Ok(SlotRequest::Renew(number)) => {
                    let lease_until = now.wall.plus(ms(LIMIT_LEASE_MS));
                    let renewal = Renewal { lease_until, now: now.wall, policy: policy() };
                    let Some(claim) = self.claim_of(process) else { panic!("a slot without a claim") };
                    let answer = match protocol::renew(self.record.as_ref(), &claim, &renewal) {
                        RenewDecision::Write(next) => {
                            self.record = Some(*next);
                            Some(lease_until)
                        }
                        RenewDecision::AlreadyLonger => self.record.as_ref().map(|record| record.lease_until),
                        RenewDecision::Lost => None,
                    };
                    self.processes[process].known.renewed(number, now, Ok(answer));
                }
                Ok(SlotRequest::Release(_)) => self.release(process, now),
                Ok(SlotRequest::Read) | Err(_) => {}
            }
        }

        fn claim(&mut self, process: usize, number: u32, asked: Now) {
            self.owners += 1;
            let owner = OwnerToken::from_stored(self.owners.to_string());
            let lease_until = asked.wall.plus(ms(LIMIT_LEASE_MS));
            let request = ClaimRequest {
                id: id(),
                owner: owner.clone(),
                message_id: MessageId::new("m").unwrap(),
                fingerprint: Fingerprint::of_bytes(&[]),
                now: asked.wall,
                lease_until,
                policy: policy(),
                likely: Likely::Known,
            };
            let came = match protocol::decide(self.record.as_ref(), &request) {
                Decision::Grant { next, .. } => {
                    self.processes[process].claim = Some((owner, next.fence));
                    self.record = Some(next);
                    SlotAnswer::Held { asked, lease_until }
                }
                Decision::Refuse(Refusal::Busy { until, .. }) => SlotAnswer::Busy(until.since(asked.wall)),
                other => panic!("{other:?}"),
            };
            self.processes[process].answer = Some((number, came));
        }

        fn release(&mut self, process: usize, now: Now) {
            let Some(claim) = self.claim_of(process) else { return };
            let settlement = Settlement { ending: Ending::Released, now: now.wall, policy: policy() };
            if let SettleDecision::Write(next) = protocol::settle(self.record.as_ref(), &claim, &settlement) {
                self.record = Some(*next);
            }
        }

        fn check(&self) {
            // Calls are an interval apart, whoever begins them, and less only by what its own process was late.
            for (first, second) in self.calls.iter().zip(self.calls.iter().skip(1)) {
                let late = if first.1 == second.1 { LIMIT_LATE_MS } else { 0 };
                assert!(second.0 + late >= first.0 + 4_000, "{:?}", self.calls);
            }
        }
    }

    /// Every order of what can happen, so many things long; returns how many.
    fn walk(world: &World, left: u32, most: &mut usize) -> u64 {
        world.check();
        *most = (*most).max(world.calls.len());
        if left == 0 {
            return 1;
        }
        let mut orders = 0;
        for event in 0..6 {
            let mut next = world.clone();
            match event {
                0 => next.t += 4_010,
                1 => next.t += LIMIT_LEASE_MS,
                2 | 3 => next.go(event - 2),
                // It ends its invocation, and lets go.
                4 => {
                    let now = next.now(0);
                    if !next.processes[0].known.leave(now).is_empty() {
                        next.release(0, now);
                    }
                }
                // It dies: another one begins in its place.
                _ => next.processes[0] = World::fresh(next.start, next.t, next.processes[0].off),
            }
            orders += walk(&next, left - 1, most);
        }
        orders
    }

    #[test]
    fn whatever_happens_in_whatever_order_the_calls_of_a_slot_are_an_interval_apart() {
        let start = Instant::now();
        // Clocks that differ by as much as they may, either way.
        for off in [-500, 500] {
            let processes = [World::fresh(start, 0, off), World::fresh(start, 0, -off)];
            let mut world = World { start, t: 0, owners: 0, record: None, processes, calls: Vec::new() };
            // One of them has the slot.
            world.go(0);
            world.go(0);
            let mut most = 0;
            assert_eq!(walk(&world, 7, &mut most), 6_u64.pow(7));
            assert!(most >= 3, "{most}");
        }
    }
}
