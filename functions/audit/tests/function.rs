//! The built function, behind the Lambda runtime API, with the embedded DynamoDB.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::time::Duration;

use claimant_test::cloud::{Hold, Invocation, Item, LOCK_TABLE, Stage, StageConfig};
use claimant_test::{TestMessage, event, event_from, message_ids};
use serde_json::{Value, json};

/// How long anything may take that a test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(60);

fn config() -> StageConfig {
    StageConfig::new(env!("CARGO_BIN_EXE_audit")).table("AUDIT_TABLE", "audit", "event_id", None)
}

fn business_event(id: &str, kind: &str) -> Value {
    json!({ "event_id": id, "type": kind, "amount_cents": 2_500 })
}

fn message(body: &Value) -> TestMessage {
    TestMessage::json(body)
}

fn on_bus(body: &Value) -> TestMessage {
    message(body).in_event_bridge("shop.orders", "Order Paid")
}

fn record(key: &str, object: Value) -> Value {
    let mut object = object;
    object["key"] = json!(key);
    json!({ "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": { "bucket": { "name": "invoices" }, "object": object } })
}

/// The rows there are, as `id type source`.
fn rows(stage: &Stage) -> Vec<String> {
    let items = stage.dynamodb.items("audit").unwrap();
    let row = |item: &Item| ["event_id", "type", "source"].map(|name| item.text(name).unwrap().to_owned()).join(" ");
    let mut rows: Vec<_> = items.iter().map(row).collect();
    rows.sort();
    rows
}

fn completed(stage: &Stage) -> usize {
    let records = stage.dynamodb.items(LOCK_TABLE).unwrap();
    records.iter().filter(|record| record.text("status") == Some("COMPLETED")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_is_two_events_in_seven_messages() {
    let stage = Stage::start(config()).await.unwrap();
    let sample = event_from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/events/audit.json"));
    assert_eq!(message_ids(&sample).len(), 7);
    for _ in 0..2 {
        assert!(stage.failures(&sample).await.unwrap().is_empty());
    }
    let queue = "arn:aws:sqs:us-east-1:123456789012:AuditQueue";
    let wanted = [
        "ObjectCreated:Put invoices/2026/invoice 1001.pdf@096fKKXTRTtl3on89fVO.nfljtsv6qko ObjectCreated:Put invoices"
            .to_owned(),
        format!("evt-1001 order.paid {queue}"),
    ];
    assert_eq!(rows(&stage), wanted);
    assert_eq!(completed(&stage), 2, "a test event has no record");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_has_one_row_in_whichever_form_it_comes_first() {
    let event_ = business_event("evt-1", "order.paid");
    let forms = [
        message(&event_),
        message(&event_).in_sns("events"),
        message(&event_).in_sns("events").sent_again(),
        on_bus(&event_),
        on_bus(&event_).sent_again(),
        on_bus(&event_).sent_again().in_sns("events"),
    ];
    for first in 0..forms.len() {
        let stage = Stage::start(config()).await.unwrap();
        for turn in 0..forms.len() {
            let form = forms[(first + turn) % forms.len()].clone().id(format!("m-{turn}"));
            assert!(stage.failures(&event(&[form])).await.unwrap().is_empty(), "{first} {turn}");
            assert_eq!(rows(&stage).len(), 1, "{first} {turn}");
        }
        stage.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_record_of_a_notification_is_an_event() {
    let stage = Stage::start(config()).await.unwrap();
    let two = json!({ "Records": [
        record("a+b%2Fc", json!({ "versionId": "v1", "sequencer": "01" })), record("d", json!({ "sequencer": "02" })),
    ] });
    let one = json!({ "Records": [record("d", json!({ "sequencer": "02" }))] });
    for (id, form) in [("m-1", message(&one)), ("m-2", message(&two)), ("m-3", message(&two).in_sns("events"))] {
        assert!(stage.failures(&event(&[form.id(id)])).await.unwrap().is_empty(), "{id}");
    }
    let wanted = ["a b/c@v1", "d@02"].map(|id| format!("ObjectCreated:Put invoices/{id} ObjectCreated:Put invoices"));
    assert_eq!(rows(&stage), wanted);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_event_goes_to_the_dead_letter_queue_and_has_no_row() {
    let good = business_event("evt-1", "order.paid");
    let mut other = good.clone();
    other["amount_cents"] = json!(1);
    let lies = |field: &str, value: Value| {
        let mut body: Value = serde_json::from_str(&message(&good).in_sns("events").body()).unwrap();
        body[field] = value;
        message(&body)
    };
    let bad = [
        (message(&json!({ "type": "order.paid" })), "no event_id"),
        (message(&json!({ "event_id": "evt-2" })), "no type"),
        (message(&business_event("evt-2", "")), "the event's type is empty"),
        (message(&business_event("evt-2", &"t".repeat(257))), "longer than 256 bytes"),
        (on_bus(&json!({ "type": "order.paid" })), "no event_id"),
        (lies("Message", json!({ "event_id": "evt-2" })), "Message"),
        (message(&json!({ "Records": [record("d", json!({}))] })), "neither version nor sequencer"),
        (on_bus(&other), "another payload"),
    ];
    for (body, wanted) in bad {
        let stage = Stage::start(config().dead_letters("dead")).await.unwrap();
        let both = event(&[message(&good).id("good"), body.id("bad")]);
        assert!(stage.failures(&both).await.unwrap().is_empty(), "{wanted}");
        let letters = stage.dead_letters().await.unwrap();
        assert!(
            matches!(&letters[..], [(id, error)] if id == "bad" && error.contains(wanted)),
            "{wanted}: {letters:?}"
        );
        assert_eq!(rows(&stage).len(), 1, "{wanted}");
        let logged = stage.stop().await;
        // Not by the amount: a trace id can have such digits.
        assert!(!logged.contains("amount"), "{wanted}: a body was logged: {logged}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_fails_the_message_and_leaves_nothing_half_done() {
    let stage = Stage::start(config().variables(&[("AUDIT_TABLE", "no-such-table")])).await.unwrap();
    let body = business_event("evt-1", "order.paid");
    assert_eq!(stage.failures(&event(&[message(&body).id("m")])).await.unwrap(), ["m"]);
    assert_eq!((rows(&stage).len(), completed(&stage)), (0, 0));
    let logged = stage.stop().await;
    assert!(logged.contains("no-such-table"), "{logged}");

    let stage = Stage::start(config().variables(&[("AUDIT_TABLE", "")])).await.unwrap();
    let answer = stage.invoke(&event(&[])).await;
    assert!(matches!(answer, Invocation::FunctionError { .. }), "{answer:?}");
    assert!(stage.stop().await.contains("AUDIT_TABLE is set but empty"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_does_not_come_to_the_operation_is_not_killed_and_the_test_is_told() {
    let stage = Stage::start(config()).await.unwrap();
    let event = event(&[on_bus(&business_event("evt-1", "order.paid")).id("m")]);
    let error = stage.invoke_and_kill_at(Hold::Requests, "TransactWriteItemz", &event).await.unwrap_err().to_string();
    let came = r#"those to DynamoDB were ["TransactWriteItems"]; the invocation came to Response("{\"batchItemFailures\":[]}")"#;
    assert!(error.contains(came), "{error}");
    stage.stop().await;
}

/// Why the transaction: wherever the process dies around its commit, the event has its row and its completion, or neither.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_at_its_commit_has_kept_the_event_or_not() {
    for (what, kept) in [(Hold::Requests, 0), (Hold::Answers, 1)] {
        let stage = Stage::start(config().timeout(Duration::from_secs(5))).await.unwrap();
        let message = on_bus(&business_event("evt-1", "order.paid")).id("m");
        stage.invoke_and_kill_at(what, "TransactWriteItems", &event(std::slice::from_ref(&message))).await.unwrap();
        assert_eq!((rows(&stage).len(), completed(&stage)), (kept, kept), "{what:?}");
        stage.deliver_until_done(&event(&[message.received(2)]), PATIENCE).await.unwrap();
        assert_eq!((rows(&stage).len(), completed(&stage)), (1, 1), "{what:?}");
        stage.stop().await;
    }
}
