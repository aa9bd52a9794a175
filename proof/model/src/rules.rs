//! The production decisions, asked by number; with one of their branches switched off, if wanted.
//!
//! Nothing is decided here. A branch is switched off from outside: what `protocol::decide` sees, or what it answers, is
//! changed as if the branch were not there.

use claimant_core::protocol::{
    self, Abandoned, ClaimPolicy, ClaimRequest, Decision, Ending, Refusal, RenewDecision, Renewal, SettleDecision,
    Settlement,
};
use claimant_core::{Fence, Record, Status, Timestamp};

use crate::clause::{Branch, Clause};
use crate::conditions::{Guarded, Kind};
use crate::values::{Held, MESSAGE_IDS_MAX, OWNERS_MAX, Rec, Req, Time, message_id, owner, seconds, timestamp};

/// A token and an id that no worker of the model has.
const UNUSED: u8 = OWNERS_MAX - 1;
const NO_MESSAGE: u8 = MESSAGE_IDS_MAX - 1;

/// A decision, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the decision's of that name")]
pub enum Verdict {
    Grant { next: Rec, taken_over: bool },
    Held,
    Park { next: Rec },
    Refuse(Why),
}

/// A refusal, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the refusal of that name")]
pub enum Why {
    Completed,
    Busy { until: Time },
    Rejected,
    Parked,
    Conflict,
}

/// A decision on a settlement or a renewal, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the decision's of that name")]
pub enum Settling {
    Write(Rec),
    Already,
    Lost,
}

/// How a claim ends, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the ending of that name")]
pub enum End {
    Completed,
    Released,
    Failed,
    Rejected,
    Parked,
}

/// A consumer's rules, with at most one clause switched off.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The consumer's rules.
    pub policy: ClaimPolicy,
    /// What is switched off.
    pub off: Option<Clause>,
}

impl End {
    /// The real ending.
    #[must_use]
    pub fn ending(self) -> Ending {
        match self {
            Self::Completed => Ending::Completed { result: None },
            Self::Released => Ending::Released,
            Self::Failed => Ending::Failed { error: String::new() },
            Self::Rejected => Ending::Rejected { error: String::new() },
            Self::Parked => Ending::Parked { error: String::new() },
        }
    }

    /// The status that a record gets.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Completed => Status::Completed,
            Self::Released | Self::Failed => Status::Failed,
            Self::Rejected => Status::Rejected,
            Self::Parked => Status::Parked,
        }
    }
}

impl Rules {
    fn lacks(&self, branch: Branch) -> bool {
        self.off == Some(Clause::Branch(branch))
    }

    /// `protocol::decide`.
    #[must_use]
    pub fn decide(&self, seen: Option<Rec>, req: &Req) -> Verdict {
        let mut request = req.request(self.policy);
        let mut record = seen.map(|seen| seen.record());
        if let Some(record) = &mut record {
            self.blur(record, &mut request);
        }
        match protocol::decide(record.as_ref(), &request) {
            Decision::Grant { interruptions: 1.., .. } if self.lacks(Branch::RerunAbandoned) => {
                Verdict::Refuse(Why::Busy { until: req.now })
            }
            Decision::Grant { mut next, interruptions } => {
                if let Some(seen) = seen {
                    self.dull(&seen, req, &mut next);
                }
                Verdict::Grant { next: self.expiring(Rec::of(&next), req.now), taken_over: interruptions > 0 }
            }
            Decision::Held => Verdict::Held,
            Decision::Park { next } => {
                let next = Rec::of(&next);
                // Everything that parking does not change is as it was seen, not as it was blurred.
                let was = seen.unwrap_or(next);
                Verdict::Park { next: Rec { status: next.status, expires: next.expires, ..was } }
            }
            Decision::Refuse(refusal) => Verdict::Refuse(match refusal {
                Refusal::Completed { .. } => Why::Completed,
                Refusal::Busy { until, .. } => Why::Busy { until: seconds(until) },
                Refusal::Rejected { .. } => Why::Rejected,
                Refusal::Parked => Why::Parked,
                Refusal::Conflict => Why::Conflict,
            }),
        }
    }

    /// Changes what `decide` sees as if a branch were not there.
    fn blur(&self, seen: &mut Record, request: &mut ClaimRequest) {
        let Some(Clause::Branch(branch)) = self.off else { return };
        let in_progress = seen.status == Status::InProgress;
        let expired = seen.expires_at_s * 1_000 < request.now.as_millis();
        match branch {
            Branch::OwnClaim => seen.owner = owner(UNUSED),
            Branch::Skew => request.policy.skew = std::time::Duration::ZERO,
            Branch::LeaseEnd => {
                seen.lease_until = Timestamp::from_millis(seen.lease_until.as_millis().saturating_sub(1))
            }
            Branch::LiveLease if in_progress => seen.lease_until = timestamp(0),
            Branch::LiveInWindow if in_progress && expired => seen.lease_until = timestamp(0),
            Branch::WindowOver => seen.expires_at_s = u64::MAX / 1_000,
            Branch::WindowOpen => seen.expires_at_s = 0,
            Branch::Conflict => seen.fingerprint = request.fingerprint,
            Branch::Completed if seen.status == Status::Completed => seen.status = Status::Failed,
            Branch::ParkAbandoned => request.policy.abandoned = Abandoned::Rerun,
            Branch::FailedClaimed if seen.status == Status::Failed => seen.status = Status::Parked,
            Branch::RejectedSame => seen.message_id = message_id(NO_MESSAGE),
            Branch::RejectedOther => seen.message_id = request.message_id.clone(),
            Branch::Parked if seen.status == Status::Parked => seen.status = Status::Failed,
            _ => {}
        }
    }

    /// Changes what `decide` grants as if a branch were not there.
    fn dull(&self, seen: &Rec, req: &Req, next: &mut Record) {
        let over = seen.expires < req.now;
        if self.lacks(Branch::Fence) {
            next.fence = Fence::new(seen.fence.into());
        }
        if self.lacks(Branch::FenceOverWindows) && over {
            next.fence = Fence::FIRST;
        }
        if self.lacks(Branch::Attempts) {
            next.attempts = 1;
        }
    }

    /// Changes the end of a window that is reckoned from the end of a lease.
    fn expiring(&self, next: Rec, now: Time) -> Rec {
        if !self.lacks(Branch::WindowAfterLease) {
            return next;
        }
        let expires = protocol::window_end(timestamp(now), &self.policy);
        Rec { expires: Time::try_from(expires).unwrap_or(Time::MAX), ..next }
    }

    /// `protocol::settle`.
    #[must_use]
    pub fn settle(&self, seen: Option<Rec>, held: &Held, end: End, now: Time) -> Settling {
        let claim = held.claim();
        let mut record = seen.map(|seen| seen.record());
        let Some(Clause::Branch(branch)) = self.off else {
            return self.settled(record.as_ref(), held, end, now);
        };
        if record.is_none() && branch == Branch::SettleGone {
            return Settling::Already;
        }
        if let Some(record) = &mut record {
            let (ended, shown) = (record.status != Status::InProgress, record.status == end.status());
            match branch {
                Branch::SettleOwner => record.owner = claim.owner,
                Branch::SettleFence => record.fence = claim.fence,
                Branch::SettleOwnWrite if shown => record.owner = owner(UNUSED),
                Branch::SettleOtherEnding if ended => record.status = end.status(),
                Branch::SettleInProgress if ended && !shown => record.status = Status::InProgress,
                _ => {}
            }
        }
        // What the write keeps is what was there.
        match (self.settled(record.as_ref(), held, end, now), seen) {
            (Settling::Write(next), Some(seen)) => {
                Settling::Write(Rec { owner: seen.owner, fence: seen.fence, ..next })
            }
            (settling, _) => settling,
        }
    }

    fn settled(&self, seen: Option<&Record>, held: &Held, end: End, now: Time) -> Settling {
        let settlement = self.settlement(end, now);
        numbered(protocol::settle(seen, &held.claim(), &settlement))
    }

    fn settlement(&self, end: End, now: Time) -> Settlement {
        Settlement { ending: end.ending(), now: timestamp(now), policy: self.policy }
    }

    /// `protocol::renew`.
    #[must_use]
    pub fn renew(&self, seen: Option<Rec>, held: &Held, lease: Time, now: Time) -> Settling {
        let claim = held.claim();
        let mut record = seen.map(|seen| seen.record());
        if let (Some(record), Some(Clause::Branch(branch))) = (&mut record, self.off) {
            match branch {
                Branch::RenewInProgress => record.status = Status::InProgress,
                Branch::RenewOwner => record.owner = claim.owner.clone(),
                Branch::RenewFence => record.fence = claim.fence,
                Branch::RenewLater if record.lease_until > timestamp(lease) => record.lease_until = timestamp(0),
                Branch::RenewOwnWrite if record.lease_until >= timestamp(lease) => record.owner = owner(UNUSED),
                _ => {}
            }
        }
        let renewal = Renewal { lease_until: timestamp(lease), now: timestamp(now), policy: self.policy };
        match (numbered_renewal(protocol::renew(record.as_ref(), &claim, &renewal)), seen) {
            (Settling::Write(next), Some(seen)) => {
                let next = Rec { status: seen.status, owner: seen.owner, fence: seen.fence, ..next };
                Settling::Write(self.expiring(next, now))
            }
            (settling, _) => settling,
        }
    }

    /// The record after a claim with this condition; `None` where it is refused.
    #[must_use]
    pub fn claim(&self, kind: Kind, seen: Option<Rec>, req: &Req) -> Option<Rec> {
        let request = req.request(self.policy);
        let guarded = if kind == Kind::Insert { Guarded::Insert(&request) } else { Guarded::Claim(&request) };
        self.write(&guarded, seen).map(|next| self.expiring(next, req.now))
    }

    /// The record after compare and set; `None` where it is refused.
    #[must_use]
    pub fn replace(&self, record: Option<Rec>, seen: Option<Rec>, next: Rec) -> Option<Rec> {
        let (seen, next) = (seen.map(|seen| seen.record()), next.record());
        let guarded = match &seen {
            Some(seen) => Guarded::Replace { seen, next: &next },
            None => Guarded::Create { next: &next },
        };
        self.write(&guarded, record)
    }

    /// The record after a guarded settlement; `None` where it is refused.
    #[must_use]
    pub fn settle_guarded(&self, record: Option<Rec>, held: &Held, end: End, now: Time) -> Option<Rec> {
        let (claim, settlement) = (held.claim(), self.settlement(end, now));
        self.write(&Guarded::Settle(&claim, &settlement), record)
    }

    /// The record after a guarded renewal; `None` where it is refused.
    #[must_use]
    pub fn renew_guarded(&self, record: Option<Rec>, held: &Held, lease: Time, now: Time) -> Option<Rec> {
        let claim = held.claim();
        let renewal = Renewal { lease_until: timestamp(lease), now: timestamp(now), policy: self.policy };
        self.write(&Guarded::Renew(&claim, &renewal), record).map(|next| self.expiring(next, now))
    }

    fn write(&self, guarded: &Guarded<'_>, record: Option<Rec>) -> Option<Rec> {
        let without = match self.off {
            Some(Clause::Term(kind, term)) if kind == guarded.kind() => Some(term),
            _ => None,
        };
        let record = record.map(|record| record.record());
        let next = guarded.applies(record.as_ref(), without).then(|| guarded.written(record.as_ref()))?;
        next.map(|next| Rec::of(&next))
    }
}

fn numbered(decision: SettleDecision) -> Settling {
    match decision {
        SettleDecision::Write(next) => Settling::Write(Rec::of(&next)),
        SettleDecision::AlreadySettled => Settling::Already,
        SettleDecision::Lost => Settling::Lost,
    }
}

fn numbered_renewal(decision: RenewDecision) -> Settling {
    match decision {
        RenewDecision::Write(next) => Settling::Write(Rec::of(&next)),
        RenewDecision::AlreadyLonger => Settling::Already,
        RenewDecision::Lost => Settling::Lost,
    }
}
