//! The lock table in DynamoDB, which every instance of a function shares.
//!
//! In a function, the table's name comes from `CLAIMANT_TABLE`: see `crates/claimant/examples/confirm.rs`.
//!
//! ```text
//! the first instance
//! m-1 completed
//! the second instance
//! m-2 duplicate
//! record confirmation#ord-1: COMPLETED, fence 1
//! ```

use aws_sdk_dynamodb::Client;
use claimant::dynamodb::LockTable;
use claimant::engine::Engine;
use claimant::store::Store;
use claimant::{Consumer, Context, HandlerError};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> {
    Ok(())
}

fn consumer(store: impl Store) -> Consumer<Order> {
    Consumer::new("confirmation", store, confirm).key(|order| &order.order_id)
}

/// One instance of the function.
fn instance(client: &Client) -> Result<Engine, claimant::Error> {
    Engine::with_defaults(consumer(LockTable::new(client.clone(), "claims")))
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (dynamodb, client) = crate::support::dynamodb().await?;
    // In AWS, template.yaml makes it.
    LockTable::new(client.clone(), "claims").create().await?;

    let order = r#"{"order_id": "ord-1"}"#;
    println!("the first instance");
    crate::support::deliver(&instance(&client)?, &[("m-1", order)]).await?;
    println!("the second instance");
    crate::support::deliver(&instance(&client)?, &[("m-2", order)]).await?;

    for record in dynamodb.items("claims")? {
        let [id, status] = ["id", "status"].map(|name| record.text(name).unwrap_or_default());
        println!("record {id}: {status}, fence {}", record.number("fence").unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant::memory::MemoryStore;
    use claimant_test::{Scenario, TestMessage, TestQueue};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_order_is_confirmed_once() {
        for scenario in Scenario::all() {
            let order = TestMessage::json(&serde_json::json!({ "order_id": "ord-1" }));
            TestQueue::new(consumer(MemoryStore::new())).play(&scenario, &[order]).await.assert_done();
        }
    }
}
