//! The lock table as a store.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use claimant_core::protocol::{self, ClaimRequest, Decision, Refusal, Renewal, SettleDecision, Settlement};
use claimant_core::{
    Claim, ClaimAnswer, Error, Record, RecordId, Renewed, Settings, Settled, Store, StoreError, StoreErrorKind,
    StoreFuture,
};
use tokio::time::Instant;

use crate::error::store_error;
use crate::item::{self, Item};
use crate::names::AttributeNames;
use crate::requests::Requests;

/// The longest that one try of a request may take; DynamoDB answers in milliseconds, a first TLS handshake on a small
/// function in about a second.
const TRY_MAX_MS: u64 = 3_000;

/// How often a write is tried anew after what was seen had changed in between, or no answer came.
const ROUNDS_MAX: u32 = 4;

/// Records in one DynamoDB table.
///
/// A claim of a fresh, failed or abandoned key is one `UpdateItem`; a refused one brings the record back with the refusal,
/// free of read units, and the protocol decides on it. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct LockTable {
    requests: Requests,
}

/// What became of one conditional write.
enum Written {
    /// It applied; this was there before, if the request asked for it.
    Applied(Option<Item>),
    /// Its condition did not hold for this record.
    Refused(Option<Record>),
}

impl LockTable {
    /// The table of this name, through this client.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        let names = AttributeNames::default();
        Self { requests: Requests { client, table: table.into(), names } }
    }

    /// The table that `CLAIMANT_TABLE` names, through the function's shared AWS configuration.
    ///
    /// # Errors
    /// When `CLAIMANT_TABLE` is not set.
    pub async fn from_settings(settings: &Settings) -> Result<Self, Error> {
        let table = settings.table.as_deref().ok_or_else(|| {
            Error::new("CLAIMANT_TABLE is not set: give it the name of the lock table (partition key `id`, a string)")
        })?;
        Ok(Self::new(Client::new(claimant_aws::config().await), table))
    }

    /// The same table with other attribute names.
    #[must_use]
    pub fn attribute_names(mut self, names: AttributeNames) -> Self {
        self.requests.names = names;
        self
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

    async fn send(&self, update: UpdateItemFluentBuilder, within: Duration) -> Result<Written, StoreError> {
        let sent: Result<UpdateItemOutput, SdkError<UpdateItemError>> =
            update.customize().config_override(limits(within)).send().await;
        match sent {
            Ok(output) => Ok(Written::Applied(output.attributes)),
            Err(SdkError::ServiceError(service)) if service.err().is_conditional_check_failed_exception() => {
                let UpdateItemError::ConditionalCheckFailedException(refusal) = service.into_err() else {
                    return Err(StoreError::new(StoreErrorKind::Other, "a refusal changed its kind"));
                };
                let record = refusal.item().map(|i| item::record(i, &self.requests.names)).transpose()?;
                Ok(Written::Refused(record))
            }
            Err(error) => Err(store_error("UpdateItem", &self.requests.table, &error)),
        }
    }

    async fn read(&self, id: &RecordId, within: Duration) -> Result<Option<Record>, StoreError> {
        let Requests { client, table, names } = &self.requests;
        let read = client
            .get_item()
            .table_name(table)
            .key(&names.id, item::text(id.as_str()))
            .consistent_read(true)
            .customize()
            .config_override(limits(within))
            .send()
            .await
            .map_err(|e| store_error("GetItem", table, &e))?;
        read.item().map(|i| item::record(i, names)).transpose()
    }

    /// The record that a refusal showed, read where the endpoint did not send it along (old emulators do not).
    async fn refused_by(
        &self,
        id: &RecordId,
        shown: Option<Record>,
        left: Duration,
    ) -> Result<Option<Record>, StoreError> {
        match shown {
            Some(record) => Ok(Some(record)),
            None => self.read(id, left).await,
        }
    }

    async fn claim_within(&self, request: &ClaimRequest, until: Instant) -> Result<ClaimAnswer, StoreError> {
        let mut written = self.send(self.requests.claim(request), left(until)).await?;
        let mut wanted = None;
        for _ in 0..ROUNDS_MAX {
            let seen = match written {
                Written::Applied(before) => return self.granted(request, wanted, before.as_ref()),
                Written::Refused(shown) => self.refused_by(&request.id, shown, left(until)).await?,
            };
            let Some(seen) = seen else {
                // Deleted between the refusal and the look: it is absent now, which the blind claim takes.
                written = self.send(self.requests.claim(request), left(until)).await?;
                wanted = None;
                continue;
            };
            let decision = protocol::decide(Some(&seen), request);
            let next = match &decision {
                Decision::Held => return Ok(grant(request, &seen, false)),
                Decision::Refuse(refusal) => return Ok(ClaimAnswer::Refused(refusal.clone())),
                Decision::Grant { next, .. } | Decision::Park { next } => next,
            };
            written = self.send(self.requests.replace(&request.id, &seen, next), left(until)).await?;
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

    async fn renew_within(&self, claim: &mut Claim, renewal: Renewal, until: Instant) -> Result<Renewed, StoreError> {
        let written = self.send(self.requests.renew(claim, &renewal), left(until)).await?;
        let Written::Refused(shown) = written else {
            claim.lease_until = renewal.lease_until;
            return Ok(Renewed::Held);
        };
        let seen = self.refused_by(&claim.id, shown, left(until)).await?;
        match (protocol::renew(seen.as_ref(), claim, &renewal), seen) {
            (SettleDecision::Already, Some(seen)) => {
                claim.lease_until = seen.lease_until;
                Ok(Renewed::Held)
            }
            _ => Ok(Renewed::Lost),
        }
    }

    async fn settle_within(&self, claim: &Claim, settlement: &Settlement, until: Instant) -> Settled {
        let mut unknown = StoreError::no_answer(left(until));
        for _ in 0..ROUNDS_MAX {
            if left(until).is_zero() {
                break;
            }
            let seen = match self.send(self.requests.settle(claim, settlement), left(until)).await {
                Ok(Written::Applied(_)) => return Settled::Done,
                Ok(Written::Refused(shown)) => self.refused_by(&claim.id, shown, left(until)).await,
                // No answer: the record tells whether the write applied.
                Err(error) => {
                    unknown = error;
                    self.read(&claim.id, left(until)).await
                }
            };
            match seen.map(|seen| protocol::settle(seen.as_ref(), claim, settlement)) {
                Ok(SettleDecision::Already) => return Settled::Done,
                Ok(SettleDecision::Lost) => return Settled::Lost,
                Ok(SettleDecision::Write(_)) => {}
                Err(error) => unknown = error,
            }
        }
        Settled::Unknown(unknown)
    }
}

impl Store for LockTable {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        within: Duration,
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(self.claim_within(request, Instant::now() + within))
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        within: Duration,
    ) -> StoreFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(self.renew_within(claim, renewal, Instant::now() + within))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, within: Duration) -> StoreFuture<'a, Settled> {
        Box::pin(async move { self.settle_within(&claim, settlement, Instant::now() + within).await })
    }

    fn look<'a>(&'a self, id: &'a RecordId, within: Duration) -> StoreFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(self.read(id, within))
    }
}

fn grant(request: &ClaimRequest, record: &Record, taken_over: bool) -> ClaimAnswer {
    ClaimAnswer::Granted(protocol::claim_of(request.id.clone(), record, taken_over))
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// The SDK's time limits for one call, inside the time that is left: its defaults know no limit.
fn limits(within: Duration) -> aws_sdk_dynamodb::config::Builder {
    // The SDK takes zero for "at once", which is what no time left means; one millisecond keeps that true if it changes.
    let within = within.max(Duration::from_millis(1));
    let one_try = (within / 2).clamp(Duration::from_millis(1), Duration::from_millis(TRY_MAX_MS));
    aws_sdk_dynamodb::config::Builder::new()
        .timeout_config(TimeoutConfig::builder().operation_timeout(within).operation_attempt_timeout(one_try).build())
}
