//! The decisions on the end and the renewal of a claim.

use std::borrow::Cow;

use super::errors::set_aside;
use super::policy::{ClaimPolicy, expiry, window_end};
use crate::claim::{Claim, Fence};
use crate::clock::Timestamp;
use crate::record::{ERROR_MAX_BYTES, Record, Status, shortened};

/// How a claim ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The work is done.
    Completed {
        /// What the handler returned, if it is to be kept: JSON, bounded by the engine.
        result: Option<String>,
    },
    /// The handler was not run: claimable at once, and the attempt does not count.
    Released,
    /// As [`Released`](Self::Released), for work that was taken over: who claims it next takes it over, too.
    SetAside {
        /// How many owners left it in progress: those of its claim, at least one.
        interruptions: u32,
    },
    /// It failed and may be tried again at once.
    Failed {
        /// Why, without payload data.
        error: String,
    },
    /// It failed for good.
    Rejected {
        /// Why, without payload data.
        error: String,
    },
    /// It is parked: an operator decides.
    Parked {
        /// Why, without payload data.
        error: String,
    },
}

impl Ending {
    /// Returns the status that a record gets.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } | Self::Released | Self::SetAside { .. } => Status::Failed,
            Self::Rejected { .. } => Status::Rejected,
            Self::Parked { .. } => Status::Parked,
        }
    }

    /// Returns the error that a record gets, [`shortened`] to [`ERROR_MAX_BYTES`]. One from before is removed where there is none.
    #[must_use]
    pub fn error(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Failed { error } | Self::Rejected { error } | Self::Parked { error } => {
                Some(shortened(error, ERROR_MAX_BYTES))
            }
            Self::SetAside { interruptions } => Some(set_aside(*interruptions).into()),
            Self::Completed { .. } | Self::Released => None,
        }
    }

    /// Returns whether an error from before is to be removed from the record of this claim: the first one of a key found none.
    #[must_use]
    pub fn removes_error(&self, claim: &Claim) -> bool {
        claim.fence > Fence::FIRST && self.error().is_none()
    }

    /// Returns the result that a record gets.
    #[must_use]
    pub fn result(&self) -> Option<&str> {
        match self {
            Self::Completed { result } => result.as_deref(),
            _ => None,
        }
    }

    /// Returns by how many the count of attempts goes down.
    #[must_use]
    pub const fn attempts_back(&self) -> u32 {
        matches!(self, Self::Released | Self::SetAside { .. }) as u32
    }
}

/// One attempt to settle one claim.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// How the claim ends.
    pub ending: Ending,
    /// The time at the owner.
    pub now: Timestamp,
    /// The consumer's rules.
    pub policy: ClaimPolicy,
}

/// The decision on a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleDecision {
    /// Write this record if what was seen is still there.
    Write(Box<Record>),
    /// The record shows that an earlier write of the same settlement applied and its answer was lost.
    AlreadySettled,
    /// The claim is no longer held: another owner has the key, or the record is gone.
    Lost,
}

/// Decides whether `claim` may end as `settlement` says, from the record seen (if any).
#[must_use]
pub fn settle(seen: Option<&Record>, claim: &Claim, settlement: &Settlement) -> SettleDecision {
    let Some(seen) = seen.filter(|r| r.owner == claim.owner && r.fence == claim.fence) else {
        return SettleDecision::Lost;
    };
    let status = settlement.ending.status();
    if seen.status == status {
        return SettleDecision::AlreadySettled;
    }
    if seen.status != Status::InProgress {
        return SettleDecision::Lost;
    }
    SettleDecision::Write(Box::new(Record {
        status,
        attempts: seen.attempts.saturating_sub(settlement.ending.attempts_back()),
        result: settlement.ending.result().map(str::to_owned),
        updated_at: settlement.now,
        completed_at: (status == Status::Completed).then_some(settlement.now),
        expires_at_s: window_end(settlement.now, &settlement.policy),
        error: settlement.ending.error().map(Cow::into_owned),
        ..seen.clone()
    }))
}

/// One attempt to make a lease longer.
#[derive(Debug, Clone, Copy)]
pub struct Renewal {
    /// The new end of the lease; an earlier one than the record has is refused, so that a late answer shortens nothing.
    pub lease_until: Timestamp,
    /// The time at the owner.
    pub now: Timestamp,
    /// The consumer's rules.
    pub policy: ClaimPolicy,
}

/// The decision on a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewDecision {
    /// Write this record if what was seen is still there.
    Write(Box<Record>),
    /// The lease lasts as long already: an earlier write of the same renewal applied, or a later one.
    AlreadyLonger,
    /// The claim is no longer held: another owner has the key, or the record is gone.
    Lost,
}

/// Decides whether the lease of `claim` may be extended, from the record seen (if any).
#[must_use]
pub fn renew(seen: Option<&Record>, claim: &Claim, renewal: &Renewal) -> RenewDecision {
    let held = |r: &&Record| r.status == Status::InProgress && r.owner == claim.owner && r.fence == claim.fence;
    match seen.filter(held) {
        None => RenewDecision::Lost,
        Some(seen) if seen.lease_until >= renewal.lease_until => RenewDecision::AlreadyLonger,
        Some(seen) => RenewDecision::Write(Box::new(Record {
            lease_until: renewal.lease_until,
            updated_at: renewal.now,
            expires_at_s: expiry(renewal.now, renewal.lease_until, &renewal.policy),
            ..seen.clone()
        })),
    }
}
