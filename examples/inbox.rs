//! The inbox: a function stores messages in PostgreSQL and acknowledges them; a worker handles them later, each in one
//! transaction with its end.
//!
//! The server is the one that `CLAIMANT_DATABASE_URL` names.
//!
//! ```text
//! m-1 completed, m-2 duplicate
//! placing an order
//! 1 done
//! ```

use std::time::Duration;

use claimant::inbox::{Inbox, InboxContext, Limits, Transaction, Worker};
use claimant::engine::Engine;
use claimant::{Consumer, HandlerError, TransactionGuard};

#[derive(serde::Deserialize)]
struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(serde::Deserialize)]
struct Placed {
    order_id: String,
}

async fn placed(order: Placed, mut tx: TransactionGuard<Transaction>, _: InboxContext) -> Result<(), HandlerError> {
    println!("placing an order");
    let insert = sqlx::query("INSERT INTO claimant_example_orders (order_id) VALUES ($1)");
    insert.bind(order.order_id).execute(&mut *tx).await?;
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS claimant_example_orders (order_id text NOT NULL)";

fn intake(inbox: &Inbox) -> Consumer<Event> {
    inbox.intake("example-orders", |event: &Event| &event.kind).key(|event| &event.id)
}

fn worker(inbox: &Inbox) -> Worker {
    inbox.worker("example-orders").on("order.placed", placed).timeout(Duration::from_secs(5))
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    // `claimant::lambda::run` does this by itself; a worker's program has to.
    claimant::lambda::init_logs();
    let inbox = Inbox::from_env().await?;
    inbox.migrate().await?;
    sqlx::query(TABLE).execute(inbox.pool()).await?;

    // One function takes messages in: `claimant::lambda::run(intake(&inbox))`.
    let intake = intake(&inbox);
    let order_id = crate::support::new_order_id();
    let event = format!(r#"{{"id": "{order_id}", "type": "order.placed", "order_id": "{order_id}"}}"#);
    crate::support::deliver(&Engine::with_defaults(intake)?, &[("m-1", &event), ("m-2", &event)]).await?;

    // Another one, or a process that runs for ever, handles them.
    let summary = worker(&inbox).run_once(Limits::within(Duration::from_secs(30))).await?;
    println!("{} done", summary.done);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use claimant_test::{Scenario, TestMessage, TestQueue};
    use claimant_tests::services::Postgres;
    use serde_json::json;

    use super::*;

    /// The database is real, and so is its time: these are the scenarios that wait for nothing.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs PostgreSQL"]
    async fn an_order_is_placed_once() {
        let server = Postgres::start();
        let inbox = Inbox::connect(&server.url(), 10).await.unwrap();
        inbox.migrate().await.unwrap();
        sqlx::query(TABLE).execute(inbox.pool()).await.unwrap();
        for scenario in [Scenario::delivered_twice(), Scenario::sent_twice(), Scenario::reordered()] {
            let id = crate::support::new_order_id();
            let event = json!({ "id": id, "type": "order.placed", "order_id": id });
            let queue = TestQueue::new(intake(&inbox));
            queue.play(&scenario, &[TestMessage::json(&event)]).await.assert_done();
            // Messages are due from when they were stored, by the clock of the queue.
            let worker = worker(&inbox).clock(Arc::new(queue.clock().clone()));
            let summary = worker.run_once(Limits::within(Duration::from_secs(30))).await.unwrap();
            assert_eq!(summary.done, 1, "{scenario}");
            let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM claimant_example_orders WHERE order_id = $1");
            assert_eq!(count.bind(id).fetch_one(inbox.pool()).await.unwrap(), 1, "{scenario}");
        }
    }
}
