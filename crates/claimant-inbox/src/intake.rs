//! The intake: the store of a consumer that runs no handler and stores the messages.
//!
//! A claim sends no request and excludes no other owner. When the row is stored, the database tells whether the key is new.

use claimant_core::protocol::{self, ClaimRequest, Decision, Ending, Renewal, Settlement};
use claimant_core::{
    AnyTransaction, BoxFuture, Budget, Call, Claim, ClaimAnswer, Record, RecordId, Renewed, Settled, Store, StoreError,
    Transactional,
};
use futures_util::future::join_all;
use sqlx::PgPool;

use crate::error;
use crate::link::{self, Explain, end_of, time_for};
use crate::offer::{self, Records};
use crate::pending::PendingRow;

/// How often storing a row is tried if no answer comes.
const ROUNDS_MAX: u32 = 4;

/// The inbox as a store: the one of [`Inbox::intake`](crate::Inbox::intake).
#[derive(Debug, Clone)]
pub(crate) struct Intake {
    pub(crate) pool: PgPool,
}

impl Intake {
    /// Stores these messages by one statement, or each by its own if another transaction's lock prevents that, or the server refuses it: that
    /// can be for one message. Returns an error for a message if it was not stored, or that is not known.
    async fn store_rows(
        &self,
        rows: &[(PendingRow, Settlement)],
        budget: Budget<'_>,
    ) -> Vec<Result<Settled, StoreError>> {
        match self.store_and_read(rows, budget).await {
            Ok(records) => rows.iter().map(|(row, _)| settled(row, &records)).collect(),
            Err(error) if error::can_be_of_one(&error) && rows.len() > 1 && !budget.left().is_zero() => {
                join_all(rows.iter().map(|row| self.store_row(row, budget))).await
            }
            Err(error) => rows.iter().map(|_| Err(same(&error))).collect(),
        }
    }

    async fn store_row(&self, row: &(PendingRow, Settlement), budget: Budget<'_>) -> Result<Settled, StoreError> {
        let records = self.store_and_read(std::slice::from_ref(row), budget).await?;
        settled(&row.0, &records)
    }

    /// Stores these messages and returns their committed rows by record id: the new ones, and those that were there before.
    async fn store_and_read(
        &self,
        rows: &[(PendingRow, Settlement)],
        budget: Budget<'_>,
    ) -> Result<Records, StoreError> {
        let bytes = rows.iter().filter_map(|(row, _)| row.message.as_ref()).map(|message| message.body.len()).sum();
        let operation = format!("storing messages of {bytes} bytes");
        let (until, how) = (budget.until(), (time_for(bytes), error::explain_store as Explain));
        let mut round = 0;
        loop {
            budget.meter().request();
            let answer = link::rows_within(&self.pool, until, how, &operation, offer::offer(rows)).await;
            let error = match answer.and_then(|rows| offer::records(&rows)) {
                Ok(records) if rows.iter().all(|(row, _)| records.contains_key(row.request.id.as_str().as_bytes())) => {
                    return Ok(records);
                }
                // Another worker's row came in between: the next statement sees it.
                Ok(_) => None,
                Err(error) if error::is_transient(&error) => Some(error),
                Err(error) => return Err(error),
            };
            round += 1;
            if round == ROUNDS_MAX || !budget.wait(round).await {
                return Err(error.unwrap_or_else(|| error::no_answer(&operation)));
            }
        }
    }
}

/// Returns what the committed row means for this message.
fn settled(row: &PendingRow, records: &Records) -> Result<Settled, StoreError> {
    let Some(record) = records.get(row.request.id.as_str().as_bytes()) else { return Ok(Settled::Lost) };
    let record = record.as_ref().map_err(same)?;
    Ok(match protocol::decide(Some(record), &row.request) {
        _ if record.owner == row.request.owner => Settled::Done,
        Decision::Refuse(refusal) => Settled::Refused(refusal),
        // A row is final: no other owner can claim its key.
        Decision::Grant { .. } | Decision::Park { .. } | Decision::Held => Settled::Lost,
    })
}

/// Returns the error again, for one more message.
fn same(error: &StoreError) -> StoreError {
    StoreError::new(error.kind(), error.to_string())
}

impl Store for Intake {
    fn claim<'a>(&'a self, request: &'a ClaimRequest, _: Call<'a>) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        let mut claim = protocol::claim_of(request.id.clone(), &protocol::fresh_claim(request), 0);
        claim.transaction = Some(AnyTransaction::new(PendingRow { request: request.clone(), message: None }));
        Box::pin(std::future::ready(Ok(ClaimAnswer::Granted(claim))))
    }

    /// There is nothing to renew: a claim excludes no other owner.
    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        _: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        claim.lease_until = claim.lease_until.max(renewal.lease_until);
        Box::pin(std::future::ready(Ok(Renewed::Held)))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        let settling = self.settle_all(vec![(claim, settlement.clone())], call);
        Box::pin(async move { settling.await.pop().unwrap_or(Settled::Lost) })
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            // Endings other than completions need no write.
            let mut answers: Vec<Settled> = settlements.iter().map(|_| Settled::Done).collect();
            let (mut claims, mut rows) = (Vec::new(), Vec::new());
            for (index, (mut claim, settlement)) in settlements.into_iter().enumerate() {
                if !matches!(settlement.ending, Ending::Completed { .. }) {
                    continue;
                }
                match claim.transaction.take().and_then(AnyTransaction::unpack::<PendingRow>) {
                    Some(row) if row.message.is_some() => {
                        claims.push((index, claim));
                        rows.push((row, settlement));
                    }
                    _ => answers[index] = Settled::Lost,
                }
            }
            if !rows.is_empty() {
                let stored = self.store_rows(&rows, Budget::of(call)).await;
                for (((index, claim), (row, _)), answer) in claims.into_iter().zip(rows).zip(stored) {
                    answers[index] = answer.unwrap_or_else(|error| {
                        Settled::unknown(Claim { transaction: Some(AnyTransaction::new(row)), ..claim }, error)
                    });
                }
            }
            answers
        })
    }

    /// A claim writes nothing: a death leaves no trace, and no other process sees it.
    fn claims_outlive_owners(&self) -> bool {
        false
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            call.meter.request();
            let rows = link::rows(&self.pool, end_of(call.within), "reading a message", offer::get(id)).await?;
            offer::records(&rows)?.into_values().next().transpose()
        })
    }
}

impl Transactional for Intake {
    type Transaction = PendingRow;
}
