//! Charges each order once, at a payment gateway.

mod gateway;
mod handler;

use std::sync::Arc;

use claimant::{Consumer, Error, LockTable, Settings};
use gateway::Gateway;
use handler::Payment;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let settings = Settings::from_env(&["CLAIMANT_TABLE", "GATEWAY_URL", "GATEWAY_DEDUPLICATES"])?;
    let gateway = Arc::new(Gateway::at(settings.required("GATEWAY_URL"))?);
    let table = LockTable::from_settings(&settings).await?;
    let charge = move |payment, cx| handler::charge(Arc::clone(&gateway), payment, cx);
    let consumer = Consumer::new("payment", table, charge).key(|payment: &Payment| &payment.order_id);
    let consumer = consumer.on_duplicate(handler::repeat_receipt);
    let consumer = match settings.required("GATEWAY_DEDUPLICATES") {
        "yes" => consumer,
        // A second request would be a second charge: what may have been charged is left for a person to decide.
        "no" => consumer.at_most_once(),
        _ => {
            return Err(Error::new(
                "GATEWAY_DEDUPLICATES: say yes if the gateway charges once for each Idempotency-Key, else no",
            ));
        }
    };
    claimant::lambda::run(&settings, consumer).await
}
