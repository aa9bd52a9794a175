//! Charges each order once, at a payment gateway.

mod gateway;
mod handler;

use std::sync::Arc;

use claimant::{Consumer, LockTable, Settings};
use gateway::Gateway;
use handler::Payment;

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let (settings, (url, deduplicates)) = Settings::from_env_with(&["CLAIMANT_TABLE"], |own| {
        // Whether the gateway charges once for each Idempotency-Key.
        (own.text("GATEWAY_URL"), own.choice("GATEWAY_DEDUPLICATES", [("yes", true), ("no", false)]))
    })?;
    let gateway = Arc::new(Gateway::at(&url)?);
    let table = LockTable::from_settings(&settings).await?;
    let charge = move |payment, cx| handler::charge(Arc::clone(&gateway), payment, cx);
    let consumer = Consumer::new("payment", table, charge).key(|payment: &Payment| &payment.order_id);
    let consumer = consumer.on_duplicate(handler::repeat_receipt);
    // Where it does not, a second request would be a second charge: what may have been charged is left for a person to decide.
    let consumer = if deduplicates { consumer } else { consumer.at_most_once() };
    claimant::lambda::run(&settings, consumer).await
}
