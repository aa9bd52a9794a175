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
use claimant::{AttributeValue, Context, HandlerError};

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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let consumer = claimant::decoded_by(Json)
        .consumer("order-confirmation", MemoryStore::new(), confirm)
        .key(|order| &order.order_id)
        .envelope(Base64::standard())
        .envelope(Gzip::new());
    let batch = [
        ("m-1", "H4sIAAAAAAACA6tWyi9KSS2Kz0xRslIAsXUNlWoBY2PoDBUAAAA="),
        ("m-2", "H4sIAADxU2UE/6tWyi9KSS2Kz0xRslIAsXUNlWoBY2PoDBUAAAA="),
        ("m-3", "H4sIAAAAAAACA6tWyi9KSS2Kz0xR"),
    ];
    crate::support::deliver(&Engine::with_defaults(consumer)?, &batch).await?;

    let consumer = claimant::decoded_by(Text).consumer("printing", MemoryStore::new(), print);
    let page = |id: &str| Message::new(id, "Dear Ada");
    let named = AttributeValue::text("job-7/1");
    let batch = [
        page("m-4")?.with_attribute("page", named.clone()),
        page("m-5")?.with_attribute("page", named),
        page("m-6")?,
    ];
    crate::support::deliver_all(&Engine::with_defaults(consumer.key_of_attribute("page"))?, &batch).await
}
