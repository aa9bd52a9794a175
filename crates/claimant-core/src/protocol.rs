//! The claim protocol, as pure functions of what was seen.
//!
//! Nothing else in claimant decides who may work on a key. A store reads or conditionally writes a record and
//! calls [`decide`] or [`settle`] on what it saw; the record it then writes is the one given back here, guarded so
//! that the write applies only if what was seen is still there.

use std::time::Duration;

use crate::claim::{Claim, OwnerToken};
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::key::{MessageId, RecordId};
use crate::record::{ERROR_MAX_BYTES, Record, Status, bounded};
use crate::{Fence, limits};

/// What becomes of work whose owner did not settle it before its lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Abandoned {
    /// Somebody else claims it and runs the handler again.
    #[default]
    Rerun,
    /// Nobody runs it again until an operator decides: at most once.
    Park,
}

/// The error of a record that is parked because its owner left it.
pub const ABANDONED: &str = "its owner's lease ended before it was settled: the work may be done";

/// What becomes of a message whose key belongs to work with another payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflicts {
    /// It is rejected, loudly: one key with two payloads is somebody's mistake.
    #[default]
    Reject,
    /// The key alone says what is the same work: it is treated as a duplicate.
    Ignore,
}

/// How a consumer treats the records of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimPolicy {
    /// What becomes of abandoned work.
    pub abandoned: Abandoned,
    /// What becomes of a key with another payload.
    pub conflicts: Conflicts,
    /// By how much the clocks of two owners may differ (ε): a lease is over only this long after its end.
    pub skew: Duration,
    /// For how long after its last write a record keeps duplicates out.
    pub window: Duration,
}

impl Default for ClaimPolicy {
    fn default() -> Self {
        Self {
            abandoned: Abandoned::Rerun,
            conflicts: Conflicts::Reject,
            skew: Duration::from_millis(limits::SKEW_DEFAULT_MS),
            window: Duration::from_secs(limits::WINDOW_DEFAULT_S),
        }
    }
}

/// The error of a record whose work was taken over, and given back without a run.
pub const SET_ASIDE: &str = "not run again yet: an earlier owner did not finish it";

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
    /// A hint, which changes no answer: that there is most likely no record yet, since this is the message's first
    /// delivery.
    pub first_delivery: bool,
}

/// Why a key could not be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is done. The only refusal after which a message may be reported successful.
    Completed {
        /// What the handler returned, if it was kept: JSON.
        result: Option<String>,
    },
    /// Somebody else works on it.
    Busy {
        /// The end of the other's lease, as far as it is known now, and the clock-skew margin: if the lease is not renewed,
        /// the key is claimable after it.
        until: Timestamp,
        /// Whether it was claimed for this very message: an earlier delivery of it, whose owner may have died.
        same_message: bool,
    },
    /// This very message was rejected before.
    Rejected,
    /// It was abandoned, and an operator has to decide.
    Parked,
    /// The key belongs to work with another payload.
    Conflict,
}

/// What is to be done about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Write `next` if what was seen is still there; then the claim is granted.
    Grant {
        /// The record to write.
        next: Record,
        /// Whether another owner had left the key in progress, and no handler's run of it has come to an end since.
        taken_over: bool,
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

/// Whether a key may be claimed, from the record seen (if any).
#[must_use]
pub fn decide(seen: Option<&Record>, request: &ClaimRequest) -> Decision {
    let Some(seen) = seen else {
        return Decision::Grant { next: fresh_claim(request), taken_over: false };
    };
    let in_progress = seen.status == Status::InProgress;
    if in_progress && seen.owner == request.owner {
        return Decision::Held;
    }
    let claimable_at = seen.lease_until.plus(request.policy.skew);
    let live = in_progress && request.now <= claimable_at;
    // TTL deletion is best effort and days late, so the end of the window is compared here, every time.
    if !live && seen.expires_at_s.saturating_mul(1_000) < request.now.as_millis() {
        return Decision::Grant { next: first_claim(request, seen.fence.next()), taken_over: in_progress };
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
        Status::Rejected => Decision::Refuse(Refusal::Rejected),
        // Not even for another message id: a producer's second copy has one too, and would run parked work again.
        Status::Parked => Decision::Refuse(Refusal::Parked),
    }
}

/// The record that a key without one gets when it is claimed.
#[must_use]
pub fn fresh_claim(request: &ClaimRequest) -> Record {
    first_claim(request, Fence::FIRST)
}

fn first_claim(request: &ClaimRequest, fence: Fence) -> Record {
    Record {
        status: Status::InProgress,
        owner: request.owner.clone(),
        fence,
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
    }
}

/// The next claim of a key whose window goes on: the count of attempts goes on, and the time of creation stays.
fn grant_again(seen: &Record, request: &ClaimRequest) -> Decision {
    Decision::Grant {
        taken_over: match seen.status {
            Status::InProgress => true,
            Status::Failed => seen.error.as_deref() == Some(SET_ASIDE),
            _ => false,
        },
        next: Record {
            attempts: seen.attempts.saturating_add(1),
            created_at: seen.created_at,
            ..first_claim(request, seen.fence.next())
        },
    }
}

/// When the deduplication window of a record written now ends, in seconds. It begins where the lease is over, so that
/// neither a duplicate nor the table's TTL gets rid of a record while it is the evidence of abandoned work.
#[must_use]
pub fn expiry(now: Timestamp, lease_until: Timestamp, policy: &ClaimPolicy) -> u64 {
    now.max(lease_until.plus(policy.skew)).plus(policy.window).as_secs_rounded_up()
}

/// When the deduplication window of a record that is settled now ends, in seconds.
#[must_use]
pub fn window_end(now: Timestamp, policy: &ClaimPolicy) -> u64 {
    now.plus(policy.window).as_secs_rounded_up()
}

/// The claim that a granted request holds, given the record that is now in the store.
pub fn claim_of(id: RecordId, record: &Record, taken_over: bool) -> Claim {
    Claim {
        id,
        owner: record.owner.clone(),
        fence: record.fence,
        lease_until: record.lease_until,
        attempt: record.attempts,
        taken_over,
        transaction: None,
    }
}

/// The claim that a request holds by [`Decision::Held`]: `seen` is the record, and `wanted` what this call had decided before,
/// if anything.
///
/// Whose work an earlier call, or an earlier try below this one, took over is not in the record any more. A key that was claimed
/// before then counts as taken over: work that merely failed before is treated with more care than it needs.
pub fn held(id: RecordId, seen: &Record, wanted: Option<&Decision>) -> Claim {
    let known = match wanted {
        Some(Decision::Grant { next, taken_over }) if next.fence == seen.fence => Some(*taken_over),
        _ => None,
    };
    claim_of(id, seen, known.unwrap_or(seen.attempts > 1))
}

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
    SetAside,
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
    /// It is left for a person to decide.
    Parked {
        /// Why, without payload data.
        error: String,
    },
}

impl Ending {
    /// The status that a record gets.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } | Self::Released | Self::SetAside => Status::Failed,
            Self::Rejected { .. } => Status::Rejected,
            Self::Parked { .. } => Status::Parked,
        }
    }

    /// The error that a record gets, cut to [`ERROR_MAX_BYTES`].
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error } | Self::Rejected { error } | Self::Parked { error } => {
                Some(bounded(error, ERROR_MAX_BYTES))
            }
            Self::SetAside => Some(SET_ASIDE),
            Self::Completed { .. } | Self::Released => None,
        }
    }

    /// The result that a record gets.
    #[must_use]
    pub fn result(&self) -> Option<&str> {
        match self {
            Self::Completed { result } => result.as_deref(),
            _ => None,
        }
    }

    /// By how many the count of attempts goes down.
    #[must_use]
    pub const fn attempts_back(&self) -> u32 {
        matches!(self, Self::Released | Self::SetAside) as u32
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

/// What is to be done about a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleDecision {
    /// Write this record if what was seen is still there.
    Write(Box<Record>),
    /// The record shows that an earlier write of the same settlement applied and its answer was lost.
    AlreadySettled,
    /// The claim is no longer held: somebody else has the key, or the record is gone.
    Lost,
}

/// Whether `claim` may end as `settlement` says, from the record seen (if any).
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
        error: settlement.ending.error().map(str::to_owned),
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

/// What is to be done about a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewDecision {
    /// Write this record if what was seen is still there.
    Write(Box<Record>),
    /// The lease lasts as long already: an earlier write of the same renewal applied, or a later one.
    AlreadyLonger,
    /// The claim is no longer held: another owner has the key, or the record is gone.
    Lost,
}

/// Whether the lease of `claim` may be made longer, from the record seen (if any).
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::key::{ConsumerName, Key};

    fn s(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    /// A minute's window and a second's margin; at `now` seconds, with a lease of ten.
    fn request(owner: &str, message: &str, now: u64) -> ClaimRequest {
        ClaimRequest {
            id: RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new("k").unwrap()),
            owner: OwnerToken::from_stored(owner),
            message_id: MessageId::new(message).unwrap(),
            fingerprint: Fingerprint::of_bytes(b"p"),
            now: s(now),
            lease_until: s(now + 10),
            policy: ClaimPolicy {
                window: Duration::from_secs(60),
                skew: Duration::from_secs(1),
                ..ClaimPolicy::default()
            },
            first_delivery: true,
        }
    }

    /// What the first claim, at 100 s, writes: its window begins when its lease and the margin are over.
    fn first() -> Record {
        Record {
            status: Status::InProgress,
            owner: OwnerToken::from_stored("a"),
            fence: Fence::FIRST,
            lease_until: s(110),
            attempts: 1,
            message_id: MessageId::new("m").unwrap(),
            fingerprint: Fingerprint::of_bytes(b"p"),
            created_at: s(100),
            updated_at: s(100),
            completed_at: None,
            expires_at_s: 171,
            result: None,
            error: None,
        }
    }

    fn claim() -> Claim {
        claim_of(request("a", "m", 100).id, &first(), false)
    }

    fn granted(seen: Option<&Record>, request: &ClaimRequest) -> (Record, bool) {
        match decide(seen, request) {
            Decision::Grant { next, taken_over } => (next, taken_over),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_claim_writes_every_field() {
        assert_eq!(granted(None, &request("a", "m", 100)), (first(), false));
        // Taken over, with another message, when lease and margin are over.
        let later = Record {
            owner: OwnerToken::from_stored("b"),
            fence: Fence::new(2),
            lease_until: s(122),
            attempts: 2,
            message_id: MessageId::new("n").unwrap(),
            updated_at: s(112),
            expires_at_s: 183,
            ..first()
        };
        assert_eq!(granted(Some(&first()), &request("b", "n", 112)), (later, true));
        // After its window it counts as absent, but for its fence.
        let over = Record {
            owner: OwnerToken::from_stored("b"),
            fence: Fence::new(2),
            lease_until: s(182),
            created_at: s(172),
            updated_at: s(172),
            expires_at_s: 243,
            ..first()
        };
        assert_eq!(granted(Some(&first()), &request("b", "m", 172)), (over, true));
        // Work that failed keeps nothing of its failure.
        let failed = Record { status: Status::Failed, error: Some("no luck".into()), expires_at_s: 165, ..first() };
        let (next, taken_over) = granted(Some(&failed), &request("b", "m", 106));
        assert_eq!((next.error, next.attempts, next.created_at, taken_over), (None, 2, s(100), false));
    }

    #[test]
    fn what_is_parked_when_it_is_found_abandoned_says_why_and_keeps_all_but_its_window() {
        let mut request = request("b", "n", 112);
        request.policy.abandoned = Abandoned::Park;
        let error = Some(ABANDONED.to_owned());
        let parked = Record { status: Status::Parked, error, updated_at: s(112), expires_at_s: 172, ..first() };
        assert_eq!(decide(Some(&first()), &request), Decision::Park { next: parked });
    }

    #[test]
    fn a_claim_whose_answer_was_lost_is_taken_over_unless_it_is_known_not_to_be() {
        let (first_claim, again) = (request("a", "m", 100), request("b", "m", 112));
        let taken = decide(Some(&first()), &again);
        let failed = Record { status: Status::Failed, ..first() };
        let retried = decide(Some(&failed), &again);
        let over = |seen: &Record, wanted: Option<&Decision>| held(again.id.clone(), seen, wanted).taken_over;
        let (Decision::Grant { next: abandoned, .. }, Decision::Grant { next: tried_again, .. }) = (&taken, &retried)
        else {
            panic!("{taken:?}, {retried:?}");
        };
        assert!(over(abandoned, Some(&taken)) && over(abandoned, None));
        assert!(!over(tried_again, Some(&retried)), "it is known to have failed");
        // What a blind claim wanted says nothing of what another call wrote.
        assert!(over(tried_again, Some(&decide(None, &again))) && over(tried_again, None));
        let fresh = fresh_claim(&first_claim);
        assert!(!over(&fresh, Some(&decide(None, &first_claim))) && !over(&fresh, None));
    }

    #[test]
    fn a_settlement_writes_every_field() {
        let ended = |status| Record { status, updated_at: s(105), expires_at_s: 165, ..first() };
        let error = || "no luck".to_owned();
        let rows = [
            (
                Ending::Completed { result: Some("1".into()) },
                Record { completed_at: Some(s(105)), result: Some("1".into()), ..ended(Status::Completed) },
            ),
            (Ending::Failed { error: error() }, Record { error: Some(error()), ..ended(Status::Failed) }),
            (Ending::Rejected { error: error() }, Record { error: Some(error()), ..ended(Status::Rejected) }),
            (Ending::Released, Record { attempts: 0, ..ended(Status::Failed) }),
            (Ending::Parked { error: error() }, Record { error: Some(error()), ..ended(Status::Parked) }),
        ];
        for (ending, wanted) in rows {
            let settlement = Settlement { ending, now: s(105), policy: request("a", "m", 100).policy };
            let decision = settle(Some(&first()), &claim(), &settlement);
            assert_eq!(decision, SettleDecision::Write(Box::new(wanted.clone())));
            assert_eq!(settle(Some(&wanted), &claim(), &settlement), SettleDecision::AlreadySettled);
            assert_eq!(settle(None, &claim(), &settlement), SettleDecision::Lost);
        }
    }

    #[test]
    fn a_renewal_writes_every_field() {
        let renewal = Renewal { lease_until: s(115), now: s(105), policy: request("a", "m", 100).policy };
        let wanted = Record { lease_until: s(115), updated_at: s(105), expires_at_s: 176, ..first() };
        assert_eq!(renew(Some(&first()), &claim(), &renewal), RenewDecision::Write(Box::new(wanted.clone())));
        assert_eq!(renew(Some(&wanted), &claim(), &renewal), RenewDecision::AlreadyLonger);
        assert_eq!(renew(None, &claim(), &renewal), RenewDecision::Lost);
    }
}
