//! The decision on a claim.

use super::errors::{interruptions_in, last_error};
use super::policy::{ABANDONED, Abandoned, ClaimPolicy, Conflicts, expiry, window_end};
use crate::Fence;
use crate::claim::{Claim, OwnerToken};
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::key::{MessageId, RecordId};
use crate::record::{Record, Status};

/// One attempt to claim one key.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The record of the key.
    pub id: RecordId,
    /// A fresh token, drawn for this attempt.
    pub owner: OwnerToken,
    /// The message that carries the work.
    pub message_id: MessageId,
    /// Of its payload.
    pub fingerprint: Fingerprint,
    /// The time at the claimant.
    pub now: Timestamp,
    /// Until when the claim is to be honoured.
    pub lease_until: Timestamp,
    /// The consumer's rules.
    pub policy: ClaimPolicy,
    /// A hint, which changes no answer.
    pub likely: Likely,
}

/// What a key most likely has in the store. It decides what is asked first, never what is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likely {
    /// No record: this is the first delivery of a message.
    New,
    /// A record, claimable or not: the message was delivered before.
    Known,
    /// A completed record: to look at it costs less than a write that is refused.
    Done,
}

/// Why a key could not be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is done. The only refusal after which a message may be reported successful.
    Completed {
        /// What the handler returned, if it was kept: JSON.
        result: Option<String>,
    },
    /// Another owner works on it.
    Busy {
        /// The end of the other's lease, as far as it is known now, and the clock-skew margin: if the lease is not renewed,
        /// the key is claimable after it.
        until: Timestamp,
        /// Whether it was claimed for this very message: an earlier delivery of it, whose owner may have died.
        same_message: bool,
    },
    /// This very message was rejected before.
    Rejected {
        /// Why, as its record says.
        error: Option<String>,
    },
    /// It was abandoned, and an operator has to decide.
    Parked,
    /// The key belongs to work with another payload.
    Conflict,
}

/// The decision on a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Write `next` if what was seen is still there; then the claim is granted.
    Grant {
        /// The record to write.
        next: Record,
        /// How many owners left the key in progress since a handler's run of it last came to an end, as far as the record says.
        interruptions: u32,
    },
    /// The record shows this attempt's own owner: an earlier write of it applied and its answer was lost. Granted: the claim is
    /// that of [`held`].
    Held,
    /// Write `next` if what was seen is still there; then the claim is refused as [`Refusal::Parked`].
    Park {
        /// The record to write.
        next: Record,
    },
    /// Write nothing.
    Refuse(Refusal),
}

/// Decides whether a key may be claimed, from the record seen (if any).
#[must_use]
pub fn decide(seen: Option<&Record>, request: &ClaimRequest) -> Decision {
    let Some(seen) = seen else {
        return Decision::Grant { next: fresh_claim(request), interruptions: 0 };
    };
    let in_progress = seen.status == Status::InProgress;
    if in_progress && seen.owner == request.owner {
        return Decision::Held;
    }
    let claimable_at = seen.lease_until.plus(request.policy.skew);
    let live = in_progress && request.now <= claimable_at;
    // TTL deletion is best effort and days late, so the end of the window is compared here, every time.
    if !live && seen.expires_at_s.saturating_mul(1_000) < request.now.as_millis() {
        return Decision::Grant { next: next_claim(seen, request), interruptions: in_progress.into() };
    }
    if request.policy.conflicts == Conflicts::Reject && seen.fingerprint.contradicts(&request.fingerprint) {
        return Decision::Refuse(Refusal::Conflict);
    }
    match seen.status {
        Status::Completed => Decision::Refuse(Refusal::Completed { result: seen.result.clone() }),
        Status::InProgress if live => {
            Decision::Refuse(Refusal::Busy { until: claimable_at, same_message: seen.message_id == request.message_id })
        }
        Status::InProgress => match request.policy.abandoned {
            Abandoned::Rerun => grant_again(seen, request),
            Abandoned::Park => Decision::Park {
                next: Record {
                    status: Status::Parked,
                    error: Some(ABANDONED.to_owned()),
                    updated_at: request.now,
                    expires_at_s: window_end(request.now, &request.policy),
                    ..seen.clone()
                },
            },
        },
        Status::Failed => grant_again(seen, request),
        // A redrive from a dead-letter queue gives the message a new id: an operator wants it tried again.
        // It gets fresh attempts, or a redrive would be of no use to what was rejected for want of them.
        Status::Rejected if seen.message_id != request.message_id => {
            grant_again(&Record { attempts: 0, ..seen.clone() }, request)
        }
        Status::Rejected => Decision::Refuse(Refusal::Rejected { error: seen.error.clone() }),
        // Not even for another message id: a producer's second copy has one too, and would run parked work again.
        Status::Parked => Decision::Refuse(Refusal::Parked),
    }
}

/// Returns the record that a key without one gets when it is claimed.
#[must_use]
pub fn fresh_claim(request: &ClaimRequest) -> Record {
    Record {
        status: Status::InProgress,
        owner: request.owner.clone(),
        fence: Fence::FIRST,
        lease_until: request.lease_until,
        attempts: 1,
        message_id: request.message_id.clone(),
        fingerprint: request.fingerprint,
        created_at: request.now,
        updated_at: request.now,
        completed_at: None,
        expires_at_s: expiry(request.now, request.lease_until, &request.policy),
        result: None,
        error: None,
        note: None,
    }
}

/// Returns the first claim of a new window: only the fence goes on, and what an operator noted stays.
fn next_claim(seen: &Record, request: &ClaimRequest) -> Record {
    Record { fence: seen.fence.next(), note: seen.note.clone(), ..fresh_claim(request) }
}

/// Returns the next claim of a key whose window goes on: the count of attempts goes on, and the time of creation stays. So does the error
/// until the claim ends, since it says how many owners did not finish the work: who takes over from this owner adds it.
fn grant_again(seen: &Record, request: &ClaimRequest) -> Decision {
    Decision::Grant {
        interruptions: interruptions_of(seen),
        next: Record {
            attempts: seen.attempts.saturating_add(1),
            created_at: seen.created_at,
            error: seen.error.clone(),
            ..next_claim(seen, request)
        },
    }
}

/// Returns how many owners have left the key in progress since a run of it came to an end, once it is claimable.
pub(super) fn interruptions_of(seen: &Record) -> u32 {
    interruptions_in(seen.error.as_deref()).saturating_add((seen.status == Status::InProgress).into())
}

/// Returns the claim that a granted request holds, given the record that is now in the store.
pub fn claim_of(id: RecordId, record: &Record, interruptions: u32) -> Claim {
    Claim {
        id,
        owner: record.owner.clone(),
        fence: record.fence,
        lease_until: record.lease_until,
        attempt: record.attempts,
        interruptions,
        last_error: record.error.as_deref().and_then(last_error).map(Box::from),
        transaction: None,
    }
}

/// Returns the claim that a request holds by [`Decision::Held`]: `seen` is the record, and `wanted` what this call had decided
/// before, if anything.
///
/// Whose work an earlier call, or an earlier try below this one, took over is not in the record any more, but for what its error says. A key that
/// was claimed before then counts as taken over: work that merely failed before is treated with more care than it needs.
pub fn held(id: RecordId, seen: &Record, wanted: Option<&Decision>) -> Claim {
    let known = match wanted {
        Some(Decision::Grant { next, interruptions }) if next.fence == seen.fence => Some(*interruptions),
        _ => None,
    };
    let at_least = || interruptions_in(seen.error.as_deref()).max((seen.attempts > 1).into());
    claim_of(id, seen, known.unwrap_or_else(at_least))
}
