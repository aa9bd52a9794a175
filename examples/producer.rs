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
use claimant_local::sqs::QueueSettings;

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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (sqs, client) = crate::support::sqs().await?;
    sqs.create_queue("orders.fifo", QueueSettings { fifo: true, ..QueueSettings::default() })?;
    let producer = Producer::new(client, sqs.queue_url("orders.fifo"));

    send_orders(&producer).await?;
    // It crashed before it could note that they are sent, and starts over.
    send_orders(&producer).await?;

    println!("{} messages in the queue", sqs.depth("orders.fifo")?.visible);
    Ok(())
}
