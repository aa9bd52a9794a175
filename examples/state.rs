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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let warehouse = Warehouse { region: "eu".to_owned() };
    let consumer = Consumer::new("packing", MemoryStore::new(), warehouse).key(|order| &order.order_id);
    crate::support::deliver(&Engine::with_defaults(consumer)?, &[("m-1", r#"{"order_id": "ord-1"}"#)]).await
}
