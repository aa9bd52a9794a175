//! A transaction in DynamoDB: the handler's writes and the completion of the key commit together, exactly once.
//!
//! A process that dies before the commit has issued nothing, and one that dies after it has issued the card.
//!
//! ```text
//! m-1 completed, m-2 duplicate, m-3 rejected
//! card 7001 of ord-1
//! ```

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant::dynamodb::{LockTable, Transaction};
use claimant::engine::Engine;
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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (dynamodb, client) = crate::support::dynamodb().await?;
    crate::support::create_table(&dynamodb, "cards")?;
    let table = LockTable::new(client, "claims");
    table.create().await?;

    let consumer = Consumer::transactional("gift-card", table.transactions(), issue).key(|p| &p.order_id);
    let first = r#"{"order_id": "ord-1", "card": "7001"}"#;
    let taken = r#"{"order_id": "ord-2", "card": "7001"}"#;
    let engine = Engine::with_defaults(consumer.concurrency(1))?;
    crate::support::deliver(&engine, &[("m-1", first), ("m-2", first), ("m-3", taken)]).await?;

    for card in dynamodb.items("cards")? {
        let [id, order] = ["id", "order_id"].map(|name| card.text(name).unwrap_or_default());
        println!("card {id} of {order}");
    }
    Ok(())
}
