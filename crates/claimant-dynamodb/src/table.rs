//! The lock table as a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use claimant_core::protocol::{
    self, ClaimRequest, Decision, Refusal, RenewDecision, Renewal, SettleDecision, Settlement,
};
use claimant_core::{
    BatchedClaim, Call, Claim, ClaimAnswer, Error, Meter, Record, RecordId, Renewed, Settled, Store, StoreError,
    StoreErrorKind, StoreFuture, Variables,
};
use tokio::time::{Instant, timeout_at};

use crate::error::store_error;
use crate::item::{self, Item};
use crate::names::AttributeNames;
use crate::requests::Requests;
use crate::settings::Settings;

/// The longest that one try of a request may take; DynamoDB answers in milliseconds, a first TLS handshake on a small
/// function in about a second.
const TRY_MAX_MS: u64 = 2_000;

/// The base of the waits before a write is tried again.
const RETRY_BASE_MS: u64 = 12;

/// The longest that a call is given: no invocation lasts longer.
const CALL_MAX_MS: u64 = 900_000;

/// How often a claim is tried anew where the record changed in between, and a settlement where it was not found in the record.
/// Where the table gives no answer at all, a call ends: whoever has time makes it again.
pub(crate) const ROUNDS_MAX: u32 = 4;

/// Records in one DynamoDB table.
///
/// A claim of a fresh, failed or abandoned key is one `UpdateItem`; a refused one brings the record back with the refusal,
/// free of read units, and the protocol decides on it. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct LockTable {
    pub(crate) requests: Requests,
    /// Whether many records go in one request; off for good once that was denied.
    batched: Arc<AtomicBool>,
}

/// The time that a call may take, until when, and where its requests are counted.
#[derive(Clone, Copy)]
pub(crate) struct Budget<'a> {
    pub(crate) until: Instant,
    pub(crate) meter: &'a Meter,
}

impl<'a> Budget<'a> {
    pub(crate) fn of(call: Call<'a>) -> Self {
        Self { until: Instant::now() + call.within.min(Duration::from_millis(CALL_MAX_MS)), meter: call.meter }
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Sends a request, counted, within what is left: by dropping it then, which spares the SDK a configuration of its own
    /// for each request. Without time left it is not sent.
    pub(crate) async fn send<O>(&self, request: impl Future<Output = O>) -> Result<O, StoreError> {
        let left = self.left();
        if left.is_zero() {
            return Err(StoreError::no_answer(left));
        }
        self.meter.request();
        timeout_at(self.until, request).await.map_err(|_| StoreError::no_answer(left))
    }
}

/// What became of one conditional write.
pub(crate) enum Written {
    /// It applied; this was there before, if the request asked for it.
    Applied(Option<Item>),
    /// Its condition did not hold for this record.
    Refused(Option<Record>),
}

impl LockTable {
    /// Returns the table of this name, through this client.
    ///
    /// ```no_run
    /// # mod claimant { pub use claimant_core::*; pub mod dynamodb { pub use claimant_dynamodb::*; } }
    /// use claimant::dynamodb::LockTable;
    ///
    /// # async fn example(client: aws_sdk_dynamodb::Client) -> Result<(), claimant_core::StoreError> {
    /// let table = LockTable::new(client, "claimant-locks").batched(false);
    /// table.create().await?; // for tests; a deployment makes it
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        let names = AttributeNames::default();
        // A limit for each try, so that silence leaves time for another one; the whole call has the budget's.
        let old = client.config();
        let tries = old.timeout_config().map_or_else(TimeoutConfig::builder, TimeoutConfig::to_builder);
        let tries = tries.operation_attempt_timeout(Duration::from_millis(TRY_MAX_MS)).build();
        let client = Client::from_conf(old.to_builder().timeout_config(tries).build());
        Self { requests: Requests { client, table: table.into(), names }, batched: Arc::new(AtomicBool::new(true)) }
    }

    /// Opens the table that the environment names, see [`Settings`], through the function's shared AWS configuration. Does no
    /// request unless credentials have to be fetched.
    ///
    /// ```no_run
    /// # mod claimant { pub use claimant_core::*; pub mod dynamodb { pub use claimant_dynamodb::*; } }
    /// use claimant::dynamodb::LockTable;
    ///
    /// # async fn example() -> Result<(), claimant_core::Error> {
    /// let table = LockTable::from_env().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When `CLAIMANT_TABLE` is not set, or a setting is malformed or its name misspelt: one error with every fault.
    pub async fn from_env() -> Result<Self, Error> {
        Self::from_variables(Variables::from_env()).await
    }

    /// Opens the table as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As there: one error, with the faults of what was read before among the others.
    pub async fn from_variables(variables: Variables) -> Result<Self, Error> {
        let (table, batched) = Settings::required(variables)?;
        Ok(Self::new(Client::new(claimant_aws::config().await), table).batched(batched))
    }

    /// The same table with other attribute names.
    #[must_use]
    pub fn attribute_names(mut self, names: AttributeNames) -> Self {
        self.requests.names = names;
        self
    }

    /// Whether many keys are claimed and settled in one request (default: yes). That needs `dynamodb:PartiQLInsert`,
    /// `dynamodb:PartiQLUpdate` and `dynamodb:BatchGetItem`; without it, or where that is denied, each key has a request
    /// of its own. The answers are the same.
    #[must_use]
    pub fn batched(mut self, batched: bool) -> Self {
        self.batched = Arc::new(AtomicBool::new(batched));
        self
    }

    pub(crate) fn batches(&self) -> bool {
        self.batched.load(Ordering::Relaxed)
    }

    /// Gives up requests for many where the role lacks them. Other denials, such as expired credentials, pass.
    pub(crate) fn notice_denial(&self, code: Option<&str>) -> bool {
        let denied = code == Some("AccessDeniedException");
        if denied {
            self.give_up_batches();
        }
        denied
    }

    /// Requests for many were denied: each key has its own from now on.
    pub(crate) fn give_up_batches(&self) {
        if self.batched.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                table = self.name(),
                "batched claims are denied, so each key has a request of its own: give the function's role \
                 dynamodb:PartiQLInsert, PartiQLUpdate and BatchGetItem on the table, or set CLAIMANT_BATCH=off"
            );
        }
    }

    /// The table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.requests.table
    }

    /// Makes the table, with on-demand capacity and TTL, and waits until it can be used: for local use and tests.
    /// A deployed table belongs in the template. Does nothing to a table that exists.
    ///
    /// # Errors
    /// When DynamoDB refuses, or the table is not ready within a minute.
    pub async fn create(&self) -> Result<(), StoreError> {
        crate::create::create(&self.requests).await
    }

    pub(crate) async fn send(
        &self,
        update: UpdateItemFluentBuilder,
        budget: Budget<'_>,
    ) -> Result<Written, StoreError> {
        let sent: Result<UpdateItemOutput, SdkError<UpdateItemError>> = budget.send(update.send()).await?;
        match sent {
            Ok(output) => {
                let units = output.consumed_capacity().and_then(|c| c.capacity_units());
                budget.meter.units(units.unwrap_or_default(), 0.0);
                Ok(Written::Applied(output.attributes))
            }
            Err(SdkError::ServiceError(service)) if service.err().is_conditional_check_failed_exception() => {
                // A refused write is charged by the record's size, and a refusal does not tell: records take one unit.
                budget.meter.units(1.0, 0.0);
                let UpdateItemError::ConditionalCheckFailedException(refusal) = service.into_err() else {
                    return Err(StoreError::new(StoreErrorKind::Other, "a refusal changed its kind"));
                };
                let record = refusal.item().map(|i| item::record(i, &self.requests.names)).transpose()?;
                Ok(Written::Refused(record))
            }
            Err(error) => Err(store_error("UpdateItem", &self.requests.table, &error)),
        }
    }

    pub(crate) async fn read(&self, id: &RecordId, budget: Budget<'_>) -> Result<Option<Record>, StoreError> {
        let Requests { client, table, names } = &self.requests;
        let request = client
            .get_item()
            .table_name(table)
            .key(&names.id, item::text(id.as_str()))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let read = budget.send(request.send()).await?.map_err(|e| store_error("GetItem", table, &e))?;
        let units = read.consumed_capacity().and_then(|c| c.capacity_units());
        budget.meter.units(0.0, units.unwrap_or_default());
        read.item().map(|i| item::record(i, names)).transpose()
    }

    /// The record that a refusal showed, read where the endpoint did not send it along (old emulators do not).
    pub(crate) async fn refused_by(
        &self,
        id: &RecordId,
        shown: Option<Record>,
        budget: Budget<'_>,
    ) -> Result<Option<Record>, StoreError> {
        match shown {
            Some(record) => Ok(Some(record)),
            None => self.read(id, budget).await,
        }
    }

    pub(crate) async fn claim_one(
        &self,
        request: &ClaimRequest,
        budget: Budget<'_>,
    ) -> Result<ClaimAnswer, StoreError> {
        let mut wanted = None;
        let mut write = self.requests.claim(request);
        for _ in 0..ROUNDS_MAX {
            let seen = match self.send(write, budget).await? {
                Written::Applied(before) => return self.granted(request, wanted, before.as_ref()),
                Written::Refused(shown) => self.refused_by(&request.id, shown, budget).await?,
            };
            let Some(seen) = seen else {
                // Deleted between the refusal and the look: it is absent now, which the blind claim takes.
                (write, wanted) = (self.requests.claim(request), None);
                continue;
            };
            let decision = protocol::decide(Some(&seen), request);
            write = match &decision {
                Decision::Held => {
                    let claim = protocol::held(request.id.clone(), &seen, wanted.as_ref());
                    return Ok(ClaimAnswer::Granted(claim));
                }
                Decision::Refuse(refusal) => return Ok(ClaimAnswer::Refused(refusal.clone())),
                Decision::Grant { next, .. } | Decision::Park { next } => {
                    self.requests.replace(&request.id, &seen, next)
                }
            };
            wanted = Some(decision);
        }
        Err(StoreError::new(StoreErrorKind::Throttled, "the record changed each time it was to be claimed"))
    }

    /// The answer to a write that applied: the decision that it carried out, or, for the blind claim, the decision on
    /// what it replaced.
    fn granted(
        &self,
        request: &ClaimRequest,
        wanted: Option<Decision>,
        before: Option<&Item>,
    ) -> Result<ClaimAnswer, StoreError> {
        let decision = match wanted {
            Some(decision) => decision,
            None => {
                let names = &self.requests.names;
                // Before a new item there was nothing; the embedded DynamoDB then sends the key alone.
                let before = before.filter(|item| item.keys().any(|name| *name != names.id));
                let before = before.map(|item| item::record(item, names)).transpose()?;
                protocol::decide(before.as_ref(), request)
            }
        };
        match decision {
            Decision::Grant { next, taken_over } => Ok(grant(request, &next, taken_over)),
            Decision::Park { .. } => Ok(ClaimAnswer::Refused(Refusal::Parked)),
            // Cannot be, since the blind condition is narrower than the decision. If it were, the claim runs out unused.
            Decision::Held | Decision::Refuse(_) => {
                Err(StoreError::new(StoreErrorKind::Other, "the claim's condition and the protocol disagree"))
            }
        }
    }

    async fn renew_within(
        &self,
        claim: &mut Claim,
        renewal: Renewal,
        budget: Budget<'_>,
    ) -> Result<Renewed, StoreError> {
        let written = self.send(self.requests.renew(claim, &renewal), budget).await?;
        let Written::Refused(shown) = written else {
            claim.lease_until = renewal.lease_until;
            return Ok(Renewed::Held);
        };
        let seen = self.refused_by(&claim.id, shown, budget).await?;
        match (protocol::renew(seen.as_ref(), claim, &renewal), seen) {
            (RenewDecision::AlreadyLonger, Some(seen)) => {
                claim.lease_until = seen.lease_until;
                Ok(Renewed::Held)
            }
            _ => Ok(Renewed::Lost),
        }
    }

    pub(crate) async fn settle_one(&self, claim: Claim, settlement: &Settlement, budget: Budget<'_>) -> Settled {
        let mut unknown = StoreError::no_answer(budget.left());
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                tokio::time::sleep(retry_wait(round, budget.left())).await;
            }
            if budget.left().is_zero() {
                break;
            }
            let seen = match self.send(self.requests.settle(&claim, settlement), budget).await {
                Ok(Written::Applied(_)) => return Settled::Done,
                Ok(Written::Refused(shown)) => self.refused_by(&claim.id, shown, budget).await,
                // No try can mend these, and they say that nothing was written.
                Err(error) if is_final(error.kind()) => return Settled::unknown(claim, error),
                // If an earlier try applied, the caller's next one is refused and shown it.
                Err(error) if error.kind() == StoreErrorKind::Throttled => return Settled::unknown(claim, error),
                // No answer: the record tells whether the write applied, where it can be read.
                Err(error) => match self.read(&claim.id, budget).await {
                    Ok(seen) => {
                        unknown = error;
                        Ok(seen)
                    }
                    Err(_) => return Settled::unknown(claim, error),
                },
            };
            match seen.map(|seen| protocol::settle(seen.as_ref(), &claim, settlement)) {
                Ok(SettleDecision::AlreadySettled) => return Settled::Done,
                Ok(SettleDecision::Lost) => return Settled::Lost,
                Ok(SettleDecision::Write(_)) => {}
                Err(error) => unknown = error,
            }
        }
        Settled::unknown(claim, unknown)
    }
}

/// Whether trying again is of no use.
fn is_final(kind: StoreErrorKind) -> bool {
    matches!(kind, StoreErrorKind::Denied | StoreErrorKind::Misconfigured | StoreErrorKind::TooLarge)
}

/// How long to wait before a write is tried again: doubling, and spread over its upper half by the last digits of the time
/// that is left, which it never exceeds.
pub(crate) fn retry_wait(round: u32, left: Duration) -> Duration {
    let half = (RETRY_BASE_MS << round.min(8)) / 2;
    Duration::from_millis(half + u64::from(left.subsec_nanos()) % half).min(left)
}

impl Store for LockTable {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(self.claim_one(request, Budget::of(call)))
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> StoreFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(self.claim_many(requests, call))
    }

    fn settle_all<'a>(
        &'a self,
        settlements: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> StoreFuture<'a, Vec<Settled>> {
        Box::pin(self.settle_many(settlements, call))
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(self.renew_within(claim, renewal, Budget::of(call)))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> StoreFuture<'a, Settled> {
        Box::pin(self.settle_one(claim, settlement, Budget::of(call)))
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> StoreFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(self.read(id, Budget::of(call)))
    }
}

fn grant(request: &ClaimRequest, record: &Record, taken_over: bool) -> ClaimAnswer {
    ClaimAnswer::Granted(protocol::claim_of(request.id.clone(), record, taken_over))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_are_spread_over_their_upper_half() {
        let rows =
            [(1, 0, 12), (1, 5, 17), (1, 11, 23), (1, 12, 12), (2, 30, 30), (3, 1, 49), (8, 0, 1_536), (9, 0, 1_536)];
        for (round, nanos, wanted_ms) in rows {
            let wait = retry_wait(round, Duration::new(7, nanos));
            assert_eq!(wait, Duration::from_millis(wanted_ms), "round {round}, {nanos} ns");
        }
        assert_eq!(retry_wait(8, Duration::from_millis(3)), Duration::from_millis(3));
    }
}
