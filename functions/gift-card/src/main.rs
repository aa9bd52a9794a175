//! Issues one gift card per order, in one DynamoDB transaction with its completion.

mod handler;

use std::sync::Arc;

use claimant::{Consumer, LockTable, Settings};
use handler::{Purchase, Tables};

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let (settings, tables) = Settings::from_env_with(&["CLAIMANT_TABLE"], |own| {
        Tables::new(own.text("GIFT_CARD_TABLE"), own.text("GIFT_CARD_LEDGER_TABLE"))
    })?;
    let tables = Arc::new(tables);
    let locks = LockTable::from_settings(&settings).await?.transactions();
    let issue = move |purchase, tx, cx| handler::issue(Arc::clone(&tables), purchase, tx, cx);
    let consumer = Consumer::transactional("gift-card", locks, issue).key(|purchase: &Purchase| &purchase.order_id);
    claimant::lambda::run(&settings, consumer.on_duplicate(handler::show_issued)).await
}
