//! Many records in one request.
//!
//! A statement of `BatchExecuteStatement` succeeds or fails by itself, and a refused one does not show the record. The
//! records of refused claims are therefore read, many in one request; what is still open goes the way of the single request.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::{
    BatchStatementErrorCodeEnum as Code, BatchStatementRequest, BatchStatementResponse, KeysAndAttributes,
    ReturnConsumedCapacity,
};
use claimant_core::limits::STORE_BATCH_MAX;
use claimant_core::protocol::{ClaimRequest, Decision, Settlement, claim_of, decide, fresh_claim, held};
use claimant_core::{
    BatchedClaim, Budget, Call, Claim, ClaimAnswer, Record, RecordId, Settled, StoreError, StoreErrorKind,
};
use futures_util::future::join_all;

use crate::error::store_error;
use crate::item;
use crate::requests::Requests;
use crate::table::{LockTable, ROUNDS_MAX};

/// Records in one `BatchGetItem`: DynamoDB's limit.
const READ_MAX: usize = 100;

/// What one statement came to.
enum Statement {
    Applied,
    /// Its condition did not hold, or a record was there already.
    Refused,
    Failed(StoreErrorKind, String),
}

impl LockTable {
    /// Claims keys in one request: first deliveries with one statement each, which can only claim a key without a record.
    /// Redeliveries, and a key that is there twice, since a request with the same key twice is refused as a whole, have
    /// to be claimed by themselves; and so has what a statement was refused for.
    pub(crate) async fn claim_many(
        &self,
        requests: &[ClaimRequest],
        call: Call<'_>,
    ) -> Vec<Result<BatchedClaim, StoreError>> {
        let mut together: Vec<usize> = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let repeated = together.iter().any(|other| requests[*other].id == request.id);
            if request.first_delivery && !repeated {
                together.push(place);
            }
        }
        let mut answers: Vec<_> = requests.iter().map(|_| Ok(BatchedClaim::ClaimAlone)).collect();
        if together.len() < 2 || !self.batches() {
            return answers;
        }
        let budget = Budget::of(call);
        let chunks = together.chunks(STORE_BATCH_MAX).map(|places| async move {
            let statements = places.iter().map(|place| self.requests.insert(&requests[*place])).collect();
            places.iter().zip(self.execute(statements, budget).await)
        });
        let mut refused = Vec::new();
        for (place, outcome) in join_all(chunks).await.into_iter().flatten() {
            answers[*place] = match outcome {
                Statement::Applied => Ok(BatchedClaim::Answered(inserted(&requests[*place]))),
                Statement::Refused => {
                    refused.push(*place);
                    Ok(BatchedClaim::ClaimAlone)
                }
                Statement::Failed(kind, why) => Err(StoreError::new(kind, why)),
            };
        }
        let looks = refused.chunks(READ_MAX).map(|places| self.look_at_refused(requests, places, budget));
        for (place, answer) in join_all(looks).await.into_iter().flatten() {
            answers[place] = Ok(answer);
        }
        answers
    }

    /// What the records say for which statements were refused. Most are of finished work, which needs no write to find
    /// out; a key that can be claimed after all is left to the single request, as is what could not be read.
    async fn look_at_refused(
        &self,
        requests: &[ClaimRequest],
        places: &[usize],
        budget: Budget<'_>,
    ) -> Vec<(usize, BatchedClaim)> {
        let records = match places {
            // One request either way, and the single one can claim; nor is more denied than once.
            [_] => HashMap::new(),
            _ if !self.batches() => HashMap::new(),
            _ => self.read_many(places.iter().map(|place| &requests[*place].id), budget).await,
        };
        let answer = |place: &usize| {
            let request = &requests[*place];
            let Some(record) = records.get(request.id.as_str()) else { return BatchedClaim::ClaimAlone };
            match decide(Some(record), request) {
                Decision::Refuse(refusal) => BatchedClaim::Answered(ClaimAnswer::Refused(refusal)),
                Decision::Held => BatchedClaim::Answered(ClaimAnswer::Granted(held(request.id.clone(), record, None))),
                Decision::Grant { .. } | Decision::Park { .. } => BatchedClaim::ClaimAlone,
            }
        };
        places.iter().map(|place| (*place, answer(place))).collect()
    }

    /// The records of these ids, as far as they could be read in one consistent request.
    async fn read_many(&self, ids: impl Iterator<Item = &RecordId>, budget: Budget<'_>) -> HashMap<String, Record> {
        let Requests { client, table, names } = &self.requests;
        let key = |id: &RecordId| HashMap::from([(names.id.clone(), item::text(id.as_str()))]);
        let keys = KeysAndAttributes::builder().consistent_read(true).set_keys(Some(ids.map(key).collect()));
        let Ok(keys) = keys.build() else { return HashMap::new() };
        let request = client.batch_get_item().request_items(table, keys);
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
        let read = match budget.send(request.send()).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                self.notice_denial(error.code());
                return HashMap::new();
            }
            Err(_) => return HashMap::new(),
        };
        let units: f64 = read.consumed_capacity().iter().filter_map(|c| c.capacity_units()).sum();
        budget.meter().units(0.0, units);
        let items = read.responses.unwrap_or_default().remove(table).unwrap_or_default();
        let named = |item: item::Item| {
            let id = item.get(&names.id)?.as_s().ok()?.clone();
            Some((id, item::record(&item, names).ok()?))
        };
        items.into_iter().filter_map(named).collect()
    }

    /// Settles claims in one request; what is refused goes by itself, which finds out why.
    pub(crate) async fn settle_many(&self, settlements: Vec<(Claim, Settlement)>, call: Call<'_>) -> Vec<Settled> {
        let budget = Budget::of(call);
        let mut chunks = Vec::new();
        let mut rest = settlements.into_iter().peekable();
        while rest.peek().is_some() {
            chunks.push(rest.by_ref().take(STORE_BATCH_MAX).collect());
        }
        let settled = join_all(chunks.into_iter().map(|chunk| self.settle_chunk(chunk, budget))).await;
        settled.into_iter().flatten().collect()
    }

    async fn settle_chunk(&self, chunk: Vec<(Claim, Settlement)>, budget: Budget<'_>) -> Vec<Settled> {
        // A release counts down an attribute, which is left to the single request; it is rare.
        let plain = |(_, s): &&(Claim, Settlement)| s.ending.attempts_back() == 0;
        let together = chunk.iter().filter(plain).count();
        let mut outcomes = if together < 2 || !self.batches() {
            Vec::new()
        } else {
            let statements =
                chunk.iter().filter(plain).map(|(claim, s)| self.requests.update_ended(claim, s)).collect();
            self.execute(statements, budget).await
        }
        .into_iter();
        let settled = chunk.into_iter().map(|pair| {
            let outcome = if plain(&&pair) { outcomes.next() } else { None };
            async move {
                let (claim, settlement) = pair;
                match outcome {
                    Some(Statement::Applied) => Settled::Done,
                    // Each by itself would be as many requests more, to a table in trouble: together again, later.
                    Some(Statement::Failed(kind, why)) if kind.is_transient() => {
                        Settled::unknown(claim, StoreError::new(kind, why))
                    }
                    _ => self.settle_one(claim, &settlement, budget).await,
                }
            }
        });
        join_all(settled).await
    }

    /// Carries out statements of different records in one request; those that were throttled, or had no answer, again, after a
    /// while with jitter, as the SDK retries whole requests only. One that applied although its answer was lost is then refused.
    async fn execute(
        &self,
        statements: Vec<Result<BatchStatementRequest, StoreError>>,
        budget: Budget<'_>,
    ) -> Vec<Statement> {
        let mut outcomes: Vec<Option<Statement>> = Vec::with_capacity(statements.len());
        let mut open = Vec::new();
        for (place, statement) in statements.into_iter().enumerate() {
            match statement {
                Ok(statement) => {
                    open.push((place, statement));
                    outcomes.push(None);
                }
                Err(error) => outcomes.push(Some(Statement::Failed(error.kind(), error.to_string()))),
            }
        }
        for round in 0..ROUNDS_MAX {
            if open.is_empty() || budget.left().is_zero() {
                break;
            }
            if round > 0 {
                tokio::time::sleep(budget.retry_wait(round)).await;
            }
            let sent = self.execute_once(open.iter().map(|(_, s)| s.clone()).collect(), budget).await;
            let mut unanswered = Vec::new();
            for ((place, statement), outcome) in open.into_iter().zip(sent) {
                if matches!(&outcome, Statement::Failed(kind, _) if kind.is_transient()) {
                    unanswered.push((place, statement));
                }
                outcomes[place] = Some(outcome);
            }
            open = unanswered;
        }
        let no_answer = || Statement::Failed(StoreErrorKind::Unreachable, "no time was left for the request".into());
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(no_answer)).collect()
    }

    async fn execute_once(&self, statements: Vec<BatchStatementRequest>, budget: Budget<'_>) -> Vec<Statement> {
        let count = statements.len();
        let request = self.requests.client.batch_execute_statement();
        let request = request.set_statements(Some(statements)).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let failed =
            |error: StoreError| (0..count).map(|_| Statement::Failed(error.kind(), error.to_string())).collect();
        let sent = match budget.send(request.send()).await {
            Ok(sent) => sent,
            Err(error) => return failed(error),
        };
        let output = match sent {
            Ok(output) => output,
            Err(error) => {
                let code = error.code().map(str::to_owned);
                let error = store_error("BatchExecuteStatement", self.name(), &error);
                if self.notice_denial(code.as_deref()) {
                    return (0..count).map(|_| Statement::Refused).collect();
                }
                return failed(error);
            }
        };
        let units: f64 = output.consumed_capacity().iter().filter_map(|c| c.capacity_units()).sum();
        budget.meter().units(units, 0.0);
        let mut outcomes: Vec<Statement> = output.responses().iter().map(|r| self.outcome(r)).collect();
        // DynamoDB answers each statement; an endpoint that does not has not said that the rest applied.
        let missing =
            || Statement::Failed(StoreErrorKind::Other, "the endpoint left a statement without an answer".into());
        outcomes.resize_with(count, missing);
        outcomes
    }

    fn outcome(&self, response: &BatchStatementResponse) -> Statement {
        let Some(error) = response.error() else { return Statement::Applied };
        let failed = |kind, code: &str| {
            let why = format!(
                "a statement on table {:?} failed: {code}: {}",
                self.name(),
                error.message().unwrap_or_default()
            );
            Statement::Failed(kind, why)
        };
        match error.code() {
            Some(Code::DuplicateItem | Code::ConditionalCheckFailed) => Statement::Refused,
            Some(
                code @ (Code::ThrottlingError
                | Code::ProvisionedThroughputExceeded
                | Code::RequestLimitExceeded
                | Code::TransactionConflict
                | Code::InternalServerError),
            ) => failed(StoreErrorKind::Throttled, code.as_str()),
            Some(Code::AccessDenied) => {
                self.give_up_batches();
                Statement::Refused
            }
            // What is wrong with the table is said best by the single request.
            Some(Code::ResourceNotFound | Code::ValidationError) => Statement::Refused,
            Some(code) => failed(StoreErrorKind::Other, code.as_str()),
            None => failed(StoreErrorKind::Other, "no code"),
        }
    }
}

/// The answer to an INSERT that applied.
fn inserted(request: &ClaimRequest) -> ClaimAnswer {
    ClaimAnswer::Granted(claim_of(request.id.clone(), &fresh_claim(request), false))
}
