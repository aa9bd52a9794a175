//! A process to be killed: delivers one message to a consumer, and prints what became of it.
//!
//! `kill-worker STORE ENDPOINT KEY RECEIVE-COUNT HOURS`: the clock is ahead by that many hours, so that leases of earlier
//! processes are over.

use std::error::Error;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{
    Clock, Consumer, Context, Engine, HandlerError, InvocationTime, Message, NoQueue, SystemClock, Timestamp,
    TransactionGuard,
};
use claimant_dynamodb::{LockTable, Transaction};
use claimant_sql::{
    MySqlStore, MySqlTransaction, MySqlTransactions, PgTransaction, PostgresStore, PostgresTransactions,
};
use claimant_tests::kill::{COUNT_MYSQL, COUNT_POSTGRES, EFFECTS, LOCKS, count_effect};
use serde::Deserialize;

/// How long one delivery may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Connections of a store: one for the claim, and one for what comes after a lost answer.
const CONNECTIONS: u32 = 2;

#[derive(Debug, Deserialize)]
struct Work {
    id: String,
}

struct Ahead(Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(self.0)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, endpoint, key, receive_count, hours] = &arguments[..] else {
        return Err("usage: kill-worker STORE ENDPOINT KEY RECEIVE-COUNT HOURS".into());
    };
    let consumer = match store.split_once('-') {
        Some(("dynamodb", guarantee)) => dynamodb(guarantee, endpoint)?,
        Some(("postgres", guarantee)) => postgres(guarantee, endpoint).await?,
        Some(("mysql", guarantee)) => mysql(guarantee, endpoint).await?,
        _ => return Err(format!("there is no store {store}").into()),
    };
    let ahead = std::sync::Arc::new(Ahead(Duration::from_secs(hours.parse::<u64>()? * 3_600)));
    let engine = Engine::with_defaults(consumer.key(|work| &work.id))?.clock(ahead);
    let message = Message::new(format!("message of {key}"), format!(r#"{{"id":"{key}"}}"#))?
        .with_receive_count(receive_count.parse()?);
    let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(MARGIN_DEFAULT_MS));
    let report = engine.process(&[message], time, &NoQueue).await;
    println!("{}", report.entries()[0].outcome.word());
    Ok(())
}

// "leased" is what the transactions prevent: effect and completion one after the other.

fn dynamodb(guarantee: &str, endpoint: &str) -> Result<Consumer<Work>, Box<dyn Error>> {
    let client = claimant_tests::dynamodb::client(endpoint);
    let table = LockTable::new(client.clone(), LOCKS);
    Ok(match guarantee {
        "transactions" => Consumer::transactional("kill", table.transactions(), count_in),
        "optimistic" => Consumer::transactional("kill", table.optimistic_transactions(), count_in),
        "leased" => Consumer::new("kill", table, move |work: Work, _| {
            let update = client.update_item().table_name(EFFECTS).key("id", AttributeValue::S(work.id));
            let update = update.update_expression("ADD effects :one");
            let update = update.expression_attribute_values(":one", AttributeValue::N("1".into()));
            async move { Ok(update.send().await.map(drop)?) }
        }),
        other => return Err(format!("there is no guarantee {other}").into()),
    })
}

async fn count_in(work: Work, mut tx: TransactionGuard<Transaction>, _: Context) -> Result<(), HandlerError> {
    tx.update(count_effect(&work.id)?);
    Ok(())
}

async fn postgres(guarantee: &str, url: &str) -> Result<Consumer<Work>, Box<dyn Error>> {
    let store = PostgresStore::connect(url, CONNECTIONS).await?;
    let pool = store.pool().clone();
    Ok(match guarantee {
        "transactions" => {
            let store = PostgresTransactions::new(store);
            Consumer::transactional(
                "kill",
                store,
                |work: Work, mut tx: TransactionGuard<PgTransaction>, _| async move {
                    sqlx::query(COUNT_POSTGRES).bind(work.id).execute(&mut *tx).await?;
                    Ok(())
                },
            )
        }
        "leased" => Consumer::new("kill", store, move |work: Work, _| {
            let pool = pool.clone();
            async move { Ok(sqlx::query(COUNT_POSTGRES).bind(work.id).execute(&pool).await.map(drop)?) }
        }),
        other => return Err(format!("there is no guarantee {other}").into()),
    })
}

async fn mysql(guarantee: &str, url: &str) -> Result<Consumer<Work>, Box<dyn Error>> {
    let store = MySqlStore::connect(url, CONNECTIONS).await?;
    let pool = store.pool().clone();
    Ok(match guarantee {
        "transactions" => {
            let store = MySqlTransactions::new(store);
            Consumer::transactional(
                "kill",
                store,
                |work: Work, mut tx: TransactionGuard<MySqlTransaction>, _| async move {
                    sqlx::query(COUNT_MYSQL).bind(work.id).execute(&mut *tx).await?;
                    Ok(())
                },
            )
        }
        "leased" => Consumer::new("kill", store, move |work: Work, _| {
            let pool = pool.clone();
            async move { Ok(sqlx::query(COUNT_MYSQL).bind(work.id).execute(&pool).await.map(drop)?) }
        }),
        other => return Err(format!("there is no guarantee {other}").into()),
    })
}
