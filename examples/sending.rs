//! A handler that sends: by a `Producer`, and in its tests by what stands for the queue.
//!
//! ```text
//! m-1 completed
//! m-2 duplicate
//! sent: {"order_id": "ord-1"}
//! ```

use claimant::engine::Engine;
use claimant::memory::MemoryStore;
use claimant::producer::{Outgoing, Producer};
use claimant::store::Store;
use claimant::{Consumer, Context, Handler, HandlerError, Key};
use claimant_local::sqs::QueueSettings;

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

/// What the handler needs of a `Producer`.
trait Labels: Send + Sync + 'static {
    fn print(&self, label: Outgoing) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

impl Labels for Producer {
    async fn print(&self, label: Outgoing) -> Result<(), HandlerError> {
        self.send(label).await?;
        Ok(())
    }
}

struct Shipping<L> {
    labels: L,
}

impl<L: Labels> Handler<Order> for Shipping<L> {
    type Output = ();

    async fn handle(&self, order: Order, cx: Context) -> Result<(), HandlerError> {
        let key = Key::new(format!("label/{}", order.order_id))?;
        let label = Outgoing::new(key, format!(r#"{{"order_id": "{}"}}"#, order.order_id));
        self.labels.print(label.continuing(&cx)).await
    }
}

fn consumer(store: impl Store, labels: impl Labels) -> Consumer<Order> {
    Consumer::new("shipping", store, Shipping { labels }).key(|order: &Order| &order.order_id)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (sqs, client) = crate::support::sqs().await?;
    sqs.create_queue("labels.fifo", QueueSettings { fifo: true, ..QueueSettings::default() })?;
    let producer = Producer::new(client, sqs.queue_url("labels.fifo"));
    let engine = Engine::with_defaults(consumer(MemoryStore::new(), producer))?;
    for id in ["m-1", "m-2"] {
        crate::support::deliver(&engine, &[(id, r#"{"order_id": "ord-1"}"#)]).await?;
    }
    sqs.messages("labels.fifo")?.iter().for_each(|sent| println!("sent: {}", sent.body));
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant_test::{Effects, Scenario, TestMessage, TestQueue};
    use serde_json::json;

    use super::*;

    /// What is sent twice has one id, by which a FIFO queue drops the second, and of which the consumer's key is made.
    impl Labels for Effects {
        async fn print(&self, label: Outgoing) -> Result<(), HandlerError> {
            self.request(label.deduplication_id(), label.body()).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_order_has_one_label_whatever_happens() {
        for scenario in Scenario::all() {
            let labels = Effects::new();
            let queue = TestQueue::new(consumer(MemoryStore::new(), labels.clone()));
            let order = |id| TestMessage::json(&json!({ "order_id": id }));
            queue.play(&scenario, &[order("ord-1"), order("ord-2")]).await.assert_done();
            let wanted = [r#"label/ord-1: {"order_id": "ord-1"}"#, r#"label/ord-2: {"order_id": "ord-2"}"#];
            assert_eq!(labels.once(), wanted, "{scenario}");
        }
    }
}
