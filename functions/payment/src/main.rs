//! Charges each order once, at a payment gateway.

mod gateway;
mod handler;
#[cfg(test)]
mod scenarios;

use claimant::Consumer;
use claimant::dynamodb::LockTable;
use claimant::store::Store;
use gateway::Gateway;
use handler::Payment;

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let url = variables.text("GATEWAY_URL");
    // Whether the gateway charges once for each Idempotency-Key.
    let deduplicates = variables.choice("GATEWAY_DEDUPLICATES", [("yes", true), ("no", false)]);
    let table = LockTable::from_variables(variables).await?;
    claimant::lambda::run(consumer(table, Gateway::at(&url)?, deduplicates)).await
}

/// The consumer on any store: the lock table, and the one of the tests.
fn consumer(store: impl Store, gateway: Gateway, deduplicates: bool) -> Consumer<Payment> {
    let consumer = Consumer::new("payment", store, gateway).key(|payment: &Payment| &payment.order_id);
    let consumer = consumer.on_duplicate(handler::repeat_receipt);
    // Where it does not, a second request would be a second charge: what may have been charged is left for a person to decide.
    if deduplicates { consumer } else { consumer.at_most_once() }
}
