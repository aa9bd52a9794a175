//! One transaction in PostgreSQL for many messages: one statement writes all of them, and one completes all keys.
//!
//! The server is the one that `CLAIMANT_DATABASE_URL` names. The second order asks for too much: the statement for all fails,
//! everything is rolled back, and each order is tried by itself.
//!
//! ```text
//! a call with 3 orders
//! a call with 1 orders
//! a call with 1 orders
//! a call with 1 orders
//! m-1 completed, m-2 retry, m-3 completed
//! 2 bookings
//! ```

use claimant::batch::Items;
use claimant::engine::Engine;
use claimant::postgres::{PgTransaction, PostgresStore};
use claimant::{Consumer, HandlerError, TransactionGuard};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    cups: i32,
}

async fn book(orders: Items<Order>, mut tx: TransactionGuard<PgTransaction>) -> Result<(), HandlerError> {
    println!("a call with {} orders", orders.len());
    let (ids, cups): (Vec<_>, Vec<_>) = orders.payloads().map(|order| (order.order_id.clone(), order.cups)).unzip();
    let insert = sqlx::query("INSERT INTO claimant_example_cups SELECT * FROM unnest($1::text[], $2::int[])");
    insert.bind(ids).bind(cups).execute(&mut *tx).await?;
    Ok(())
}

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS claimant_example_cups (order_id text NOT NULL, cups int CHECK (cups < 100))";

fn consumer(store: PostgresStore) -> Consumer<Order> {
    Consumer::batch_transactional("cups", store, book).key(|order| &order.order_id).items_max(100)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let store = PostgresStore::from_env().await?;
    store.migrate().await?;
    let pool = store.pool().clone();
    sqlx::query(TABLE).execute(&pool).await?;

    let engine = Engine::with_defaults(consumer(store))?;
    let ids = [(); 3].map(|()| crate::support::new_order_id());
    let order = |number: usize, cups| format!(r#"{{"order_id": "{}", "cups": {cups}}}"#, ids[number]);
    let orders = [order(0, 12), order(1, 120), order(2, 6)];
    crate::support::deliver(&engine, &[("m-1", &orders[0]), ("m-2", &orders[1]), ("m-3", &orders[2])]).await?;

    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM claimant_example_cups WHERE order_id = ANY($1)");
    println!("{} bookings", count.bind(ids.to_vec()).fetch_one(&pool).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use claimant_tests::services::Postgres;

    use super::*;

    /// A transaction of a real server cannot be made in memory, and its time is real: so these are the scenarios that wait for nothing.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs PostgreSQL"]
    async fn each_order_of_a_call_is_booked_once() {
        let server = Postgres::start();
        let store = PostgresStore::connect(&server.url(), 10).await.unwrap();
        store.migrate().await.unwrap();
        let pool = store.pool().clone();
        sqlx::query(TABLE).execute(&pool).await.unwrap();
        for scenario in [Scenario::delivered_twice(), Scenario::sent_twice(), Scenario::reordered()] {
            let ids = [(); 3].map(|()| crate::support::new_order_id());
            let orders = ids.clone().map(|id| TestMessage::json(&serde_json::json!({ "order_id": id, "cups": 12 })));
            TestQueue::new(consumer(store.clone())).play(&scenario, &orders).await.assert_done();
            let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM claimant_example_cups WHERE order_id = ANY($1)");
            assert_eq!(count.bind(ids.to_vec()).fetch_one(&pool).await.unwrap(), 3, "{scenario}");
        }
    }
}
