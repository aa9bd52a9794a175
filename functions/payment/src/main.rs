//! Charges each order once, at a payment gateway.

mod gateway;
mod handler;

use claimant::Consumer;
use claimant::dynamodb::LockTable;
use gateway::Gateway;

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let url = variables.text("GATEWAY_URL");
    // Whether the gateway charges once for each Idempotency-Key.
    let deduplicates = variables.choice("GATEWAY_DEDUPLICATES", [("yes", true), ("no", false)]);
    let table = LockTable::from_variables(variables).await?;
    let consumer = Consumer::new("payment", table, Gateway::at(&url)?).key(|payment| &payment.order_id);
    let consumer = consumer.on_duplicate(handler::repeat_receipt);
    // Where it does not, a second request would be a second charge: what may have been charged is left for a person to decide.
    let consumer = if deduplicates { consumer } else { consumer.at_most_once() };
    claimant::lambda::run(consumer).await
}
