//! Records in MySQL or MariaDB. The server is the one that `CLAIMANT_DATABASE_URL` names.
//!
//! ```text
//! m-1 completed, m-2 duplicate
//! m-1 duplicate
//! ```

use claimant::engine::Engine;
use claimant::mysql::MySqlStore;
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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let store = MySqlStore::from_env().await?;
    // In production, a step of the deployment.
    store.migrate().await?;

    let engine = Engine::with_defaults(consumer(store))?;
    let order = format!(r#"{{"order_id": "{}"}}"#, crate::support::new_order_id());
    crate::support::deliver(&engine, &[("m-1", &order), ("m-2", &order)]).await?;
    crate::support::deliver(&engine, &[("m-1", &order)]).await
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
