//! Issues one gift card per order, in one DynamoDB transaction with its completion.

mod handler;
#[cfg(test)]
mod scenarios;

use std::time::Duration;

use claimant::Consumer;
use claimant::dynamodb::{LockTable, Transaction};
use claimant::store::Transactional;
use handler::{Purchase, Tables};

/// How long a copy of an order whose card is being issued waits for that, instead of coming back when that invocation is over.
const BUSY_WAIT: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let tables = Tables::new(variables.text("GIFT_CARD_TABLE"), variables.text("GIFT_CARD_LEDGER_TABLE"));
    let locks = LockTable::from_variables(variables).await?.transactions();
    // From its queue, and asked for directly: the response is then the card.
    claimant::lambda::run_with_direct_events(consumer(locks, tables)).await
}

/// The consumer on any store of such transactions: the lock table, and the one of the tests.
fn consumer(locks: impl Transactional<Transaction = Transaction>, tables: Tables) -> Consumer<Purchase> {
    let consumer = Consumer::transactional("gift-card", locks, tables).key(|purchase: &Purchase| &purchase.order_id);
    consumer.on_duplicate(handler::show_issued).wait_while_busy(BUSY_WAIT)
}
