//! The producer: sending again makes no second piece of work.
//!
//! The deduplication id and the message group come from the business key, so a process that starts over sends the same ids.
//!
//! ```text
//! sent 3 of 3
//! sent 3 of 3
//! 3 messages in the queue
//! ```

use claimant::Key;
use claimant::producer::{Outgoing, Producer};
use claimant_local::sqs::{QueueSettings, Sqs};

/// The orders of a file, say.
const ORDERS: [(&str, &str); 3] = [("ord-1", "ada"), ("ord-2", "ada"), ("ord-3", "grace")];

async fn send_orders(producer: &Producer) -> crate::Result {
    let mut orders = Vec::new();
    for (order_id, customer) in ORDERS {
        let body = format!(r#"{{"order_id": "{order_id}"}}"#);
        // One customer's orders stay in their order.
        orders.push(Outgoing::new(Key::new(order_id)?, body).group(customer));
    }
    let results = producer.send_all(orders).await;
    println!("sent {} of {}", results.iter().filter(|result| result.is_ok()).count(), ORDERS.len());
    Ok(())
}

async fn send_twice(sqs: &Sqs, client: aws_sdk_sqs::Client) -> crate::Result {
    sqs.create_queue("orders.fifo", QueueSettings { fifo: true, ..QueueSettings::default() })?;
    let producer = Producer::new(client, sqs.queue_url("orders.fifo"));
    send_orders(&producer).await?;
    // It crashed before it could note that they are sent, and starts over.
    send_orders(&producer).await
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (sqs, client) = crate::support::sqs().await?;
    send_twice(&sqs, client).await?;
    println!("{} messages in the queue", sqs.depth("orders.fifo")?.visible);
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant::memory::MemoryStore;
    use claimant::{Consumer, Context, HandlerError};
    use claimant_test::{TestMessage, TestQueue};
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Order {
        order_id: String,
    }

    /// What the queue has is three orders, for a consumer that keys by the same field.
    #[tokio::test]
    async fn what_is_sent_twice_is_three_pieces_of_work() {
        let (sqs, client) = crate::support::sqs().await.unwrap();
        send_twice(&sqs, client).await.unwrap();
        let sent: Vec<_> = sqs.messages("orders.fifo").unwrap().iter().map(|sent| TestMessage::text(&sent.body)).collect();
        let pack = |_: Order, _: Context| async { Ok::<_, HandlerError>(()) };
        let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order: &Order| &order.order_id);
        let queue = TestQueue::new(consumer);
        queue.send(&sent);
        assert_eq!(queue.drain().await.outcomes(), ["m-1: completed", "m-2: completed", "m-3: completed"]);
    }
}
