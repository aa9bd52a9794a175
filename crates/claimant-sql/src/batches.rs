//! One transaction for many claims in PostgreSQL: the handler's writes and all completions commit together.
//!
//! Claims are records that others see, as without a transaction; only their completions are in it. MySQL has none of this: after
//! a deadlock it rolls back and goes on, and what follows, the completions, would commit without what was rolled back.

use std::time::Duration;

use claimant_core::protocol::{self, Renewal, SettleDecision, Settlement};
use claimant_core::{BatchTransactional, BoxFuture, Budget, Call, Claim, Failure, Renewed, Settled, StoreError};
use sqlx::{PgPool, Postgres};

use crate::beside;
use crate::dialect::Dialect;
use crate::error::{IGNORED, SqlError};
use crate::postgres::PostgresStore;
use crate::reasons::{incomplete, refused};
use crate::record::{Seen, key};
use crate::rounds::{self, ROUNDS_MAX, wait};
use crate::session::Session;
use crate::transaction::{Remains, SqlTransaction};

/// What becomes of the others when one claim of a call was lost.
const NEIGHBOUR_LOST: &str = "the transaction was rolled back, since the claim of another of its items was lost";

/// What becomes of all where the commit did not apply.
const NO_COMMIT: &str = "the transaction was rolled back: its connection broke before the commit";

/// Each claim with how it ends.
type Completions = Vec<(Claim, Settlement)>;

impl BatchTransactional for PostgresStore {
    type Transaction = SqlTransaction<Postgres>;

    fn begin<'a>(
        &'a self,
        lasts: Duration,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<SqlTransaction<Postgres>, StoreError>> {
        Box::pin(begin(self.pool(), lasts, Budget::of(call)))
    }

    fn commit<'a>(
        &'a self,
        transaction: SqlTransaction<Postgres>,
        completions: Completions,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(commit(self.pool(), transaction, completions, Budget::of(call)))
    }

    fn resolve<'a>(&'a self, completions: Completions, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(resolve(self.pool(), completions, NO_COMMIT, Budget::of(call)))
    }

    fn roll_back<'a>(&'a self, transaction: SqlTransaction<Postgres>, call: Call<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(mut session) = resume(self.pool(), transaction, Budget::of(call)).await {
                session.roll_back().await;
            }
        })
    }
}

async fn begin(pool: &PgPool, lasts: Duration, mut budget: Budget<'_>) -> Result<SqlTransaction<Postgres>, StoreError> {
    let mut round = 0;
    loop {
        match begin_once(pool, lasts, budget).await {
            Ok(transaction) => return Ok(transaction),
            Err(error) if error.is_final() || !wait(round, budget).await => return Err(error.into()),
            Err(_) => (round, budget) = (round + 1, budget.after_failure()),
        }
    }
}

async fn begin_once(pool: &PgPool, lasts: Duration, budget: Budget<'_>) -> Result<SqlTransaction<Postgres>, SqlError> {
    let mut session = Session::open(pool, budget).await?;
    session.begin("").await?;
    let (connection, at) = session.hand_over(lasts).await?;
    Ok(SqlTransaction::of_many(connection, at))
}

/// Resumes the session of a transaction that its handler returned; `None` where a statement of it was cut off.
async fn resume<'a>(
    pool: &PgPool,
    transaction: SqlTransaction<Postgres>,
    budget: Budget<'a>,
) -> Option<Session<'a, Postgres>> {
    let Remains { connection, cut_off, .. } = transaction.into_remains();
    if let Some(at) = cut_off {
        let beside = beside::open(pool);
        let _ = beside::end(&beside, at, budget).await;
        beside::close(beside);
    }
    connection.map(|connection| Session::resume(connection, budget))
}

async fn commit(
    pool: &PgPool,
    transaction: SqlTransaction<Postgres>,
    completions: Completions,
    budget: Budget<'_>,
) -> Vec<Settled> {
    let Some(mut session) = resume(pool, transaction, budget).await else {
        return aborted(completions, "a statement of the handler was cut off before its answer came");
    };
    let mut together: Vec<&(Claim, Settlement)> = completions.iter().collect();
    // In one order everywhere, so that two batches with the same keys do not wait for each other.
    together.sort_unstable_by_key(|(claim, _)| &claim.id);
    match Postgres::end(&mut session, &together).await {
        Ok(count) if count == completions.len() => {}
        Ok(_) => {
            session.roll_back().await;
            drop(session);
            return match read(pool, &completions, budget).await {
                Ok(seen) if completions.iter().all(|ending| rounds::is_held(ending, &seen)) => {
                    aborted(completions, IGNORED)
                }
                Ok(seen) => of_records(completions, &seen, NEIGHBOUR_LOST),
                Err(_) => aborted(completions, NEIGHBOUR_LOST),
            };
        }
        Err(error) => {
            session.roll_back().await;
            return aborted(completions, &incomplete("the completions", &error));
        }
    }
    match session.commit().await {
        Ok(()) => completions.iter().map(|_| Settled::Done).collect(),
        // Perhaps of one of the statements that follow the commit in its request: the records tell.
        Err(error) if error.is_answer() => {
            session.roll_back().await;
            drop(session);
            resolve(pool, completions, &rolled_back(&refused("the commit", &error)), budget).await
        }
        Err(error) => unknown(completions, &error),
    }
}

/// Resolves a commit without an answer, or with an error; `why` is for claims that it did not complete. Extends the first claim's
/// lease by a millisecond: that waits for the transaction's locks, so what the records then show is final for all of them.
async fn resolve(pool: &PgPool, mut completions: Completions, why: &str, mut budget: Budget<'_>) -> Vec<Settled> {
    let mut error = SqlError::in_doubt();
    for round in 0..ROUNDS_MAX {
        let Some((first, settlement)) = completions.first_mut() else { return Vec::new() };
        let lease_until = first.lease_until.plus(Duration::from_millis(1));
        let renewal = Renewal { lease_until, now: settlement.now, policy: settlement.policy };
        let ended = match Session::open(pool, budget).await {
            Ok(mut session) => rounds::renew_on(&mut session, first, &renewal).await,
            Err(error) => Err(error),
        };
        match ended {
            // An earlier renewal was longer: this one changed nothing, and so waited for nothing. The next round knows how long.
            Ok(Some(Renewed::Held)) if first.lease_until != lease_until => {}
            // Whoever holds it: the transaction is over.
            Ok(Some(_)) => match read(pool, &completions, budget).await {
                Ok(seen) => return of_records(completions, &seen, why),
                Err(new) => (error, budget) = (new, budget.after_failure()),
            },
            // Written in between; the next round sees by whom.
            Ok(None) => {}
            Err(new) => (error, budget) = (new, budget.after_failure()),
        }
        if error.is_final() || !wait(round, budget).await {
            break;
        }
    }
    unknown(completions, &error)
}

async fn read(pool: &PgPool, completions: &[(Claim, Settlement)], budget: Budget<'_>) -> Result<Seen, SqlError> {
    let mut session = Session::open(pool, budget).await?;
    let ids: Vec<_> = completions.iter().map(|(claim, _)| &claim.id).collect();
    Postgres::read(&mut session, &ids).await
}

/// Returns the answers that the records give once the transaction is over.
fn of_records(completions: Completions, seen: &Seen, why: &str) -> Vec<Settled> {
    let answer = |(claim, settlement): (Claim, Settlement)| match protocol::settle(
        seen.get(key(&claim.id)),
        &claim,
        &settlement,
    ) {
        SettleDecision::AlreadySettled => Settled::Done,
        SettleDecision::Lost => Settled::Lost,
        SettleDecision::Write(_) => Settled::Aborted { claim, failure: Failure::retry(why) },
    };
    completions.into_iter().map(answer).collect()
}

fn rolled_back(why: &str) -> String {
    format!("the transaction was rolled back: {why}")
}

fn aborted(completions: Completions, why: &str) -> Vec<Settled> {
    let failure = Failure::retry(rolled_back(why));
    completions.into_iter().map(|(claim, _)| Settled::Aborted { claim, failure: failure.clone() }).collect()
}

fn unknown(completions: Completions, error: &SqlError) -> Vec<Settled> {
    completions.into_iter().map(|(claim, _)| error.clone().unsettled(claim)).collect()
}
