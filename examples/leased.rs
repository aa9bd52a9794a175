//! A lease, the default guarantee: each order is confirmed once, and what failed comes back.
//!
//! The claim of a key is honoured until its lease ends; a copy of finished work is skipped. A process that dies after the mail
//! and before the completion leaves work that runs again, so the mail service gets the key and can recognise the repeat.
//!
//! ```text
//! a mail with the key ord-1
//! m-1 completed, m-2 duplicate, m-3 retry
//! a mail with the key ord-2
//! m-1 duplicate, m-3 completed
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

use claimant::engine::Engine;
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, Handler, HandlerError};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    express: bool,
}

/// A mail service that refuses its first express mail.
#[derive(Default)]
struct Mails {
    refused: AtomicBool,
}

impl Handler<Order> for Mails {
    type Output = ();

    async fn handle(&self, order: Order, cx: Context) -> Result<(), HandlerError> {
        if order.express && !self.refused.swap(true, Ordering::Relaxed) {
            return Err(HandlerError::retry("the mail service is busy"));
        }
        println!("a mail with the key {}", cx.key());
        Ok(())
    }
}

fn consumer() -> Consumer<Order> {
    Consumer::new("confirmation", MemoryStore::new(), Mails::default()).key(|order| &order.order_id)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let engine = Engine::with_defaults(consumer())?;

    let first = r#"{"order_id": "ord-1", "express": false}"#;
    let second = r#"{"order_id": "ord-2", "express": true}"#;
    // The producer sent the first order twice.
    crate::support::deliver(&engine, &[("m-1", first), ("m-2", first), ("m-3", second)]).await?;
    // The queue delivers one again that was done, and the one that failed.
    crate::support::deliver(&engine, &[("m-1", first), ("m-3", second)]).await
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_order_is_confirmed_whatever_happens() {
        for scenario in Scenario::all() {
            let order = |id, express| TestMessage::json(&json!({ "order_id": id, "express": express }));
            TestQueue::new(consumer()).play(&scenario, &[order("ord-1", false), order("ord-2", true)]).await.assert_done();
        }
    }
}
