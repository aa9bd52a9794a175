//! Many records in one request.
//!
//! A statement of `BatchExecuteStatement` succeeds or fails by itself, and a refused one does not show the record. The
//! records of refused claims are therefore read, many in one request, and those of work that is most likely done before any claim;
//! claims that remain open are sent as single requests.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::{
    BatchStatementErrorCodeEnum as Code, BatchStatementRequest, BatchStatementResponse, KeysAndAttributes,
    ReturnConsumedCapacity,
};
use claimant_aws::said;
use claimant_core::limits::STORE_BATCH_MAX;
use claimant_core::protocol::{ClaimRequest, Decision, Likely, Settlement, claim_of, decide, fresh_claim, held};
use claimant_core::{
    BatchedClaim, Budget, Call, Claim, ClaimAnswer, Record, RecordId, Settled, Store as _, StoreError, StoreErrorKind,
};
use futures_util::future::join_all;

use crate::error::{is_about_key, is_denied, lacks_key, may_be_elsewhere, no_success, refused_all, store_error};
use crate::item;
use crate::table::{LockTable, ROUNDS_MAX};

/// Records in one `BatchGetItem`: DynamoDB's limit.
pub(crate) const READ_MAX: usize = 100;

/// The result of one statement.
enum Statement {
    Applied,
    /// Its condition did not hold, or there was a record already.
    Refused,
    Failed(StoreErrorKind, String),
}

impl LockTable {
    /// Claims keys in one request: those that most likely are new with one statement each, which can only claim a key without a record.
    /// What most likely is done is read first, in one request. Others are claimed by single requests, as is a key that occurs twice,
    /// since DynamoDB refuses a request with the same key twice, and a key that has a record and can be claimed. Where no request for many
    /// is sent, each has its own.
    pub(crate) async fn claim_many(
        &self,
        requests: &[ClaimRequest],
        call: Call<'_>,
    ) -> Vec<Result<BatchedClaim, StoreError>> {
        if !self.permitted.batches() {
            let claims = requests.iter().map(async |request| self.claim(request, call).await);
            return join_all(claims).await.into_iter().map(|answer| answer.map(BatchedClaim::Answered)).collect();
        }
        let (mut new, mut done): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for (index, request) in requests.iter().enumerate() {
            if new.iter().chain(&done).any(|other| requests[*other].id == request.id) {
                continue;
            }
            match request.likely {
                Likely::New => new.push(index),
                Likely::Done => done.push(index),
                Likely::Known => {}
            }
        }
        let mut answers: Vec<_> = requests.iter().map(|_| Ok(BatchedClaim::ClaimAlone)).collect();
        if new.len() + done.len() < 2 {
            return answers;
        }
        let budget = Budget::of(call);
        let looks = done.chunks(READ_MAX).map(|indexes| self.look(requests, indexes, budget));
        for (index, answer) in join_all(looks).await.into_iter().flatten() {
            match answer {
                Some(answer) => answers[index] = Ok(answer),
                None => new.push(index),
            }
        }
        if !self.permitted.batches() {
            return answers;
        }
        let ids: Vec<_> = new.iter().map(|index| &requests[*index].id).collect();
        let brought = self.bring_all(&ids, budget).await;
        // What was not brought is left to the single request, which finds out why.
        let new: Vec<_> = new.into_iter().zip(brought).filter_map(|(index, here)| here.then_some(index)).collect();
        let chunks = new.chunks(STORE_BATCH_MAX).map(|indexes| async move {
            let statement = |place: usize| self.requests.insert(&requests[indexes[place]]);
            indexes.iter().zip(self.execute(indexes.len(), statement, budget).await)
        });
        let mut refused = Vec::new();
        for (index, outcome) in join_all(chunks).await.into_iter().flatten() {
            answers[*index] = match outcome {
                Statement::Applied => Ok(BatchedClaim::Answered(inserted(&requests[*index]))),
                Statement::Refused => {
                    refused.push(*index);
                    Ok(BatchedClaim::ClaimAlone)
                }
                Statement::Failed(kind, why) => Err(StoreError::new(kind, why)),
            };
        }
        // A single one is one request either way, which can claim; and once denied, no request for many is sent.
        if refused.len() > 1 && self.permitted.batches() {
            let looks = refused.chunks(READ_MAX).map(|indexes| self.look(requests, indexes, budget));
            for (index, answer) in join_all(looks).await.into_iter().flatten() {
                answers[index] = Ok(answer.unwrap_or(BatchedClaim::ClaimAlone));
            }
        }
        answers
    }

    /// Reads records and answers from them. Most are of completed work, for which no write is needed; a key that can be claimed after
    /// all is left to the single request. `None` where there is no record, or it could not be read.
    async fn look(
        &self,
        requests: &[ClaimRequest],
        indexes: &[usize],
        budget: Budget<'_>,
    ) -> Vec<(usize, Option<BatchedClaim>)> {
        let ids = indexes.iter().map(|index| &requests[*index].id);
        let records = self.read_many(ids.map(|id| (self.requests.tables.of(id), id)), budget).await;
        let answer = |index: &usize| {
            let request = &requests[*index];
            let record = records.get(request.id.as_str())?.as_ref()?;
            Some(match decide(Some(record), request) {
                Decision::Refuse(refusal) => BatchedClaim::Answered(ClaimAnswer::Refused(refusal)),
                Decision::Held => BatchedClaim::Answered(ClaimAnswer::Granted(held(request.id.clone(), record, None))),
                Decision::Grant { .. } | Decision::Park { .. } => BatchedClaim::ClaimAlone,
            })
        };
        indexes.iter().map(|index| (*index, answer(index))).collect()
    }

    /// Reads the records of these ids, each in its table, in one consistent request. Of an id that is missing in the answer it is
    /// not known whether it has a record.
    pub(crate) async fn read_many<'a>(
        &self,
        wanted: impl Iterator<Item = (&'a str, &'a RecordId)>,
        budget: Budget<'_>,
    ) -> HashMap<String, Option<Record>> {
        let names = &self.requests.names;
        let mut found = HashMap::new();
        let mut keys: HashMap<&str, Vec<item::Item>> = HashMap::new();
        for (table, id) in wanted {
            found.insert(id.as_str().to_owned(), None);
            let key = HashMap::from([(names.id.clone(), item::text(id.as_str()))]);
            keys.entry(table).or_default().push(key);
        }
        let mut request = self.requests.client.batch_get_item();
        for (table, keys) in &mut keys {
            let keys = KeysAndAttributes::builder().consistent_read(true).set_keys(Some(std::mem::take(keys)));
            let Ok(keys) = keys.build() else { return HashMap::new() };
            request = request.request_items(*table, keys);
        }
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
        let read = match budget.send(Box::pin(request.send())).await {
            // An answer without them is not DynamoDB's.
            Ok(Ok(read)) if read.responses.is_none() => return HashMap::new(),
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                if is_denied(&error) {
                    self.permitted.deny_batches(&keys.into_keys().collect::<Vec<_>>().join(","));
                }
                return HashMap::new();
            }
            Err(_) => return HashMap::new(),
        };
        let units: f64 = read.consumed_capacity().iter().filter_map(|c| c.capacity_units()).sum();
        budget.meter().units(0.0, units);
        let id_of = |item: &item::Item| Some(item.get(&names.id)?.as_s().ok()?.clone());
        let unread = read.unprocessed_keys.unwrap_or_default();
        for id in unread.values().flat_map(|keys| keys.keys()).filter_map(id_of) {
            found.remove(&id);
        }
        for item in read.responses.unwrap_or_default().into_values().flatten() {
            match (id_of(&item), item::record(&item, names)) {
                (Some(id), Ok(record)) => drop(found.insert(id, Some(record))),
                (Some(id), Err(_)) => drop(found.remove(&id)),
                (None, _) => {}
            }
        }
        found
    }

    /// Settles claims in one request; a refused one is sent as a single request, which finds out why.
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
        let together: Vec<_> = chunk.iter().filter(plain).collect();
        let mut outcomes = if together.len() < 2 || !self.permitted.batches() {
            Vec::new()
        } else {
            let statement = |place: usize| self.requests.update_ended(&together[place].0, &together[place].1);
            self.execute(together.len(), statement, budget).await
        }
        .into_iter();
        let settled = chunk.into_iter().map(|pair| {
            let outcome = if plain(&&pair) { outcomes.next() } else { None };
            async move {
                let (claim, settlement) = pair;
                match outcome {
                    Some(Statement::Applied) => Settled::Done,
                    // Single requests would multiply the load on a table that is throttling: they are sent together again, later.
                    Some(Statement::Failed(kind, why)) if kind.is_transient() => {
                        Settled::unknown(claim, StoreError::new(kind, why))
                    }
                    // Boxed, since it is rare: the room for it would be taken for each claim of the chunk.
                    _ => Box::pin(self.settle_one(claim, &settlement, budget)).await,
                }
            }
        });
        join_all(settled).await
    }

    /// Executes so many statements of different records in one request. Those that were throttled, or had no answer, are sent again
    /// after a backoff with jitter, since the SDK retries whole requests only. One that applied although its answer was lost is then
    /// refused. `statement` makes the one of this number, for each time that it is sent: few are sent twice.
    async fn execute(
        &self,
        count: usize,
        statement: impl Fn(usize) -> Result<BatchStatementRequest, StoreError> + Send,
        budget: Budget<'_>,
    ) -> Vec<Statement> {
        let mut outcomes: Vec<Option<Statement>> = (0..count).map(|_| None).collect();
        let mut open: Vec<usize> = (0..count).collect();
        for round in 0..ROUNDS_MAX {
            if open.is_empty() || budget.left().is_zero() || (round > 0 && !budget.wait(round).await) {
                break;
            }
            let (mut made, mut statements) = (Vec::with_capacity(count), Vec::with_capacity(count));
            for index in std::mem::take(&mut open) {
                match statement(index) {
                    Ok(statement) => {
                        made.push(index);
                        statements.push(statement);
                    }
                    Err(error) => outcomes[index] = Some(Statement::Failed(error.kind(), error.to_string())),
                }
            }
            if made.is_empty() {
                break;
            }
            for (index, outcome) in made.into_iter().zip(self.execute_once(statements, budget).await) {
                if matches!(&outcome, Statement::Failed(kind, _) if kind.is_transient()) {
                    open.push(index);
                }
                outcomes[index] = Some(outcome);
            }
        }
        let no_answer = || Statement::Failed(StoreErrorKind::Unreachable, "no time was left for the request".into());
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(no_answer)).collect()
    }

    async fn execute_once(&self, statements: Vec<BatchStatementRequest>, budget: Budget<'_>) -> Vec<Statement> {
        let count = statements.len();
        let request = self.requests.client.batch_execute_statement();
        let request = request.set_statements(Some(statements)).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let unsaid = |error: &StoreError| Statement::Failed(error.kind(), error.to_string());
        let failed = |error: StoreError| (0..count).map(|_| unsaid(&error)).collect();
        let output = match budget.send(Box::pin(request.send())).await {
            Ok(Ok(output)) => output,
            Err(error) => return failed(error),
            Ok(Err(error)) => {
                let why = store_error("BatchExecuteStatement", self.name(), &error);
                match error.code() {
                    _ if is_about_key(error.message()) => return failed(why),
                    Some(_) if is_denied(&error) => self.permitted.deny_batches(self.name()),
                    Some("ValidationException") => self.permitted.doubt_batches(&why),
                    Some("ResourceNotFoundException") if !may_be_elsewhere(self.name()) => {}
                    Some(_) if matches!(why.kind(), StoreErrorKind::Misconfigured | StoreErrorKind::Other) => {
                        self.permitted.give_up_batches(&why);
                    }
                    _ => return failed(why),
                }
                // The single request can go through, or returns the better error.
                return (0..count).map(|_| Statement::Refused).collect();
            }
        };
        budget.meter().units(output.consumed_capacity().iter().filter_map(|c| c.capacity_units()).sum(), 0.0);
        match refused_all(self.name(), output.responses()) {
            Some(why) => self.permitted.give_up_batches(&why),
            None => self.permitted.trust_batches(),
        }
        // DynamoDB names what was consumed, or DynamoDB Local each statement's table: a statement of which neither is said may not have applied.
        let is_metered = !output.consumed_capacity().is_empty();
        let is_answer = |r: &&BatchStatementResponse| is_metered || r.table_name().is_some() || r.error().is_some();
        let answers = output.responses().iter().take_while(is_answer);
        let mut outcomes: Vec<Statement> = answers.map(|r| self.outcome(r)).collect();
        let missing = || no_success("BatchExecuteStatement", self.name(), "an answer to each statement");
        outcomes.resize_with(count, || unsaid(&missing()));
        outcomes
    }

    fn outcome(&self, response: &BatchStatementResponse) -> Statement {
        let Some(error) = response.error() else { return Statement::Applied };
        let failed = |kind, code: &str| {
            let (table, message) = (response.table_name().unwrap_or(self.name()), error.message().map_or("", said));
            Statement::Failed(kind, format!("a statement on table {table:?} failed: {code}: {message}"))
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
            Some(Code::AccessDenied) if !lacks_key(error.message()) => {
                self.permitted.deny_batches(response.table_name().unwrap_or(self.name()));
                Statement::Refused
            }
            // The single request returns the better error for what is wrong with the table or its key.
            Some(Code::AccessDenied | Code::ResourceNotFound | Code::ValidationError) => Statement::Refused,
            Some(code) => failed(StoreErrorKind::Other, code.as_str()),
            None => failed(StoreErrorKind::Other, "no code"),
        }
    }
}

/// Returns the answer to a claim of a key without a record that applied.
pub(crate) fn inserted(request: &ClaimRequest) -> ClaimAnswer {
    ClaimAnswer::Granted(claim_of(request.id.clone(), &fresh_claim(request), 0))
}
