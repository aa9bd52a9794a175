//! A transaction in PostgreSQL: the handler's statements and the completion of the key commit together, exactly once.
//!
//! The server is the one that `CLAIMANT_DATABASE_URL` names. `mysql_transaction` does the same in MySQL and MariaDB.
//!
//! ```text
//! m-1 completed, m-2 duplicate
//! m-3 duplicate
//! 1 booking
//! ```

use claimant::engine::Engine;
use claimant::postgres::{PgTransaction, PostgresStore, PostgresTransactions};
use claimant::{Consumer, Context, HandlerError, TransactionGuard};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

async fn book(order: Order, mut tx: TransactionGuard<PgTransaction>, _: Context) -> Result<(), HandlerError> {
    let insert = sqlx::query("INSERT INTO claimant_example_bookings (order_id) VALUES ($1)");
    insert.bind(order.order_id).execute(&mut *tx).await?;
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS claimant_example_bookings (order_id text NOT NULL)";

fn consumer(store: PostgresStore) -> Consumer<Order> {
    Consumer::transactional("booking", PostgresTransactions::new(store), book).key(|order| &order.order_id)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let store = PostgresStore::from_env().await?;
    store.migrate().await?;
    let pool = store.pool().clone();
    sqlx::query(TABLE).execute(&pool).await?;

    let engine = Engine::with_defaults(consumer(store))?;
    let order_id = crate::support::new_order_id();
    let order = format!(r#"{{"order_id": "{order_id}"}}"#);
    crate::support::deliver(&engine, &[("m-1", &order), ("m-2", &order)]).await?;
    crate::support::deliver(&engine, &[("m-3", &order)]).await?;

    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM claimant_example_bookings WHERE order_id = $1");
    println!("{} booking", count.bind(order_id).fetch_one(&pool).await?);
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
    async fn an_order_is_booked_once() {
        let server = Postgres::start();
        let store = PostgresStore::connect(&server.url(), 10).await.unwrap();
        store.migrate().await.unwrap();
        let pool = store.pool().clone();
        sqlx::query(TABLE).execute(&pool).await.unwrap();
        for scenario in [Scenario::delivered_twice(), Scenario::sent_twice(), Scenario::reordered()] {
            let id = crate::support::new_order_id();
            let order = TestMessage::json(&serde_json::json!({ "order_id": id }));
            TestQueue::new(consumer(store.clone())).play(&scenario, &[order]).await.assert_done();
            let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM claimant_example_bookings WHERE order_id = $1");
            assert_eq!(count.bind(id).fetch_one(&pool).await.unwrap(), 1, "{scenario}");
        }
    }
}
