//! Issues one gift card per order, in one DynamoDB transaction with its completion.

mod handler;

use claimant::Consumer;
use claimant::dynamodb::LockTable;
use handler::Tables;

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let tables = Tables::new(variables.text("GIFT_CARD_TABLE"), variables.text("GIFT_CARD_LEDGER_TABLE"));
    let locks = LockTable::from_variables(variables).await?.transactions();
    let consumer = Consumer::transactional("gift-card", locks, tables).key(|purchase| &purchase.order_id);
    claimant::lambda::run(consumer.on_duplicate(handler::show_issued)).await
}
