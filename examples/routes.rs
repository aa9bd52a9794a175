//! Several kinds of events in one queue, each for a consumer of its own.
//!
//! ```text
//! confirmed ord-1
//! refunded ord-1: too late
//! m-1 completed, m-2 completed, m-3 duplicate, m-4 ignored, m-5 rejected
//! order-confirmation: 2 messages
//! order-refund: 1 messages
//! unrouted: 2 messages
//! ```

use std::time::Duration;

use claimant::engine::{Message, NoQueue, Router, InvocationTime};
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, HandlerError, Routes};

#[derive(serde::Deserialize)]
struct Placed {
    order_id: String,
}

#[derive(serde::Deserialize)]
struct Cancelled {
    order_id: String,
    reason: String,
}

async fn confirm(order: Placed, _: Context) -> Result<(), HandlerError> {
    println!("confirmed {}", order.order_id);
    Ok(())
}

async fn refund(order: Cancelled, _: Context) -> Result<(), HandlerError> {
    println!("refunded {}: {}", order.order_id, order.reason);
    Ok(())
}

fn routes() -> Routes {
    let (confirmations, refunds) = (MemoryStore::new(), MemoryStore::new());
    let confirmation = Consumer::new("order-confirmation", confirmations, confirm).key(|order| &order.order_id);
    let refund = Consumer::new("order-refund", refunds, refund).key(|order| &order.order_id).concurrency(2);
    let routes = Routes::by_field("type").on("OrderPlaced", confirmation).on("OrderCancelled", refund);
    routes.acknowledge_unknown()
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let router = Router::new(routes(), 1)?;

    let placed = r#"{"type": "OrderPlaced", "order_id": "ord-1"}"#;
    let batch = [
        Message::new("m-1", placed)?,
        Message::new("m-2", r#"{"type": "OrderCancelled", "order_id": "ord-1", "reason": "too late"}"#)?,
        Message::new("m-3", placed)?,
        Message::new("m-4", r#"{"type": "OrderArchived"}"#)?,
        Message::new("m-5", r#"{"order_id": "ord-1"}"#)?,
    ];
    // One after the other, so that what is printed has an order.
    let batch = batch.map(|message| message.with_ordered_group("ord-1"));
    let now = router.now();
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(30)), Duration::from_millis(500));
    let report = router.process(&batch, time, &NoQueue).await;

    let outcome = |(message, number): (&Message, usize)| {
        format!("{} {}", message.id().as_str(), report.all().entries()[number].outcome.word())
    };
    println!("{}", batch.iter().zip(0..).map(outcome).collect::<Vec<_>>().join(", "));
    for (name, report) in report.consumers() {
        println!("{name}: {} messages", report.entries().len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_kind_goes_to_its_consumer_whatever_happens() {
        for scenario in Scenario::all() {
            let event = |kind: &str| {
                let event = json!({ "type": kind, "order_id": "ord-1", "reason": "too late" });
                TestMessage::json(&event).in_group("ord-1")
            };
            let queue = TestQueue::new(routes());
            let events = ["OrderPlaced", "OrderCancelled", "OrderArchived"].map(event);
            queue.play(&scenario, &events).await.assert_done();
            for consumer in ["order-confirmation", "order-refund"] {
                assert!(queue.record_of(consumer, "ord-1").await.is_some(), "{scenario}: {consumer}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_says_no_kind_is_rejected() {
        for scenario in Scenario::all() {
            let played = TestQueue::new(routes()).play(&scenario, &[TestMessage::json(&json!({ "order_id": "ord-1" }))]).await;
            played.assert_dead_lettered("it lacks the field `type`");
        }
    }
}
