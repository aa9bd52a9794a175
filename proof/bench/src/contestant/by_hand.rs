//! The loop that a careful engineer writes by hand: claim, run, complete; release what failed.

use std::time::Duration;

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_dynamodb::types::AttributeValue::S;
use claimant_core::Error;
use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::{Purchase, handle};
use crate::hand::{Claimed, Orders};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(super) struct ByHand {
    orders: Orders,
    two_fields: bool,
}

impl ByHand {
    pub(super) async fn new(table: String) -> Result<Self, Error> {
        // The same client as claimant's: pool, TLS, retries.
        let client = aws_sdk_dynamodb::Client::new(claimant_aws::config().await?);
        Ok(Self { orders: Orders { client, table }, two_fields: super::two_fields() })
    }

    /// At most `concurrency` messages at once; without it, a plain loop.
    pub(super) async fn invoke(
        &self,
        event: SqsEvent,
        lease: Duration,
        concurrency: Option<usize>,
    ) -> SqsBatchResponse {
        if let Some(concurrency) = concurrency {
            let done = stream::iter(event.records).map(|record| self.work(record, lease)).buffer_unordered(concurrency);
            return response(done.filter_map(std::future::ready).collect().await);
        }
        let mut failed = Vec::new();
        for record in event.records {
            failed.extend(self.work(record, lease).await);
        }
        response(failed)
    }

    /// The id of the message, if it failed.
    async fn work(&self, record: SqsMessage, lease: Duration) -> Option<String> {
        let done = self.try_work(record.body.as_deref().unwrap_or_default(), lease).await;
        match done {
            Ok(true) => None,
            Ok(false) => record.message_id,
            Err(e) => {
                eprintln!("{e}");
                record.message_id
            }
        }
    }

    async fn try_work(&self, body: &str, lease: Duration) -> Result<bool, BoxError> {
        let purchase: Purchase = serde_json::from_str(body)?;
        let key = if self.two_fields { purchase.two_field_key() } else { purchase.order_id.clone() };
        match self.orders.claim(&key, &Uuid::new_v4().to_string(), lease).await? {
            Claimed::Done => Ok(true),
            Claimed::Busy => Ok(false),
            Claimed::Ours(owner) => {
                if let Err(why) = handle(&purchase) {
                    self.release(&key, owner).await?;
                    return Err(why.into());
                }
                self.orders.complete(&key, &owner).await?;
                Ok(true)
            }
        }
    }

    /// Gives a claim back, if it is still this owner's.
    async fn release(&self, id: &str, owner: String) -> Result<(), BoxError> {
        let Orders { client, table } = &self.orders;
        client
            .delete_item()
            .table_name(table)
            .key("id", S(id.to_owned()))
            .condition_expression("#owner = :owner AND #status = :in_progress")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":in_progress", S("IN_PROGRESS".to_owned()))
            .expression_attribute_values(":owner", S(owner))
            .send()
            .await?;
        Ok(())
    }
}

fn response(failed: Vec<String>) -> SqsBatchResponse {
    let failures = failed.into_iter().map(|id| {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = id;
        failure
    });
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = failures.collect();
    response
}
