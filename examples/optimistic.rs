//! A transaction in DynamoDB without a claim: one request for each message, and two copies may run at once.
//!
//! The copy that commits second has done nothing, and is a duplicate. Only for handlers that do nothing outside the
//! transaction.
//!
//! ```text
//! m-1 completed, m-2 completed
//! m-3 duplicate
//! ada has 40 points
//! ```

use aws_sdk_dynamodb::types::{AttributeValue, Update};
use claimant::dynamodb::{LockTable, Transaction};
use claimant::engine::Engine;
use claimant::store::Transactional;
use claimant::{Consumer, Context, HandlerError, TransactionGuard};

#[derive(serde::Deserialize)]
struct Change {
    change_id: String,
    customer: String,
    points: u32,
}

async fn book(change: Change, mut tx: TransactionGuard<Transaction>, _: Context) -> Result<(), HandlerError> {
    // `ADD` must never be repeated: booked twice, it counts twice.
    let points = Update::builder()
        .table_name("points")
        .key("id", AttributeValue::S(change.customer))
        .update_expression("ADD points :points")
        .expression_attribute_values(":points", AttributeValue::N(change.points.to_string()))
        .build()?;
    tx.update(points);
    Ok(())
}

fn consumer(store: impl Transactional<Transaction = Transaction>) -> Consumer<Change> {
    Consumer::transactional("points", store, book).key(|change| &change.change_id)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (dynamodb, client) = crate::support::dynamodb().await?;
    crate::support::create_table(&dynamodb, "points")?;
    let table = LockTable::new(client, "claims");
    table.create().await?;

    let engine = Engine::with_defaults(consumer(table.optimistic_transactions()).concurrency(1))?;
    let earned = r#"{"change_id": "c-1", "customer": "ada", "points": 30}"#;
    let more = r#"{"change_id": "c-2", "customer": "ada", "points": 10}"#;
    crate::support::deliver(&engine, &[("m-1", earned), ("m-2", more)]).await?;
    crate::support::deliver(&engine, &[("m-3", earned)]).await?;

    for balance in dynamodb.items("points")? {
        let customer = balance.text("id").unwrap_or_default();
        println!("{customer} has {} points", balance.number("points").unwrap_or_default());
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
    async fn points_are_booked_once_whatever_happens() {
        for scenario in Scenario::all() {
            let committed = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&committed);
            let store = MemoryTransactions::new(move |tx: Transaction| {
                counter.fetch_add(tx.writes().count(), Ordering::Relaxed);
                Ok(())
            });
            let message = TestMessage::json(&json!({ "change_id": "c-1", "customer": "ada", "points": 30 }));
            TestQueue::new(consumer(store)).play(&scenario, &[message]).await.assert_done();
            assert_eq!(committed.load(Ordering::Relaxed), 1, "{scenario}");
        }
    }
}
