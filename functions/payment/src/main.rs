//! Charges each order once, at a payment gateway.

mod gateway;
mod handler;
#[cfg(test)]
mod scenarios;

use std::time::Duration;

use claimant::dynamodb::LockTable;
use claimant::store::Store;
use claimant::{Breaker, Consumer, Lease};
use gateway::Gateway;
use handler::Payment;

/// How long after a process died another one may ask for its charges again. Charges that take less than a third of it cost no
/// renewal.
const LEASE: Duration = Duration::from_secs(6);

/// How long a copy of an order that is being charged waits for that, instead of coming back half a minute later.
const BUSY_WAIT: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "current_thread")]
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
    let consumer = consumer.wait_while_busy(BUSY_WAIT);
    // Single charges are refused on good days, too.
    let consumer = consumer.breaker(Breaker::new(gateway::NAME).opens_after(8, 10));
    // Where it does not, a second request would be a second charge: what may have been charged is left for a person to decide.
    if deduplicates { consumer.lease(Lease::Renewed(LEASE)) } else { consumer.at_most_once() }
}
