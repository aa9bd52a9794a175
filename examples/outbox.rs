//! An outbox: a handler's transaction writes down what is to be sent, and another program sends it once that is committed.
//!
//! The server is the one that `CLAIMANT_DATABASE_URL` names.
//!
//! ```text
//! m-1 completed, m-2 duplicate
//! m-3 retry
//! sent 1
//! sent 0
//! ```

use std::error::Error;

use claimant::engine::Engine;
use claimant::postgres::{PgTransaction, PostgresStore, PostgresTransactions};
use claimant::producer::{Outgoing, Producer};
use claimant::{Consumer, Context, HandlerError, Key, TransactionGuard};
use claimant_local::sqs::{QueueSettings, Sqs};
use serde_json::json;
use sqlx::PgPool;

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    pieces: i32,
}

async fn pack(order: Order, mut tx: TransactionGuard<PgTransaction>, _: Context) -> Result<(), HandlerError> {
    let insert = sqlx::query("INSERT INTO claimant_example_parcels (order_id, pieces) VALUES ($1, $2)");
    insert.bind(&order.order_id).bind(order.pieces).execute(&mut *tx).await?;
    // Made here: a key that does not fit fails this message, and not the program that sends all.
    let key = Key::new(format!("label/{}", order.order_id))?;
    let label = sqlx::query("INSERT INTO claimant_example_outbox (key, body) VALUES ($1, $2)");
    let body = json!({ "order_id": order.order_id }).to_string();
    label.bind(key.as_str()).bind(body).execute(&mut *tx).await?;
    if order.pieces > 100 {
        // Neither a parcel nor a label: both rows are rolled back.
        return Err(HandlerError::retry("not enough in stock"));
    }
    Ok(())
}

/// Sends what is in the outbox, oldest first, a hundred messages at most, and returns how many it sent.
async fn send_outbox(pool: &PgPool, producer: &Producer) -> Result<usize, Box<dyn Error>> {
    let rows = sqlx::query_as("SELECT id, key, body FROM claimant_example_outbox ORDER BY id LIMIT 100");
    let rows: Vec<(i64, String, String)> = rows.fetch_all(pool).await?;
    let mut messages = Vec::new();
    for (_, key, body) in &rows {
        messages.push(Outgoing::new(Key::new(key)?, body));
    }
    let results = producer.send_all(messages).await;
    // What was not sent stays for the next run. After a crash before this, so does what was: its key is the same then.
    let sent = rows.iter().zip(&results).filter(|(_, result)| result.is_ok());
    let sent: Vec<i64> = sent.map(|((id, ..), _)| *id).collect();
    sqlx::query("DELETE FROM claimant_example_outbox WHERE id = ANY($1)").bind(&sent).execute(pool).await?;
    for result in results {
        result?;
    }
    Ok(sent.len())
}

const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS claimant_example_parcels (order_id text NOT NULL, pieces int NOT NULL)",
    "CREATE TABLE IF NOT EXISTS claimant_example_outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
     key text NOT NULL, body text NOT NULL)",
];

async fn make_tables(store: &PostgresStore) -> crate::Result {
    store.migrate().await?;
    for table in TABLES {
        sqlx::query(table).execute(store.pool()).await?;
    }
    Ok(())
}

fn consumer(store: PostgresStore) -> Consumer<Order> {
    Consumer::transactional("packing", PostgresTransactions::new(store), pack).key(|order| &order.order_id)
}

/// Makes a queue, and returns a producer for it.
async fn labels() -> Result<(Sqs, Producer), Box<dyn Error>> {
    let (sqs, client) = crate::support::sqs().await?;
    sqs.create_queue("labels.fifo", QueueSettings { fifo: true, ..QueueSettings::default() })?;
    let producer = Producer::new(client, sqs.queue_url("labels.fifo"));
    Ok((sqs, producer))
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let store = PostgresStore::from_env().await?;
    make_tables(&store).await?;
    let pool = store.pool().clone();

    let engine = Engine::with_defaults(consumer(store))?;
    let [first, second] = [crate::support::new_order_id(), crate::support::new_order_id()];
    let order = |id: &str, pieces: u32| json!({ "order_id": id, "pieces": pieces }).to_string();
    crate::support::deliver(&engine, &[("m-1", &order(&first, 2)), ("m-2", &order(&first, 2))]).await?;
    crate::support::deliver(&engine, &[("m-3", &order(&second, 500))]).await?;

    // Another program, on a schedule or in a loop.
    let (_sqs, producer) = labels().await?;
    for _ in 0..2 {
        println!("sent {}", send_outbox(&pool, &producer).await?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use claimant_tests::services::Postgres;

    use super::*;

    /// The database is real, and so is its time: these are the scenarios that wait for nothing.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs PostgreSQL"]
    async fn each_order_that_is_packed_has_one_label() {
        let server = Postgres::start();
        let store = PostgresStore::connect(&server.url(), 10).await.unwrap();
        make_tables(&store).await.unwrap();
        let ((sqs, producer), pool) = (labels().await.unwrap(), store.pool());
        let (mut labels, mut last) = (0, String::new());
        for scenario in [Scenario::delivered_twice(), Scenario::sent_twice(), Scenario::reordered()] {
            last = crate::support::new_order_id();
            let order = TestMessage::json(&json!({ "order_id": last, "pieces": 2 }));
            TestQueue::new(consumer(store.clone())).play(&scenario, &[order]).await.assert_done();
            assert_eq!(send_outbox(pool, &producer).await.unwrap(), 1, "{scenario}");
            labels += 1;
            assert_eq!(sqs.depth("labels.fifo").unwrap().visible, labels, "{scenario}");
        }
        // The sender crashed before it deleted the row, and finds it again.
        let again = sqlx::query("INSERT INTO claimant_example_outbox (key, body) VALUES ($1, $2)");
        let body = json!({ "order_id": last }).to_string();
        again.bind(format!("label/{last}")).bind(body).execute(pool).await.unwrap();
        assert_eq!(send_outbox(pool, &producer).await.unwrap(), 1);
        assert_eq!(sqs.depth("labels.fifo").unwrap().visible, labels);
        assert_eq!(send_outbox(pool, &producer).await.unwrap(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs PostgreSQL"]
    async fn a_key_that_does_not_fit_fails_its_message_and_not_the_outbox() {
        let server = Postgres::start();
        let store = PostgresStore::connect(&server.url(), 10).await.unwrap();
        make_tables(&store).await.unwrap();
        let ((_sqs, producer), pool) = (labels().await.unwrap(), store.pool());
        let engine = Engine::with_defaults(consumer(store.clone())).unwrap();
        // As a key of its own it fits; after `label/` it does not.
        let long = "7".repeat(claimant::limits::KEY_MAX_BYTES - 1);
        let order = |id: &str| json!({ "order_id": id, "pieces": 2 }).to_string();
        let fits = crate::support::new_order_id();
        crate::support::deliver(&engine, &[("m-1", &order(&long)), ("m-2", &order(&fits))]).await.unwrap();
        let parcels: i64 =
            sqlx::query_scalar("SELECT count(*) FROM claimant_example_parcels").fetch_one(pool).await.unwrap();
        assert_eq!(parcels, 1);
        assert_eq!(send_outbox(pool, &producer).await.unwrap(), 1);
    }
}
