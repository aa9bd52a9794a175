//! A short wait for a busy key: two copies at the same time, in two instances of a function. With it, the second one is a duplicate a
//! moment later; without it, it comes back when the first one's lease is over.
//!
//! ```text
//! without a wait: m-1 completed
//! without a wait: m-2 busy
//! with a wait: m-1 completed
//! with a wait: m-2 duplicate
//! ```

use std::time::Duration;

use claimant::engine::{Engine, Message, NoQueue, InvocationTime};
use claimant::memory::MemoryStore;
use claimant::store::Store;
use claimant::{Consumer, Context, HandlerError};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

/// Takes a moment.
async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> {
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(())
}

fn consumer(store: impl Store) -> Consumer<Order> {
    Consumer::new("confirmation", store, confirm).key(|order| &order.order_id)
}

/// One invocation with one message.
async fn invoke(engine: &Engine, id: &str) -> Result<String, claimant::Error> {
    let batch = [Message::new(id, r#"{"order_id": "ord-1"}"#)?];
    let now = engine.now();
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(30)), Duration::from_millis(500));
    let report = engine.process(&batch, time, &NoQueue).await;
    Ok(format!("{id} {}", report.entries()[0].outcome.word()))
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let without = consumer(MemoryStore::new());
    let with = consumer(MemoryStore::new()).wait_while_busy(Duration::from_secs(5));
    for (name, consumer) in [("without a wait", without), ("with a wait", with)] {
        let engine = Engine::with_defaults(consumer)?;
        let second = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            invoke(&engine, "m-2").await
        };
        let (first, second) = tokio::join!(invoke(&engine, "m-1"), second);
        println!("{name}: {}\n{name}: {}", first?, second?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_processes_at_once_need_no_second_delivery() {
        let order = || [TestMessage::json(&serde_json::json!({ "order_id": "ord-1" }))];
        let twice = Scenario::beside_itself();
        let without = TestQueue::new(consumer(MemoryStore::new()));
        assert_eq!(without.play(&twice, &order()).await.outcomes(), ["m-1: busy, completed"]);
        let with = TestQueue::new(consumer(MemoryStore::new()).wait_while_busy(Duration::from_secs(5)));
        assert_eq!(with.play(&twice, &order()).await.outcomes(), ["m-1: completed, duplicate"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_is_confirmed_once() {
        for scenario in Scenario::all() {
            let queue = TestQueue::new(consumer(MemoryStore::new()).wait_while_busy(Duration::from_secs(5)));
            let order = TestMessage::json(&serde_json::json!({ "order_id": "ord-1" }));
            queue.play(&scenario, &[order]).await.assert_done();
        }
    }
}
