//! The store in DynamoDB: the lock table.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{Builder, StalledStreamProtectionConfig};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use claimant_aws::Later;
use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, BoxFuture, Budget, Call, Claim, ClaimAnswer, Error, Record, RecordId, Renewed, Settled, Store,
    StoreError, Variables,
};

use crate::error::{consumed, is_denied, store_error};
use crate::item::{self, Item};
use crate::names::AttributeNames;
use crate::permitted::Permitted;
use crate::requests::Requests;
use crate::settings::Settings;
use crate::tables::Tables;

/// The longest that one try of a request may take; DynamoDB answers in milliseconds, a first TLS handshake on a small
/// function in about a second.
const TRY_MAX_MS: u64 = 2_000;

/// How often a claim is tried anew where the record changed in between, and a settlement where it was not found in the record.
/// If the table gives no answer at all, a call ends: the caller makes it again if it has time.
pub(crate) const ROUNDS_MAX: u32 = 4;

/// Records in a DynamoDB table, or in several, each record in one of them: see [`Tables`].
///
/// A claim of a key that most likely has no record is one `PutItem`, that of a failed or abandoned one is one `UpdateItem`; a refused one
/// returns the record with the refusal, without read units, and the protocol decides on it. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct LockTable {
    pub(crate) requests: Requests,
    pub(crate) permitted: Arc<Permitted>,
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
        Self { requests, permitted: Arc::default() }
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
    /// When `CLAIMANT_TABLE` is not set, or a setting of the table is malformed or its name misspelt: one error with every fault of
    /// these. When an endpoint that is set for AWS [cannot be used](claimant_aws::config). Those of a function's other settings are in the
    /// error of what reads them next; of all at once in that of `from_variables(claimant::variables())`.
    pub async fn from_env() -> Result<Self, Error> {
        Self::from_variables(Variables::from_env()).await
    }

    /// Opens the table as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub async fn from_variables(variables: Variables) -> Result<Self, Error> {
        let (tables, Settings { before, batched, .. }) = Settings::required(variables)?;
        let config = claimant_aws::config().await?;
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
    /// `dynamodb:PartiQLUpdate` and `dynamodb:BatchGetItem`; without it, or for a minute where that is denied, each key has a
    /// request of its own. The answers are the same. Tables of another account, and endpoints without PartiQL, need `false`.
    #[must_use]
    pub fn batched(mut self, batched: bool) -> Self {
        self.permitted = Arc::new(Permitted::new(batched));
        self
    }

    /// Sets the tables that records were in until now, while they are still to be moved: a claim then reads its key there first,
    /// and moves what it finds. That needs `dynamodb:GetItem`, `BatchGetItem` and `DeleteItem` on them. No process may claim
    /// keys with another set of tables meanwhile. All tables are of one account and Region, and one that is in both sets is
    /// written alike in both: by its name or by its ARN.
    #[must_use]
    pub fn before(mut self, tables: impl Into<Tables>) -> Self {
        self.requests.before = Some(tables.into());
        self
    }

    /// Returns the table's name; of several all of them, separated by commas.
    #[must_use]
    pub fn name(&self) -> &str {
        self.requests.tables.as_str()
    }

    /// Creates the table, or each of several, with on-demand capacity and TTL, and waits until it is active: for local use and tests.
    /// A deployed table belongs in the template. A table that exists is left as it is, with TTL or without.
    ///
    /// # Errors
    /// When DynamoDB refuses, the table is not ready within a minute, or one that exists has another key than a lock table.
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
        // Boxed, since the SDK's future is large and is moved a few times on its way.
        let sent = budget.send(Box::pin(update.send())).await?;
        let sent = sent.map(|output| (output.consumed_capacity, output.attributes));
        self.written(("UpdateItem", id), sent, budget, |error| match error {
            UpdateItemError::ConditionalCheckFailedException(refusal) => Some(refusal),
            _ => None,
        })
    }

    /// Tries to claim a key that most likely has no record. `None` if the role may not put it.
    pub(crate) async fn claim_new(
        &self,
        request: &ClaimRequest,
        budget: Budget<'_>,
    ) -> Result<Option<Written>, StoreError> {
        let sent = budget.send(Box::pin(self.requests.claim_new(request).send())).await?;
        if sent.as_ref().is_err_and(is_denied) {
            return Ok(None);
        }
        let sent = sent.map(|output| (output.consumed_capacity, output.attributes));
        let written = self.written(("PutItem", &request.id), sent, budget, |error| match error {
            PutItemError::ConditionalCheckFailedException(refusal) => Some(refusal),
            _ => None,
        });
        written.map(Some)
    }

    /// Returns what became of a write of this record, and counts its units. `refusal` returns the error that says that its
    /// condition did not hold.
    fn written<E: ProvideErrorMetadata + std::error::Error + 'static>(
        &self,
        (operation, id): (&'static str, &RecordId),
        sent: Result<(Option<ConsumedCapacity>, Option<Item>), SdkError<E>>,
        budget: Budget<'_>,
        refusal: impl Fn(&E) -> Option<&ConditionalCheckFailedException>,
    ) -> Result<Written, StoreError> {
        let error = match sent {
            Ok((capacity, attributes)) => {
                let units = consumed(operation, self.requests.tables.of(id), capacity.as_ref())?;
                budget.meter().units(units, 0.0);
                return Ok(Written::Applied(attributes));
            }
            Err(error) => error,
        };
        let Some(refusal) = error.as_service_error().and_then(refusal) else {
            return Err(store_error(operation, self.requests.tables.of(id), &error));
        };
        // A refused write is charged by the record's size, which the refusal does not tell: records take one unit.
        budget.meter().units(1.0, 0.0);
        let record = refusal.item().map(|i| item::record(i, &self.requests.names)).transpose()?;
        Ok(Written::Refused(record))
    }

    pub(crate) async fn read(&self, id: &RecordId, budget: Budget<'_>) -> Result<Option<Record>, StoreError> {
        self.read_in(self.requests.tables.of(id), id, budget, store_error).await
    }

    /// Reads a record in this table. `described` returns the store error of an error.
    pub(crate) async fn read_in(
        &self,
        table: &str,
        id: &RecordId,
        budget: Budget<'_>,
        described: fn(&'static str, &str, &SdkError<GetItemError>) -> StoreError,
    ) -> Result<Option<Record>, StoreError> {
        let Requests { client, names, .. } = &self.requests;
        let request = client
            .get_item()
            .table_name(table)
            .key(&names.id, item::text(id.as_str()))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let read = budget.send(Box::pin(request.send())).await?.map_err(|e| described("GetItem", table, &e))?;
        budget.meter().units(0.0, consumed("GetItem", table, read.consumed_capacity())?);
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
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
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
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(self.claim_many(requests, call))
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(self.settle_many(settlements, call))
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(self.renew_within(claim, renewal, Budget::of(call)))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(self.settle_one(claim, settlement, Budget::of(call)))
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(self.read_anywhere(id, Budget::of(call)))
    }
}
