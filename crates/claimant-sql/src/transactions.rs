//! Claims that carry a transaction: from the claim to the commit, the same for both databases.
//!
//! The record of a claim is written inside its transaction, so no other owner sees it: a second claimant waits for its lock, a
//! short while, and is answered that the key is busy. If the connection ends, the claim and its effect end together.

use claimant_core::protocol::{self, ClaimRequest, Ending, Refusal, SettleDecision, Settlement};
use claimant_core::{AnyTransaction, Budget, Claim, ClaimAnswer, Failure, Record, Settled, StoreError, StoreErrorKind};
use sqlx::Pool;

use crate::beside;
use crate::dialect::Dialect;
use crate::error::{IGNORED, SqlError};
use crate::reasons::{incomplete, refused};
use crate::record::key;
use crate::rounds::{self, Claimed, Grant, ROUNDS_MAX, wait};
use crate::session::Session;
use crate::transaction::{Remains, SqlTransaction};

pub(crate) async fn claim<D: Dialect>(
    pool: &Pool<D>,
    request: &ClaimRequest,
    mut budget: Budget<'_>,
) -> Result<ClaimAnswer, StoreError> {
    let mut round = 0;
    loop {
        match claim_once(pool, request, budget).await {
            Ok(answer) => return Ok(answer),
            // The lock's owner is not visible, but it ends no later than a claim made now would: all leases are as long.
            Err(error) if error.contended => {
                let until = request.lease_until.plus(request.policy.skew);
                return Ok(ClaimAnswer::Refused(Refusal::Busy { until, same_message: false }));
            }
            // Nothing was committed, so there is nothing to resolve before the next try.
            Err(error) if error.is_final() || !wait(round, budget).await => return Err(error.into()),
            Err(_) => (round, budget) = (round + 1, budget.after_failure()),
        }
    }
}

async fn claim_once<D: Dialect>(
    pool: &Pool<D>,
    request: &ClaimRequest,
    budget: Budget<'_>,
) -> Result<ClaimAnswer, SqlError> {
    let mut session = Session::open(pool, budget).await?;
    session.begin(D::LOCK_TABLE).await?;
    match rounds::claim_on(&mut session, request).await {
        Ok(Claimed::Granted(grant)) => {
            let (connection, at) = session.hand_over(request.lease_until.since(request.now)).await?;
            let mut claim = protocol::claim_of(request.id.clone(), &grant.now, grant.interruptions);
            let kept = SqlTransaction::<D>::kept(at, grant.clone());
            let transaction = SqlTransaction::new(connection, at, grant);
            claim.transaction = Some(AnyTransaction::with_remains(transaction, kept));
            Ok(ClaimAnswer::Granted(claim))
        }
        // Abandoned work may have been parked.
        Ok(Claimed::Refused(refusal)) => session.commit().await.map(|()| ClaimAnswer::Refused(refusal)),
        Err(error) => {
            session.roll_back().await;
            Err(error)
        }
    }
}

pub(crate) async fn settle<D: Dialect>(
    pool: &Pool<D>,
    mut claim: Claim,
    settlement: &Settlement,
    budget: Budget<'_>,
) -> Settled {
    let Some(transaction) = claim.transaction.take().and_then(AnyTransaction::unpack::<SqlTransaction<D>>) else {
        return Settled::Lost;
    };
    let remains = transaction.into_remains();
    let (Some(at), Some(grant)) = (remains.cut_off, remains.grant.clone()) else {
        return settle_over(pool, claim, remains, settlement, budget).await;
    };
    // All connections of the pool can be in use, by handlers that keep theirs.
    let beside = beside::open(pool);
    let settled = match beside::end(&beside, at, budget).await {
        Err(error) if !is_undone(&settlement.ending) => error.unsettled(claim),
        _ => settle_over(&beside, claim, remains, settlement, budget).await,
    };
    beside::close(beside);
    match settled {
        // The next try ends it once more, which does nothing where it is over, and has a connection beside the pool as well.
        Settled::Unknown { claim: Some(claim), error } => {
            let transaction = Some(AnyTransaction::new(SqlTransaction::<D>::kept(at, grant)));
            Settled::Unknown { claim: Some(Claim { transaction, ..claim }), error }
        }
        settled => settled,
    }
}

/// Settles a claim whose transaction no handler has any more.
async fn settle_over<D: Dialect>(
    pool: &Pool<D>,
    claim: Claim,
    remains: Remains<D>,
    settlement: &Settlement,
    budget: Budget<'_>,
) -> Settled {
    let Remains { connection, grant, in_doubt, .. } = remains;
    // One for many claims is none of this one's.
    let Some(grant) = grant else { return Settled::Lost };
    let mut session = connection.map(|connection| Session::resume(connection, budget));
    if let (Ending::Completed { .. }, true) = (&settlement.ending, in_doubt) {
        let error = SqlError::in_doubt();
        return resolve_commit(pool, claim, grant, settlement, error, budget).await;
    }
    if let Ending::Completed { .. } = settlement.ending {
        return complete(pool, claim, grant, settlement, session, budget).await;
    }
    if let Some(session) = &mut session {
        session.roll_back().await;
    }
    if is_undone(&settlement.ending) {
        return Settled::Done;
    }
    record_failure(pool, claim, grant, settlement, session, budget).await
}

/// Returns whether nothing is to be written: the claim is rolled back with its transaction, and the record is what it was before.
const fn is_undone(ending: &Ending) -> bool {
    matches!(ending, Ending::Released | Ending::SetAside { .. })
}

/// Writes the completion into the transaction and commits it.
async fn complete<D: Dialect>(
    pool: &Pool<D>,
    claim: Claim,
    grant: Box<Grant>,
    settlement: &Settlement,
    session: Option<Session<'_, D>>,
    budget: Budget<'_>,
) -> Settled {
    let ending = (claim, settlement.clone());
    let Some(mut session) = session else {
        return rolled_back::<D>(ending.0, grant, "a statement of the handler was cut off before its answer came");
    };
    match D::end(&mut session, &[&ending]).await {
        Ok(1) => {}
        Ok(_) => {
            // Without an answer, it is over.
            let seen = D::read(&mut session, &[&ending.0.id]).await.unwrap_or_default();
            session.roll_back().await;
            let ended = "the database had ended it, after an error that the handler did not return";
            let why = if rounds::is_held(&ending, &seen) { IGNORED } else { ended };
            return rolled_back::<D>(ending.0, grant, why);
        }
        Err(error) => {
            session.roll_back().await;
            return rolled_back::<D>(ending.0, grant, &incomplete("the completion", &error));
        }
    }
    match session.commit().await {
        Ok(()) => Settled::Done,
        // Also where the server refused it: that can be one of the statements that follow the commit in its request.
        Err(error) => {
            if error.is_answer() {
                session.roll_back().await;
            }
            drop(session);
            resolve_commit(pool, ending.0, grant, settlement, error, budget.after_failure()).await
        }
    }
}

/// Returns the answer for a transaction that did not commit: its claim can still end as failed.
fn rolled_back<D: Dialect>(claim: Claim, grant: Box<Grant>, why: &str) -> Settled {
    let failure = Failure::retry(format!("the transaction was rolled back: {why}"));
    Settled::Aborted { claim: after::<D>(claim, grant, false), failure }
}

/// Returns the claim after its transaction, for another try to write how it ended.
fn after<D: Dialect>(claim: Claim, grant: Box<Grant>, in_doubt: bool) -> Claim {
    Claim { transaction: Some(AnyTransaction::new(SqlTransaction::<D>::over(grant, in_doubt))), ..claim }
}

/// Resolves a commit that had this error, or no answer. Writes a failure over the record that the claim had found: that waits for the
/// transaction's lock, so the record that is there then is final. If the commit applied, it shows the completion; if not, the
/// commit never will apply.
async fn resolve_commit<D: Dialect>(
    pool: &Pool<D>,
    claim: Claim,
    grant: Box<Grant>,
    settlement: &Settlement,
    mut error: SqlError,
    mut budget: Budget<'_>,
) -> Settled {
    let why = if error.is_answer() {
        refused("the commit", &error)
    } else {
        "its connection broke before the commit was answered".to_owned()
    };
    // Whatever it was: another try finds out whether the commit applied.
    error.kind = StoreErrorKind::Unreachable;
    let failure = Settlement { ending: Ending::Failed { error: why.clone() }, ..settlement.clone() };
    let SettleDecision::Write(failed) = protocol::settle(Some(&grant.now), &claim, &failure) else {
        return Settled::Lost;
    };
    for round in 0..ROUNDS_MAX {
        let shown = match Session::open(pool, budget).await {
            Ok(mut session) => overwrite(&mut session, &claim, &grant, &failed).await,
            Err(error) => Err(error),
        };
        match shown {
            Ok(Some(seen)) => {
                let shows =
                    |settlement| protocol::settle(Some(&seen), &claim, settlement) == SettleDecision::AlreadySettled;
                return match (shows(settlement), shows(&failure)) {
                    (true, _) => Settled::Done,
                    (_, true) => rolled_back::<D>(claim, grant, &why),
                    _ => Settled::Lost,
                };
            }
            // Written in between; the next round reads by whom.
            Ok(None) => {}
            Err(new) => (error, budget) = (new, budget.after_failure()),
        }
        if error.is_final() || !wait(round, budget).await {
            break;
        }
    }
    error.unsettled(after::<D>(claim, grant, true))
}

/// Writes a record over the one that a claim had found, and returns the record that then exists, as far as the statement saw it.
async fn overwrite<D: Dialect>(
    session: &mut Session<'_, D>,
    claim: &Claim,
    grant: &Grant,
    ended: &Record,
) -> Result<Option<Record>, SqlError> {
    let mut shown = match &grant.before {
        None => D::offer(session, &[(&claim.id, ended.clone())]).await?,
        Some(before) if D::replace(session, &claim.id, before, ended).await? => return Ok(Some(ended.clone())),
        Some(_) => D::read(session, &[&claim.id]).await?,
    };
    Ok(shown.remove(key(&claim.id)))
}

/// Writes how the claim ended over the record that it had found, by a statement of its own, after its transaction was rolled back.
async fn record_failure<D: Dialect>(
    pool: &Pool<D>,
    claim: Claim,
    grant: Box<Grant>,
    settlement: &Settlement,
    mut session: Option<Session<'_, D>>,
    mut budget: Budget<'_>,
) -> Settled {
    let SettleDecision::Write(ended) = protocol::settle(Some(&grant.now), &claim, settlement) else {
        return Settled::Lost;
    };
    let mut unknown = SqlError::new(StoreErrorKind::Unreachable, "no time was left to record how the claim ended");
    for round in 0..ROUNDS_MAX {
        let opened = match session.take().filter(Session::is_usable) {
            Some(session) => Ok(session),
            None => Session::open(pool, budget).await,
        };
        let shown = match opened {
            Err(error) => Err(error),
            Ok(mut session) => overwrite(&mut session, &claim, &grant, &ended).await,
        };
        match shown.map(|seen| protocol::settle(seen.as_ref(), &claim, settlement)) {
            Ok(SettleDecision::AlreadySettled) => return Settled::Done,
            Ok(_) => return Settled::Lost,
            Err(error) => (unknown, budget) = (error, budget.after_failure()),
        }
        if unknown.is_final() || !wait(round, budget).await {
            break;
        }
    }
    // Its own transaction is over, so the lock's owner has claimed the key meanwhile, or keeps the whole table locked.
    if unknown.contended { Settled::Lost } else { unknown.unsettled(after::<D>(claim, grant, false)) }
}
