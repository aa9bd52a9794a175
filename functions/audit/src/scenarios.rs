//! Everything that can happen to a message, played on the consumer, with events in all their forms.

use std::sync::{Arc, Mutex};

use claimant::dynamodb::Transaction;
use claimant_test::{MemoryTransactions, S3Object, Scenario, TestMessage, TestQueue};
use serde_json::json;

use crate::consumer;
use crate::handler::Entries;

#[tokio::test(start_paused = true)]
async fn each_event_has_one_row_however_it_comes_and_whatever_happens() {
    let paid = TestMessage::json(&json!({ "event_id": "evt-1", "type": "order.paid" }));
    let objects = [S3Object::created("in", "a b").version("v1"), S3Object::created("in", "c").sequencer("0A")];
    // Of the same version as the first one, and another event.
    let removed = S3Object::removed("in", "a b").version("v1").sequencer("0B");
    let forms = [
        paid.clone().in_sns("events"),
        TestMessage::s3(&objects),
        paid.clone().in_event_bridge("shop", "paid"),
        TestMessage::s3(&objects[1..]).in_sns("objects"),
        TestMessage::s3(&[removed]),
        paid.in_event_bridge("shop", "paid").in_sns("events"),
    ];
    for scenario in Scenario::all() {
        let rows = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&rows);
        let store = MemoryTransactions::new(move |tx: Transaction| {
            let puts = tx.writes().filter_map(|write| write.put());
            written.lock().unwrap().extend(puts.map(|put| put.item()["event_id"].as_s().unwrap().clone()));
            Ok(())
        });
        let queue = TestQueue::new(consumer(store, Entries::new("audit".into())));
        queue.play(&scenario, &forms).await.assert_done();
        let mut rows = rows.lock().unwrap().clone();
        rows.sort();
        let objects = ["ObjectCreated:Put in/a b@v1", "ObjectCreated:Put in/c@0A", "ObjectRemoved:Delete in/a b@v1"];
        assert_eq!(rows, [&objects[..], &["evt-1"]].concat(), "{scenario}");
    }
}
