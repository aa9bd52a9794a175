//! How handlers and consumers are tested: the examples of `docs/testing.md`.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant::dynamodb::Transaction;
use claimant::memory::MemoryStore;
use claimant::store::Store;
use claimant::{
    Consumer, Context, FailureKind, Fingerprint, Handler, HandlerError, Message, Rejection, Terminal, TransactionGuard,
    envelope,
};
use claimant_test::{Call, Effects, Fault, FaultyStore, MemoryTransactions, Scenario, TestMessage, TestQueue};
use serde_json::json;

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    cups: u32,
}

/// Has orders packed in a warehouse.
struct Packing {
    warehouse: Effects,
}

impl Handler<Order> for Packing {
    type Output = ();

    async fn handle(&self, order: Order, cx: Context) -> Result<(), HandlerError> {
        if order.cups == 0 {
            return Err("an order without cups").terminal();
        }
        if cx.remaining() < Duration::from_secs(1) {
            return Err(HandlerError::retry("too little time to pack"));
        }
        // The key says which order it is, so that the warehouse packs it once.
        self.warehouse.request(cx.key(), format!("{} cups", order.cups)).await
    }
}

/// What `main` gives to `claimant::lambda::run`, on any store.
fn consumer(store: impl Store, warehouse: Effects) -> Consumer<Order> {
    Consumer::new("packing", store, Packing { warehouse }).key(|order: &Order| &order.order_id)
}

fn order(id: &str, cups: u32) -> TestMessage {
    TestMessage::json(&json!({ "order_id": id, "cups": cups }))
}

#[tokio::test(start_paused = true)]
async fn each_order_is_packed_once_whatever_happens() {
    for scenario in Scenario::all() {
        let warehouse = Effects::new();
        let queue = TestQueue::new(consumer(MemoryStore::new(), warehouse.clone()));
        queue.play(&scenario, &[order("ord-1", 3), order("ord-2", 1)]).await.assert_done();
        assert_eq!(warehouse.once(), ["ord-1: 3 cups", "ord-2: 1 cups"], "{scenario}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_scenario_at_a_time() {
    let (first, second) = (order("ord-1", 3), order("ord-2", 1));
    for scenario in [
        Scenario::delivered_twice(),
        Scenario::sent_twice(),
        Scenario::reordered(),
        Scenario::beside_itself(),
        Scenario::answers_lost(Call::Settle),
        Scenario::killed_at(5),
        Scenario::stopped_at(5),
    ] {
        let warehouse = Effects::new();
        let queue = TestQueue::new(consumer(MemoryStore::new(), warehouse.clone()));
        queue.play(&scenario, &[first.clone(), second.clone()]).await.assert_done();
        assert_eq!(warehouse.once().len(), 2, "{scenario}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_can_be_worked_off_by_hand() {
    let warehouse = Effects::new();
    let queue = TestQueue::new(consumer(MemoryStore::new(), warehouse.clone()));
    queue.store().fail_next(Call::Settle, Fault::AnswerLost);
    queue.send(&[order("ord-1", 3), order("ord-1", 3), order("ord-1", 4), order("ord-2", 0)]);
    let played = queue.drain().await;
    assert_eq!(played.outcomes(), ["m-1: completed", "m-2: duplicate", "m-3: conflict", "m-4: rejected"]);
    assert!(played.dead_letters().contains(&"m-4: an order without cups".to_owned()));
    // After its window the key is forgotten.
    queue.clock().advance(Duration::from_secs(16 * 86_400));
    queue.send(&[order("ord-1", 3)]);
    assert_eq!(queue.drain().await.outcomes()[4], "m-5: completed");
    assert_eq!(warehouse.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_order_is_one_order_however_it_comes() {
    let warehouse = Effects::new();
    let queue = TestQueue::new(consumer(MemoryStore::new(), warehouse.clone()).envelope(envelope::detect()));
    let order = order("ord-1", 3);
    let event = order.clone().in_event_bridge("shop", "order placed");
    queue.send(&[order.clone(), order.clone().in_sns("orders"), event.clone(), event.in_sns("orders")]);
    queue.send(&[order.in_cloud_event("shop", "order placed")]);
    queue.drain().await.assert_done();
    assert_eq!(warehouse.requests(), 1);
}

/// The key that `docs/envelopes.md` recommends where a notification has several kinds of events.
fn kind_and_id<T>(_: &T, message: &Message) -> Result<String, Rejection> {
    let event = message.event().unwrap();
    Ok(format!("{} {}", event.kind.as_deref().unwrap(), event.id.as_deref().unwrap_or(message.id().as_str())))
}

/// One version of an object is tagged as clean, and an hour later as infected; it is restored, and restored again; it is not replicated, and
/// not replicated again. S3 sends the second notification twice.
#[tokio::test(start_paused = true)]
async fn what_happens_again_to_an_object_is_looked_at_again() {
    // What S3 sends: a sequencer that is that of the object's creation in each of them, or none.
    for (kind, sequencer) in [
        ("ObjectTagging:Put", None),
        ("ObjectRestore:Completed", Some("0066DA1CBF104C0D51")),
        ("Replication:OperationFailedReplication", Some("0066DA1CBF104C0D51")),
    ] {
        let happened = |time: &str| {
            let object = json!({ "key": "a", "versionId": "v1", "eTag": "e", "sequencer": sequencer });
            let s3 = json!({ "bucket": { "name": "in" }, "object": object });
            let record = json!({ "eventSource": "aws:s3", "eventName": kind, "eventTime": time, "s3": s3 });
            TestMessage::json(&json!({ "Records": [record] }))
        };
        let consumer = || Consumer::new("index", MemoryStore::new(), index).envelope(envelope::S3);
        for consumer in [consumer(), consumer().key_of_message(kind_and_id)] {
            let queue = TestQueue::new(consumer);
            let again = happened("2026-11-22T13:00:00.000Z");
            queue.send(&[happened("2026-11-22T12:00:00.000Z"), again.clone(), again]);
            let played = queue.drain().await;
            assert_eq!(played.outcomes(), ["m-1: completed", "m-2: completed", "m-3: duplicate"], "{kind}");
        }
    }
}

async fn index(_: envelope::S3Record, _: Context) -> Result<(), HandlerError> {
    Ok(())
}

/// What an envelope says of an event does not count, since a copy that was sent directly has none: where two kinds hold the same, the
/// second one is a duplicate, and no conflict shows it. `docs/envelopes.md` says so.
#[tokio::test(start_paused = true)]
async fn two_kinds_of_events_that_hold_the_same_need_keys_of_their_own() {
    let event = |kind: &str| order("ord-1", 3).in_event_bridge("shop", kind);
    let by_id = consumer(MemoryStore::new(), Effects::new());
    let by_both = Consumer::new("packing", MemoryStore::new(), Packing { warehouse: Effects::new() });
    let with_the_kind = |order: &Order, message: &Message| {
        Ok(format!("{} {}", message.event().and_then(|event| event.kind.as_deref()).unwrap(), order.order_id))
    };
    for (consumer, second) in [(by_id, "duplicate"), (by_both.key_of_message(with_the_kind), "completed")] {
        let queue = TestQueue::new(consumer.envelope(envelope::EventBridge));
        queue.send(&[event("OrderPaid"), event("OrderRefunded")]);
        let wanted = ["m-1: completed".to_owned(), format!("m-2: {second}")];
        assert_eq!(queue.drain().await.outcomes(), wanted);
    }
}

#[derive(serde::Deserialize)]
struct Outer {
    detail: Order,
}

/// The first consumer reads the envelope itself, and fails; the second one is deployed while its message is in retry. `docs/keys.md` says so.
#[tokio::test(start_paused = true)]
async fn an_envelope_is_added_with_another_version_of_the_fingerprint() {
    async fn fails(_: Outer, _: Context) -> Result<(), HandlerError> {
        Err(HandlerError::retry("the warehouse is away"))
    }
    for (version, outcome) in [(None, "conflict"), (Some(1), "completed")] {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        let message = order("ord-1", 3).in_event_bridge("shop", "OrderPaid").id("m-1");
        let before =
            Consumer::new("packing", store.clone(), fails).key_of(|outer: &Outer| outer.detail.order_id.clone());
        let report = TestQueue::new(before).deliver(std::slice::from_ref(&message)).await;
        assert_eq!(report.entries()[0].outcome.word(), "retry");
        let after = consumer(store, Effects::new()).envelope(envelope::EventBridge);
        let after = match version {
            Some(version) => after.fingerprint_of(version, |order| Fingerprint::of_bytes(&order.cups.to_be_bytes())),
            None => after,
        };
        let report = TestQueue::new(after).deliver(&[message.received(2)]).await;
        assert_eq!(report.entries()[0].outcome.word(), outcome);
    }
}

#[tokio::test]
async fn a_handler_is_a_function() {
    let packing = Packing { warehouse: Effects::new() };
    let order = |cups| Order { order_id: "ord-1".into(), cups };
    let cx = Context::for_tests("ord-1").unwrap();
    packing.handle(order(3), cx.clone()).await.unwrap();
    assert_eq!(packing.warehouse.once(), ["ord-1: 3 cups"]);
    assert_eq!(packing.handle(order(0), cx.clone()).await.unwrap_err().kind(), FailureKind::Terminal);
    let late = cx.with_attempt(2).with_remaining(Duration::from_millis(100));
    assert_eq!(packing.handle(order(3), late).await.unwrap_err().kind(), FailureKind::Retry);
}

async fn book(order: Order, mut tx: TransactionGuard<Transaction>, cx: Context) -> Result<(), HandlerError> {
    let item = Put::builder().table_name("packed").item("id", AttributeValue::S(cx.key().to_owned()));
    let item = item.item("cups", AttributeValue::N(order.cups.to_string()));
    tx.put(item.condition_expression("attribute_not_exists(id)").build()?).or_terminal("it is packed already");
    Ok(())
}

#[tokio::test]
async fn a_transaction_can_be_made_by_hand() {
    let (guard, slot) = TransactionGuard::for_tests(Transaction::default());
    let order = Order { order_id: "ord-1".into(), cups: 3 };
    book(order, guard, Context::for_tests("ord-1").unwrap()).await.unwrap();
    let tx: Transaction = slot.returned().unwrap();
    let puts: Vec<_> = tx.writes().map(|write| write.put().unwrap()).collect();
    assert_eq!((puts.len(), puts[0].table_name()), (1, "packed"));
    assert_eq!(puts[0].item()["cups"], AttributeValue::N("3".into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_written_in_the_transaction_is_written_once_whatever_happens() {
    for scenario in Scenario::all() {
        let table = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&table);
        let store = MemoryTransactions::new(move |tx: Transaction| {
            let puts = tx.writes().filter_map(|write| write.put());
            written.lock().unwrap().extend(puts.map(|put| put.item()["cups"].clone()));
            Ok(())
        });
        let queue =
            TestQueue::new(Consumer::transactional("packing", store, book).key(|order: &Order| &order.order_id));
        queue.play(&scenario, &[order("ord-1", 3)]).await.assert_done();
        assert_eq!(*table.lock().unwrap(), [AttributeValue::N("3".into())], "{scenario}");
    }
}
