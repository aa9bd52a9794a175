//! The decisions of a process on the slots of a limit, as pure functions of what it holds and what it was answered.
//!
//! A limit is split into slots, each the record of a key: whoever is granted its claim has the slot, and nobody else meanwhile. In a
//! slot, calls begin one after the other, an interval apart, the first one an interval after the slot was granted. So whatever
//! becomes of its holders, the calls of a slot are an interval apart, less only by what its present holder was late. How many slots there
//! are, and how long an interval is, says the [plan](super::plan), which all processes go by.
//!
//! A process that has no slot says so by a mark, another key. Those that have more than one then let half of the others go at each look
//! at it, and those that have had a single one for long let it go, too: its [turn](super::turn) is over.

use std::cmp::Reverse;
use std::time::Duration;

use tokio::time::Instant;

use super::plan::{KnownPlan, SeenPlan};
use super::rate::Plan;
use super::slot::{LimitSlot, ms};
pub(crate) use super::slot::{Now, SlotAnswer, SlotRequest};
use super::turn::Turn;
use crate::clock::Timestamp;
use crate::limits::{LIMIT_ASK_MS, LIMIT_LEFT_MS, LIMIT_NEXT_MS, LIMIT_SLOTS_MAX};

/// What a process knows of a limit.
#[derive(Debug, Clone)]
pub(crate) struct LimitSlots {
    plan: KnownPlan,
    pub(super) held: Vec<LimitSlot>,
    /// Of each slot: when it may be free, as far as is known.
    free_at: Vec<Instant>,
    /// When one is asked for where the process has none, and when another one beside those that it has.
    pub(super) ask_at: Instant,
    more_at: Instant,
    pub(super) turn: Turn,
    /// Whether an answer is awaited to what is neither a renewal nor a release.
    pub(super) asking: bool,
    /// Whether a message had to wait for the next call lately, and not for a slot.
    pub(super) short: bool,
    /// Whether slots are kept at the end of this invocation, once that is decided.
    pub(super) keeps: Option<bool>,
}

impl LimitSlots {
    /// Returns what a process knows that would have this plan.
    pub(crate) fn new(own: Plan, now: Instant) -> Self {
        let (plan, held, free_at) = (KnownPlan::none(own, now), Vec::new(), vec![now; LIMIT_SLOTS_MAX as usize]);
        Self {
            plan,
            held,
            free_at,
            ask_at: now,
            more_at: now,
            turn: Turn::new(now),
            asking: false,
            short: false,
            keeps: None,
        }
    }

    /// Returns what all processes go by, as far as is known.
    pub(crate) fn plan(&self) -> Plan {
        self.plan.plan
    }

    /// Returns the time between two calls in a slot.
    pub(crate) fn interval(&self) -> Duration {
        self.plan().interval()
    }

    /// Forgets the slots whose leases are over.
    pub(super) fn forget(&mut self, now: Now) {
        self.held.retain(|slot| !slot.is_over(now));
        self.note_turn(now);
    }

    /// Notes that the process has a slot, if it does.
    pub(super) fn note_turn(&mut self, now: Now) {
        if self.held.iter().any(|slot| !slot.is_over(now)) {
            self.turn.goes_on(now.mono);
        }
    }

    fn holds(&self, number: u32) -> bool {
        self.held.iter().any(|slot| slot.number == number)
    }

    /// Returns whether a slot is to be let go: for others, or since there is no such slot any more.
    fn is_closed(&self, slot: &LimitSlot, now: Now) -> bool {
        slot.closes_at().is_some_and(|at| at <= now.mono) || slot.number >= self.plan().used()
    }

    /// The slots in which calls may begin, and how many at once in each. None without a plan that holds.
    pub(super) fn open(&self, now: Now) -> impl Iterator<Item = (&LimitSlot, u32)> {
        let (plan, holds) = (self.plan(), self.plan.holds(now));
        let free = move |slot: &LimitSlot| plan.at_once_in(slot.number).saturating_sub(slot.running);
        let is_open = move |slot: &&LimitSlot| holds && !slot.is_over(now) && !self.is_closed(slot, now);
        self.held.iter().filter(is_open).map(move |slot| (slot, free(slot)))
    }

    /// Returns how many calls can begin within this time, in the slots that are held.
    pub(crate) fn soon(&self, now: Now, within: Duration) -> usize {
        let interval = self.interval();
        let by = (now.mono + within).min(self.plan.ends_at() - Duration::from_nanos(1));
        // OK because it is no more than `free`.
        let of = |(slot, free): (&LimitSlot, u32)| slot.soon(now, by, interval).min(u128::from(free)) as usize;
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
        let (interval, counts) = (self.interval(), self.plan().allowed.at_once.is_some());
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
        self.plan().allowed.at_once?;
        self.held.iter().find(|slot| slot.number == number).map(|slot| slot.since)
    }

    /// Returns what is to be done now where so many messages wait, or when there may be something to be done.
    pub(crate) fn next(&mut self, now: Now, waiting: usize, seed: u64) -> Result<SlotRequest, Option<Instant>> {
        self.forget(now);
        if waiting > 0 {
            self.keeps = None;
        }
        let (mut wake_at, mut due) = (None::<Instant>, None);
        let earlier = |wake_at: Option<Instant>, at: Instant| Some(wake_at.map_or(at, |other| other.min(at)));
        for slot in &self.held {
            let needed = waiting > 0 || slot.running > 0;
            match self.is_closed(slot, now) && slot.running == 0 {
                _ if slot.renewing => {}
                true => due = Some(SlotRequest::Release(slot.number)),
                false if needed && slot.renew_at() <= now.mono => due = due.or(Some(SlotRequest::Renew(slot.number))),
                false => {
                    let renew_at = needed.then_some(slot.renew_at());
                    let closes_at = slot.closes_at().filter(|at| *at > now.mono);
                    wake_at = renew_at.into_iter().chain(closes_at).fold(wake_at, earlier);
                }
            }
        }
        if due.is_none() && waiting > 0 && !self.asking {
            match self.ask(now, waiting, seed) {
                Ok(step) => due = Some(step),
                Err(at) => wake_at = earlier(wake_at, at),
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
            Some(_) => self.asking = true,
            None => return Err(wake_at),
        }
        due.ok_or(wake_at)
    }

    /// Closes slots for a process that has none: half of those that it has beside one, and that one when its turn is over. What messages
    /// come back for is kept.
    fn make_room(&mut self, now: Now) {
        let (used, is_over) = (self.plan().used(), self.turn.is_over(now.mono, self.interval()));
        let is_open = |slot: &&mut LimitSlot| slot.closes_at().is_none() && slot.number < used && !slot.is_awaited(now);
        let mut open: Vec<_> = self.held.iter_mut().filter(is_open).collect();
        open.sort_by_key(|slot| slot.since);
        let goes = if open.len() == 1 && is_over { 1 } else { open.len() / 2 };
        open.into_iter().take(goes).for_each(|slot| slot.close(now));
    }

    /// What to ask for now, or when.
    fn ask(&mut self, now: Now, waiting: usize, seed: u64) -> Result<SlotRequest, Instant> {
        let look_at = self.plan.look_at(now, seed);
        if look_at <= now.mono {
            return Ok(SlotRequest::Look);
        }
        if !self.plan.holds(now) {
            return Err(look_at);
        }
        let asks = |number: u32, at: Instant| {
            if at <= now.mono { Ok(SlotRequest::Claim(number)) } else { Err(at.min(look_at)) }
        };
        let used = self.plan().used();
        // OK because there are few slots. Each process begins elsewhere.
        let turn = |number: &u32| (number + used - (seed % u64::from(used)) as u32) % used;
        let free_at = |number: &u32| self.free_at[*number as usize].max(now.mono);
        // Of those that may be free, first the one that was let go last: the others are most likely held.
        let known = |number: &u32| Reverse(self.free_at[*number as usize]);
        let others = (0..used).filter(|number| !self.holds(*number));
        let other = others.min_by_key(|number| (free_at(number), known(number), turn(number)));
        let Some(first) = self.open(now).map(|(slot, _)| slot.since).min() else {
            let marks_at = self.turn.marks_at(now.mono);
            if marks_at.is_some_and(|at| at <= now.mono) {
                return Ok(SlotRequest::Mark);
            }
            // Others come first for what it has closed for them. Then one is asked for even where it should not be free: its owner can
            // have let it go.
            let closed = self.held.iter().filter_map(|slot| Some(slot.closes_at()? + ms(LIMIT_LEFT_MS)));
            let at = closed.fold(self.ask_at, Instant::max);
            return other
                .map_or(Err(look_at), |number| asks(number, at))
                .map_err(|at| marks_at.into_iter().fold(at, Instant::min));
        };
        let listen_at = self.turn.listen_at(now.mono, self.held.len(), self.interval());
        if listen_at.is_some_and(|at| at <= now.mono) {
            return Ok(SlotRequest::Listen);
        }
        let wanted_until = self.turn.wanted_until(now.mono);
        let at = listen_at.into_iter().chain(wanted_until).fold(look_at, Instant::min);
        match other {
            Some(number) if wanted_until.is_none() && self.soon(now, Duration::ZERO) < waiting => {
                // Not before the other processes have had the time to ask for their first one.
                let may_at = self.more_at.max(first + ms(LIMIT_ASK_MS)).max(free_at(&number));
                asks(number, may_at).map_err(|may_at| may_at.min(at))
            }
            _ => Err(at),
        }
    }

    /// Takes note of the plan that was seen; without one, none holds, and another look is made a little later.
    pub(crate) fn looked(&mut self, seen: Option<SeenPlan>, now: Now, skew: Duration) {
        self.asking = false;
        let before = self.plan();
        self.plan.looked(seen, now, skew);
        if self.plan() != before {
            // As if each slot were granted now.
            let next_at = now.mono + self.interval();
            self.held.iter_mut().for_each(|slot| slot.next_at = slot.next_at.max(next_at));
        }
    }

    /// Takes note of for how long some process has no slot, as far as is known.
    pub(crate) fn wanted(&mut self, for_time: Duration, now: Now) {
        self.asking = false;
        self.turn.told(now.mono, for_time, self.held.len());
        if self.turn.is_wanted(now.mono) {
            self.make_room(now);
        }
    }

    pub(crate) fn claimed(&mut self, number: u32, came: SlotAnswer, now: Now) {
        self.asking = false;
        // What it holds and may not use is of no help.
        let has_some = self.open(now).next().is_some() || matches!(came, SlotAnswer::Held { .. });
        let wait = match came {
            SlotAnswer::Held { asked, lease_until } => {
                self.turn.granted(now.mono, self.held.len());
                self.held.push(LimitSlot::granted(number, (asked, lease_until), now, self.interval()));
                ms(LIMIT_NEXT_MS)
            }
            SlotAnswer::Busy(for_time) => {
                self.free_at[number as usize] = now.mono + for_time;
                let used = self.plan().used();
                let may_be_free = self.free_at[..used as usize].iter().any(|at| *at <= now.mono);
                self.turn.refused(has_some, (may_be_free, used))
            }
            SlotAnswer::Unanswered => ms(LIMIT_ASK_MS),
        };
        let at = if has_some { &mut self.more_at } else { &mut self.ask_at };
        *at = now.mono + wait;
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
            Err(()) => slot.renew_again(asked.mono + ms(LIMIT_ASK_MS)),
        }
        answer != Ok(None)
    }

    /// Gives up on an answer: whoever waited for it has no more time.
    pub(crate) fn unasked(&mut self) {
        self.asking = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Claim, OwnerToken};
    use crate::fingerprint::Fingerprint;
    use crate::key::{ConsumerName, Key, MessageId, RecordId};
    use crate::limits::{LIMIT_LATE_MS, LIMIT_LEASE_MS, LIMIT_PLAN_MS, LIMIT_TERM_MS, LIMIT_WANTED_MS};
    use crate::protocol::rate::Allowed;
    use crate::protocol::{
        self, ClaimPolicy, ClaimRequest, Decision, Ending, Likely, Refusal, RenewDecision, Renewal, SettleDecision,
        Settlement,
    };
    use crate::record::Record;

    const SKEW: u64 = 1_000;

    const RATE: Allowed = Allowed { calls: Some(10), per_ms: 1_000, at_once: None };

    fn at(start: Instant, after: u64) -> Now {
        Now { wall: Timestamp::from_millis(1_000_000 + after), mono: start + ms(after) }
    }

    /// Slots of which these are held since `after`, all asked for then.
    fn holding(allowed: Allowed, slots: u32, numbers: &[u32], (start, after): (Instant, u64)) -> LimitSlots {
        let plan = Plan { allowed, slots };
        let mut known = LimitSlots::new(plan, start);
        goes_by(&mut known, plan, at(start, after));
        for number in numbers {
            let asked = at(start, after);
            let lease_until = asked.wall.plus(ms(LIMIT_LEASE_MS));
            known.claimed(*number, SlotAnswer::Held { asked, lease_until }, asked);
        }
        known
    }

    /// Has it seen this plan, which holds for half a minute.
    fn goes_by(known: &mut LimitSlots, plan: Plan, asked: Now) {
        let lease_until = asked.wall.plus(ms(LIMIT_PLAN_MS));
        known.looked(Some(SeenPlan { plan, lease_until, asked }), asked, ms(SKEW));
    }

    /// Has it renewed this slot, and its plan.
    fn goes_on(known: &mut LimitSlots, number: u32, asked: Now) {
        known.renewed(number, asked, Ok(Some(asked.wall.plus(ms(LIMIT_LEASE_MS)))));
        goes_by(known, known.plan(), asked);
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
        // In half a second others are to have it.
        for t in [14_000, 28_000, 42_000, 56_000] {
            goes_on(&mut known, 0, at(start, t));
        }
        known.wanted(ms(9_000), at(start, LIMIT_TERM_MS));
        assert_eq!(known.next(at(start, LIMIT_TERM_MS), 0, 0), Err(Some(start + ms(LIMIT_TERM_MS + 500))));
        assert_eq!(soon(&mut known, LIMIT_TERM_MS + 200), [1, 2, 2]);
        let begun = known.begin(at(start, LIMIT_TERM_MS + 200));
        assert_eq!((begun, soon(&mut known, LIMIT_TERM_MS + 200)), (Some(0), [0, 1, 1]));
        assert_eq!(known.begin(at(start, LIMIT_TERM_MS + 499)), Some(0));
        assert_eq!(soon(&mut known, LIMIT_TERM_MS + 499), [0; 3], "its next call would come too late");
        assert_eq!(known.next(at(start, LIMIT_TERM_MS + 500), 0, 0), Ok(SlotRequest::Release(0)));
        // No call is claimed that would begin after the end of the plan.
        let mut known = holding(RATE, 2, &[0], (start, 0));
        goes_by(&mut known, Plan { allowed: RATE, slots: 2 }, at(start, 1));
        known.renewed(0, at(start, 29_000), Ok(Some(at(start, 44_000).wall)));
        assert_eq!((soon(&mut known, 29_900), soon(&mut known, 30_001)), ([1, 1, 1], [0; 3]));
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
        assert_eq!(LimitSlots::new(Plan { allowed: slow, slots: 1 }, start).promise(at(start, 0)), None);
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
        let plan = Plan { allowed: RATE, slots: 10 };
        let mut known = LimitSlots::new(plan, start);
        assert_eq!(known.next(at(start, 0), 0, 3), Err(None), "without messages, nothing");
        assert_eq!(known.next(at(start, 0), 5, 3), Ok(SlotRequest::Look));
        assert_eq!(known.next(at(start, 0), 5, 3), Err(None), "one thing at a time");
        known.looked(None, at(start, 0), ms(SKEW));
        assert_eq!(known.next(at(start, 0), 5, 3), Err(Some(start + ms(1_000))), "without a plan, nothing else");
        goes_by(&mut known, plan, at(start, 1));
        assert_eq!(known.next(at(start, 1), 1, 3), Ok(SlotRequest::Claim(3)), "each process begins elsewhere");
        known.claimed(3, SlotAnswer::Busy(ms(9_000)), at(start, 5));
        assert_eq!(known.next(at(start, 5), 1, 3), Err(Some(start + ms(105))), "another one may be free");
        assert_eq!(known.next(at(start, 105), 1, 3), Ok(SlotRequest::Claim(4)));
        let lease_until = at(start, 105).wall.plus(ms(LIMIT_LEASE_MS));
        known.claimed(4, SlotAnswer::Held { asked: at(start, 105), lease_until }, at(start, 110));
        let renew_at = start + ms(105 + LIMIT_LEASE_MS / 2);
        assert_eq!(known.next(at(start, 1_109), 2, 3), Err(Some(start + ms(1_110))), "others come first");
        known.wanted(ms(900), at(start, 1_110));
        assert_eq!(known.next(at(start, 1_200), 2, 3), Err(Some(start + ms(2_010))), "while one has none, no other");
        assert_eq!(
            known.next(at(start, 2_010), 2, 3),
            Ok(SlotRequest::Claim(5)),
            "the first call is due, the second is not"
        );
        known.claimed(5, SlotAnswer::Unanswered, at(start, 2_250));
        assert_eq!(known.next(at(start, 2_250), 1, 3), Err(Some(renew_at)), "it can begin at once");
        assert_eq!(known.next(at(start, 2_250), 2, 3), Err(Some(start + ms(3_250))));
        // All others are held: one is asked for again after a while.
        for number in [0, 1, 2, 5, 6, 7, 8, 9] {
            known.claimed(number, SlotAnswer::Busy(ms(5_000)), at(start, 3_250));
        }
        assert_eq!(known.next(at(start, 7_600), 9, 3), Err(Some(renew_at)));
        assert_eq!(known.next(at(start, 7_605), 9, 3), Ok(SlotRequest::Renew(4)));
        goes_on(&mut known, 4, at(start, 7_605));
        assert_eq!(known.next(at(start, 11_249), 9, 3), Err(Some(start + ms(11_250))));
        assert_eq!(known.next(at(start, 11_250), 9, 3), Ok(SlotRequest::Claim(3)));
    }

    /// What a process does by itself while messages wait, each millisecond until then.
    fn steps(known: &mut LimitSlots, start: Instant, times: std::ops::Range<u64>) -> Vec<(u64, SlotRequest)> {
        let mut steps = Vec::new();
        for t in times {
            while let Ok(request) = known.next(at(start, t), 9, 0) {
                steps.push((t, request));
                match request {
                    SlotRequest::Look => goes_by(known, known.plan(), at(start, t)),
                    SlotRequest::Listen => known.wanted(Duration::ZERO, at(start, t)),
                    SlotRequest::Mark => known.wanted(ms(LIMIT_WANTED_MS), at(start, t)),
                    SlotRequest::Claim(number) => known.claimed(number, SlotAnswer::Busy(ms(9_000)), at(start, t)),
                    SlotRequest::Renew(number) => goes_on(known, number, at(start, t)),
                    SlotRequest::Release(_) => {}
                }
            }
        }
        steps
    }

    #[test]
    fn without_a_slot_one_is_asked_for_each_second_and_the_others_know_it() {
        let start = Instant::now();
        let mut known = holding(RATE, 3, &[], (start, 0));
        let steps = steps(&mut known, start, 0..17_000);
        let asked = steps.iter().filter(|(_, request)| matches!(request, SlotRequest::Claim(_))).map(|(t, _)| *t);
        assert_eq!(asked.clone().take(6).collect::<Vec<_>>(), [0, 100, 200, 1_200, 2_200, 3_200]);
        assert_eq!(asked.count(), 19);
        // Once it has been refused all of them.
        let marked = steps.iter().filter(|(_, request)| *request == SlotRequest::Mark).map(|(t, _)| *t);
        assert_eq!(marked.collect::<Vec<_>>(), [200, 6_200, 12_200]);
    }

    #[test]
    fn while_no_process_is_without_a_slot_those_that_are_held_are_renewed_and_kept() {
        let start = Instant::now();
        let mut known = holding(RATE, 2, &[0, 1], (start, 0));
        let steps = steps(&mut known, start, 0..120_000);
        let count = |which: fn(&SlotRequest) -> bool| steps.iter().filter(|(_, request)| which(request)).count();
        assert_eq!(count(|request| matches!(request, SlotRequest::Renew(_))), 2 * 15);
        assert_eq!(count(|request| *request == SlotRequest::Listen), 24);
        assert_eq!(count(|request| *request == SlotRequest::Look), 0, "the plan is renewed with them here");
        assert_eq!(steps.len(), 2 * 15 + 24);
    }

    #[test]
    fn for_a_process_that_has_none_half_of_the_others_are_let_go_at_each_look_and_the_last_one_after_its_turn() {
        let start = Instant::now();
        let mut known = holding(RATE, 8, &[0, 1, 2, 3, 4], (start, 0));
        for (n, slot) in known.held.iter_mut().enumerate() {
            slot.since = start + ms(n as u64);
        }
        let mut let_go = Vec::new();
        for t in 1_000..9_000 {
            match known.next(at(start, t), 9, 0) {
                // What was claimed begins until then.
                Ok(SlotRequest::Release(number)) => let_go.push((t, number)),
                Ok(SlotRequest::Listen) => known.wanted(ms(LIMIT_WANTED_MS), at(start, t)),
                Ok(SlotRequest::Renew(number)) => goes_on(&mut known, number, at(start, t)),
                Ok(other) => panic!("{other:?} at {t}: no other one is asked for"),
                Err(_) => {}
            }
        }
        assert_eq!(let_go, [(1_500, 1), (1_501, 0), (3_500, 2), (5_500, 3)]);
        // Its last one, when its turn has been a minute; it leaves it to the others for a while, and asks for it then as they did.
        for t in (9_000..=LIMIT_TERM_MS).step_by(4_000) {
            goes_on(&mut known, 4, at(start, t));
        }
        known.wanted(ms(LIMIT_WANTED_MS), at(start, LIMIT_TERM_MS - 1));
        assert!(known.held[0].closes_at().is_none());
        known.wanted(ms(LIMIT_WANTED_MS), at(start, LIMIT_TERM_MS));
        let end = LIMIT_TERM_MS + 500;
        assert_eq!(known.next(at(start, end - 1), 9, 0), Err(Some(start + ms(end))));
        assert_eq!(known.next(at(start, end), 9, 0), Ok(SlotRequest::Release(4)));
        let back = end + LIMIT_LEFT_MS;
        assert_eq!(known.next(at(start, back - 1), 9, 0), Err(Some(start + ms(back))));
        assert!(matches!(known.next(at(start, back), 9, 0), Ok(SlotRequest::Claim(_))));
    }

    /// The only slot of all is let go with each invocation, and claimed again by the next one: that is one turn.
    #[test]
    fn a_slot_that_is_let_go_and_soon_claimed_again_is_of_the_same_turn() {
        let start = Instant::now();
        let one = Allowed { calls: None, per_ms: 1_000, at_once: Some(1) };
        let mut known = holding(one, 1, &[], (start, 0));
        for t in (0..).step_by(6_000) {
            goes_by(&mut known, Plan { allowed: one, slots: 1 }, at(start, t));
            if known.next(at(start, t), 1, 0) == Ok(SlotRequest::Listen) {
                assert_eq!(t, LIMIT_TERM_MS);
                break;
            }
            let lease_until = at(start, t).wall.plus(ms(LIMIT_LEASE_MS));
            known.claimed(0, SlotAnswer::Held { asked: at(start, t), lease_until }, at(start, t));
            assert!(known.begin(at(start, t)).is_some());
            if t + 6_000 == LIMIT_TERM_MS {
                continue;
            }
            let since = known.counted_since(0).unwrap();
            known.end(0, since);
            assert_eq!(known.leave(at(start, t + 5_900)), [0]);
        }
        // After a longer break a new one begins.
        let mut known = holding(one, 1, &[0], (start, 0));
        assert_eq!(known.leave(at(start, 100)), [0]);
        let again = at(start, 100 + LIMIT_LEFT_MS);
        known.claimed(0, SlotAnswer::Held { asked: again, lease_until: again.wall.plus(ms(LIMIT_LEASE_MS)) }, again);
        assert!(!known.turn.is_over(start + ms(LIMIT_TERM_MS + 100), Duration::ZERO));
    }

    /// One that there is no more, and one that is for others: neither keeps the process from asking, and waiting, as one without a slot.
    #[test]
    fn a_process_whose_slots_are_closed_asks_for_one_each_second_while_its_calls_run() {
        let start = Instant::now();
        let limit = |at_once| Allowed { calls: None, per_ms: 1_000, at_once: Some(at_once) };
        let mut shrunk = holding(limit(20), 10, &[7], (start, 0));
        assert_eq!(shrunk.begin(at(start, 0)), Some(7));
        goes_by(&mut shrunk, Plan { allowed: limit(2), slots: 10 }, at(start, 10));
        let mut closed = holding(limit(2), 2, &[0], (start, 0));
        closed.held[0].running = 1;
        closed.held[0].close(at(start, 0));
        for (mut known, from) in [(shrunk, 10), (closed, 500 + LIMIT_LEFT_MS)] {
            let claims = steps(&mut known, start, 10..7_000).into_iter();
            let times: Vec<_> =
                claims.filter(|(_, step)| matches!(step, SlotRequest::Claim(_))).map(|(t, _)| t).collect();
            assert_eq!(times[0], from);
            assert!((4..=8).contains(&times.len()), "{times:?}");
        }
    }

    #[test]
    fn a_slot_that_there_is_no_more_is_renewed_until_what_runs_in_it_has_ended() {
        let (start, allowed) = (Instant::now(), Allowed { at_once: Some(20), ..RATE });
        let mut known = holding(allowed, 10, &[7], (start, 0));
        assert_eq!(known.begin(at(start, 1_000)), Some(7));
        let since = known.counted_since(7).unwrap();
        goes_by(&mut known, Plan { allowed, slots: 2 }, at(start, 1_010));
        let due = at(start, LIMIT_LEASE_MS / 2);
        assert_eq!(known.next(due, 0, 0), Ok(SlotRequest::Renew(7)));
        goes_on(&mut known, 7, due);
        known.end(7, since);
        assert_eq!(known.next(due, 0, 0), Ok(SlotRequest::Release(7)));
    }

    #[test]
    fn how_long_one_waits_for_another_slot_does_not_begin_anew_with_each_invocation() {
        let start = Instant::now();
        let mut known = holding(RATE, 2, &[0], (start, 0));
        for _ in 0..9 {
            known.claimed(1, SlotAnswer::Busy(ms(1)), at(start, 1_000));
        }
        assert!(known.leave(at(start, 1_001)).is_empty());
        known.claimed(1, SlotAnswer::Busy(ms(1)), at(start, 2_000));
        assert_eq!(known.more_at - start, ms(2_000 + 15_000));
    }

    /// A call that runs keeps its slot, also one that is to be let go: it counts as long as it runs.
    #[test]
    fn a_slot_in_which_a_call_runs_is_renewed_until_that_ends_and_let_go_then() {
        let start = Instant::now();
        let one = Allowed { calls: None, per_ms: 1_000, at_once: Some(1) };
        let mut known = holding(one, 1, &[0], (start, 0));
        for t in (7_500..=LIMIT_TERM_MS).step_by(7_500) {
            goes_on(&mut known, 0, at(start, t));
        }
        assert_eq!(known.begin(at(start, LIMIT_TERM_MS)), Some(0));
        let since = known.counted_since(0).unwrap();
        known.wanted(ms(LIMIT_WANTED_MS), at(start, LIMIT_TERM_MS));
        assert_eq!(known.next(at(start, LIMIT_TERM_MS), 9, 0), Err(Some(start + ms(LIMIT_TERM_MS + 500))));
        for t in [67_500, 75_000, 82_500] {
            assert_eq!(known.next(at(start, t), 9, 0), Ok(SlotRequest::Renew(0)), "{t}");
            goes_on(&mut known, 0, at(start, t));
        }
        known.end(0, since);
        assert_eq!(known.begin(at(start, 83_000)), None, "it is for others");
        assert_eq!(known.next(at(start, 83_000), 9, 0), Ok(SlotRequest::Release(0)));
    }

    #[test]
    fn what_is_answered_about_an_earlier_holding_of_a_slot_changes_nothing_of_the_present_one() {
        let start = Instant::now();
        for late in [Ok(None), Ok(Some(at(start, 7_500 + LIMIT_LEASE_MS).wall)), Err(())] {
            let mut known = holding(RATE, 1, &[0], (start, 0));
            assert_eq!(known.next(at(start, 7_500), 1, 0), Ok(SlotRequest::Renew(0)));
            // Its lease is over before the answer comes, and the slot was granted once more.
            let again = at(start, LIMIT_LEASE_MS + 1);
            let plan = known.plan();
            goes_by(&mut known, plan, again);
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
        let mut many = holding(RATE, 10, &[0, 1], (start, 0));
        many.held[1].since = start + ms(1);
        assert!(many.clone().leave(at(start, 1)).is_empty(), "no other process was met");
        many.wanted(ms(9_000), at(start, 900));
        assert_eq!(many.clone().leave(at(start, 901)), [0], "half of the others are for the process that has none");
        // The only one that it has, where nothing waits for it.
        let mut single = many.clone();
        single.held.retain(|slot| slot.number == 1);
        assert_eq!(single.leave(at(start, 901)), [1]);
        let mut short = many.clone();
        assert!(short.begin(at(start, 1_000)).is_some() && short.begin(at(start, 1_001)).is_some());
        assert!(short.begin(at(start, 1_001)).is_none());
        assert_eq!(short.leave(at(start, 1_002)), [0]);
        assert!(short.leave(at(start, 1_003)).is_empty(), "and no more when that is known");
    }

    #[test]
    fn another_plan_holds_for_all_slots_as_if_each_were_granted_then() {
        let start = Instant::now();
        let mut known = holding(RATE, 10, &[0, 7], (start, 0));
        let slow = Plan { allowed: Allowed { calls: Some(2), ..RATE }, slots: 10 };
        goes_by(&mut known, slow, at(start, 900));
        assert_eq!((known.plan(), known.interval()), (slow, ms(1_000)));
        assert_eq!(known.next(at(start, 900), 1, 0), Ok(SlotRequest::Release(7)), "it is not used any more");
        let begun = [1_899, 1_900, 2_899, 2_900].map(|t| known.begin(at(start, t)));
        assert_eq!(begun, [None, Some(0), None, Some(0)]);
        known.looked(None, at(start, 14_000), ms(SKEW));
        assert_eq!(known.begin(at(start, 14_001)), Some(0), "without an answer it holds as long as its lease");
        let end = 900 + LIMIT_PLAN_MS;
        known.renewed(0, at(start, 29_000), Ok(Some(at(start, 44_000).wall)));
        assert_eq!((known.begin(at(start, end - 1)), known.clone().begin(at(start, end + 1_000))), (Some(0), None));
        assert_eq!(known.next_call_at(at(start, end)), None);
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

    fn id() -> RecordId {
        RecordId::new(&ConsumerName::new("claimant-rate").unwrap(), &Key::new("ses/0").unwrap())
    }

    fn policy() -> ClaimPolicy {
        ClaimPolicy { skew: ms(SKEW), window: ms(60_000), ..ClaimPolicy::default() }
    }

    impl World {
        fn fresh(start: Instant, t: u64, off: i64) -> Process {
            let plan = Plan { allowed: ONE, slots: 1 };
            let known = LimitSlots::new(plan, start + ms(t));
            Process { known, off, claim: None, answer: None }
        }

        fn now(&self, process: usize) -> Now {
            let wall = (1_000_000 + self.t).saturating_add_signed(self.processes[process].off);
            Now { wall: Timestamp::from_millis(wall), mono: self.start + ms(self.t) }
        }

        fn claim_of(&self, process: usize) -> Option<Claim> {
            let (owner, fence) = self.processes[process].claim.clone()?;
            let lease_until = Timestamp::from_millis(0);
            Some(Claim {
                id: id(),
                owner,
                fence,
                lease_until,
                attempt: 1,
                interruptions: 0,
                last_error: None,
                transaction: None,
            })
        }

        /// A process takes its answer, or begins a call, or asks the store.
        fn go(&mut self, process: usize) {
            let now = self.now(process);
            // What all go by does not change here.
            let Process { known, .. } = &mut self.processes[process];
            goes_by(known, known.plan(), now);
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
                Ok(SlotRequest::Mark | SlotRequest::Listen) => {
                    let all = ms(LIMIT_WANTED_MS);
                    self.processes[process].known.wanted(all, now);
                }
                Ok(SlotRequest::Look) | Err(_) => {}
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
