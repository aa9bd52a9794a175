//! Everything that can happen to a message, played on the consumer.

use std::sync::{Arc, Mutex};

use claimant::HandlerError;
use claimant::dynamodb::Transaction;
use claimant_test::{MemoryTransactions, Scenario, TestMessage, TestQueue};
use serde_json::json;

use crate::consumer;
use crate::handler::Books;

fn change(id: &str, customer: &str, points: i64) -> TestMessage {
    TestMessage::json(&json!({ "change_id": id, "customer_id": customer, "points": points })).in_group(customer)
}

/// A store whose transactions change one balance, which never gets below zero.
fn store() -> (MemoryTransactions<Transaction>, Arc<Mutex<i64>>) {
    let balance = Arc::new(Mutex::new(0));
    let booked = Arc::clone(&balance);
    let store = MemoryTransactions::new(move |tx: Transaction| {
        let update = tx.writes().find_map(|write| write.update()).unwrap();
        let points: i64 = update.expression_attribute_values().unwrap()[":points"].as_n().unwrap().parse()?;
        let mut balance = booked.lock().unwrap();
        if *balance + points < 0 {
            return Err(HandlerError::terminal("not enough points"));
        }
        *balance += points;
        Ok(())
    });
    (store, balance)
}

/// In any other order there would not be enough points.
#[tokio::test(start_paused = true)]
async fn each_change_counts_once_and_in_its_order_whatever_happens() {
    let changes = [("c-1", 100), ("c-2", -90), ("c-3", 80), ("c-4", -90)];
    let messages = changes.map(|(id, points)| change(id, "ada", points));
    for scenario in Scenario::all() {
        let (store, balance) = store();
        let queue = TestQueue::new(consumer(store, Books::new("points".into())));
        queue.play(&scenario, &messages).await.assert_done();
        assert_eq!(*balance.lock().unwrap(), 0, "{scenario}");
    }
}
