//! Results: what a handler returns is kept on the record, and a duplicate shows it.
//!
//! For a producer that asks again because it never got the answer.
//!
//! ```text
//! m-1 completed
//! ord-1 was packed before: 3 boxes
//! m-2 duplicate
//! ```

use claimant::engine::Engine;
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, Duplicate, HandlerError};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    cups: u32,
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Packed {
    boxes: u32,
}

async fn pack(order: Order, _: Context) -> Result<Packed, HandlerError> {
    Ok(Packed { boxes: order.cups.div_ceil(4) })
}

fn show(duplicate: &Duplicate<'_>) {
    // `None` where nothing was kept, an error where an earlier version kept something of another shape.
    if let Ok(Some(packed)) = duplicate.result::<Packed>() {
        println!("{} was packed before: {} boxes", duplicate.key(), packed.boxes);
    }
}

fn consumer() -> Consumer<Order> {
    Consumer::new("packing", MemoryStore::new(), pack).key(|order| &order.order_id).on_duplicate(show)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let engine = Engine::with_defaults(consumer())?;
    let order = r#"{"order_id": "ord-1", "cups": 12}"#;
    crate::support::deliver(&engine, &[("m-1", order)]).await?;
    crate::support::deliver(&engine, &[("m-2", order)]).await
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_result_is_kept() {
        for scenario in Scenario::all() {
            let queue = TestQueue::new(consumer());
            let order = TestMessage::json(&json!({ "order_id": "ord-1", "cups": 12 }));
            queue.play(&scenario, &[order]).await.assert_done();
            assert_eq!(queue.record("ord-1").await.unwrap().result.as_deref(), Some(r#"{"boxes":3}"#), "{scenario}");
        }
    }
}
