//! Conflicts: two messages of one key with different payloads are not the same work, unless the consumer says what counts.
//!
//! ```text
//! m-1 completed, m-2 conflict, m-3 conflict
//! m-1 completed, m-2 duplicate, m-3 conflict
//! m-1 completed, m-2 duplicate, m-3 duplicate
//! ```

use claimant::engine::Engine;
use claimant::memory::MemoryStore;
use claimant::{Conflicts, Consumer, Context, Fingerprint, HandlerError};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    cups: u32,
}

async fn pack(_: Order, _: Context) -> Result<(), HandlerError> {
    Ok(())
}

fn consumers() -> [Consumer<Order>; 3] {
    let consumer = || Consumer::new("packing", MemoryStore::new(), pack).key(|order| &order.order_id);
    // The whole body has to be the same.
    let whole = consumer();
    // Only the number of cups has to be; another rule later would be version 2.
    let cups = consumer().fingerprint_of(1, |order| Fingerprint::of_bytes(&order.cups.to_be_bytes()));
    // The key alone says what is the same work.
    let key_alone = consumer().conflicts(Conflicts::Ignore);
    [whole, cups, key_alone]
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let batch = [
        ("m-1", r#"{"order_id": "ord-1", "cups": 3, "sent_at": "09:00"}"#),
        ("m-2", r#"{"order_id": "ord-1", "cups": 3, "sent_at": "09:05"}"#),
        ("m-3", r#"{"order_id": "ord-1", "cups": 4, "sent_at": "09:10"}"#),
    ];
    for consumer in consumers() {
        crate::support::deliver(&Engine::with_defaults(consumer)?, &batch).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_a_conflict_is_up_to_the_consumer() {
        let wanted = [["conflict", "conflict"], ["duplicate", "conflict"], ["duplicate", "duplicate"]];
        for (consumer, [later, more]) in consumers().into_iter().zip(wanted) {
            let order = |cups, at| TestMessage::json(&json!({ "order_id": "ord-1", "cups": cups, "sent_at": at }));
            let queue = TestQueue::new(consumer);
            queue.send(&[order(3, "09:00"), order(3, "09:05"), order(4, "09:10")]);
            let outcomes = queue.drain().await.outcomes();
            assert_eq!(outcomes, ["m-1: completed".to_owned(), format!("m-2: {later}"), format!("m-3: {more}")]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_copy_is_no_conflict_for_any_of_them() {
        for scenario in Scenario::all() {
            for consumer in consumers() {
                let order = TestMessage::json(&json!({ "order_id": "ord-1", "cups": 3 }));
                // Each scenario's number of steps is that of its own consumer: they have as many.
                TestQueue::new(consumer).play(&scenario, &[order]).await.assert_done();
            }
        }
    }
}
