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

fn consumer() -> Consumer<Charge> {
    Consumer::new("payment", MemoryStore::new(), charge).key(|charge| &charge.order_id).at_most_once()
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let engine = Engine::with_defaults(consumer().concurrency(1))?;

    let batch = [
        ("m-1", r#"{"order_id": "ord-1", "cents": 2500}"#),
        ("m-2", r#"{"order_id": "ord-2", "cents": 99000}"#),
    ];
    crate::support::deliver(&engine, &batch).await?;
    crate::support::deliver(&engine, &batch).await
}

#[cfg(test)]
mod tests {
    use claimant::store::Status;
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_charge_is_made_once_or_parked() {
        for scenario in Scenario::all() {
            let charge = |id, cents| TestMessage::json(&json!({ "order_id": id, "cents": cents }));
            let queue = TestQueue::new(consumer());
            let played = queue.play(&scenario, &[charge("ord-1", 2_500), charge("ord-2", 99_000)]).await;
            let record = async |key| queue.record(key).await.unwrap_or_else(|| panic!("{scenario}: {key}: {:?}", played.outcomes()));
            let [sure, doubtful] = [record("ord-1").await, record("ord-2").await];
            assert_eq!(doubtful.status, Status::Parked, "{scenario}: {:?}", played.outcomes());
            // Where its process ends in the middle, a sure one is in doubt, too.
            assert!(sure.status == Status::Completed || scenario.halts() && sure.status == Status::Parked, "{scenario}");
            assert!([sure, doubtful].iter().all(|record| record.attempts <= 1), "{scenario}");
        }
    }
}
