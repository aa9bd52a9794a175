//! The loop that a careful engineer writes by hand: claim, run, complete.

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::{Purchase, handle};
use crate::hand::{Claimed, Orders};

pub(super) struct ByHand {
    orders: Orders,
}

impl ByHand {
    pub(super) async fn new(table: String) -> Self {
        // The same client as claimant's: pool, TLS, retries.
        let client = aws_sdk_dynamodb::Client::new(claimant_aws::config().await);
        Self { orders: Orders { client, table } }
    }

    /// One message after the other.
    pub(super) async fn one_by_one(&self, event: SqsEvent) -> SqsBatchResponse {
        let mut failed = Vec::new();
        for record in event.records {
            failed.extend(self.work(record).await);
        }
        response(failed)
    }

    /// At most `concurrency` messages at once.
    pub(super) async fn join(&self, event: SqsEvent, concurrency: usize) -> SqsBatchResponse {
        let done = stream::iter(event.records).map(|record| self.work(record)).buffer_unordered(concurrency);
        response(done.filter_map(std::future::ready).collect().await)
    }

    /// The id of the message, if it failed.
    async fn work(&self, record: SqsMessage) -> Option<String> {
        let done = self.try_work(record.body.as_deref().unwrap_or_default()).await;
        match done {
            Ok(true) => None,
            Ok(false) => record.message_id,
            Err(e) => {
                eprintln!("{e}");
                record.message_id
            }
        }
    }

    async fn try_work(&self, body: &str) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        let purchase: Purchase = serde_json::from_str(body)?;
        match self.orders.claim(&purchase.order_id, &Uuid::new_v4().to_string()).await? {
            Claimed::Done => Ok(true),
            Claimed::Busy => Ok(false),
            Claimed::Ours(owner) => {
                handle(&purchase);
                self.orders.complete(&purchase.order_id, &owner).await?;
                Ok(true)
            }
        }
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
