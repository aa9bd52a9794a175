//! What a worker makes of the store's answers: the way of `LockTable::claim_one`, `settle_one` and `renew_within`, and of
//! the engine around them.

use claimant_core::{Conflicts, Status};

use crate::config::{Config, Form};
use crate::rules::{End, Rules, Settling, Verdict, Why};
use crate::state::{Ask, Base, Flaw, Out, State, Worker};
use crate::values::{Held, Rec, Req, Time};

/// The claim that a record grants, as `protocol::claim_of`.
fn held_by(record: &Rec, payload: u8, taken_over: bool) -> Held {
    Held {
        owner: record.owner,
        fence: record.fence,
        lease: record.lease,
        attempt: record.attempts,
        payload,
        taken_over,
    }
}

impl State {
    /// Lets what the worker asked for arrive, and its answer come back.
    pub fn answer(&mut self, config: &Config, worker: usize) {
        let Worker::Asking { id, until, ask, resolving, .. } = self.workers[worker] else { return };
        let (rules, before) = (config.rules(), self.record);
        let applied = self.apply(config, &ask);
        self.workers[worker] = match ask {
            Ask::Insert(req) if applied => self.granted(config, id, until, req.payload, |record| (record, false)),
            Ask::Insert(req) => asking(id, until, Ask::Look(req)),
            Ask::Look(req) => self.looked(config, &rules, id, until, &req),
            Ask::Begin(req) => self.begun(config, &rules, id, until, &req),
            Ask::Claim(req) => self.claimed(config, &rules, (id, until), &req, before, applied),
            Ask::Replace { req, next, taken_over, .. } if applied => match next.status {
                Status::Parked => self.refused(config, id, &req, &next, Why::Parked),
                _ => self.granted(config, id, until, req.payload, |record| (record, taken_over)),
            },
            Ask::Replace { req, .. } => self.decided_anew(config, &rules, (id, until), &req),
            Ask::Renew { .. } => return,
            Ask::Settle { end, .. } if applied => reporting(id, Out::of_end(end, resolving)),
            Ask::Settle { held, end, now } => self.settled(&rules, (id, until), &held, end, now),
            Ask::Commit { end, .. } if applied => reporting(id, Out::of_end(end, resolving)),
            Ask::Commit { req, end, now, .. } => self.recommitted(config, &rules, (id, until), &req, end, now),
        };
    }

    /// Reads the record that tells what became of an ending whose answer was lost.
    pub fn resolve(&mut self, config: &Config, worker: usize) {
        let Worker::Asking { id, until, ask, .. } = self.workers[worker] else { return };
        self.workers[worker] = match ask {
            Ask::Settle { held, end, now } => self.settled(&config.rules(), (id, until), &held, end, now),
            Ask::Commit { req, end, .. } if self.shows_own(&req, end) => reporting(id, Out::of_end(end, true)),
            // The same write again, with the same token.
            ask => Worker::Asking { id, until, ask, lost: false, resolving: true },
        };
    }

    /// What a claim came to.
    fn claimed(
        &mut self,
        config: &Config,
        rules: &Rules,
        (id, until): (u8, Time),
        req: &Req,
        before: Option<Rec>,
        applied: bool,
    ) -> Worker {
        match (applied, rules.decide(before, req)) {
            (true, Verdict::Grant { next, taken_over }) => {
                self.granted(config, id, until, req.payload, |_| (next, taken_over))
            }
            (true, Verdict::Park { next }) if config.form == Form::Atomic => {
                self.refused(config, id, req, &next, Why::Parked)
            }
            // The condition and the decision disagree.
            (true, _) => reporting(id, Out::StoreFailed),
            (false, _) => self.decided_anew(config, rules, (id, until), req),
        }
    }

    /// What the record, which a refusal showed, means.
    fn decided_anew(&mut self, config: &Config, rules: &Rules, (id, until): (u8, Time), req: &Req) -> Worker {
        let Some(seen) = self.record else { return asking(id, until, Ask::Claim(*req)) };
        match rules.decide(Some(seen), req) {
            Verdict::Held => self.granted(config, id, until, req.payload, |record| (record, false)),
            Verdict::Refuse(why) => self.refused(config, id, req, &seen, why),
            Verdict::Grant { next, taken_over } => {
                asking(id, until, Ask::Replace { req: *req, seen, next, taken_over })
            }
            Verdict::Park { next } => asking(id, until, Ask::Replace { req: *req, seen, next, taken_over: false }),
        }
    }

    /// What the record of a refused insert means: what can be claimed after all is claimed by itself.
    fn looked(&mut self, config: &Config, rules: &Rules, id: u8, until: Time, req: &Req) -> Worker {
        match self.record.map(|seen| (seen, rules.decide(Some(seen), req))) {
            Some((_, Verdict::Held)) => self.granted(config, id, until, req.payload, |record| (record, false)),
            Some((seen, Verdict::Refuse(why))) => self.refused(config, id, req, &seen, why),
            Some((_, Verdict::Grant { .. } | Verdict::Park { .. })) | None => asking(id, until, Ask::Claim(*req)),
        }
    }

    /// What an optimistic attempt starts from.
    fn begun(&mut self, config: &Config, rules: &Rules, id: u8, until: Time, req: &Req) -> Worker {
        match (self.record, rules.decide(self.record, req)) {
            (_, Verdict::Grant { next, taken_over }) => attempting(id, until, req, self.record, &next, taken_over),
            (Some(seen), Verdict::Refuse(why)) => self.refused(config, id, req, &seen, why),
            _ => asking(id, until, Ask::Claim(*req)),
        }
    }

    /// The handler starts, unless its time is over or it was tried too often.
    fn granted(
        &mut self,
        config: &Config,
        id: u8,
        until: Time,
        payload: u8,
        of: impl FnOnce(Rec) -> (Rec, bool),
    ) -> Worker {
        let Some(record) = self.record else { return reporting(id, Out::StoreFailed) };
        let ((record, taken_over), now) = (of(record), self.now);
        let held = held_by(&record, payload, taken_over);
        let end = |end| asking(id, until, Ask::Settle { held, end, now });
        if config.attempts_max.is_some_and(|max| held.attempt > max) {
            return end(End::Rejected);
        }
        if config.stops && self.now > until {
            return end(End::Released);
        }
        Worker::Running { id, until, held, base: None }
    }

    /// A refusal, and whether it is one that may be given.
    fn refused(&mut self, config: &Config, id: u8, req: &Req, seen: &Rec, why: Why) -> Worker {
        self.blame(Flaw::OwnWrites, matches!(why, Why::Busy { .. }) && seen.owner == req.owner);
        let live = seen.status == Status::InProgress && req.now <= seen.lease.saturating_add(config.skew);
        let conflict = config.conflicts == Conflicts::Reject && seen.payload != req.payload;
        self.blame(Flaw::S10, conflict && (live || seen.expires >= req.now) && why != Why::Conflict);
        reporting(id, Out::of_refusal(why))
    }

    /// What the record says of an ending that was refused, or whose answer was lost.
    fn settled(&mut self, rules: &Rules, (id, until): (u8, Time), held: &Held, end: End, now: Time) -> Worker {
        match rules.settle(self.record, held, end, now) {
            Settling::Already => reporting(id, Out::of_end(end, true)),
            Settling::Lost => {
                let own = self.record.is_some_and(|record| {
                    record.owner == held.owner && record.fence == held.fence && record.status == end.status()
                });
                self.blame(Flaw::OwnWrites, own);
                reporting(id, Out::Lost)
            }
            Settling::Write(_) => {
                let ask = Ask::Settle { held: *held, end, now };
                Worker::Asking { id, until, ask, lost: false, resolving: true }
            }
        }
    }

    fn shows_own(&self, req: &Req, end: End) -> bool {
        self.record.is_some_and(|record| record.owner == req.owner && record.status == end.status())
    }

    /// An optimistic ending on top of the record that its refusal showed.
    fn recommitted(
        &mut self,
        config: &Config,
        rules: &Rules,
        (id, until): (u8, Time),
        req: &Req,
        end: End,
        now: Time,
    ) -> Worker {
        if self.shows_own(req, end) {
            return reporting(id, Out::of_end(end, true));
        }
        match (commit(rules, req, self.record, end, now), self.record) {
            (Ok(ask), _) => asking(id, until, ask),
            (Err(why), Some(seen)) if end == End::Completed => self.refused(config, id, req, &seen, why),
            (Err(_), _) => reporting(id, Out::Lost),
        }
    }
}

/// The write that ends an optimistic attempt, as `OptimisticTransactions::write` makes it.
///
/// # Errors
/// Why there is none.
pub fn commit(rules: &Rules, req: &Req, seen: Option<Rec>, end: End, now: Time) -> Result<Ask, Why> {
    let next = match rules.decide(seen, req) {
        Verdict::Grant { next, .. } => next,
        Verdict::Refuse(why) => return Err(why),
        Verdict::Park { .. } => return Err(Why::Parked),
        Verdict::Held => return Err(Why::Busy { until: req.lease }),
    };
    let held = held_by(&next, req.payload, false);
    let next = match rules.settle(Some(next), &held, end, now) {
        Settling::Write(ended) => ended,
        Settling::Already | Settling::Lost => next,
    };
    Ok(Ask::Commit { req: *req, seen, next, end, now })
}

/// A worker that waits for the store.
#[must_use]
pub fn asking(id: u8, until: Time, ask: Ask) -> Worker {
    Worker::Asking { id, until, ask, lost: false, resolving: false }
}

/// A worker whose handler runs in an optimistic attempt.
#[must_use]
pub fn attempting(id: u8, until: Time, req: &Req, seen: Option<Rec>, next: &Rec, taken_over: bool) -> Worker {
    let held = held_by(next, req.payload, taken_over);
    Worker::Running { id, until, held, base: Some(Base { req: *req, seen }) }
}

/// A worker that knows what became of its message.
#[must_use]
pub fn reporting(id: u8, out: Out) -> Worker {
    Worker::Reporting { id, out, letter: None }
}
