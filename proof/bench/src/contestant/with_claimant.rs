//! claimant, as a function uses it.

use std::collections::BTreeMap;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use claimant_core::{Consumer, Context, Error, HandlerError, Variables};
use claimant_dynamodb::LockTable;
use claimant_lambda::{Service, Settings};

use super::{Purchase, handle};

pub(super) struct WithClaimant {
    table: LockTable,
    /// By concurrency.
    services: BTreeMap<usize, Service>,
}

async fn confirm(purchase: Purchase, _: Context) -> Result<(), HandlerError> {
    handle(&purchase).map_err(HandlerError::retry)
}

impl WithClaimant {
    pub(super) async fn new(table: String) -> Result<Self, Error> {
        let client = aws_sdk_dynamodb::Client::new(claimant_aws::config().await?);
        Ok(Self { table: LockTable::new(client, table), services: BTreeMap::new() })
    }

    pub(super) fn prepare(&mut self, concurrency: usize) -> Result<(), Error> {
        if !self.services.contains_key(&concurrency) {
            let variables = Variables::new([("CLAIMANT_CONCURRENCY", concurrency.to_string())]);
            let settings = Settings::from_variables(variables)?;
            let consumer = Consumer::new("order-confirmation", self.table.clone(), confirm);
            let consumer = match super::two_fields() {
                false => consumer.key(|purchase| &purchase.order_id),
                true => consumer.key_of(Purchase::two_field_key),
            };
            // Made and passed on, as the lines of the log are; read by nobody, as they.
            let service = Service::with_aws(&settings, consumer, None)?.handlers_on_own_threads().metrics(|_| {});
            service.start_threads()?;
            self.services.insert(concurrency, service);
        }
        Ok(())
    }

    pub(super) async fn invoke(
        &self,
        concurrency: usize,
        event: SqsEvent,
        deadline_ms: u64,
    ) -> Result<SqsBatchResponse, Error> {
        let service = self.services.get(&concurrency).ok_or_else(|| Error::new("the service was not prepared"))?;
        Ok(service.invoke(event, deadline_ms, "").await?.0)
    }
}
