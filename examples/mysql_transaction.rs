//! A transaction in MySQL or MariaDB: the handler's statements and the completion of the key commit together, exactly once.
//!
//! The server is the one that `CLAIMANT_DATABASE_URL` names. Only statements about rows are let through: in MySQL, most others
//! would commit. So tables are made outside.
//!
//! ```text
//! m-1 completed, m-2 duplicate
//! m-3 retry
//! m-4 duplicate
//! 1 booking
//! ```

use claimant::engine::Engine;
use claimant::mysql::{MySqlStore, MySqlTransaction, MySqlTransactions};
use claimant::{Consumer, Context, HandlerError, TransactionGuard};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    pieces: i32,
}

async fn book(order: Order, mut tx: TransactionGuard<MySqlTransaction>, _: Context) -> Result<(), HandlerError> {
    let insert = sqlx::query("INSERT INTO claimant_example_bookings (order_id, pieces) VALUES (?, ?)");
    insert.bind(order.order_id).bind(order.pieces).execute(&mut *tx).await?;
    if order.pieces > 100 {
        // What was inserted is rolled back with the claim.
        return Err(HandlerError::retry("not enough in stock"));
    }
    Ok(())
}

/// Its primary key is not the order's id, so that a second booking would be seen.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS claimant_example_bookings (id bigint AUTO_INCREMENT PRIMARY KEY, \
    order_id varchar(64) NOT NULL, pieces int NOT NULL) ENGINE = InnoDB";

fn consumer(store: MySqlStore) -> Consumer<Order> {
    Consumer::transactional("booking", MySqlTransactions::new(store), book).key(|order| &order.order_id)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let store = MySqlStore::from_env().await?;
    store.migrate().await?;
    let pool = store.pool().clone();
    sqlx::query(TABLE).execute(&pool).await?;

    let engine = Engine::with_defaults(consumer(store))?;
    let [first, second] = [crate::support::new_order_id(), crate::support::new_order_id()];
    let order = |id: &str, pieces: u32| format!(r#"{{"order_id": "{id}", "pieces": {pieces}}}"#);
    crate::support::deliver(&engine, &[("m-1", &order(&first, 2)), ("m-2", &order(&first, 2))]).await?;
    crate::support::deliver(&engine, &[("m-3", &order(&second, 500))]).await?;
    crate::support::deliver(&engine, &[("m-4", &order(&first, 2))]).await?;

    let count = "SELECT count(*) FROM claimant_example_bookings WHERE order_id IN (?, ?)";
    let count = sqlx::query_scalar::<_, i64>(count).bind(first).bind(second).fetch_one(&pool).await?;
    println!("{count} booking");
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use claimant_tests::services::MariaDb;

    use super::*;

    /// A transaction of a real server cannot be made in memory, and its time is real: so these are the scenarios that wait for nothing.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs MariaDB"]
    async fn an_order_is_booked_once() {
        let server = MariaDb::start();
        let store = MySqlStore::connect(&server.url(), 10).await.unwrap();
        store.migrate().await.unwrap();
        let pool = store.pool().clone();
        sqlx::query(TABLE).execute(&pool).await.unwrap();
        for scenario in [Scenario::delivered_twice(), Scenario::sent_twice(), Scenario::reordered()] {
            let id = crate::support::new_order_id();
            let order = TestMessage::json(&serde_json::json!({ "order_id": id, "pieces": 2 }));
            TestQueue::new(consumer(store.clone())).play(&scenario, &[order]).await.assert_done();
            let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM claimant_example_bookings WHERE order_id = ?");
            assert_eq!(count.bind(id).fetch_one(&pool).await.unwrap(), 1, "{scenario}");
        }
    }
}
