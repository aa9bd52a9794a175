//! How handlers and consumers are tested: the examples of `docs/testing.md`.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant::dynamodb::Transaction;
use claimant::engine::{Engine, Message, MessageId, NoQueue, Schedule};
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, HandlerError, Terminal, TransactionGuard};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    cups: u32,
}

async fn pack(order: Order, cx: Context) -> Result<u32, HandlerError> {
    if order.cups == 0 {
        return Err("an order without cups").terminal();
    }
    if cx.remaining() < Duration::from_secs(1) {
        return Err(HandlerError::retry("too little time to pack"));
    }
    Ok(order.cups)
}

#[tokio::test]
async fn a_handler_is_a_function() {
    let order = |cups| Order { order_id: "ord-1".into(), cups };
    let cx = Context::for_tests("ord-1").unwrap();
    assert_eq!(pack(order(3), cx.clone()).await.unwrap(), 3);
    assert!(pack(order(0), cx.clone()).await.unwrap_err().is_terminal());
    let late = cx.with_attempt(2).with_remaining(Duration::from_millis(100));
    assert!(!pack(order(3), late).await.unwrap_err().is_terminal());
}

async fn book(order: Order, mut tx: TransactionGuard<Transaction>, cx: Context) -> Result<(), HandlerError> {
    let item = Put::builder().table_name("packed").item("id", AttributeValue::S(cx.key().to_owned()));
    let item = item.item("cups", AttributeValue::N(order.cups.to_string()));
    tx.put(item.condition_expression("attribute_not_exists(id)").build()?).or_terminal("it is packed already");
    Ok(())
}

#[tokio::test]
async fn a_transaction_can_be_made_by_hand() {
    let (lent, home) = TransactionGuard::for_tests(Transaction::default());
    let order = Order { order_id: "ord-1".into(), cups: 3 };
    book(order, lent, Context::for_tests("ord-1").unwrap()).await.unwrap();
    let tx: Transaction = home.returned().unwrap();
    let puts: Vec<_> = tx.writes().map(|write| write.put().unwrap()).collect();
    assert_eq!((puts.len(), puts[0].table_name()), (1, "packed"));
    assert_eq!(puts[0].item()["cups"], AttributeValue::N("3".into()));
}

fn message(id: &str, body: &str) -> Message {
    Message::new(id, body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_consumer_runs_on_the_store_in_memory() {
    let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order| &order.order_id);
    let engine = Engine::with_defaults(consumer).unwrap();
    let batch = [
        message("m-1", r#"{"order_id": "ord-1", "cups": 3}"#),
        message("m-2", r#"{"order_id": "ord-1", "cups": 3}"#), // the producer sent it twice
        message("m-3", r#"{"order_id": "ord-2", "cups": 0}"#),
        message("m-4", "no JSON"),
    ];
    let now = engine.now();
    let schedule = Schedule::new(now, now.plus(Duration::from_secs(30)), Duration::from_millis(500));
    let report = engine.process(&batch, schedule, &NoQueue).await;
    let outcomes: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
    assert_eq!(outcomes, ["completed", "duplicate", "rejected", "rejected"]);
    let failures: Vec<_> = report.failures().into_iter().map(MessageId::as_str).collect();
    assert_eq!(failures, ["m-3", "m-4"], "without a dead-letter queue these come back");
}
