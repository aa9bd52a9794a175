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

fn consumer() -> Consumer<Order> {
    Consumer::new("packing", MemoryStore::new(), pack).key(|order| &order.order_id)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let batch = [
        ("m-1", r#"{"order_id": "ord-1", "cups": 3, "sent_at": "09:00"}"#),
        ("m-2", r#"{"order_id": "ord-1", "cups": 3, "sent_at": "09:05"}"#),
        ("m-3", r#"{"order_id": "ord-1", "cups": 4, "sent_at": "09:10"}"#),
    ];
    // The whole body has to be the same.
    let whole = consumer();
    // Only the number of cups has to be; another rule later would be version 2.
    let cups = consumer().fingerprint_of(1, |order| Fingerprint::of_bytes(&order.cups.to_be_bytes()));
    // The key alone says what is the same work.
    let key_alone = consumer().conflicts(Conflicts::Ignore);
    for consumer in [whole, cups, key_alone] {
        crate::support::deliver(&Engine::with_defaults(consumer)?, &batch).await?;
    }
    Ok(())
}
