//! What came with a message: its attributes are part of the key, and the handler sees its group and its receives.
//!
//! ```text
//! globex/7: receive 4, priority none, tenant group none
//! acme/7: receive 1, priority 3, tenant group acme
//! m-1 completed, m-2 duplicate, m-3 completed, m-4 rejected
//! ```

use claimant::engine::{Engine, Message};
use claimant::memory::MemoryStore;
use claimant::{AttributeValue, Consumer, Context, HandlerError, Terminal};

async fn pack(_order: u64, cx: Context) -> Result<(), HandlerError> {
    let message = cx.message();
    // Without a tenant, no receive makes it right.
    message.attributes().text("tenant").ok_or("there is no tenant").terminal()?;
    let priority = message.attributes().number::<u8>("priority").map_or("none".to_owned(), |number| number.to_string());
    let group = message.group().unwrap_or("none");
    println!("{}: receive {}, priority {priority}, tenant group {group}", cx.key(), message.receive_count());
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    // Order 7 of one tenant is not order 7 of another.
    let consumer = Consumer::new("packing", MemoryStore::new(), pack)
        .key_of_message(|order, message| format!("{}/{order}", message.attributes().text("tenant").unwrap_or("none")))
        .concurrency(1);
    let engine = Engine::with_defaults(consumer)?;
    let acme = |id: &str| Ok::<_, claimant::Error>(Message::new(id, "7")?.with_attribute("tenant", AttributeValue::text("acme")));
    let globex = Message::new("m-3", "7")?.with_attribute("tenant", AttributeValue::text("globex"));
    let batch = [
        acme("m-1")?.with_attribute("priority", AttributeValue::number(3)).with_fair_group("acme"),
        acme("m-2")?,
        globex.with_receive_count(4),
        Message::new("m-4", "7")?,
    ];
    crate::support::deliver_all(&engine, &batch).await
}
