//! The plan of a limit, as a process knows it: what all its processes go by, as long as a lease that they read.
//!
//! It is a claim whose record says it. All go by it until its lease is over, and whoever reads it in its second half renews it if
//! the plan is what should hold. Who would have another one renews nothing; so it ends, and the next one is claimed after its lease and
//! the clock skew. No two processes ever go by different plans, whatever an operator sets, and however two versions of a function differ.

use std::time::Duration;

use tokio::time::Instant;

use super::rate::Plan;
use super::slot::{Now, ms};
use crate::clock::Timestamp;
use crate::limits::{LIMIT_ASK_MS, LIMIT_LEFT_MS, LIMIT_PLAN_LAST_MS, LIMIT_PLAN_MS, LIMIT_PLAN_SPREAD_MS};
use crate::record::{Record, Status};

/// A plan as it was read, or claimed, or renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenPlan {
    pub(crate) plan: Plan,
    pub(crate) lease_until: Timestamp,
    /// When it was asked for.
    pub(crate) asked: Now,
}

impl SeenPlan {
    /// Returns the plan of this record.
    pub(crate) fn of(record: &Record, asked: Now) -> Option<Self> {
        Some(Self { plan: Plan::held_by(record)?, lease_until: record.lease_until, asked })
    }
}

/// What a process has found that looked at the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundPlan {
    /// It is in the first half of its lease: there is nothing to do but to go by it.
    Fresh(Record),
    /// It is older: to be renewed where it is what should hold, or else to be left until it ends.
    Old(Record),
    /// It has just ended, and is of a version that sets the limit otherwise: the next one is for that first, which has its own
    /// settings where an operator has named none.
    Left,
    /// There is none: what should hold is to be claimed.
    None,
}

impl FoundPlan {
    /// Returns what this record is at this time, for a process that sets the limit so. Nobody can claim another plan until its lease and
    /// the clock skew are over.
    pub(crate) fn of(record: Option<Record>, now: Timestamp, skew: Duration, own: Plan) -> Self {
        let Some(record) = record.filter(|record| record.status == Status::InProgress) else { return Self::None };
        let over_at = record.lease_until.plus(skew);
        if record.lease_until.since(now) > ms(LIMIT_PLAN_MS / 2) {
            return Self::Fresh(record);
        }
        if now <= over_at {
            return Self::Old(record);
        }
        let is_left = now <= over_at.plus(ms(LIMIT_LEFT_MS)) && record.fingerprint != own.fingerprint();
        if is_left { Self::Left } else { Self::None }
    }
}

/// The plan that a process knows.
#[derive(Debug, Clone)]
pub(super) struct KnownPlan {
    /// As it was seen last; before, as the process would set it.
    pub(super) plan: Plan,
    lease_until: Timestamp,
    /// The end of the lease by the other clock.
    ends_at: Instant,
    look_at: Instant,
}

impl KnownPlan {
    /// Returns what a process knows that has seen none.
    pub(super) fn none(own: Plan, now: Instant) -> Self {
        Self { plan: own, lease_until: Timestamp::from_millis(0), ends_at: now, look_at: now }
    }

    /// Returns whether the process may go by it, by either clock.
    pub(super) fn holds(&self, now: Now) -> bool {
        now.mono < self.ends_at && now.wall <= self.lease_until
    }

    /// Returns until when it may, as far as is known.
    pub(super) fn ends_at(&self) -> Instant {
        self.ends_at
    }

    /// Returns when it is to be looked at: each process at another time while it holds, so that one of them renews it.
    pub(super) fn look_at(&self, now: Now, seed: u64) -> Instant {
        if self.holds(now) { self.look_at + ms(seed % LIMIT_PLAN_SPREAD_MS) } else { self.look_at }
    }

    /// Takes note of what was seen, or of no plan: then another look makes sense a little later. `skew` is that of clocks.
    pub(super) fn looked(&mut self, seen: Option<SeenPlan>, now: Now, skew: Duration) {
        let Some(SeenPlan { plan, lease_until, asked }) = seen else {
            self.look_at = now.mono + ms(LIMIT_ASK_MS);
            return;
        };
        (self.plan, self.lease_until) = (plan, lease_until);
        // No longer than any lease is, also where the clock of another one was ahead.
        self.ends_at = asked.mono + lease_until.since(asked.wall).min(ms(LIMIT_PLAN_MS));
        // In its second half to renew it, then for what others have made of it, and when there can be another one.
        let looks = [ms(LIMIT_PLAN_MS / 2), ms(LIMIT_PLAN_LAST_MS)].map(|left| self.ends_at.checked_sub(left));
        let next = looks.into_iter().flatten().find(|at| *at > now.mono);
        let over_at = asked.mono + lease_until.plus(skew).since(asked.wall).min(ms(LIMIT_PLAN_MS) + skew) + ms(1);
        self.look_at = next.unwrap_or(over_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::OwnerToken;
    use crate::key::{ConsumerName, Key, RecordId};
    use crate::limits::SKEW_DEFAULT_MS;
    use crate::protocol::rate::Allowed;
    use crate::protocol::{self, ClaimPolicy, ClaimRequest, Conflicts, Decision, Likely, RenewDecision, Renewal};

    fn plan(calls: u32, slots: u32) -> Plan {
        Plan { allowed: Allowed { calls: Some(calls), per_ms: 1_000, at_once: None }, slots }
    }

    fn at(start: Instant, after: u64) -> Now {
        Now { wall: Timestamp::from_millis(1_000_000 + after), mono: start + ms(after) }
    }

    #[test]
    fn it_is_looked_at_in_its_second_half_before_its_end_and_when_there_can_be_another_one() {
        let (start, skew) = (Instant::now(), ms(SKEW_DEFAULT_MS));
        let seen = |asked: Now, left: u64| SeenPlan { plan: plan(5, 2), lease_until: asked.wall.plus(ms(left)), asked };
        // When it was seen, how long its lease lasts then; when it is looked at next, and ends.
        let rows = [
            ((0, 30_000), (15_000, 30_000)),
            ((15_100, 14_900), (26_000, 30_000)),
            ((26_000, 4_000), (31_001, 30_000)),
            ((30_500, 0), (31_501, 30_500)),
            // The clock of another one is far ahead.
            ((0, 600_000), (15_000, 30_000)),
        ];
        for ((t, left), (look_at, ends_at)) in rows {
            let mut known = KnownPlan::none(plan(1, 1), start);
            known.looked(Some(seen(at(start, t), left)), at(start, t), skew);
            assert_eq!((known.look_at - start, known.ends_at - start), (ms(look_at), ms(ends_at)), "{t} {left}");
            assert_eq!((known.holds(at(start, t)), known.holds(at(start, ends_at))), (left > 0, false));
            let spread = [0, 1_500, 3_500].map(|seed| known.look_at(at(start, t), seed) - known.look_at);
            assert_eq!(spread, if left > 0 { [0, 1_500, 1_500].map(ms) } else { [Duration::ZERO; 3] });
        }
        // By its own clock, too; and without an answer it holds until then, and is looked at after a second.
        let mut known = KnownPlan::none(plan(1, 1), start);
        assert!(!known.holds(at(start, 0)));
        known.looked(Some(seen(at(start, 0), 30_000)), at(start, 0), skew);
        assert!(!known.holds(Now { wall: at(start, 30_001).wall, ..at(start, 10) }));
        known.looked(None, at(start, 20_000), skew);
        assert!(known.holds(at(start, 29_999)) && known.look_at - start == ms(21_000));
    }

    /// A process of the walk below.
    #[derive(Clone)]
    struct Process {
        own: Plan,
        /// By how much its clock is off.
        off: i64,
        /// What it has read, and when.
        read: Option<(Now, Option<Record>)>,
        /// What it has seen, on its way to it.
        answer: Option<Option<SeenPlan>>,
        known: KnownPlan,
    }

    #[derive(Clone)]
    struct World {
        start: Instant,
        t: u64,
        owners: u64,
        record: Option<Record>,
        processes: [Process; 2],
        /// How many plans were claimed.
        plans: u32,
    }

    fn policy() -> ClaimPolicy {
        let (skew, window) = (ms(SKEW_DEFAULT_MS), ms(60_000));
        ClaimPolicy { skew, window, conflicts: Conflicts::Ignore, ..ClaimPolicy::default() }
    }

    fn id() -> RecordId {
        RecordId::new(&ConsumerName::new("claimant-rate").unwrap(), &Key::new("ses/plan").unwrap())
    }

    impl World {
        fn now(&self, process: usize) -> Now {
            let wall = (1_000_000 + self.t).saturating_add_signed(self.processes[process].off);
            Now { wall: Timestamp::from_millis(wall), mono: self.start + ms(self.t) }
        }

        /// A process reads the plan, does what is to be done by what it has read, or has the answer.
        fn go(&mut self, number: usize) {
            let (now, skew) = (self.now(number), policy().skew);
            let process = &mut self.processes[number];
            if let Some(seen) = process.answer.take() {
                process.known.looked(seen, now, skew);
                return;
            }
            let Some((asked, read)) = process.read.take() else {
                process.read = Some((now, self.record.clone()));
                return;
            };
            let lease_until = now.wall.plus(ms(LIMIT_PLAN_MS));
            let seen = match FoundPlan::of(read, asked.wall, skew, process.own) {
                FoundPlan::Old(record) if Plan::held_by(&record) == Some(process.own) => {
                    let claim = protocol::claim_of(id(), &record, 0);
                    let renewal = Renewal { lease_until, now: now.wall, policy: policy() };
                    match protocol::renew(self.record.as_ref(), &claim, &renewal) {
                        RenewDecision::Write(next) => {
                            let seen = SeenPlan { plan: process.own, lease_until: next.lease_until, asked: now };
                            self.record = Some(*next);
                            Some(seen)
                        }
                        RenewDecision::AlreadyLonger | RenewDecision::Lost => None,
                    }
                }
                FoundPlan::Fresh(record) | FoundPlan::Old(record) => SeenPlan::of(&record, asked),
                FoundPlan::Left => None,
                FoundPlan::None => {
                    self.owners += 1;
                    let request = ClaimRequest {
                        id: id(),
                        owner: OwnerToken::from_stored(self.owners.to_string()),
                        message_id: process.own.text().unwrap(),
                        fingerprint: process.own.fingerprint(),
                        now: now.wall,
                        lease_until,
                        policy: policy(),
                        likely: Likely::Known,
                    };
                    match protocol::decide(self.record.as_ref(), &request) {
                        Decision::Grant { next, .. } => {
                            self.plans += 1;
                            let seen = SeenPlan { plan: process.own, lease_until: next.lease_until, asked: now };
                            self.record = Some(next);
                            Some(seen)
                        }
                        _ => None,
                    }
                }
            };
            process.answer = Some(seen);
        }

        fn check(&self) {
            let plans: Vec<_> = [0, 1].into_iter().filter(|p| self.processes[*p].known.holds(self.now(*p))).collect();
            let [first, second] = plans[..] else { return };
            assert_eq!(self.processes[first].known.plan, self.processes[second].known.plan, "at {} ms", self.t);
        }
    }

    /// Every order of what can happen, so many things long; returns how many, and in how many of them there was more than one plan.
    fn walk(world: &World, left: u32) -> (u64, u64) {
        world.check();
        if left == 0 {
            return (1, (world.plans > 1).into());
        }
        (0..5).fold((0, 0), |(orders, several), event| {
            let mut next = world.clone();
            match event {
                0 => next.t += 16_000,
                1 => next.t += 15_500,
                2 | 3 => next.go(event - 2),
                // What the first one would have is set, for itself alone so far.
                _ => next.processes[0].own = plan(1, 1),
            }
            let (more, more_several) = walk(&next, left - 1);
            (orders + more, several + more_several)
        })
    }

    #[test]
    fn whatever_happens_in_whatever_order_no_two_processes_go_by_different_plans() {
        let start = Instant::now();
        // Clocks that differ by as much as they may, either way.
        for off in [-500, 500] {
            let process = |own, off| Process { own, off, read: None, answer: None, known: KnownPlan::none(own, start) };
            let processes = [process(plan(5, 2), off), process(plan(50, 10), -off)];
            let mut world = World { start, t: 0, owners: 0, record: None, processes, plans: 0 };
            // One of them has its plan.
            (0..3).for_each(|_| world.go(0));
            let (orders, several) = walk(&world, 9);
            assert_eq!(orders, 5_u64.pow(9));
            assert!(several > 1_000, "{several}");
        }
    }
}
