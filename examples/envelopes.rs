//! One event, however it came: directly, through SNS, through EventBridge, through both, or as a CloudEvent. It runs once.
//!
//! ```text
//! ord-1, order placed, from shop
//! m-1 completed, m-2 duplicate, m-3 duplicate, m-4 duplicate, m-5 duplicate
//! ```

use claimant::engine::Engine;
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, HandlerError, envelope};
use claimant_test::TestMessage;

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

async fn confirm(order: Order, cx: Context) -> Result<(), HandlerError> {
    // What the envelopes say; a message that came without one has none.
    let event = cx.message().event().cloned().unwrap_or_default();
    let said = |text: Option<String>| text.unwrap_or_else(|| "nothing".to_owned());
    println!("{}, {}, from {}", order.order_id, said(event.kind), said(event.source));
    Ok(())
}

fn consumer() -> Consumer<Order> {
    let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm);
    consumer.envelope(envelope::detect()).key(|order| &order.order_id)
}

/// One event in each of its forms.
fn forms() -> [TestMessage; 5] {
    let order = || TestMessage::json(&serde_json::json!({ "order_id": "ord-1" }));
    [
        order().in_event_bridge("shop", "order placed"),
        order().in_event_bridge("shop", "order placed").in_sns("events"),
        order().in_sns("orders"),
        order().in_cloud_event("/shop", "order.placed"),
        order(),
    ]
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let engine = Engine::with_defaults(consumer())?;
    let batch: Vec<_> = forms().iter().enumerate().map(|(index, form)| form.message(index + 1)).collect();
    crate::support::deliver_all(&engine, &batch).await
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestQueue};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_event_in_all_its_forms_runs_once() {
        for scenario in Scenario::all() {
            let queue = TestQueue::new(consumer());
            queue.play(&scenario, &forms()).await.assert_done();
            let runs = queue.record("ord-1").await.unwrap().attempts;
            assert!(runs == 1 || scenario.halts(), "{scenario}: {runs} runs");
        }
    }
}
