//! Tries claims and settlements until their answer is clear: the same for every database.
//!
//! A statement writes only under its guard. Whatever did not write, or gave no answer, is resolved from the record as it
//! then is, by the same pure functions that every store calls.

use std::collections::HashSet;

use claimant_core::protocol::{
    self, ClaimRequest, Decision, Refusal, RenewDecision, Renewal, SettleDecision, Settlement,
};
use claimant_core::{
    BatchedClaim, Budget, Call, Claim, ClaimAnswer, Record, RecordId, Renewed, Settled, StoreError, StoreErrorKind,
};
use futures_util::future::join_all;
use sqlx::Pool;

use crate::dialect::Dialect;
use crate::error::{IGNORED, SqlError};
use crate::record::{Seen, key};
use crate::session::Session;

/// Records in one statement.
const BATCH_MAX: usize = 50;

/// How often a call is tried if the record changed in between, or if no answer came.
pub(crate) const ROUNDS_MAX: u32 = 4;

/// The result of a claim.
pub(crate) enum Claimed {
    Granted(Box<Grant>),
    Refused(Refusal),
}

/// A claim that is written.
#[derive(Clone)]
pub(crate) struct Grant {
    /// The record that it replaced, if there was one.
    pub(crate) before: Option<Record>,
    /// The record that it wrote.
    pub(crate) now: Record,
    /// How many owners had left the key in progress.
    pub(crate) interruptions: u32,
}

/// The write of a claim, over the record that it saw.
struct PendingWrite {
    seen: Record,
    next: Record,
    interruptions: u32,
}

/// Claims a key on this connection, without a second try where a statement fails.
pub(crate) async fn claim_on<D: Dialect>(
    session: &mut Session<'_, D>,
    request: &ClaimRequest,
) -> Result<Claimed, SqlError> {
    let mut pending: Option<PendingWrite> = None;
    let mut ignored = false;
    for _ in 0..ROUNDS_MAX {
        let mut shown = match &pending {
            None => D::offer(session, &[(&request.id, protocol::fresh_claim(request))]).await?,
            Some(pending) if D::replace(session, &request.id, &pending.seen, &pending.next).await? => {
                Seen::from([(key(&request.id).to_vec(), pending.next.clone())])
            }
            Some(_) => D::read(session, &[&request.id]).await?,
        };
        // Absent: deleted, or inserted by another owner, in between.
        let Some(now) = shown.remove(key(&request.id)) else {
            (pending, ignored) = (None, true);
            continue;
        };
        ignored = pending.as_ref().is_some_and(|pending| pending.seen == now);
        pending = match protocol::decide(Some(&now), request) {
            Decision::Held => {
                let (before, decided) = pending.map_or((None, None), |PendingWrite { seen, next, interruptions }| {
                    (Some(seen), Some(Decision::Grant { next, interruptions }))
                });
                let interruptions = protocol::held(request.id.clone(), &now, decided.as_ref()).interruptions;
                return Ok(Claimed::Granted(Box::new(Grant { before, now, interruptions })));
            }
            Decision::Refuse(refusal) => return Ok(Claimed::Refused(refusal)),
            Decision::Grant { next, interruptions } => Some(PendingWrite { seen: now, next, interruptions }),
            Decision::Park { next } => Some(PendingWrite { seen: now, next, interruptions: 0 }),
        };
    }
    let why = if ignored { IGNORED } else { "the record changed each time it was to be claimed" };
    Err(SqlError::new(StoreErrorKind::Throttled, why))
}

pub(crate) async fn claim<D: Dialect>(
    pool: &Pool<D>,
    request: &ClaimRequest,
    mut budget: Budget<'_>,
) -> Result<ClaimAnswer, StoreError> {
    let mut round = 0;
    loop {
        let claimed = match Session::open(pool, budget).await {
            Ok(mut session) => claim_on(&mut session, request).await,
            Err(error) => Err(error),
        };
        match claimed {
            Ok(Claimed::Granted(grant)) => return Ok(granted(request, &grant.now, grant.interruptions)),
            Ok(Claimed::Refused(refusal)) => return Ok(ClaimAnswer::Refused(refusal)),
            // A write that applied although its answer was lost is recognised by its owner token.
            Err(error) if error.is_final() || !wait(round, budget).await => return Err(error.into()),
            Err(_) => (round, budget) = (round + 1, budget.after_failure()),
        }
    }
}

/// Claims keys in one request: one statement for all that have no record. A key that has one and can be claimed all the same is
/// left to be claimed by itself, as is a key's second request, and each key if another transaction's lock fails the statement, or one
/// of its records cannot be read: what the statement wrote is found by its owner then.
pub(crate) async fn claim_all<D: Dialect>(
    pool: &Pool<D>,
    requests: &[ClaimRequest],
    call: Call<'_>,
) -> Vec<Result<BatchedClaim, StoreError>> {
    let budget = Budget::of(call);
    let mut named = HashSet::new();
    let mut together: Vec<usize> = (0..requests.len()).filter(|index| named.insert(&requests[*index].id)).collect();
    // In one order everywhere, so that two batches with the same keys do not wait for each other.
    together.sort_unstable_by_key(|index| &requests[*index].id);
    let mut answers: Vec<_> = requests.iter().map(|_| Ok(BatchedClaim::ClaimAlone)).collect();
    let chunks = together.chunks(BATCH_MAX).map(|indexes| async move {
        let fresh = |index: &usize| (&requests[*index].id, protocol::fresh_claim(&requests[*index]));
        let records: Vec<_> = indexes.iter().map(fresh).collect();
        let shown = match Session::open(pool, budget).await {
            Ok(mut session) => D::offer(&mut session, &records).await,
            Err(error) => Err(error),
        };
        (indexes, shown)
    });
    for (indexes, shown) in join_all(chunks).await {
        for index in indexes {
            answers[*index] = match &shown {
                Ok(seen) => Ok(answer_from(&requests[*index], seen)),
                Err(error) if error.contended || error.kind == StoreErrorKind::Corrupt => Ok(BatchedClaim::ClaimAlone),
                Err(error) => Err(error.clone().into()),
            };
        }
    }
    answers
}

fn answer_from(request: &ClaimRequest, seen: &Seen) -> BatchedClaim {
    let Some(record) = seen.get(key(&request.id)) else { return BatchedClaim::ClaimAlone };
    match protocol::decide(Some(record), request) {
        Decision::Held => {
            BatchedClaim::Answered(ClaimAnswer::Granted(protocol::held(request.id.clone(), record, None)))
        }
        Decision::Refuse(refusal) => BatchedClaim::Answered(ClaimAnswer::Refused(refusal)),
        Decision::Grant { .. } | Decision::Park { .. } => BatchedClaim::ClaimAlone,
    }
}

pub(crate) async fn renew<D: Dialect>(
    pool: &Pool<D>,
    claim: &mut Claim,
    renewal: Renewal,
    mut budget: Budget<'_>,
) -> Result<Renewed, StoreError> {
    let mut error = SqlError::new(StoreErrorKind::Throttled, IGNORED);
    for round in 0..ROUNDS_MAX {
        let renewed = match Session::open(pool, budget).await {
            Ok(mut session) => renew_on(&mut session, claim, &renewal).await,
            Err(error) => Err(error),
        };
        match renewed {
            Ok(Some(renewed)) => return Ok(renewed),
            Ok(None) => {}
            Err(new) if new.is_final() => return Err(new.into()),
            Err(new) => (error, budget) = (new, budget.after_failure()),
        }
        if !wait(round, budget).await {
            break;
        }
    }
    Err(error.into())
}

/// Renews a lease on this connection; `None` where the record says that it can be, and it was not.
pub(crate) async fn renew_on<D: Dialect>(
    session: &mut Session<'_, D>,
    claim: &mut Claim,
    renewal: &Renewal,
) -> Result<Option<Renewed>, SqlError> {
    if D::renew(session, claim, renewal).await? {
        claim.lease_until = renewal.lease_until;
        return Ok(Some(Renewed::Held));
    }
    let seen = D::read(session, &[&claim.id]).await?.remove(key(&claim.id));
    Ok(match (protocol::renew(seen.as_ref(), claim, renewal), seen) {
        (RenewDecision::AlreadyLonger, Some(seen)) => {
            claim.lease_until = seen.lease_until;
            Some(Renewed::Held)
        }
        (RenewDecision::Write(_), _) => None,
        _ => Some(Renewed::Lost),
    })
}

pub(crate) async fn settle<D: Dialect>(pool: &Pool<D>, ending: (Claim, Settlement), mut budget: Budget<'_>) -> Settled {
    let mut unknown = SqlError::new(StoreErrorKind::Unreachable, IGNORED);
    for round in 0..ROUNDS_MAX {
        let decision = match Session::open(pool, budget).await {
            Ok(mut session) => settle_on(&mut session, &ending).await,
            Err(error) => Err(error),
        };
        match decision {
            Ok(SettleDecision::AlreadySettled) => return Settled::Done,
            Ok(SettleDecision::Lost) => return Settled::Lost,
            Ok(SettleDecision::Write(_)) => {}
            // No retry fixes these, and they say that nothing was written.
            Err(error) if error.is_final() => return error.unsettled(ending.0),
            // No answer: the next round finds the record as the lost write left it.
            Err(error) => (unknown, budget) = (error, budget.after_failure()),
        }
        if !wait(round, budget).await {
            break;
        }
    }
    unknown.unsettled(ending.0)
}

/// Ends a claim on this connection; where its guard did not hold, the record says what that means.
async fn settle_on<D: Dialect>(
    session: &mut Session<'_, D>,
    ending: &(Claim, Settlement),
) -> Result<SettleDecision, SqlError> {
    let (claim, settlement) = ending;
    if D::end(session, &[ending]).await? == 1 {
        return Ok(SettleDecision::AlreadySettled);
    }
    let seen = D::read(session, &[&claim.id]).await?.remove(key(&claim.id));
    Ok(protocol::settle(seen.as_ref(), claim, settlement))
}

/// Returns whether a claim is still held, by the records as they are, so that its ending could be written.
pub(crate) fn is_held((claim, settlement): &(Claim, Settlement), seen: &Seen) -> bool {
    matches!(protocol::settle(seen.get(key(&claim.id)), claim, settlement), SettleDecision::Write(_))
}

/// Ends claims in one request; if not all of them were held, or it failed, each is ended by itself: one of several statements
/// may have been committed, or one value be the reason.
pub(crate) async fn settle_all<D: Dialect>(
    pool: &Pool<D>,
    endings: Vec<(Claim, Settlement)>,
    call: Call<'_>,
) -> Vec<Settled> {
    let budget = Budget::of(call);
    let mut chunks: Vec<Vec<(Claim, Settlement)>> = Vec::new();
    let mut rest = endings.into_iter().peekable();
    while rest.peek().is_some() {
        chunks.push(rest.by_ref().take(BATCH_MAX).collect());
    }
    let chunks = chunks.into_iter().map(|chunk| async move {
        let mut together: Vec<&(Claim, Settlement)> = chunk.iter().collect();
        together.sort_unstable_by_key(|(claim, _)| &claim.id);
        let ended = match Session::open(pool, budget).await {
            Ok(mut session) => D::end(&mut session, &together).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(count) if count == chunk.len() => return chunk.iter().map(|_| Settled::Done).collect(),
            // No claim would be settled, and each try could be counted as a failed login.
            Err(error) if error.kind == StoreErrorKind::Denied => {
                return chunk.into_iter().map(|(claim, _)| error.clone().unsettled(claim)).collect();
            }
            _ => {}
        }
        join_all(chunk.into_iter().map(|ending| settle(pool, ending, budget))).await
    });
    join_all(chunks).await.into_iter().flatten().collect()
}

pub(crate) async fn get<D: Dialect>(
    pool: &Pool<D>,
    id: &RecordId,
    budget: Budget<'_>,
) -> Result<Option<Record>, StoreError> {
    let mut session = Session::open(pool, budget).await?;
    Ok(D::read(&mut session, &[id]).await?.remove(key(id)))
}

fn granted(request: &ClaimRequest, record: &Record, interruptions: u32) -> ClaimAnswer {
    ClaimAnswer::Granted(protocol::claim_of(request.id.clone(), record, interruptions))
}

/// Waits before the round after this one, if there is one. Returns whether there is, and time for it.
pub(crate) async fn wait(round: u32, budget: Budget<'_>) -> bool {
    round + 1 < ROUNDS_MAX && budget.wait(round + 1).await
}
