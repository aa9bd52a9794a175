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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm);
    let engine = Engine::with_defaults(consumer.envelope(envelope::detect()).key(|order| &order.order_id))?;

    let order = || TestMessage::json(&serde_json::json!({ "order_id": "ord-1" }));
    let forms = [
        order().in_event_bridge("shop", "order placed"),
        order().in_event_bridge("shop", "order placed").in_sns("events"),
        order().in_sns("orders"),
        order().in_cloud_event("/shop", "order.placed"),
        order(),
    ];
    let batch: Vec<_> = forms.iter().enumerate().map(|(index, form)| form.message(index + 1)).collect();
    crate::support::deliver_all(&engine, &batch).await
}
