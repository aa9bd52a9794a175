//! At most once: work that may be done is parked for a person, not run again.
//!
//! For effects at a system that does not recognise a repeat, where a repeat is worse than a person's look.
//!
//! ```text
//! charging ord-1
//! charging ord-2
//! m-1 completed, m-2 parked
//! m-1 duplicate, m-2 parked
//! ```

use claimant::engine::Engine;
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, HandlerError};

#[derive(serde::Deserialize)]
struct Charge {
    order_id: String,
    cents: u32,
}

async fn charge(charge: Charge, cx: Context) -> Result<(), HandlerError> {
    println!("charging {}", cx.key());
    // Once the request may have arrived, whatever goes wrong is uncertain.
    post(charge.cents).map_err(HandlerError::uncertain)
}

/// Stands for a payment gateway, which does not answer large charges.
fn post(cents: u32) -> Result<(), &'static str> {
    if cents < 10_000 { Ok(()) } else { Err("the gateway did not answer") }
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let consumer = Consumer::new("payment", MemoryStore::new(), charge)
        .key(|charge| &charge.order_id)
        .at_most_once()
        .concurrency(1);
    let engine = Engine::with_defaults(consumer)?;

    let batch = [
        ("m-1", r#"{"order_id": "ord-1", "cents": 2500}"#),
        ("m-2", r#"{"order_id": "ord-2", "cents": 99000}"#),
    ];
    crate::support::deliver(&engine, &batch).await?;
    crate::support::deliver(&engine, &batch).await
}
