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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let store = PostgresStore::from_env().await?;
    store.migrate().await?;
    let pool = store.pool().clone();
    sqlx::query("CREATE TABLE IF NOT EXISTS claimant_example_bookings (order_id text NOT NULL)").execute(&pool).await?;

    let consumer = Consumer::transactional("booking", PostgresTransactions::new(store), book);
    let engine = Engine::with_defaults(consumer.key(|order| &order.order_id))?;
    let order_id = crate::support::new_order_id();
    let order = format!(r#"{{"order_id": "{order_id}"}}"#);
    crate::support::deliver(&engine, &[("m-1", &order), ("m-2", &order)]).await?;
    crate::support::deliver(&engine, &[("m-3", &order)]).await?;

    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM claimant_example_bookings WHERE order_id = $1");
    println!("{} booking", count.bind(order_id).fetch_one(&pool).await?);
    Ok(())
}
