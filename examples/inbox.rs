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

use claimant::inbox::{Inbox, InboxContext, Limits, Transaction};
use claimant::engine::Engine;
use claimant::{HandlerError, TransactionGuard};

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
    insert.bind(order.order_id).execute(&mut **tx).await?;
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let inbox = Inbox::from_env().await?;
    inbox.migrate().await?;
    let table = "CREATE TABLE IF NOT EXISTS claimant_example_orders (order_id text NOT NULL)";
    sqlx::query(table).execute(inbox.pool()).await?;

    // One function takes messages in: `claimant::lambda::run(intake)`.
    let intake = inbox.intake("example-orders", |event: &Event| &event.kind).key(|event| &event.id);
    let order_id = crate::support::new_order_id();
    let event = format!(r#"{{"id": "{order_id}", "type": "order.placed", "order_id": "{order_id}"}}"#);
    crate::support::deliver(&Engine::with_defaults(intake)?, &[("m-1", &event), ("m-2", &event)]).await?;

    // Another one, or a process that runs for ever, handles them.
    let worker = inbox.worker("example-orders").on("order.placed", placed).timeout(Duration::from_secs(5));
    let summary = worker.run_once(Limits::within(Duration::from_secs(30))).await?;
    println!("{} done", summary.done);
    Ok(())
}
