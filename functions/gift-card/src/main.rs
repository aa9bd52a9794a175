//! Issues one gift card per order, in one DynamoDB transaction with its completion.

mod handler;

use std::sync::Arc;

use claimant::{Consumer, LockTable};
use handler::{Purchase, Tables};

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let tables = Arc::new(Tables::new(variables.text("GIFT_CARD_TABLE"), variables.text("GIFT_CARD_LEDGER_TABLE")));
    let locks = LockTable::from_variables(variables).await?.transactions();
    let issue = move |purchase, tx, cx| handler::issue(Arc::clone(&tables), purchase, tx, cx);
    let consumer = Consumer::transactional("gift-card", locks, issue).key(|purchase: &Purchase| &purchase.order_id);
    claimant::lambda::run(consumer.on_duplicate(handler::show_issued)).await
}
