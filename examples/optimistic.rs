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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (dynamodb, client) = crate::support::dynamodb().await?;
    crate::support::create_table(&dynamodb, "points")?;
    let table = LockTable::new(client, "claims");
    table.create().await?;

    let consumer =
        Consumer::transactional("points", table.optimistic_transactions(), book).key(|c| &c.change_id);
    let engine = Engine::with_defaults(consumer.concurrency(1))?;
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
