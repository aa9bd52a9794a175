//! Bodies that are not JSON: JSON in gzip in Base64, whose copies were packed at different times; and plain text, with its key in an
//! attribute.
//!
//! ```text
//! order ord-1
//! m-1 completed, m-2 duplicate, m-3 rejected
//! page job-7/1: Dear Ada
//! m-4 completed, m-5 duplicate, m-6 rejected
//! ```

use claimant::decode::{Base64, Gzip, Json, Text};
use claimant::engine::{Engine, Message};
use claimant::memory::MemoryStore;
use claimant::{AttributeValue, Consumer, Context, HandlerError};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

async fn confirm(order: Order, _: Context) -> Result<(), HandlerError> {
    println!("order {}", order.order_id);
    Ok(())
}

async fn print(page: String, cx: Context) -> Result<(), HandlerError> {
    println!("page {}: {page}", cx.key());
    Ok(())
}

/// One order, packed at two times.
const PACKED: &str = "H4sIAAAAAAACA6tWyi9KSS2Kz0xRslIAsXUNlWoBY2PoDBUAAAA=";
const PACKED_LATER: &str = "H4sIAADxU2UE/6tWyi9KSS2Kz0xRslIAsXUNlWoBY2PoDBUAAAA=";

fn orders() -> Consumer<Order> {
    let consumer = claimant::decoded_by(Json).consumer("order-confirmation", MemoryStore::new(), confirm);
    consumer.key(|order| &order.order_id).envelope(Base64::standard()).envelope(Gzip::new())
}

fn pages() -> Consumer<String> {
    claimant::decoded_by(Text).consumer("printing", MemoryStore::new(), print).key_of_attribute("page")
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let batch = [("m-1", PACKED), ("m-2", PACKED_LATER), ("m-3", &PACKED[..28])];
    crate::support::deliver(&Engine::with_defaults(orders())?, &batch).await?;

    let page = |id: &str| Message::new(id, "Dear Ada");
    let named = AttributeValue::text("job-7/1");
    let batch = [
        page("m-4")?.with_attribute("page", named.clone()),
        page("m-5")?.with_attribute("page", named),
        page("m-6")?,
    ];
    crate::support::deliver_all(&Engine::with_defaults(pages())?, &batch).await
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_order_that_was_packed_twice_is_one_order() {
        for scenario in Scenario::all() {
            let queue = TestQueue::new(orders());
            queue.play(&scenario, &[TestMessage::text(PACKED), TestMessage::text(PACKED_LATER)]).await.assert_done();
            let attempts = queue.record("ord-1").await.unwrap().attempts;
            assert!(attempts == 1 || scenario.halts(), "{scenario}: {attempts} attempts");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_packed_is_rejected() {
        for scenario in Scenario::all() {
            let order = TestMessage::base64(r#"{"order_id": "ord-1"}"#);
            TestQueue::new(orders()).play(&scenario, &[order]).await.assert_dead_lettered("gzip");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_the_one_of_its_attribute() {
        for scenario in Scenario::all() {
            let page = TestMessage::text("Dear Ada");
            let pages = ["job-7/1", "job-7/2"].map(|name| page.clone().attribute("page", AttributeValue::text(name)));
            TestQueue::new(super::pages()).play(&scenario, &pages).await.assert_done();
            TestQueue::new(super::pages()).play(&Scenario::as_they_come(), &[page]).await.assert_dead_lettered("`page`");
        }
    }
}
