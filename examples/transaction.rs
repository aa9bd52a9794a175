//! A transaction in DynamoDB: the handler's writes and the completion of the key commit together, exactly once.
//!
//! A process that dies before the commit has issued nothing, and one that dies after it has issued the card.
//!
//! ```text
//! m-1 completed, m-2 duplicate
//! m-3 rejected
//! card 7001 of ord-1
//! ```

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant::dynamodb::{LockTable, Transaction};
use claimant::engine::Engine;
use claimant::store::Transactional;
use claimant::{Consumer, Context, HandlerError, TransactionGuard};

#[derive(serde::Deserialize)]
struct Purchase {
    order_id: String,
    card: String,
}

async fn issue(purchase: Purchase, mut tx: TransactionGuard<Transaction>, _: Context) -> Result<(), HandlerError> {
    let card = Put::builder()
        .table_name("cards")
        .item("id", AttributeValue::S(purchase.card))
        .item("order_id", AttributeValue::S(purchase.order_id))
        .condition_expression("attribute_not_exists(id)")
        .build()?;
    // Nothing is sent before this has returned `Ok`.
    tx.put(card).or_terminal("there is a card of this number already");
    Ok(())
}

fn consumer(store: impl Transactional<Transaction = Transaction>) -> Consumer<Purchase> {
    Consumer::transactional("gift-card", store, issue).key(|purchase| &purchase.order_id)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (dynamodb, client) = crate::support::dynamodb().await?;
    crate::support::create_table(&dynamodb, "cards")?;
    let table = LockTable::new(client, "claims");
    table.create().await?;

    let first = r#"{"order_id": "ord-1", "card": "7001"}"#;
    let taken = r#"{"order_id": "ord-2", "card": "7001"}"#;
    let engine = Engine::with_defaults(consumer(table.transactions()))?;
    crate::support::deliver(&engine, &[("m-1", first), ("m-2", first)]).await?;
    crate::support::deliver(&engine, &[("m-3", taken)]).await?;

    for card in dynamodb.items("cards")? {
        let [id, order] = ["id", "order_id"].map(|name| card.text(name).unwrap_or_default());
        println!("card {id} of {order}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use claimant_test::{MemoryTransactions, Scenario, TestMessage, TestQueue};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_card_is_issued_once_whatever_happens() {
        for scenario in Scenario::all() {
            let committed = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&committed);
            let store = MemoryTransactions::new(move |tx: Transaction| {
                counter.fetch_add(tx.writes().count(), Ordering::Relaxed);
                Ok(())
            });
            let message = TestMessage::json(&json!({ "order_id": "ord-1", "card": "7001" }));
            TestQueue::new(consumer(store)).play(&scenario, &[message]).await.assert_done();
            assert_eq!(committed.load(Ordering::Relaxed), 1, "{scenario}");
        }
    }
}
