//! A process to be killed: delivers one message to a consumer, and prints what became of it.
//!
//! `kill-worker STORE ENDPOINT KEY RECEIVE-COUNT HOURS`: the clock is ahead by that many hours, so that leases of earlier
//! processes are over.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{Clock, Consumer, Engine, Message, MessageId, NoQueue, Schedule, SystemClock, Timestamp};
use claimant_dynamodb::LockTable;
use claimant_tests::kill::{EFFECTS, LOCKS, count_effect};
use serde::Deserialize;

/// How long one delivery may take.
const TIMEOUT: Duration = Duration::from_secs(20);

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
    let consumer = consumer(store, endpoint)?.key(|work: &Work| &work.id);
    let ahead = Ahead(Duration::from_secs(hours.parse::<u64>()? * 3_600));
    let engine = Engine::with_defaults(consumer)?.clock(Arc::new(ahead));
    let message = Message {
        id: MessageId::new(format!("message of {key}"))?,
        body: format!(r#"{{"id":"{key}"}}"#),
        receive_count: receive_count.parse()?,
        ordered_group: None,
        trace: None,
    };
    let schedule = Schedule::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(MARGIN_DEFAULT_MS));
    let report = engine.process(&[message], schedule, &NoQueue).await;
    println!("{}", report.entries()[0].outcome.word());
    Ok(())
}

fn consumer(store: &str, endpoint: &str) -> Result<Consumer<Work>, Box<dyn Error>> {
    let client = claimant_tests::dynamodb::client(endpoint);
    let table = LockTable::new(client.clone(), LOCKS);
    Ok(match store {
        "dynamodb-transactions" => {
            Consumer::transactional("kill", table.transactions(), |work: Work, mut tx, _| async move {
                tx.update(count_effect(&work.id)?);
                Ok(())
            })
        }
        "dynamodb-optimistic" => {
            Consumer::transactional("kill", table.optimistic_transactions(), |work: Work, mut tx, _| async move {
                tx.update(count_effect(&work.id)?);
                Ok(())
            })
        }
        // What the transaction prevents: effect and completion one after the other.
        "dynamodb-leased" => Consumer::new("kill", table, move |work: Work, _| {
            let update = client.update_item().table_name(EFFECTS).key("id", AttributeValue::S(work.id));
            let update = update.update_expression("ADD effects :one");
            let update = update.expression_attribute_values(":one", AttributeValue::N("1".into()));
            async move { Ok(update.send().await.map(drop)?) }
        }),
        other => return Err(format!("there is no store {other}").into()),
    })
}
