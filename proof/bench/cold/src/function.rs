//! `functions/order-confirmation` without claimant: claim, mail, complete, one order after the other.
//!
//! Compiled into `cold-by-hand` and `cold-defaults`, to be started; it is no example of how to do it well.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Deserialize;

use crate::hand::{Claimed, Orders};

/// How long a claim is honoured; by hand, one takes the function's timeout.
const LEASE: Duration = Duration::from_mins(15);

#[derive(Deserialize)]
struct Order {
    order_id: String,
    customer_email: String,
}

struct Function {
    orders: Orders,
    ses: aws_sdk_sesv2::Client,
    sender: String,
}

/// Runs the function.
pub(crate) async fn run(config: &SdkConfig) -> Result<(), Error> {
    tracing_subscriber::fmt().json().without_time().init();
    let client = aws_sdk_dynamodb::Client::new(config);
    let function = Function {
        orders: Orders { client, table: std::env::var("CLAIMANT_TABLE")? },
        ses: aws_sdk_sesv2::Client::new(config),
        sender: std::env::var("SENDER_ADDRESS")?,
    };
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| function.confirm(event))).await
}

impl Function {
    async fn confirm(&self, event: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
        let mut response = SqsBatchResponse::default();
        for record in event.payload.records {
            let owner = event.context.request_id.as_str();
            if let Err(error) = self.work(record.body.as_deref().unwrap_or_default(), owner).await {
                tracing::warn!("an order failed: {error}");
                let mut failure = BatchItemFailure::default();
                failure.item_identifier = record.message_id.unwrap_or_default();
                response.batch_item_failures.push(failure);
            }
        }
        Ok(response)
    }

    async fn work(&self, body: &str, owner: &str) -> Result<(), Error> {
        let order: Order = serde_json::from_str(body)?;
        match self.orders.claim(&order.order_id, owner, LEASE).await? {
            Claimed::Done => Ok(()),
            Claimed::Busy => Err("someone else is at it".into()),
            Claimed::Ours(owner) => {
                self.mail(&order).await?;
                self.orders.complete(&order.order_id, &owner).await
            }
        }
    }

    async fn mail(&self, order: &Order) -> Result<(), Error> {
        let content = |text: String| Content::builder().data(text).charset("UTF-8").build();
        let message = Message::builder()
            .subject(content(format!("Your order {}", order.order_id))?)
            .body(Body::builder().text(content("Thank you for your order.".to_owned())?).build())
            .build();
        self.ses
            .send_email()
            .from_email_address(&self.sender)
            .destination(Destination::builder().to_addresses(&order.customer_email).build())
            .content(EmailContent::builder().simple(message).build())
            .send()
            .await?;
        Ok(())
    }
}
