//! State: a handler that is a type of its own, shared by all messages.
//!
//! `crates/claimant/examples/state.rs` shows where a function's own settings come from.
//!
//! ```text
//! eu: packing ord-1, attempt 1
//! m-1 completed
//! ```

use claimant::engine::Engine;
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, Handler, HandlerError};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

/// What the handler needs beside its message.
struct Warehouse {
    region: String,
}

impl Handler<Order> for Warehouse {
    type Output = ();

    async fn handle(&self, order: Order, cx: Context) -> Result<(), HandlerError> {
        println!("{}: packing {}, attempt {}", self.region, order.order_id, cx.attempt());
        Ok(())
    }
}

fn consumer(region: &str) -> Consumer<Order> {
    let warehouse = Warehouse { region: region.to_owned() };
    Consumer::new("packing", MemoryStore::new(), warehouse).key(|order| &order.order_id)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    crate::support::deliver(&Engine::with_defaults(consumer("eu"))?, &[("m-1", r#"{"order_id": "ord-1"}"#)]).await
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_order_is_packed() {
        for scenario in Scenario::all() {
            let order = |id| TestMessage::json(&serde_json::json!({ "order_id": id }));
            TestQueue::new(consumer("eu")).play(&scenario, &[order("ord-1"), order("ord-2")]).await.assert_done();
        }
    }
}
