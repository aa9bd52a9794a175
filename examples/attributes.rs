//! What came with a message: its attributes are part of the key, and the handler sees its group and its receives.
//!
//! ```text
//! globex/7: receive 4, priority none, tenant group none
//! acme/7: receive 1, priority 3, tenant group acme
//! m-1 completed, m-2 duplicate, m-3 completed, m-4 rejected
//! ```

use claimant::engine::{Engine, Message};
use claimant::memory::MemoryStore;
use claimant::{AttributeValue, Consumer, Context, HandlerError};

async fn pack(_order: u64, cx: Context) -> Result<(), HandlerError> {
    let message = cx.message();
    let priority = message.attributes().number::<u8>("priority").map_or("none".to_owned(), |number| number.to_string());
    let group = message.group().unwrap_or("none");
    println!("{}: receive {}, priority {priority}, tenant group {group}", cx.key(), message.receive_count());
    Ok(())
}

/// Order 7 of one tenant is not order 7 of another. Without a tenant, a message is rejected: a word in its place would be one tenant for all
/// such messages, and the second of them a duplicate.
fn consumer() -> Consumer<u64> {
    Consumer::new("packing", MemoryStore::new(), pack)
        .key_of_message(|order, message| Ok(format!("{}/{order}", message.attributes().require_text("tenant")?)))
        .concurrency(1)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let engine = Engine::with_defaults(consumer())?;
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

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};

    use super::*;

    fn order_of(tenant: &str) -> TestMessage {
        TestMessage::text("7").attribute("tenant", AttributeValue::text(tenant))
    }

    #[tokio::test(start_paused = true)]
    async fn each_tenant_has_an_order_7() {
        for scenario in Scenario::all() {
            let queue = TestQueue::new(consumer());
            let played = queue.play(&scenario, &[order_of("acme"), order_of("globex")]).await;
            played.assert_done();
            assert!(queue.record("acme/7").await.is_some() && queue.record("globex/7").await.is_some(), "{scenario}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_tenant_nothing_is_packed() {
        for scenario in Scenario::all() {
            let played = TestQueue::new(consumer()).play(&scenario, &[TestMessage::text("7")]).await;
            played.assert_dead_lettered("the attribute `tenant` is missing");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_no_tenant_is_of_no_tenant() {
        let queue = TestQueue::new(consumer());
        queue.send(&[TestMessage::text("7"), TestMessage::text("7"), order_of("none")]);
        let played = queue.drain().await;
        let outcomes = played.outcomes();
        assert_eq!(outcomes, ["m-1: rejected", "m-2: rejected", "m-3: completed"]);
        assert!(played.dead_letters().iter().all(|letter| letter.contains("the attribute `tenant` is missing")));
    }
}
