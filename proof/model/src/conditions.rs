//! The lock table's conditional writes, as data: the conditions that `claimant-dynamodb` states in DynamoDB's syntax, and
//! what it then writes.
//!
//! This is the one place where the model says something that production says elsewhere. `tests/it/model.rs` therefore
//! puts generated records before the real expressions and before these, and wants the same answers and the same records.

use std::borrow::Cow;

use claimant_core::protocol::{Abandoned, ClaimRequest, Renewal, Settlement, expiry, fresh_claim, window_end};
use claimant_core::{Claim, Fence, Record, Status};

/// One comparison of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Term {
    /// `attribute_not_exists(#id)`
    Absent,
    /// `#fingerprint = :fingerprint`
    SamePayload,
    /// `#expires_at >= :now_s`
    WindowOpen,
    /// `#status = :failed`
    Failed,
    /// `#status = :in_progress`
    InProgress,
    /// `#lease_until < :dead`
    LeaseOver,
    /// `#owner <> :owner`
    AnotherOwner,
    /// `#owner = :owner`
    SameOwner,
    /// `#fence = :fence`
    SameFence,
    /// `#lease_until < :lease_until`
    EarlierLease,
    /// `#status = :status`, of the record that was seen
    SeenStatus,
    /// `#owner = :owner`, of the record that was seen
    SeenOwner,
    /// `#fence = :fence`, of the record that was seen
    SeenFence,
    /// `#lease_until = :lease_until`, of the record that was seen
    SeenLease,
}

/// Which request a condition belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `Requests::insert`: the statement that claims a key without a record.
    Insert,
    /// `Requests::claim`: the blind claim.
    Claim,
    /// `Requests::replace`: compare and set.
    Replace,
    /// `Requests::create`: a record where there is none.
    Create,
    /// `Requests::renew`.
    Renew,
    /// `Requests::settle`, and `update_ended` with the same condition.
    Settle,
}

/// One conditional write.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "each variant is the request of that name, with what it is made from")]
pub enum Guarded<'a> {
    Insert(&'a ClaimRequest),
    Claim(&'a ClaimRequest),
    Replace { seen: &'a Record, next: &'a Record },
    Create { next: &'a Record },
    Renew(&'a Claim, &'a Renewal),
    Settle(&'a Claim, &'a Settlement),
}

/// Alternatives, each of terms that must all hold.
pub type Condition = &'static [&'static [Term]];

const ABSENT: Condition = &[&[Term::Absent]];

const CLAIM: Condition = &[
    &[Term::Absent],
    &[Term::SamePayload, Term::WindowOpen, Term::AnotherOwner, Term::Failed],
    &[Term::SamePayload, Term::WindowOpen, Term::InProgress, Term::LeaseOver, Term::AnotherOwner],
];

const CLAIM_PARKING: Condition =
    &[&[Term::Absent], &[Term::SamePayload, Term::WindowOpen, Term::AnotherOwner, Term::Failed]];

const REPLACE: Condition = &[&[Term::SeenStatus, Term::SeenOwner, Term::SeenFence, Term::SeenLease]];

const RENEW: Condition = &[&[Term::InProgress, Term::SameOwner, Term::SameFence, Term::EarlierLease]];

const HELD: Condition = &[&[Term::InProgress, Term::SameOwner, Term::SameFence]];

impl Guarded<'_> {
    /// Every condition there is; that of a claim in the form that has all of its terms.
    pub const CONDITIONS: &'static [(Kind, Condition)] = &[
        (Kind::Insert, ABSENT),
        (Kind::Claim, CLAIM),
        (Kind::Replace, REPLACE),
        (Kind::Create, ABSENT),
        (Kind::Renew, RENEW),
        (Kind::Settle, HELD),
    ];

    /// Which request it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Insert(_) => Kind::Insert,
            Self::Claim(_) => Kind::Claim,
            Self::Replace { .. } => Kind::Replace,
            Self::Create { .. } => Kind::Create,
            Self::Renew(..) => Kind::Renew,
            Self::Settle(..) => Kind::Settle,
        }
    }

    /// Its condition.
    #[must_use]
    pub fn condition(&self) -> Condition {
        match self {
            Self::Insert(_) | Self::Create { .. } => ABSENT,
            Self::Claim(request) if request.policy.abandoned == Abandoned::Rerun => CLAIM,
            Self::Claim(_) => CLAIM_PARKING,
            Self::Replace { .. } => REPLACE,
            Self::Renew(..) => RENEW,
            Self::Settle(..) => HELD,
        }
    }

    /// Whether it applies to this record, if one of its terms is left out.
    #[must_use]
    pub fn applies(&self, record: Option<&Record>, without: Option<Term>) -> bool {
        let holds = |term: &Term| Some(*term) == without || self.holds(*term, record);
        self.condition().iter().any(|all| all.iter().all(holds))
    }

    /// Whether one term holds. Of a record that is not there, nothing holds but that.
    fn holds(&self, term: Term, record: Option<&Record>) -> bool {
        let Some(record) = record else { return term == Term::Absent };
        match (term, self) {
            (Term::Failed, _) => record.status == Status::Failed,
            (Term::InProgress, _) => record.status == Status::InProgress,
            (Term::SamePayload, Self::Claim(request)) => record.fingerprint == request.fingerprint,
            (Term::WindowOpen, Self::Claim(request)) => record.expires_at_s >= request.now.as_secs_rounded_up(),
            (Term::LeaseOver, Self::Claim(request)) => record.lease_until < request.now.minus(request.policy.skew),
            (Term::AnotherOwner, Self::Claim(request)) => record.owner != request.owner,
            (Term::SeenStatus, Self::Replace { seen, .. }) => record.status == seen.status,
            (Term::SeenOwner, Self::Replace { seen, .. }) => record.owner == seen.owner,
            (Term::SeenFence, Self::Replace { seen, .. }) => record.fence == seen.fence,
            (Term::SeenLease, Self::Replace { seen, .. }) => record.lease_until == seen.lease_until,
            (Term::EarlierLease, Self::Renew(_, renewal)) => record.lease_until < renewal.lease_until,
            (Term::SameOwner, Self::Renew(claim, _) | Self::Settle(claim, _)) => record.owner == claim.owner,
            (Term::SameFence, Self::Renew(claim, _) | Self::Settle(claim, _)) => record.fence == claim.fence,
            _ => false,
        }
    }

    /// The record that is there once it applied to `before`. `None` where its expression needs a record and there is
    /// none, which no condition allows.
    #[must_use]
    pub fn written(&self, before: Option<&Record>) -> Option<Record> {
        match self {
            Self::Insert(request) => Some(fresh_claim(request)),
            Self::Claim(request) => Some(claimed(request, before)),
            Self::Replace { next, .. } | Self::Create { next } => Some((*next).clone()),
            Self::Renew(_, renewal) => before.map(|before| Record {
                lease_until: renewal.lease_until,
                updated_at: renewal.now,
                expires_at_s: expiry(renewal.now, renewal.lease_until, &renewal.policy),
                ..before.clone()
            }),
            Self::Settle(claim, settlement) => before.map(|before| settled(claim, settlement, before)),
        }
    }
}

/// `CLAIM_UPDATE`.
fn claimed(request: &ClaimRequest, before: Option<&Record>) -> Record {
    Record {
        status: Status::InProgress,
        owner: request.owner.clone(),
        fence: before.map_or(Fence::FIRST, |before| before.fence.next()),
        lease_until: request.lease_until,
        attempts: before.map_or(0, |before| before.attempts) + 1,
        message_id: request.message_id.clone(),
        fingerprint: request.fingerprint,
        created_at: before.map_or(request.now, |before| before.created_at),
        updated_at: request.now,
        completed_at: None,
        expires_at_s: expiry(request.now, request.lease_until, &request.policy),
        result: None,
        error: before.and_then(|before| before.error.clone()),
        note: before.and_then(|before| before.note.clone()),
    }
}

/// The update of `Requests::settle`: what it does not name stays.
fn settled(claim: &Claim, settlement: &Settlement, before: &Record) -> Record {
    let (ending, before) = (&settlement.ending, before.clone());
    Record {
        status: ending.status(),
        updated_at: settlement.now,
        expires_at_s: window_end(settlement.now, &settlement.policy),
        completed_at: if ending.status() == Status::Completed { Some(settlement.now) } else { before.completed_at },
        result: ending.result().map(str::to_owned).or(before.result),
        attempts: before.attempts.saturating_sub(ending.attempts_back()),
        error: if ending.removes_error(claim) { None } else { ending.error().map(Cow::into_owned).or(before.error) },
        ..before
    }
}
