//! The store in DynamoDB: the lock table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{Builder, StalledStreamProtectionConfig};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use claimant_aws::Later;
use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, Budget, Call, Claim, ClaimAnswer, Error, Record, RecordId, Renewed, Settled, Store, StoreError,
    StoreErrorKind, StoreFuture, Variables,
};

use crate::error::store_error;
use crate::item::{self, Item};
use crate::names::AttributeNames;
use crate::requests::Requests;
use crate::settings::{Named, Settings};
use crate::tables::Tables;

/// The longest that one try of a request may take; DynamoDB answers in milliseconds, a first TLS handshake on a small
/// function in about a second.
const TRY_MAX_MS: u64 = 2_000;

/// How often a claim is tried anew where the record changed in between, and a settlement where it was not found in the record.
/// If the table gives no answer at all, a call ends: the caller makes it again if it has time.
pub(crate) const ROUNDS_MAX: u32 = 4;

/// Records in a DynamoDB table, or in several, each record in one of them: see [`Tables`].
///
/// A claim of a fresh, failed or abandoned key is one `UpdateItem`; a refused one returns the record with the refusal,
/// without read units, and the protocol decides on it. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct LockTable {
    pub(crate) requests: Requests,
    /// Whether many records share a request; off for good once that was denied.
    batched: Arc<AtomicBool>,
}

/// The result of one conditional write.
pub(crate) enum Written {
    /// It applied; this was there before, if the request asked for it.
    Applied(Option<Item>),
    /// Its condition did not hold for this record.
    Refused(Option<Record>),
}

impl LockTable {
    /// Returns the table of this name, or the [`Tables`], through this client. A try of a request ends after two seconds, or after the client's own
    /// `operation_attempt_timeout`.
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
    pub fn new(client: Client, tables: impl Into<Tables>) -> Self {
        Self::with_config(move || client.config().to_builder(), tables)
    }

    fn with_config(config: impl FnOnce() -> Builder + Send + 'static, tables: impl Into<Tables>) -> Self {
        let names = AttributeNames::default();
        let client = Later::new(move || {
            let config = config().build();
            // A timeout for each try, so that a missing answer leaves time for another one; the whole call has that of its budget.
            let tries = config.timeout_config().map_or_else(TimeoutConfig::builder, TimeoutConfig::to_builder).build();
            let each = tries.operation_attempt_timeout().unwrap_or(Duration::from_millis(TRY_MAX_MS));
            let tries = tries.to_builder().operation_attempt_timeout(each).build();
            // Those end a stream that stalls, too. Watching it as well would be two timers for each request.
            let streams = StalledStreamProtectionConfig::disabled();
            Client::from_conf(config.to_builder().timeout_config(tries).stalled_stream_protection(streams).build())
        });
        let requests = Requests { client, tables: tables.into(), before: None, names };
        Self { requests, batched: Arc::new(AtomicBool::new(true)) }
    }

    /// Opens the table that the environment names, see [`Settings`], through the function's shared AWS configuration. Sends no
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
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub async fn from_variables(variables: Variables) -> Result<Self, Error> {
        let Named { tables, before, batched } = Settings::required(variables)?;
        let config = claimant_aws::config().await;
        let table = Self::with_config(move || Builder::from(config), tables).batched(batched);
        Ok(match before {
            Some(before) => table.before(before),
            None => table,
        })
    }

    /// Sets the names of the attributes.
    #[must_use]
    pub fn attribute_names(mut self, names: AttributeNames) -> Self {
        self.requests.names = names;
        self
    }

    /// Sets whether many keys are claimed and settled in one request (default: yes). That needs `dynamodb:PartiQLInsert`,
    /// `dynamodb:PartiQLUpdate` and `dynamodb:BatchGetItem`; without it, or where that is denied, each key has a request
    /// of its own. The answers are the same.
    #[must_use]
    pub fn batched(mut self, batched: bool) -> Self {
        self.batched = Arc::new(AtomicBool::new(batched));
        self
    }

    /// Sets the tables that records were in until now, while they are still to be moved: a claim then reads its key there first,
    /// and moves what it finds. That needs `dynamodb:GetItem`, `BatchGetItem` and `DeleteItem` on them. No process may claim
    /// keys with another set of tables meanwhile.
    #[must_use]
    pub fn before(mut self, tables: impl Into<Tables>) -> Self {
        self.requests.before = Some(tables.into());
        self
    }

    pub(crate) fn batches(&self) -> bool {
        self.batched.load(Ordering::Relaxed)
    }

    /// Disables requests for many keys if the role lacks the permission. Other denials, such as expired credentials, are temporary.
    pub(crate) fn disable_batches_if_denied(&self, code: Option<&str>) -> bool {
        let denied = code == Some("AccessDeniedException");
        if denied {
            self.disable_batches();
        }
        denied
    }

    /// Sends a request for each key from now on, since those for many were denied.
    pub(crate) fn disable_batches(&self) {
        if self.batched.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                table = self.name(),
                "batched claims are denied, so each key has a request of its own: give the function's role \
                 dynamodb:PartiQLInsert, PartiQLUpdate and BatchGetItem on the table, or set CLAIMANT_BATCH=off"
            );
        }
    }

    /// Returns the table's name; of several all of them, separated by commas.
    #[must_use]
    pub fn name(&self) -> &str {
        self.requests.tables.as_str()
    }

    /// Creates the table, or each of several, with on-demand capacity and TTL, and waits until it is active: for local use and tests.
    /// A deployed table belongs in the template. Does nothing to a table that exists.
    ///
    /// # Errors
    /// When DynamoDB refuses, or the table is not ready within a minute.
    pub async fn create(&self) -> Result<(), StoreError> {
        for table in self.requests.tables.names() {
            crate::create::create(&self.requests, table).await?;
        }
        Ok(())
    }

    /// Sends a write of this record.
    pub(crate) async fn send(
        &self,
        id: &RecordId,
        update: UpdateItemFluentBuilder,
        budget: Budget<'_>,
    ) -> Result<Written, StoreError> {
        let sent: Result<UpdateItemOutput, SdkError<UpdateItemError>> = budget.send(update.send()).await?;
        match sent {
            Ok(output) => {
                let units = output.consumed_capacity().and_then(|c| c.capacity_units());
                budget.meter().units(units.unwrap_or_default(), 0.0);
                Ok(Written::Applied(output.attributes))
            }
            Err(SdkError::ServiceError(service)) if service.err().is_conditional_check_failed_exception() => {
                // A refused write is charged by the record's size, which the refusal does not tell: records take one unit.
                budget.meter().units(1.0, 0.0);
                let UpdateItemError::ConditionalCheckFailedException(refusal) = service.into_err() else {
                    return Err(StoreError::new(StoreErrorKind::Other, "a refusal changed its kind"));
                };
                let record = refusal.item().map(|i| item::record(i, &self.requests.names)).transpose()?;
                Ok(Written::Refused(record))
            }
            Err(error) => Err(store_error("UpdateItem", self.requests.tables.of(id), &error)),
        }
    }

    pub(crate) async fn read(&self, id: &RecordId, budget: Budget<'_>) -> Result<Option<Record>, StoreError> {
        self.read_in(self.requests.tables.of(id), id, budget).await
    }

    /// Reads a record in this table.
    pub(crate) async fn read_in(
        &self,
        table: &str,
        id: &RecordId,
        budget: Budget<'_>,
    ) -> Result<Option<Record>, StoreError> {
        let Requests { client, names, .. } = &self.requests;
        let request = client
            .get_item()
            .table_name(table)
            .key(&names.id, item::text(id.as_str()))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let read = budget.send(request.send()).await?.map_err(|e| store_error("GetItem", table, &e))?;
        let units = read.consumed_capacity().and_then(|c| c.capacity_units());
        budget.meter().units(0.0, units.unwrap_or_default());
        read.item().map(|i| item::record(i, names)).transpose()
    }

    /// Returns the record of a refusal; reads it if the endpoint did not send it along (old emulators do not).
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
}

impl Store for LockTable {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            let budget = Budget::of(call);
            self.bring(&request.id, budget).await?;
            self.claim_one(request, budget).await
        })
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
        Box::pin(self.read_anywhere(id, Budget::of(call)))
    }
}
