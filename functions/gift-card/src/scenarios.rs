//! Everything that can happen to a message, played on the consumer.

use std::sync::{Arc, Mutex};

use claimant::dynamodb::Transaction;
use claimant_test::{MemoryTransactions, Scenario, TestMessage, TestQueue};
use serde_json::json;

use crate::consumer;
use crate::handler::Tables;

fn purchase(order: &str, amount_cents: u64) -> TestMessage {
    let card = order.replace("ord", "card");
    TestMessage::json(&json!({
        "order_id": order, "card_id": card, "recipient": "ada@example.com", "amount_cents": amount_cents, "currency": "EUR",
    }))
}

/// A store whose transactions write down which table they put which order into.
fn store() -> (MemoryTransactions<Transaction>, Arc<Mutex<Vec<String>>>) {
    let puts = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&puts);
    let store = MemoryTransactions::new(move |tx: Transaction| {
        for put in tx.writes().filter_map(|write| write.put()) {
            let order = put.item()["order_id"].as_s().unwrap();
            written.lock().unwrap().push(format!("{} {order}", put.table_name()));
        }
        Ok(())
    });
    (store, puts)
}

fn tables() -> Tables {
    Tables::new("cards".into(), "ledger".into())
}

#[tokio::test(start_paused = true)]
async fn each_order_gets_one_card_whatever_happens() {
    for scenario in Scenario::all() {
        let (store, puts) = store();
        let queue = TestQueue::new(consumer(store, tables()));
        queue.play(&scenario, &[purchase("ord-1", 500), purchase("ord-2", 700)]).await.assert_done();
        let mut puts = puts.lock().unwrap().clone();
        puts.sort();
        assert_eq!(puts, ["cards ord-1", "cards ord-2", "ledger ord-1", "ledger ord-2"], "{scenario}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_no_retry_fixes_is_dead_lettered_whatever_happens() {
    for scenario in Scenario::all() {
        let (store, puts) = store();
        let queue = TestQueue::new(consumer(store, tables()));
        queue.play(&scenario, &[purchase("ord-1", 0)]).await.assert_dead_lettered("the amount is 0");
        assert!(puts.lock().unwrap().is_empty(), "{scenario}");
    }
}
